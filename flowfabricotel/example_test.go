package flowfabricotel_test

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/flowfabricotel"
	"github.com/flowfabric/flowfabric/sqlite"
)

const (
	Order flowfabric.Kind[string, flowfabric.ID]   = "order"
	Ship  flowfabric.Kind[string, flowfabric.None] = "ship"
)

// orderAndShip submits an order, whose handler submits the shipping inside a step.
func orderAndShip(ctx context.Context, path string, provider trace.TracerProvider) error {
	client, err := sqlite.Open(ctx, path, sqlite.Config{Tracer: flowfabricotel.New(provider)})
	if err != nil {
		return err
	}
	defer client.Close(ctx)

	w := flowfabric.NewWorker(client, flowfabric.WorkerConfig{})
	flowfabric.Handle(w, Order, func(ctx context.Context, t *flowfabric.Task, item string) (flowfabric.ID, error) {
		return flowfabric.Step(ctx, t, "ship", func(ctx context.Context) (flowfabric.ID, error) {
			run, err := Ship.Submit(ctx, client, item) // under the span of the step, because of its ctx
			if err != nil {
				return "", err
			}
			return run.ID(), nil
		})
	})
	flowfabric.Handle(w, Ship, func(context.Context, *flowfabric.Task, string) (flowfabric.None, error) {
		return flowfabric.None{}, nil
	})
	go w.Run(ctx)
	defer w.Drain(ctx)

	ctx, span := provider.Tracer("shop").Start(ctx, "checkout")
	run, err := Order.Submit(ctx, client, "a hat")
	span.End()
	if err != nil {
		return err
	}
	shipping, err := run.Result(ctx)
	if err != nil {
		return err
	}
	_, err = client.Wait(ctx, shipping)
	return err
}

// One trace goes from the program's own span through the submit, the handler and its step to what was submitted there.
func Example() {
	dir, err := os.MkdirTemp("", "flowfabric-otel")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	seen := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(seen))
	if err := orderAndShip(context.Background(), filepath.Join(dir, "app.db"), provider); err != nil {
		fmt.Println(err)
	}
	all := seen.Ended()
	for _, s := range all {
		if s.Name() == "checkout" {
			printTree(all, s, 0)
		}
	}
	// Output:
	// checkout
	//   ff.command submit order
	//   ff.handler order
	//     ff.step ship
	//       ff.command submit ship
	//       ff.command step order
	//       ff.handler ship
	//         ff.command complete ship
	//     ff.command complete order
}

// printTree prints a span and those below it: its own in the order of their starts, then the handlers of what was submitted there.
// Commits are left out, for commands that come at the same time share one.
func printTree(all []sdktrace.ReadOnlySpan, s sdktrace.ReadOnlySpan, depth int) {
	fmt.Println(strings.TrimRight(strings.Repeat("  ", depth)+s.Name()+" "+told(s), " "))
	var below []sdktrace.ReadOnlySpan
	for _, c := range all {
		if c.Parent().SpanID() == s.SpanContext().SpanID() && c.Name() != "ff.commit" {
			below = append(below, c)
		}
	}
	slices.SortFunc(below, func(a, b sdktrace.ReadOnlySpan) int {
		return cmp.Or(int(a.SpanKind())-int(b.SpanKind()), a.StartTime().Compare(b.StartTime()))
	})
	for _, c := range below {
		printTree(all, c, depth+1)
	}
}

// told tells spans of one name apart.
func told(s sdktrace.ReadOnlySpan) string {
	given := attribute.NewSet(s.Attributes()...)
	names := []attribute.Key{"ff.operation", "ff.kind"}
	if s.Name() == "ff.step" {
		names = []attribute.Key{"ff.step"}
	}
	var words []string
	for _, name := range names {
		if value, has := given.Value(name); has {
			words = append(words, value.AsString())
		}
	}
	return strings.Join(words, " ")
}
