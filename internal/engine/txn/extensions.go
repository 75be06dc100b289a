package txn

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/metrics"
	"github.com/flowfabric/flowfabric/internal/store"
)

// extensions are what rooms register with the kernel, before it starts: it knows none of them.
type extensions struct {
	timers   map[store.TimerKind]TimerRule
	removed  map[store.DocKind]string // labels of the records whose removal is counted
	wakes    map[string]func(*core.Event) base.UUID
	events   map[string]func(*core.Event) // what rooms count by the events of a kind
	pending  []pendingCount
	gauges   []func() metrics.Family
	readings []gaugePart
	parts    []gaugePart // of readings of some namespaces, too
	tasks    map[string]taskRule
	starts   []func(context.Context) error
	ingest   func(context.Context)
	outcomes func(context.Context, []base.UUID) ([]Command, error)
	loops    []func(context.Context)
	closes   []func(context.Context)
	logged   []func(*store.Commit)
	hinted   []func(*store.Hint)
}

// TimerRule says what happens when timers of a kind are due (S60).
type TimerRule struct {
	Label string // in metrics and logs
	// Do handles a timer that is due. Codes of the class unavailable: it is tried again.
	Do func(ctx context.Context, t store.Timer) error
	// Together lets one call handle all timers that are due: each was armed by a commit of its own, but they are due together (S71).
	Together bool
	// Long is set for work that may take long: a few of the kind run at a time, and none delays timers of other kinds.
	Long bool
	// Delayed is set for long work that may be due long after it was written.
	Delayed bool
}

// pendingCount counts the follow-up work of one kind that a room has to do.
type pendingCount struct {
	scan   store.Scan
	kind   string // as metrics.Followups names it
	counts func(*store.Doc) bool
}

// OnTimer registers what happens when a timer of a kind is due (S60).
func (e *Engine) OnTimer(kind store.TimerKind, rule TimerRule) {
	SetIn(&e.extensions.timers, kind, rule)
}

// CountRemoved registers the label under which the removal of small records of a kind is counted.
func (e *Engine) CountRemoved(kind store.DocKind, label string) {
	SetIn(&e.extensions.removed, kind, label)
}

// WakesOn registers a kind of event: calls that wait for what it is about look again.
func (e *Engine) WakesOn(event string, about func(*core.Event) base.UUID) {
	SetIn(&e.extensions.wakes, event, about)
}

// CountEvents registers what a room counts by the events of some kinds. It is called for each of them that is committed, under the lock of the meter:
// it must neither wait nor call the engine.
func (e *Engine) CountEvents(count func(*core.Event), kinds ...string) {
	for _, kind := range kinds {
		SetIn(&e.extensions.events, kind, count)
	}
}

// CountPending registers records that are follow-up work, for the gauge of it.
func (e *Engine) CountPending(kind string, scan store.Scan, counts func(*store.Doc) bool) {
	e.extensions.pending = append(e.extensions.pending, pendingCount{scan, kind, counts})
}

// OnGauge registers a gauge that this process itself knows: reading it costs nothing.
func (e *Engine) OnGauge(read func() metrics.Family) {
	e.extensions.gauges = append(e.extensions.gauges, read)
}

// OnStart registers what a room does when the engine starts, once its loops run. If it fails, the engine does not start.
func (e *Engine) OnStart(do func(context.Context) error) {
	e.extensions.starts = append(e.extensions.starts, do)
}

// OnReading registers gauges that are read from the store, for all namespaces together.
func (e *Engine) OnReading(name string, read func(context.Context) ([]metrics.Family, error)) {
	part := gaugePart{name, func(ctx context.Context, _ *StoreReading) ([]metrics.Family, error) { return read(ctx) }}
	e.extensions.readings = append(e.extensions.readings, part)
}

// OnPart registers gauges that are read from the store, for all namespaces or for some.
func (e *Engine) OnPart(name string, read func(context.Context, *StoreReading) ([]metrics.Family, error)) {
	e.extensions.parts = append(e.extensions.parts, gaugePart{name, read})
}

// OnLoop registers what runs from the start of the engine until ctx ends.
func (e *Engine) OnLoop(run func(context.Context)) {
	e.extensions.loops = append(e.extensions.loops, run)
}

// OnClose registers what is done before the engine stops to accept calls.
func (e *Engine) OnClose(do func(context.Context)) {
	e.extensions.closes = append(e.extensions.closes, do)
}

// OnLog registers what is called for each commit of the event log that has become readable here, of any process, in order. It runs under the lock of
// the reader of the log: it must neither wait nor call the engine.
func (e *Engine) OnLog(hear func(*store.Commit)) {
	e.extensions.logged = append(e.extensions.logged, hear)
}

// OnHint registers what is called for each hint of other processes.
func (e *Engine) OnHint(hear func(*store.Hint)) {
	e.extensions.hinted = append(e.extensions.hinted, hear)
}

// UseNamespaces sets what reports whether a text is the name of a namespace. It must be set before Start.
func (e *Engine) UseNamespaces(knows func(string) bool) { e.knowsNamespace = knows }

// UseLossRecord sets what records that the database came back without commits. It must be set before Start.
func (e *Engine) UseLossRecord(record func(ctx context.Context, incarnation string, from, to int64) error) {
	e.recordLoss = record
}
