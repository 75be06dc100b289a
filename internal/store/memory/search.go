package memory

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// searchRow is what lists see of an execution.
type searchRow struct {
	store.Hit
	updated                base.Time
	class                  *core.Class
	status                 core.Status
	reason                 core.Reason
	next                   core.Next
	priority               int
	flow, parent           base.UUID
	instance, creator, key string
	tags                   map[string]string
	words                  []string // sorted
}

func searchRowOf(x *core.Execution) *searchRow {
	return &searchRow{
		Hit: store.Hit{ID: x.ID.UUID, Created: x.CreatedAt, Completed: x.CompletedAt}, updated: x.LastMutationAt, class: x.Class,
		status: x.Status, reason: x.Reason, next: x.Next, priority: x.Priority, flow: x.FlowID.UUID, parent: x.ParentID.UUID,
		instance: x.LastInstance(), creator: x.Creator, key: x.IdempotencyKey, tags: maps.Clone(x.Tags), words: x.SearchWords(),
	}
}

// Project updates search rows and moves the projection.
func (s *Store) Project(ctx context.Context, p store.Projection) error {
	rows := make(map[base.UUID]*searchRow, len(p.Rows))
	for _, x := range p.Rows {
		rows[x.ID.UUID] = searchRowOf(x) // panics for what no store can write, before anything is locked
	}
	return s.during(ctx, func() error {
		h := s.holder()
		defer s.leave(h)
		var locks []store.Lock
		for _, id := range sorted(p.Doubted, compareUUIDs) {
			if s.d.rows.executions[id] != nil {
				locks = append(locks, store.Lock{Execution: id})
			}
		}
		if err := s.d.acquire(ctx, h, locks, patient); err != nil {
			return err
		}
		m := s.d.rows
		switch {
		case p.Incarnation != "" && p.Incarnation != m.name():
			return refuse(store.Stale, "read on incarnation %s, which is now %s", p.Incarnation, m.name())
		case p.From != m.projected:
			return refuse(store.Stale, "the projection is at %d", m.projected)
		}
		m.projected = p.To
		maps.Copy(m.search, rows)
		for _, id := range p.Without(func(id base.UUID) bool { return m.executions[id] == nil }).Gone {
			delete(m.search, id)
		}
		return nil
	})
}

// matching returns the rows that match, in order.
func (m *image) matching(q *store.Query) []*searchRow {
	var found []*searchRow
	for _, row := range m.search {
		if row.matches(q) {
			found = append(found, row)
		}
	}
	slices.SortFunc(found, func(a, b *searchRow) int { return compareHits(q.Order, a.Hit, b.Hit) })
	return found
}

func compareHits(order store.Order, a, b store.Hit) int {
	byID := compareUUIDs(a.ID, b.ID)
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
	return r.From == 0 && r.To == 0 || at != 0 && at >= r.From && (r.To == 0 || at < r.To)
}

func (r *searchRow) matches(q *store.Query) bool {
	updated := q.Updated
	if slices.Contains(q.Later, r.status) {
		updated.From = 0
	}
	return r.among(q) && within(q.Created, r.Created) && within(q.Completed, r.Completed) && within(updated, r.updated) &&
		(q.PriorityMin == nil || r.priority >= *q.PriorityMin) && (q.PriorityMax == nil || r.priority <= *q.PriorityMax) &&
		(q.Order != store.CompletedDesc || r.status.Terminal()) && r.tagged(q.Tags) && (q.Text == nil || r.reads(q.Text))
}

func (r *searchRow) among(q *store.Query) bool {
	return among(q.Statuses, r.status) && among(q.Reasons, r.reason) && among(q.Nexts, r.next) && among(q.Lanes, r.class.Lane) && among(q.Kinds, r.class.Kind) &&
		(q.Namespaces == nil || slices.Contains(q.Namespaces, r.class.Namespace)) && (q.Classes == nil || slices.Contains(q.Classes, r.class.ID)) &&
		among(q.Flows, r.flow) && among(q.Parents, r.parent) && among(q.Instances, r.instance) && among(q.Creators, r.creator) && among(q.Keys, r.key)
}

