package engine_test

import (
	"fmt"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// ranLine is a line of a and b that has succeeded.
func (w *world) ranLine(change func(*core.FlowSubmission)) engine.FlowAnswer {
	w.t.Helper()
	s := lineOf("a", "b")
	if change != nil {
		change(&s)
	}
	line := w.submitFlow(s)
	for _, node := range s.Nodes {
		r := ask()
		r.Kinds = []string{node.Kind}
		if node.Lane != "" {
			r.Lanes = []string{node.Lane}
		}
		w.complete(w.take(r)[0])
	}
	return w.finished(line)
}

// finished waits for the end of a flow.
func (w *world) finished(of engine.FlowAnswer) engine.FlowAnswer {
	w.t.Helper()
	w.flowBecomes(of, core.FlowCompleted)
	return of
}

// flowLeaves waits until retention has removed a flow and its members.
func (w *world) flowLeaves(of engine.FlowAnswer) {
	w.t.Helper()
	eventually(w.t, "removal of the flow", func() bool {
		_, err := w.e.Flow(w.ctx(), client, of.Flow.ID.Given())
		return base.CodeOf(err) == base.CodeFlowNotFound
	})
	w.flowGone(of)
}

func TestL139_L140_a_shorter_default_retention_reaches_flows_that_have_ended_before(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.lane("kept", keeping(base.Day))
		plain := w.ranLine(nil)
		own := w.ranLine(func(s *core.FlowSubmission) { s.Nodes[0].PolicyJSON = []byte(`{"retention_ms":86400000}`) })
		lane := w.ranLine(func(s *core.FlowSubmission) { s.Nodes[1].Lane = "kept" })
		open := w.submitFlow(lineOf("p", "q"))
		w.end("p")
		w.pass(2 * base.Hour)
		later := w.ranLine(nil)
		w.keptFor(base.Hour)
		w.flowLeaves(plain)
		for _, flow := range []engine.FlowAnswer{own, lane, open, later} {
			w.flow(flow)
			w.statuses(flow)
		}
		w.pass(base.Hour + base.Minute)
		w.flowLeaves(later)
		w.end("q")
		w.finished(open)
		w.pass(base.Hour + base.Minute)
		w.flowLeaves(open)
		w.flow(own)
		w.flow(lane)
		w.pass(base.Day)
		w.flowLeaves(own)
		w.flowLeaves(lane)
	})
}

func TestL139_L140_a_shorter_retention_of_the_lane_reaches_flows_whose_other_members_allow_it(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.lane("l", keeping(-1))
		w.lane("kept", keeping(base.Day))
		in := func(a, b string) func(*core.FlowSubmission) {
			return func(s *core.FlowSubmission) { s.Nodes[0].Lane, s.Nodes[1].Lane = a, b }
		}
		both, one, none := w.ranLine(in("l", "l")), w.ranLine(in("l", "kept")), w.ranLine(in("kept", "kept"))
		w.lane("l", keeping(1000))
		w.pass(10_000)
		w.flowLeaves(both)
		w.flow(one)
		w.flow(none)
		w.pass(base.Day + base.Minute)
		w.flowLeaves(one)
		w.flowLeaves(none)
	})
}

func TestL139_L140_a_shorter_default_reaches_a_flow_of_many_pages_and_what_hangs_below(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		const rows = 1100 // more than are armed at a time
		s := core.FlowSubmission{Kind: "wide"}
		for i := range rows {
			s.Nodes = append(s.Nodes, core.FlowNode{Name: fmt.Sprintf("n%04d", i), Kind: "wide"})
		}
		wide := w.submitFlow(s)
		same(t, "cancelled", w.bulk(engine.BulkRequest{Action: "cancel", Filter: kindFilter("wide")}).Done, rows)
		w.flowBecomes(wide, core.FlowFailed)
		outer := w.submitFlow(nodeOf(inner()))
		sub := w.subflow(outer, "n")
		for _, name := range []string{"x", "y", "after"} {
			w.end(name)
		}
		w.finished(outer)
		w.pass(2 * base.Hour)
		hour := base.Hour
		w.cfg.Retention = core.RetentionByStatus{Succeeded: &hour, Cancelled: &hour}
		w.restart()
		w.flowLeaves(outer)
		w.flowLeaves(wide)
		w.pass(2 * base.Hour) // it goes after its node
		w.flowLeaves(sub)
	})
}

func TestL139_L140_a_shorter_default_retention_reaches_flows_without_members(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		empty := func() engine.FlowAnswer {
			flow := w.emptyFlow()
			must(w.e.ExtendFlow(w.ctx(), client, core.FlowExtension{Flow: flow.Flow.ID.Given(), Seal: true}))(t)
			return w.finished(flow)
		}
		erased := func(change func(*core.FlowSubmission)) engine.FlowAnswer {
			flow := w.ranLine(change)
			for _, id := range flow.Members {
				ok(t, w.delete(id.Given()))
			}
			return flow
		}
		old, gone := empty(), erased(nil)
		kept := erased(func(s *core.FlowSubmission) { s.Nodes[0].PolicyJSON = []byte(`{"retention_ms":86400000}`) })
		cancelled := w.emptyFlow()
		w.cancelFlow(cancelled, core.CancelAll, "")
		w.pass(2 * base.Hour)
		young, later := empty(), erased(nil)
		w.keptFor(base.Hour)
		w.flowLeaves(old)
		w.flowLeaves(gone)
		for _, flow := range []engine.FlowAnswer{young, later, kept, cancelled} {
			w.flow(flow)
		}
		w.pass(base.Hour + base.Minute)
		w.flowLeaves(young)
		w.flowLeaves(later)
		w.flow(kept)
		w.pass(base.Day)
		w.flowLeaves(kept)
		w.flow(cancelled) // the default for those did not change
		last := empty()
		w.keptFor(base.Day) // longer: its timer finds out
		w.pass(2 * base.Hour)
		w.looksAFew()
		w.flow(last)
		w.pass(base.Day)
		w.flowLeaves(last)
	})
}

func TestL139_L140_a_shorter_retention_of_the_lane_reaches_a_flow_whose_members_were_deleted(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		inLane := func(s *core.FlowSubmission) { s.Nodes[0].Lane, s.Nodes[1].Lane = "l", "l" }
		flow := w.ranLine(inLane)
		for _, id := range flow.Members {
			ok(t, w.delete(id.Given()))
		}
		w.pass(2 * base.Hour)
		w.flow(flow)
		w.lane("l", keeping(base.Hour))
		w.pass(base.Minute) // until when every process knows it
		w.flowLeaves(flow)
	})
}
