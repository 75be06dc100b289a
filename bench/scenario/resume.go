package scenario

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/bench/measure"
)

// resumePlan is U254: executions that suspend for a signal, first alone, then many at a time.
type resumePlan struct {
	Rounds    int     `json:"rounds"`
	AtATime   int     `json:"at_a_time"`
	DurationS float64 `json:"duration_s"`
}

func planResume(cfg Config) (plan, error) {
	return &resumePlan{
		Rounds: pick(cfg, cfg.N, 500, 20), AtATime: pick(cfg, cfg.Workers, 64, 8),
		DurationS: pick(cfg, cfg.Duration, 30*time.Second, time.Second).Seconds(),
	}, nil
}

func (p *resumePlan) take(ctx context.Context, t *trial) error {
	from, err := t.position(ctx)
	if err != nil {
		return err
	}
	warm, _, err := p.phase(ctx, t, "", 1, func(done int) bool { return done < warmUp(p.Rounds) })
	if err != nil {
		return err
	}
	alone, _, err := p.phase(ctx, t, "", 1, func(done int) bool { return done < p.Rounds })
	if err != nil {
		return err
	}
	until := time.Now().Add(time.Duration(p.DurationS * float64(time.Second)))
	began := time.Now()
	crowd, resumed, err := p.phase(ctx, t, "crowd_", p.AtATime, func(int) bool { return time.Now().Before(until) })
	if err != nil {
		return err
	}
	t.sample.ThroughputPerS = float64(resumed) / time.Since(began).Seconds()
	ids := append(append(warm, alone...), crowd...)
	ended, err := t.check(ctx, "", ids, from)
	t.sample.check("succeeded", len(ids), ended.outcomes["success"])
	return err
}

// phase brings executions to their end, so many at a time, while more says so, and takes their times under names with the prefix.
func (p *resumePlan) phase(ctx context.Context, t *trial, prefix string, atATime int, more func(done int) bool) (ids []flowfabric.ID, resumed int, err error) {
	resuming := measure.NewResuming(t.place.client.Client)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	worker := flowfabric.NewWorker(resuming.Client(), flowfabric.WorkerConfig{
		ID: "bench", Instance: measure.FreshName(), Concurrency: 2 * atATime, Logger: t.cfg.Log,
	})
	flowfabric.Handle(worker, noop, resuming.Handle)
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()

	var done atomic.Int64
	made := make([][]flowfabric.ID, atATime)
	group, groupCtx := errgroup.WithContext(ctx)
	for i := range atATime {
		group.Go(func() error {
			for more(int(done.Load())) {
				run, err := noop.Submit(groupCtx, t.place.client.Client, nil)
				if err != nil {
					return err
				}
				made[i] = append(made[i], run.ID())
				if _, err := t.place.client.Wait(groupCtx, run.ID()); err != nil {
					return err
				}
				done.Add(1)
			}
			return nil
		})
	}
	err = group.Wait()
	stop()
	err = errors.Join(err, <-ended, resuming.Err())
	for _, some := range made {
		ids = append(ids, some...)
	}
	t.sample.check(prefix+"resumed", len(ids), int(resuming.Resumed.Load()))
	for name, d := range map[string]*measure.Durations{
		"suspend_to_running": &resuming.SuspendToRunning, "suspend_to_completed": &resuming.SuspendToCompleted, "signal_to_running": &resuming.SignalToRunning,
	} {
		t.sample.LatencyMS[prefix+name] = d.Latency()
	}
	return ids, len(ids), err
}
