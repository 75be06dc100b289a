package model

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

// deed is a step that the present run of an execution sees (L150).
type deed struct{ name, result string }

// stepOf writes a step of a worker.
func (m *loom) stepOf(k *knot, name string) {
	m.made++
	want, outcome := deed{name, fmt.Sprintf("step %d", m.made)}, "stored"
	sent := want.result
	if at := slices.IndexFunc(k.deeds, func(d deed) bool { return d.name == name }); at >= 0 {
		want, outcome = k.deeds[at], "exists"
	} else {
		k.deeds = append(slices.Clip(k.deeds), want)
	}
	m.did("step " + outcome)
	m.each("step "+name+" of "+k.label(), "", func(ctx context.Context, to *subject) error {
		answer, err := to.e.PutStep(ctx, client, k.ids[to.name].Given(), k.fences[to.name], name, core.Payload{Data: []byte(sent), ContentType: "text/plain"})
		if err == nil {
			m.same(to, "L149: step "+name+" of "+k.label(), []string{outcome, want.result}, []string{answer.Outcome, string(answer.Record.Result)})
		}
		return err
	})
	k.stepped = true
}

// forgets ends what a run sees of the steps before it, unless the replay keeps them: for each member that it opens again (L150).
func (w *fabric) forgets(k *knot, named, keep bool) {
	switch {
	case len(k.deeds) == 0:
	case !keep:
		k.deeds = nil
		w.happened("steps left behind")
	case named:
		w.happened("steps kept")
	default:
		w.happened("steps kept below")
	}
}

// checkSteps compares what every execution sees that ever wrote a step.
func (m *loom) checkSteps(s *subject) {
	for _, k := range m.w.knots {
		if !k.stepped {
			continue
		}
		got, err := s.steps(k.ids[s.name])
		if err != nil {
			m.t.Fatalf("steps of %s on %s: %v", k.label(), s.name, err)
		}
		seen := make([]deed, len(got))
		for i := range got {
			seen[i] = deed{got[i].Name, string(got[i].Result)}
		}
		m.same(s, "L150: the steps of "+k.label(), k.deeds, seen)
	}
}

// works lets everything that can be claimed write steps, at times one that its run has done already, and end.
func (m *loom) works() {
	m.claimFor([]string{"a", "b"}, 90_000)
	for _, k := range slices.Clone(m.w.knots) {
		for range 1 + m.d.under("steps", 2) {
			if k.status == working {
				m.stepOf(k, pickOne(m.d, "step", "pay", "pack"))
			}
		}
		switch {
		case k.status != working:
		case m.d.rarely("fail", 4):
			m.failOne(k)
		default:
			m.completeOne(k, true)
		}
	}
}

func TestL150_F56_steps_are_kept_or_left_behind_by_every_member_that_a_cascade_opens_again(t *testing.T) {
	t.Parallel()
	successes := &tally{succeeded: map[string]int{}}
	life := func(rt *rapid.T) {
		m := newLoom(rt, caseTB{TB: t, cleanup: rt.Cleanup}, successes)
		m.submitFlow()
		for range 3 {
			for range 2 {
				m.works()
			}
			m.compare()
			ended := func(t *thread) bool { return final(t.to.status) }
			if k := m.some(func(k *knot) bool { return final(k.status) && !k.orphan() && slices.ContainsFunc(k.outbound(), ended) }); k != nil {
				m.replayOne(k, engine.ReplayRequest{Cascade: pickOne(m.d, "cascade", "none", "skipped", "all", "all"), IgnoreDependencies: true, KeepSteps: m.d.rarely("keep steps", 2)})
				m.compare()
			}
		}
	}
	never := func() []string {
		return successes.without([]string{"step stored", "step exists", "steps kept", "steps kept below", "steps left behind", "replay none", "replay skipped", "replay all"})
	}
	testseed.Rounds(t, 1, mostRounds, never, life)
}
