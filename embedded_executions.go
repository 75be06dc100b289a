package flowfabric

import (
	"maps"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
)

// embeddedExecutions has the reads of executions whose values are no values of package api yet.
type embeddedExecutions struct{ client *embedded }

// limitOf is how many items a page has; nil: by default.
func limitOf(given int) *int {
	if given == 0 {
		return nil
	}
	return &given
}

// pageOf shows a part of a list.
func pageOf[From, To any](all []From, show func(From) To, next string) Page[To] {
	items := make([]To, len(all))
	for i, one := range all {
		items[i] = show(one)
	}
	return Page[To]{Items: items, NextCursor: next}
}

func (f Filter) core() core.Filter {
	filter := core.Filter{
		Status: texts(f.Status), PublicState: f.PublicState, Reason: f.Reason, Next: f.Next, Lane: f.Lane, Kind: f.Kind,
		Created:   core.TimeRange{From: core.TimeOf(f.CreatedFrom), To: core.TimeOf(f.CreatedTo)},
		Completed: core.TimeRange{From: core.TimeOf(f.CompletedFrom), To: core.TimeOf(f.CompletedTo)},
		Updated:   core.TimeRange{From: core.TimeOf(f.UpdatedFrom), To: core.TimeOf(f.UpdatedTo)},
		FlowID:    texts(f.FlowID), ParentID: texts(f.ParentID), InstanceID: f.InstanceID, Creator: f.Creator,
		IdempotencyKey: f.IdempotencyKey, PriorityMin: f.PriorityMin, PriorityMax: f.PriorityMax, Query: f.Query,
	}
	for _, key := range slices.Sorted(maps.Keys(f.Tags)) {
		value := f.Tags[key]
		filter.Tags = append(filter.Tags, core.TagFilter{Key: key, Value: &value})
	}
	for _, key := range f.HasTags {
		filter.Tags = append(filter.Tags, core.TagFilter{Key: key})
	}
	return filter
}

func texts[T ~string](values []T) []string {
	if values == nil {
		return nil
	}
	plain := make([]string, len(values))
	for i, v := range values {
		plain[i] = string(v)
	}
	return plain
}
