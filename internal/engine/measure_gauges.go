package engine

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/metrics"
	"github.com/flowfabric/flowfabric/internal/store"
)

const (
	gaugesFor     = 3 * time.Second // what the store tells is not asked again before
	gaugesShare   = 20              // nor before so many times the time that it took: scrapers get at most a twentieth of a connection
	gaugesTimeout = 10 * time.Second
	gaugesLimit   = 100_000 // rows of a status that are counted
	gaugesDocs    = 10_000  // small records of a kind that are looked at
	oldestLooks   = 20      // ready executions of a lane that are looked at: those created first
)

// gauges are the metrics that are read when somebody asks for them. What the process knows is told as it is; what only the store
// knows is kept for a few seconds, so that a scraper cannot load it.
type gauges struct {
	e    *Engine
	all  storeReading
	some namespaceReadings

	rows quarantine
}

// storeReading is what the store told, of some namespaces or of all.
type storeReading struct {
	namespaces []string // nil: all
	lanes      *metrics.Bounded
	budgets    *metrics.Bounded

	mu    sync.Mutex
	until time.Time // it is good until then
	read  []metrics.Family
	shown map[[2]string]bool // lanes and statuses that had executions: once they have none that is told
}

// Collect tells the present values; none when the engine is stopping. Those of a store that does not answer are missing.
func (g *gauges) Collect() []metrics.Family {
	if g.e.stopping() {
		return nil
	}
	return append(g.known(), g.stored(&g.all)...)
}

// known are the gauges that cost nothing.
func (g *gauges) known() []metrics.Family {
	e := g.e
	depth := e.committer.depth()
	waiting, skew := e.picker.waiters(), -e.sweep.ahead()
	return []metrics.Family{
		metrics.CommitQueueDepth.Reading(float64(depth)),
		metrics.ClaimWaiters.Reading(float64(waiting)),
		metrics.EventReaders.Reading(float64(e.log.readers.Load())),
		metrics.ClockSkewSeconds.Reading(float64(skew) / 1000),
		metrics.Quarantined.Reading(float64(g.rows.count(e.sweep.storeNow()))),
	}
}

// stored are the gauges that the store tells.
func (g *gauges) stored(r *storeReading) []metrics.Family {
	r.mu.Lock()
	defer r.mu.Unlock()
	clock := g.e.cfg.Clock
	began := clock.Now()
	if began.Before(r.until) {
		return r.read
	}
	ctx, cancel := context.WithTimeout(g.e.background(), gaugesTimeout)
	defer cancel()
	r.read = g.ask(ctx, r)
	ended := clock.Now()
	r.until = ended.Add(max(gaugesFor, gaugesShare*ended.Sub(began)))
	return r.read
}

// ask reads the store.
func (g *gauges) ask(ctx context.Context, r *storeReading) []metrics.Family {
	// Rows that come a moment late are better than none.
	_ = g.e.follower.reach(ctx)
	families, running := g.executions(ctx, r)
	families = append(families, g.budgets(ctx, r)...)
	if r.namespaces != nil {
		return families // the rest belongs to nobody, or to all
	}
	families = slices.Concat(families, g.fleet(ctx, running), g.followups(ctx), g.waitpoints(ctx))
	if sizer, able := g.e.store.(store.Sizer); able {
		if bytes, err := sizer.Size(ctx); err == nil {
			families = append(families, metrics.StoreBytes.Reading(float64(bytes)))
		}
	}
	return families
}

// executions counts by lane and status, and finds the oldest that are ready. running is how many run.
func (g *gauges) executions(ctx context.Context, r *storeReading) (families []metrics.Family, running int) {
	counts, ready := map[[2]string]int{}, map[string]bool{}
	for _, status := range core.Statuses() {
		groups, err := g.e.store.CountBy(ctx, store.Query{Namespaces: r.namespaces, Statuses: []core.Status{status}}, store.GroupBy{Field: store.ByLane}, gaugesLimit)
		if err != nil {
			return nil, running
		}
		for _, group := range groups {
			counts[[2]string{r.lanes.Value(group.Text), status.String()}] += group.Rows
			if status == core.Ready {
				ready[group.Text] = true
			}
			if status == core.Running {
				running += group.Rows
			}
		}
	}
	for of := range counts {
		setIn(&r.shown, of, true)
	}
	family := metrics.Executions.Family()
	for of := range r.shown {
		family.Add(float64(counts[of]), of[0], of[1])
	}
	return append(g.oldest(ctx, r, ready), family), running
}

