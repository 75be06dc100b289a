package flowfabric_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/flowfabric/flowfabric"
)

// charge is a bank that charges at most once per key.
func charge(_ context.Context, order, key string) (string, error) {
	if key == "" {
		return "", errors.New("no key")
	}
	return "receipt for " + order, nil
}

const Pay flowfabric.Kind[string, string] = "pay" // takes an order, returns a receipt

func pay(ctx context.Context, t *flowfabric.Task, order string) (string, error) {
	return flowfabric.Step(ctx, t, "card", func(ctx context.Context) (string, error) {
		return charge(ctx, order, t.EffectKey("bank")) // one key for all attempts
	})
}

func start(ctx context.Context, c *flowfabric.Client) (*flowfabric.Run[string], error) {
	w := flowfabric.NewWorker(c, flowfabric.WorkerConfig{})
	flowfabric.Handle(w, Pay, pay)
	go w.Run(ctx)
	return Pay.Submit(ctx, c, "order 17") // stored when it returns; run.Result waits
}

func Example_readme() {
	client, stop := begin(context.Background(), func(w *flowfabric.Worker) { flowfabric.Handle(w, Pay, pay) })
	defer stop()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	run, err := start(ctx, client)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(run.Result(ctx))
	// Output: receipt for order 17 <nil>
}
