package backoff_test

import (
	"context"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/backoff"
	"github.com/flowfabric/flowfabric/internal/clock"
)

func TestU132_pauses_double_up_to_the_longest_and_are_never_none(t *testing.T) {
	t.Parallel()
	for try, limit := range map[int]time.Duration{
		0: backoff.First, 1: 2 * backoff.First, 5: 32 * backoff.First, 6: backoff.Longest, 16: backoff.Longest, 1000: backoff.Longest,
	} {
		for range 100 {
			if d := backoff.Delay(try); d <= 0 || d > limit {
				t.Fatalf("the pause before repeat %d is %v, want more than 0 and at most %v", try+1, d, limit)
			}
		}
	}
	if d := backoff.Spread(0); d <= 0 {
		t.Errorf("a pause of up to nothing is %v", d)
	}
}

func TestU132_a_pause_ends_with_its_context(t *testing.T) {
	t.Parallel()
	if !backoff.Pause(t.Context(), clock.System(), 1) {
		t.Error("a pause that nothing ends was cut short")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if backoff.Pause(ended, clock.System(), time.Hour) {
		t.Error("a pause in a context that has ended was not cut short")
	}
	ending, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if backoff.Pause(ending, clock.System(), time.Hour) {
		t.Error("a pause whose context ends meanwhile was not cut short")
	}
}
