package engine_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

// livesAtRandom lets a few executions begin, lapse, end and begin again.
func (w *world) livesAtRandom(random *rand.Rand) (all []core.GivenID) {
	for i := range 12 {
		all = append(all, w.submit(core.Submission{Lane: fmt.Sprint("l", i%2), Tags: core.Tags{"team": fmt.Sprint(i % 3)}, PolicyJSON: []byte(`{"retry_policy":{}}`)}))
	}
	r := ask()
	r.Lanes = []string{"l0", "l1"}
	for range 40 {
		for _, task := range w.take(r) {
			switch random.IntN(7) {
			case 0, 1:
				w.complete(task)
			case 2:
				w.fail(task, []string{"", "permanent"}[random.IntN(2)])
			case 3:
				w.delay(task, w.now().Add(random.Int64N(5000)+1))
			case 4:
				w.release(task)
			case 5:
				w.cancel(given(task))
			default:
				w.turn(30_000)
				w.becomes(given(task), core.Ready)
			}
		}
		if id := all[random.IntN(len(all))]; w.get(id).Status.Terminal() {
			w.replay(id)
		}
		w.pass(random.Int64N(2000))
	}
	return all
}

func TestEI8_each_lease_has_one_exit_event_and_each_run_that_ended_one_completion(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		leases := 0
		for _, id := range w.livesAtRandom(testseed.New(t)) {
			x := w.get(id)
			begun, ended, completed := map[any]int{}, map[any]int{}, 0
			for _, ev := range w.events(engine.EventFilter{ExecutionID: &id}) {
				of := data(t, ev)
				if ev.Kind == "execution.completed" {
					completed++
				}
				switch epoch := of["lease_epoch"]; {
				case ev.Kind == "lease.acquired":
					begun[epoch]++
				case of["lease"] != nil && of["late"] == nil:
					ended[epoch]++
				}
			}
			want := x.ReplayCount
			if x.Status.Terminal() {
				want++
			}
			same(t, "completions of "+id.ID().String(), completed, want)
			same(t, "leases of "+id.ID().String(), int64(len(begun)), x.LeaseEpoch)
			if x.Lease != nil {
				delete(begun, float64(x.LeaseEpoch)) // it is held
			}
			same(t, "exits of "+id.ID().String(), ended, begun)
			leases += len(begun)
		}
		if leases < 20 {
			t.Errorf("%d leases ended: the test proves little", leases)
		}
	})
}

func TestEI9_a_consumer_that_crashes_sees_every_event_in_order(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		random := testseed.New(t)
		w.livesAtRandom(random)
		all := w.events(engine.EventFilter{})
		var seen []string
		for stored, crashes := "start", 0; ; {
			page := must(w.e.ReadEvents(w.ctx(), client, engine.EventsRequest{After: stored, Limit: 1 + random.IntN(20)}))(t)
			for _, ev := range page.Events {
				if !slices.Contains(seen, ev.Cursor) { // what was processed before a crash comes again
					seen = append(seen, ev.Cursor)
				}
			}
			if crashes < 20 && random.IntN(3) == 0 { // before it has stored where it is
				crashes++
				continue
			}
			if stored = page.Next; page.AtEnd {
				break
			}
		}
		same(t, "the events", seen[:len(all)], cursors(all, func(engine.LoggedEvent) bool { return true }))
	})
}

// cursors are those of the events that fit.
func cursors(events []engine.LoggedEvent, fits func(engine.LoggedEvent) bool) []string {
	found := []string{}
	for _, ev := range events {
		if fits(ev) {
			found = append(found, ev.Cursor)
		}
	}
	return found
}

// drawFilter draws a filter with some of its parts from an event, and what it means.
func drawFilter(random *rand.Rand, from engine.LoggedEvent) (f engine.EventFilter, fits func(engine.LoggedEvent) bool) {
	parts := []func(engine.LoggedEvent) bool{}
	chosen := func() bool { return random.IntN(3) == 0 }
	if chosen() {
		prefix, _, _ := strings.Cut(from.Kind, ".")
		f.Kinds = []string{"worker.registered", prefix + "."}
		parts = append(parts, func(ev engine.LoggedEvent) bool {
			return ev.Kind == "worker.registered" || strings.HasPrefix(ev.Kind, prefix+".")
		})
	}
	if chosen() && !from.ExecutionID.IsZero() {
		f.ExecutionID = ptr(from.ExecutionID.Given())
		parts = append(parts, func(ev engine.LoggedEvent) bool { return ev.ExecutionID == from.ExecutionID })
	}
	if chosen() && from.Class != nil {
		f.Lane = from.Class.Lane
		parts = append(parts, func(ev engine.LoggedEvent) bool { return ev.Class != nil && ev.Class.Lane == f.Lane })
	}
	if chosen() && from.InstanceID != "" {
		f.InstanceID = from.InstanceID
		parts = append(parts, func(ev engine.LoggedEvent) bool { return ev.InstanceID == f.InstanceID })
	}
	if chosen() && from.Tags["team"] != "" {
		f.Tags = map[string]string{"team": from.Tags["team"]}
		parts = append(parts, func(ev engine.LoggedEvent) bool { return ev.Tags["team"] == from.Tags["team"] })
	}
	if chosen() {
		f.ActorType = from.Actor.Type
		parts = append(parts, func(ev engine.LoggedEvent) bool { return ev.Actor.Type == f.ActorType })
	}
	if chosen() {
		f.Since = from.At
		parts = append(parts, func(ev engine.LoggedEvent) bool { return ev.At >= f.Since })
	}
	return f, func(ev engine.LoggedEvent) bool {
		return !slices.ContainsFunc(parts, func(holds func(engine.LoggedEvent) bool) bool { return !holds(ev) })
	}
}

func TestEI10_a_filtered_log_is_the_filter_of_the_log_for_random_filters(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		random := testseed.New(t)
		w.livesAtRandom(random)
		all, known := w.events(engine.EventFilter{}), map[string]bool{} // timers may add more meanwhile
		for _, ev := range all {
			known[ev.Cursor] = true
		}
		for range 60 {
			f, fits := drawFilter(random, all[random.IntN(len(all))])
			got := cursors(w.events(f), func(ev engine.LoggedEvent) bool { return known[ev.Cursor] })
			same(t, fmt.Sprintf("%+v", f), got, cursors(all, fits))
		}
	})
}
