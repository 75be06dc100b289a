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
	timers   map[store.TimerKind]timerRule
	wakes    map[string]func(*core.Event) base.UUID
	pending  []pendingCount
	gauges   []func() metrics.Family
	readings []gaugePart
	parts    []gaugePart // of readings of some namespaces, too
	tasks    map[string]taskRule
	starts   []func(context.Context) error
	ingest   func(context.Context)
}

// timerRule handles a timer that is due. Codes of the class unavailable: it is tried again.
type timerRule func(ctx context.Context, t store.Timer) error

// taskRule does a piece of follow-up work, which is kept under ref.
type taskRule func(ctx context.Context, ref store.DocRef, t FollowUp) error

// pendingCount counts the follow-up work of one kind that a room has to do.
type pendingCount struct {
	scan   store.Scan
	kind   string // as metrics.Followups names it
	counts func(*store.Doc) bool
}

// OnTimer registers what happens when a timer of a kind is due (S60).
func (e *Engine) OnTimer(kind store.TimerKind, rule timerRule) {
	SetIn(&e.extensions.timers, kind, rule)
}

// WakesOn registers a kind of event: calls that wait for what it is about look again.
func (e *Engine) WakesOn(event string, about func(*core.Event) base.UUID) {
	SetIn(&e.extensions.wakes, event, about)
}

// CountPending registers records that are follow-up work, for the gauge of it.
func (e *Engine) CountPending(kind string, scan store.Scan, counts func(*store.Doc) bool) {
	e.extensions.pending = append(e.extensions.pending, pendingCount{scan, kind, counts})
}

// OnTask registers what does follow-up work of a kind.
func (e *Engine) OnTask(kind string, do taskRule) { SetIn(&e.extensions.tasks, kind, do) }

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

// ruleOf returns the rule for a kind of timers; nil if there is none.
func (e *Engine) ruleOf(kind store.TimerKind) timerRule {
	if rule := sweepRules[kind]; rule != nil {
		return func(ctx context.Context, t store.Timer) error { return rule(e, ctx, t) }
	}
	return e.extensions.timers[kind]
}
