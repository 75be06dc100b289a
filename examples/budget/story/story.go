// Package story is the budget example: prompts are answered under a budget of tokens. Estimates are reserved before the model is asked, a
// soft limit warns, the hard one parks the work and asks for more, and at the end stands what it cost. The example's own program tells it,
// and so does flowfabric demo.
package story

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/examples/stage"
)

// Budget is the story.
var Budget = stage.Story{Name: "budget", Tell: func(ctx context.Context, s *stage.Stage) error { return Tell(ctx, s, modelOf()) }}

// The budget. An answer of a few words takes less than the estimate, an essay more than is left.
const (
	tokens   = "tokens"
	soft     = 800
	hard     = 1200
	raise    = 2000 // what an approval adds
	estimate = 500
	brief    = 350 // what a model may take for an answer of a few words
	essays   = 50  // how many are ordered at most, until the limit is passed
)

// office is where the story plays.
type office struct {
	*stage.Stage
	client *flowfabric.Client
	desk   *desk
	runs   []*flowfabric.Run[string]
}

// Tell tells the story with that model.
func Tell(ctx context.Context, s *stage.Stage, model Model) error {
	client, err := s.Open(ctx)
	if err != nil {
		return err
	}
	defer client.Close(context.WithoutCancel(ctx))
	o := &office{Stage: s, client: client, desk: &desk{model: model, open: make(chan struct{})}}
	w := flowfabric.NewWorker(client, flowfabric.WorkerConfig{Lanes: []string{s.Name}, Concurrency: 4, Logger: s.Log})
	flowfabric.Handle(w, Answer, o.desk.answer)
	stop := stage.Start(ctx, w)
	for _, chapter := range []func(context.Context) error{o.setUp, o.reserve, o.spend, o.more, o.report} {
		if err = chapter(ctx); err != nil {
			break
		}
	}
	return errors.Join(err, stop())
}

// setUp makes the budget.
func (o *office) setUp(ctx context.Context) error {
	b, err := o.client.Budgets().Create(ctx, api.Budget{
		Name:       o.Name,
		Dimensions: map[string]api.BudgetLimits{tokens: {Soft: soft, Hard: hard}, flowfabric.CostMicros: {}},
		OnHard:     api.SuspendForApproval,
		Approval:   api.BudgetApproval{DefaultRaise: map[string]int64{tokens: raise}},
	})
	if err != nil {
		return err
	}
	o.Say("Team red may use %d tokens, is warned at %d, and has to ask for more: budget %s.", hard, soft, b.ID)
	return nil
}

// submit hands in a prompt that is charged to the budget.
func (o *office) submit(ctx context.Context, p Prompt, reserve map[string]int64) (*flowfabric.Run[string], error) {
	run, err := Answer.Submit(ctx, o.client, p, flowfabric.SubmitOptions{Lane: o.Name, BudgetIDs: []string{o.Name}, Estimate: reserve})
	if err == nil {
		o.runs = append(o.runs, run)
	}
	return run, err
}

// reserve submits more than there is room for.
func (o *office) reserve(ctx context.Context) error {
	for _, question := range []string{"why is the sky blue?", "why is the sea salty?", "why is grass green?"} {
		if _, err := o.submit(ctx, Prompt{question, brief}, map[string]int64{tokens: estimate}); err != nil {
			return err
		}
	}
	blocked, err := o.first(ctx, ops.EventFilter{Lane: o.Name, Kinds: []string{"execution.blocked"}})
	if err != nil {
		return err
	}
	o.Say("Three prompts come, %d tokens each by estimate. Two start and have them reserved; for the other there is no room:", estimate)
	if err := o.explain(ctx, blocked.ExecutionID); err != nil {
		return err
	}
	return o.numbers(ctx)
}

// explain tells why a prompt does not start.
func (o *office) explain(ctx context.Context, id flowfabric.ID) error {
	why, err := o.client.Executions().Explain(ctx, id)
	if err != nil {
		return err
	}
	o.Show("%s is %s", id, why.Status)
	for _, blocker := range why.Blockers {
		o.Show("%s: %s", blocker.Code, blocker.Message)
	}
	return nil
}

// numbers tells how the budget stands.
func (o *office) numbers(ctx context.Context) error {
	b, err := o.client.Budgets().Get(ctx, o.Name)
	if err != nil {
		return err
	}
	n := b.Dimensions[tokens]
	o.Show("the budget: %d of %d used, %d reserved, %d left", n.Used, n.EffectiveHard, n.Reserved, *n.Available)
	return nil
}

// spend lets the model answer. What was reserved and not used comes back, and the prompt that waited starts by itself.
func (o *office) spend(ctx context.Context) error {
	close(o.desk.open)
	for _, run := range o.runs {
		if _, err := run.Result(ctx); err != nil {
			return err
		}
	}
	o.Say("The model answers. What was reserved and not used is given back, and the other one starts by itself.")
	return o.tellNews(ctx)
}

