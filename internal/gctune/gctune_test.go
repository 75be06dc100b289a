package gctune_test

import (
	"runtime/debug"
	"testing"

	"github.com/flowfabric/flowfabric/internal/gctune"
)

// Not parallel: the setting is the process's.
func TestTheHeapGetsRoomUnlessTheEnvironmentSaysHowMuch(t *testing.T) {
	before := debug.SetGCPercent(50)
	defer debug.SetGCPercent(before)
	t.Setenv("GOGC", "50")
	gctune.Roomy()
	if got := debug.SetGCPercent(50); got != 50 {
		t.Errorf("%d with GOGC, want 50 as it says", got)
	}
	t.Setenv("GOGC", "")
	gctune.Roomy()
	if got := debug.SetGCPercent(50); got != 300 {
		t.Errorf("%d without, want 300", got)
	}
}
