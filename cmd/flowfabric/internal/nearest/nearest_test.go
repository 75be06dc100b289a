package nearest

import "testing"

func TestU157_a_mistyped_name_finds_the_one_that_was_meant(t *testing.T) {
	t.Parallel()
	known := []string{"cancel", "claim", "count", "submit"}
	for typed, want := range map[string]string{"cancl": "cancel", "sumbit": "submit", "counts": "count", "zzzzzz": "", "": ""} {
		if got := To(typed, known); got != want {
			t.Errorf("%q: %q, want %q", typed, got, want)
		}
	}
}
