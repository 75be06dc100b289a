package model

import (
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// tell begins a fixed story: commands that once showed the account and an engine to disagree, or pairs that random walks draw rarely. They
// go to every store and to the account.
func tell(t *testing.T, story func(m *loom)) {
	t.Helper()
	m := newStory(t, &tally{succeeded: map[string]int{}})
	story(m)
	m.compare()
	for _, s := range m.subjects {
		for _, n := range m.w.nets {
			m.checkView(s, n)
			for _, k := range n.knots {
				m.checkJoin(s, n, k)
			}
		}
		m.checkWhole(s)
	}
}

// state fails unless the account has a flow in this state, which every store has been compared with.
func (m *loom) state(n *net, want string) {
	if m.compare(); n.state != want {
		m.t.Fatalf("%s is %s, not %s", n.label, n.state, want)
	}
}

func TestF5_F9_F14_who_joins_a_flow_late_is_a_failure_when_it_is_cancelled(t *testing.T) {
	t.Parallel()
	tell(t, func(m *loom) {
		m.createFlow()
		f := m.w.nets[0]
		n7 := m.submitPlan(plan{name: "n7", lane: "a", replays: 10, mayFail: true}, ownPart)
		m.extend(&delta{n: f, p: plot{plans: []plan{{name: "n5", lane: "a", replays: 10, mayFail: true, life: 2100}}}, joining: n7, name: "n7"})
		n5 := f.named("n5")
		m.claimFor([]string{"a"}, 90_000)
		m.completeOne(n5, true)
		m.replayOne(n5, engine.ReplayRequest{Cascade: "none", IgnoreDependencies: true})
		m.holdOne(n5)
		m.pass(3 * time.Second)
		m.suspendOne(n7)
		m.cancelOne(n7)
		m.state(f, open)
		m.extend(&delta{n: f, x: core.FlowExtension{Seal: true}})
		m.state(f, failed)
	})
}

// nested is a flow with a node whose sub-flow has a node of its own.
func nested() plot {
	one := func(name, lane string, after ...string) plan {
		return plan{name: name, lane: lane, replays: 10, after: after}
	}
	deep := plot{plans: []plan{one("x", "a"), one("y", "b", "x"), one("z", "b")}, output: "y"}
	middle := plot{plans: []plan{{name: "m", lane: "a", replays: 10, sub: &deep}, one("r", "a"), one("s", "b")}}
	return plot{plans: []plan{{name: "n", lane: "a", replays: 10, sub: &middle}, one("o", "b"), one("p", "b", "n")}}
}

// submitPlot submits a graph.
func (m *loom) submitPlot(p plot) *net {
	m.createFlow()
	n := m.w.nets[len(m.w.nets)-1]
	m.extend(&delta{n: n, p: p, x: core.FlowExtension{Seal: true}})
	return n
}

func TestF48_F49_FI9_a_cancel_of_what_is_pending_touches_nothing_that_has_started_at_any_depth(t *testing.T) {
	t.Parallel()
	tell(t, func(m *loom) {
		f := m.submitPlot(nested())
		m.claimFor([]string{"a"}, 90_000) // x and r
		middle := f.named("n").below
		deep := middle.named("m").below
		m.cancelBy(f, "cancel_pending")
		m.state(f, cancelling)
		m.state(deep, cancelling)
		for _, k := range []*knot{deep.named("x"), middle.named("r")} {
			if k.status != working {
				m.t.Fatalf("%s is %s", k.label(), k.status)
			}
		}
		m.completeOne(deep.named("x"), true)
		m.state(deep, cancelled)
		m.completeOne(middle.named("r"), true)
		m.state(f, cancelled)
	})
}

func TestF52_a_stronger_cancel_reaches_into_sub_flows_that_are_being_cancelled(t *testing.T) {
	t.Parallel()
	tell(t, func(m *loom) {
		f := m.submitPlot(nested())
		m.claimFor([]string{"a"}, 90_000)
		m.cancelBy(f, "cancel_pending")
		m.cancelBy(f, "cancel_all")
		m.state(f, cancelled)
		m.state(f.named("n").below.named("m").below, cancelled)
	})
}
