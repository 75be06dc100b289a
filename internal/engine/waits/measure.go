package waits

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/condition"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/metrics"
	"github.com/flowfabric/flowfabric/internal/store"
)

// meter counts suspensions, signals and refused tokens.
type meter struct {
	suspensions   *metrics.Counters
	resumes       *metrics.Counters
	signals       *metrics.Counters
	approvals     *metrics.Counters
	tokensRefused *metrics.Counters
	decisions     metrics.Bounded // label values
}

// measure makes the counters of the room. Most count by events, so that a change is counted once, whatever caused it, and only if it was committed.
func (e *Waits) measure() {
	m := &e.meter
	m.suspensions, m.resumes = e.NewCounter(metrics.Suspensions), e.NewCounter(metrics.Resumes)
	m.signals, m.approvals = e.NewCounter(metrics.Signals), e.NewCounter(metrics.Approvals)
	m.tokensRefused = e.NewCounter(metrics.TokensRefused)
	for _, decision := range []string{"approved", "rejected"} { // those of every installation: rate() sees the first one
		m.approvals.With(m.decisions.Value(decision))
	}
	e.CountEvents(func(ev *core.Event) { m.suspensions.With(ev.Data.Text("reason_code")).Inc() }, "execution.suspended")
	e.CountEvents(func(ev *core.Event) { m.resumes.With(ev.Data.Text("cause")).Inc() }, "execution.resumed")
	e.CountEvents(m.signal, "signal.accepted")
	e.OnReading("waitpoints", e.countOpen)
}

// signal counts a signal, and the decision that it may be: a decision needs no token, or comes through a link.
func (m *meter) signal(ev *core.Event) {
	m.signals.With(ev.Data.Text("effect")).Inc()
	if source := ev.Data.Text("source_type"); source == condition.SourceOperator || source == condition.SourceApprover {
		m.approvals.With(m.decisions.Value(ev.Data.Text("name"))).Inc()
	}
}

// countRefused counts a token that was not valid. A missing token does not count.
func (e *Waits) countRefused(fault keyring.TokenFault) {
	if fault != 0 {
		e.meter.tokensRefused.With(fault.String()).Inc()
	}
}

// countOpen counts the waitpoints that are open.
func (e *Waits) countOpen(ctx context.Context) ([]metrics.Family, error) {
	loaded, err := e.Store.Read(ctx, store.Want{Scans: []store.Scan{{Kind: DocWaitpointOpen, Limit: txn.GaugesDocs}}})
	if err != nil {
		return nil, err
	}
	return []metrics.Family{metrics.WaitpointsOpen.Reading(float64(len(loaded.Scanned[0])))}, nil
}
