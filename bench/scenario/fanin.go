package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/bench/measure"
)

// fanInPlan has many members that one join waits for, so that each end counts in the same place; and as many executions without a flow
// beside them, in turns, to compare.
type fanInPlan struct {
	N       int `json:"n"`
	Rounds  int `json:"rounds"`
	Workers int `json:"workers"`
}

func planFanIn(cfg Config) (plan, error) {
	if cfg.N < 0 || cfg.N > maxWidth {
		return nil, fmt.Errorf("a join of one request waits for 1 to %d members", maxWidth)
	}
	return &fanInPlan{N: pick(cfg, cfg.N, 1000, 60), Rounds: pick(cfg, 0, 3, 1), Workers: pick(cfg, cfg.Workers, 16, 16)}, nil
}

func (p *fanInPlan) take(ctx context.Context, t *trial) error {
	from, err := t.position(ctx)
	if err != nil {
		return err
	}
	b := &fanInBook{join: &measure.Durations{}}
	hear := b.acknowledged
	t.place.client.work.hear.Store(&hear)
	defer t.place.client.work.hear.Store(nil)
	var plain, flow fanInSide
	if err := p.both(ctx, t, b, warmUp(p.N), &plain, &flow); err != nil {
		return err
	}
	plain, flow, b.join = fanInSide{}, fanInSide{}, &measure.Durations{} // that was the warm-up
	for range p.Rounds {
		if err := p.both(ctx, t, b, p.N, &plain, &flow); err != nil {
			return err
		}
	}
	total := float64(p.N * p.Rounds)
	t.sample.ThroughputPerS = total / flow.took.Seconds()
	t.sample.Counts["plain_per_s"] = total / plain.took.Seconds()
	t.sample.Counts["of_plain"] = plain.took.Seconds() / flow.took.Seconds()
	t.sample.LatencyMS["complete"], t.sample.LatencyMS["plain_complete"], t.sample.LatencyMS["join_start"] = flow.completes.Latency(), plain.completes.Latency(), b.join.Latency()
	return p.check(ctx, t, b, from)
}

// fanInSide is one of the two that are compared.
type fanInSide struct {
	took      time.Duration
	completes *measure.Durations
}

// both takes one turn of each.
func (p *fanInPlan) both(ctx context.Context, t *trial, b *fanInBook, n int, plain, flow *fanInSide) error {
	if err := p.round(ctx, t, b, n, t.submitPlain, plain); err != nil {
		return err
	}
	return p.round(ctx, t, b, n, t.submitJoined, flow)
}

// round submits, starts the workers, and adds how long they took from there to the last acknowledged end.
func (p *fanInPlan) round(ctx context.Context, t *trial, b *fanInBook, n int, submit func(context.Context, *fanInBook, int) error, side *fanInSide) error {
	b.begin()
	if err := submit(ctx, b, n); err != nil {
		return err
	}
	if side.completes == nil {
		side.completes = &measure.Durations{}
	}
	t.place.client.work.completes.Store(side.completes)
	began := time.Now()
	workers := t.hire(ctx, p.Workers, func(int) (flowfabric.WorkerConfig, handler) { return flowfabric.WorkerConfig{Concurrency: 1}, b.handle })
	err := t.await(ctx, "ended", b.awaited(), b.ended)
	side.took += b.lastEnd().Sub(began)
	return errors.Join(err, workers.dismiss())
}

// submitPlain submits executions without a flow.
func (t *trial) submitPlain(ctx context.Context, b *fanInBook, n int) error {
	all := make([]flowfabric.Submission, n)
	for i := range all {
		all[i] = flowfabric.Submission{Kind: string(noop)}
	}
	results, err := t.place.client.SubmitMany(ctx, all)
	if err != nil {
		return err
	}
	for _, r := range results {
		if r.Err != nil {
			return r.Err
		}
		b.ids = append(b.ids, r.ID)
	}
	b.sent(n, n)
	return nil
}

// submitJoined submits members and the node that waits for them.
func (t *trial) submitJoined(ctx context.Context, b *fanInBook, n int) error {
	run, err := t.place.client.Flows().Submit(ctx, wide(n, flowfabric.Join{}))
	if err != nil {
		return err
	}
	for _, id := range run.Members {
		b.ids = append(b.ids, id)
	}
	b.sent(n, n+1)
	return nil
}

// check wants every execution ended once, every join after all its members, and every flow completed.
func (p *fanInPlan) check(ctx context.Context, t *trial, b *fanInBook, from string) error {
	ended, err := t.check(ctx, "", b.ids, from)
	if err != nil {
		return err
	}
	t.sample.check("succeeded", len(b.ids), ended.outcomes["success"])
	t.sample.check("joins", p.Rounds+1, b.joins)
	t.sample.check("early_joins", 0, b.early)
	return t.checkFlows(ctx, "", p.Rounds+1)
}
