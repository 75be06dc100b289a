package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/tools/crash/history"
)

// leaseTTL is the lease of the workers: a process that is frozen for longer loses its work.
const leaseTTL = 2 * time.Second

// input is the input of every execution. Its result is "done: " and the key.
type input struct {
	Key    string `json:"key"`
	Amount int64  `json:"amount,omitempty"` // what spend reports
}

func (in input) result() string { return "done: " + in.Key }

type kind = flowfabric.Kind[input, string]

// The kinds of work.
const (
	instant kind = "instant" // ends at once
	steps   kind = "steps"   // has two steps
	waits   kind = "waits"   // waits for a signal
	spawns  kind = "spawns"  // waits for children
	flaky   kind = "flaky"   // fails twice
	slow    kind = "slow"    // runs longer than a lease
	spends  kind = "spends"  // reports usage against a budget
	doomed  kind = "doomed"  // fails for good
	merges  kind = "merges"  // a member of a flow that looks at the results of the members before it
)

// budget is the budget of spends, and unit its dimension.
const (
	budgetName = "crash"
	unit       = "units"
	estimate   = 5
)

// childNames are those of the children of spawns.
func childNames() []string { return []string{"one", "two"} }

// policy lets work survive everything that a run does to it.
func policy() *flowfabric.Policy {
	return &flowfabric.Policy{
		Retry:       &flowfabric.RetryPolicy{MaxRetries: 1000, Backoff: flowfabric.Backoff{Strategy: "fixed", Delay: 50 * time.Millisecond}},
		MaxReclaims: 10_000,
	}
}

// options are those of a submit.
func options(k kind, key string) flowfabric.SubmitOptions {
	o := flowfabric.SubmitOptions{IdempotencyKey: key, Policy: policy()}
	if k == spends {
		o.BudgetIDs, o.Estimate = []string{budgetName}, map[string]int64{unit: estimate}
	}
	return o
}

// handlers are the handlers of a worker process.
type handlers struct {
	journal *history.Journal
	tokens  func(token) error
}

// token is what a signal needs.
type token struct {
	Execution string `json:"execution"`
	Waitpoint string `json:"waitpoint"`
	Token     string `json:"token"`
}

func (h *handlers) register(w *flowfabric.Worker) {
	w.Use(h.claimed)
	for k, do := range map[kind]func(ctx context.Context, t *flowfabric.Task, in input) (string, error){
		instant: func(_ context.Context, _ *flowfabric.Task, in input) (string, error) { return in.result(), nil },
		doomed: func(context.Context, *flowfabric.Task, input) (string, error) {
			return "", flowfabric.Permanent(errors.New("it fails for good"))
		},
		steps: h.steps, waits: h.waits, spawns: h.spawns, flaky: h.flaky, slow: h.slow, spends: h.spends, merges: h.merges,
	} {
		flowfabric.Handle(w, k, do)
	}
}

// claimed notes each call of a handler.
func (h *handlers) claimed(next flowfabric.HandlerFunc) flowfabric.HandlerFunc {
	return func(ctx context.Context, t *flowfabric.Task) (flowfabric.Payload, error) {
		lease := t.Lease()
		if err := h.journal.Note(history.Call{Name: history.Claim, Execution: string(t.ID()), Epoch: lease.Epoch, Lease: lease.ID}); err != nil {
			return flowfabric.Payload{}, err
		}
		return next(ctx, t)
	}
}

// step runs a step whose function notes that it ran.
func (h *handlers) step(ctx context.Context, t *flowfabric.Task, name string) (string, error) {
	return flowfabric.Step(ctx, t, name, func(context.Context) (string, error) {
		lease := t.Lease()
		return name, h.journal.Note(history.Call{
			Name: history.Effect, Execution: string(t.ID()), Epoch: lease.Epoch, Lease: lease.ID, Key: name, Value: t.EffectKey(name),
		})
	})
}

func (h *handlers) steps(ctx context.Context, t *flowfabric.Task, in input) (string, error) {
	for _, name := range []string{"first", "second"} {
		if got, err := h.step(ctx, t, name); err != nil {
			return "", err
		} else if got != name {
			return "", flowfabric.Permanent(fmt.Errorf("the step %s has the result %q", name, got))
		}
	}
	return in.result(), nil
}

