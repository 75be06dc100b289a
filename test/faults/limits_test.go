package faults

import (
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine"
)

func TestI9_EveryCommandAboutLimitsSurvivesAFaultInAnyOfItsWritesAndCountsOnce(t *testing.T) {
	t.Parallel()
	onStores(t, limited(), aborted, unacknowledged)
}

func TestI9_TimersOfLimitsSurviveAFaultInAnyWriteOfTheSweep(t *testing.T) {
	t.Parallel()
	onStores(t, timedLimits(), unacknowledged)
}

// once is what an administrator sends with every command.
var once = engine.AdminAction{Reason: "because", RequestKey: "once"}

// Numbers of the budget and the quota of a run. What is reserved is less than what is reported below, so that a report draws on both.
const (
	hardLimit = 100
	estimated = 10
	reported  = 15
)

// budget is the budget of a run.
func (r *try) budget() engine.BudgetRef {
	return engine.BudgetRef{Namespace: base.DefaultNamespace, Budget: r.name + "-b"}
}

// definition is what the budget of a run is.
func (r *try) definition(edits ...func(*core.BudgetDefinition)) core.BudgetDefinition {
	hard := int64(hardLimit)
	d := core.BudgetDefinition{Name: r.name + "-b", Dimensions: map[string]core.BudgetLimits{"tokens": {Hard: &hard}}}
	for _, edit := range edits {
		edit(&d)
	}
	return d
}

// limit makes the quota and the budgets of a run.
func (r *try) limit(edits ...func(*core.BudgetDefinition)) {
	r.t.Helper()
	r.limits = true
	must(r, discard(r.e.PutQuota(r.ctx, operator, r.name, core.QuotaSettings{ConcurrencyLimit: 2, RateLimit: 20}, engine.AdminAction{})))
	must(r, discard(r.e.CreateBudget(r.ctx, operator, base.DefaultNamespace, r.definition(edits...), engine.AdminAction{})))
}

// unlimit takes them away: each write of a rule costs as much as there are rules. Some are deleted already.
func (r *try) unlimit() {
	_ = r.e.DeleteQuota(r.ctx, operator, r.name, true, engine.AdminAction{})
	for _, name := range []string{r.name + "-b", r.name + "-p"} {
		_ = r.e.DeleteBudget(r.ctx, operator, engine.BudgetRef{Namespace: base.DefaultNamespace, Budget: name}, engine.AdminAction{})
	}
}

// policy attaches an execution to the quota and the budget of its run.
func (r *try) policy() string {
	return `{"quotas":[{"quota":"` + r.name + `"}],"budget_ids":["` + r.name + `-b"],"estimate":{"tokens":10}}`
}

// charged is a lease under the limits of the run.
func (r *try) charged(edits ...func(*core.BudgetDefinition)) core.Fence {
	r.t.Helper()
	r.limit(edits...)
	return r.running(r.policy())
}

// grant promises an execution under the limits of the run.
func (r *try) grant() keyring.GrantKey {
	r.t.Helper()
	r.limit()
	r.submit(0, r.policy())
	got, err := r.e.Grant(r.ctx, client, r.grantRequest(""))
	if err != nil || len(got) != 1 {
		r.t.Fatalf("setup: %d grants, %v", len(got), err)
	}
	return got[0].Key
}

func (r *try) grantRequest(key string) engine.ClaimRequest {
	request := r.claimRequest(key)
	request.TTL, request.GrantTTL = 0, base.Minute
	return request
}

// limited is every command about quotas, budgets and grants that changes something, and those that end what was charged.
func limited() []scenario {
	all := append(defining(), charging()...)
	all = append(all, granting()...)
	return append(all, leaving()...)
}

