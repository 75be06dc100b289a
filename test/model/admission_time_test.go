package model

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// reactions are what budgets do at a breach. Where time is limited, a case has either leases that run beyond their holds or breaches that
// end several leases at once: who of them is booked first, and so which of them overruns, is not written anywhere.
func (m *machine) reactions() []string {
	switch {
	case !m.timed:
		return []string{core.OnHardBlockNew, core.OnHardBlockNew, core.OnHardFail, core.OnHardSuspendForApproval, core.OnHardCancelRunning}
	case m.lenient:
		return []string{core.OnHardBlockNew, core.OnHardBlockNew, core.OnHardFail, core.OnHardSuspendForApproval}
	default:
		return []string{core.OnHardFail, core.OnHardSuspendForApproval, core.OnHardCancelRunning}
	}
}

// timeLimit draws a limit of wall_ms. All moments that follow from it lie on the grid of the timers.
func (m *machine) timeLimit() *amount {
	a := &amount{
		hard: pickOne(m.d, "time", int64(2000), 4000, 10_000, 30_000), soft: pickOne(m.d, "soft", int64(0), 500),
		reserve: pickOne(m.d, "reserve", int64(0), 0, 1000, 2000),
	}
	if m.lenient && m.d.rarely("no limit", 6) {
		a.hard = 0
	}
	return a
}

// useUpTime lets jobs run until a limit of time of their own is used up, one for each reaction to that: they share nothing.
func (m *machine) useUpTime() {
	for i, reaction := range []string{core.OnHardBlockNew, core.OnHardFail, core.OnHardSuspendForApproval, core.OnHardCancelRunning} {
		m.made++
		j := m.newJob()
		a := &amount{hard: int64(1+i) * 500, reserve: 400}
		j.lane, j.brings = "b", func(own *purse, d *core.BudgetDefinition) {
			own.amounts[core.WallMS], d.Dimensions[core.WallMS] = a, a.limits()
			own.onHard, d.OnHard = reaction, reaction
		}
		m.send(j)
	}
	m.claimWith(engine.ClaimRequest{WorkerID: workerOf("i1"), InstanceID: "i1", LaneOrder: "listed", Max: 10, Lanes: []string{"b"}}, 90_000)
	m.pass(2500 * time.Millisecond)
	for _, j := range m.w.jobs {
		if j.status == runs {
			m.completeOf(j, nil)
		}
	}
}

// runsOut is when the first of the job's holds of time is used up that lasts beyond a moment; 0: there is none.
func (j *job) runsOut(beyond base.Time) (first base.Time) {
	for _, p := range j.charged {
		if end := j.holdEnd(p); end > beyond && (first == 0 || end < first) {
			first = end
		}
	}
	return first
}

func (j *job) holdEnd(p *purse) base.Time { return j.since.Add(j.reserved[p][core.WallMS]) }

// runOut extends the holds of time that are used up by what the job wanted at first or by what is left; nothing left is a breach (B17).
func (w *account) runOut(j *job) {
	due := j.runsOutAt
	var hard []breach
	for _, p := range j.charged {
		a := p.amounts[core.WallMS]
		if a == nil || a.hard == 0 || j.holdEnd(p) != due {
			continue
		}
		more, left := j.timeStep(a), max(w.room(p, core.WallMS), 0)
		switch {
		case left == 0:
			hard = append(hard, breach{p, core.WallMS})
		case left < more:
			w.did("time: the rest")
		default:
			w.did("time: extended")
		}
		j.reserved[p][core.WallMS] += min(more, left)
	}
	j.runsOutAt = j.runsOut(due)
	countBreaches(hard)
	if action := w.act(j, hard, true); len(hard) > 0 {
		w.did("time: breach " + action)
	}
}

// timeStep is what the job wants of time if there is enough.
func (j *job) timeStep(a *amount) int64 {
	switch {
	case j.estimate[core.WallMS] > 0:
		return j.estimate[core.WallMS]
	case a.reserve > 0:
		return a.reserve
	default:
		return base.Minute
	}
}

// bookTime books the time of a lease that ends (B17). A breach does nothing to the run, which is over (B28).
func (w *account) bookTime(j *job) {
	b := booking{w: w, j: j, lines: j.charged, holds: true, usage: map[string]int64{core.WallMS: w.now().Sub(j.since)}, spent: true}
	if _, hard := b.settle(); len(hard) > 0 {
		w.did("time: overrun")
		w.act(j, hard, false)
	}
}

// crowded is the last of several jobs whose timers are due at one moment and who share a limit of time; nil: there are none.
func (w *account) crowded(at base.Time) *job {
	for _, p := range w.purses {
		if p.amounts[core.WallMS] == nil {
			continue
		}
		var due []*job
		for _, j := range w.jobs {
			if j.due() == at && slices.Contains(j.charged, p) {
				due = append(due, j)
			}
		}
		if len(due) > 1 {
			return due[len(due)-1]
		}
	}
	return nil
}

// part takes one of them away: which timer acts first decides who gets the rest of a limit, and is not written anywhere. It tells
// whether it did.
func (m *machine) part(at base.Time) bool {
	j := m.w.crowded(at)
	switch {
	case j == nil:
		return false
	case j.status == runs:
		m.completeOf(j, nil)
	default:
		m.w.void(j)
		m.each(fmt.Sprintf("return_grant of %s", j.id), "", func(ctx context.Context, s *subject) error {
			return s.e.ReturnGrant(ctx, client, j.keys[s.name])
		})
	}
	return true
}
