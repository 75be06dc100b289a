package work

import (
	"context"
	"maps"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// List shows a page of executions (L131..L135).
func (e *Work) List(ctx context.Context, c txn.Caller, r txn.ListRequest) (txn.Page, error) {
	limit, err := core.PageLimit(r.Limit)
	if err != nil {
		return txn.Page{}, err
	}
	walk, err := e.NewWalk(c, r.Filter, r.Order, r.Cursor)
	if err != nil {
		return txn.Page{}, err
	}
	if err := walk.prepare(ctx); err != nil {
		return txn.Page{}, err
	}
	return walk.Page(ctx, limit)
}

// walk iterates over a list in order.
type walk struct {
	e      *Work
	filter core.Filter
	Query  store.Query
	scope  string
	empty  bool // the filter can match nothing
	exact  bool // search rows match the filter exactly (partsOf)
}

var orderNames = map[store.Order]string{
	store.CreatedDesc: core.OrderCreatedDesc, store.CreatedAsc: core.OrderCreatedAsc,
	store.CompletedDesc: core.OrderCompletedDesc, store.IDAsc: core.OrderIDAsc,
}

// OrderNamed is the order of lists of that name, "" the newest first; not ok when there is none.
func OrderNamed(name string) (order store.Order, ok bool) {
	if name == "" {
		return store.CreatedDesc, true
	}
	for order, known := range orderNames {
		if known == name {
			return order, true
		}
	}
	return 0, false
}

// NewWalk prepares a walk over the executions that the caller sees and the filter selects. Codes: invalid_argument, invalid_cursor.
func (e *Work) NewWalk(c txn.Caller, f core.Filter, order store.Order, cursor string) (*walk, error) {
	if err := f.Validate(); err != nil {
		return nil, err
	}
	w := &walk{e: e, filter: f, scope: f.Scope(orderNames[order])}
	if c.Namespaces != nil {
		w.filter.Namespace = txn.Narrow(txn.OrNil(f.Namespace), c.Namespaces)
		w.empty = len(w.filter.Namespace) == 0
	}
	conditions, bounded := w.filter.States()
	w.empty = w.empty || bounded && len(conditions) == 0
	w.Query, w.exact = queryOf(&w.filter, conditions), f.Query == "" && !knowsProgress(&f, conditions, bounded)
	w.Query.Order = order
	if cursor != "" {
		at, err := core.ParsePosition(w.scope, cursor)
		if err != nil {
			return nil, err
		}
		w.Query.After = &store.Hit{ID: at.ID, Created: at.At, Completed: at.At}
	}
	return w, nil
}

// knowsProgress reports whether the filter may depend on a progress report, which search rows do not contain (L99).
func knowsProgress(f *core.Filter, conditions []core.StateCondition, bounded bool) bool {
	running := func(c core.StateCondition) bool { return c.Status == core.Running }
	return f.Updated != (core.TimeRange{}) && (!bounded || slices.ContainsFunc(conditions, running))
}

// prepare waits until the search rows hold what was committed before the call.
func (w *walk) prepare(ctx context.Context) error {
	return w.e.Follower.Reach(ctx)
}

// Page collects up to limit rows that match at this moment, and a cursor if more follow.
func (w *walk) Page(ctx context.Context, limit int) (txn.Page, error) {
	var page txn.Page
	now, err := w.e.ServerTime(ctx)
	page.AsOf = now
	if err != nil || limit == 0 || w.empty {
		return page, err
	}
	var last store.Hit
	for {
		w.Query.Limit = limit - len(page.Items) + 1
		hits, err := w.e.Store.Find(ctx, w.Query)
		if err != nil {
			return txn.Page{}, txn.PublicFault(err)
		}
		views, err := w.load(ctx, hits)
		if err != nil {
			return txn.Page{}, err
		}
		for i, hit := range hits {
			if view := views[i]; view != nil {
				if len(page.Items) == limit {
					page.Next = w.position(last).Cursor(w.scope)
					return page, nil
				}
				page.Items = append(page.Items, *view)
				last = hit
			}
		}
		if len(hits) < w.Query.Limit {
			return page, nil
		}
		w.Query.After = &hits[len(hits)-1]
	}
}

// load reads the executions of search rows; nil for one that was removed or no longer matches.
func (w *walk) load(ctx context.Context, hits []store.Hit) ([]*txn.View, error) {
	views := make([]*txn.View, len(hits))
	if len(hits) == 0 {
		return views, nil
	}
	ids := make([]base.UUID, len(hits))
	for i, hit := range hits {
		ids[i] = hit.ID
	}
	loaded, err := w.e.Store.Read(ctx, store.Want{Executions: ids})
	if err != nil {
		return nil, txn.PublicFault(err)
	}
	gone, err := w.e.Vanished(ctx, slices.Collect(maps.Values(loaded.Executions))...)
	if err != nil {
		return nil, err
	}
	for i, id := range ids {
		x := loaded.Executions[id]
		if x == nil || gone[id] {
			continue
		}
		view, err := w.e.View(ctx, x, loaded.Dictionary)
		if err != nil {
			return nil, err
		}
		if w.filter.Matches(x, view.Lane) && (w.Query.Order != store.CompletedDesc || x.Status.Terminal()) {
			views[i] = &view
		}
	}
	return views, nil
}

func (w *walk) position(hit store.Hit) core.Position {
	switch w.Query.Order {
	case store.CompletedDesc:
		return core.Position{At: hit.Completed, ID: hit.ID}
	case store.IDAsc:
		return core.Position{ID: hit.ID}
	default:
		return core.Position{At: hit.Created, ID: hit.ID}
	}
}
