package engine_test

import (
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/condition"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/metrics"
)

// metered reads a counter, or how much a histogram has seen, by the value of its only label; "": it has none.
func metered(t *testing.T, e *engine.Engine, name, label string) (n float64) {
	t.Helper()
	families, err := metrics.Registry{e.Collector()}.Gather()
	ok(t, err)
	for _, family := range families {
		if family.Name != name {
			continue
		}
		for _, s := range family.Samples {
			switch {
			case label != "" && (len(s.Labels) != 1 || s.Labels[0] != label):
			case family.Type == metrics.TypeHistogram:
				n += s.Count
			default:
				n += s.Value
			}
		}
	}
	return n
}

func TestU206_waits_are_counted_by_what_begins_and_ends_them(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		approval := func(c *core.SuspendCommand) { c.ReasonCode = "waiting_for_approval" }
		_, s := w.asleep(goAtA)
		w.signalled(s, "stay")
		w.signalled(s, "go")
		w.claim()
		two, _ := w.asleep(atA, approval)
		must(w.approve("ann", two, core.ApproveCommand{Name: "approved"}))(t)
		w.claim()
		_, s = w.asleep(atA, approval)
		must(w.decideLink(w.link(s.Waitpoints[0].ID, "bob"), "reject"))(t)
		w.claim()
		four, _ := w.asleep(operatorOnly)
		_, _, err := w.resume(four, core.ResumeCommand{DelayMS: 1000})
		ok(t, err)
		five, _ := w.asleep(timeoutOnly, timingOut(1000, core.BehaviorAutoResume))
		w.pass(1000)
		w.becomes(five, core.Ready)
		for _, c := range []struct {
			name, label string
			n           float64
		}{
			{metrics.Suspensions.Name, "waiting_for_signal", 3},
			{metrics.Suspensions.Name, "waiting_for_approval", 2},
			{metrics.Resumes.Name, "signal", 3},
			{metrics.Resumes.Name, "operator", 1},
			{metrics.Resumes.Name, "timeout", 1},
			{metrics.Signals.Name, string(condition.EffectNotMatched), 1},
			{metrics.Signals.Name, string(condition.EffectSatisfied), 4},
			{metrics.Approvals.Name, "approved", 1},
			{metrics.Approvals.Name, "rejected", 1},
			{metrics.Approvals.Name, "", 2},
			{metrics.ResumeLatencySeconds.Name, "", 3},
		} {
			same(t, c.name+" "+c.label, metered(t, w.e, c.name, c.label), c.n)
		}
	})
}
