package model

import (
	"fmt"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/invariants"
)

// watch remembers of every execution what must never fall.
type watch struct {
	created  base.Time
	epoch    int64
	mutated  base.Time
	started  base.Time
	attempts int
}

// broken lists the invariants that what a store holds does not satisfy.
func broken(s *subject, got *state, watched map[base.UUID]watch, ends map[string]string, swept bool, now base.Time) []string {
	for id := range watched {
		if got.records[id] == nil { // removed: the id may be used anew
			delete(watched, id)
		}
	}
	snap := invariants.Snapshot{Records: map[base.UUID]invariants.Record{}, Queue: got.queue, Counters: got.counters}
	for id, r := range got.records {
		snap.Records[id] = invariants.Record{X: r.x, History: r.history}
	}
	found := append(snap.Broken(), brokenWaits(got, ends)...)
	for id, r := range got.records {
		if text := invariants.History(r.x, s.told[id]); text != "" {
			found = append(found, fmt.Sprintf("%s: %s", r.x.ID, text))
		}
		if swept && r.x.WakeAt != 0 && r.x.WakeAt <= now {
			found = append(found, fmt.Sprintf("%s: I16: the sweep left a timer due at %s", r.x.ID, r.x.WakeAt))
		}
		if text := fell(watched, r.x); text != "" {
			found = append(found, fmt.Sprintf("%s: %s", r.x.ID, text))
		}
	}
	for i := range found {
		found[i] = s.name + ": " + found[i]
	}
	return found
}

// fell is the part of LI2 and LI5 that looks at two moments.
func fell(watched map[base.UUID]watch, x *core.Execution) string {
	now := watch{created: x.CreatedAt, epoch: x.LeaseEpoch, mutated: x.LastMutationAt, started: x.StartedAt, attempts: x.TotalAttempts}
	before, known := watched[x.ID.UUID]
	watched[x.ID.UUID] = now
	if !known || before.created != now.created {
		return ""
	}
	if now.epoch < before.epoch || now.mutated < before.mutated || now.attempts < before.attempts || before.started != 0 && now.started != before.started {
		return fmt.Sprintf("LI5: went from %+v to %+v", before, now)
	}
	return ""
}
