package flowfabric_test

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/service"
)

// spends is work that uses tokens.
const spends = flowfabric.Kind[flowfabric.None, string]("spends")

// spend runs a handler of work that is under these budgets.
func (w *world) spend(t *testing.T, o flowfabric.SubmitOptions, do func(ctx context.Context, task *flowfabric.Task) (string, error)) *flowfabric.Run[string] {
	t.Helper()
	w.work(t, flowfabric.WorkerConfig{}, func(worker *flowfabric.Worker) {
		flowfabric.Handle(worker, spends, func(ctx context.Context, task *flowfabric.Task, _ flowfabric.None) (string, error) {
			return do(ctx, task)
		})
	})
	return must[*flowfabric.Run[string]](t)(spends.Submit(inTime(t), w.Client, flowfabric.None{}, o))
}

func used(n int64) flowfabric.Usage { return flowfabric.Usage{Amounts: map[string]int64{"tokens": n}} }

// told is what a report said to a handler.
type told struct {
	receipt api.UsageReceipt
	err     error
}

func TestU142_a_report_that_is_refused_is_an_error_and_a_soft_limit_is_none(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		b := w.budget(t, api.Budget{Name: "b", Dimensions: map[string]api.BudgetLimits{"tokens": {Soft: 50, Hard: 100}}})
		var reports []told
		run := w.spend(t, flowfabric.SubmitOptions{BudgetIDs: []string{"b"}, Estimate: map[string]int64{"tokens": 30}}, func(ctx context.Context, task *flowfabric.Task) (string, error) {
			if left := task.Remaining(); left[b.ID]["tokens"] != 100 {
				t.Errorf("remaining %v", left)
			}
			spent := used(50)
			spent.AlreadySpent = true
			for _, u := range []flowfabric.Usage{used(40), used(20), used(70), spent} {
				receipt, err := task.ReportUsage(ctx, u)
				reports = append(reports, told{receipt, err})
			}
			_, err := task.ReportUsage(ctx, flowfabric.Usage{Amounts: map[string]int64{flowfabric.WallMillis: 1}})
			refusedWith(t, "reserved_dimension")(nil, err)
			return "done", ctx.Err()
		})
		if result := must[string](t)(run.Result(ctx)); result != "done" {
			t.Errorf("%q", result)
		}
		for i, want := range []struct {
			outcome string
			applied bool
		}{{api.UsageOK, true}, {api.UsageSoftBreach, true}, {api.UsageHardBreach, false}, {api.UsageHardBreach, true}} {
			got := reports[i]
			if got.receipt.Outcome != want.outcome || got.receipt.Applied != want.applied || errors.Is(got.err, flowfabric.ErrBudgetExceeded) == want.applied || want.applied != (got.err == nil) {
				t.Errorf("report %d: %+v", i, got)
			}
		}
		if r := reports[2].receipt; r.Budget != b.ID || r.Dimension != "tokens" || r.Used != 60 || r.Attempted != 70 || r.Hard != 100 || r.Action != api.ActionNone {
			t.Errorf("%+v", r)
		}
		x := must[*flowfabric.Execution](t)(w.Get(ctx, run.ID()))
		if x.Attempt.Usage["tokens"] != 110 {
			t.Errorf("%+v", x.Attempt)
		}
		now := must[*api.BudgetStatus](t)(w.Budgets().Get(ctx, "b"))
		if n := now.Dimensions["tokens"]; n.Used != 100 || n.Overrun != 10 || n.Reserved != 0 || now.LiveHolds != 0 {
			t.Errorf("%+v", now)
		}
	})
}

