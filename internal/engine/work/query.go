package work

import (
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// queryOf turns a filter into a query over search rows that finds all it matches, and perhaps more.
func queryOf(f *core.Filter, states []core.StateCondition) store.Query {
	q := store.Query{
		Lanes: f.Lane, Kinds: f.Kind, Namespaces: f.Namespace,
		Created: store.Range(f.Created), Completed: store.Range(f.Completed), Updated: store.Range(f.Updated),
		Instances: f.InstanceID, Creators: f.Creator, Keys: f.IdempotencyKey,
		PriorityMin: f.PriorityMin, PriorityMax: f.PriorityMax,
		Flows: uuidsOf(f.FlowID), Parents: uuidsOf(f.ParentID),
	}
	if f.Query != "" {
		text := f.Text()
		q.Text = &store.Text{IDPrefix: text.IDPrefix, Key: text.Key, Words: text.Words}
	}
	for _, tag := range f.Tags {
		q.Tags = append(q.Tags, store.TagTerm(tag))
	}
	if f.Updated.From != 0 {
		q.Later = []core.Status{core.Running} // progress is no event: the search row learns of it with the next one (L99)
	}
	anyReason, anyNext := false, false
	for _, c := range states {
		q.Statuses = append(q.Statuses, c.Status)
		q.Reasons = append(q.Reasons, c.Reasons...)
		q.Nexts = append(q.Nexts, c.Nexts...)
		anyReason, anyNext = anyReason || c.Reasons == nil, anyNext || c.Nexts == nil
	}
	if anyReason {
		q.Reasons = nil
	}
	if anyNext {
		q.Nexts = nil
	}
	return q
}

// partsOf turns a filter without a free text into queries that together find exactly what it matches, each row once.
func partsOf(f *core.Filter) []store.Query {
	conditions, bounded := f.States()
	if !bounded {
		return []store.Query{queryOf(f, nil)}
	}
	parts := make([]store.Query, len(conditions))
	for i := range conditions {
		parts[i] = queryOf(f, conditions[i:i+1])
	}
	return parts
}

func uuidsOf(texts []string) []base.UUID {
	var ids []base.UUID
	for _, text := range texts {
		if id, err := base.ParseID(text); err == nil {
			ids = append(ids, id.UUID)
		}
	}
	return ids
}
