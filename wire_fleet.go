package flowfabric

import "github.com/flowfabric/flowfabric/internal/wire"

// The JSON of jobs.

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
