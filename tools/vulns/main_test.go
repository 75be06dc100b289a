package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

func TestTheIndexNamesEveryReportOfAModuleAndWhatMendsIt(t *testing.T) {
	t.Parallel()
	reports, db := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{
		"GO-2031-0001.json": `{"id":"GO-2031-0001","modified":"2031-01-02T00:00:00Z","affected":[{"package":{"name":"example.com/a"},"ranges":[{"events":[{"introduced":"0"},{"fixed":"1.0.1"},{"introduced":"1.1.0"},{"fixed":"1.1.2"}]}]}]}`,
		"GO-2031-0002.json": `{"id":"GO-2031-0002","modified":"2031-01-01T00:00:00Z","affected":[{"package":{"name":"example.com/a"},"ranges":[{"events":[{"introduced":"0"}]}]},{"package":{"name":"stdlib"},"ranges":[]}]}`,
		"README.json":       `no report`,
	} {
		if err := os.WriteFile(filepath.Join(reports, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := build(reports, db); err != nil {
		t.Fatal(err)
	}
	var modules []indexed
	read(t, filepath.Join(db, "index", "modules.json"), &modules)
	want := []indexed{
		{Path: "example.com/a", Vulns: []vuln{{"GO-2031-0001", "2031-01-02T00:00:00Z", "1.1.2"}, {"GO-2031-0002", "2031-01-01T00:00:00Z", ""}}},
		{Path: "stdlib", Vulns: []vuln{{"GO-2031-0002", "2031-01-01T00:00:00Z", ""}}},
	}
	if !reflect.DeepEqual(modules, want) {
		t.Errorf("%+v", modules)
	}
	var newest map[string]string
	read(t, filepath.Join(db, "index", "db.json"), &newest)
	if newest["modified"] != "2031-01-02T00:00:00Z" {
		t.Errorf("%v", newest)
	}
	var report entry
	if read(t, filepath.Join(db, "ID", "GO-2031-0002.json"), &report); report.ID != "GO-2031-0002" {
		t.Errorf("%+v", report)
	}
	if build(t.TempDir(), t.TempDir()) == nil {
		t.Error("a database without reports finds nothing, and says so")
	}
}

func read(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}
