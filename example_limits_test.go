package flowfabric_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/sqlite"
)

// Reply is what a model says and how many tokens that took.
type Reply struct {
	Text   string
	Tokens int64
}

func askModel(_ context.Context, question string) (Reply, error) {
	return Reply{Text: "because: " + question, Tokens: 1300}, nil
}

// Answer is work for a model.
const Answer flowfabric.Kind[string, string] = "answer"

// The example of U151: a budget that asks for more instead of failing. Here an operator says yes as soon as he is asked.
func ExampleTask_ReportUsage() {
	ctx := context.Background()
	client, end := begin(ctx, func(w *flowfabric.Worker) {
		flowfabric.Handle(w, Answer, func(ctx context.Context, t *flowfabric.Task, question string) (string, error) {
			reply, err := flowfabric.Step(ctx, t, "model", func(ctx context.Context) (Reply, error) { return askModel(ctx, question) })
			if err != nil {
				return "", err
			}
			_, err = t.ReportUsage(ctx, flowfabric.Usage{Amounts: map[string]int64{"tokens": reply.Tokens}, DedupKey: "model", AlreadySpent: true})
			return reply.Text, err // parked here when the limit is passed, until an operator decides
		})
	})
	defer end()

	_, err := client.Budgets().Create(ctx, api.Budget{
		Name: "team-red", Dimensions: map[string]api.BudgetLimits{"tokens": {Soft: 800, Hard: 1200}},
		OnHard: api.SuspendForApproval,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	run, err := Answer.Submit(ctx, client, "why?", flowfabric.SubmitOptions{
		BudgetIDs: []string{"team-red"}, Estimate: map[string]int64{"tokens": 500}, // held from the claim on, settled by reports
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := approveWhenAsked(ctx, client, run.ID()); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(run.Result(ctx))
	b, err := client.Budgets().Get(ctx, "team-red")
	n := b.Dimensions["tokens"]
	fmt.Println(n.Used, "used,", n.Overrun, "beyond the limit, which is now", n.EffectiveHard, err)
	// Output:
	// because: why? <nil>
	// 1200 used, 100 beyond the limit, which is now 2000 <nil>
}

// approveWhenAsked is the operator.
func approveWhenAsked(ctx context.Context, client *flowfabric.Client, id flowfabric.ID) error {
	asked := ops.ReadOptions{After: api.FromStart, EventFilter: ops.EventFilter{ExecutionID: id, Kinds: []string{"execution.suspended"}}}
	for _, err := range client.Events().Follow(ctx, asked) {
		if err != nil {
			return err
		}
		_, err = client.Operate().Approve(ctx, id, ops.Approve{
			Name: "budget_approved", Payload: flowfabric.JSON(map[string]any{"raise": map[string]int64{"tokens": 800}}),
		})
		return err
	}
	return ctx.Err()
}

// What a budget was used for, and by whom.
func ExampleBudgets() {
	ctx := context.Background()
	client, end := begin(ctx, func(w *flowfabric.Worker) {
		flowfabric.Handle(w, Answer, func(ctx context.Context, t *flowfabric.Task, question string) (string, error) {
			left := t.Remaining()
			receipt, err := t.ReportUsage(ctx, flowfabric.Usage{Amounts: map[string]int64{flowfabric.OutputTokens: 600}})
			for _, of := range left {
				fmt.Println(question, "has", of[flowfabric.OutputTokens], "left, uses 600:", receipt.Outcome)
			}
			return "", err
		})
	})
	defer end()

	_, err := client.Budgets().Create(ctx, api.Budget{
		Name: "month", Scope: api.BudgetScope{Type: "tag", Value: "team=red"}, // reaches whatever has the tag
		Dimensions: map[string]api.BudgetLimits{flowfabric.OutputTokens: {Soft: 1000, Hard: 1500}},
		Reset:      api.BudgetReset{Unit: "month", Timezone: "Europe/Berlin"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, question := range []string{"one?", "two?"} {
		run, err := Answer.Submit(ctx, client, question, flowfabric.SubmitOptions{Tags: map[string]string{"team": "red"}})
		if err != nil {
			fmt.Println(err)
			return
		}
		if _, err := run.Result(ctx); err != nil {
			fmt.Println(err)
			return
		}
	}
	for row, err := range client.Budgets().Spend(ctx, "month") {
		fmt.Println("an execution has used", row.Used[flowfabric.OutputTokens], err)
	}
	// Output:
	// one? has 1500 left, uses 600: ok
	// two? has 900 left, uses 600: soft_breach
	// an execution has used 600 <nil>
	// an execution has used 600 <nil>
}

// A service takes one call at a time of each customer. What finds no room waits, and explain says for what.
func ExampleQuotas() {
	ctx := context.Background()
	calling, done := make(chan struct{}), make(chan struct{})
	client, end := begin(ctx, func(w *flowfabric.Worker) {
		flowfabric.Handle(w, Answer, func(context.Context, *flowfabric.Task, string) (string, error) {
			calling <- struct{}{}
			<-done
			return "", nil
		})
	})
	defer end()

	if _, err := client.Quotas().Put(ctx, "service", api.QuotaSettings{ConcurrencyLimit: 1, PerKey: true}); err != nil {
		fmt.Println(err)
		return
	}
	acme := flowfabric.SubmitOptions{Quotas: []api.QuotaUse{{Quota: "service", Key: "acme"}}}
	first, err := Answer.Submit(ctx, client, "one?", acme)
	if err != nil {
		fmt.Println(err)
		return
	}
	<-calling
	second, err := Answer.Submit(ctx, client, "two?", acme)
	if err != nil {
		fmt.Println(err)
		return
	}
	why, err := client.Executions().Explain(ctx, second.ID())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(why.Blockers[0].Message)
	close(done)
	<-calling // it starts by itself
	for _, run := range []*flowfabric.Run[string]{first, second} {
		x, err := run.Wait(ctx)
		fmt.Println(x.Status, err)
	}
	// Output:
	// All slots of quota "service" for "acme" are taken: 1 in use, 1 allowed.
	// succeeded <nil>
	// succeeded <nil>
}

// One process chooses the work, another one does it: the grant is a signed promise that only the named worker can redeem.
func ExampleWork_grant() {
	ctx := context.Background()
	path, remove := store()
	defer remove()
	client, err := sqlite.Open(ctx, path)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = client.Close(ctx) }()
	run, err := Answer.Submit(ctx, client, "why?")
	if err != nil {
		fmt.Println(err)
		return
	}

	grants, err := client.Work().Grant(ctx, api.GrantRequest{
		WorkerID: "render", InstanceID: "render-1", Lanes: []string{"default"}, GrantTTL: time.Minute,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(grants[0].ExecutionID == run.ID(), client.Work().VerifyGrant(ctx, grants[0].Key))
	_, err = client.Work().ClaimGrant(ctx, grants[0].Key, api.GrantClaim{WorkerID: "render", InstanceID: "render-2"})
	fmt.Println(flowfabric.CodeOf(err))
	task, err := client.Work().ClaimGrant(ctx, grants[0].Key, api.GrantClaim{WorkerID: "render", InstanceID: "render-1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(task.ID == run.ID(), task.Lease.Epoch, strings.Contains(fmt.Sprint(grants[0].Key), "<redacted>")) // it does not print itself
	// Output:
	// true <nil>
	// grant_signature_mismatch
	// true 1 true
}

// Why work does not run, by the rules that decide over it.
func ExampleExplanation() {
	ctx := context.Background()
	path, remove := store()
	defer remove()
	client, err := sqlite.Open(ctx, path, sqlite.Config{Principal: "ana"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = client.Close(ctx) }()
	run, err := Answer.Submit(ctx, client, "why?", flowfabric.SubmitOptions{Lane: "slow"})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := client.Lanes().Put(ctx, "slow", api.LaneSettings{State: api.LanePaused}); err != nil {
		fmt.Println(err)
		return
	}
	why, err := client.Executions().Explain(ctx, run.ID())
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, blocker := range why.Blockers {
		fmt.Println(blocker.Code)
	}
	fmt.Println(why.Status, len(why.Summary) > 0)
	// Output:
	// lane_state
	// no_live_worker
	// ready true
}
