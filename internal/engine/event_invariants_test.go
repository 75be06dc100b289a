package engine_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

// livesAtRandom lets a few executions begin, lapse, wait, end and begin again.
func (w *world) livesAtRandom(random *rand.Rand) (all []base.GivenID) {
	w.quota("q", core.QuotaSettings{RateLimit: 1, WindowMS: 5000})
	for i := range 12 {
		s := core.Submission{Lane: fmt.Sprint("l", i%2), Tags: base.Tags{"team": fmt.Sprint(i % 3)}, PolicyJSON: []byte(`{"retry_policy":{}}`)}
		if i < 3 {
			s.PolicyJSON = []byte(`{"retry_policy":{},"quotas":[{"quota":"q"}]}`)
		}
		all = append(all, w.submit(s))
	}
	w.submitFlow(core.FlowSubmission{Kind: "line", Nodes: []core.FlowNode{
		{Name: "a", Kind: "k", Lane: "l0"}, {Name: "b", Kind: "k", Lane: "l1"}, {Name: "c", Kind: "k", Lane: "l0", After: []string{"a", "b"}},
	}})
	r := ask()
	r.Lanes = []string{"l0", "l1"}
	for range 40 {
		for _, task := range w.take(r) {
			w.liveOn(random, task)
		}
		id := all[random.IntN(len(all))]
		switch x := w.get(id); {
		case x.Status.Terminal():
			w.replay(id)
		case x.Held != nil:
			w.unlessEnded(w.e.ReleaseHold(w.ctx(), operator, id, engine.Operator{}))
		case random.IntN(4) == 0:
			w.unlessEnded(w.e.Hold(w.ctx(), operator, id, engine.Operator{}))
		}
		w.pass(random.Int64N(2000))
	}
	return all
}

// unlessEnded takes the answer of a command on an execution that a timer may have ended meanwhile.
func (w *world) unlessEnded(_ engine.View, err error) {
	w.t.Helper()
	if base.CodeOf(err) != base.CodeExecutionNotActive {
		ok(w.t, err)
	}
}

// liveOn ends a lease in one of the ways that there are.
func (w *world) liveOn(random *rand.Rand, task engine.Task) {
	switch random.IntN(9) {
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
	case 6:
		w.revoke(given(task))
	case 7:
		w.suspend(task, atA, func(c *core.SuspendCommand) { c.TimeoutAt = w.now().Add(random.Int64N(3000) + 1) })
	default:
		w.turn(30_000)
		w.becomes(given(task), core.Ready)
		if random.IntN(2) == 0 {
			w.complete(task) // late
		}
	}
}

func TestEI8_EI9_EI10_EI11_what_the_log_tells_of_lives_at_random(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		random := testseed.New(t)
		closeEngine(t, w.e)
		seen := &notary{Store: w.store, lives: map[base.UUID][]changed{}}
		w.e = w.openEngine(seen)
		lives := w.livesAtRandom(random)
		closeEngine(t, w.e) // nothing happens from here on
		w.cfg.NoTimers = true
		w.e = w.openEngine(w.store)
		all := w.events(engine.EventFilter{})
		w.leavesOnce(lives)
		seen.tell(t, all)
		w.crashes(random, all)
		w.filters(random, all)
	})
}

// leavesOnce checks that each lease has one exit event, and each run that ended one completion (EI8).
func (w *world) leavesOnce(lives []base.GivenID) {
	t, leases := w.t, 0
	for _, id := range lives {
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
}

// crashes lets a consumer read that sometimes ends before it has stored where it is (EI9).
func (w *world) crashes(random *rand.Rand, all []engine.LoggedEvent) {
	t := w.t
	var seen []string
	for stored, crashes := "start", 0; ; {
		page := must(w.e.ReadEvents(w.ctx(), client, engine.EventsRequest{After: stored, Limit: 1 + random.IntN(20)}))(t)
		for _, ev := range page.Events {
			if !slices.Contains(seen, ev.Cursor) { // what was processed before a crash comes again
				seen = append(seen, ev.Cursor)
			}
		}
		if crashes < 20 && random.IntN(3) == 0 {
			crashes++
			continue
		}
		if stored = page.Next; page.AtEnd {
			break
		}
	}
	same(t, "the events", seen, cursors(all, func(engine.LoggedEvent) bool { return true }))
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
	if chosen() && !from.FlowID.IsZero() {
		f.FlowID = ptr(from.FlowID.Given())
		parts = append(parts, func(ev engine.LoggedEvent) bool { return ev.FlowID == from.FlowID || ev.RootFlowID == from.FlowID })
	}
	if outcome := from.Data.Text("outcome"); chosen() && outcome != "" {
		f.Outcome = outcome
		parts = append(parts, func(ev engine.LoggedEvent) bool {
			return ev.Kind == "execution.completed" && ev.Data.Text("outcome") == outcome
		})
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

// filters reads the log by filters drawn at random (EI10).
func (w *world) filters(random *rand.Rand, all []engine.LoggedEvent) {
	for range 60 {
		f, fits := drawFilter(random, all[random.IntN(len(all))])
		same(w.t, fmt.Sprintf("%+v", f), cursors(w.events(f), func(engine.LoggedEvent) bool { return true }), cursors(all, fits))
	}
}
