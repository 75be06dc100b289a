package engine_test

import (
	"context"
	"slices"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

// astir is a store in which something happens during a recount: always the same.
type astir struct {
	store.Store
	before, after func() // the walk over executions, and between it and the counters
}

// recounting marks the context of a recount: the engine's own loops read too.
type recounting struct{}

func (w *world) differences() []engine.Difference {
	w.t.Helper()
	return must(w.e.Integrity(context.WithValue(w.ctx(), recounting{}, true)))(w.t).Differences
}

func (s *astir) Find(ctx context.Context, q store.Query) ([]store.Hit, error) {
	if ctx.Value(recounting{}) != nil && s.before != nil && len(q.Statuses) == 1 && q.Statuses[0] == core.Running {
		s.before()
	}
	return s.Store.Find(ctx, q)
}

func (s *astir) Read(ctx context.Context, want store.Want) (*store.Loaded, error) {
	budgets := slices.ContainsFunc(want.Scans, func(scan store.Scan) bool { return scan.Kind == 21 })
	if ctx.Value(recounting{}) != nil && s.after != nil && (len(want.Counters) > 0 || budgets) {
		s.after()
	}
	return s.Store.Read(ctx, want)
}

func TestU113_S42_a_recount_does_not_take_what_comes_and_goes_for_a_difference_and_finds_what_is_leaked_beside_it(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		w.unaudited = true // the test breaks counters
		w.quota("q", core.QuotaSettings{ConcurrencyLimit: 1})
		w.quota("quiet", core.QuotaSettings{ConcurrencyLimit: 1})
		w.capped("busy", 1)
		w.create(tokens("team", 1000))
		work := policy(`{"quotas":[{"quota":"q"}],"budget_ids":["team"],"estimate":{"tokens":7}}`)
		work.Lane = "busy"
		w.submitMany(100, work)
		w.submit(policy(`{"quotas":[{"quota":"quiet"}]}`))
		w.claim()

		closeEngine(t, w.e)
		s := &astir{Store: w.store}
		w.e = w.openEngine(s)
		var held []engine.Task
		s.before = func() {
			for _, task := range held {
				w.complete(task)
			}
			held = nil
		}
		s.after = func() {
			if len(held) == 0 {
				r := ask()
				r.Lanes = []string{"busy"}
				held = append(held, w.claimAs(r))
			}
		}
		same(t, "in use", w.differences(), nil)
		same(t, "held", len(held), 1)

		w.tamper(store.Changes{Counters: map[string]int64{"slots:quiet": 1}})
		leak := []engine.Difference{{What: "quota_slots", Key: "slots:quiet", Stored: 2, Found: 1}}
		same(t, "leaked beside it", w.differences(), leak)
		s.before, s.after = nil, nil
		w.tamper(store.Changes{Counters: map[string]int64{"lane:busy": 1}})
		leak = append([]engine.Difference{{What: "lane_places", Key: "lane:busy", Stored: 2, Found: 1}}, leak...)
		same(t, "leaked where it was in use", w.differences(), leak)
	})
}

func TestU113_BI2_a_recount_does_not_take_charges_for_a_difference(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		w.create(tokens("team", 1000))
		task := w.started(costing(100, "team"))
		closeEngine(t, w.e)
		s := &astir{Store: w.store}
		w.e = w.openEngine(s)
		charged := 0
		s.after = func() { w.report(task, 1); charged++ }
		same(t, "while it is charged", w.differences(), nil)
		if charged == 0 {
			t.Error("nothing was charged")
		}
	})
}
