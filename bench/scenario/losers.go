package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/bench/measure"
)

// losersPlan is U258: so many members run, one join wants any of them and cancels the rest; one of them completes.
type losersPlan struct {
	Widths  []int `json:"widths"`
	Rounds  int   `json:"rounds"`
	Workers int   `json:"workers"`
}

// maxWidth is how many nodes one request has, but for the join.
const maxWidth = 4999

func planLosers(cfg Config) (plan, error) {
	widths := []int{10, 100, 1000}
	switch {
	case cfg.N == 1 || cfg.N < 0 || cfg.N > maxWidth:
		return nil, fmt.Errorf("2 to %d members can lose", maxWidth)
	case cfg.N > 0:
		widths = []int{cfg.N}
	case cfg.Quick:
		widths = []int{10, 40}
	}
	return &losersPlan{Widths: widths, Rounds: pick(cfg, 0, 30, 2), Workers: pick(cfg, cfg.Workers, 16, 4)}, nil
}

func (p *losersPlan) take(ctx context.Context, t *trial) error {
	lost, took := 0, time.Duration(0)
	for i, width := range p.Widths {
		cancelled, err := p.race(ctx, t, width)
		if err != nil {
			return fmt.Errorf("%d members: %w", width, err)
		}
		lost, took = lost+(width-1)*p.Rounds, took+cancelled
		if err := t.checkFlows(ctx, fmt.Sprintf("n%d.", width), (i+1)*(warmUp(p.Rounds)+p.Rounds)); err != nil {
			return err
		}
	}
	t.sample.ThroughputPerS = float64(lost) / took.Seconds()
	return nil
}

// race runs the rounds of one width and tells how long it took in all to cancel the losers.
func (p *losersPlan) race(ctx context.Context, t *trial, width int) (time.Duration, error) {
	from, err := t.position(ctx)
	if err != nil {
		return 0, err
	}
	b := &losersBook{}
	hear := b.acknowledged
	t.place.client.work.hear.Store(&hear)
	defer t.place.client.work.hear.Store(nil)
	workers := t.hire(ctx, p.Workers, func(int) (flowfabric.WorkerConfig, handler) {
		return flowfabric.WorkerConfig{Concurrency: width/p.Workers + 1}, b.handle
	})
	events, contexts := &measure.Durations{}, &measure.Durations{}
	took := time.Duration(0)
	for i := -warmUp(p.Rounds); i < p.Rounds && err == nil; i++ {
		var r *losersRound
		if r, err = p.round(ctx, t, b, width, from); err == nil && i >= 0 {
			events.Add(r.untilEvent())
			contexts.Add(r.untilContext())
			took += max(r.untilEvent(), time.Microsecond)
		}
	}
	if err := errors.Join(err, workers.dismiss()); err != nil {
		return 0, err
	}
	prefix := fmt.Sprintf("n%d.", width)
	t.sample.LatencyMS[prefix+"event"], t.sample.LatencyMS[prefix+"context"] = events.Latency(), contexts.Latency()
	return took, p.check(ctx, t, b, width, from)
}

// round lets all members run, lets one of them end, and waits until the others know.
func (p *losersPlan) round(ctx context.Context, t *trial, b *losersBook, width int, from string) (*losersRound, error) {
	r := b.begin()
	run, err := t.place.client.Flows().Submit(ctx, wide(width, flowfabric.Join{Policy: flowfabric.JoinAny, CancelRemaining: true}))
	if err != nil {
		return nil, err
	}
	b.sent(run)
	following, enough := context.WithCancel(ctx)
	followed := make(chan error, 1)
	go func() { followed <- r.follow(following, t.place.client.Client, run, from) }()
	err = t.await(ctx, "running", width, func() int { return int(r.running.Load()) })
	close(r.release)
	if err == nil {
		err = t.await(ctx, "contexts ended", width-1, func() int { return int(r.contexts.Load()) })
	}
	if err == nil {
		err = t.await(ctx, "told", width-1, func() int { return int(r.told.Load()) })
	}
	if err == nil {
		err = t.awaitFlow(ctx, run.ID)
	}
	enough()
	if err := errors.Join(err, <-followed); err != nil {
		return nil, err
	}
	return r, nil
}

// awaitFlow waits for the end of a flow, unless it takes too long: then the check tells.
func (t *trial) awaitFlow(ctx context.Context, id flowfabric.ID) error {
	waiting, enough := context.WithTimeout(ctx, t.cfg.Stall)
	defer enough()
	_, err := t.place.client.Flows().Wait(waiting, id)
	if waiting.Err() != nil && ctx.Err() == nil {
		return nil
	}
	return err
}

// check wants one loser less than members, each cancelled by the join and told by its context.
func (p *losersPlan) check(ctx context.Context, t *trial, b *losersBook, width int, from string) error {
	prefix := fmt.Sprintf("n%d.", width)
	ended, err := t.check(ctx, prefix, b.ids, from)
	if err != nil {
		return err
	}
	rounds := warmUp(p.Rounds) + p.Rounds
	losers := rounds * (width - 1)
	t.sample.check(prefix+"cancelled", losers, ended.outcomes["cancelled"])
	t.sample.check(prefix+"succeeded", 2*rounds, ended.outcomes["success"])
	t.sample.check(prefix+"contexts_cancelled", losers, int(b.cancelled.Load()))
	return nil
}

// wide is a flow in which one node waits for many.
func wide(width int, join flowfabric.Join) flowfabric.Flow {
	f := flowfabric.Flow{Kind: benchFlow, Nodes: make([]flowfabric.Node, width, width+1), Edges: make([]flowfabric.Edge, width)}
	for i := range width {
		f.Nodes[i] = flowfabric.Node{Name: fmt.Sprintf("m%d", i), Kind: string(noop)}
		f.Edges[i] = flowfabric.Edge{From: f.Nodes[i].Name, To: joinName}
	}
	f.Nodes = append(f.Nodes, flowfabric.Node{Name: joinName, Kind: string(noop), Join: join})
	return f
}

// joinName is the node that waits for the others.
const joinName = "join"
