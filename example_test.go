package flowfabric_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/sqlite"
)

type Charge struct {
	Order string
	Cents int64
}

type Receipt struct{ Number string }

// ChargeCard is known to those who submit and to those who work.
const ChargeCard flowfabric.Kind[Charge, Receipt] = "charge"

// Bank charges a card at most once for each key.
type Bank struct{}

func (Bank) Charge(_ context.Context, in Charge, key string) (Receipt, error) {
	if key == "" {
		return Receipt{}, errors.New("a charge needs a key")
	}
	return Receipt{Number: "r-" + in.Order}, nil
}

// store is a new SQLite file, and how to remove it.
func store() (path string, remove func()) {
	dir, err := os.MkdirTemp("", "flowfabric")
	if err != nil {
		panic(err)
	}
	return filepath.Join(dir, "app.db"), func() { _ = os.RemoveAll(dir) }
}

// begin opens a client on a new store and runs a worker with these handlers. The returned function stops both.
func begin(ctx context.Context, register func(*flowfabric.Worker)) (*flowfabric.Client, func()) {
	path, remove := store()
	client, err := sqlite.Open(ctx, path)
	if err != nil {
		panic(err)
	}
	w := flowfabric.NewWorker(client, flowfabric.WorkerConfig{})
	register(w)
	running, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- w.Run(running) }()
	return client, func() {
		stop()
		if err := errors.Join(<-done, client.Close(ctx)); err != nil {
			panic(err)
		}
		remove()
	}
}

// The first example is that of U148, and says besides how worker and client end.

// Submit a piece of work, let a worker do it, wait for the result.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	bank := Bank{}
	path, remove := store()
	defer remove()

	client, err := sqlite.Open(ctx, path) // or postgres.Open(ctx, url)
	if err != nil {
		fmt.Println(err)
		return
	}

	w := flowfabric.NewWorker(client, flowfabric.WorkerConfig{Lanes: []string{"default"}})
	flowfabric.Handle(w, ChargeCard, func(ctx context.Context, t *flowfabric.Task, in Charge) (Receipt, error) {
		return flowfabric.Step(ctx, t, "charge", func(ctx context.Context) (Receipt, error) {
			return bank.Charge(ctx, in, t.EffectKey("bank")) // after a crash here the bank sees the same key again
		})
	})
	stopped := make(chan error)
	go func() { stopped <- w.Run(ctx) }()

	run, err := ChargeCard.Submit(ctx, client, Charge{"o-17", 1999}, flowfabric.SubmitOptions{IdempotencyKey: "o-17"})
	if err != nil {
		fmt.Println(err)
		return
	}
	receipt, err := run.Result(ctx)
	fmt.Println(receipt.Number, err)

	stop() // the worker drains
	fmt.Println(<-stopped, client.Close(context.Background()))
	// Output:
	// r-o-17 <nil>
	// <nil> <nil>
}

