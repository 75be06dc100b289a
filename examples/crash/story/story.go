// Package story is the crash example: a worker process is killed in the middle of four steps, another one takes over and passes what
// was done, and what the dead one still had to say is refused. The example's own program tells it, and so does flowfabric demo.
package story

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/examples/stage"
)

// Crash is the story.
var Crash = stage.Story{Name: "crash", Tell: tell}

// Cities is the work: how much mail goes to each city.
const Cities flowfabric.Kind[[]string, []int] = "sort-mail"

// lease is that of the worker that dies: short, so that the takeover does not take long.
const lease = time.Second

// killAt is the step in which the first worker dies.
const killAt = "Lima"

// sign is what the first worker tells the storyteller: which step it begins, and by which lease.
type sign struct {
	Step  string
	ID    flowfabric.ID
	Lease api.Lease
}

// work is the life of the worker process that dies: it submits, works, and tells every step that it begins as a line of JSON.
func work(ctx context.Context, s *stage.Stage) error {
	client, err := s.Open(ctx)
	if err != nil {
		return err
	}
	defer client.Close(ctx)
	options := flowfabric.SubmitOptions{Lane: s.Name, IdempotencyKey: s.Name}
	if _, err := Cities.Submit(ctx, client, []string{"Oslo", "Kyoto", killAt, "Quito"}, options); err != nil {
		return err
	}
	return newWorker(s, client, lease, func(ctx context.Context, t *flowfabric.Task, city string) error {
		if err := json.NewEncoder(os.Stdout).Encode(sign{Step: city, ID: t.ID(), Lease: t.Lease()}); err != nil {
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
func newWorker(s *stage.Stage, client *flowfabric.Client, ttl time.Duration, begin func(ctx context.Context, t *flowfabric.Task, city string) error) *flowfabric.Worker {
	w := flowfabric.NewWorker(client, flowfabric.WorkerConfig{Lanes: []string{s.Name}, LeaseTTL: ttl, Logger: s.Log})
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

func tell(ctx context.Context, s *stage.Stage) error {
	if s.Part {
		return work(ctx, s)
	}
	s.Say("A worker process sorts mail in four steps.")
	last, err := killInStep(s, s.Again(ctx))
	if err != nil {
		return err
	}
	s.Say("It was killed with -9 inside step %s. Nobody told the engine.", last.Step)

	client, err := s.Open(ctx)
	if err != nil {
		return err
	}
	defer client.Close(ctx)
	s.Say("Another worker waits until the lease lapses (%s) and takes over.", lease)
	if err := takeOver(ctx, s, client, last.ID); err != nil {
		return err
	}
	return lateWrite(ctx, s, client, last)
}

// killInStep starts the worker and kills it in the middle of a step.
func killInStep(s *stage.Stage, worker *exec.Cmd) (last sign, err error) {
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
		s.Show("worker %d begins step %s of %s", worker.Process.Pid, last.Step, last.ID)
	}
	killed := worker.Process.Kill()
	_ = worker.Wait() // it was killed
	if last.Step != killAt {
		return last, errors.Join(errors.New("the worker ended by itself"), lines.Err())
	}
	return last, killed
}

// takeOver finishes the work in this process.
func takeOver(ctx context.Context, s *stage.Stage, client *flowfabric.Client, id flowfabric.ID) error {
	stop := stage.Start(ctx, newWorker(s, client, 0, func(_ context.Context, t *flowfabric.Task, city string) error {
		s.Show("this process begins step %s in attempt %d", city, t.Attempt().Index)
		return nil
	}))
	letters, err := flowfabric.Attach[[]int](client, id).Result(ctx)
	if err != nil {
		return err
	}
	s.Say("The steps that were done were not done again. Letters by city: %v", letters)
	return stop()
}

// lateWrite sends what the dead worker would have sent.
func lateWrite(ctx context.Context, s *stage.Stage, client *flowfabric.Client, last sign) error {
	answers, err := client.Work().Do(ctx, api.WorkItem{Op: api.OpComplete, ID: last.ID, Lease: last.Lease, Result: flowfabric.JSON([]int{0})})
	if err != nil {
		return err
	}
	if answers[0].Err == nil {
		return errors.New("a write with the old lease was accepted")
	}
	s.Say("The late write of the dead worker is refused: %s", flowfabric.CodeOf(answers[0].Err))
	return nil
}
