package storetest

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// oracle answers queries by checking every execution, following L131 and L133 literally.
type oracle []*core.Execution

func (o oracle) find(q store.Query) []store.Hit {
	var hits []store.Hit
	for _, x := range o {
		if matches(x, q) && (q.Order != store.CompletedDesc || x.Status.Terminal()) {
			hits = append(hits, store.Hit{ID: x.ID.UUID, Created: x.CreatedAt, Completed: x.CompletedAt})
		}
	}
	slices.SortFunc(hits, func(a, b store.Hit) int { return compareHits(q.Order, a, b) })
	if q.After != nil {
		hits = slices.DeleteFunc(hits, func(h store.Hit) bool { return compareHits(q.Order, h, *q.After) <= 0 })
	}
	return hits[:min(q.Limit, len(hits))]
}

// countBy counts the matches by value.
func (o oracle) countBy(q store.Query, by store.GroupBy) map[store.Group]int {
	counts := map[store.Group]int{}
	for _, x := range o {
		value, tagged := x.Tags[by.Tag]
		if !matches(x, q) || by.Field == store.ByTag && !tagged {
			continue
		}
		switch by.Field {
		case store.ByState:
			counts[store.Group{Status: x.Status, Reason: x.Reason, Next: x.Next}]++
		case store.ByLane:
			counts[store.Group{Text: x.Class.Lane}]++
		case store.ByLaneStatus:
			counts[store.Group{Text: x.Class.Lane, Status: x.Status}]++
		case store.ByKind:
			counts[store.Group{Text: x.Class.Kind}]++
		case store.ByInstance:
			counts[store.Group{Text: x.Lease.InstanceID}]++
		default:
			counts[store.Group{Text: value}]++
		}
	}
	return counts
}

// firstOfLanes takes the first matching rows, and keeps the first few of every lane.
func (o oracle) firstOfLanes(q store.Query, each int) (hits []store.LaneHit) {
	lanes, kept := map[base.UUID]string{}, map[string]int{}
	for _, x := range o {
		lanes[x.ID.UUID] = x.Class.Lane
	}
	q.Order = store.CreatedAsc
	for _, hit := range o.find(q) {
		lane := lanes[hit.ID]
		if kept[lane]++; kept[lane] <= each {
			hits = append(hits, store.LaneHit{Hit: hit, Lane: lane})
		}
	}
	return hits
}

func compareHits(order store.Order, a, b store.Hit) int {
	byID := bytes.Compare(a.ID[:], b.ID[:])
	switch order {
	case store.CreatedAsc:
		return cmp.Or(cmp.Compare(a.Created, b.Created), byID)
	case store.CompletedDesc:
		return -cmp.Or(cmp.Compare(a.Completed, b.Completed), byID)
	case store.IDAsc:
		return byID
	default:
		return -cmp.Or(cmp.Compare(a.Created, b.Created), byID)
	}
}

func among[V comparable](list []V, v V) bool { return len(list) == 0 || slices.Contains(list, v) }

func within(r store.Range, at base.Time) bool {
	if r.From == 0 && r.To == 0 {
		return true
	}
	return at != 0 && at >= r.From && (r.To == 0 || at < r.To)
}

// updatedOf returns the range that a query requires of the update time of x.
func updatedOf(x *core.Execution, q *store.Query) store.Range {
	if slices.Contains(q.Later, x.Status) {
		return store.Range{To: q.Updated.To}
	}
	return q.Updated
}

func matches(x *core.Execution, q store.Query) bool {
	instance := ""
	if x.Lease != nil {
		instance = x.Lease.InstanceID
	}
	return among(q.Statuses, x.Status) && among(q.Reasons, x.Reason) && among(q.Nexts, x.Next) &&
		among(q.Lanes, x.Class.Lane) && among(q.Kinds, x.Class.Kind) &&
		(q.Namespaces == nil || slices.Contains(q.Namespaces, x.Class.Namespace)) && (q.Classes == nil || slices.Contains(q.Classes, x.Class.ID)) &&
		within(q.Created, x.CreatedAt) && within(q.Completed, x.CompletedAt) && within(updatedOf(x, &q), x.LastMutationAt) &&
		among(q.Flows, x.FlowID.UUID) && among(q.Parents, x.ParentID.UUID) &&
		among(q.Instances, instance) && among(q.Creators, x.Creator) && among(q.Keys, x.IdempotencyKey) &&
		(q.PriorityMin == nil || x.Priority >= *q.PriorityMin) && (q.PriorityMax == nil || x.Priority <= *q.PriorityMax) &&
		hasTags(x, q.Tags) && (q.Text == nil || hasText(x, q.Text))
}

func hasTags(x *core.Execution, terms []store.TagTerm) bool {
	for _, term := range terms {
		value, there := x.Tags[term.Key]
		if !there || term.Value != nil && *term.Value != value {
			return false
		}
	}
	return true
}

// hasText reports whether one of the meanings of a free text holds (U34).
func hasText(x *core.Execution, t *store.Text) bool {
	return t.IDPrefix != "" && strings.HasPrefix(x.ID.UUID.String(), t.IDPrefix) ||
		t.Key != "" && t.Key == x.IdempotencyKey ||
		len(t.Words) > 0 && hasWords(x, t.Words)
}

// hasWords matches whole words. The vocabulary of the suite has no word inside another, so that a store which matches parts of words gives the same
// result.
func hasWords(x *core.Execution, words []string) bool {
	text := []string{x.Class.Kind}
	for _, value := range x.Tags {
		text = append(text, value)
	}
	if x.Failure != nil {
		text = append(text, x.Failure.Message)
	}
	there := strings.Fields(strings.ToLower(strings.Join(text, " ")))
	for _, word := range words {
		if !slices.Contains(there, word) {
			return false
		}
	}
	return true
}
