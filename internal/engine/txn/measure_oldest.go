package txn

import (
	"context"
	"slices"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/metrics"
	"github.com/flowfabric/flowfabric/internal/store"
)

// othersLooks is how many lanes without a label of their own are looked at: those whose first ready execution was created first.
const othersLooks = 2000

// oldestReading is how long the oldest ready executions wait, which alerts are based on. It is reported even while the store does not answer.
type oldestReading struct {
	ages map[string]float64 // seconds by label
	at   time.Time
	old  bool // the last try to read it failed
}

// family returns the ages. While they cannot be read, all executions are assumed to keep waiting, so that an alert fires rather than not. Where
// nothing waited, the value is dropped after a while.
func (o *oldestReading) family(now time.Time) metrics.Family {
	family := metrics.OldestReadySeconds.Family()
	for label, age := range o.ages {
		switch since := now.Sub(o.at); {
		case o.old && age > 0:
			age += since.Seconds()
		case o.old && since > gaugesKept:
			continue
		}
		family.Add(age, label)
	}
	return family
}

// readOldest finds how long the lanes' oldest ready executions wait. It keeps what it found in the reading.
func (g *gauges) readOldest(ctx context.Context, r *StoreReading) ([]metrics.Family, error) {
	ages, err := g.oldestAges(ctx, r)
	if err != nil {
		r.oldest.old = true
		return nil, err
	}
	r.oldest = oldestReading{ages: ages, at: g.e.Cfg.Clock.Now()}
	return nil, nil
}

// oldestAges are the ages by label; 0 for a lane without a ready execution.
func (g *gauges) oldestAges(ctx context.Context, r *StoreReading) (map[string]float64, error) {
	ages := make(map[string]float64, metrics.MaxValues)
	named, others := g.lanesOf(r, ages)
	add := func(x *core.Execution) {
		label := r.lanes.Value(x.Class.Lane)
		ages[label] = max(ages[label], seconds(g.e.Sweep.StoreNow().Sub(x.StatusSince)))
	}
	look := &LaneLook{E: g.e, Classes: named, all: r.Namespaces == nil && len(others) == 0}
	if err := look.EachOldest(ctx, look.Used(), add); err != nil || len(others) == 0 {
		return ages, err
	}
	hits, err := g.e.Store.FirstOfLanes(ctx, store.Query{Statuses: []core.Status{core.Ready}, Classes: others, Limit: gaugesLimit}, 1)
	if err != nil {
		return nil, err
	}
	ready, err := g.e.stillReady(ctx, hits[:min(len(hits), othersLooks)])
	for _, x := range ready {
		add(x)
	}
	return ages, err
}

// lanesOf are the classes that a reading is about: by lane of those that have a label of their own, and of all others. Each label gets the age 0.
func (g *gauges) lanesOf(r *StoreReading, ages map[string]float64) (named map[string][]int32, others []int32) {
	named = map[string][]int32{}
	dict := g.e.Dict.Now()
	if r.Namespaces == nil {
		for name := range dict.Lanes {
			ages[r.lanes.Value(name)] = 0
		}
	}
	for name, classes := range dict.OfLane {
		numbers := numbersIn(r.Namespaces, classes)
		if len(numbers) == 0 {
			continue
		}
		label := r.lanes.Value(name)
		if ages[label] = 0; label == name {
			named[name] = numbers
		} else {
			others = append(others, numbers...)
		}
	}
	return named, others
}

// numbersIn are the numbers of those classes that are of some namespaces; nil: of all.
func numbersIn(namespaces []string, classes []*core.Class) (numbers []int32) {
	for _, class := range classes {
		if namespaces == nil || slices.Contains(namespaces, class.Namespace) {
			numbers = append(numbers, class.ID)
		}
	}
	return numbers
}