// answerTo is the payload of the signal for an execution.
func answerTo(id string) string { return "answer to " + id }

func (h *handlers) waits(ctx context.Context, t *flowfabric.Task, in input) (string, error) {
	got, err := flowfabric.AwaitSignal[string](ctx, t, "go", flowfabric.WaitOptions{Notify: func(_ context.Context, w flowfabric.Waitpoint) error {
		return h.tokens(token{string(t.ID()), w.ID, w.Token.Reveal()})
	}})
	if err != nil {
		return "", err
	}
	if got != answerTo(string(t.ID())) {
		return "", flowfabric.Permanent(fmt.Errorf("the signal has the payload %q", got))
	}
	return in.result(), nil
}

func (h *handlers) spawns(ctx context.Context, t *flowfabric.Task, in input) (string, error) {
	var children []flowfabric.Node
	for _, name := range childNames() {
		children = append(children, instant.Node(name, input{Key: in.Key + "/" + name}, flowfabric.SubmitOptions{Policy: policy()}))
	}
	ended, err := t.SpawnAndWait(ctx, flowfabric.Spawning{Children: children})
	if err != nil {
		return "", err
	}
	if len(ended) != len(children) {
		return "", flowfabric.Permanent(fmt.Errorf("%d children have ended", len(ended)))
	}
	for _, child := range ended {
		got, err := flowfabric.ChildResult[string](ctx, t, child)
		if err != nil {
			return "", err
		}
		if want := (input{Key: in.Key + "/" + child.Name}).result(); got != want {
			return "", flowfabric.Permanent(fmt.Errorf("the child %s has the result %q", child.Name, got))
		}
	}
	return in.result(), nil
}

func (h *handlers) flaky(_ context.Context, t *flowfabric.Task, in input) (string, error) {
	if t.Attempt().Index < 2 {
		return "", errors.New("it fails at first")
	}
	return in.result(), nil
}

func (h *handlers) slow(ctx context.Context, _ *flowfabric.Task, in input) (string, error) {
	if !pause(ctx, leaseTTL+leaseTTL/2) {
		return "", context.Cause(ctx)
	}
	return in.result(), nil
}

func (h *handlers) spends(ctx context.Context, t *flowfabric.Task, in input) (string, error) {
	if _, err := t.ReportUsage(ctx, flowfabric.Usage{Amounts: map[string]int64{unit: in.Amount}, DedupKey: "once"}); err != nil {
		return "", err
	}
	return in.result(), nil
}

// merges is the end of a flow: its inputs are the results of the members before it.
func (h *handlers) merges(_ context.Context, t *flowfabric.Task, in input) (string, error) {
	for _, name := range []string{"left", "right"} {
		got, err := flowfabric.InputFrom[string](t, name)
		if err != nil {
			return "", err
		}
		if want := (input{Key: memberKey(in.Key, name)}).result(); got != want {
			return "", flowfabric.Permanent(fmt.Errorf("the input from %s is %q", name, got))
		}
	}
	return in.result(), nil
}

// memberKey is the key in the input of a member.
func memberKey(flow, name string) string { return flow + "/" + name }

// upstream are the members that a member of a flow waits for.
func upstream() map[string][]string {
	return map[string][]string{"left": {"first"}, "right": {"first"}, "last": {"left", "right"}}
}

// diamond is a flow of four members. The key of its last one is that of the flow.
func diamond(key string) flowfabric.Flow {
	o := flowfabric.SubmitOptions{Policy: policy()}
	return flowfabric.Flow{
		Kind: "diamond", IdempotencyKey: key,
		Nodes: []flowfabric.Node{
			instant.Node("first", input{Key: memberKey(key, "first")}, o),
			steps.Node("left", input{Key: memberKey(key, "left")}, o).After("first"),
			flaky.Node("right", input{Key: memberKey(key, "right")}, o).After("first"),
			merges.Node("last", input{Key: key}, o).After("left", "right"),
		},
	}
}

// putBudget creates the budget, or finds it.
func putBudget(ctx context.Context, client *flowfabric.Client) error {
	_, err := client.Budgets().Create(ctx, api.Budget{Name: budgetName, Dimensions: map[string]api.BudgetLimits{unit: {Hard: 1 << 40}}})
	return err
}
