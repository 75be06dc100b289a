package engine_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// leasesAfter lets many workers of several processes claim, changes a rule while they do, and tells how many leases the log has behind
// that change.
func (w *world) leasesAfter(kind string, change func()) int {
	w.t.Helper()
	engines := []*engine.Engine{w.e}
	if w.url != "" {
		engines = append(engines, w.another())
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				r := ask()
				r.InstanceID = fmt.Sprint("w", i)
				if _, err := engines[i%len(engines)].Claim(w.ctx(), client, r); err != nil {
					w.t.Error(err)
					return
				}
			}
		})
	}
	claimed := func() int { return len(w.events(engine.EventFilter{Kinds: []string{"lease.acquired"}})) }
	eventually(w.t, "some are claimed", func() bool { return claimed() > 20 })
	change()
	for range 3 {
		must(w.e.Claim(w.ctx(), client, ask()))(w.t)
	}
	close(stop)
	wg.Wait()
	after := 0
	for _, ev := range w.events(engine.EventFilter{Kinds: []string{"lease.acquired", kind}}) {
		if after++; ev.Kind == kind {
			after = 0
		}
	}
	return after
}

func TestS36_no_lease_above_a_new_limit_commits_after_it_was_put(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.quota("mail", core.QuotaSettings{ConcurrencyLimit: 1000})
		w.submitMany(400, attached(use("mail")))
		after := w.leasesAfter("quota.changed", func() { w.quota("mail", core.QuotaSettings{ConcurrencyLimit: 1}) })
		same(t, "leases behind the change", after, 0)
	})
}

func TestB7_no_lease_commits_unseen_by_a_budget_that_covers_it_and_is_there(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		w.submitMany(400, core.Submission{})
		after := w.leasesAfter("budget.created", func() {
			w.create(core.BudgetDefinition{
				Name: "all", Scope: core.BudgetScope{Type: core.ScopeNamespace},
				Dimensions: map[string]core.BudgetLimits{"runs": {Hard: ptr(int64(1)), DefaultReserve: ptr(int64(1))}},
			})
		})
		same(t, "leases behind it", after, 1)
	})
}
