package model

import (
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
)

// gate lets a job pass that does not run (L14).
func (w *account) gate(j *job) {
	switch {
	case j.delayUntil > w.now():
		j.status = delayed
	case j.held:
		j.status = heldBack
	default:
		j.status, j.delayUntil = waits, 0
	}
}

// suits reports whether who has these capabilities may take the job (S11).
func (j *job) suits(caps []string) bool {
	return !slices.ContainsFunc(j.caps, func(token string) bool { return !slices.Contains(caps, token) })
}

// match reports whether the job is a candidate in a lane for who has these capabilities (S17).
func (j *job) match(lane string, caps []string) bool {
	return j.status == waits && j.lane == lane && j.suits(caps)
}

// inLane counts who is granted or runs in a lane (S5).
func (w *account) inLane(lane string) (n int) {
	for _, j := range w.jobs {
		if j.lane == lane && (j.status == granted || j.status == runs) {
			n++
		}
	}
	return n
}

func (w *account) laneFull(lane string) bool {
	t := w.lanes[lane]
	return t.places > 0 && w.inLane(lane) >= t.places
}

// best is the job that a pick takes next: of the first lane with one, the first in order that is admitted (S18, S19, S46).
func (w *account) best(lanes, caps []string) *job {
	for _, lane := range lanes {
		if !w.lanes[lane].open || w.laneFull(lane) {
			continue
		}
		var line []*job
		for _, j := range w.jobs {
			if j.match(lane, caps) {
				line = append(line, j)
			}
		}
		slices.SortFunc(line, byOrder)
		for _, j := range line {
			if len(w.full(j)) == 0 {
				return j
			}
		}
	}
	return nil
}

// acquire makes a lease (S20).
func (w *account) acquire(j *job, ttl base.Millis) {
	j.status, j.endsAt = runs, w.now().Add(ttl)
	j.starts, j.late, j.lapsed, j.bereft = nil, false, nil, false
	j.next = ""
	j.epoch++
	j.since = w.now()
	j.runsOutAt = j.runsOut(j.since)
}

// promise makes a grant (S27).
func (w *account) promise(j *job, to string, ttl base.Millis) {
	j.status, j.endsAt, j.to = granted, w.now().Add(ttl), to
}

// void ends a grant that was not used (S32).
func (w *account) void(j *job) {
	if j.status == granted {
		w.giveBack(j)
		w.shrink()
		w.gate(j)
	}
}

// leave ends the lease of a job. waiting: it keeps its slots if its policy says so (S41). lost: what is left of its reservation is
// forfeited where a budget says so (B15).
func (w *account) leave(j *job, waiting, lost bool) {
	w.bookTime(j)
	if !waiting || !j.keeps {
		j.holds = nil
	}
	j.lapsed = j.charged
	for _, p := range j.charged {
		if !lost || !p.forfeits {
			continue
		}
		for name, n := range j.reserved[p] {
			p.use(j, name, n)
			j.reserved[p][name] = 0
		}
	}
	j.charged, j.reserved = nil, nil
	w.shrink()
}

// spend books what a command that leaves the run says was used (B16). A breach does nothing to the run.
func (w *account) spend(j *job, usage map[string]int64) []breach {
	if len(usage) == 0 {
		return nil
	}
	b := booking{w: w, j: j, lines: j.charged, holds: true, usage: usage, spent: true}
	if j.late {
		b.lines, b.holds = j.lapsed, false
	}
	_, hard := b.settle()
	return hard
}

// end is the way into every terminal status.
func (w *account) end(j *job) {
	switch j.status {
	case runs:
		w.leave(j, false, false)
	case granted:
		w.giveBack(j)
	}
	j.holds, j.late = nil, false
	j.status, j.held, j.delayUntil = over, false, 0
	w.shrink()
}

// lapse is the end of a lease that was not renewed (L103).
func (w *account) lapse(j *job) {
	w.leave(j, false, true)
	const most = 10
	if j.reclaims == most {
		w.end(j)
		return
	}
	j.reclaims++
	j.next, j.late = reclaimed, true
	w.gate(j)
}

// cancelHolders ends everybody whose lease is charged to a budget, but for the one that is spared (B27, B28).
func (w *account) cancelHolders(p *purse, spared *job) {
	for _, j := range w.jobs {
		if j.status == runs && j != spared && slices.Contains(j.charged, p) {
			w.end(j)
		}
	}
}

// act does what the first breached budget asks for (B27). acts is false where the reporter is spared (B28).
func (w *account) act(j *job, hard []breach, acts bool) string {
	if len(hard) == 0 {
		return core.ActionNone
	}
	p := hard[0].p
	acts = acts && j != nil && j.status == runs
	switch {
	case p.onHard == core.OnHardCancelRunning:
		spared, action := j, core.ActionNone
		if acts && slices.Contains(j.charged, p) {
			spared, action = nil, core.ActionCancelled
		}
		w.cancelHolders(p, spared)
		return action
	case p.onHard == core.OnHardFail && acts:
		w.end(j)
		return core.ActionFailed
	case p.onHard == core.OnHardSuspendForApproval && acts:
		w.suspend(j)
		j.asked, j.askedFor = p, hard[0].name
		return core.ActionSuspended
	default:
		return core.ActionNone
	}
}

func (w *account) suspend(j *job) {
	w.leave(j, true, false)
	j.status, j.next, j.asked = suspends, resumes, nil
}

// due is the first moment after now at which a timer acts; 0: none.
func (w *account) due() (first base.Time) {
	note := func(at base.Time) {
		if at > 0 && (first == 0 || at < first) {
			first = at
		}
	}
	for _, j := range w.jobs {
		note(j.due())
	}
	for _, p := range w.purses {
		note(p.next)
	}
	return first
}

// due is the first moment at which a timer of the job acts; 0: none.
func (j *job) due() base.Time {
	switch {
	case j.status == runs && j.runsOutAt != 0:
		return min(j.endsAt, j.runsOutAt)
	case j.status == granted || j.status == runs:
		return j.endsAt
	case j.status == delayed:
		return j.delayUntil
	default:
		return 0
	}
}

// wake lets everything act that is due now.
func (w *account) wake() {
	now := w.now()
	for _, p := range w.purses {
		if p.next != 0 && p.next <= now {
			w.reset(p)
			p.next = w.nextReset(p)
		}
	}
	for _, j := range w.jobs {
		switch {
		case j.status == runs && j.endsAt <= now:
			w.lapse(j)
		case j.status == runs && j.runsOutAt != 0 && j.runsOutAt <= now:
			w.runOut(j)
		case j.status == granted && j.endsAt <= now:
			w.void(j)
		case j.status == delayed && j.delayUntil <= now:
			w.gate(j)
		}
	}
}
