package flowfabrictest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/flowfabrictest"
)

// Invoice is the input of the reminder in the example.
type Invoice struct{ Number string }

// Remind reminds of an invoice until it is paid.
const Remind flowfabric.Kind[Invoice, string] = "remind"

// remind asks again every day until the invoice is paid.
func remind(paid func(Invoice) bool) func(context.Context, *flowfabric.Task, Invoice) (string, error) {
	return func(_ context.Context, _ *flowfabric.Task, in Invoice) (string, error) {
		if !paid(in) {
			return "", flowfabric.RetryAfter(24*time.Hour, errors.New("not paid yet"))
		}
		return in.Number + " is paid", nil
	}
}

func Test_an_invoice_is_asked_for_every_day_until_it_is_paid(t *testing.T) {
	t.Parallel()
	env := flowfabrictest.New(t)
	start, asked := env.Now(), 0
	paid := func(Invoice) bool {
		asked++
		return env.Now().Sub(start) >= 72*time.Hour
	}
	env.Worker(flowfabric.WorkerConfig{}, func(w *flowfabric.Worker) {
		flowfabric.Handle(w, Remind, remind(paid))
	})
	policy := &flowfabric.Policy{Retry: &flowfabric.RetryPolicy{MaxRetries: 30}}
	run, err := Remind.Submit(t.Context(), env.Client, Invoice{"17"}, flowfabric.SubmitOptions{Policy: policy})
	if err != nil {
		t.Fatal(err)
	}

	env.Advance(72 * time.Hour)

	if answer, err := run.Result(t.Context()); answer != "17 is paid" || asked != 4 {
		t.Errorf("%q after asking %d times: %v", answer, asked, err)
	}
}

func TestExplore_an_invoice_is_paid_for_wherever_the_process_dies(t *testing.T) {
	t.Parallel()
	flowfabrictest.Explore(t, func(t *testing.T, env *flowfabrictest.Env) {
		env.Worker(flowfabric.WorkerConfig{}, func(w *flowfabric.Worker) {
			flowfabric.Handle(w, Remind, remind(func(Invoice) bool { return true }))
		})
		run, err := Remind.Submit(t.Context(), env.Client, Invoice{"17"})
		if err != nil {
			t.Fatal(err)
		}

		env.Advance(time.Hour) // time enough for the lease of a dead worker to lapse

		if x, err := env.Get(t.Context(), run.ID()); err != nil || x.Status != flowfabric.StatusSucceeded {
			t.Errorf("%+v, %v", x, err)
		}
	})
}

// A test takes the place of tb with its own t.
func ExampleNew() {
	tb := &recorder{}
	defer tb.end()

	env := flowfabrictest.New(tb)
	env.Worker(flowfabric.WorkerConfig{}, func(w *flowfabric.Worker) {
		flowfabric.Handle(w, Remind, func(_ context.Context, _ *flowfabric.Task, in Invoice) (string, error) {
			return "reminded of " + in.Number + " on " + env.Now().Format(time.DateOnly), nil
		})
	})
	ctx := context.Background()
	run, err := Remind.Submit(ctx, env.Client, Invoice{"17"}, flowfabric.SubmitOptions{Delay: 72 * time.Hour})
	if err != nil {
		fmt.Println(err)
		return
	}
	crash := env.CrashAt(flowfabrictest.AfterCommit("complete"))
	env.Advance(72 * time.Hour)
	answer, err := run.Result(ctx)
	fmt.Println(answer, err, crash.Hit())
	// Output: reminded of 17 on 2026-01-04 <nil> true
}