func (o *office) tellNews(ctx context.Context) error {
	for _, said := range o.desk.news() {
		o.Show("%s", said)
	}
	return o.numbers(ctx)
}

// more orders essays until the limit is passed, and gets an approval by a link.
func (o *office) more(ctx context.Context) error {
	waits, err := o.submit(ctx, Prompt{"why is snow white?", brief}, map[string]int64{tokens: hard})
	if err != nil {
		return err
	}
	asks, err := o.untilAsked(ctx)
	if err != nil {
		return err
	}
	o.Say("Somebody orders an essay and gives no estimate. It takes more than is left: what is spent is booked, and the work asks.")
	if err := o.tellNews(ctx); err != nil {
		return err
	}
	if err := o.approve(ctx, asks.ID()); err != nil {
		return err
	}
	for _, run := range []*flowfabric.Run[string]{asks, waits} {
		if _, err := run.Result(ctx); err != nil {
			return err
		}
	}
	o.Say("The limit is %d tokens higher until the next reset. The essay goes on where it was, and so does a prompt that had no room.", raise)
	return o.tellNews(ctx)
}

// untilAsked orders essays, one after the other, until one of them asks for more.
func (o *office) untilAsked(ctx context.Context) (*flowfabric.Run[string], error) {
	for range essays {
		run, err := o.submit(ctx, Prompt{Question: "what is the meaning of life?"}, nil)
		if err != nil {
			return nil, err
		}
		kinds := []string{"execution.suspended", "execution.blocked", "execution.completed"}
		switch event, err := o.first(ctx, ops.EventFilter{ExecutionID: run.ID(), Kinds: kinds}); {
		case err != nil:
			return nil, err
		case event.Kind == "execution.suspended":
			return run, nil
		case event.Kind == "execution.blocked":
			return nil, errors.New("the budget is used up to the last token, and no approval is asked for")
		}
	}
	return nil, fmt.Errorf("%d essays did not use up the budget", essays)
}

// first waits for the first event that the filter selects.
func (o *office) first(ctx context.Context, f ops.EventFilter) (flowfabric.Event, error) {
	following, enough := context.WithCancel(ctx)
	defer enough()
	for event, err := range o.client.Events().Follow(following, ops.ReadOptions{After: api.FromStart, EventFilter: f}) {
		return event, err
	}
	return flowfabric.Event{}, ctx.Err()
}

// approve is what an operator does: send a link to who may decide. She opens it and says yes.
func (o *office) approve(ctx context.Context, id flowfabric.ID) error {
	for waiting, err := range o.client.Waitpoints().Inbox(ctx, ops.SuspendedQuery{Lane: o.Name}) {
		if err != nil {
			return err
		}
		if waiting.Execution.ID != id {
			continue
		}
		o.Show("in the inbox: %s (%s)", id, waiting.ReasonCode)
		return o.decide(ctx, waiting.Waitpoints[0].ID)
	}
	return errors.New("no approval is asked for")
}

func (o *office) decide(ctx context.Context, waitpoint string) error {
	link, err := o.client.Waitpoints().NewLink(ctx, waitpoint, ops.LinkOptions{
		Approver: "ana@example.com", Title: "More tokens for team red?", Message: fmt.Sprintf("%d more, until the next reset.", raise),
	})
	if err != nil {
		return err
	}
	token := flowfabric.TokenOf(link.URL[strings.LastIndex(link.URL, "/")+1:])
	outcome, err := o.client.Waitpoints().Decide(ctx, link.ID, token, api.LinkDecision{Decision: "approve", Comment: "it is the end of the quarter"})
	if err != nil {
		return err
	}
	o.Show("%s opens her link and approves: %s", link.Approver, outcome.Effect)
	return nil
}

// report tells what it cost: by execution from the ledger, in all from the budget.
func (o *office) report(ctx context.Context) error {
	o.Say("What it cost:")
	for row, err := range o.client.Budgets().Spend(ctx, o.Name) {
		if err != nil {
			return err
		}
		used, err := o.client.Executions().Usage(ctx, row.ExecutionID)
		if err != nil {
			return err
		}
		o.Show("%s  %5d tokens  %s", row.ExecutionID, used.Amounts[tokens], money(used.Amounts[flowfabric.CostMicros]))
	}
	b, err := o.client.Budgets().Get(ctx, o.Name)
	if err != nil {
		return err
	}
	n := b.Dimensions[tokens]
	o.Show("in all %d tokens within the limit and %d beyond it, %s; warnings: %d, breaches: %d", n.Used, n.Overrun,
		money(b.Dimensions[flowfabric.CostMicros].Used), b.SoftBreaches, b.Breaches)
	return nil
}

// money writes millionths as an amount.
func money(micros int64) string {
	return fmt.Sprintf("%d.%04d", micros/1_000_000, micros%1_000_000/100)
}
