package txn

import (
	"context"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/metrics"
	"github.com/flowfabric/flowfabric/internal/store"
)

const (
	gaugesFor     = 3 * time.Second // how long values from the store are reused
	gaugesShare   = 20              // nor before so many times the time that it took: scrapers get at most a twentieth of a connection
	gaugesTimeout = 8 * time.Second // for all parts together: scrapers wait for ten seconds
	gaugesPart    = 3 * time.Second // for one of them
	gaugesKept    = 5 * time.Minute // what was read last stands for a part that the store does not answer for
	gaugesLimit   = 100_000         // rows of a status that are counted
)

// GaugesDocs is how many small records of a kind gauges look at.
const GaugesDocs = 10_000

// gauges are the metrics that are read when they are collected. Values of the process are current; values from the store are kept for a few
// seconds, so that a scraper cannot load it.
type gauges struct {
	e    *Engine
	all  StoreReading
	some namespaceReadings

	Rows quarantine
}

// StoreReading is what was read from the store, of some namespaces or of all.
type StoreReading struct {
	Namespaces []string // nil: all
	lanes      *metrics.Bounded
	Names      metrics.Bounded // label values of what a room names

	mu      sync.Mutex
	parts   map[string]*partReading
	shown   map[[2]string]bool // lanes and statuses that had executions: a zero is reported once they have none
	running int                // executions, when they were last counted
	oldest  oldestReading
}

// partReading is what was read from the store for one part. The parts are read separately: a slow one does not delay the others.
type partReading struct {
	until  time.Time // it is not asked again before
	readAt time.Time
	read   []metrics.Family
}

// gaugePart reads some gauges.
type gaugePart struct {
	name string
	read func(context.Context, *StoreReading) ([]metrics.Family, error)
}

// Collect returns the current values; none if the engine is stopping. Values of a store that does not answer are missing after a while, except how
// long the oldest ready executions wait.
func (g *gauges) Collect() []metrics.Family {
	if g.e.Stopping() {
		return nil
	}
	return append(g.Known(), g.stored(&g.all)...)
}

// Known returns the gauges that the process itself knows. They cost nothing.
func (g *gauges) Known() []metrics.Family {
	e := g.e
	depth := e.Committer.depth()
	skew := -e.Sweep.Ahead()
	families := []metrics.Family{
		metrics.CommitQueueDepth.Reading(float64(depth)),
		metrics.EventReaders.Reading(float64(e.Log.Readers.Load())),
		metrics.ClockSkewSeconds.Reading(float64(skew) / 1000),
		metrics.Quarantined.Reading(float64(g.Rows.Count(e.Sweep.StoreNow()))),
	}
	for _, read := range e.extensions.gauges {
		families = append(families, read())
	}
	return families
}

// partsOf returns the parts of a reading, the most watched first. A reading of some namespaces has no parts that belong to all namespaces or to
// none.
func (g *gauges) partsOf(r *StoreReading) []gaugePart {
	parts := append([]gaugePart{{"oldest", g.readOldest}, {"executions", g.executions}}, g.e.extensions.parts...)
	if r.Namespaces == nil {
		parts = append(parts, gaugePart{"fleet", g.fleet}, gaugePart{"followups", g.followups})
		parts = append(parts, g.e.extensions.readings...)
		parts = append(parts, gaugePart{"size", g.size})
	}
	return parts
}

// stored returns the gauges that are read from the store.
func (g *gauges) stored(r *StoreReading) (families []metrics.Family) {
	r.mu.Lock()
	defer r.mu.Unlock()
	clock := g.e.Cfg.Clock
	began, asked := clock.Now(), false
	ctx, cancel := context.WithTimeout(g.e.Background(), gaugesTimeout)
	defer cancel()
	for _, part := range g.partsOf(r) {
		p := r.parts[part.name]
		if p == nil {
			p = &partReading{}
			SetIn(&r.parts, part.name, p)
		}
		if !began.Before(p.until) {
			if !asked {
				asked = true
				g.reach(ctx)
			}
			g.ask(ctx, r, part, p)
		}
		families = append(families, p.read...)
	}
	return append(families, r.oldest.family(clock.Now()))
}

// reach waits a moment for the search rows. Some that come late are better than none.
func (g *gauges) reach(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, reachFor)
	defer cancel()
	_ = g.e.Follower.Reach(ctx)
}

// ask reads one part.
func (g *gauges) ask(ctx context.Context, r *StoreReading, part gaugePart, p *partReading) {
	clock := g.e.Cfg.Clock
	began := clock.Now()
	ctx, cancel := context.WithTimeout(ctx, gaugesPart)
	defer cancel()
	read, err := part.read(ctx, r)
	ended := clock.Now()
	switch {
	case err == nil:
		p.read, p.readAt = read, ended
	case ended.Sub(p.readAt) > gaugesKept:
		p.read = nil
	}
	p.until = ended.Add(max(gaugesFor, gaugesShare*ended.Sub(began)))
}

