package main

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"golang.org/x/sync/errgroup"
)

// bulk is how many jobs one call of InsertManyFast brings.
const bulk = 1000

// noopArgs is a job that does nothing.
type noopArgs struct {
	SentNS int64 `json:"sent_ns"` // since the start of the measurement, 0 where latency is not measured
}

func (noopArgs) Kind() string { return "noop" }

// noopWorker counts and, where jobs carry the moment they were sent, measures.
type noopWorker struct {
	river.WorkerDefaults[noopArgs]
	began time.Time
	want  int64
	done  chan struct{} // closed when want jobs have run
	ran   atomic.Int64
	mu    sync.Mutex
	waits []time.Duration
}

func newWorker(want int) *noopWorker {
	return &noopWorker{began: time.Now(), want: int64(want), done: make(chan struct{})}
}

// Work is called by River.
func (w *noopWorker) Work(_ context.Context, job *river.Job[noopArgs]) error {
	if job.Args.SentNS != 0 {
		wait := time.Since(w.began) - time.Duration(job.Args.SentNS)
		w.mu.Lock()
		w.waits = append(w.waits, wait)
		w.mu.Unlock()
	}
	if w.ran.Add(1) == w.want {
		close(w.done)
	}
	return nil
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// insertBulk brings n jobs with two callers.
func insertBulk(ctx context.Context, client *river.Client[pgx.Tx], n int) (time.Duration, error) {
	var left atomic.Int64
	left.Store(int64(n))
	group, ctx := errgroup.WithContext(ctx)
	began := time.Now()
	for range 2 {
		group.Go(func() error {
			batch := make([]river.InsertManyParams, bulk)
			for i := range batch {
				batch[i] = river.InsertManyParams{Args: noopArgs{}}
			}
			for {
				before := left.Add(-bulk) + bulk
				if before <= 0 {
					return nil
				}
				if _, err := client.InsertManyFast(ctx, batch[:min(before, bulk)]); err != nil {
					return err
				}
			}
		})
	}
	err := group.Wait()
	return time.Since(began), err
}

// bulkAndSingle measures inserts without anybody who works.
func bulkAndSingle(ctx context.Context, o options) error {
	db, err := open(ctx, o)
	if err != nil {
		return err
	}
	defer db.close(ctx)
	client, err := db.client(setup{}, nil)
	if err != nil {
		return err
	}
	took, err := insertBulk(ctx, client, o.jobs)
	if err != nil {
		return err
	}
	emit("insert.bulk", float64(o.jobs)/took.Seconds(), "1/s")

	var left atomic.Int64
	left.Store(int64(o.singles))
	group, groupCtx := errgroup.WithContext(ctx)
	began := time.Now()
	for range o.callers {
		group.Go(func() error {
			for left.Add(-1) >= 0 {
				if _, err := client.Insert(groupCtx, noopArgs{}, nil); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	emit("insert.single", float64(o.singles)/time.Since(began).Seconds(), "1/s")
	return db.expect(ctx, "available", o.jobs+o.singles)
}

// drain inserts a backlog and measures from the start of the client until every job is recorded as completed.
func drain(ctx context.Context, o options, s setup) error {
	jobs := o.jobs
	if s.workers <= 100 {
		jobs /= 10
	}
	db, err := open(ctx, o)
	if err != nil {
		return err
	}
	defer db.close(ctx)
	worker := newWorker(jobs)
	workers := river.NewWorkers()
	river.AddWorker(workers, worker)
	client, err := db.client(s, workers)
	if err != nil {
		return err
	}
	if _, err := insertBulk(ctx, client, jobs); err != nil {
		return err
	}
	began := time.Now()
	if err := client.Start(ctx); err != nil {
		return err
	}
	select {
	case <-worker.done:
	case <-ctx.Done():
	}
	err = client.Stop(ctx) // waits for the completer to write what has ended
	emit("drain."+s.name, float64(jobs)/time.Since(began).Seconds(), "1/s")
	if err != nil {
		return err
	}
	return db.expect(ctx, "completed", jobs)
}

// latency measures from the call of Insert to the start of the handler, 50 a second.
func latency(ctx context.Context, o options, s setup) error {
	db, err := open(ctx, o)
	if err != nil {
		return err
	}
	defer db.close(ctx)
	worker := newWorker(o.arrivals)
	workers := river.NewWorkers()
	river.AddWorker(workers, worker)
	client, err := db.client(s, workers)
	if err != nil {
		return err
	}
	if err := client.Start(ctx); err != nil {
		return err
	}
	tick := time.NewTicker(time.Second / 50)
	defer tick.Stop()
	for range o.arrivals {
		<-tick.C
		if _, err := client.Insert(ctx, noopArgs{SentNS: int64(time.Since(worker.began))}, nil); err != nil {
			return err
		}
	}
	select {
	case <-worker.done:
	case <-ctx.Done():
	}
	if err := client.Stop(ctx); err != nil {
		return err
	}
	slices.Sort(worker.waits)
	for _, p := range []struct {
		name string
		q    float64
	}{{"p50", 0.50}, {"p99", 0.99}} {
		wait := worker.waits[int(p.q*float64(len(worker.waits)-1))]
		emit("start."+s.name+"."+p.name, float64(wait.Microseconds())/1000, "ms")
	}
	return db.expect(ctx, "completed", o.arrivals)
}

// expect checks how many jobs are in a state, and that there are no others.
func (db *database) expect(ctx context.Context, state string, want int) error {
	var got, all int
	err := db.pool.QueryRow(ctx, "select count(*) filter (where state = $1), count(*) from "+db.schema+".river_job", state).Scan(&got, &all)
	if err == nil && (got != want || all != want) {
		fail("%d of %d jobs are %s, want %d", got, all, state, want)
	}
	return err
}