// oldest tells how long the lanes' oldest ready executions wait; 0 for a lane without one.
func (g *gauges) oldest(ctx context.Context, r *storeReading, ready map[string]bool) []metrics.Family {
	ages := make(map[string]float64, metrics.MaxValues)
	for of := range r.shown {
		ages[of[0]] = 0
	}
	if r.namespaces == nil {
		for name := range g.e.dict.now().lanes {
			ages[r.lanes.Value(name)] = 0
		}
	}
	var ids []core.UUID
	for name := range ready {
		if len(ids) >= oldestLooks*metrics.MaxValues {
			break
		}
		hits, err := g.e.store.Find(ctx, store.Query{
			Namespaces: r.namespaces, Statuses: []core.Status{core.Ready}, Lanes: []string{name}, Order: store.CreatedAsc, Limit: oldestLooks,
		})
		if err != nil {
			return nil
		}
		for _, hit := range hits {
			ids = append(ids, hit.ID)
		}
	}
	loaded, err := g.e.store.Read(ctx, store.Want{Executions: ids, SkipUnreadable: true})
	if err != nil {
		return nil
	}
	for _, x := range loaded.Executions {
		if x.Status == core.Ready {
			label := r.lanes.Value(x.Class.Lane)
			ages[label] = max(ages[label], seconds(g.e.sweep.storeNow().Sub(x.StatusSince)))
		}
	}
	family := metrics.OldestReadySeconds.Family()
	for label, age := range ages {
		family.Add(age, label)
	}
	return []metrics.Family{family}
}

// fleet counts workers and their slots.
func (g *gauges) fleet(ctx context.Context, running int) []metrics.Family {
	loaded, err := g.e.store.Read(ctx, store.Want{Scans: []store.Scan{{Kind: docWorker, Limit: gaugesDocs}}})
	if err != nil {
		return nil
	}
	states := map[string]int{"live": 0, "draining": 0, "dead": 0}
	slots := 0
	for i := range loaded.Scanned[0] {
		w, err := decodeWorker(&loaded.Scanned[0][i])
		if err != nil {
			continue // integrity tells of it
		}
		state := workerState(w, g.e.sweep.storeNow())
		states[state]++
		if state == "live" {
			slots += w.MaxConcurrent
		}
	}
	workers, taken := metrics.Workers.Family(), metrics.WorkerSlots.Family()
	for state, n := range states {
		workers.Add(float64(n), state)
	}
	taken.Add(float64(running), "busy")
	taken.Add(float64(max(slots-running, 0)), "free")
	return []metrics.Family{workers, taken}
}

// followups counts the work that follows commands.
func (g *gauges) followups(ctx context.Context) []metrics.Family {
	loaded, err := g.e.store.Read(ctx, store.Want{Scans: []store.Scan{{Kind: docJob, Limit: gaugesDocs}, {Kind: docTask, Limit: gaugesDocs}}})
	if err != nil {
		return nil
	}
	kinds := map[string]int{}
	for _, kind := range metrics.Followups {
		kinds[kind] = 0
	}
	for i := range loaded.Scanned[0] {
		if j, err := decodeJob(&loaded.Scanned[0][i]); err == nil && j.State == "running" {
			kinds[followupBulk]++
		}
	}
	for i := range loaded.Scanned[1] {
		if t, err := decodeTask(&loaded.Scanned[1][i]); err == nil {
			kinds[t.Kind]++
		}
	}
	family := metrics.FollowupsPending.Family()
	for kind, n := range kinds {
		family.Add(float64(n), kind)
	}
	return []metrics.Family{family}
}

// waitpoints counts those that are open.
func (g *gauges) waitpoints(ctx context.Context) []metrics.Family {
	loaded, err := g.e.store.Read(ctx, store.Want{Scans: []store.Scan{{Kind: docWaitpointOpen, Limit: gaugesDocs}}})
	if err != nil {
		return nil
	}
	return []metrics.Family{metrics.WaitpointsOpen.Reading(float64(len(loaded.Scanned[0])))}
}

// followupBulk is the label of bulk jobs among the follow-ups; the others are kinds of tasks.
const followupBulk = "bulk"

// quarantine are the rows that this process has set aside, until their next try: whoever makes that sets them aside anew.
type quarantine struct {
	mu   sync.Mutex
	next map[string]core.Time
}

// add notes a row whose timer failed.
func (q *quarantine) add(row string, next core.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	setIn(&q.next, row, next)
}

// drop forgets a row that nothing is wrong with.
func (q *quarantine) drop(row string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.next, row)
}

// count tells how many there are.
func (q *quarantine) count(now core.Time) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.prune(now)
	return len(q.next)
}

// prune forgets those whose next try must have come. The lock is held.
func (q *quarantine) prune(now core.Time) {
	for row, next := range q.next {
		if next.Add(core.Second) <= now {
			delete(q.next, row)
		}
	}
}
