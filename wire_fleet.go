package flowfabric

import "github.com/flowfabric/flowfabric/internal/wire"

// The JSON of lists, events and jobs.

// MarshalJSON writes the page as the HTTP API shows it (U106).
func (p EventPage) MarshalJSON() ([]byte, error) {
	return wire.Marshal(wire.EventPage{Items: each(p.Events, Event.wire), Next: p.Next, AtEnd: p.AtEnd})
}

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (p *EventPage) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.EventPage](text)
	*p = eventPageFrom(w)
	return err
}

func eventPageFrom(w *wire.EventPage) EventPage {
	return EventPage{Events: each(w.Items, eventFrom), Next: w.Next, AtEnd: w.AtEnd}
}

// eventVersion is the version of the fields of all kinds of events.
const eventVersion = 1

// MarshalJSON writes the event as the HTTP API shows it.
func (e Event) MarshalJSON() ([]byte, error) { return wire.Marshal(e.wire()) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (e *Event) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.Event](text)
	*e = eventFrom(*w)
	return err
}

func (e Event) wire() wire.Event {
	w := wire.Event{
		ID: e.ID, Cursor: e.Cursor, Kind: e.Kind, V: eventVersion, At: wireTime(e.At), Namespace: e.Namespace, ExecutionID: string(e.ExecutionID),
		ExecutionKind: e.ExecKind, FlowID: string(e.FlowID), RootFlowID: string(e.RootFlowID), Lane: e.Lane, WorkerInstanceID: e.InstanceID, Tags: e.Tags,
		Actor: wire.Actor{Type: e.ActorType, ID: e.ActorID}, RequestID: e.RequestID, Data: e.Data,
	}
	if e.AttemptIndex >= 0 {
		w.AttemptIndex = &e.AttemptIndex
	}
	return w
}

func eventFrom(w wire.Event) Event {
	e := Event{
		ID: w.ID, Cursor: w.Cursor, Kind: w.Kind, At: w.At.Time, Namespace: w.Namespace, ExecutionID: ID(w.ExecutionID),
		ExecKind: w.ExecutionKind, FlowID: ID(w.FlowID), RootFlowID: ID(w.RootFlowID), Lane: w.Lane, AttemptIndex: -1, InstanceID: w.WorkerInstanceID, Tags: w.Tags,
		ActorType: w.Actor.Type, ActorID: w.Actor.ID, RequestID: w.RequestID, Data: w.Data,
	}
	if w.AttemptIndex != nil {
		e.AttemptIndex = *w.AttemptIndex
	}
	return e
}

// MarshalJSON writes the job as the HTTP API shows it (U57).
func (j BulkJob) MarshalJSON() ([]byte, error) {
	w := wire.BulkJob{
		JobID: j.ID, Action: j.Action, State: j.State, Total: j.Total, Done: j.Done, Refused: j.Refused, Failed: j.Failed,
		StartedAt: wireTime(j.StartedAt), EndedAt: wireTime(j.EndedAt), DryRun: j.DryRun, RatePerSecond: j.RatePerSecond, Sample: texts(j.Sample),
	}
	if j.DryRun {
		w.Total, w.Matched = 0, j.Total
	}
	return wire.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (j *BulkJob) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.BulkJob](text)
	*j = *jobFrom(w)
	return err
}

func jobFrom(w *wire.BulkJob) *BulkJob {
	j := &BulkJob{
		ID: w.JobID, Action: w.Action, State: w.State, DryRun: w.DryRun, Total: w.Total, Done: w.Done, Refused: w.Refused, Failed: w.Failed,
		StartedAt: w.StartedAt.Time, EndedAt: w.EndedAt.Time, RatePerSecond: w.RatePerSecond,
	}
	if w.DryRun {
		j.Total = w.Matched
	}
	for _, id := range w.Sample {
		j.Sample = append(j.Sample, ID(id))
	}
	return j
}

// MarshalJSON writes the item as the HTTP API shows it (U58).
func (i BulkItem) MarshalJSON() ([]byte, error) {
	return wire.Marshal(wire.BulkItem{ExecutionID: string(i.ID), OK: i.OK, Error: problemOf(i.Err)})
}

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (i *BulkItem) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.BulkItem](text)
	*i = bulkItemFrom(*w)
	return err
}

func bulkItemFrom(w wire.BulkItem) BulkItem {
	return BulkItem{ID: ID(w.ExecutionID), OK: w.OK, Err: refusalFrom(w.Error)}
}

// MarshalJSON writes the answer as the HTTP API shows it (U50).
func (r Revocation) MarshalJSON() ([]byte, error) {
	w := wire.Revocation{Outcome: r.Outcome, Cause: r.Cause, LeaseID: r.LeaseID, LeaseEpoch: r.Epoch, HandToError: problemOf(r.HandToErr)}
	if r.Grant != nil {
		grant := r.Grant.wire()
		w.Grant = &grant
	}
	return wire.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (r *Revocation) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.Revocation](text)
	*r = revocationFrom(w)
	return err
}

func revocationFrom(w *wire.Revocation) Revocation {
	r := Revocation{Outcome: w.Outcome, Cause: w.Cause, LeaseID: w.LeaseID, Epoch: w.LeaseEpoch, HandToErr: refusalFrom(w.HandToError)}
	if w.Grant != nil {
		grant := grantFrom(*w.Grant)
		r.Grant = &grant
	}
	return r
}
