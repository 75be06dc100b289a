package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"golang.org/x/sync/errgroup"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/bench/measure"
)

// What FlowFabric is measured by: through the public API alone, with default settings but the worker's concurrency, which is what
// the peers are given too.
const (
	ffConcurrency = 1000 // tasks at a time in drain and cycle, as River tuned
	ffArrivals    = 50   // a second, in start
	ffInput       = 64   // bytes
)

var ffNoop flowfabric.Kind[[]byte, flowfabric.None] = "noop"

// ffParts are what is measured of FlowFabric, each on a store of its own.
var ffParts = []ffPart{
	{"submit", ffSubmit},
	{"drain", ffDrain},
	{"cycle.64", ffCycle(64)},
	{"cycle.512", ffCycle(512)},
	{"start", ffStart},
	{"resume", ffResume},
}

type ffPart struct {
	name string
	run  func(ctx context.Context, env Env, client *flowfabric.Client, sample *Sample) error
}

func ffPostgres(ctx context.Context, env Env) (*Sample, error) {
	return inProcess.measure(ctx, env, env.Postgres, ffParts)
}

func ffSQLite(ctx context.Context, env Env) (*Sample, error) {
	return inProcess.measure(ctx, env, "sqlite:"+env.Dir, ffParts)
}

// Over HTTP the parts are measured that workers are in.
func ffHTTP(ctx context.Context, env Env) (*Sample, error) {
	return overHTTP.measure(ctx, env, env.Postgres, ffParts[1:4])
}

func ffHTTPSQLite(ctx context.Context, env Env) (*Sample, error) {
	return overHTTP.measure(ctx, env, "sqlite:"+env.Dir, ffParts[1:4])
}