// The worked example of U151: a budget that asks for more instead of failing.
func TestU151_a_budget_that_asks_parks_the_work_until_an_operator_raises_it(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		b := tokens("team-red", 1200)
		b.OnHard = api.SuspendForApproval
		made := w.budget(t, b)
		reports := make(chan told, 4)
		run := w.spend(t, flowfabric.SubmitOptions{BudgetIDs: []string{"team-red"}, Estimate: map[string]int64{"tokens": 500}}, func(ctx context.Context, task *flowfabric.Task) (string, error) {
			u := used(1300)
			u.DedupKey, u.AlreadySpent = "model", true
			receipt, err := task.ReportUsage(ctx, u)
			reports <- told{receipt, err}
			return "42", err
		})
		if first := receive(t, reports); !errors.Is(first.err, flowfabric.ErrParked) || first.receipt.Action != api.ActionSuspended || first.receipt.Overrun != 100 {
			t.Errorf("%+v", first)
		}
		w.awaits(t, run.ID(), "budget")
		x := must[*flowfabric.Execution](t)(w.Get(ctx, run.ID()))
		if x.Suspension == nil || x.Suspension.ReasonCode != flowfabric.PausedByBudget {
			t.Errorf("%+v", x.Suspension)
		}
		waiting := must[flowfabric.Page[api.Suspended]](t)(w.Waitpoints().InboxPage(ctx))
		if len(waiting.Items) != 1 || waiting.Items[0].Execution.ID != run.ID() {
			t.Errorf("%+v", waiting.Items)
		}
		must[api.SignalReceipt](t)(w.Operate().Approve(ctx, run.ID(), ops.Approve{
			Name: "budget_approved", Payload: flowfabric.JSON(map[string]any{"raise": map[string]int64{"tokens": 800}}),
		}))
		if result := must[string](t)(run.Result(ctx)); result != "42" {
			t.Errorf("%q", result)
		}
		if second := receive(t, reports); second.err != nil || !second.receipt.Repeated() || !second.receipt.Applied {
			t.Errorf("%+v", second)
		}
		now := must[*api.BudgetStatus](t)(w.Budgets().Get(ctx, made.ID))
		if n := now.Dimensions["tokens"]; n.EffectiveHard != 2000 || n.Used != 1200 || n.Overrun != 100 || now.Dimensions["tokens"].Hard != 1200 {
			t.Errorf("%+v", now)
		}
	})
}

func TestU143_the_context_of_work_that_a_budget_ends_has_that_cause(t *testing.T) {
	t.Parallel()
	for action, c := range map[api.HardAction]struct {
		status flowfabric.Status
		told   string
	}{
		api.FailReporter: {flowfabric.StatusFailed, api.ActionFailed}, api.CancelRunning: {flowfabric.StatusCancelled, api.ActionCancelled},
	} {
		t.Run(string(action), func(t *testing.T) {
			t.Parallel()
			onEveryStore(t, func(t *testing.T, w *world) {
				ctx := inTime(t)
				b := tokens("b", 10)
				b.OnHard = action
				w.budget(t, b)
				causes := make(chan error, 1)
				run := w.spend(t, flowfabric.SubmitOptions{BudgetIDs: []string{"b"}}, func(ctx context.Context, task *flowfabric.Task) (string, error) {
					receipt, err := task.ReportUsage(ctx, used(11))
					if !errors.Is(err, flowfabric.ErrBudgetExceeded) || receipt.Action != c.told || receipt.Applied {
						t.Errorf("%+v %v", receipt, err)
					}
					<-ctx.Done()
					causes <- context.Cause(ctx)
					_, err = task.ReportUsage(context.WithoutCancel(ctx), used(1))
					return "", err
				})
				if cause := receive(t, causes); !errors.Is(cause, flowfabric.ErrBudgetExceeded) {
					t.Errorf("%v", cause)
				}
				x := must[*flowfabric.Execution](t)(w.Wait(ctx, run.ID()))
				if x.Status != c.status || x.Reason != "budget_exceeded" {
					t.Errorf("%s %s", x.Status, x.Reason)
				}
			})
		})
	}
}

