package txn

import (
	"context"
	"maps"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/metrics"
	"github.com/flowfabric/flowfabric/internal/store"
)

// used counts what an execution was metered in this transaction. Time is counted with the leases: its meter moves only with the next
// attempt.
func (m *meter) used(ent *Row) {
	if len(ent.Exec.Usage) == 0 || ent.Removed {
		return
	}
	for dimension, now := range ent.Exec.Usage {
		if more := now - ent.used[dimension]; more > 0 && dimension != core.WallMS {
			m.usage.With(m.dimensions.Value(dimension)).Add(more)
		}
	}
}

// breach counts a limit that was passed, or would have been.
func (m *meter) breach(ev *core.Event) {
	limit, action := "soft", core.ActionNone
	if ev.Kind == "budget.hard_breach" {
		limit, action = "hard", ev.Data.Text("action")
	}
	m.breaches.With(m.dimensions.Value(ev.Data.Text("dimension")), limit, action).Inc()
}

// budgets returns what is used and reserved of budgets. Those beyond the bound, and those of one name in several namespaces, share a label.
func (g *gauges) budgets(ctx context.Context, r *storeReading) ([]metrics.Family, error) {
	docs, err := g.budgetDocs(ctx, r)
	if err != nil {
		return nil, err
	}
	ratios, reserved := map[[2]string]float64{}, map[[2]string]float64{}
	for i := range docs {
		b, err := DecodeBudget(&docs[i])
		if err != nil {
			continue // the integrity check reports it
		}
		label := r.budgets.Value(b.Name)
		for name := range b.Dimensions {
			of, view := [2]string{label, g.e.Meter.dimensions.Value(name)}, b.View(name)
			reserved[of] += float64(view.Reserved)
			if view.EffectiveHard != nil {
				ratios[of] = max(ratios[of], float64(view.Used)/float64(*view.EffectiveHard))
			}
		}
	}
	shares, amounts := metrics.BudgetRatio.Family(), metrics.BudgetReserved.Family()
	for of, ratio := range ratios {
		shares.Add(ratio, of[0], of[1])
	}
	for of, amount := range reserved {
		amounts.Add(amount, of[0], of[1])
	}
	return []metrics.Family{shares, amounts}, nil
}

// budgetDocs are the records of the budgets that a reading is about.
func (g *gauges) budgetDocs(ctx context.Context, r *storeReading) ([]store.Doc, error) {
	if r.namespaces == nil {
		loaded, err := g.e.Store.Read(ctx, store.Want{Scans: []store.Scan{{Kind: DocBudget, Limit: GaugesDocs}}})
		if err != nil {
			return nil, err
		}
		return loaded.Scanned[0], nil
	}
	var named store.Want
	for _, namespace := range r.namespaces {
		named.Scans = append(named.Scans, store.Scan{Kind: docBudgetName, Prefix: budgetNameRef(namespace, "").Key, Limit: GaugesDocs})
	}
	names, err := g.e.Store.Read(ctx, named)
	if err != nil {
		return nil, err
	}
	var want store.Want
	for i := range names.Scanned {
		for j := range names.Scanned[i] {
			if id, err := decodeBudgetName(&names.Scanned[i][j]); err == nil {
				want.Docs = append(want.Docs, BudgetDocRef(id))
			}
		}
	}
	loaded, err := g.e.Store.Read(ctx, want)
	if err != nil {
		return nil, err
	}
	return slices.Collect(maps.Values(loaded.Docs)), nil
}
