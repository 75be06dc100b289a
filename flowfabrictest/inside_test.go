package flowfabrictest

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/transport"
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

// A group that reached the engine of one process directly would fail once that process has crashed.
func TestU154_every_group_of_the_client_survives_the_death_of_the_process(t *testing.T) {
	t.Parallel()
	env := New(t)
	client, groups := reflect.ValueOf(env.Client), 0
	for i := range client.NumMethod() {
		name, method := client.Type().Method(i).Name, client.Method(i)
		if method.Type().NumIn() != 0 || method.Type().NumOut() != 1 || method.Type().Out(0).Kind() != reflect.Struct || name == "Connection" {
			continue
		}
		groups++
		found := 0
		transports(method.Call(nil)[0], func(of reflect.Value) {
			found++
			if of.Type() != reflect.TypeFor[*lasting]() {
				t.Errorf("%s goes through a %s", name, of.Type())
			}
		})
		if found == 0 {
			t.Errorf("%s goes through no transport that the test finds", name)
		}
	}
	if groups < 11 {
		t.Errorf("%d groups", groups)
	}
}

// transports calls visit with every transport in a value.
func transports(v reflect.Value, visit func(of reflect.Value)) {
	switch v.Kind() {
	case reflect.Interface:
		if v.IsNil() {
			return
		}
		inner := v.Elem()
		if inner.Type() == reflect.TypeFor[transport.Connection]() {
			transports(inner, visit)
		} else if inner.Type().Implements(reflect.TypeFor[transport.Transport]()) {
			visit(inner)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			transports(v.Field(i), visit)
		}
	default:
	}
}

// failing is a test that notes what it fails with.
type failing struct {
	testing.TB
	said chan string
}

func (f *failing) Helper() {}

func (f *failing) Errorf(format string, args ...any) {
	f.said <- strings.Join(strings.Fields(format), " ")
}

func TestU154_a_call_that_would_wait_forever_fails_the_test_with_the_reason(t *testing.T) {
	t.Parallel()
	env := New(t)
	run, err := flowfabric.Kind[string, string]("later").Submit(t.Context(), env.Client, "x", flowfabric.SubmitOptions{Delay: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	inner := &failing{TB: t, said: make(chan string, 8)}
	env.tb, env.stuckAfter = inner, 50*time.Millisecond // only now: a call that goes through may take longer on a busy host
	if _, err := run.Result(t.Context()); err == nil || !strings.Contains(err.Error(), "call Advance first") {
		t.Errorf("Result: %v", err)
	}
	if said := <-inner.said; !strings.Contains(said, "nothing turns the clock") {
		t.Errorf("it says %q", said)
	}
	waited, stop := context.WithCancel(t.Context())
	stop()
	if _, err := run.Result(waited); err == nil {
		t.Error("a call whose context has ended succeeds")
	}
	env.tb, env.stuckAfter = t, patience
}