func TestU143_work_that_is_cancelled_for_what_others_used_learns_of_it_at_once(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		b := tokens("b", 10)
		b.OnHard = api.CancelRunning
		w.budget(t, b)
		begun, causes := make(chan struct{}, 1), make(chan error, 1)
		run := w.spend(t, flowfabric.SubmitOptions{BudgetIDs: []string{"b"}}, func(ctx context.Context, _ *flowfabric.Task) (string, error) {
			begun <- struct{}{}
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return "", ctx.Err()
		})
		receive(t, begun)
		if r := must[api.UsageReceipt](t)(w.Budgets().Charge(ctx, "b", api.Charge{Usage: used(11)})); r.Outcome != api.UsageHardBreach || r.Applied {
			t.Errorf("%+v", r)
		}
		if cause := receive(t, causes); !errors.Is(cause, flowfabric.ErrBudgetExceeded) {
			t.Errorf("%v", cause)
		}
		if x := must[*flowfabric.Execution](t)(w.Wait(ctx, run.ID())); x.Status != flowfabric.StatusCancelled || x.Cancellation.Source != "budget" {
			t.Errorf("%+v", x)
		}
	})
}

func TestU68_U69_U70_U71_what_is_used_may_come_with_the_end_of_the_lease(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx, h := inTime(t), hand{w, t}
		w.budget(t, tokens("b", 100))
		id := must[flowfabric.SubmitResult](t)(w.Submit(ctx, flowfabric.Submission{Kind: "k", SubmitOptions: flowfabric.SubmitOptions{
			BudgetIDs: []string{"b"}, Estimate: map[string]int64{"tokens": 10}, Policy: &flowfabric.Policy{Retry: &flowfabric.RetryPolicy{Backoff: flowfabric.Backoff{Strategy: "fixed"}}},
		}})).ID
		ends := []api.WorkItem{
			{Op: api.OpDelay, Delay: 0},
			{Op: api.OpSuspend, Suspension: &flowfabric.Suspension{Waitpoints: []flowfabric.Binding{flowfabric.NewWaitpoint("go")}}},
			{Op: api.OpFail, Message: "no"},
			{Op: api.OpComplete},
		}
		for i, item := range ends {
			task := h.claims(time.Minute)
			if n := must[*api.BudgetStatus](t)(w.Budgets().Get(ctx, "b")).Dimensions["tokens"]; n.Used != int64(i) || n.Reserved != 10 {
				t.Errorf("before %s: %+v", item.Op, n)
			}
			item.ID, item.Lease, item.Usage = id, task.Lease, used(1)
			if answer := h.does(item); answer.Err != nil {
				t.Fatalf("%s: %v", item.Op, answer.Err)
			}
			if item.Op == api.OpSuspend {
				must[*flowfabric.Execution](t)(w.Operate().Resume(ctx, id))
			}
		}
		now := must[*api.BudgetStatus](t)(w.Budgets().Get(ctx, "b"))
		if n := now.Dimensions["tokens"]; n.Used != 4 || n.Reserved != 0 {
			t.Errorf("%+v", n)
		}
		first := 0
		if usage := must[api.ExecutionUsage](t)(w.Executions().Usage(ctx, id)); usage.Amounts["tokens"] != 4 {
			t.Errorf("%+v", usage)
		}
		if usage := must[api.ExecutionUsage](t)(w.Executions().Usage(ctx, id, ops.UsageOptions{Attempt: &first})); usage.Amounts["tokens"] != 3 || *usage.Attempt != 0 {
			t.Errorf("%+v", usage)
		}
	})
}

