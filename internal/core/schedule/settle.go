package schedule

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Facts are what a decision about a schedule depends on beside its record.
type Facts struct {
	Now   base.Time
	Ended []Ending    // open firings whose work is terminal, or gone
	Fired []base.Time // moments after ThroughAt that were submitted before, by a backfill
	Keep  base.Millis // how long an ended schedule is kept; 0: 30 days

	// Submit submits the work of a firing, in the transaction that writes the plan. nil refuses nothing and submits nothing: only for schedules of
	// which nothing is due and nothing waits.
	Submit func(*Start) Verdict
	// Cancel cancels the work of an open firing, and reports whether it is terminal at once and with which status. nil: no work is.
	Cancel func(*Firing) (status string, ended bool)
}

// Ending is the end of the work of a firing (T28).
type Ending struct {
	Key    Key
	Status string // final; "deleted" of work that is gone
	At     base.Time
}

// Start is what is submitted: the firing and what its handler learns of it (T38).
type Start struct {
	Firing     Firing
	Run        int64     // the number of the submit in the life of the schedule, from 1
	PreviousAt base.Time // the moment before it by the definition; 0: none
}

// Verdict is the answer to a submit: a target, or a refusal.
type Verdict struct {
	Target    base.ID
	Err       error // why it was refused; nil: it was not
	Retryable bool  // the refusal is one of L142 that may pass
}

// Plan is what a decision writes.
type Plan struct {
	After  Schedule  // the record
	Rows   []Firing  // rows of the history that are new or replace those of their keys, in order of the decisions
	Events []Event   // in order
	Arm    base.Time // an alarm that is earlier than all in the index; 0: none is needed
	Trim   int       // so many of the oldest rows of the history are to be given to Trim (T47)
	Remove bool      // the schedule ended long ago: it is removed with its history, and nothing else is written
	More   bool      // moments are due that the next transaction settles
}

// settling is a decision under way.
type settling struct {
	Schedule
	spec   *Spec
	facts  *Facts
	jitter base.Millis
	fired  []base.Time // moments after ThroughAt that are not to be submitted again, in order

	rows    []Firing
	place   map[Key]int // of rows
	events  []Event
	submits int
	more    bool
}

func begin(r *Schedule, spec *Spec, facts *Facts) *settling {
	s := &settling{Schedule: r.copy(), spec: spec, facts: facts, jitter: r.jitter(), place: map[Key]int{}}
	s.fired = slices.Clone(facts.Fired)
	for _, list := range [][]Firing{r.Open, r.Queue} {
		for i := range list {
			if list[i].Moment > r.ThroughAt && list[i].Call.IsZero() {
				s.fired = append(s.fired, list[i].Moment)
			}
		}
	}
	slices.Sort(s.fired)
	return s
}

// Settle decides what is due (T22): it closes firings whose work ended, starts what waits, judges the moments that are due, and says what is to be
// written. spec is that of the record's definition.
func Settle(r *Schedule, spec *Spec, facts *Facts) Plan {
	s := begin(r, spec, facts)
	s.settle()
	return s.plan()
}

func (s *settling) settle() {
	s.closeEnded()
	s.startQueue()
	if s.State == Active {
		s.judgeDue()
	}
}

// full reports whether the transaction has as many submits as it may have.
func (s *settling) full() bool {
	if s.Definition.Action.Kind == ActionFlow {
		return s.submits >= maxFlows
	}
	return s.submits >= maxSubmits
}

// closeEnded closes the firings whose work ended, in the order of the ends.
func (s *settling) closeEnded() {
	ended := slices.Clone(s.facts.Ended)
	slices.SortStableFunc(ended, func(a, b Ending) int { return cmp.Or(cmp.Compare(a.At, b.At), a.Key.Compare(b.Key)) })
	for _, e := range ended {
		s.close(e)
	}
}