func defining() []scenario {
	change := func(name string, do func(r *try) error) scenario {
		return scenario{name: name, setup: func(r *try) func() (any, error) {
			r.charged()
			return bare(func() error { return do(r) })
		}}
	}
	return []scenario{
		{name: "put_quota", setup: func(r *try) func() (any, error) {
			r.limits = true
			return bare(func() error {
				return discard(r.e.PutQuota(r.ctx, operator, r.name, core.QuotaSettings{RateLimit: 3}, once))
			})
		}},
		change("put_quota of one in use", func(r *try) error {
			return discard(r.e.PutQuota(r.ctx, operator, r.name, core.QuotaSettings{ConcurrencyLimit: 1}, once))
		}),
		change("delete_quota by force", func(r *try) error { return r.e.DeleteQuota(r.ctx, operator, r.name, true, once) }),
		{name: "create_budget", setup: func(r *try) func() (any, error) {
			r.limits = true
			d := r.definition(func(d *core.BudgetDefinition) {
				d.Scope = core.BudgetScope{Type: "lane", Value: r.name}
				d.Reset = core.BudgetReset{Type: core.ResetInterval, EveryMS: base.Hour, AnchorAt: r.clock.StoreNow()}
			})
			return bare(func() error {
				return discard(r.e.CreateBudget(r.ctx, operator, base.DefaultNamespace, d, once))
			})
		}},
		{name: "submit with a budget of its own", setup: func(r *try) func() (any, error) {
			r.limits = true
			policy := `{"budgets":[{"name":"` + r.name + `-b","dimensions":{"tokens":{"hard":100}}}]}`
			return bare(func() error { return discard(r.e.Submit(r.ctx, client, r.submission(0, policy))) })
		}},
		change("update_budget", func(r *try) error {
			hard := int64(hardLimit + 5)
			up := core.BudgetUpdate{Dimensions: map[string]core.DimensionUpdate{"tokens": {Hard: core.LimitChange{Set: true, Value: &hard}}}}
			return discard(r.e.UpdateBudget(r.ctx, operator, r.budget(), up, once))
		}),
		change("close_budget", func(r *try) error { return discard(r.e.CloseBudget(r.ctx, operator, r.budget(), once)) }),
		change("close_budget and reopen_budget", func(r *try) error {
			_, err := r.e.CloseBudget(r.ctx, operator, r.budget(), once)
			if err != nil {
				return err
			}
			return discard(r.e.ReopenBudget(r.ctx, operator, r.budget(), once))
		}),
		change("reset_budget", func(r *try) error { return discard(r.e.ResetBudget(r.ctx, operator, r.budget(), once)) }),
		{name: "delete_budget", setup: func(r *try) func() (any, error) {
			r.limit()
			return bare(func() error { return r.e.DeleteBudget(r.ctx, operator, r.budget(), once) })
		}},
	}
}

// usageShown keeps of an outcome what the first answer and a repeat have in common.
func usageShown(o core.UsageOutcome, err error) (any, error) {
	return []any{o.Applied, o.Action, o.Used, o.Overrun}, err
}

// below puts the budget of a run below another, so that every number is kept twice.
func (r *try) below(d *core.BudgetDefinition) {
	r.t.Helper()
	parent := core.BudgetDefinition{Name: r.name + "-p", Dimensions: map[string]core.BudgetLimits{"tokens": {}}}
	must(r, discard(r.e.CreateBudget(r.ctx, operator, base.DefaultNamespace, parent, engine.AdminAction{})))
	d.Parent = parent.Name
}

func charging() []scenario {
	on := func(name string, edits []func(*core.BudgetDefinition), do func(r *try, f core.Fence) (any, error)) scenario {
		return scenario{name: name, setup: func(r *try) func() (any, error) {
			f := r.charged(append(edits, r.below)...)
			return func() (any, error) { return do(r, f) }
		}}
	}
	tokens := func(n int64) map[string]int64 { return map[string]int64{"tokens": n} }
	cancels := func(d *core.BudgetDefinition) { d.OnHard = core.OnHardCancelRunning }
	return []scenario{
		on("report_usage", nil, func(r *try, f core.Fence) (any, error) {
			return usageShown(r.e.ReportUsage(r.ctx, client, r.id(0), engine.UsageRequest{Fence: f, Usage: tokens(reported), DedupKey: "k"}))
		}),
		on("report_usage beyond the limit", nil, func(r *try, f core.Fence) (any, error) {
			return usageShown(r.e.ReportUsage(r.ctx, client, r.id(0), engine.UsageRequest{Fence: f, Usage: tokens(2 * hardLimit), DedupKey: "k", AlreadySpent: true}))
		}),
		on("charge", nil, func(r *try, _ core.Fence) (any, error) {
			return usageShown(r.e.Charge(r.ctx, client, r.budget(), engine.ChargeRequest{Usage: tokens(reported), DedupKey: "k"}))
		}),
		on("charge that cancels who runs", []func(*core.BudgetDefinition){cancels}, func(r *try, _ core.Fence) (any, error) {
			return usageShown(r.e.Charge(r.ctx, client, r.budget(), engine.ChargeRequest{Usage: tokens(2 * hardLimit), DedupKey: "k", AlreadySpent: true}))
		}),
		on("record_spend", nil, func(r *try, _ core.Fence) (any, error) {
			id := r.id(0)
			return usageShown(r.e.Charge(r.ctx, client, r.budget(), engine.ChargeRequest{Usage: tokens(reported), DedupKey: "k", Execution: &id}))
		}),
		on("release_budget", nil, func(r *try, f core.Fence) (any, error) {
			_, err := r.e.ReportUsage(r.ctx, client, r.id(0), engine.UsageRequest{Fence: f, Usage: tokens(reported), DedupKey: "k"})
			if err != nil {
				return nil, err
			}
			return nil, discard(r.e.ReleaseBudget(r.ctx, operator, r.budget(), r.id(0), once))
		}),
	}
}

