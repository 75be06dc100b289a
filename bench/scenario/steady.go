package scenario

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/bench/measure"
)

// steadyPlan is U255: arrivals at a rate that does not depend on how fast the engine is.
type steadyPlan struct {
	Rate       float64 `json:"rate"`
	DurationS  float64 `json:"duration_s"`
	WorkMS     int64   `json:"work_ms"`
	DeadlineS  float64 `json:"deadline_s"`
	Workers    int     `json:"workers"`
	InputBytes int     `json:"input_bytes"`

	calibrate int // executions of the cycle that finds the rate
}

// deadline is how long an execution may take.
const deadline = time.Minute

// inFlight bounds how many calls of Submit wait at a time. A sender that is late on that account still counts from the scheduled
// instant.
const inFlight = 4096

func planSteady(cfg Config) (plan, error) {
	if cfg.Rate < 0 || cfg.Work < 0 || cfg.Duration < 0 {
		return nil, errors.New("rate, duration and work are not negative")
	}
	return &steadyPlan{
		Rate: cfg.Rate, DurationS: pick(cfg, cfg.Duration, 300*time.Second, 2*time.Second).Seconds(), WorkMS: cfg.Work.Milliseconds(), DeadlineS: deadline.Seconds(),
		Workers: pick(cfg, cfg.Workers, 16, 4), InputBytes: inputBytes, calibrate: pick(cfg, 0, 10_000, 200),
	}, nil
}

func (p *steadyPlan) take(ctx context.Context, t *trial) error {
	if p.Rate == 0 {
		if err := p.findRate(ctx, t); err != nil {
			return err
		}
	}
	from, err := t.position(ctx)
	if err != nil {
		return err
	}
	schedule := p.schedule(t.number)
	warm := 0
	for warm < len(schedule) && schedule[warm].Seconds() < p.DurationS/10 {
		warm++
	}
	b := newBook(warm, len(schedule)-warm)
	if err := p.run(ctx, t, b, schedule); err != nil {
		return err
	}
	t.sample.LatencyMS["submit"], t.sample.LatencyMS["start"] = b.submit.Latency(), b.start.Latency()
	ids := slices.DeleteFunc(b.ids, func(id flowfabric.ID) bool { return id == "" }) // refused
	ended, err := t.check(ctx, "", ids, from)
	t.sample.Counts["deadline_misses"] = float64(ended.outcomes["expired"])
	t.sample.Counts["refused"] = float64(len(schedule) - len(ids))
	t.sample.check("ended_in_time_or_expired", len(ids), ended.outcomes["success"]+ended.outcomes["expired"])
	return err
}

// findRate runs a cycle on a place of its own: the rate is half of what it reaches.
func (p *steadyPlan) findRate(ctx context.Context, t *trial) error {
	at, err := openPlace(ctx, t.cfg)
	if err != nil {
		return err
	}
	apart := &trial{cfg: t.cfg, number: t.number, place: at, sample: newSample(), report: t.report}
	cycle := &cyclePlan{N: p.calibrate, Workers: 16, Submitters: submitters, InputBytes: inputBytes}
	if err := errors.Join(cycle.take(ctx, apart), at.close(ctx)); err != nil {
		return err
	}
	if !apart.sample.valid() {
		return errors.New("the cycle that finds the rate is not valid")
	}
	p.Rate = apart.sample.ThroughputPerS / 2
	return nil
}

// schedule are the instants of arrival: a Poisson process that is the same for every run of a seed.
func (p *steadyPlan) schedule(seed int) []time.Duration {
	random := rand.New(rand.NewPCG(uint64(seed), 0))
	var all []time.Duration
	for at := 0.0; ; {
		at += random.ExpFloat64() / p.Rate
		if at >= p.DurationS {
			return all
		}
		all = append(all, time.Duration(at*float64(time.Second)))
	}
}

