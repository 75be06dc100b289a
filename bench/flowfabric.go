package bench

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/flowfabric/flowfabric"
)

// What FlowFabric is measured by: through the public API alone, with default settings but the worker's concurrency, which is what
// the peers are given too.
const (
	ffConcurrency = 1000 // tasks at a time in drain and cycle, as River tuned
	ffArrivals    = 50   // a second, in start
	ffInput       = 64   // bytes
)

var ffNoop flowfabric.Kind[[]byte, flowfabric.None] = "noop"

// ffStore makes a fresh, empty store and says how to remove it.
type ffStore func(ctx context.Context) (address string, remove func(), err error)

func ffPostgres(ctx context.Context, env Env) (*Sample, error) {
	return measureFF(ctx, env, func(ctx context.Context) (string, func(), error) { return freshDatabase(ctx, env.Postgres) })
}

func ffSQLite(ctx context.Context, env Env) (*Sample, error) {
	var n atomic.Int64
	return measureFF(ctx, env, func(context.Context) (string, func(), error) {
		path := filepath.Join(env.Dir, fmt.Sprintf("ff-%d-%d.db", time.Now().UnixNano(), n.Add(1)))
		return "sqlite:" + path, func() {}, nil
	})
}

// measureFF takes every figure on a store of its own.
func measureFF(ctx context.Context, env Env, fresh ffStore) (*Sample, error) {
	sample := &Sample{}
	for _, part := range []struct {
		name string
		run  func(ctx context.Context, env Env, client flowfabric.Client, sample *Sample) error
	}{
		{"submit", ffSubmit},
		{"drain", ffDrain},
		{"cycle.64", ffCycle(64)},
		{"cycle.512", ffCycle(512)},
		{"start", ffStart},
	} {
		if env.Part != "" && env.Part != part.name {
			continue
		}
		if err := ffPart(ctx, env, fresh, sample, part.run); err != nil {
			return nil, fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return sample, nil
}

func ffPart(ctx context.Context, env Env, fresh ffStore, sample *Sample, run func(context.Context, Env, flowfabric.Client, *Sample) error) error {
	address, remove, err := fresh(ctx)
	if err != nil {
		return err
	}
	defer remove()
	client, err := flowfabric.Open(ctx, address)
	if err != nil {
		return err
	}
	err = run(ctx, env, client, sample)
	if closeErr := client.Close(ctx); err == nil {
		err = closeErr
	}
	return err
}

// ffSubmit hands in work by single calls of 64 callers, then in bulk.
func ffSubmit(ctx context.Context, env Env, client flowfabric.Client, sample *Sample) error {
	singles := env.Size(20_000)
	began := time.Now()
	if err := submitSingly(ctx, client, singles, 64); err != nil {
		return err
	}
	sample.Rate("submit.single", singles, time.Since(began))
	bulk := env.Size(100_000)
	began = time.Now()
	if err := submitInBulk(ctx, client, bulk); err != nil {
		return err
	}
	sample.Rate("submit.bulk", bulk, time.Since(began))
	return nil
}

func submitSingly(ctx context.Context, client flowfabric.Client, n, callers int) error {
	var left atomic.Int64
	left.Store(int64(n))
	group, ctx := errgroup.WithContext(ctx)
	for range callers {
		group.Go(func() error {
			for left.Add(-1) >= 0 {
				if _, err := client.Submit(ctx, ffNoop.Submission(make([]byte, ffInput))); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

func submitInBulk(ctx context.Context, client flowfabric.Client, n int) error {
	for done := 0; done < n; {
		all := make([]flowfabric.Submission, min(5000, n-done))
		for i := range all {
			all[i] = ffNoop.Submission(make([]byte, ffInput))
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
func work(ctx context.Context, client flowfabric.Client, concurrency, n int, during func(ctx context.Context) error) (time.Duration, error) {
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
	group.Go(func() error { return during(workCtx) })
	select {
	case <-seen.done:
	case <-workCtx.Done():
		return 0, group.Wait()
	}
	stop() // Run returns when the last completion is acknowledged
	err := group.Wait()
	return time.Since(began), err
}

// ffDrain works off a backlog.
func ffDrain(ctx context.Context, env Env, client flowfabric.Client, sample *Sample) error {
	n := env.Size(100_000)
	if err := submitInBulk(ctx, client, n); err != nil {
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
func ffCycle(callers int) func(ctx context.Context, env Env, client flowfabric.Client, sample *Sample) error {
	return func(ctx context.Context, env Env, client flowfabric.Client, sample *Sample) error {
		n := env.Size(60_000)
		took, err := work(ctx, client, ffConcurrency, n, func(ctx context.Context) error { return submitSingly(ctx, client, n, callers) })
		if err != nil {
			return err
		}
		sample.Rate(fmt.Sprintf("cycle.%d", callers), n, took)
		return checkCompleted(ctx, client, n, sample)
	}
}

// checkCompleted makes the sample invalid unless everything has succeeded, as far as counts are exact.
func checkCompleted(ctx context.Context, client flowfabric.Client, n int, sample *Sample) error {
	open, err := client.Executions().Count(ctx, flowfabric.Filter{Status: []flowfabric.Status{
		flowfabric.StatusReady, flowfabric.StatusRunning, flowfabric.StatusDelayed, flowfabric.StatusBlocked, flowfabric.StatusFailed,
	}})
	if err != nil {
		return err
	}
	if open.Total != 0 {
		sample.Fail("%d of %d executions have not succeeded", open.Total, n)
	}
	return nil
}
