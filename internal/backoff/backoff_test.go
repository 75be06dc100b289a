package backoff_test

import (
	"context"
	"runtime"
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

func TestU18_a_loop_pauses_longer_from_answer_to_answer_that_brings_nothing_at_once(t *testing.T) {
	t.Parallel()
	hands := clock.NewManual(time.Unix(0, 0))
	var idle backoff.Idle
	longest := func(tries int) (most time.Duration) {
		for range tries {
			began := hands.Now()
			done := make(chan struct{})
			go func() {
				defer close(done)
				idle.Pause(t.Context(), hands, began, 30*time.Second)
			}()
			for ended := false; !ended; {
				if at, waits := hands.Next(); waits {
					hands.TurnTo(at)
				}
				select {
				case <-done:
					ended = true
				default:
					runtime.Gosched()
				}
			}
			most = max(most, hands.Now().Sub(began))
		}
		return most
	}
	if first := longest(1); first <= 0 || first > backoff.First {
		t.Errorf("the first pause is %v", first)
	}
	if later := longest(40); later <= backoff.First || later > backoff.Longest {
		t.Errorf("the longest pause is %v", later)
	}
	idle.News()
	if first := longest(1); first <= 0 || first > backoff.First {
		t.Errorf("the first pause after news is %v", first)
	}
	before := hands.Now()
	if idle.Pause(t.Context(), hands, before.Add(-time.Second), 30*time.Second); !hands.Now().Equal(before) {
		t.Error("a call that did wait is followed by a pause")
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
