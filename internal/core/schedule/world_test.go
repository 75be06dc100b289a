package schedule

import (
	"encoding/binary"
	"maps"
	"reflect"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// world is a schedule with a history, a clock and work, and holds every plan against the invariants.
type world struct {
	t       tester
	now     base.Time
	rec     Schedule
	spec    *Spec
	history map[Key]Firing
	events  []Event
	submits []Start
	ended   []Ending
	limit   int // submits of one transaction that were seen at most

	refuse    func(*Start) Verdict // nil: nothing is refused
	cancelled func(*Firing) bool   // reports whether cancelled work ends at once; nil: it does
}

func newWorld(t tester, now base.Time, d Definition) *world {
	t.Helper()
	w := &world{t: t, now: now, history: map[Key]Firing{}, spec: must[*Spec](t)(Parse(d))}
	w.apply(Create(Naming{ID: base.UUID{1}, Namespace: "default", Name: "nightly", By: "ana"}, w.spec, now))
	return w
}

func (w *world) facts() *Facts {
	seen := 0
	f := &Facts{Now: w.now, Ended: w.ended}
	for _, k := range slices.SortedFunc(maps.Keys(w.history), Key.Compare) {
		if k.Moment > w.rec.ThroughAt && k.Call.IsZero() && w.history[k].Outcome == Submitted {
			f.Fired = append(f.Fired, k.Moment)
		}
	}
	f.Submit = func(s *Start) Verdict {
		seen++
		w.limit = max(w.limit, seen)
		if w.refuse != nil {
			if v := w.refuse(s); v.Err != nil {
				return v
			}
		}
		w.submits = append(w.submits, *s)
		var id base.UUID
		binary.BigEndian.PutUint64(id[:], uint64(len(w.submits)))
		return Verdict{Target: base.IDOf(id)}
	}
	f.Cancel = func(f *Firing) (string, bool) {
		return "cancelled", w.cancelled == nil || w.cancelled(f)
	}
	w.ended = nil
	return f
}

// apply writes a plan.
func (w *world) apply(p Plan) Plan {
	w.t.Helper()
	if stored, err := Decode(p.After.Encode()); err != nil || !reflect.DeepEqual(stored, p.After) {
		w.t.Fatalf("%v: the record comes back as\n%+v, not\n%+v", err, stored, p.After)
	}
	if p.After.ThroughAt < w.rec.ThroughAt {
		w.t.Fatalf("TI2: through_at falls from %s to %s", w.rec.ThroughAt, p.After.ThroughAt)
	}
	w.rec = p.After
	for _, f := range p.Rows {
		stored, err := DecodeFiring(f.Encode())
		if err != nil || !reflect.DeepEqual(stored, f) {
			w.t.Fatalf("%v: the row comes back as\n%+v, not\n%+v", err, stored, f)
		}
		w.history[f.Key] = f
	}
	if int64(len(w.history)) != w.rec.Rows {
		w.t.Fatalf("the history has %d rows, and the record counts %d", len(w.history), w.rec.Rows)
	}
	w.events = append(w.events, p.Events...)
	w.invariants(&p)
	return p
}

// invariants holds TI2, TI3 and the counts after a plan.
func (w *world) invariants(p *Plan) {
	w.t.Helper()
	r := &w.rec
	if r.State == Active {
		next, ok := w.spec.Next(r.ThroughAt)
		if !ok || next != r.NextAt {
			w.t.Fatalf("TI2: next_at is %s, and the moment after %s is %s", r.NextAt, r.ThroughAt, next)
		}
		if r.NextDueAt <= w.now && !p.More {
			w.t.Fatalf("TI2: %s is due at %s and is not settled at %s", r.NextAt, r.NextDueAt, w.now)
		}
		if alarm := r.TimerAt; alarm == 0 || alarm > max(r.NextDueAt, w.now) {
			w.t.Fatalf("the alarm is at %s, and the next moment is due at %s", alarm, r.NextDueAt)
		}
	}
	counts := Counts{}
	open := 0
	for _, f := range w.history {
		switch f.Outcome {
		case Submitted:
			counts.Submitted++
			if f.Status == "" {
				open++
			}
		case Skipped:
			counts.Skipped += max(1, f.Count)
		case Missed:
			counts.Missed += f.Count
		case Refused:
			counts.Refused++
		}
	}
	if counts != r.Counts || open != len(r.Open) || w.limit > maxSubmits {
		w.t.Fatalf("the rows say %+v with %d open, the record %+v with %d; %d submits at once", counts, open, r.Counts, len(r.Open), w.limit)
	}
}

// settle settles until nothing is due, and returns the last plan.
func (w *world) settle() Plan {
	w.t.Helper()
	for {
		p := w.apply(Settle(&w.rec, w.spec, w.facts()))
		if !p.More {
			return p
		}
	}
}

// to turns the clock and settles.
func (w *world) to(text string) Plan {
	w.t.Helper()
	w.now = at(w.t, text)
	return w.settle()
}

// end ends open work, at the time of the clock.
func (w *world) end(i int, status string) {
	w.ended = append(w.ended, Ending{Key: w.rec.Open[i].Key, Status: status, At: w.now})
}

// change gives the schedule another definition.
func (w *world) change(change func(*Definition)) {
	w.t.Helper()
	d := w.rec.Definition
	change(&d)
	old := w.spec
	w.spec = must[*Spec](w.t)(Parse(d))
	w.apply(Change(&w.rec, old, w.spec, w.facts(), "ben"))
}

// rows returns the history as texts, in order of time: outcome, moments, count and what else is special.
func (w *world) rows() (all []string) {
	for _, k := range slices.SortedFunc(maps.Keys(w.history), Key.Compare) {
		f := w.history[k]
		text := string(f.Outcome) + " " + f.Moment.Std().Format("02T15:04:05")
		if f.Run {
			text += ".." + f.Last.Std().Format("02T15:04:05") + " " + base.Element("", int(f.Count))
		}
		if f.Outcome == Submitted && f.Cause != CauseTimer {
			text += " " + string(f.Cause)
		}
		if f.Reason != "" {
			text += " " + f.Reason
		}
		if f.Status != "" {
			text += " " + f.Status
		}
		all = append(all, text)
	}
	return all
}

// wantRows fails unless the history is this one.
func (w *world) wantRows(rows ...string) {
	w.t.Helper()
	if got := w.rows(); !slices.Equal(got, rows) {
		w.t.Fatalf("the history is\n%q, want\n%q", got, rows)
	}
}

// wantEvents fails unless these are the types of the last events.
func (w *world) wantEvents(types ...string) {
	w.t.Helper()
	var got []string
	for _, e := range w.events[max(0, len(w.events)-len(types)):] {
		got = append(got, e.Type)
	}
	if !slices.Equal(got, types) {
		w.t.Fatalf("the last events are %q, want %q", got, types)
	}
}
