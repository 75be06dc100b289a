package txn

import (
	"sync"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/metrics"
	"github.com/flowfabric/flowfabric/internal/store"
)

// meter holds the metrics of an engine (U199). It is updated once per transaction, so that a command pays for little more than its own counts, and
// caches a handle for every label that it has met: nothing on the hot path looks up labels or allocates. A nil meter measures nothing.
type meter struct {
	// clock returns the time since some start. Unlike the clock of the engine it is never set by a test.
	clock func() time.Duration

	commands       *metrics.Tallies
	commandSeconds *metrics.Spreads
	commitSeconds  *metrics.Observer
	commitBatch    *metrics.Observer

	submitted    *metrics.Tallies
	started      *metrics.Tallies
	ended        *metrics.Tallies
	retries      *metrics.Counters
	startLatency *metrics.Spreads
	runSeconds   *metrics.Spreads
	totalSeconds *metrics.Spreads

	claims     [3]*metrics.Count // by claimOutcome
	claimBatch *metrics.Observer
	renewals   *metrics.Counters
	lapsed     *metrics.Counters
	revoked    *metrics.Count
	reclaims   *metrics.Counters
	fenced     *metrics.Counters

	resumeLatency *metrics.Observer

	usage *metrics.Counters
	wall  *metrics.Count // of usage: the time of leases

	followups  *metrics.Histograms
	events     *metrics.Tallies
	eventDelay *metrics.Observer
	timers     *metrics.Counters
	lateness   *metrics.Observer
	purged     *metrics.Counters
	panics     *metrics.Counters
	faults     [store.Unknown + 1]*metrics.Count
	wakeups    [3]*metrics.Count // by wakeSource
	auditRows  *metrics.Counters

	all metrics.Registry // without those in plain memory

	mu        sync.Mutex // of the handles, and of what is in plain memory
	byCommand map[string]*commandMeter
	byKind    map[string]*eventMeter
	byClass   map[int32]*classMeter
	byLane    map[string]*laneMeter

	lanes, kinds, namespaces, categories, Dimensions metrics.Bounded
}

// wakeSource is where news came from.
type wakeSource int

// Where news came from.
const (
	WokenHere   wakeSource = iota // by a commit of this process
	wokenByHint                   // of another process
	WokenByPoll                   // without a hint
)

func newMeter(clock func() time.Duration) *meter {
	m := &meter{
		clock:    clock,
		commands: metrics.Commands.Tallies(), commandSeconds: metrics.CommandSeconds.Spreads(),
		submitted: metrics.Submitted.Tallies(), started: metrics.Started.Tallies(), ended: metrics.Ended.Tallies(), retries: metrics.Retries.New(),
		startLatency: metrics.StartLatencySeconds.Spreads(), runSeconds: metrics.RunSeconds.Spreads(), totalSeconds: metrics.TotalSeconds.Spreads(),
		renewals: metrics.LeaseRenewals.New(), lapsed: metrics.LeasesLapsed.New(), reclaims: metrics.Reclaims.New(), fenced: metrics.Fenced.New(),
		followups: metrics.FollowupSeconds.New(), events: metrics.Events.Tallies(), timers: metrics.TimersFired.New(), purged: metrics.Purged.New(),
		auditRows: metrics.AuditRows.New(),
		byCommand: map[string]*commandMeter{}, byKind: map[string]*eventMeter{}, byClass: map[int32]*classMeter{}, byLane: map[string]*laneMeter{},
	}
	m.all = metrics.Registry{
		m.retries, m.renewals, m.lapsed, m.reclaims, m.fenced, m.followups, m.timers, m.purged, m.auditRows,
	}
	m.fixed()
	m.begin()
	return m
}

// fixed makes the instruments whose labels are known.
func (m *meter) fixed() {
	histogram := func(h metrics.Histogram) *metrics.Observer {
		v := h.New()
		m.all = append(m.all, v)
		return v.With()
	}
	m.commitSeconds, m.commitBatch = histogram(metrics.CommitSeconds), histogram(metrics.CommitBatchSize)
	m.claimBatch, m.eventDelay = histogram(metrics.ClaimBatchSize), histogram(metrics.EventDelaySeconds)
	m.lateness = histogram(metrics.TimerLatenessSeconds)
	m.revoked = m.counter(metrics.LeasesRevoked).With()
	m.resumeLatency = histogram(metrics.ResumeLatencySeconds)
	m.usage, m.panics = m.counter(metrics.Usage), m.counter(metrics.Panics)
	m.wall = m.usage.With(core.WallMS)
	claims, wakeups, faults := m.counter(metrics.Claims), m.counter(metrics.Wakeups), m.counter(metrics.StoreErrors)
	for i, outcome := range []string{"work", "empty", "error"} {
		m.claims[i] = claims.With(outcome)
	}
	for i, source := range []string{WokenHere: "channel", wokenByHint: "notify", WokenByPoll: "poll"} {
		m.wakeups[i] = wakeups.With(source)
	}
	for kind := range m.faults {
		m.faults[kind] = faults.With(store.FaultKind(kind).String())
	}
}

