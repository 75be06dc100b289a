package flowfabrictest

import (
	"testing"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
)

func TestU153_an_execution_that_cannot_go_on_is_found(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, time.January, 2, 0, 0, 0, 0, time.UTC)
	lease := &api.Lease{ExpiresAt: now.Add(time.Second)}
	for name, c := range map[string]struct {
		x    flowfabric.Execution
		want int
	}{
		"ready":                         {flowfabric.Execution{Status: flowfabric.StatusReady, Reason: "waiting_for_worker"}, 0},
		"delayed":                       {flowfabric.Execution{Status: flowfabric.StatusDelayed, Reason: "waiting_for_delay", DelayUntil: now.Add(time.Hour)}, 0},
		"running":                       {flowfabric.Execution{Status: flowfabric.StatusRunning, Lease: lease}, 0},
		"finished":                      {flowfabric.Execution{Status: flowfabric.StatusFailed, CompletedAt: now, DeadlineAt: now.Add(-time.Hour)}, 0},
		"delayed and overdue":           {flowfabric.Execution{Status: flowfabric.StatusDelayed, DelayUntil: now.Add(-time.Second)}, 1},
		"delayed for ever":              {flowfabric.Execution{Status: flowfabric.StatusDelayed}, 1},
		"running without a lease":       {flowfabric.Execution{Status: flowfabric.StatusRunning}, 1},
		"blocked by nothing":            {flowfabric.Execution{Status: flowfabric.StatusBlocked}, 1},
		"past its deadline":             {flowfabric.Execution{Status: flowfabric.StatusReady, Reason: "waiting_for_worker", DeadlineAt: now.Add(-time.Second)}, 1},
		"finished, leased and undated":  {flowfabric.Execution{Status: flowfabric.StatusFailed, Lease: lease}, 2},
		"failed and still has a result": {flowfabric.Execution{Status: flowfabric.StatusFailed, CompletedAt: now, HasResult: true}, 1},
	} {
		found := stranded(&c.x, now)
		if c.x.Status.Terminal() {
			found = append(found, unended(&c.x)...)
		}
		if len(found) != c.want {
			t.Errorf("%s: %d problems, want %d: %q", name, len(found), c.want, found)
		}
	}
}

func TestU154_the_seed_decides_what_of_the_simultaneous_comes_first(t *testing.T) {
	t.Parallel()
	first := func(seed uint64) int {
		c := newTurned(time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC), seed)
		timers := []<-chan time.Time{c.NewTimer(time.Second).C, c.NewTimer(time.Second).C, c.NewTimer(time.Second).C}
		c.NewTimer(time.Second + 1)
		c.turnTo(c.Now().Add(time.Second))
		c.fire()
		for i, timer := range timers {
			if len(timer) == 1 {
				return i
			}
		}
		t.Errorf("seed %d: nothing fired", seed)
		return -1
	}
	seen := map[int]bool{}
	for seed := range uint64(20) {
		seen[first(seed)] = true
		if once, again := first(seed), first(seed); once != again {
			t.Errorf("seed %d is not the same twice", seed)
		}
	}
	if len(seen) != 3 {
		t.Errorf("only %d of 3 timers were ever the first", len(seen))
	}
}

func TestU153_a_stopped_timer_does_not_fire_and_one_of_no_time_does_at_once(t *testing.T) {
	t.Parallel()
	c := newTurned(time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC), 0)
	if timer := c.NewTimer(0); len(timer.C) != 1 || timer.Stop() {
		t.Error("a timer of no time has not fired")
	}
	timer := c.NewTimer(time.Second)
	if !timer.Stop() || timer.Stop() {
		t.Error("a timer stops once")
	}
	c.turnTo(c.Now().Add(time.Minute))
	if _, pending := c.next(); pending || c.fire() || len(timer.C) != 0 {
		t.Error("a stopped timer has fired")
	}
}
