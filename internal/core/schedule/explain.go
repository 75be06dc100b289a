package schedule

import (
	"fmt"
	"slices"
	"time"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Question asks why a schedule does not fire (T45). Beside the record it holds what was read with it.
type Question struct {
	Now base.Time
	At  base.Time // a moment; 0: now
	Row *Firing   // the row of the history that has the moment, or the run that contains it; nil: none

	NoEngine   bool      // no process turns timers
	EngineSeen base.Time // the last sweep; 0: none was seen
	Lane       string    // of the action
	LaneShut   bool      // the lane accepts nothing
}

// Explanation is the answer: a sentence, and everything that is in the way, in the order of T45.
type Explanation struct {
	Sentence string
	Blockers []Blocker
}

// Blocker is one thing that is in the way. Fields that say nothing about it are zero.
type Blocker struct {
	Code          string
	Text          string
	Before, After base.Time // the nearest moments, of no_such_moment
	Except        string    // the entry that removes the moment, such as except[0]
	Change        base.Time // the change of the clock at which its reading had come already
	At            base.Time // when it was created, starts, ended, was paused, is due, or the last sweep
	By, Reason    string
	Firings       []Firing // that are open, wait or were decided
	Place         int      // in the queue, from 1
	NotBefore     base.Time
	LateMS        base.Millis
	WindowMS      base.Millis
	Policy        CatchUpPolicy
	Limit         int
	Tries         int
	Lane          string
}

// The codes of blockers, in their order.
const (
	BlockNotYetCreated    = "not_yet_created"
	BlockNoSuchMoment     = "no_such_moment"
	BlockBeforeStart      = "before_start"
	BlockAfterEnd         = "after_end"
	BlockRunsUsedUp       = "runs_used_up"
	BlockPaused           = "paused"
	BlockNotDue           = "not_due"
	BlockAlreadySubmitted = "already_submitted"
	BlockOverlap          = "overlap"
	BlockQueued           = "queued"
	BlockMissed           = "missed"
	BlockRefused          = "refused"
	BlockNoEngine         = "no_engine"
	BlockLane             = "lane"
)

// explaining is an answer that is being made.
type explaining struct {
	*Schedule
	spec *Spec
	q    *Question
	at   base.Time // the time that is asked about
	all  []Blocker
}

// Explain answers a question from the record alone, by the functions that decide.
func Explain(r *Schedule, spec *Spec, q *Question) Explanation {
	e := explaining{Schedule: r, spec: spec, q: q, at: q.At}
	setDefault(&e.at, q.Now)
	for _, look := range []func(){
		e.existence, e.bounds, e.pause, e.due, e.submitted, e.overlap, e.queue, e.lost, e.surroundings,
	} {
		look()
	}
	if len(e.all) > 0 {
		return Explanation{Sentence: e.all[0].Text, Blockers: e.all}
	}
	return Explanation{Sentence: "Nothing is in the way: the moment is being settled."}
}

func (e *explaining) add(b Blocker, format string, args ...any) {
	b.Text = fmt.Sprintf(format, args...)
	e.all = append(e.all, b)
}

// asked reports whether a moment of the past or future is asked about.
func (e *explaining) asked() bool { return e.q.At != 0 }

// existence looks at whether there is such a moment, and was such a schedule.
func (e *explaining) existence() {
	if e.at < e.CreatedAt {
		e.add(Blocker{Code: BlockNotYetCreated, At: e.CreatedAt}, "The schedule was created at %s, after this moment.", e.CreatedAt)
	}
	all := e.spec.Unbounded()
	if !e.asked() || all.has(e.at) || e.q.Row != nil && !e.q.Row.Call.IsZero() {
		return
	}
	b := Blocker{Code: BlockNoSuchMoment}
	b.Before, _ = all.Prev(e.at)
	b.After, _ = all.Next(e.at)
	why := ""
	m := floorSecond(e.at)
	kept := *all
	kept.except = nil
	switch {
	case ceilSecond(e.at) == m && kept.has(e.at):
		for i, p := range all.except {
			if p.Matches(all.zone.Reading(m)) {
				b.Except = base.Element("except", i)
				why = fmt.Sprintf(", because %s (%s) removes it", b.Except, p)
				break
			}
		}
	case kept.shownEarlier(m):
		b.Change = timeOf(all.zone.Period(all.zone.At(m)).Begin)
		why = fmt.Sprintf(", because the clocks were set back at %s, and show this time again", b.Change)
	}
	e.add(b, "The schedule has no moment at %s%s; the nearest ones are %s and %s.", e.at, why, b.Before, b.After)
}

// has reports whether a time is a moment.
func (s *Spec) has(at base.Time) bool {
	m, ok := s.Prev(at + 1)
	return ok && m == at
}

// shownEarlier reports whether a fixed entry matches the reading of an instant, which an earlier instant had already.
func (s *Spec) shownEarlier(m int64) bool {
	i := s.zone.At(m)
	reading := s.zone.Reading(m)
	_, shown := shownBefore(s.zone, i, reading)
	return shown && slices.ContainsFunc(s.entries, func(e entry) bool { return e.pattern != nil && !e.pattern.Flowing() && e.pattern.Matches(reading) })
}

// bounds looks at start_at, end_at and max_runs.
func (e *explaining) bounds() {
	d := &e.Definition
	if e.at < d.StartAt {
		e.add(Blocker{Code: BlockBeforeStart, At: d.StartAt}, "The schedule starts at %s.", d.StartAt)
	}
	if d.EndAt != 0 && e.at >= d.EndAt {
		e.add(Blocker{Code: BlockAfterEnd, At: d.EndAt}, "The schedule ended at %s.", d.EndAt)
	}
	if e.runsUsedUp() && e.q.Row == nil {
		e.add(Blocker{Code: BlockRunsUsedUp, At: e.EndedAt}, "The schedule has fired %d times, as often as max_runs allows.", e.Runs)
	}
}

func (e *explaining) pause() {
	if e.State != Paused || e.at < e.Pause.At || e.q.Row != nil {
		return
	}
	b := Blocker{Code: BlockPaused, At: e.Pause.At, By: e.Pause.By, Reason: e.Pause.Reason}
	if b.Reason == "" {
		e.add(b, "The schedule was paused by %s at %s.", b.By, b.At)
		return
	}
	e.add(b, "The schedule was paused by %s at %s: %s", b.By, b.At, b.Reason)
}

// due looks at whether the moment is still to come.
func (e *explaining) due() {
	due := e.NextDueAt
	if e.asked() {
		if e.q.Row != nil || !e.spec.has(e.at) || e.State != Active {
			return
		}
		due = e.spec.due(e.at, e.jitter())
	}
	if due > e.q.Now {
		e.add(Blocker{Code: BlockNotDue, At: due}, "The moment is due at %s.", due)
	}
}

func (e *explaining) submitted() {
	if row := e.q.Row; row != nil && row.Outcome == Submitted {
		status := row.Status
		setDefault(&status, "open")
		e.add(Blocker{Code: BlockAlreadySubmitted, At: row.At, Firings: []Firing{*row}}, "The moment was submitted at %s as %s, which is %s.", row.At, row.Target.UUID, status)
	}
}

// overlap looks at open work: that which is in the way now, or was when the moment was skipped.
func (e *explaining) overlap() {
	row := e.q.Row
	switch {
	case row != nil && row.Outcome == Skipped:
		e.add(Blocker{Code: BlockOverlap, At: row.At, Reason: row.Reason, Firings: []Firing{*row}}, "The moment was skipped at %s: %s.", row.At, row.Reason)
	case row == nil && !e.asked() && len(e.Open) > 0 && (e.Definition.Overlap != OverlapAllow || len(e.Open) >= MaxOpen):
		e.add(Blocker{Code: BlockOverlap, Firings: slices.Clone(e.Open)}, "%d firings are open, and overlap is %s.", len(e.Open), e.Definition.Overlap)
	}
}

// queue looks at what waits: the moment, or, if none is asked about, the first one.
func (e *explaining) queue() {
	for i, f := range e.Queue {
		if e.asked() && (e.q.Row == nil || f.Key != e.q.Row.Key) {
			continue
		}
		b := Blocker{Code: BlockQueued, At: f.At, Firings: []Firing{f}, Place: i + 1, NotBefore: f.NotBefore, Tries: f.Tries, Reason: f.Reason}
		if f.Outcome == Retrying {
			e.add(b, "The moment %s was refused with %s and is tried again at %s.", f.Moment, f.Reason, f.NotBefore)
		} else {
			e.add(b, "The moment %s waits at place %d of the queue.", f.Moment, b.Place)
		}
		return
	}
}

// lost looks at moments that were missed or refused for good.
func (e *explaining) lost() {
	row := e.q.Row
	if row == nil {
		return
	}
	switch row.Outcome {
	case Missed:
		c := e.Definition.CatchUp
		late := row.At.Sub(e.at)
		e.add(Blocker{Code: BlockMissed, At: row.At, Reason: row.Reason, Firings: []Firing{*row}, LateMS: late, WindowMS: c.WindowMS, Policy: c.Policy, Limit: c.Limit},
			"The moment was missed: it was settled %s late (%s).", time.Duration(late)*time.Millisecond, row.Reason)
	case Refused:
		e.add(Blocker{Code: BlockRefused, At: row.At, Reason: row.Reason, Firings: []Firing{*row}, Tries: row.Tries}, "The submit was refused with %s, after %d tries.", row.Reason, row.Tries)
	}
}

// surroundings looks at what no schedule decides. It matters to moments that are not settled.
func (e *explaining) surroundings() {
	if e.q.Row != nil {
		return
	}
	if e.q.NoEngine {
		e.add(Blocker{Code: BlockNoEngine, At: e.q.EngineSeen}, "No process settles schedules; the last one was seen at %s.", e.q.EngineSeen)
	}
	if e.q.LaneShut {
		e.add(Blocker{Code: BlockLane, Lane: e.q.Lane}, "The lane %s accepts no submits.", e.q.Lane)
	}
}
