// Command hello submits a charge, works it off in the same process and prints the receipt. It is the example of the README.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/flowfabric/flowfabric"
)

type Charge struct {
	Order string
	Cents int64
}

type Receipt struct{ Number string }

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

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "hello:", err)
		os.Exit(1)
	}
}

// run tells the story on a store in a temporary directory.
func run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "flowfabric-hello")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	return submitAndWait(ctx, Bank{}, "sqlite:"+filepath.Join(dir, "app.db"))
}
