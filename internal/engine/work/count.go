package work

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

const (
	countLimit  = 10_000 // how far a count is exact (L136)
	countValues = 100    // values that are counted one by one when there is more than that
)

// Count counts executions, exactly up to 10 000 (L136).
func (e *Work) Count(ctx context.Context, c txn.Caller, f core.Filter) (txn.CountAnswer, error) {
	return e.counted(ctx, c, f, func(w *walk, answer *txn.CountAnswer) error {
		n, err := w.Count(ctx, countLimit+1)
		answer.Total, answer.AtLeast = min(n, countLimit), n > countLimit
		return err
	})
}

// CountBy counts executions, and how many of them have each value of a field (U35).
func (e *Work) CountBy(ctx context.Context, c txn.Caller, f core.Filter, by string) (txn.CountAnswer, error) {
	field, err := core.ParseCountBy(by)
	if err != nil {
		return txn.CountAnswer{}, err
	}
	return e.counted(ctx, c, f, func(w *walk, answer *txn.CountAnswer) (err error) {
		if answer.Counts, answer.AtLeast, err = w.countBy(ctx, field); err != nil {
			return err
		}
		if field.Field == core.CountByTag { // what does not have the tag is in no count
			var n int
			n, err = w.Count(ctx, countLimit+1)
			answer.Total, answer.AtLeast = min(n, countLimit), answer.AtLeast || n > countLimit
			return err
		}
		for _, n := range answer.Counts {
			answer.Total += n
		}
		answer.Total, answer.AtLeast = min(answer.Total, countLimit), answer.AtLeast || answer.Total > countLimit
		return nil
	})
}

func (e *Work) counted(ctx context.Context, c txn.Caller, f core.Filter, count func(*walk, *txn.CountAnswer) error) (answer txn.CountAnswer, err error) {
	w, err := e.NewWalk(c, f, store.CreatedDesc, "")
	if err != nil {
		return answer, err
	}
	if err := w.prepare(ctx); err != nil {
		return answer, err
	}
	if answer.AsOf, err = e.ServerTime(ctx); err != nil || w.empty {
		return answer, err
	}
	return answer, count(w, &answer)
}

// Count counts matching executions, up to limit: by search rows where those are exact, otherwise by reading each.
func (w *walk) Count(ctx context.Context, limit int) (n int, err error) {
	if w.exact {
		return w.e.countParts(ctx, partsOf(&w.filter), limit)
	}
	err = w.each(ctx, limit, func(*core.Execution) { n++ })
	return n, err
}

// countParts counts the rows of queries that have none in common.
func (e *Work) countParts(ctx context.Context, parts []store.Query, limit int) (n int, err error) {
	for i := 0; i < len(parts) && n < limit; i++ {
		found, err := e.Store.Count(ctx, parts[i], limit-n)
		if err != nil {
			return 0, txn.PublicFault(err)
		}
		n += found
	}
	return n, nil
}

// each calls look for matching executions, at most limit. The position of the walk is then the same as before.
func (w *walk) each(ctx context.Context, limit int, look func(*core.Execution)) error {
	defer func(after *store.Hit) { w.Query.After = after }(w.Query.After)
	for seen := 0; ; {
		page, err := w.Page(ctx, min(core.MaxPage, limit-seen))
		if err != nil {
			return err
		}
		for _, item := range page.Items {
			look(item.Execution)
		}
		seen += len(page.Items)
		if page.Next == "" || seen >= limit {
			return nil
		}
		at, err := core.ParsePosition(w.scope, page.Next)
		if err != nil {
			return err
		}
		w.Query.After = &store.Hit{ID: at.ID, Created: at.At, Completed: at.At}
	}
}

// countBy counts by value. Up to 10 000 matches are read once; beyond that each value is counted separately. more reports whether some count is not
// exact.
func (w *walk) countBy(ctx context.Context, by core.CountBy) (counts map[string]int, more bool, err error) {
	counts, seen := map[string]int{}, 0
	if w.exact {
		seen, err = w.countGroups(ctx, by, counts)
	} else {
		err = w.each(ctx, countLimit+1, func(x *core.Execution) {
			seen++
			if value, ok := by.Value(x); ok {
				counts[value]++
			}
		})
	}
	switch {
	case err != nil || seen <= countLimit:
		return counts, false, err
	case !w.exact:
		return counts, true, nil
	}
	counts, more, err = w.countValues(ctx, by, counts)
	for value, n := range counts {
		if n > countLimit {
			counts[value], more = countLimit, true
		}
	}
	return counts, more, err
}

// countGroups counts by value with one look at the search rows. It returns how many it has seen.
func (w *walk) countGroups(ctx context.Context, by core.CountBy, counts map[string]int) (seen int, err error) {
	group := store.GroupBy{Field: map[string]store.Field{
		core.CountByStatus: store.ByState, core.CountByPublicState: store.ByState,
		core.CountByLane: store.ByLane, core.CountByKind: store.ByKind, core.CountByTag: store.ByTag,
	}[by.Field], Tag: by.Tag}
	for _, part := range partsOf(&w.filter) {
		if seen > countLimit {
			break
		}
		groups, err := w.e.Store.CountBy(ctx, part, group, countLimit+1-seen)
		if err != nil {
			return 0, txn.PublicFault(err)
		}
		for _, g := range groups {
			value := g.Text
			if group.Field == store.ByState {
				value = by.State(g.Status, g.Reason, g.Next)
			}
			counts[value] += g.Rows
			seen += g.Rows
		}
	}
	return seen, nil
}

// countValues counts every possible value separately, up to one above the limit; those seen come first. more reports whether there may be further
// values.
func (w *walk) countValues(ctx context.Context, by core.CountBy, seen map[string]int) (counts map[string]int, more bool, err error) {
	values := slices.SortedFunc(maps.Keys(seen), func(a, b string) int { return cmp.Or(seen[b]-seen[a], cmp.Compare(a, b)) })
	for _, value := range w.e.valuesOf(by) {
		if _, known := seen[value]; !known {
			values = append(values, value)
		}
	}
	counts, more = map[string]int{}, len(values) > countValues || by.Field == core.CountByTag
	for _, value := range values[:min(len(values), countValues)] {
		f, ok := by.Narrow(w.filter, value)
		if !ok {
			continue
		}
		n, err := w.e.countParts(ctx, partsOf(&f), countLimit+1)
		if err != nil {
			return nil, false, err
		}
		if n > 0 {
			counts[value] = n
		}
	}
	return counts, more, nil
}

// valuesOf are the values that executions can have, as far as those are known without looking.
func (e *Work) valuesOf(by core.CountBy) []string {
	var values []string
	switch by.Field {
	case core.CountByStatus:
		for _, status := range core.Statuses() {
			values = append(values, status.String())
		}
	case core.CountByPublicState:
		values = core.PublicStates()
	case core.CountByLane:
		values = slices.Sorted(maps.Keys(e.Dict.Now().Lanes))
	case core.CountByKind:
		kinds := map[string]bool{}
		for _, classes := range e.Dict.Now().OfLane {
			for _, class := range classes {
				kinds[class.Kind] = true
			}
		}
		values = slices.Sorted(maps.Keys(kinds))
	}
	return values
}
