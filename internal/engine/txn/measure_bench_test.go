package txn

import (
	"testing"

	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/metrics"
)

// statementsOfCycle is how many statements SQLite runs for one execution, from its submission to its end, when batches are large.
const statementsOfCycle = 10

// BenchmarkMetersOfACycle is what all metrics together cost an execution from its submission to its end: two commands, a claim, their
// transactions, and the statements of the store. It must make no garbage.
func BenchmarkMetersOfACycle(b *testing.B) {
	for name, batch := range map[string]int{"alone": 1, "in batches of 64": 64} {
		b.Run(name, func(b *testing.B) {
			m := newMeter(clock.Stopwatch())
			statement := metrics.NewStatements([]string{"x"}, 64, clock.Stopwatch()).Of("x")
			submit, claim, complete := cycleUnits(m, batch)
			submits, completes := cycleRequests(m, "submit", batch), cycleRequests(m, "complete", batch)
			refusals := make([]error, batch)
			b.ReportAllocs()
			for b.Loop() {
				submit.began, claim.began, complete.began = m.now(), m.now(), m.now()
				m.committed(submit, batch)
				m.answered(submits, refusals...)
				m.committed(claim, 1)
				m.Claimed(batch, nil)
				m.committed(complete, batch)
				m.answered(completes, refusals...)
				for range 3 {
					m.readable(1000, 1001)
				}
				for i := range batch {
					submits[i].began, completes[i].began = m.now(), m.now()
					for range statementsOfCycle {
						statement.End(statement.Begin())
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch), "ns/cycle")
		})
	}
}

// cycleUnits are the transactions of a cycle, as they are when they have committed.
func cycleUnits(m *meter, batch int) (submit, claim, complete *Tx) {
	e := &Engine{Meter: m}
	units := [3]*Tx{}
	for i := range units {
		units[i] = &Tx{Engine: e, Entries: map[base.UUID]*Row{}}
	}
	class := &core.Class{ID: 7, Namespace: "default", Lane: "default", Kind: "job"}
	for n := range batch {
		x := &core.Execution{ID: base.ID{UUID: base.UUID{byte(n), byte(n >> 8)}}, Class: class, Status: core.Ready, CreatedAt: 1000, LeaseEpoch: 1, CompletedAt: 2000}
		x.Attempt = &core.Attempt{Type: core.AttemptInitial, FirstEpoch: 1, State: core.EndedSuccess, RunningMS: 500}
		done := *x
		done.Status = core.Succeeded
		ents := [3]*Row{{Exec: x, Created: true}, {Exec: x, readySince: 1000, AcquiredAt: 1010}, {Exec: &done}}
		kinds := [3]string{"execution.submitted", "lease.acquired", "execution.completed"}
		for i, u := range units {
			u.Entries[x.ID.UUID] = ents[i]
			u.Order = append(u.Order, ents[i])
			u.Changes.Events = append(u.Changes.Events, core.Event{Kind: kinds[i], ExecutionID: x.ID, Class: class})
		}
		units[2].Changes.History = append(units[2].Changes.History, core.LeaseRecord{ExecutionID: x.ID, Attempt: *done.Attempt})
	}
	return units[0], units[1], units[2]
}

// cycleRequests are the commands of a batch.
func cycleRequests(m *meter, name string, batch int) []*Request {
	all := make([]*Request, batch)
	for i := range all {
		all[i] = &Request{Command: &OnOne{Op: name}, began: m.now()}
	}
	return all
}