// begin makes the series of user-defined labels that every installation has, so that rate() sees their first increase.
func (m *meter) begin() {
	m.submitted.With(m.namespaces.Value(base.DefaultNamespace), m.lane(base.DefaultLane).label)
	for _, command := range []string{"renew", "progress", "step", "complete", "fail", "release", "delay", "suspend"} {
		m.fenced.With(command)
	}
}

// counter makes a counter that is part of what is shown.
func (m *meter) counter(c metrics.Counter) *metrics.Counters {
	v := c.New()
	m.all = append(m.all, v)
	return v
}

// NewCounter makes a counter of a room and adds it to what the engine shows. Rooms make theirs before Start, one after the other.
func (e *Engine) NewCounter(c metrics.Counter) *metrics.Counters { return e.Meter.counter(c) }

// now is the moment at which something begins that is to be timed.
func (m *meter) now() time.Duration {
	if m == nil {
		return 0
	}
	return m.clock()
}

func (m *meter) Woken(source wakeSource) {
	if m != nil {
		m.wakeups[source].Inc()
	}
}

// failed counts a call of the store that failed. It returns the error.
func (m *meter) failed(err error) error {
	if m != nil && err != nil {
		m.faults[store.FaultOf(err)].Inc()
	}
	return err
}

// Claimed counts an answered claim.
func (m *meter) Claimed(tasks int, err error) {
	switch {
	case m == nil:
	case err != nil:
		m.claims[2].Inc()
	case tasks == 0:
		m.claims[1].Inc()
	default:
		m.claims[0].Inc()
		m.claimBatch.Observe(float64(tasks))
	}
}

// readable counts commits that readers of this process can see from now on.
func (m *meter) readable(committed, now base.Time) {
	if m != nil {
		m.eventDelay.Observe(seconds(now.Sub(committed)))
	}
}

// TimerLabels returns the labels of the timers that are handled; "": one of them has none.
func (e *Engine) TimerLabels() (labels []string) {
	for kind := range e.extensions.timers {
		labels = AppendNew(labels, e.TimerLabel(kind))
	}
	return labels
}

// TimerLabel returns the label of a kind of timers.
func (e *Engine) TimerLabel(kind store.TimerKind) string { return e.extensions.timers[kind].Label }

// fired counts timers that were taken. One that shows up again, because its rule failed or takes long, was counted before.
func (e *Engine) fired(timers []store.Timer, now base.Time) {
	m := e.Meter
	if m == nil {
		return
	}
	for i := range timers {
		if t := &timers[i]; t.Tries == 0 && e.TimerLabel(t.Kind) != "" {
			m.timers.With(e.TimerLabel(t.Kind)).Inc()
			m.lateness.Observe(seconds(now.Sub(t.At)))
		}
	}
}

// Panicked counts a panic that was contained.
func (m *meter) Panicked(place string) {
	if m != nil {
		m.panics.With(place).Inc()
	}
}

// Followed counts work that followed a command and is done.
func (m *meter) Followed(kind string, began, now base.Time) {
	if m != nil {
		m.followups.With(kind).Observe(seconds(now.Sub(began)))
	}
}

// seconds is a duration as metrics have it; a clock that was set back makes none negative.
func seconds(d base.Millis) float64 { return float64(max(d, 0)) / 1000 }

// Collector gives everything that the engine and its store measure. It may be asked after Close: gauges are missing then.
func (e *Engine) Collector() metrics.Collector { return collector{e} }

// collector is the sum of the engine's instruments.
type collector struct{ e *Engine }

// Collect returns the values.
func (c collector) Collect() []metrics.Family {
	parts := metrics.Registry{c.e.Meter.all, c.e.Gauges}
	if measured, able := c.e.Store.(metrics.Source); able {
		parts = append(parts, measured.Collector())
	}
	return append(parts.Collect(), c.e.Meter.plain()...)
}

// plain reads the instruments in plain memory.
func (m *meter) plain() []metrics.Family {
	m.mu.Lock()
	defer m.mu.Unlock()
	return metrics.Registry{
		m.commands, m.commandSeconds, m.submitted, m.started, m.ended, m.startLatency, m.runSeconds, m.totalSeconds, m.events,
	}.Collect()
}