func granting() []scenario {
	return []scenario{
		{name: "claim under limits", setup: func(r *try) func() (any, error) {
			r.limit()
			for n := range 3 {
				r.submit(n, r.policy())
			}
			return func() (any, error) {
				got, err := r.e.Claim(r.ctx, client, r.claimRequest("c"))
				return len(got.Tasks), err
			}
		}},
		{name: "claim of what is refused", setup: func(r *try) func() (any, error) {
			r.charged(func(d *core.BudgetDefinition) {
				hard := int64(estimated + 5)
				d.Dimensions = map[string]core.BudgetLimits{"tokens": {Hard: &hard}}
			})
			r.submit(1, r.policy())
			return func() (any, error) {
				got, err := r.e.Claim(r.ctx, client, r.claimRequest("c"))
				return len(got.Tasks), err
			}
		}},
		{name: "grant", setup: func(r *try) func() (any, error) {
			r.limit()
			r.submit(0, r.policy())
			return func() (any, error) {
				got, err := r.e.Grant(r.ctx, client, r.grantRequest("g"))
				return len(got), err
			}
		}},
		{name: "claim_from_grant", setup: func(r *try) func() (any, error) {
			key, claim := r.grant(), engine.GrantClaim{WorkerID: "w", InstanceID: r.name, TTL: base.Hour}
			return func() (any, error) {
				got, err := r.e.ClaimGrant(r.ctx, client, key, claim)
				if err != nil {
					return nil, err
				}
				return []any{got.How, got.Execution.LeaseEpoch}, nil
			}
		}},
		{name: "return_grant", setup: func(r *try) func() (any, error) {
			key, keyed := r.grant(), client
			keyed.RequestKey = "once"
			return bare(func() error { return r.e.ReturnGrant(r.ctx, keyed, key) })
		}},
		{name: "operator_claim under limits", setup: func(r *try) func() (any, error) {
			r.limit()
			r.submit(0, r.policy())
			return r.targeted(operator, r.e.OperatorClaim)
		}},
	}
}

// leaving is what ends a lease that is charged: each gives back what is left, once.
func leaving() []scenario {
	on := func(name string, do func(r *try, f core.Fence) error) scenario {
		return scenario{name: name, setup: func(r *try) func() (any, error) {
			f := r.charged()
			r.submit(1, r.policy())
			return bare(func() error { return do(r, f) })
		}}
	}
	used := map[string]int64{"tokens": reported}
	return []scenario{
		on("complete with usage", func(r *try, f core.Fence) error {
			return discard(r.e.CompleteWith(r.ctx, client, r.id(0), core.Completion{Fence: f, Usage: used}))
		}),
		on("fail with usage", func(r *try, f core.Fence) error {
			return discard(r.e.Fail(r.ctx, client, r.id(0), core.FailCommand{Fence: f, Message: "no", Usage: used}))
		}),
		on("delay with usage", func(r *try, f core.Fence) error {
			return discard(r.e.DelayWith(r.ctx, client, r.id(0), core.DelayCommand{Fence: f, Until: r.clock.StoreNow().Add(base.Hour), Usage: used}, nil))
		}),
		on("suspend with usage", func(r *try, f core.Fence) error {
			cmd := waitFor(f)
			cmd.Usage = used
			return discard(r.e.Suspend(r.ctx, client, r.id(0), cmd))
		}),
		on("release under limits", func(r *try, f core.Fence) error { return discard(r.e.Release(r.ctx, client, r.id(0), f, "")) }),
		on("cancel under limits", func(r *try, _ core.Fence) error {
			return discard(r.e.Cancel(r.ctx, operator, r.id(0), nil, "", key))
		}),
		on("revoke under limits", func(r *try, _ core.Fence) error {
			return discard(r.e.Revoke(r.ctx, operator, r.id(0), engine.RevokeRequest{Hold: true}, key))
		}),
		on("mark_dead under limits", func(r *try, _ core.Fence) error { return r.e.MarkDead(r.ctx, operator, r.name, "gone", true) }),
	}
}