func (s *settling) close(e Ending) {
	i := slices.IndexFunc(s.Open, func(f Firing) bool { return f.Key == e.Key })
	if i < 0 {
		return // it was closed before
	}
	f := s.Open[i]
	s.Open = slices.Delete(s.Open, i, i+1)
	f.Status, f.EndedAt = e.Status, e.At
	s.write(f)
	switch e.Status {
	case StatusSucceeded:
		s.FailuresInRow = 0
	case StatusFailed, StatusExpired:
		s.FailuresInRow++
		s.pauseAfterFailures(&f)
	}
}

func (s *settling) pauseAfterFailures(last *Firing) {
	limit := s.Definition.PauseAfterFailures
	if limit == 0 || s.FailuresInRow < limit || s.State != Active {
		return
	}
	reason := fmt.Sprintf("%d firings in a row ended without success, the last one, %s, %s", s.FailuresInRow, last.Target.UUID, last.Status)
	s.State, s.Pause = Paused, Pause{By: engineName, At: s.facts.Now, Reason: reason}
	s.events = append(s.events, Event{Type: EventPaused, By: engineName, Reason: reason})
}

// write adds a row to the plan, in place of an earlier one of its key.
func (s *settling) write(f Firing) {
	if i, written := s.place[f.Key]; written {
		s.rows[i] = f
		return
	}
	s.place[f.Key] = len(s.rows)
	s.rows = append(s.rows, f)
}

// insert is write for a key that the history does not have yet.
func (s *settling) insert(f Firing) {
	if _, written := s.place[f.Key]; !written {
		s.Rows++
	}
	s.write(f)
}

// plan completes the record and returns what is to be written.
func (s *settling) plan() Plan {
	s.advance()
	p := Plan{Rows: s.rows, Events: s.events, More: s.more, Trim: int(max(0, min(s.Rows-int64(s.Definition.HistoryLimit), maxTrimmed)))}
	keep := s.facts.Keep
	if keep == 0 {
		keep = DefaultKeep
	}
	p.Remove = s.State == Ended && len(s.Queue) == 0 && s.EndedAt.Add(keep) <= s.facts.Now
	if s.TimerAt <= s.facts.Now {
		s.TimerAt = 0 // it rang
	}
	if alarm := s.alarm(keep); alarm != 0 && (s.TimerAt == 0 || alarm < s.TimerAt) {
		s.TimerAt, p.Arm = alarm, alarm
	}
	p.After = s.Schedule
	p.After.Open, p.After.Queue = orNil(s.Open), orNil(s.Queue)
	return p
}

// orNil makes equal records equal in all their fields.
func orNil(list []Firing) []Firing {
	if len(list) == 0 {
		return nil
	}
	return list
}

// advance finds the next moment, and ends a schedule that has none.
func (s *settling) advance() {
	s.NextAt, s.NextDueAt = 0, 0
	if s.State != Active {
		return
	}
	next, left := s.spec.Next(s.ThroughAt)
	if left && !s.runsUsedUp() {
		s.NextAt, s.NextDueAt = next, s.spec.due(next, s.jitter)
		return
	}
	if s.runsUsedUp() {
		s.dropQueue(ReasonRunsUsedUp, func(f *Firing) bool { return f.Cause.byClock() })
	}
	s.State, s.EndedAt = Ended, s.facts.Now
	s.events = append(s.events, Event{Type: EventEnded})
}

// alarm returns when the schedule must be settled next; 0: when work ends, or never.
func (s *settling) alarm(keep base.Millis) (alarm base.Time) {
	if s.more {
		return s.facts.Now
	}
	alarm = s.NextDueAt
	if s.State == Ended {
		alarm = s.EndedAt.Add(keep)
	}
	for i := range s.Queue {
		f := &s.Queue[i]
		if f.Outcome != Retrying || s.State == Paused {
			continue
		}
		at := f.NotBefore
		if at <= s.facts.Now { // open work is in its way
			at = f.DueAt.Add(s.Definition.CatchUp.WindowMS + 1)
		}
		alarm = base.Earliest(alarm, at)
	}
	return alarm
}
