package schedule

import "github.com/flowfabric/flowfabric/internal/core/base"

// The tags that work of a schedule has beside those of its submission (T37).
const (
	TagSchedule    = "ff.schedule"     // the name
	TagScheduledAt = "ff.scheduled_at" // the moment
)

// NextStart returns what will be submitted at the next moment, with which a definition is checked before it is stored (T18). Of a schedule that has no moment
// left it is the last one that was settled.
func (r *Schedule) NextStart(spec *Spec) *Start {
	moment, due := r.NextAt, r.NextDueAt
	if moment == 0 {
		moment = timeOf(floorSecond(r.ThroughAt))
		due = moment
	}
	previous, _ := spec.Prev(moment)
	return &Start{Firing: Firing{Key: Key{Moment: moment}, DueAt: due, Cause: CauseTimer}, Run: r.Counts.Submitted + 1, PreviousAt: previous}
}

// Tags returns the tags of the work of a schedule, given those of its submission.
func (s *Start) Tags(name string, own base.Tags) base.Tags {
	all := make(base.Tags, len(own)+2)
	for key, value := range own {
		all[key] = value
	}
	all[TagSchedule], all[TagScheduledAt] = name, s.Firing.Moment.String()
	return all
}

// Values returns what the placeholders of the work stand for (T39). spec is that of the schedule.
func (s *Start) Values(r *Schedule, spec *Spec) *Values {
	return &Values{
		Name: r.Name, ID: r.ID, ScheduledAt: s.Firing.Moment, PreviousAt: s.PreviousAt, Run: s.Run, Cause: s.Firing.Cause, Zone: spec.zone,
	}
}

// Origin is what work can read of the schedule that started it (T38).
type Origin struct {
	Name        string    `json:"name"`
	ScheduleID  base.UUID `json:"schedule_id"`
	ScheduledAt base.Time `json:"scheduled_at"` // the moment, never the time at which it was submitted
	DueAt       base.Time `json:"due_at"`
	Cause       Cause     `json:"cause"`
	Run         int64     `json:"run"`                   // the number of the submit in the life of the schedule, from 1
	PreviousAt  base.Time `json:"previous_at,omitempty"` // the moment before it by the definition; 0: none
	Timezone    string    `json:"timezone"`
}

// Origin returns what the work can read of the schedule.
func (s *Start) Origin(r *Schedule) Origin {
	return Origin{
		Name: r.Name, ScheduleID: r.ID, ScheduledAt: s.Firing.Moment, DueAt: s.Firing.DueAt, Cause: s.Firing.Cause, Run: s.Run, PreviousAt: s.PreviousAt,
		Timezone: r.Definition.Timezone,
	}
}