func TestU32_work_brings_budgets_and_an_estimate_in_its_policy_or_in_short(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx, h := inTime(t), hand{w, t}
		named := w.budget(t, tokens("named", 100))
		own := api.BudgetDefinition{Name: "own", Dimensions: map[string]api.BudgetLimits{"tokens": {Hard: 20}}}
		estimate := map[string]int64{"tokens": 15}
		for name, o := range map[string]flowfabric.SubmitOptions{
			"short":  {BudgetIDs: []string{"named"}, Estimate: estimate, Budgets: []api.BudgetDefinition{own}},
			"policy": {Policy: &flowfabric.Policy{BudgetIDs: []string{named.ID}, Estimate: estimate, Budgets: []api.BudgetDefinition{{Dimensions: own.Dimensions}}}},
		} {
			id := must[flowfabric.SubmitResult](t)(w.Submit(ctx, flowfabric.Submission{Kind: "k", SubmitOptions: o})).ID
			found := must[api.ApplicableBudgets](t)(w.Executions().Budgets(ctx, id))
			if len(found.Budgets) != 2 || found.Budgets[0].ID != named.ID || found.Budgets[1].Scope.Type != "execution" || found.Refusal != nil {
				t.Errorf("%s: %+v", name, found)
			}
			task := h.claims(time.Minute)
			mine := found.Budgets[1].ID
			want := map[string]int64{named.ID: 100, mine: 20}
			for budget, left := range want {
				if task.Remaining[budget]["tokens"] != left {
					t.Errorf("%s: remaining %v, want %v", name, task.Remaining, want)
				}
			}
			x := must[*flowfabric.Execution](t)(w.Get(ctx, id))
			if len(x.Budgets) != 2 || x.Budgets[0].ID != named.ID || !maps.Equal(x.Budgets[0].Reserved, estimate) || x.Budgets[1].ID != mine {
				t.Errorf("%s: %+v", name, x.Budgets)
			}
			h.does(api.WorkItem{Op: api.OpComplete, ID: id, Lease: task.Lease})
		}
		for name, o := range map[string]struct {
			flowfabric.SubmitOptions
			code string
		}{
			"ids twice":      {flowfabric.SubmitOptions{BudgetIDs: []string{"named"}, Policy: &flowfabric.Policy{BudgetIDs: []string{"named"}}}, "invalid_argument"},
			"estimate twice": {flowfabric.SubmitOptions{Estimate: estimate, Policy: &flowfabric.Policy{Estimate: estimate}}, "invalid_argument"},
			"budgets twice":  {flowfabric.SubmitOptions{Budgets: []api.BudgetDefinition{own}, Policy: &flowfabric.Policy{Budgets: []api.BudgetDefinition{own}}}, "invalid_argument"},
			"unknown":        {flowfabric.SubmitOptions{BudgetIDs: []string{"missing"}}, "invalid_policy"},
			"two resets":     {flowfabric.SubmitOptions{Budgets: []api.BudgetDefinition{{Reset: api.BudgetReset{Every: time.Hour, Unit: "day"}, Dimensions: own.Dimensions}}}, "invalid_budget"},
			"no dimension":   {flowfabric.SubmitOptions{Budgets: []api.BudgetDefinition{{}}}, "invalid_policy"},
		} {
			if _, err := w.Submit(ctx, flowfabric.Submission{Kind: "k", SubmitOptions: o.SubmitOptions}); flowfabric.CodeOf(err) != o.code {
				t.Errorf("%s: %v, want %s", name, err, o.code)
			}
		}
	})
}