// run sends by the schedule while workers work, and waits for the rest.
func (p *steadyPlan) run(ctx context.Context, t *trial, b *book, schedule []time.Duration) error {
	work := time.Duration(p.WorkMS) * time.Millisecond
	slots := 0 // the default of a worker
	if work > 0 {
		slots = int(2*p.Rate*work.Seconds())/p.Workers + 4
	}
	workers := t.hire(ctx, p.Workers, func(int) (flowfabric.WorkerConfig, handler) {
		return flowfabric.WorkerConfig{Concurrency: slots}, func(ctx context.Context, _ *flowfabric.Task, in []byte) (flowfabric.None, error) {
			b.began(in)
			return flowfabric.None{}, pause(ctx, work)
		}
	})
	before, err := t.place.usage(ctx)
	if err != nil {
		return errors.Join(err, workers.dismiss())
	}
	done := &t.place.client.work.completed
	watch := t.watch(b, schedule)
	began := time.Now()
	accepted, err := t.send(ctx, b, schedule)
	t.sample.ThroughputPerS = float64(b.begun.Load()) / time.Since(began).Seconds()
	watch(t.sample)
	if err == nil {
		err = t.await(ctx, "completed", accepted, func() int { return int(done.Load()) })
	}
	after, usageErr := t.place.usage(ctx)
	if grown := less(after.store.Bytes, before.store.Bytes); grown != nil && len(schedule) > 0 {
		t.sample.Counts["store_bytes_per_million"] = float64(*grown) / float64(len(schedule)) * 1e6
	}
	return errors.Join(err, usageErr, workers.dismiss())
}

// pause waits, or ends with the context.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// send calls Submit at each scheduled instant, whether or not the calls before have been answered, and tells how many were accepted.
// An engine that has too much to do may refuse some.
func (t *trial) send(ctx context.Context, b *book, schedule []time.Duration) (int, error) {
	at, end := t.cfg.Progress("sent", len(schedule))
	defer end()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(inFlight)
	random := rand.NewChaCha8([32]byte{byte(t.number)})
	var accepted atomic.Int64
	began := time.Now()
	for number, due := range schedule {
		if pause(ctx, time.Until(began.Add(due))) != nil {
			break
		}
		submission := noop.Submission(input(random, number), flowfabric.SubmitOptions{Deadline: time.Now().Add(deadline)})
		scheduled := began.Add(due)
		b.sent[number].Store(int64(scheduled.Sub(b.base)))
		group.Go(func() error {
			result, err := t.place.client.Submit(ctx, submission)
			switch {
			case err == nil:
				b.accepted(number, result.ID, scheduled)
				accepted.Add(1)
			case errors.Is(err, flowfabric.ErrLimited) || flowfabric.CodeOf(err) == "overloaded":
				return nil
			}
			return err
		})
		at(number)
	}
	err := group.Wait()
	return int(accepted.Load()), err
}

// watchEvery is how often the backlog is looked at.
const watchEvery = 10 * time.Second

// watch looks at the backlog and at the memory of the process that holds the engine, until the function that it returns is called,
// which puts what was seen into a sample.
func (t *trial) watch(b *book, schedule []time.Duration) func(*Sample) {
	pid := os.Getpid()
	if t.place.server != nil {
		pid = t.place.server.pid()
	}
	backlog := map[string]float64{}
	var seconds, memory []float64
	began := time.Now()
	look := func() {
		now := time.Since(began)
		due, _ := slices.BinarySearch(schedule, now)
		backlog[fmt.Sprintf("backlog.%03ds", int(now.Round(time.Second).Seconds()))] = max(float64(due)-float64(b.begun.Load()), 0)
		if rss, _, ok := measure.RSS(pid); ok && t.place.address != "" {
			seconds, memory = append(seconds, now.Seconds()), append(memory, float64(rss))
		}
	}
	end := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		tick := time.NewTicker(watchEvery)
		defer tick.Stop()
		for {
			look()
			select {
			case <-tick.C:
			case <-end:
				return
			}
		}
	})
	return func(s *Sample) {
		close(end)
		group.Wait()
		look()
		maps.Copy(s.Counts, backlog)
		s.Counts["memory_slope_bytes_per_s"] = slope(seconds, memory)
	}
}

// slope of the line that lies nearest to the points.
func slope(x, y []float64) float64 {
	var sx, sy, sxx, sxy float64
	for i := range x {
		sx, sy, sxx, sxy = sx+x[i], sy+y[i], sxx+x[i]*x[i], sxy+x[i]*y[i]
	}
	n := float64(len(x))
	if d := n*sxx - sx*sx; d > 0 {
		return (n*sxy - sx*sy) / d
	}
	return 0
}
