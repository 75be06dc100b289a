package model

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

// causes lists what keeps a job from running, as explain must tell it: codes, and the keys of admission (S57). That it stands in line is
// not among them.
func (m *machine) causes(j *job) (all []string) {
	if j.status == over || j.status == runs {
		return nil
	}
	note := func(code string, is bool) {
		if is {
			all = append(all, code)
		}
	}
	note(core.BlockerSuspended, j.status == suspends)
	note(core.BlockerDelay, j.delayUntil > m.w.now())
	note(core.BlockerOperatorHold, j.held)
	note(core.BlockerGrant, j.status == granted)
	note(core.BlockerLaneState, !m.w.lanes[j.lane].open)
	others := m.w.inLane(j.lane)
	if j.status == granted { // what its own grant has taken is free once that ends
		others--
	}
	note(core.BlockerLaneCap, m.w.lanes[j.lane].places > 0 && others >= m.w.lanes[j.lane].places)
	serve, capable := 0, 0
	for _, i := range m.crew {
		if slices.Contains(i.lanes, j.lane) {
			serve++
			if j.suits(i.caps) {
				capable++
			}
		}
	}
	note(core.BlockerNoLiveWorker, serve == 0)
	note(core.BlockerNoCapableWorker, serve > 0 && capable == 0)
	return append(all, m.w.full(j)...)
}

// listed writes the blockers of an explanation in the same way.
func listed(e core.Explanation) (all []string) {
	for _, b := range e.Blockers {
		switch {
		case b.Code == core.BlockerInLine:
		case b.Key != "":
			all = append(all, b.Key)
		default:
			all = append(all, b.Code)
		}
	}
	return all
}

// explain asks a store why the job does not run, and compares with the account.
func (m *machine) explain(j *job, s *subject) core.Explanation {
	want := m.causes(j)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	got, err := s.e.Explain(ctx, reader, j.id.Given(), 0)
	if err != nil {
		m.d.t.Fatalf("%s: explain %s: %v", s.name, j.id, err)
	}
	if diff := cmp.Diff(want, listed(got)); diff != "" {
		m.d.t.Fatalf("SI14: explain %s, which is %s (-account +%s):\n%s", j.id, j.status, s.name, diff)
	}
	if waiting := j.status != over && j.status != runs; waiting != (len(got.Blockers) > 0) {
		m.d.t.Fatalf("SI14: %s: %s is %s and has %d blockers", s.name, j.id, j.status, len(got.Blockers))
	}
	m.checkNext(s, j, got)
	for _, cause := range want {
		cause, _, _ = strings.Cut(cause, ":")
		m.did("explained: " + cause)
	}
	return got
}

// checkNext is S58: the latest of the known times, and none where a cause stands whose end is not known.
func (m *machine) checkNext(s *subject, j *job, e core.Explanation) {
	var want base.Time
	for _, b := range e.Blockers {
		timed := slices.Contains([]string{core.BlockerDelay, core.BlockerGrant, core.BlockerBudget, core.BlockerRate}, b.Code)
		if b.Code != core.BlockerInLine && (!timed || b.Until == 0) {
			want = 0
			break
		}
		want = max(want, b.Until)
	}
	if e.NextEligibleAt != want {
		m.d.t.Fatalf("S58: %s: %s may run at %s, explain says %s: %+v", s.name, j.id, want, e.NextEligibleAt, e.Blockers)
	}
}

// checkExplain asks one store about one job after each command.
func (m *machine) checkExplain() {
	if j := m.some(waits, heldBack, granted, delayed, suspends, runs, over); j != nil {
		m.explain(j, pickOne(m.d, "store", m.subjects...))
	}
}

func TestSI11_SI14_removing_what_explain_lists_gets_the_work_by_the_next_claim(t *testing.T) {
	t.Parallel()
	successes := &tally{succeeded: map[string]int{}}
	life := func(rt *rapid.T) {
		m := newMachine(rt, caseTB{TB: t, cleanup: rt.Cleanup}, successes)
		m.begin()
		for range 3 + m.d.under("actions", 8) {
			m.act()
		}
		m.withdraw()
		if m.d.rarely("a lane", 3) {
			m.setLane("a", track{open: m.d.rarely("open", 3), places: pickOne(m.d, "places", 0, 1)})
		}
		for range 2 {
			if j := m.some(waits, heldBack, granted, delayed, suspends); j != nil {
				m.free(j)
			}
		}
	}
	testseed.Rounds(t, leastRounds, mostRounds, func() []string { return successes.without(remedied) }, life)
}

