package txn

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// extensions are what rooms register with the kernel, before it starts: it knows none of them.
type extensions struct {
	timers  map[store.TimerKind]timerRule
	wakes   map[string]func(*core.Event) base.UUID
	pending []pendingCount
}

// timerRule handles a timer that is due. Codes of the class unavailable: it is tried again.
type timerRule func(ctx context.Context, t store.Timer) error

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

// ruleOf returns the rule for a kind of timers; nil if there is none.
func (e *Engine) ruleOf(kind store.TimerKind) timerRule {
	if rule := sweepRules[kind]; rule != nil {
		return func(ctx context.Context, t store.Timer) error { return rule(e, ctx, t) }
	}
	return e.extensions.timers[kind]
}
