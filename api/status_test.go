package api

import (
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
)

// The package states the final statuses itself, so that clients do not carry the rules.
func TestL17_the_final_statuses_are_those_of_the_rules(t *testing.T) {
	t.Parallel()
	final := 0
	for _, status := range core.Statuses() {
		if got := Status(status.String()).Terminal(); got != status.Terminal() {
			t.Errorf("%s is final: %v, by the rules %v", status, got, status.Terminal())
		}
		if status.Terminal() {
			final++
		}
	}
	if final != 5 || Status("").Terminal() || Status("done").Terminal() {
		t.Errorf("%d final statuses", final)
	}
}
