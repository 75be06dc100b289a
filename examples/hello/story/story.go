// Package story is the hello example: a charge is submitted, worked off in the same process and paid for once. The example's own
// program tells it, and so does flowfabric demo.
package story

import (
	"context"
	"fmt"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/examples/stage"
)

// Hello is the story.
var Hello = stage.Story{Name: "hello", Tell: tell}

// Charge is what is to be paid, and for which order.
type Charge struct {
	Order string
	Cents int64
}

// Receipt proves that it was paid.
type Receipt struct{ Number string }

// ChargeCard is the kind of work: submitter and handler share it, and with it the types.
const ChargeCard flowfabric.Kind[Charge, Receipt] = "charge"

func submitAndWait(ctx context.Context, s *stage.Stage, client *flowfabric.Client, bank Bank, order string) error {
	w := flowfabric.NewWorker(client, flowfabric.WorkerConfig{Lanes: []string{"default"}})
	flowfabric.Handle(w, ChargeCard, func(ctx context.Context, t *flowfabric.Task, in Charge) (Receipt, error) {
		return flowfabric.Step(ctx, t, "charge", func(ctx context.Context) (Receipt, error) {
			return bank.Charge(ctx, in, t.EffectKey("bank")) // after a crash here the bank sees the same key again
		})
	})
	go w.Run(ctx)
	defer w.Drain(ctx)

	run, err := ChargeCard.Submit(ctx, client, Charge{order, 1999}, flowfabric.SubmitOptions{IdempotencyKey: order})
	if err != nil {
		return err
	}
	receipt, err := run.Result(ctx)
	if err != nil {
		return err
	}
	s.Show("%s paid with receipt %s", run.ID(), receipt.Number)
	return nil
}

// Bank stands for a service outside: it charges once for each key.
type Bank struct{}

// Charge answers with a receipt that is the same for the same key.
func (Bank) Charge(_ context.Context, in Charge, key string) (Receipt, error) {
	return Receipt{Number: fmt.Sprintf("%s-%.8s", in.Order, key)}, nil
}

func tell(ctx context.Context, s *stage.Stage) error {
	order := "o-17-" + s.Name
	s.Say("A charge is submitted; a worker in this process does it.")
	client, err := s.Open(ctx)
	if err != nil {
		return err
	}
	err = submitAndWait(ctx, s, client, Bank{}, order)
	if closed := client.Close(ctx); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	if client, err = s.Open(ctx); err != nil {
		return err
	}
	defer client.Close(ctx)
	return lookBack(ctx, s, client, order)
}

// lookBack submits the same work once more, lists what there is and reads what happened.
func lookBack(ctx context.Context, s *stage.Stage, client *flowfabric.Client, order string) error {
	s.Say("The same order is submitted once more, after a restart. Its key is known: nothing is charged twice.")
	run, err := ChargeCard.Submit(ctx, client, Charge{order, 1999}, flowfabric.SubmitOptions{IdempotencyKey: order})
	if err != nil {
		return err
	}
	receipt, err := run.Result(ctx)
	if err != nil {
		return err
	}
	s.Show("%s, known before: %t, receipt %s", run.ID(), run.Duplicate(), receipt.Number)

	s.Say("One execution is listed for the order.")
	for x, err := range client.Executions().List(ctx, ops.ListOptions{Filter: ops.Filter{IdempotencyKey: []string{order}}}) {
		if err != nil {
			return err
		}
		s.Show("%s %s %s after %d attempt", x.ID, x.Kind, x.Status, x.TotalAttempts)
	}
	s.Say("What happened to it:")
	_, err = s.ShowEvents(ctx, client, run.ID(), api.FromStart)
	return err
}
