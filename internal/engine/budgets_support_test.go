package engine_test

import (
	"fmt"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// limits are dimensions with hard limits.
func limits(hard map[string]int64) map[string]core.BudgetLimits {
	all := map[string]core.BudgetLimits{}
	for name, amount := range hard {
		all[name] = core.BudgetLimits{Hard: &amount}
	}
	return all
}

// tokens is a budget that allows so many tokens to the executions that name it.
func tokens(name string, hard int64, edits ...func(*core.BudgetDefinition)) core.BudgetDefinition {
	d := core.BudgetDefinition{Name: name, Dimensions: limits(map[string]int64{"tokens": hard})}
	for _, edit := range edits {
		edit(&d)
	}
	return d
}

func onHard(action string) func(*core.BudgetDefinition) {
	return func(d *core.BudgetDefinition) { d.OnHard = action }
}

func onLoss(word string) func(*core.BudgetDefinition) {
	return func(d *core.BudgetDefinition) { d.OnLeaseLoss = word }
}

func covering(kind, value string) func(*core.BudgetDefinition) {
	return func(d *core.BudgetDefinition) { d.Scope = core.BudgetScope{Type: kind, Value: value} }
}

func below(parent string) func(*core.BudgetDefinition) {
	return func(d *core.BudgetDefinition) { d.Parent = parent }
}

func resetting(r core.BudgetReset) func(*core.BudgetDefinition) {
	return func(d *core.BudgetDefinition) { d.Reset = r }
}

func softly(soft int64) func(*core.BudgetDefinition) {
	return func(d *core.BudgetDefinition) {
		l := d.Dimensions["tokens"]
		l.Soft = &soft
		d.Dimensions["tokens"] = l
	}
}

// create makes a budget in the default namespace.
func (w *world) create(d core.BudgetDefinition) engine.BudgetView {
	w.t.Helper()
	answer := must(w.e.CreateBudget(w.ctx(), operator, "default", d, engine.AdminAction{}))(w.t)
	if answer.Outcome != "created" {
		w.t.Fatalf("create: %s", answer.Outcome)
	}
	return answer.Budget
}

func ofName(budget string) engine.BudgetRef {
	return engine.BudgetRef{Namespace: "default", Budget: budget}
}

// budget shows a budget of the default namespace.
func (w *world) budget(name string) engine.BudgetView {
	w.t.Helper()
	return must(w.e.Budget(w.ctx(), client, ofName(name)))(w.t)
}

// numbers are used, reserved and overrun of a budget's tokens.
func (w *world) numbers(name string) [3]int64 {
	w.t.Helper()
	n := w.budget(name).Numbers["tokens"]
	return [3]int64{n.Used, n.Reserved, n.Overrun}
}

// costing submits work that names budgets, with an estimate of tokens.
func costing(estimate int64, budgets ...string) core.Submission {
	list := ""
	for i, name := range budgets {
		if i > 0 {
			list += ","
		}
		list += fmt.Sprintf("%q", name)
	}
	return policy(fmt.Sprintf(`{"budget_ids":[%s],"estimate":{"tokens":%d}}`, list, estimate))
}

// report reports tokens under a task's lease.
func (w *world) report(task engine.Task, amount int64, edits ...func(*engine.UsageRequest)) core.UsageOutcome {
	w.t.Helper()
	return must(w.reporting(task, amount, edits...))(w.t)
}

func (w *world) reporting(task engine.Task, amount int64, edits ...func(*engine.UsageRequest)) (core.UsageOutcome, error) {
	r := engine.UsageRequest{Fence: fence(task), Usage: map[string]int64{"tokens": amount}}
	for _, edit := range edits {
		edit(&r)
	}
	return w.e.ReportUsage(w.ctx(), client, given(task), r)
}

func spent(r *engine.UsageRequest) { r.AlreadySpent = true }

func once(key string) func(*engine.UsageRequest) {
	return func(r *engine.UsageRequest) { r.DedupKey = key }
}

// charge charges tokens to a budget.
func (w *world) charge(name string, amount int64, edits ...func(*engine.ChargeRequest)) (core.UsageOutcome, error) {
	r := engine.ChargeRequest{Usage: map[string]int64{"tokens": amount}}
	for _, edit := range edits {
		edit(&r)
	}
	return w.e.Charge(w.ctx(), client, ofName(name), r)
}

// spend is what the ledger has of the present epoch, in its order.
func (w *world) spend(name string) (totals []int64) {
	w.t.Helper()
	rows, _, err := w.e.BudgetSpend(w.ctx(), client, ofName(name), engine.SpendQuery{})
	ok(w.t, err)
	for _, row := range rows {
		totals = append(totals, row.Total)
	}
	return totals
}

// sound fails the test unless what budgets have reserved is what leases hold (BI2).
func (w *world) sound() {
	w.t.Helper()
	report := must(w.e.Integrity(w.ctx()))(w.t)
	if len(report.Differences) > 0 {
		w.t.Fatalf("differences: %+v", report.Differences)
	}
}

func onBudgets(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	onSigning(t, func(t *testing.T, w *world) {
		f(t, w)
		if !t.Failed() && !w.unaudited {
			w.sound()
		}
	})
}

// dropFound does the last step of the deletion of a budget, once it is known that no submission names it.
func (w *world) dropFound(name string) error {
	found, err := w.e.FindBudget(w.ctx(), operator, ofName(name))
	if err != nil {
		return err
	}
	return w.e.DropFound(w.ctx(), operator, ofName(name), found, engine.AdminAction{}, false, nil)
}