// measure takes the figures of all parts that are asked for.
func (w way) measure(ctx context.Context, env Env, store string, parts []ffPart) (*Sample, error) {
	sample := &Sample{}
	for _, part := range parts {
		if env.Part != "" && env.Part != part.name {
			continue
		}
		err := w.on(ctx, store, func(ctx context.Context, _ string, client *flowfabric.Client) error {
			return part.run(ctx, env, client, sample)
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return sample, nil
}

// on runs something on a fresh store beside the given one.
func (w way) on(ctx context.Context, store string, run func(ctx context.Context, address string, client *flowfabric.Client) error) error {
	address, remove, err := measure.FreshStore(ctx, store)
	if err != nil {
		return err
	}
	client, end, err := w.open(ctx, address)
	if err != nil {
		return errors.Join(err, remove())
	}
	return errors.Join(run(ctx, address, client), end(ctx), remove())
}

// ffSubmit hands in work by single calls of 64 callers, then in bulk.
func ffSubmit(ctx context.Context, env Env, client *flowfabric.Client, sample *Sample) error {
	singles := env.Size(20_000)
	began := time.Now()
	if err := submitSingly(ctx, client, singles, 64, freely); err != nil {
		return err
	}
	sample.Rate("submit.single", singles, time.Since(began))
	bulk := env.Size(100_000)
	began = time.Now()
	if err := submitInBulk(ctx, client, bulk, freely); err != nil {
		return err
	}
	sample.Rate("submit.bulk", bulk, time.Since(began))
	return nil
}

// freely is a submit that nothing limits.
func freely(int) flowfabric.SubmitOptions { return flowfabric.SubmitOptions{} }

func submitSingly(ctx context.Context, client *flowfabric.Client, n, callers int, options func(i int) flowfabric.SubmitOptions) error {
	var left atomic.Int64
	left.Store(int64(n))
	group, ctx := errgroup.WithContext(ctx)
	for range callers {
		group.Go(func() error {
			for {
				i := int(left.Add(-1))
				if i < 0 {
					return nil
				}
				if _, err := client.Submit(ctx, ffNoop.Submission(make([]byte, ffInput), options(i))); err != nil {
					return err
				}
			}
		})
	}
	return group.Wait()
}

func submitInBulk(ctx context.Context, client *flowfabric.Client, n int, options func(i int) flowfabric.SubmitOptions) error {
	for done := 0; done < n; {
		all := make([]flowfabric.Submission, min(5000, n-done))
		for i := range all {
			all[i] = ffNoop.Submission(make([]byte, ffInput), options(done+i))
		}
		results, err := client.SubmitMany(ctx, all)
		if err != nil {
			return err
		}
		for _, r := range results {
			if r.Err != nil {
				return r.Err
			}
		}
		done += len(all)
	}
	return nil
}

// counter is a no-op handler that knows when n tasks have begun and tells how long each waited.
type counter struct {
	left atomic.Int64
	done chan struct{}
	once sync.Once
}

func newCounter(n int) *counter {
	c := &counter{done: make(chan struct{})}
	c.left.Store(int64(n))
	return c
}

func (c *counter) one() {
	if c.left.Add(-1) <= 0 {
		c.once.Do(func() { close(c.done) })
	}
}

// work runs a worker with a no-op handler until n executions have completed, by the client's own account of completions.
func work(ctx context.Context, client *flowfabric.Client, concurrency, n int, during func(ctx context.Context) error) (time.Duration, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	seen := newCounter(n)
	worker := flowfabric.NewWorker(client, flowfabric.WorkerConfig{Concurrency: concurrency, Lanes: []string{"default"}})
	flowfabric.Handle(worker, ffNoop, func(context.Context, *flowfabric.Task, []byte) (flowfabric.None, error) {
		seen.one()
		return flowfabric.None{}, nil
	})
	group, workCtx := errgroup.WithContext(ctx)
	began := time.Now()
	group.Go(func() error { return worker.Run(workCtx) })
	group.Go(func() error {
		defer stop() // Run returns when the last completion is acknowledged
		if err := during(workCtx); err != nil {
			return err
		}
		select {
		case <-seen.done:
		case <-workCtx.Done():
		}
		return nil
	})
	err := group.Wait()
	return time.Since(began), err
}

// ffDrain works off a backlog.
func ffDrain(ctx context.Context, env Env, client *flowfabric.Client, sample *Sample) error {
	n := env.Size(100_000)
	if err := submitInBulk(ctx, client, n, freely); err != nil {
		return err
	}
	took, err := work(ctx, client, ffConcurrency, n, func(context.Context) error { return nil })
	if err != nil {
		return err
	}
	sample.Rate("drain", n, took)
	return checkCompleted(ctx, client, n, sample)
}

// ffCycle runs the whole cycle by single calls of so many callers while a worker works.
func ffCycle(callers int) func(ctx context.Context, env Env, client *flowfabric.Client, sample *Sample) error {
	return func(ctx context.Context, env Env, client *flowfabric.Client, sample *Sample) error {
		n := env.Size(60_000)
		took, err := work(ctx, client, ffConcurrency, n, func(ctx context.Context) error { return submitSingly(ctx, client, n, callers, freely) })
		if err != nil {
			return err
		}
		sample.Rate(fmt.Sprintf("cycle.%d", callers), n, took)
		return checkCompleted(ctx, client, n, sample)
	}
}

// countsReach is how long the search rows may be behind after a sample: a count waits for them no longer than a second.
const countsReach = 2 * time.Minute

// checkCompleted makes the sample invalid unless everything has succeeded, as far as counts are exact.
func checkCompleted(ctx context.Context, client *flowfabric.Client, n int, sample *Sample) error {
	for began := time.Now(); ; {
		open, err := client.Executions().Count(ctx, ops.Filter{Status: []flowfabric.Status{
			flowfabric.StatusReady, flowfabric.StatusRunning, flowfabric.StatusDelayed, flowfabric.StatusBlocked, flowfabric.StatusFailed,
		}})
		if err != nil || open.Total == 0 {
			return err
		}
		if time.Since(began) > countsReach {
			sample.Fail("%d of %d executions have not succeeded", open.Total, n)
			return nil
		}
	}
}
