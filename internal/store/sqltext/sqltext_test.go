package sqltext

import (
	"testing"
	"testing/fstest"
)

func TestLoad_splits_files_into_named_statements(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{
		"a.sql":   {Data: []byte("-- what this is for\n\n-- name: one\n-- why\nselect 1;\n\n-- name: two\nselect\n  2\n")},
		"b.sql":   {Data: []byte("-- name: three\nselect 3;\n")},
		"c.other": {Data: []byte("nonsense")},
	}
	statements, err := Load(files, "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"one": "select 1", "two": "select\n  2", "three": "select 3"}
	for name, text := range want {
		if statements[name] != text {
			t.Errorf("%s is %q, want %q", name, statements[name], text)
		}
	}
	if len(statements) != len(want) {
		t.Errorf("got %d statements, want %d", len(statements), len(want))
	}
}

func TestLoad_refuses_text_that_no_name_reaches(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"twice":    "-- name: a\nselect 1;\n-- name: a\nselect 2;",
		"nameless": "select 1;\n-- name: a\nselect 2;",
		"empty":    "-- name: a\n-- name: b\nselect 1;",
	} {
		if _, err := Load(fstest.MapFS{"x.sql": {Data: []byte(text)}}, "*.sql"); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
