package flowfabric

import "github.com/flowfabric/flowfabric/internal/wire"

// remoteExecutions has the reads of executions whose values are no values of package api yet.
type remoteExecutions struct{ client *remote }

// wire is the selection in the form of bodies and, through Fields, of queries.
func (f Filter) wire() wire.Filter {
	w := wire.Filter{
		Status: texts(f.Status), PublicState: f.PublicState, Reason: f.Reason, Next: f.Next, Kind: f.Kind, Lane: f.Lane,
		WorkerInstanceID: f.InstanceID, FlowID: texts(f.FlowID), ParentID: texts(f.ParentID), Creator: f.Creator, IdempotencyKey: f.IdempotencyKey,
		CreatedFrom: wireTime(f.CreatedFrom), CreatedTo: wireTime(f.CreatedTo), CompletedFrom: wireTime(f.CompletedFrom),
		CompletedTo: wireTime(f.CompletedTo), UpdatedFrom: wireTime(f.UpdatedFrom), UpdatedTo: wireTime(f.UpdatedTo),
		PriorityMin: f.PriorityMin, PriorityMax: f.PriorityMax, Query: f.Query,
	}
	if len(f.Tags)+len(f.HasTags) > 0 {
		w.Tags = make(map[string]*string, len(f.Tags)+len(f.HasTags))
	}
	for _, key := range f.HasTags {
		w.Tags[key] = nil
	}
	for key, value := range f.Tags {
		w.Tags[key] = &value
	}
	return w
}
