// Package story is the crash example: a worker process is killed in the middle of four steps, another one takes over and passes what
// was done, and what the dead one still had to say is refused. The example's own program tells it, and so does flowfabric demo.
package story

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"time"

	"github.com/flowfabric/flowfabric"
)

// Cities is the work: how much mail goes to each city.
const Cities flowfabric.Kind[[]string, []int] = "sort-mail"

// lease is short, so that the takeover does not take long.
const lease = 2 * time.Second

// killAt is the step in which the first worker dies.
const killAt = "Lima"

// sign is what the first worker tells the storyteller: which step it begins, and by which lease.
type sign struct {
	Step  string
	ID    flowfabric.ID
	Lease flowfabric.Lease
}

// Work is the life of a worker process: it opens the store, works, and tells every step that it begins as a line of JSON.
func Work(ctx context.Context, store string, tell io.Writer) error {
	client, err := flowfabric.Open(ctx, store)
	if err != nil {
		return err
	}
	defer client.Close(ctx)
	if _, err := Cities.Submit(ctx, client, []string{"Oslo", "Kyoto", killAt, "Quito"}, flowfabric.SubmitOptions{IdempotencyKey: "mail of today"}); err != nil {
		return err
	}
	return newWorker(client, func(ctx context.Context, t *flowfabric.Task, city string) error {
		if err := json.NewEncoder(tell).Encode(sign{Step: city, ID: t.ID(), Lease: t.Lease()}); err != nil {
			return err
		}
		if city != killAt {
			return nil
		}
		<-ctx.Done() // the step that never ends
		return context.Cause(ctx)
	}).Run(ctx)
}

// newWorker sorts mail in steps; begin is called inside each of them.
func newWorker(client flowfabric.Client, begin func(ctx context.Context, t *flowfabric.Task, city string) error) *flowfabric.Worker {
	w := flowfabric.NewWorker(client, flowfabric.WorkerConfig{LeaseTTL: lease})
	flowfabric.Handle(w, Cities, func(ctx context.Context, t *flowfabric.Task, cities []string) ([]int, error) {
		letters := make([]int, len(cities))
		for i, city := range cities {
			count, err := flowfabric.Step(ctx, t, city, func(ctx context.Context) (int, error) { return 10 * len(city), begin(ctx, t, city) })
			if err != nil {
				return nil, err
			}
			letters[i] = count
		}
		return letters, nil
	})
	return w
}

// Tell tells the story on a store. worker makes a process that calls Work on the same store.
func Tell(ctx context.Context, store string, worker *exec.Cmd) error {
	fmt.Println("1. A worker process sorts mail in four steps.")
	last, err := killInStep(ctx, worker)
	if err != nil {
		return err
	}
	fmt.Printf("2. It was killed with -9 inside step %s. Nobody told the engine.\n", last.Step)

	client, err := flowfabric.Open(ctx, store)
	if err != nil {
		return err
	}
	defer client.Close(ctx)
	fmt.Printf("3. Another worker waits until the lease lapses (%s) and takes over.\n", lease)
	if err := takeOver(ctx, client, last.ID); err != nil {
		return err
	}
	return lateWrite(ctx, client, last)
}

// killInStep starts the worker and kills it in the middle of a step.
func killInStep(ctx context.Context, worker *exec.Cmd) (last sign, err error) {
	out, err := worker.StdoutPipe()
	if err != nil {
		return last, err
	}
	if err := worker.Start(); err != nil {
		return last, err
	}
	lines := bufio.NewScanner(out)
	for last.Step != killAt && lines.Scan() {
		if err := json.Unmarshal(lines.Bytes(), &last); err != nil {
			return last, err
		}
		fmt.Printf("   worker %d begins step %s of %s\n", worker.Process.Pid, last.Step, last.ID)
	}
	killed := worker.Process.Kill()
	_ = worker.Wait() // it was killed
	if last.Step != killAt {
		return last, fmt.Errorf("the worker ended by itself: %w", lines.Err())
	}
	return last, killed
}

// takeOver finishes the work in this process.
func takeOver(ctx context.Context, client flowfabric.Client, id flowfabric.ID) error {
	w := newWorker(client, func(_ context.Context, t *flowfabric.Task, city string) error {
		fmt.Printf("   this process begins step %s in attempt %d\n", city, t.Attempt().Index)
		return nil
	})
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	letters, err := flowfabric.Attach[[]int](client, id).Result(ctx)
	if err != nil {
		return err
	}
	if err := w.Drain(ctx); err != nil {
		return err
	}
	fmt.Println("4. The steps that were done were not done again. Letters by city:", letters)
	return <-done
}

// lateWrite sends what the dead worker would have sent.
func lateWrite(ctx context.Context, client flowfabric.Client, last sign) error {
	answers, err := client.Work().Do(ctx, flowfabric.WorkItem{Op: flowfabric.OpComplete, ID: last.ID, Lease: last.Lease, Result: flowfabric.JSON([]int{0})})
	if err != nil {
		return err
	}
	if answers[0].Err == nil {
		return fmt.Errorf("a write with the old lease was accepted")
	}
	fmt.Println("5. The late write of the dead worker is refused:", flowfabric.CodeOf(answers[0].Err))
	return nil
}
