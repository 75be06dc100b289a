package scenario

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/flowfabric/flowfabric"
)

// routingPlan is U257: executions that require one of ten capabilities each, and workers that have some of them. The number of the
// sample is the seed.
type routingPlan struct {
	N            int      `json:"n"`
	Workers      int      `json:"workers"`
	Capabilities int      `json:"capabilities"`
	Variants     []string `json:"variants"`
}

const capabilities = 10

// routes are the variants. Each draws what the workers have and what the work needs.
var routes = map[string]func(random *rand.Rand, workers, n int) (have [][]int, need []int){
	"happy": happy, "partial": partial, "scarce": scarce,
}

func planRouting(cfg Config) (plan, error) {
	variants := cfg.Variants
	if len(variants) == 0 {
		variants = []string{"happy", "partial", "scarce"}
	}
	for _, v := range variants {
		if routes[v] == nil {
			return nil, fmt.Errorf("there is no variant %q: happy, partial, scarce", v)
		}
	}
	workers := pick(cfg, cfg.Workers, 100, 12)
	if workers < 10 {
		return nil, errors.New("routing needs at least 10 workers")
	}
	return &routingPlan{N: pick(cfg, cfg.N, 1000, 60), Workers: workers, Capabilities: capabilities, Variants: variants}, nil
}

// happy: all workers have everything.
func happy(random *rand.Rand, workers, n int) (have [][]int, need []int) {
	for range workers {
		have = append(have, upTo(capabilities))
	}
	for range n {
		need = append(need, random.IntN(capabilities))
	}
	return have, need
}

// partial: a tenth of the workers has c0, c1 and five more, the others three of c2..c9; half of the work needs c0 or c1.
func partial(random *rand.Rand, workers, n int) (have [][]int, need []int) {
	others := random.Perm(capabilities - 2)
	for i := range workers {
		var set []int
		few := 3
		if i < max(workers/10, 1) {
			set, few = []int{0, 1}, 5
		}
		for k := range few { // in turns, so that each is had by somebody
			set = append(set, 2+others[(i*3+k)%len(others)])
		}
		have = append(have, set)
	}
	for range n {
		if random.IntN(2) == 0 {
			need = append(need, random.IntN(2))
			continue
		}
		need = append(need, 2+random.IntN(capabilities-2))
	}
	return have, need
}

// scarce: one worker has everything, the others only c0; a tenth of the work needs something else.
func scarce(random *rand.Rand, workers, n int) (have [][]int, need []int) {
	one := random.IntN(workers)
	for i := range workers {
		set := []int{0}
		if i == one {
			set = upTo(capabilities)
		}
		have = append(have, set)
	}
	for i := range n {
		if i%10 == 0 {
			need = append(need, 1+random.IntN(capabilities-1))
			continue
		}
		need = append(need, 0)
	}
	return have, need
}

func upTo(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

func capability(i int) string { return fmt.Sprintf("c%d", i) }

func (p *routingPlan) take(ctx context.Context, t *trial) error {
	total := time.Duration(0)
	for _, variant := range p.Variants {
		took, err := p.route(ctx, t, variant)
		if err != nil {
			return fmt.Errorf("%s: %w", variant, err)
		}
		total += took
	}
	t.sample.ThroughputPerS = float64(p.N*len(p.Variants)) / total.Seconds()
	return nil
}

// route runs one variant and tells how long it took from the first submit to the last completion.
func (p *routingPlan) route(ctx context.Context, t *trial, variant string) (time.Duration, error) {
	from, err := t.position(ctx)
	if err != nil {
		return 0, err
	}
	warm := warmUp(p.N)
	have, need := routes[variant](rand.New(rand.NewPCG(uint64(t.number), 0)), p.Workers, warm+p.N)
	b := newBook(warm, p.N)
	work := &t.place.client.work
	registered, completed := work.registered.Load(), work.completed.Load()
	workers := t.hire(ctx, p.Workers, func(i int) (flowfabric.WorkerConfig, handler) { return router(b, have[i], need) })
	done := func() int { return int(work.completed.Load() - completed) }
	requires := func(number int) flowfabric.SubmitOptions {
		return flowfabric.SubmitOptions{Requires: []string{capability(need[number])}}
	}
	err = t.await(ctx, "workers registered", p.Workers, func() int { return int(work.registered.Load() - registered) })
	if err == nil {
		err = t.submitAll(ctx, b, 0, warm, 0, requires)
	}
	if err == nil {
		err = t.await(ctx, variant+": warm", warm, done)
	}
	empty, began := work.emptyClaims.Load(), time.Now()
	if err == nil {
		err = t.submitAll(ctx, b, warm, warm+p.N, 0, requires)
	}
	if err == nil {
		err = t.await(ctx, variant+": completed", warm+p.N, done)
	}
	took := work.ended().Sub(began)
	if err := errors.Join(err, workers.dismiss()); err != nil {
		return 0, err
	}
	t.sample.LatencyMS[variant+".start"] = b.start.Latency()
	t.sample.Counts[variant+".empty_claims_per_start"] = float64(work.emptyClaims.Load()-empty) / float64(p.N)
	misrouted := int(b.misrouted.Load()) + len(b.ids) - int(b.begun.Load())
	t.sample.Counts[variant+".routed"] = 1 - float64(misrouted)/float64(len(b.ids))
	t.sample.check(variant+".misrouted", 0, misrouted)
	_, err = t.check(ctx, variant+".", b.ids, from)
	return took, err
}

// router is a worker that looks whether it has what its work needs.
func router(b *book, have, need []int) (flowfabric.WorkerConfig, handler) {
	var cfg flowfabric.WorkerConfig
	for _, c := range have {
		cfg.Capabilities = append(cfg.Capabilities, capability(c))
	}
	return cfg, func(_ context.Context, _ *flowfabric.Task, in []byte) (flowfabric.None, error) {
		if number := b.began(in); number < 0 || !slices.Contains(have, need[number]) {
			b.misrouted.Add(1)
		}
		return flowfabric.None{}, nil
	}
}