// A handler that is called again passes the steps it has done.
func ExampleStep() {
	ctx := context.Background()
	const Order flowfabric.Kind[string, string] = "order"
	client, end := begin(ctx, func(w *flowfabric.Worker) {
		flowfabric.Handle(w, Order, func(ctx context.Context, t *flowfabric.Task, item string) (string, error) {
			number, err := flowfabric.Step(ctx, t, "reserve", func(context.Context) (int, error) {
				fmt.Println("reserving", item)
				return 17, nil
			})
			if err != nil {
				return "", err
			}
			if t.Attempt().Type == "initial" {
				return "", errors.New("the courier is not there yet")
			}
			return fmt.Sprintf("%s sent as %d", item, number), nil
		})
	})
	defer end()

	run, err := Order.Submit(ctx, client, "lamp", flowfabric.SubmitOptions{Policy: &flowfabric.Policy{
		Retry: &flowfabric.RetryPolicy{Backoff: flowfabric.Backoff{Initial: time.Millisecond}},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(run.Result(ctx))
	// Output:
	// reserving lamp
	// lamp sent as 17 <nil>
}

// The policy says what is worth a retry; the handler says what is not.
func ExampleRetryPolicy() {
	ctx := context.Background()
	const Fetch flowfabric.Kind[string, flowfabric.None] = "fetch"
	client, end := begin(ctx, func(w *flowfabric.Worker) {
		flowfabric.Handle(w, Fetch, func(_ context.Context, t *flowfabric.Task, url string) (done flowfabric.None, err error) {
			fmt.Println("attempt", t.Attempt().Index)
			if t.Attempt().Index < 2 {
				return done, flowfabric.Category("network", errors.New("no route"))
			}
			return done, flowfabric.Permanent(fmt.Errorf("%s is gone", url))
		})
	})
	defer end()

	run, err := Fetch.Submit(ctx, client, "http://example.com", flowfabric.SubmitOptions{Policy: &flowfabric.Policy{
		Retry: &flowfabric.RetryPolicy{
			MaxRetries: 5, Categories: []string{"network"},
			Backoff: flowfabric.Backoff{Strategy: "fixed", Delay: time.Millisecond},
		},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = run.Result(ctx)
	var ended *flowfabric.ExecutionError
	fmt.Println(errors.As(err, &ended), ended.Reason, ended.Failure.Message)
	// Output:
	// attempt 0
	// attempt 1
	// attempt 2
	// true permanent http://example.com is gone
}

// What an operator does: look, hold, let go, cancel, run again.
func ExampleOperate() {
	ctx := context.Background()
	path, remove := store()
	defer remove()
	client, err := sqlite.Open(ctx, path, sqlite.Config{Principal: "ana"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = client.Close(ctx) }()
	run, err := ChargeCard.Submit(ctx, client, Charge{Order: "o-17", Cents: 1999})
	if err != nil {
		fmt.Println(err)
		return
	}

	show := func(x *flowfabric.Execution, err error) {
		if err != nil {
			fmt.Println(flowfabric.CodeOf(err))
			return
		}
		fmt.Println(x.Status, x.Reason)
	}
	why := ops.Action{Reason: "suspicious"}
	show(client.Operate().Hold(ctx, run.ID(), why))
	show(client.Operate().ReleaseHold(ctx, run.ID()))
	show(client.Operate().Replay(ctx, run.ID()))
	show(client.Cancel(ctx, run.ID(), "fraud"))
	show(client.Operate().Replay(ctx, run.ID(), ops.ReplayOptions{Action: ops.Action{Reason: "it was none"}}))
	// Output:
	// blocked paused_by_operator
	// ready waiting_for_worker
	// execution_not_terminal
	// cancelled cancelled
	// ready waiting_for_worker
}

// Lists are loops.
func ExampleExecutions() {
	ctx := context.Background()
	client, end := begin(ctx, func(w *flowfabric.Worker) {
		flowfabric.Handle(w, ChargeCard, func(_ context.Context, _ *flowfabric.Task, in Charge) (Receipt, error) {
			return Receipt{}, flowfabric.Permanent(fmt.Errorf("no money for %s", in.Order)) // it is not retried
		})
	})
	defer end()
	for _, order := range []string{"o-1", "o-2"} {
		run, err := ChargeCard.Submit(ctx, client, Charge{Order: order}, flowfabric.SubmitOptions{Tags: map[string]string{"order": order}})
		if err != nil {
			fmt.Println(err)
			return
		}
		if _, err := run.Wait(ctx); err != nil {
			fmt.Println(err)
			return
		}
	}

	failed := ops.Filter{Status: []flowfabric.Status{flowfabric.StatusFailed}, HasTags: []string{"order"}}
	for x, err := range client.Executions().List(ctx, ops.ListOptions{Filter: failed, Order: ops.CreatedAsc}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(x.Tags["order"], x.Failure.Message)
	}
	// Output:
	// o-1 no money for o-1
	// o-2 no money for o-2
}

// The log of everything that happened can be followed from any place.
func ExampleEvents() {
	ctx, enough := context.WithCancel(context.Background())
	defer enough()
	client, end := begin(context.Background(), func(w *flowfabric.Worker) {
		flowfabric.Handle(w, ChargeCard, func(context.Context, *flowfabric.Task, Charge) (Receipt, error) { return Receipt{}, nil })
	})
	defer end()
	run, err := ChargeCard.Submit(ctx, client, Charge{Order: "o-17"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for event, err := range client.Events().Follow(ctx, ops.ReadOptions{
		After: api.FromStart, EventFilter: ops.EventFilter{ExecutionID: run.ID()},
	}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(event.Kind, event.Actor.Type)
		if event.Kind == "execution.completed" {
			enough()
		}
	}
	// Output:
	// execution.submitted client
	// lease.acquired worker
	// execution.completed worker
}
