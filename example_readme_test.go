package flowfabric_test

import (
	"context"
	"fmt"

	"github.com/flowfabric/flowfabric"
)

// chargeCard stands for a service that charges at most once per key.
func chargeCard(_ context.Context, order, key string) (string, error) {
	if key == "" {
		return "", fmt.Errorf("order %s has no key", order)
	}
	return "receipt for " + order, nil
}

const Pay flowfabric.Kind[string, string] = "pay" // from an order number to a receipt

func pay(ctx context.Context, t *flowfabric.Task, order string) (string, error) {
	return flowfabric.Step(ctx, t, "charge", func(ctx context.Context) (string, error) {
		return chargeCard(ctx, order, t.EffectKey("bank")) // same key in every attempt
	})
}

func payOnce(ctx context.Context, c *flowfabric.Client, order string) (string, error) {
	w := flowfabric.NewWorker(c, flowfabric.WorkerConfig{})
	flowfabric.Handle(w, Pay, pay)
	go w.Run(ctx)
	opts := flowfabric.SubmitOptions{IdempotencyKey: order} // submitting twice is safe
	run, err := Pay.Submit(ctx, c, order, opts)
	if err != nil {
		return "", err
	}
	return run.Result(ctx)
}

func Example_readme() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	client, stop := begin(ctx, func(w *flowfabric.Worker) { flowfabric.Handle(w, Pay, pay) })
	defer stop()
	fmt.Println(payOnce(ctx, client, "o-17"))
	// Output: receipt for o-17 <nil>
}