// queryOf asks for the rows that a reading is about.
func (g *gauges) queryOf(r *StoreReading, status core.Status) store.Query {
	q := store.Query{Statuses: []core.Status{status}}
	if r.Namespaces != nil {
		q.Classes = g.e.Dict.Now().ClassesIn(r.Namespaces...)
	}
	return q
}

// executions counts by lane and status.
func (g *gauges) executions(ctx context.Context, r *StoreReading) ([]metrics.Family, error) {
	counts, running := map[[2]string]int{}, 0
	for _, status := range core.Statuses() {
		groups, err := g.e.Store.CountBy(ctx, g.queryOf(r, status), store.GroupBy{Field: store.ByLane}, gaugesLimit)
		if err != nil {
			return nil, err
		}
		for _, group := range groups {
			counts[[2]string{r.lanes.Value(group.Text), status.String()}] += group.Rows
			if status == core.Running {
				running += group.Rows
			}
		}
	}
	r.running = running
	for of := range counts {
		SetIn(&r.shown, of, true)
	}
	family := metrics.Executions.Family()
	for of := range r.shown {
		family.Add(float64(counts[of]), of[0], of[1])
	}
	return []metrics.Family{family}, nil
}

// size is how large the store is.
func (g *gauges) size(ctx context.Context, _ *StoreReading) ([]metrics.Family, error) {
	sizer, able := g.e.Store.(store.Sizer)
	if !able {
		return nil, nil
	}
	bytes, err := sizer.Size(ctx)
	if err != nil {
		return nil, err
	}
	return []metrics.Family{metrics.StoreBytes.Reading(float64(bytes))}, nil
}

// fleet counts workers and their slots.
func (g *gauges) fleet(ctx context.Context, r *StoreReading) ([]metrics.Family, error) {
	loaded, err := g.e.Store.Read(ctx, store.Want{Scans: []store.Scan{{Kind: DocWorker, Limit: GaugesDocs}}})
	if err != nil {
		return nil, err
	}
	states := map[string]int{"live": 0, "draining": 0, "dead": 0}
	slots := 0
	for i := range loaded.Scanned[0] {
		w, err := DecodeWorker(&loaded.Scanned[0][i])
		if err != nil {
			continue // the integrity check reports it
		}
		state := WorkerState(w, g.e.Sweep.StoreNow())
		states[state]++
		if state == "live" {
			slots += w.MaxConcurrent
		}
	}
	workers, taken := metrics.Workers.Family(), metrics.WorkerSlots.Family()
	for state, n := range states {
		workers.Add(float64(n), state)
	}
	taken.Add(float64(r.running), "busy")
	taken.Add(float64(max(slots-r.running, 0)), "free")
	return []metrics.Family{workers, taken}, nil
}

// followups counts the work that follows commands.
func (g *gauges) followups(ctx context.Context, _ *StoreReading) ([]metrics.Family, error) {
	want := store.Want{Scans: []store.Scan{{Kind: docTask, Limit: GaugesDocs}}}
	pending := g.e.extensions.pending
	for _, p := range pending {
		p.scan.Limit = GaugesDocs
		want.Scans = append(want.Scans, p.scan)
	}
	loaded, err := g.e.Store.Read(ctx, want)
	if err != nil {
		return nil, err
	}
	kinds := map[string]int{}
	for _, kind := range metrics.Followups {
		kinds[kind] = 0
	}
	for i := range loaded.Scanned[0] {
		if t, err := decodeTask(&loaded.Scanned[0][i]); err == nil {
			kinds[t.Kind]++
		}
	}
	for n, p := range pending {
		for i := range loaded.Scanned[n+1] {
			if p.counts(&loaded.Scanned[n+1][i]) {
				kinds[p.kind]++
			}
		}
	}
	family := metrics.FollowupsPending.Family()
	for kind, n := range kinds {
		family.Add(float64(n), kind)
	}
	return []metrics.Family{family}, nil
}

// quarantine holds the rows that this process has set aside, until their next try, which sets them aside again if it fails.
type quarantine struct {
	mu   sync.Mutex
	next map[string]base.Time
}

// Add notes a row whose timer failed.
func (q *quarantine) Add(row string, next base.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	SetIn(&q.next, row, next)
}

// Drop forgets a row that nothing is wrong with.
func (q *quarantine) Drop(row string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.next, row)
}

// Count returns how many there are.
func (q *quarantine) Count(now base.Time) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.prune(now)
	return len(q.next)
}

// prune forgets those whose next try must have come. The lock is held.
func (q *quarantine) prune(now base.Time) {
	for row, next := range q.next {
		if next.Add(base.Second) <= now {
			delete(q.next, row)
		}
	}
}
