package sim

import (
	"context"
	"math/rand/v2"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// The limits of a history: submissions with some numbers are under them.
const (
	slotsQuota  = "slots"
	rateQuota   = "rate"
	teamBudget  = "team"
	guardBudget = "guard" // acts on what runs
	tokens      = "tokens"
	enough      = 1_000_000
)

// limited is the part of a policy about the limits of submission n.
func limited(n int) string {
	switch n % 12 {
	case 1:
		return `"quotas":[{"quota":"slots"}],`
	case 2:
		return `"quotas":[{"quota":"slots"}],"slots_while_waiting":"hold",`
	case 4:
		return `"quotas":[{"quota":"rate"}],`
	case 6, 7:
		return `"budget_ids":["team"],"estimate":{"tokens":5},`
	case 8:
		return `"budget_ids":["guard"],"estimate":{"tokens":2},`
	case 10:
		return `"quotas":[{"quota":"slots"}],"budget_ids":["team","guard"],"estimate":{"tokens":3},`
	}
	return ""
}

func definition(name, onHard, onLoss string, hard int64) core.BudgetDefinition {
	return core.BudgetDefinition{Name: name, OnHard: onHard, OnLeaseLoss: onLoss, Dimensions: map[string]core.BudgetLimits{tokens: {Hard: &hard}}}
}

func (w *World) prepareLimits() {
	r := newSource(w.seed, 7).r
	for _, d := range []core.BudgetDefinition{
		definition(teamBudget, core.OnHardBlockNew, pick(r, core.OnLossRelease, core.OnLossForfeit), int64(60+r.IntN(200))),
		definition(guardBudget, pick(r, core.OnHardFail, core.OnHardCancelRunning, core.OnHardSuspendForApproval), "", int64(30+r.IntN(60))),
	} {
		w.must("create budget "+d.Name, func(ctx context.Context, e *engine.Engine) (any, error) {
			return e.CreateBudget(ctx, operator(), base.DefaultNamespace, d, engine.AdminAction{})
		})
	}
	for id, s := range map[string]core.QuotaSettings{slotsQuota: {ConcurrencyLimit: 2 + r.IntN(3)}} {
		w.putQuota(id, s)
	}
	w.putQuota(rateQuota, core.QuotaSettings{RateLimit: 2 + r.IntN(4), WindowMS: 1000})
}

func (w *World) putQuota(id string, s core.QuotaSettings) {
	w.must("put quota "+id, func(ctx context.Context, e *engine.Engine) (any, error) {
		return e.PutQuota(ctx, operator(), id, s, engine.AdminAction{})
	})
}

func reportUsage(w *World, r *rand.Rand) {
	amount, key, spent := int64(1+r.IntN(6)), w.requestKey(), r.IntN(3) == 0
	underLease(w, r, "report usage", false, func(ctx context.Context, e *engine.Engine, l *lease) (any, error) {
		return e.ReportUsage(ctx, client(""), l.j.id.Given(), engine.UsageRequest{Fence: l.f, Usage: map[string]int64{tokens: amount}, DedupKey: key, AlreadySpent: spent})
	}, func(*lease, int64, any, error) {})
}

func budgetRef(name string) engine.BudgetRef {
	return engine.BudgetRef{Namespace: base.DefaultNamespace, Budget: name}
}

// limit does what operators do with limits.
func limit(w *World, r *rand.Rand) {
	p := w.up(r)
	if p == nil {
		return
	}
	name, amount, slots := pick(r, teamBudget, guardBudget), int64(20+r.IntN(400)), 1+r.IntN(5)
	how := engine.AdminAction{RequestKey: w.requestKey()}
	key := w.requestKey()
	what := pick(r, "charge", "raise", "raise", "reset", "slots", "rate")
	w.issue(p, what+" of limits", func(ctx context.Context, e *engine.Engine) (answer any, err error) {
		switch what {
		case "charge":
			_, err = e.Charge(ctx, operator(), budgetRef(name), engine.ChargeRequest{Usage: map[string]int64{tokens: amount / 20}, DedupKey: key})
		case "raise":
			_, err = e.UpdateBudget(ctx, operator(), budgetRef(name), raiseTo(amount), how)
		case "reset":
			_, err = e.ResetBudget(ctx, operator(), budgetRef(name), how)
		case "slots":
			_, err = e.PutQuota(ctx, operator(), slotsQuota, core.QuotaSettings{ConcurrencyLimit: slots}, how)
		default:
			_, err = e.PutQuota(ctx, operator(), rateQuota, core.QuotaSettings{RateLimit: slots, WindowMS: 1000}, how)
		}
		return nil, err
	}, func(any, error) {})
}

func raiseTo(hard int64) core.BudgetUpdate {
	return core.BudgetUpdate{Dimensions: map[string]core.DimensionUpdate{tokens: {Hard: core.LimitChange{Set: true, Value: &hard}}}}
}

// unlimit makes room for everything, so that work can end.
func (w *World) unlimit() {
	for _, name := range []string{teamBudget, guardBudget} {
		_, _, _ = w.call(0, "raise "+name, func(ctx context.Context, e *engine.Engine) (any, error) {
			return e.UpdateBudget(ctx, operator(), budgetRef(name), raiseTo(enough), engine.AdminAction{})
		})
	}
	w.putQuota(slotsQuota, core.QuotaSettings{ConcurrencyLimit: 50})
	w.putQuota(rateQuota, core.QuotaSettings{RateLimit: 100, WindowMS: 1000})
}

// checkBudgets checks that reservations have gone back and that the ledger has what was used (I9, BI).
func (w *World) checkBudgets(ctx context.Context, e *engine.Engine) {
	for _, name := range []string{teamBudget, guardBudget} {
		view, err := e.Budget(ctx, operator(), budgetRef(name))
		if err != nil {
			w.found("the budget %s: %v", name, err)
			continue
		}
		n := view.Numbers[tokens]
		if n.Reserved != 0 {
			w.found("I9: everything is over, and %d of %s are reserved", n.Reserved, name)
		}
		if n.Used < 0 {
			w.found("I9: %d of %s are used", n.Used, name)
		}
		total := int64(0)
		for cursor := ""; ; {
			rows, next, err := e.BudgetSpend(ctx, operator(), budgetRef(name), engine.SpendQuery{Cursor: cursor})
			if err != nil {
				w.found("the ledger of %s: %v", name, err)
				break
			}
			for _, row := range rows {
				total += row.Used[tokens]
			}
			if cursor = next; cursor == "" {
				break
			}
		}
		if total > n.Used {
			w.found("I9: the ledger of %s has %d, used are %d", name, total, n.Used)
		}
	}
}
