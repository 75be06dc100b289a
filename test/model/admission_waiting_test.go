package model

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// queuer is a claim that waits for work (S16). It takes one job, so that it does not matter whether room comes in one commit or in two.
type queuer struct {
	r       engine.ClaimRequest
	until   base.Time
	cancel  func()
	answers map[string]*answer // by store
	kept    map[*job][]string  // what was full for those that it would take, when it last got nothing
}

// answer is what a store says to it, once done is closed.
type answer struct {
	done  <-chan struct{}
	given engine.ClaimAnswer
	err   error
}

// over reports whether the claim was answered.
func (a *answer) over() bool {
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

// claimWaiting lets a claim wait that finds nothing, and then most often makes room for somebody whom it would take.
func (m *machine) claimWaiting() {
	m.withdraw()
	r := m.ask(pickOne(m.d, "instance", crew...))
	m.arrange(pickOne(m.d, "lacks", "", "rate", "slots", "budget", "budget"), r.Lanes[0])
	r.Max = 100
	m.claimWith(r, m.leaseTTL()) // what there is
	const between = 25 * time.Millisecond
	r.Max, r.TTL, r.Wait = 1, m.leaseTTL(), pickOne(m.d, "wait", 5*time.Second, 30*time.Second)+between
	m.did("claim that waits")
	m.begins(r)
	for range 3 {
		if m.waiting != nil && !m.d.rarely("no help", 6) {
			m.makeWay(m.waiting)
		}
	}
	if m.waiting != nil && m.d.rarely("in vain", 2) {
		m.wait(m.waiting.until)
	}
}

// arrange submits jobs of which the last lacks something that can be given back in every way.
func (m *machine) arrange(lacks, lane string) {
	if r := rations["q1"]; lacks == "rate" || lacks == "slots" {
		if r.slots = 1; lacks == "rate" {
			r.rate, r.slots = 1, 0
		}
		m.setQuota("q1", r)
		m.sendTo(lane, func(j *job) { j.needs = []need{{"q1", ""}} })
		m.sendTo(lane, func(j *job) { j.needs = []need{{"q1", ""}} })
	}
	if lacks != "budget" {
		return
	}
	none, some := &amount{}, &amount{hard: 20} // of what no other budget limits
	j := m.sendTo(lane, func(j *job) {
		j.estimate = map[string]int64{"pages": 15}
		j.brings = func(own *purse, d *core.BudgetDefinition) {
			own.amounts, own.onHard = map[string]*amount{"tok": none, "pages": some}, core.OnHardBlockNew
			d.Dimensions, d.OnHard = map[string]core.BudgetLimits{"tok": none.limits(), "pages": some.limits()}, own.onHard
			if d.Reset = m.everyMinute(own); m.d.rarely("no reset", 3) {
				own.schedule, own.next, d.Reset = schedule{}, 0, core.BudgetReset{}
			}
		}
	})
	if !slices.Contains(m.w.jobs, j) {
		return // it was refused
	}
	if m.d.rarely("close", 3) {
		m.closeOf(j.own[0])
	} else {
		m.chargeTo(j.own[0], nil, engine.ChargeRequest{Usage: map[string]int64{"pages": 10}})
	}
}

// sendTo submits a job of which the caller says what it needs.
func (m *machine) sendTo(lane string, needing func(j *job)) *job {
	m.made++
	j := m.newJob()
	j.lane = lane
	needing(j)
	m.send(j)
	return j
}

// begins sends the claim to every store.
func (m *machine) begins(r engine.ClaimRequest) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	m.d.t.Cleanup(cancel)
	m.d.t.Logf("at %s: %s waits %s for work in %v", m.w.now(), r.InstanceID, r.Wait, r.Lanes)
	m.waiting = &queuer{r: r, until: m.w.now().Add(r.Wait.Milliseconds()), cancel: cancel, answers: map[string]*answer{}}
	for _, s := range m.subjects {
		a := &answer{}
		a.done = s.family.Go(func() { a.given, a.err = s.e.Claim(ctx, client, r) })
		m.waiting.answers[s.name] = a
	}
	m.serve()
}

// withdraw ends the claim that waits, which has got nothing.
func (m *machine) withdraw() {
	q := m.waiting
	if q == nil {
		return
	}
	m.waiting = nil
	q.cancel()
	for _, s := range m.subjects {
		a := q.answers[s.name]
		<-a.done
		if base.CodeOf(a.err) != base.CodeTimeout {
			m.d.t.Fatalf("%s: a claim that was given up is answered with %d tasks, %v", s.name, len(a.given.Tasks), a.err)
		}
	}
	m.did("waited and gave up")
}

// serve compares what the claim that waits has got with what it must get: a job as soon as there is room for one, and nothing else
// (S46, S47, B33, B34). No time passes meanwhile, so that no poll helps.
func (m *machine) serve() {
	q := m.waiting
	if q == nil {
		return
	}
	m.rest()
	inVain := q.until <= m.w.now()
	var ids []base.ID
	var left map[base.UUID]map[string]int64
	j := m.w.best(q.r.Lanes, q.r.Capabilities)
	switch {
	case inVain && j != nil:
		m.d.t.Fatalf("a claim waited in vain, and there was %s", j.id)
	case j != nil:
		m.w.take(j, false)
		m.w.acquire(j, q.r.TTL)
		ids, left = []base.ID{j.id}, leftOf(m.w, j)
		m.tellWhy(q, j)
	case inVain:
		m.did("waited in vain")
	}
	for _, s := range m.subjects {
		if a := q.answers[s.name]; a.over() {
			m.takes(s, a, j, ids, left)
		} else if j != nil || inVain {
			m.d.t.Fatalf("S46, S47: %s lets a claim wait after %s, and should answer it with %v", s.name, m.doing, ids)
		}
	}
	if j != nil || inVain {
		m.waiting = nil
		q.cancel()
		return
	}
	q.kept = map[*job][]string{}
	for _, j := range m.awaited(q) {
		q.kept[j] = m.w.full(j)
	}
}

