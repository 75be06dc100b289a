package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/bench/measure"
)

// eventsPlan is E35: the events of single executions in a short log, and of the same ones in a long log.
type eventsPlan struct {
	Executions int     `json:"executions"`
	Reads      int     `json:"reads"`
	Workers    int     `json:"workers"`
	SettleS    float64 `json:"settle_s"` // for what the engine does behind the log
}

func planEvents(cfg Config) (plan, error) {
	return &eventsPlan{
		Executions: pick(cfg, cfg.N, 330_000, 300), Reads: 1000, Workers: pick(cfg, cfg.Workers, 16, 4),
		SettleS: pick(cfg, 0, 5*time.Second, 50*time.Millisecond).Seconds(),
	}, nil
}

// firstExecutions is how many executions make the short log.
const firstExecutions = 300

func (p *eventsPlan) take(ctx context.Context, t *trial) error {
	n := max(p.Executions, firstExecutions)
	b := newBook(0, n)
	workers := t.hire(ctx, p.Workers, func(int) (flowfabric.WorkerConfig, handler) {
		return flowfabric.WorkerConfig{}, func(_ context.Context, _ *flowfabric.Task, in []byte) (flowfabric.None, error) {
			b.began(in)
			return flowfabric.None{}, nil
		}
	})
	err := p.lengthen(ctx, t, b, "short_log", 0, firstExecutions)
	if err == nil {
		err = p.lengthen(ctx, t, b, "long_log", firstExecutions, n)
	}
	return errors.Join(err, workers.dismiss())
}

// lengthen works off executions, and reads the events of those that were first.
func (p *eventsPlan) lengthen(ctx context.Context, t *trial, b *book, name string, from, to int) error {
	for next := from; next < to; next += crowd {
		if err := t.submitAll(ctx, b, next, min(next+crowd, to), crowd/submitters+1, plainly); err != nil {
			return err
		}
	}
	if err := t.await(ctx, "completed", to, func() int { return int(t.place.client.work.completed.Load()) }); err != nil {
		return err
	}
	if err := pause(ctx, time.Duration(p.SettleS*float64(time.Second))); err != nil {
		return err
	}
	var took measure.Durations
	found := 0
	began := time.Now()
	for i := range p.Reads {
		id := b.ids[i*7%firstExecutions]
		at := time.Now()
		page, err := t.place.client.Events().Read(ctx, ops.ReadOptions{After: "start", Limit: 20, EventFilter: ops.EventFilter{ExecutionID: id}})
		if err != nil {
			return fmt.Errorf("events of %s: %w", id, err)
		}
		took.Add(time.Since(at))
		found += len(page.Events)
	}
	t.sample.ThroughputPerS = float64(p.Reads) / time.Since(began).Seconds()
	t.sample.LatencyMS[name] = took.Latency()
	t.sample.check(name+"_events", 3*p.Reads, found)
	return nil
}
