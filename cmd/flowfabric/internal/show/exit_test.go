package show

import (
	"testing"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
)

// exits are the exit codes of the classes, in numbers as the specification states them (U25, U158).
var exits = map[string]int{
	"invalid": 2, "unauthenticated": 5, "forbidden": 5, "not_found": 3, "conflict": 4, "state": 4, "fenced": 4, "grant": 4, "gone": 4,
	"admission": 7, "limited": 7, "internal": 1, "not_implemented": 1, "unavailable": 7,
}

func TestU158_every_code_of_the_table_ends_the_program_as_its_class_says(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, code := range api.Codes() {
		want, known := exits[code.Class]
		if got := ExitCode(&flowfabric.Error{Code: code.Code, Class: code.Class}); !known || got != want {
			t.Errorf("%s of class %s: exit %d, want %d", code.Code, code.Class, got, want)
		}
		seen[code.Class] = true
	}
	for class := range exits {
		if !seen[class] {
			t.Errorf("no code is of class %s", class)
		}
	}
	for want, got := range map[int]int{0: ExitDone, 1: ExitFailed, 6: ExitTimeout, 8: ExitUnsuccess, 130: ExitInterrupted} {
		if got != want {
			t.Errorf("exit %d, want %d", got, want)
		}
	}
}