// remedied are the causes that must be removed at least once in a run.
var remedied = []string{
	"removed: suspended", "removed: delay", "removed: operator_hold", "removed: grant", "removed: lane_state", "removed: no_live_worker",
	"removed: no_capable_worker", "removed: budget", "removed: rate", "removed: concurrency",
}

// mostLooks bounds how often a job is asked about. Work in front of it may take what was made free, but not for ever (SI11).
const mostLooks = 40

// free removes what keeps a job from running, as explain tells it, until a claim takes it.
func (m *machine) free(j *job) {
	m.d.t.Logf("free %s, which is %s", j.id, j.status)
	for range mostLooks {
		e := m.explain(j, pickOne(m.d, "store", m.subjects...))
		if j.status == runs || j.status == over {
			return // its time has passed meanwhile
		}
		if len(listed(e)) > 0 {
			m.remove(j, e.Blockers[0])
			m.check()
			continue
		}
		m.register(able)
		next := !slices.ContainsFunc(m.w.jobs, func(other *job) bool { // blocked ones too: they may have room by now (S46)
			return other.match(j.lane, able.caps) && byOrder(other, j) < 0
		})
		m.claimWith(engine.ClaimRequest{
			WorkerID: workerOf(able.id), InstanceID: able.id, Capabilities: able.caps, LaneOrder: "listed", Max: 100, Lanes: []string{j.lane},
		}, 90_000)
		m.check()
		if j.status == runs {
			return
		}
		if next {
			m.d.t.Fatalf("SI14: nothing keeps %s and none is before it, and a claim does not take it: %+v", j.id, e)
		}
	}
	m.d.t.Fatalf("SI11: %s does not run, whatever is removed", j.id)
}

// remove removes one cause, or waits until it ends by itself.
func (m *machine) remove(j *job, b core.Blocker) {
	m.did("removed: " + b.Code)
	m.d.t.Logf("remove %s %s: %s", b.Code, b.Key, b.Message)
	switch b.Code {
	case core.BlockerSuspended:
		m.resumeBy(j)
	case core.BlockerOperatorHold:
		m.releaseHoldOf(j)
	case core.BlockerDelay, core.BlockerGrant:
		m.wait(b.Until)
	case core.BlockerLaneState, core.BlockerLaneCap:
		m.setLane(j.lane, track{open: true})
	case core.BlockerNoLiveWorker, core.BlockerNoCapableWorker:
		m.register(able)
	case core.BlockerBudget:
		m.makeRoom(b)
	case core.BlockerRate:
		if m.d.rarely("raise", 2) {
			m.raiseQuota(b.Key)
		} else {
			m.wait(b.Until)
		}
	case core.BlockerConcurrency:
		m.raiseQuota(b.Key)
	default:
		m.d.t.Fatalf("it is not known how to remove %+v", b)
	}
}

// grid is what all times are multiples of at which something is due or begins: it is that of timers (L19).
const grid = 50

// wait lets the time pass until the moment that a blocker tells.
func (m *machine) wait(until base.Time) {
	if until <= m.w.now() {
		m.d.t.Fatalf("SI14: a cause is over at %s, and it is %s", until, m.w.now())
	}
	ms := (until.Sub(m.w.now()) + grid - 1) / grid * grid
	m.pass(time.Duration(ms) * time.Millisecond)
}

func (m *machine) raiseQuota(key string) {
	_, id := cutQuota(key)
	r := *m.w.quotas[id]
	if r.rate > 0 {
		r.rate += 100
	}
	if r.slots > 0 {
		r.slots += 100
	}
	m.setQuota(id, r)
}

// makeRoom reopens a budget, waits for its reset or raises its limits.
func (m *machine) makeRoom(b core.Blocker) {
	p := m.purseOf(b.Key)
	switch {
	case p.closed:
		m.reopen(p)
	case b.Until != 0 && b.Until.Sub(m.w.now()) <= base.Minute && m.d.rarely("wait", 2):
		m.wait(b.Until)
	default:
		m.raise(p)
	}
}

// purseOf is the budget that a blocking key names.
func (m *machine) purseOf(key string) *purse {
	for _, p := range m.w.purses {
		if core.BudgetKey(p.id) == key {
			return p
		}
	}
	m.d.t.Fatalf("there is no budget for %s", key)
	return nil
}
