package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/bench/measure"
)

// chainPlan is U256: flows of nodes in a line, each one submit; first one alone, again and again, then many at a time.
type chainPlan struct {
	N        int `json:"n"`
	Nodes    int `json:"nodes"`
	InFlight int `json:"in_flight"`
	Alone    int `json:"alone"`
	Workers  int `json:"workers"`
}

func planChain(cfg Config) (plan, error) {
	n := pick(cfg, cfg.N, 100, 10)
	inFlight := pick(cfg, cfg.InFlight, n, n)
	if n < 1 || inFlight < 1 {
		return nil, errors.New("a chain has at least one flow, and one in flight")
	}
	return &chainPlan{N: n, Nodes: 10, InFlight: min(inFlight, n), Alone: pick(cfg, 0, 200, 5), Workers: pick(cfg, cfg.Workers, 16, 16)}, nil
}

func (p *chainPlan) take(ctx context.Context, t *trial) error {
	from, err := t.position(ctx)
	if err != nil {
		return err
	}
	b := newChainBook(p.Nodes)
	hear := b.acknowledged
	t.place.client.work.hear.Store(&hear)
	defer t.place.client.work.hear.Store(nil)
	workers := t.hire(ctx, p.Workers, func(int) (flowfabric.WorkerConfig, handler) { return flowfabric.WorkerConfig{}, b.handle })
	took, err := p.phases(ctx, t, b)
	if err := errors.Join(err, workers.dismiss()); err != nil {
		return err
	}
	t.sample.ThroughputPerS = float64(p.N) / took.Seconds()
	return b.check(ctx, t, from)
}

// phases brings all flows to their end, and tells how long the many took: from the first call of Submit to the last acknowledged end.
func (p *chainPlan) phases(ctx context.Context, t *trial, b *chainBook) (time.Duration, error) {
	if _, err := p.phase(ctx, t, b, "warm", warmUp(p.N), p.InFlight); err != nil {
		return 0, err
	}
	alone, err := p.phase(ctx, t, b, "alone", p.Alone, 1)
	if err != nil {
		return 0, err
	}
	crowd, err := p.phase(ctx, t, b, "in flight", p.N, p.InFlight)
	if err != nil {
		return 0, err
	}
	alone.into(t.sample, "")
	crowd.into(t.sample, "crowd_")
	return crowd.last.Sub(crowd.first), nil
}

// chainTimes are the times of the flows of a phase.
type chainTimes struct {
	first, last      time.Time // the first submit, the last end
	setup, run, flow measure.Durations
	next             *measure.Durations // from the return of a handler to the start of the next one
}

func (c *chainTimes) into(s *Sample, prefix string) {
	for name, d := range map[string]*measure.Durations{"setup": &c.setup, "run": &c.run, "flow": &c.flow, "next_start": c.next} {
		s.LatencyMS[prefix+name] = d.Latency()
	}
}

// phase brings n flows to their end, so many at a time.
func (p *chainPlan) phase(ctx context.Context, t *trial, b *chainBook, name string, n, atATime int) (*chainTimes, error) {
	times := &chainTimes{first: time.Now(), next: b.measureNext()}
	before := b.ended()
	sending, enough := context.WithCancel(ctx)
	defer enough()
	group, sending := errgroup.WithContext(sending)
	group.SetLimit(atATime + 1)
	group.Go(func() error {
		err := t.await(sending, "flows "+name, n, func() int { return b.ended() - before })
		if b.ended()-before < n {
			enough() // given up: what is lost is not waited for
		}
		return err
	})
	for range n {
		group.Go(func() error { return p.one(sending, t, b, times) })
	}
	err := group.Wait()
	times.last = b.lastEnd()
	return times, err
}

// one submits a flow and waits for its end.
func (p *chainPlan) one(ctx context.Context, t *trial, b *chainBook, times *chainTimes) error {
	began := time.Now()
	run, err := t.place.client.Flows().Submit(ctx, p.flow())
	switch {
	case ctx.Err() != nil:
		return nil // given up, or failed elsewhere
	case err != nil:
		return err
	}
	setup := time.Since(began)
	r := b.sent(run)
	select {
	case <-r.ended:
	case <-ctx.Done():
		return nil
	}
	took := r.endedAt.Sub(began)
	times.setup.Add(setup)
	times.flow.Add(took)
	times.run.Add(took - setup)
	return nil
}

// flow is a line of nodes without input, each after the one before.
func (p *chainPlan) flow() flowfabric.Flow {
	f := flowfabric.Flow{Kind: benchFlow, Nodes: make([]flowfabric.Node, p.Nodes)}
	for i := range f.Nodes {
		f.Nodes[i] = flowfabric.Node{Name: chainName(i), Kind: string(noop)}
		if i > 0 {
			f.Edges = append(f.Edges, flowfabric.Edge{From: chainName(i - 1), To: chainName(i)})
		}
	}
	return f
}

// benchFlow is the kind of all flows here.
const benchFlow = "bench"

func chainName(i int) string { return fmt.Sprintf("n%d", i) }
