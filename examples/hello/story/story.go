// Package story is the hello example: a charge is submitted, worked off in the same process and paid for once. The example's own
// program tells it, and so does flowfabric demo.
package story

import (
	"context"
	"fmt"

	"github.com/flowfabric/flowfabric"
)

// Charge is what is to be paid, and for which order.
type Charge struct {
	Order string
	Cents int64
}

// Receipt proves that it was paid.
type Receipt struct{ Number string }

// ChargeCard is the kind of work: submitter and handler share it, and with it the types.
const ChargeCard flowfabric.Kind[Charge, Receipt] = "charge"

func submitAndWait(ctx context.Context, bank Bank, store string) error {
	client, err := flowfabric.Open(ctx, store) // "sqlite:app.db", "postgres://user@host/db"
	if err != nil {
		return err
	}
	defer client.Close(ctx)

	w := flowfabric.NewWorker(client, flowfabric.WorkerConfig{Lanes: []string{"default"}})
	flowfabric.Handle(w, ChargeCard, func(ctx context.Context, t *flowfabric.Task, in Charge) (Receipt, error) {
		return flowfabric.Step(ctx, t, "charge", func(ctx context.Context) (Receipt, error) {
			return bank.Charge(ctx, in, t.EffectKey("bank")) // after a crash here the bank sees the same key again
		})
	})
	go w.Run(ctx)
	defer w.Drain(ctx)

	run, err := ChargeCard.Submit(ctx, client, Charge{"o-17", 1999}, flowfabric.SubmitOptions{IdempotencyKey: "o-17"})
	if err != nil {
		return err
	}
	receipt, err := run.Result(ctx)
	fmt.Println(run.ID(), "paid with receipt", receipt.Number)
	return err
}

// Bank stands for a service outside: it charges once for each key.
type Bank struct{}

// Charge answers with a receipt that is the same for the same key.
func (Bank) Charge(_ context.Context, in Charge, key string) (Receipt, error) {
	return Receipt{Number: fmt.Sprintf("%s-%.8s", in.Order, key)}, nil
}

// Tell tells the story on a store.
func Tell(ctx context.Context, store string) error {
	fmt.Println("1. A charge is submitted; a worker in this process does it.")
	if err := submitAndWait(ctx, Bank{}, store); err != nil {
		return err
	}
	client, err := flowfabric.Open(ctx, store)
	if err != nil {
		return err
	}
	defer client.Close(ctx)
	return lookBack(ctx, client)
}

// lookBack submits the same work once more, lists what there is and reads what happened.
func lookBack(ctx context.Context, client flowfabric.Client) error {
	fmt.Println("2. The same order is submitted once more, after a restart. Its key is known: nothing is charged twice.")
	run, err := ChargeCard.Submit(ctx, client, Charge{"o-17", 1999}, flowfabric.SubmitOptions{IdempotencyKey: "o-17"})
	if err != nil {
		return err
	}
	receipt, err := run.Result(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("   %s, known before: %t, receipt %s\n", run.ID(), run.Duplicate(), receipt.Number)

	fmt.Println("3. One execution is listed.")
	for x, err := range client.Executions().List(ctx) {
		if err != nil {
			return err
		}
		fmt.Printf("   %s %s %s after %d attempt\n", x.ID, x.Kind, x.Status, x.TotalAttempts)
	}

	fmt.Println("4. What happened to it:")
	page, err := client.Events().Read(ctx, flowfabric.ReadOptions{After: flowfabric.FromStart, EventFilter: flowfabric.EventFilter{ExecutionID: run.ID()}})
	if err != nil {
		return err
	}
	for _, event := range page.Events {
		fmt.Printf("   %s %s\n", event.At.Format("15:04:05.000"), event.Kind)
	}
	return nil
}
