package store

import (
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
)

// HistoryRowOf makes the row of an entry of the lease history. rec.Replaces is handled by the store.
func HistoryRowOf(rec *core.LeaseRecord) HistoryRow {
	r := HistoryRow{
		ID: rec.ExecutionID.UUID, Epoch: rec.Epoch, LeaseID: rec.LeaseID, EndedAt: rec.EndedAt, End: rec.End,
		HasResult: rec.Result != nil,
	}
	if rec.Result != nil {
		r.Result = rec.Result.Data
		if r.Result == nil {
			r.Result = []byte{}
		}
	}
	c := writer(historyVersion, bodyRoom, rec.EndedAt)
	sum := sumOf(r.Result)
	c.history(rec, &sum)
	c.seal(0)
	r.Body = c.out
	return r
}

// Record reads the row back, with the patch applied. id is the id of the execution, whose N is not in the row. The bytes of the result are
// r.Result, nil if they were not loaded. Unreadable bytes are code corruption.
func (r *HistoryRow) Record(id base.ID) (core.LeaseRecord, error) {
	rec := core.LeaseRecord{ExecutionID: id, Epoch: r.Epoch, LeaseID: r.LeaseID, EndedAt: r.EndedAt, End: r.End}
	body, ok := unseal(r.Body)
	if !ok {
		return core.LeaseRecord{}, damaged("lease history", id.UUID)
	}
	c := reader(historyVersion, string(body), r.EndedAt)
	var sum uint32
	summed := c.history(&rec, &sum)
	if !c.finished() || !known(r.End.String()) || r.HasResult != (rec.Result != nil) {
		return core.LeaseRecord{}, corrupt("lease history", id.UUID)
	}
	if summed && r.Result != nil && sum != sumOf(r.Result) {
		return core.LeaseRecord{}, damaged("result", id.UUID)
	}
	if rec.Result != nil {
		rec.Result.Data = r.Result
	}
	if r.PatchState == 0 {
		return rec, nil
	}
	patch := core.AttemptPatch{State: r.PatchState}
	end, ok := unseal(r.PatchBody)
	p := reader(patchVersion, string(end), 0)
	p.patch(&patch)
	if !ok || !p.finished() || !known(r.PatchState.String()) {
		return core.LeaseRecord{}, corrupt("end of an attempt", id.UUID)
	}
	rec.Attempt.State, rec.Attempt.EndedAt, rec.Attempt.Failure = patch.State, patch.EndedAt, patch.Failure
	return rec, nil
}

// CheckedResult returns the bytes of the result, which must be loaded. Codes: corruption, also if there is none.
func (r *HistoryRow) CheckedResult(id base.ID) ([]byte, error) {
	record, err := r.Record(id)
	switch {
	case err != nil:
		return nil, err
	case record.Result == nil:
		return nil, corrupt("result", id.UUID)
	}
	return record.Result.Data, nil
}

// EncodePatch encodes a patch as HistoryRow.PatchBody; its PatchState is p.State.
func EncodePatch(p core.AttemptPatch) []byte {
	c := writer(patchVersion, 16, 0)
	c.patch(&p)
	c.seal(0)
	return c.out
}

// Parts of HistoryRow.Body. Values are stored.
const (
	historyLate uint64 = 1 << iota
	historyAnswer
	historyResult
	historyRun
	historyResultSum
)

// history codes the body of an entry. resultSum is the checksum of its result; summed reports whether there is one.
func (c *coder) history(rec *core.LeaseRecord, resultSum *uint32) (summed bool) {
	parts := bits(historyLate, rec.Late) |
		bits(historyAnswer, rec.Answer != nil) |
		bits(historyResult, rec.Result != nil) |
		bits(historyRun, rec.RunIndex != 0) |
		bits(historyResultSum, rec.Result != nil)
	c.uint(&parts)
	if c.reading {
		rec.Late = parts&historyLate != 0
	}
	if parts&historyRun != 0 {
		c.int(&rec.RunIndex)
	}
	c.text(&rec.WorkerID)
	c.text(&rec.InstanceID)
	c.time(&rec.AcquiredAt)
	c.attempt(&rec.Attempt, surroundings{worker: rec.WorkerID, instance: rec.InstanceID})
	if parts&historyAnswer != 0 {
		c.json(&rec.Answer)
	}
	if parts&historyResult != 0 {
		c.payload(present(c, &rec.Result))
	}
	if summed = parts&historyResultSum != 0; summed {
		c.sum(resultSum)
	}
	return summed
}

func (c *coder) patch(p *core.AttemptPatch) {
	c.time(&p.EndedAt)
	failed := p.Failure != nil
	c.flag(&failed)
	if failed {
		c.failure(present(c, &p.Failure))
	}
}
