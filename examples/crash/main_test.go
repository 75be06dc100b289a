package main

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain lets the test's own binary be the worker process of the story.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "-work" {
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

func TestU238_a_killed_worker_is_taken_over_and_its_late_write_refused(t *testing.T) {
	t.Parallel()
	if err := run(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
}
