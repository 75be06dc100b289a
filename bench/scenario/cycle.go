package scenario

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/bench/measure"
)

// cyclePlan is U253: many submitters and workers with one slot each, a handler that does nothing.
type cyclePlan struct {
	N          int  `json:"n"`
	Workers    int  `json:"workers"`
	Submitters int  `json:"submitters"`
	InputBytes int  `json:"input_bytes"`
	Batch      int  `json:"batch"`
	Drain      bool `json:"drain"`
	Admission  bool `json:"admission"`
}

func planCycle(cfg Config) (plan, error) {
	if cfg.Batch < 0 || cfg.Batch > 10_000 {
		return nil, errors.New("a batch has 1 to 10000 executions")
	}
	return &cyclePlan{
		N: pick(cfg, cfg.N, 10_000, 200), Workers: pick(cfg, cfg.Workers, 16, 16), Submitters: submitters, InputBytes: inputBytes, Batch: cfg.Batch, Drain: cfg.Drain,
		Admission: cfg.Admission,
	}, nil
}

func (p *cyclePlan) take(ctx context.Context, t *trial) error {
	if !p.Admission {
		return p.run(ctx, t, plainly)
	}
	l, err := t.limited(ctx)
	if err != nil {
		return err
	}
	err = p.run(ctx, t, l.options)
	if err == nil {
		err = l.check(ctx, t.sample)
	}
	if err == nil && t.sample.valid() { // what is lost keeps them in use
		err = l.remove(ctx)
	}
	return err
}

// run measures executions that are submitted with these options.
func (p *cyclePlan) run(ctx context.Context, t *trial, options func(int) flowfabric.SubmitOptions) error {
	from, err := t.position(ctx)
	if err != nil {
		return err
	}
	warm := warmUp(p.N)
	b := newBook(warm, p.N)
	if _, err := p.round(ctx, t, b, 0, warm, options); err != nil {
		return err
	}
	completes := &measure.Durations{}
	t.place.client.work.completes.Store(completes)
	took, err := p.round(ctx, t, b, warm, warm+p.N, options)
	if err != nil {
		return err
	}
	t.sample.ThroughputPerS = float64(p.N) / took.Seconds()
	t.sample.LatencyMS["submit"], t.sample.LatencyMS["start"], t.sample.LatencyMS["complete"] = b.submit.Latency(), b.start.Latency(), completes.Latency()
	ended, err := t.check(ctx, "", b.ids, from)
	t.sample.check("succeeded", warm+p.N, ended.outcomes["success"])
	t.sample.check("started", warm+p.N, int(b.begun.Load()))
	return err
}

// round brings the executions numbered from..to-1 from submit to the end, and tells how long that took: from the first call of
// Submit, or from the start of the workers when there was a backlog, to the last acknowledged completion.
func (p *cyclePlan) round(ctx context.Context, t *trial, b *book, from, to int, options func(int) flowfabric.SubmitOptions) (time.Duration, error) {
	work := &t.place.client.work
	before := int(work.completed.Load())
	if p.Drain {
		if err := t.submitAll(ctx, b, from, to, p.Batch, options); err != nil {
			return 0, err
		}
	}
	began := time.Now()
	workers := t.hire(ctx, p.Workers, func(int) (flowfabric.WorkerConfig, handler) {
		return flowfabric.WorkerConfig{Concurrency: 1}, func(_ context.Context, _ *flowfabric.Task, in []byte) (flowfabric.None, error) {
			b.began(in)
			return flowfabric.None{}, nil
		}
	})
	group, groupCtx := errgroup.WithContext(ctx)
	if !p.Drain {
		group.Go(func() error { return t.submitAll(groupCtx, b, from, to, p.Batch, options) })
	}
	group.Go(func() error {
		return t.await(groupCtx, "completed", to-from, func() int { return int(work.completed.Load()) - before })
	})
	err := group.Wait()
	took := work.ended().Sub(began)
	return took, errors.Join(err, workers.dismiss())
}
