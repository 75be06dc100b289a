package schedule

import (
	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Naming is what a new schedule is made of beside its definition.
type Naming struct {
	ID        base.UUID
	Namespace string
	Name      string
	By        string
}

// Create makes a schedule (T17, T19): no moment up to now fires. One that only lacks time is ended.
func Create(n Naming, spec *Spec, now base.Time) Plan {
	r := Schedule{
		ID: n.ID, Namespace: n.Namespace, Name: n.Name, Revision: 1, Definition: spec.Definition, State: Active,
		ThroughAt: now, CreatedAt: now, UpdatedAt: now, By: n.By,
	}
	s := begin(&r, spec, &Facts{Now: now})
	s.events = append(s.events, Event{Type: EventCreated, By: n.By})
	return s.plan()
}

// What a put does (T17).
const (
	PutCreated   = "created"
	PutUpdated   = "updated"
	PutUnchanged = "unchanged"
)

// Put decides what becomes of a definition under a name: PutCreated, PutUpdated or PutUnchanged. present is the schedule of that name, nil for none.
// A create refuses another definition: schedule_already_exists. An expected revision that is not the present one is stale_version.
func Put(present *Schedule, definition *Definition, expected *int64, create bool) (string, error) {
	if present == nil {
		if expected != nil && *expected != 0 {
			return "", stale(0, *expected)
		}
		return PutCreated, nil
	}
	equal := present.Definition.Equal(definition)
	switch {
	case create && !equal:
		return "", base.Errorf(base.CodeScheduleAlreadyExists, "the schedule %s exists with another definition", present.Name).WithField("name")
	case expected != nil && *expected != present.Revision:
		return "", stale(present.Revision, *expected)
	case equal:
		return PutUnchanged, nil
	default:
		return PutUpdated, nil
	}
}

func stale(present, expected int64) error {
	return base.Errorf(base.CodeStaleVersion, "the revision is %d, not %d", present, expected).WithField("expected_revision").
		With("revision", present).WithHint("read it again and decide anew")
}

// Change gives a schedule another definition (T19). It settles by the old one first; what is not due by then is passed over. old is the spec of the
// present definition.
func Change(r *Schedule, old, spec *Spec, facts *Facts, by string) Plan {
	s := begin(r, old, facts)
	s.settle()
	s.passOver()
	s.Definition, s.spec, s.jitter = spec.Definition, spec, Jitter(r.ID, spec.Definition.JitterMS)
	s.Revision++
	s.UpdatedAt, s.By = facts.Now, by
	s.Run, s.more = nil, false
	if spec.Definition.Overlap == OverlapSkip && r.Definition.Overlap != OverlapSkip {
		s.dropQueue(ReasonChanged, func(*Firing) bool { return true })
	}
	s.events = append(s.events, Event{Type: EventUpdated, By: by})
	s.reopen()
	return s.plan()
}

// passOver settles every moment up to now: those of an active schedule that were not due yet are missed.
func (s *settling) passOver() {
	if s.State == Active {
		s.miss(s.facts.Now+1, ReasonChanged)
	}
	s.ThroughAt = max(s.ThroughAt, s.facts.Now)
}

// reopen makes an ended schedule active if it has moments left.
func (s *settling) reopen() {
	if s.State != Ended {
		return
	}
	if _, left := s.spec.Next(s.ThroughAt); left && !s.runsUsedUp() {
		s.State, s.EndedAt = Active, 0
	}
}

// PauseSchedule pauses a schedule (T21). One that is paused stays as it is, but for what ended meanwhile; changed is false then, and if it is ended.
func PauseSchedule(r *Schedule, spec *Spec, facts *Facts, by, reason string) (p Plan, changed bool) {
	s := begin(r, spec, facts)
	s.settle()
	if changed = s.State == Active; changed {
		s.State, s.Pause = Paused, Pause{By: by, At: facts.Now, Reason: reason}
		s.Run = nil
		s.events = append(s.events, Event{Type: EventPaused, By: by, Reason: reason})
	}
	return s.plan(), changed
}

// Resume makes a paused schedule active, and an ended one that has moments left (T21). No moment of the pause fires, and none counts as missed; what
// waited starts.
func Resume(r *Schedule, spec *Spec, facts *Facts, by, reason string) (p Plan, changed bool) {
	s := begin(r, spec, facts)
	s.settle()
	before := s.State
	if s.State == Paused {
		s.State, s.Pause, s.FailuresInRow = Active, Pause{}, 0
	}
	if before != Active {
		s.ThroughAt = max(s.ThroughAt, facts.Now)
		s.reopen()
	}
	if changed = s.State != before; changed {
		s.Run = nil
		s.events = append(s.events, Event{Type: EventResumed, By: by, Reason: reason})
		s.startQueue()
	}
	return s.plan(), changed
}

// Delete returns what the deletion of a schedule tells, and the firings whose work it cancels (T21): the open ones if cancelOpen is set, else none. The
// record and its history are removed.
func Delete(r *Schedule, cancelOpen bool, by string) ([]Firing, Event) {
	e := Event{Type: EventDeleted, By: by}
	if cancelOpen {
		return r.Open, e
	}
	return nil, e
}

// Listed is a schedule as Sync sees it.
type Listed struct {
	Name       string
	Definition Definition
}

// Step is what Sync does about one name: PutCreated, PutUpdated, PutUnchanged or SyncDeleted.
type Step struct {
	Name, What string
}

// SyncDeleted is the step of a schedule that is no longer wanted.
const SyncDeleted = "deleted"

// maxSynced bounds the list of a sync (T17).
const maxSynced = 1000

// Sync compares the schedules that have a managed_by with those that are wanted (T17). The steps are those of the wanted ones, in their order, then
// those of the others. A list that is too long, or names one twice, is invalid_schedule. others are schedules of wanted names that are not managed so:
// they are taken over.
func Sync(managed, others, wanted []Listed) ([]Step, error) {
	if len(wanted) > maxSynced {
		return nil, base.Errorf(base.CodeInvalidSchedule, "%d schedules, at most %d are allowed", len(wanted), maxSynced).WithField("schedules")
	}
	present := map[string]*Definition{}
	for _, list := range [][]Listed{others, managed} {
		for i := range list {
			present[list[i].Name] = &list[i].Definition
		}
	}
	seen := map[string]bool{}
	steps := make([]Step, 0, len(wanted))
	for i, w := range wanted {
		if seen[w.Name] {
			return nil, base.Errorf(base.CodeInvalidSchedule, "%s is given twice", base.CutText(w.Name, 128)).WithField(base.Element("schedules", i) + ".name")
		}
		seen[w.Name] = true
		what := PutCreated
		if definition := present[w.Name]; definition != nil {
			what = PutUpdated
			if definition.Equal(&w.Definition) {
				what = PutUnchanged
			}
		}
		steps = append(steps, Step{w.Name, what})
	}
	for i := range managed {
		if !seen[managed[i].Name] {
			steps = append(steps, Step{managed[i].Name, SyncDeleted})
		}
	}
	return steps, nil
}
