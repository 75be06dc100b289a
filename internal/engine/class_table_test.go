package engine_test

import (
	"testing"

	"github.com/flowfabric/flowfabric/internal/engine"
)

func TestS36_needs_that_are_asked_for_again_and_again_are_parsed_once_whatever_passes_by(t *testing.T) {
	t.Parallel()
	needs := engine.NeedsOf("unreadable")
	first := needs(0)
	for class := range int32(5 * engine.NeedsKept) {
		needs(class + 1)
		if class%100 == 0 && needs(0) != first {
			t.Fatalf("parsed again after %d others", class)
		}
	}
}