// timedLimits is what timers do to what is charged.
func timedLimits() []scenario {
	after := func(name string, wait time.Duration, setup func(r *try)) scenario {
		return scenario{name: name, setup: func(r *try) func() (any, error) {
			setup(r)
			return func() (any, error) {
				r.clock.Step(wait)
				r.recover()
				return nil, nil
			}
		}}
	}
	return []scenario{
		after("a charged lease lapses", 2*time.Hour, func(r *try) { r.charged() }),
		after("a charged lease lapses and forfeits", 2*time.Hour, func(r *try) {
			r.charged(func(d *core.BudgetDefinition) { d.OnLeaseLoss = core.OnLossForfeit })
		}),
		after("a grant expires", 2*time.Minute, func(r *try) { r.grant() }),
		after("a budget begins anew", time.Hour+time.Minute, func(r *try) {
			f := r.charged(func(d *core.BudgetDefinition) {
				d.Reset = core.BudgetReset{Type: core.ResetInterval, EveryMS: base.Hour, AnchorAt: r.clock.StoreNow()}
			})
			must(r, discard(r.e.ReportUsage(r.ctx, client, r.id(0), engine.UsageRequest{Fence: f, Usage: map[string]int64{"tokens": 5}})))
		}),
		after("a quota that was deleted lets go", time.Minute, func(r *try) {
			r.charged()
			must(r, discard(r.e.PutQuota(r.ctx, operator, r.name, core.QuotaSettings{ConcurrencyLimit: 1}, engine.AdminAction{})))
			r.submit(1, r.policy())
			must(r, discard(r.e.Claim(r.ctx, client, r.claimRequest(""))))
			must(r, r.e.DeleteQuota(r.ctx, operator, r.name, true, engine.AdminAction{}))
		}),
	}
}

// putLimits writes down all that is counted of the quota and the budgets of the run.
func (r *try) putLimits(put func(what string, v any)) {
	r.t.Helper()
	if !r.limits {
		return
	}
	quota, err := r.e.Quota(r.ctx, operator, r.name)
	put("quota", []any{quota.Quota.Settings, quota.Quota.Revision, quota.Keys, base.CodeOf(err)})
	for _, name := range []string{r.name + "-b", r.name + "-p"} {
		ref := engine.BudgetRef{Namespace: base.DefaultNamespace, Budget: name}
		view, err := r.e.Budget(r.ctx, operator, ref)
		put("budget", []any{view.Numbers, view.State(), view.Revision, view.Epoch, view.NextResetAt, view.Breaches, view.LiveHolds, view.Holders, view.BlockedExecutions, base.CodeOf(err)})
		spend, _, err := r.e.BudgetSpend(r.ctx, operator, ref, engine.SpendQuery{})
		put("spend", []any{spend, base.CodeOf(err)})
		epochs, _, err := r.e.BudgetEpochs(r.ctx, operator, ref, "", nil)
		put("epochs", []any{epochs, base.CodeOf(err)})
	}
	for _, id := range r.ids {
		usage, err := r.e.Usage(r.ctx, client, id, nil)
		put("usage", []any{usage.Usage, base.CodeOf(err)})
	}
}

// sound recounts what is kept twice (S42, BI2).
func (w *world) sound() {
	w.t.Helper()
	found, err := w.drive(func() (any, error) { return w.e.Integrity(w.ctx) })
	if report, ok := found.(engine.IntegrityReport); err != nil || !ok || len(report.Differences) > 0 {
		w.t.Errorf("integrity: %+v, %v", found, err)
	}
}
