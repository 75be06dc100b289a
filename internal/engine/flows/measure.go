package flows

import (
	"strings"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/metrics"
)

// meter counts ends of flows and decided joins.
type meter struct{ flows, joins *metrics.Counters }

// measure makes the counters of the room.
func (e *Graphs) measure() {
	e.meter = meter{flows: e.NewCounter(metrics.Flows), joins: e.NewCounter(metrics.Joins)}
	e.CountEvents(func(ev *core.Event) { e.meter.flows.With(strings.TrimPrefix(ev.Kind, "flow.")).Inc() }, flowEnds()...)
}

// countJoin counts a join that was decided, once the transaction is committed.
func countJoin(u *txn.Tx, policy core.JoinPolicy, state core.JoinState) {
	u.After = append(u.After, func() {
		txn.Room[Graphs](u.Engine, slot).meter.joins.With(policy.String(), state.String()).Inc()
	})
}
