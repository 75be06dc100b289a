package jsonx

import "testing"

func TestU157_a_mistyped_name_finds_the_one_that_was_meant(t *testing.T) {
	t.Parallel()
	known := []string{"cancel", "claim", "count", "submit", "FF_LISTEN"}
	for typed, want := range map[string]string{
		"cancl": "cancel", "sumbit": "submit", "Counts": "count", "FF_LISSTEN": "FF_LISTEN", "ff_listen": "FF_LISTEN", "zzzzzz": "", "": "",
	} {
		if got := Nearest(typed, known); got != want {
			t.Errorf("%q: %q, want %q", typed, got, want)
		}
	}
}
