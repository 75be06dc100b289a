package limits

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/metrics"
	"github.com/flowfabric/flowfabric/internal/store"
)

// The kinds of the events of budgets that are counted.
const (
	softBreach = "budget.soft_breach"
	hardBreach = "budget.hard_breach"
)

// meter counts what admission refused and which limits of budgets were passed.
type meter struct {
	refusals *metrics.Counters
	atCap    *metrics.Count
	breaches *metrics.Counters
}

// measure makes the counters of the room.
func (e *Admission) measure() {
	e.meter.refusals = e.NewCounter(metrics.AdmissionRefused)
	e.meter.atCap = e.meter.refusals.With("lane_cap")
	e.meter.breaches = e.NewCounter(metrics.BudgetBreaches)
	e.CountEvents(e.countBreach, softBreach, hardBreach)
	e.OnPart("budgets", e.readBudgets)
}

// limitedBy makes the series of the breaches of a dimension that a budget limits, so that rate() sees the first one.
func (m *meter) limitedBy(dimension string) {
	m.breaches.With(dimension, "soft", core.ActionNone)
	for _, action := range []string{core.ActionNone, "failed", "suspended", "cancelled"} {
		m.breaches.With(dimension, "hard", action)
	}
}

// CountFull counts a claim that found its lane at the cap.
func (e *Admission) CountFull() { e.meter.atCap.Inc() }

// CountRefusal counts an execution that admission refused.
func (e *Admission) CountRefusal(why *core.Refusal) {
	cause := "budget"
	switch {
	case strings.HasPrefix(why.Key, "rate:"):
		cause = "rate"
	case strings.HasPrefix(why.Key, "slots:"):
		cause = "concurrency"
	}
	e.meter.refusals.With(cause).Inc()
}

// countBreach counts a limit that was passed, or would have been.
func (e *Admission) countBreach(ev *core.Event) {
	limit, action := "soft", core.ActionNone
	if ev.Kind == hardBreach {
		limit, action = "hard", ev.Data.Text("action")
	}
	e.meter.breaches.With(e.Meter.Dimensions.Value(ev.Data.Text("dimension")), limit, action).Inc()
}

// readBudgets returns what is used and reserved of budgets. Those beyond the bound, and those of one name in several namespaces, share a label.
func (e *Admission) readBudgets(ctx context.Context, r *txn.StoreReading) ([]metrics.Family, error) {
	docs, err := e.budgetDocs(ctx, r)
	if err != nil {
		return nil, err
	}
	ratios, reserved := map[[2]string]float64{}, map[[2]string]float64{}
	for i := range docs {
		b, err := DecodeBudget(&docs[i])
		if err != nil {
			continue // the integrity check reports it
		}
		label := r.Names.Value(b.Name)
		for name := range b.Dimensions {
			of, view := [2]string{label, e.Meter.Dimensions.Value(name)}, b.View(name)
			reserved[of] += float64(view.Reserved)
			e.meter.limitedBy(of[1])
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
func (e *Admission) budgetDocs(ctx context.Context, r *txn.StoreReading) ([]store.Doc, error) {
	if r.Namespaces == nil {
		loaded, err := e.Store.Read(ctx, store.Want{Scans: []store.Scan{{Kind: DocBudget, Limit: txn.GaugesDocs}}})
		if err != nil {
			return nil, err
		}
		return loaded.Scanned[0], nil
	}
	var named store.Want
	for _, namespace := range r.Namespaces {
		named.Scans = append(named.Scans, store.Scan{Kind: DocBudgetName, Prefix: budgetNameRef(namespace, "").Key, Limit: txn.GaugesDocs})
	}
	names, err := e.Store.Read(ctx, named)
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
	loaded, err := e.Store.Read(ctx, want)
	if err != nil {
		return nil, err
	}
	return slices.Collect(maps.Values(loaded.Docs)), nil
}
