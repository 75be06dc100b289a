package txn

import (
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/metrics"
	"github.com/flowfabric/flowfabric/internal/store"
)

// keptClasses bounds the classes whose instruments are cached: their number is otherwise unbounded.
const keptClasses = 4096

// laneMeter are the instruments of one lane.
type laneMeter struct {
	label        string
	started      [core.AttemptReplay + 1]*metrics.Tally
	ended        [core.Skipped + 1]*metrics.Tally
	total        [core.Skipped + 1]*metrics.Spread
	startLatency *metrics.Spread
}

// eventMeter counts the events of one kind. count is what a room counts besides; nil: nothing.
type eventMeter struct {
	*metrics.Tally
	count func(*core.Event)
}

// classMeter are the instruments of one class of executions.
type classMeter struct {
	class     *core.Class
	lane      *laneMeter
	submitted *metrics.Tally
	run       *metrics.Spread
}

// class returns the instruments of a class. The lock is held.
func (m *meter) class(class *core.Class) *classMeter {
	if c := m.byClass[class.ID]; c != nil && (c.class == class || c.class.Lane == class.Lane && c.class.Kind == class.Kind && c.class.Namespace == class.Namespace) {
		return c
	}
	if len(m.byClass) >= keptClasses {
		clear(m.byClass)
	}
	lane := m.lane(class.Lane)
	c := &classMeter{
		class: class, lane: lane,
		submitted: m.submitted.With(m.namespaces.Value(class.Namespace), lane.label),
		run:       m.runSeconds.With(lane.label, m.kinds.Value(class.Kind)),
	}
	m.byClass[class.ID] = c
	return c
}

// lane returns the instruments of a lane. Lanes beyond the bound share one set. The lock is held.
func (m *meter) lane(name string) *laneMeter {
	label := m.lanes.Value(name)
	l := m.byLane[label]
	if l == nil {
		l = &laneMeter{label: label, startLatency: m.startLatency.With(label)}
		m.byLane[label] = l
		// Series that exist from the start let rate() see their first increase.
		m.lapsed.With(label)
		m.reclaims.With(label)
		for _, category := range []string{"transient", "timeout", "infra_crash"} {
			m.retries.With(label, m.categories.Value(category))
		}
		for kind := core.AttemptInitial; kind <= core.AttemptReplay; kind++ {
			l.started[kind] = m.started.With(label, kind.String())
		}
		for _, status := range core.Statuses() {
			if status.Terminal() {
				l.ended[status] = m.ended.With(label, status.String())
			}
		}
	}
	return l
}

// committed counts what a transaction did, before the transaction is published.
func (m *meter) committed(u *Tx, commands int) {
	if m == nil {
		return
	}
	m.commitSeconds.Observe((m.clock() - u.began).Seconds())
	m.commitBatch.Observe(float64(commands))
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range u.Changes.Events {
		m.event(u, &u.Changes.Events[i])
	}
	for _, ent := range u.Order {
		if ent.Created {
			m.class(ent.Exec.Class).submitted.Inc()
		}
		if ent.JustEnded() {
			m.end(ent.Exec)
		}
		m.used(ent)
	}
	for i := range u.Changes.History {
		m.leaseEnd(u, &u.Changes.History[i])
	}
	for i := range u.Audits {
		m.auditRows.With(u.Audits[i].Action).Inc()
	}
	m.purge(u.Engine.extensions.removed, &u.Changes)
}

// event counts an event, and what only events show.
func (m *meter) event(u *Tx, ev *core.Event) {
	if ev.Kind == core.SilentChange {
		return
	}
	n := m.byKind[ev.Kind]
	if n == nil {
		n = &eventMeter{m.events.With(ev.Kind), u.Engine.extensions.events[ev.Kind]}
		m.byKind[ev.Kind] = n
	}
	n.Inc()
	if n.count != nil {
		n.count(ev)
	}
	switch ev.Kind {
	case "lease.acquired":
		if ent := u.Entries[ev.ExecutionID.UUID]; ent != nil {
			m.start(ent)
		}
	case "attempt.ended":
		if category := ev.Data.Text("category"); category != "" { // that of a takeover has none
			m.retries.With(m.lanes.Value(ev.Class.Lane), m.categories.Value(category)).Inc()
		}
	}
}

// start counts an acquisition. A resumed attempt was counted when it first started.
func (m *meter) start(ent *Row) {
	attempt, l := ent.Exec.Attempt, m.class(ent.Exec.Class).lane
	if ent.readySince != 0 {
		waited := seconds(ent.AcquiredAt.Sub(ent.readySince))
		l.startLatency.Observe(waited)
		if ent.suspended {
			m.resumeLatency.Observe(waited)
		}
	}
	if attempt == nil || attempt.FirstEpoch != ent.Exec.LeaseEpoch {
		return
	}
	l.started[attempt.Type].Inc()
	if attempt.Type == core.AttemptReclaim {
		m.reclaims.With(l.label).Inc()
	}
}

// end counts the end of an execution.
func (m *meter) end(x *core.Execution) {
	l := m.class(x.Class).lane
	total := l.total[x.Status]
	if total == nil {
		total = m.totalSeconds.With(l.label, x.Status.String())
		l.total[x.Status] = total
	}
	l.ended[x.Status].Inc()
	total.Observe(seconds(x.CompletedAt.Sub(x.CreatedAt)))
}

// leaseEnd counts the end of a lease, and of its attempt if that ended with it.
func (m *meter) leaseEnd(u *Tx, rec *core.LeaseRecord) {
	ent := u.Entries[rec.ExecutionID.UUID]
	if ent == nil {
		return
	}
	c := m.class(ent.Exec.Class)
	switch rec.End {
	case core.EndExpired:
		m.lapsed.With(c.lane.label).Inc()
	case core.EndRevoked:
		m.revoked.Inc()
	}
	m.wall.Add(rec.EndedAt.Sub(rec.AcquiredAt))
	if rec.Attempt.State.Final() {
		c.run.Observe(seconds(rec.Attempt.RunningMS))
	}
}

// purge counts rows that were removed.
func (m *meter) purge(labels map[store.DocKind]string, ch *store.Changes) {
	for _, removed := range [...]struct {
		what string
		rows int
	}{
		{"execution", len(ch.Remove) + len(ch.Strip)}, {"lease_record", len(ch.DropHistory)}, {"idempotency_key", len(ch.DropKeys)}, {"class", len(ch.DropClasses)},
	} {
		if removed.rows > 0 {
			m.purged.With(removed.what).Add(int64(removed.rows))
		}
	}
	for i := range ch.DropDocs {
		if what := labels[ch.DropDocs[i].Kind]; what != "" {
			m.purged.With(what).Inc()
		}
	}
}

// Acquiring records since when an execution that is acquired now was ready, and whether it continues after a suspension.
func (ent *Row) Acquiring(now base.Time) {
	ent.readySince, ent.AcquiredAt = ent.Exec.StatusSince, now
	ent.suspended = ent.Exec.Next == core.NextResume && ent.Exec.Attempt.Interruption == core.InterruptedSuspended
}

// used counts what an execution was metered in this transaction. Time is counted with the leases: its meter moves only with the next
// attempt.
func (m *meter) used(ent *Row) {
	if len(ent.Exec.Usage) == 0 || ent.Removed {
		return
	}
	for dimension, now := range ent.Exec.Usage {
		if more := now - ent.used[dimension]; more > 0 && dimension != core.WallMS {
			m.usage.With(m.Dimensions.Value(dimension)).Add(more)
		}
	}
}