func (r *searchRow) tagged(terms []store.TagTerm) bool {
	for _, term := range terms {
		value, there := r.tags[term.Key]
		if !there || term.Value != nil && *term.Value != value {
			return false
		}
	}
	return true
}

// reads reports whether one of the meanings of a free text holds.
func (r *searchRow) reads(t *store.Text) bool {
	words := len(t.Words) > 0
	for _, word := range t.Words {
		_, there := slices.BinarySearch(r.words, word)
		words = words && there
	}
	return words || t.IDPrefix != "" && strings.HasPrefix(r.ID.String(), t.IDPrefix) || t.Key != "" && t.Key == r.key
}

// Find returns search rows by filter and order.
func (s *Store) Find(ctx context.Context, q store.Query) (hits []store.Hit, err error) {
	err = s.during(ctx, func() error {
		for _, row := range s.d.rows.matching(&q) {
			if len(hits) < q.Limit && (q.After == nil || compareHits(q.Order, row.Hit, *q.After) > 0) {
				hits = append(hits, row.Hit)
			}
		}
		return nil
	})
	return hits, err
}

// Count returns how many rows match, counting up to limit.
func (s *Store) Count(ctx context.Context, q store.Query, limit int) (n int, err error) {
	err = s.during(ctx, func() error {
		n = min(limit, len(s.d.rows.matching(&q)))
		return nil
	})
	return n, err
}

var errField = errors.New("rows cannot be counted by this field")

// CountBy counts the matching rows by value, up to limit.
func (s *Store) CountBy(ctx context.Context, q store.Query, by store.GroupBy, limit int) (groups []store.Group, err error) {
	if by.Field == store.ByTag {
		q.Tags = append(slices.Clip(q.Tags), store.TagTerm{Key: by.Tag})
	}
	err = s.during(ctx, func() error {
		counts := map[store.Group]int{}
		rows := s.d.rows.matching(&q)
		for _, row := range rows[:min(limit, len(rows))] {
			group, known := row.group(by)
			if !known {
				return errField
			}
			counts[group]++
		}
		for group, n := range counts {
			group.Rows = n
			groups = append(groups, group)
		}
		slices.SortFunc(groups, func(a, b store.Group) int {
			return cmp.Or(cmp.Compare(a.Status, b.Status), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Next, b.Next), strings.Compare(a.Text, b.Text))
		})
		return nil
	})
	return groups, err
}

func (r *searchRow) group(by store.GroupBy) (store.Group, bool) {
	switch by.Field {
	case store.ByState:
		return store.Group{Status: r.status, Reason: r.reason, Next: r.next}, true
	case store.ByLane:
		return store.Group{Text: r.class.Lane}, true
	case store.ByLaneStatus:
		return store.Group{Text: r.class.Lane, Status: r.status}, true
	case store.ByKind:
		return store.Group{Text: r.class.Kind}, true
	case store.ByInstance:
		return store.Group{Text: r.instance}, true
	case store.ByTag:
		return store.Group{Text: r.tags[by.Tag]}, true
	}
	return store.Group{}, false
}

// FirstOfLanes returns the rows of every lane that were created first.
func (s *Store) FirstOfLanes(ctx context.Context, q store.Query, each int) (hits []store.LaneHit, err error) {
	q.Order = store.CreatedAsc
	err = s.during(ctx, func() error {
		kept := map[string]int{}
		rows := s.d.rows.matching(&q)
		for _, row := range rows[:min(q.Limit, len(rows))] {
			if lane := row.class.Lane; kept[lane] < each {
				kept[lane]++
				hits = append(hits, store.LaneHit{Hit: row.Hit, Lane: lane})
			}
		}
		return nil
	})
	return hits, err
}