// takes compares an answer.
func (m *machine) takes(s *subject, a *answer, j *job, ids []base.ID, left map[base.UUID]map[string]int64) {
	if a.err != nil {
		m.d.t.Fatalf("%s: a claim that waits: %v", s.name, a.err)
	}
	var got []base.ID
	for _, task := range a.given.Tasks {
		got = append(got, task.Execution.ID)
	}
	m.same(s, "claim that waits, after "+m.doing, ids, got)
	if j != nil {
		j.fences[s.name] = fenceOf(a.given.Tasks[0].Execution)
		m.same(s, "remaining", left, orNone(a.given.Tasks[0].Remaining))
	}
}

// tellWhy counts what the job lacked before, and by what it came.
func (m *machine) tellWhy(q *queuer, j *job) {
	kinds := map[string]bool{}
	for _, key := range q.kept[j] {
		kind, _, _ := strings.Cut(key, ":")
		kinds[kind] = true
	}
	if len(kinds) == 0 {
		kinds["work"] = true
	}
	for kind := range kinds {
		m.did("waited for " + kind + ", " + m.doing)
	}
	m.d.t.Logf("the claim that waits gets %s after %s, which lacked %v", j.id, m.doing, q.kept[j])
}

// awaited lists the jobs that the claim would take if there were room.
func (m *machine) awaited(q *queuer) (all []*job) {
	for _, j := range m.w.jobs {
		open := slices.Contains(q.r.Lanes, j.lane) && m.w.lanes[j.lane].open && !m.w.laneFull(j.lane)
		if open && j.match(j.lane, q.r.Capabilities) {
			all = append(all, j)
		}
	}
	return all
}

// waitsUntil is the first moment at which something may change for the claim that waits: its time is over, or that of a start (S40); 0:
// there is none.
func (m *machine) waitsUntil() (first base.Time) {
	if m.waiting == nil {
		return 0
	}
	first = m.waiting.until
	for _, ends := range m.w.windowEnds() {
		first = min(first, slices.Min(ends))
	}
	return first
}

// windowEnds lists by key when starts that count now cease to.
func (w *account) windowEnds() map[string][]base.Time {
	all := map[string][]base.Time{}
	for key, starts := range w.starts {
		_, quota := cutQuota(key)
		for _, s := range starts {
			if r := w.quotas[quota]; r != nil && !s.back && s.at.Add(r.window) > w.now() {
				all[key] = append(all[key], s.at.Add(r.window))
			}
		}
	}
	return all
}

// avoid withdraws the claim that waits if more than one thing happens at a moment: it takes the best of what there is when it looks,
// and may look after each of them. It reports whether it did.
func (m *machine) avoid(at base.Time) bool {
	if m.waiting == nil {
		return false
	}
	things := 0
	for _, j := range m.w.jobs {
		if j.due() == at {
			things++
		}
	}
	for _, p := range m.w.purses {
		if p.next == at {
			things++
		}
	}
	for _, ends := range m.w.windowEnds() {
		if slices.Contains(ends, at) {
			things++
		}
	}
	if things > 1 {
		m.withdraw()
	}
	return things > 1
}

// makeWay makes room for the best of those whom the claim would take, or submits somebody.
func (m *machine) makeWay(q *queuer) {
	jobs := m.awaited(q)
	if len(jobs) == 0 {
		m.submit()
		return
	}
	j := jobs[len(jobs)-1]
	if m.d.rarely("another", 3) {
		j = pickOne(m.d, "for", jobs...)
	}
	key := m.w.full(j)[0]
	kind, quota := cutQuota(key)
	switch kind {
	case "budget":
		m.makeRoomIn(m.purseOf(key))
	case "rate":
		if next := m.w.nextFree(key, m.w.quotas[quota]); m.d.rarely("wait", 2) {
			m.wait(next)
		} else {
			m.raiseQuota(key)
		}
	default:
		holds := func(other *job) bool { return other.status == runs && slices.Contains(other.holds, key) }
		if at := slices.IndexFunc(m.w.jobs, holds); at >= 0 && !m.d.rarely("raise", 3) {
			m.completeOf(m.w.jobs[at], nil)
		} else {
			m.raiseQuota(key)
		}
	}
}

// makeRoomIn makes room in a budget, in one of the ways of B33.
func (m *machine) makeRoomIn(p *purse) {
	if p.closed {
		m.reopen(p)
		return
	}
	ways := []func(){func() { m.resetOf(p) }, func() { m.raise(p) }}
	if p.next != 0 && p.next.Sub(m.w.now()) <= base.Minute {
		wait := func() { m.wait(p.next) }
		ways = append(ways, wait, wait, wait)
	}
	charged := func(j *job) bool { return j.status == runs && slices.Contains(j.charged, p) }
	if at := slices.IndexFunc(m.w.jobs, charged); at >= 0 {
		ways = append(ways, func() { m.completeOf(m.w.jobs[at], nil) })
	}
	pickOne(m.d, "way", ways...)()
}

// raise raises every limit of a budget so that many find room.
func (m *machine) raise(p *purse) {
	for _, name := range slices.Sorted(maps.Keys(p.amounts)) {
		more := int64(100)
		if name == core.WallMS {
			more = 2000
		}
		if a := p.amounts[name]; a.hard > 0 {
			m.setHard(p, name, a.most()+a.overrun+more)
		}
	}
}