func TestU42_what_blocks_work_is_told_with_its_budgets(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		b := w.budget(t, tokens("b", 10))
		must[api.UsageReceipt](t)(w.Budgets().Charge(ctx, "b", api.Charge{Usage: used(10)}))
		id := must[flowfabric.SubmitResult](t)(w.Submit(ctx, flowfabric.Submission{Kind: "k", SubmitOptions: flowfabric.SubmitOptions{BudgetIDs: []string{"b"}}})).ID
		if answer := must[api.ClaimAnswer](t)(w.Work().Claim(ctx, api.ClaimRequest{WorkerID: "w", InstanceID: "w", Lanes: []string{"default"}})); len(answer.Tasks) > 0 {
			t.Errorf("%+v", answer.Tasks)
		}
		found := must[api.ApplicableBudgets](t)(w.Executions().Budgets(ctx, id))
		if len(found.Budgets) != 1 || found.Refusal == nil || found.Refusal.BlockedOn != "budget:"+b.ID || len(found.Refusal.Detail) == 0 {
			t.Errorf("%+v", found)
		}
		now := found.Budgets[0]
		if now.BlockedExecutions != 1 || len(now.Exhausted) != 1 || now.Exhausted[0] != "tokens" {
			t.Errorf("%+v", now)
		}
		must[*api.BudgetStatus](t)(w.Budgets().Reset(ctx, "b"))
		if task := (hand{w, t}).claims(time.Minute); task.ID != id {
			t.Errorf("%+v", task)
		}
		refusedWith(t, "execution_not_found")(w.Executions().Budgets(ctx, flowfabric.ID("0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50")))
		refusedWith(t, "execution_not_found")(w.Executions().Usage(ctx, flowfabric.ID("0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50")))
	})
}

func TestI14_a_budget_of_another_namespace_is_as_one_that_is_not_there(t *testing.T) {
	t.Parallel()
	onEveryStoreEmbedded(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		as := func(namespace string) *world {
			return w.as(service.Caller{Name: namespace, Namespace: namespace, Namespaces: []string{namespace}, Operator: true})
		}
		red, blue := as("red"), as("blue")
		made := must[*api.CreatedBudget](t)(red.Budgets().Create(ctx, tokens("b", 10)))
		for _, called := range []string{made.ID, "b"} {
			for name, call := range map[string]func() error{
				"get":    func() error { _, err := blue.Budgets().Get(ctx, called); return err },
				"update": func() error { _, err := blue.Budgets().Update(ctx, called, api.BudgetUpdate{}); return err },
				"close":  func() error { _, err := blue.Budgets().Close(ctx, called); return err },
				"reopen": func() error { _, err := blue.Budgets().Reopen(ctx, called); return err },
				"reset":  func() error { _, err := blue.Budgets().Reset(ctx, called); return err },
				"delete": func() error { return blue.Budgets().Delete(ctx, called) },
				"charge": func() error {
					_, err := blue.Budgets().Charge(ctx, called, api.Charge{Usage: used(1)})
					return err
				},
				"release": func() error {
					_, err := blue.Budgets().Refund(ctx, called, "0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50")
					return err
				},
				"epochs": func() error { _, err := blue.Budgets().EpochsPage(ctx, called); return err },
				"spend":  func() error { _, err := blue.Budgets().SpendPage(ctx, called); return err },
				"parent": func() error {
					_, err := blue.Budgets().Create(ctx, api.Budget{Name: "c", Parent: called, Dimensions: tokens("c", 10).Dimensions})
					return err
				},
			} {
				if err := call(); flowfabric.CodeOf(err) != "budget_not_found" {
					t.Errorf("%s of %s: %v", name, called, err)
				}
			}
			if _, err := blue.Submit(ctx, flowfabric.Submission{Kind: "k", SubmitOptions: flowfabric.SubmitOptions{BudgetIDs: []string{called}}}); flowfabric.CodeOf(err) != "invalid_policy" {
				t.Errorf("submit with %s: %v", called, err)
			}
		}
		if page := must[flowfabric.Page[*api.BudgetStatus]](t)(blue.Budgets().Page(ctx)); len(page.Items) > 0 {
			t.Errorf("%+v", page.Items)
		}
		if own := must[*api.CreatedBudget](t)(blue.Budgets().Create(ctx, tokens("b", 5))); own.ID == made.ID || own.Outcome != api.BudgetCreated {
			t.Errorf("%+v", own)
		}
		if now := must[*api.BudgetStatus](t)(red.Budgets().Get(ctx, "b")); now.Revision != made.Revision || now.Dimensions["tokens"].Used != 0 {
			t.Errorf("%+v", now)
		}
	})
}
