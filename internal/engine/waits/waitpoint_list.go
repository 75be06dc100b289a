package waits

import (
	"context"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Which waitpoints a list shows, by the states of section 3.
const (
	openWaitpoints = "" // pending and active
	allWaitpoints  = "all"
)

// Waitpoints lists waitpoints in order of their ids (W83, U79).
func (e *Waits) Waitpoints(ctx context.Context, c txn.Caller, q WaitpointQuery) (WaitpointPage, error) {
	list, err := e.newWaitpointList(c, &q)
	if err != nil {
		return WaitpointPage{}, err
	}
	if q.Execution != nil {
		return list.ofOne(ctx, *q.Execution)
	}
	if list.limit == 0 {
		return WaitpointPage{}, nil
	}
	items, last, err := fillPage(list.limit, list.next(ctx), list.show(ctx))
	if err != nil {
		return WaitpointPage{}, err
	}
	page := WaitpointPage{Items: items}
	if last != nil {
		page.Next = list.Behind(last.Key)
	}
	return page, nil
}

// waitpointList iterates over a list of waitpoints.
type waitpointList struct {
	e      *Waits
	caller txn.Caller
	query  *WaitpointQuery
	scope  string
	after  string // id of the one before; "": from the beginning
	limit  int
}

func (e *Waits) newWaitpointList(c txn.Caller, q *WaitpointQuery) (*waitpointList, error) {
	if states := []string{openWaitpoints, core.WaitpointPending, core.WaitpointActive, core.WaitpointClosed, allWaitpoints}; !slices.Contains(states, q.State) {
		return nil, base.Invalid("state", "%q, want pending, active, closed or all", q.State)
	}
	if err := core.CheckFilterText("waitpoint_key", q.Key); err != nil {
		return nil, err
	}
	n, err := core.PageLimit(q.Limit)
	if err != nil {
		return nil, err
	}
	l := &waitpointList{e: e, caller: c, query: q, limit: n}
	var of base.UUID
	if q.Execution != nil {
		of = q.Execution.UUID
	}
	l.scope = "waitpoints\x00" + txn.Fingerprint(q.Namespace, of, q.State, q.Key)
	if q.Cursor != "" {
		key, err := core.DecodeCursor(l.scope, q.Cursor)
		if err != nil {
			return nil, err
		}
		l.after = string(key)
	}
	return l, nil
}

// sees reports whether what is in the namespace may be shown.
func (l *waitpointList) sees(namespace string) bool {
	return l.caller.Sees(namespace) && (l.query.Namespace == "" || namespace == l.query.Namespace)
}

// keeps reports whether the query asks for the waitpoint.
func (l *waitpointList) keeps(v *core.WaitpointView) bool {
	switch q := l.query; {
	case q.Key != "" && v.Key != q.Key:
		return false
	case q.State == openWaitpoints:
		return v.State != core.WaitpointClosed
	default:
		return q.State == allWaitpoints || v.State == q.State
	}
}

// ofOne is the part of the list that one execution has. Codes: execution_not_found.
func (l *waitpointList) ofOne(ctx context.Context, id base.GivenID) (page WaitpointPage, err error) {
	w, err := l.e.readWaiting(ctx, l.caller, id)
	if err != nil {
		return page, err
	}
	if !l.sees(w.x.Class.Namespace) {
		return page, txn.NotFound(id)
	}
	views, err := w.x.WaitpointViews(w.d, l.query.State != openWaitpoints)
	if err != nil || l.limit == 0 {
		return page, err
	}
	for i := range views {
		if views[i].ID.String() <= l.after || !l.keeps(&views[i]) {
			continue
		}
		if len(page.Items) == l.limit {
			page.Next = l.Behind(page.Items[len(page.Items)-1].ID.String())
			return page, nil
		}
		page.Items = append(page.Items, views[i])
	}
	return page, nil
}

// Behind returns the cursor that continues after a waitpoint.
func (l *waitpointList) Behind(id string) string { return core.EncodeCursor(l.scope, []byte(id)) }

// next gives the marks of waitpoints in order of the ids. Those that are open have marks of their own, so that the many that are closed
// are passed over.
func (l *waitpointList) next(ctx context.Context) func(n int) ([]store.Doc, error) {
	scan := store.Scan{Kind: DocWaitpointOpen, After: l.after}
	if state := l.query.State; state == core.WaitpointClosed || state == allWaitpoints {
		scan.Kind = DocWaitpointAt
	}
	return func(n int) ([]store.Doc, error) {
		scan.Limit = n
		loaded, err := l.e.Store.Read(ctx, store.Want{Scans: []store.Scan{scan}})
		if err != nil {
			return nil, txn.PublicFault(err)
		}
		marks := loaded.Scanned[0]
		if len(marks) > 0 {
			scan.After = marks[len(marks)-1].Key
		}
		return marks, nil
	}
}

// show loads the waitpoints behind marks; nil for one that is gone or not asked for.
func (l *waitpointList) show(ctx context.Context) func(marks []store.Doc) ([]*core.WaitpointView, error) {
	return func(marks []store.Doc) ([]*core.WaitpointView, error) {
		views := make([]*core.WaitpointView, len(marks))
		places := make([]waitLocator, len(marks))
		group := l.e.newWaitingGroup()
		for i := range marks {
			place, err := DecodeLocator(&marks[i])
			if err != nil {
				l.e.QuietLog.Error("a list passes over a waitpoint that cannot be read", "row", marks[i].Key, "error", err)
			} else if l.sees(place.Namespace) && (l.query.Key == "" || place.Key == l.query.Key) {
				places[i] = place
				group.add(place.ExecutionID.UUID)
			}
		}
		if err := group.load(ctx); err != nil {
			return nil, err
		}
		for i := range marks {
			id, _ := base.ParseUUID(marks[i].Key)
			view, err := group.waitpoint(places[i].ExecutionID.UUID, id)
			if err != nil {
				l.e.passedOver(places[i].ExecutionID.UUID, err)
			} else if view != nil && l.keeps(view) {
				views[i] = view
			}
		}
		return views, nil
	}
}

// Waitpoint shows one waitpoint.
func (e *Waits) Waitpoint(ctx context.Context, c txn.Caller, waitpoint base.UUID) (core.WaitpointView, error) {
	w, err := e.waitingAt(ctx, c, waitpoint)
	if err != nil {
		return core.WaitpointView{}, err
	}
	return w.x.WaitpointView(w.d, w.d.Waitpoint(waitpoint))
}

// Links lists the links of a waitpoint (W74).
func (e *Waits) Links(ctx context.Context, c txn.Caller, waitpoint base.UUID) ([]core.LinkView, error) {
	w, err := e.waitingAt(ctx, c, waitpoint)
	if err != nil {
		return nil, err
	}
	return w.d.LinkViews(w.now, waitpoint), nil
}

// waitingAt finds the execution that has the waitpoint. Codes: waitpoint_not_found, also for one of another namespace (W5).
func (e *Waits) waitingAt(ctx context.Context, c txn.Caller, waitpoint base.UUID) (waiting, error) {
	at, found, err := e.whereIs(ctx, waitpointAtRef(waitpoint))
	switch {
	case err != nil:
		return waiting{}, err
	case !found:
		return waiting{}, noWaitpoint()
	}
	w, err := e.readWaiting(ctx, c, at.ExecutionID.Given())
	switch {
	case base.CodeOf(err) == base.CodeExecutionNotFound || err == nil && w.d.Waitpoint(waitpoint) == nil:
		return waiting{}, noWaitpoint()
	case err != nil:
		return waiting{}, err
	}
	return w, nil
}

// waitingGroup loads many executions with their waits at once.
type waitingGroup struct {
	e      *Waits
	want   store.Want
	loaded *store.Loaded
	of     map[base.UUID]*waiting
}

func (e *Waits) newWaitingGroup() *waitingGroup {
	return &waitingGroup{e: e, of: map[base.UUID]*waiting{}, want: store.Want{SkipUnreadable: true}}
}

func (g *waitingGroup) add(id base.UUID) {
	if _, known := g.of[id]; !known {
		g.of[id] = nil
		WantWaiting(&g.want, id)
	}
}

// load reads what was added, in one snapshot. What cannot be read is passed over: a list has others to show (W10).
func (g *waitingGroup) load(ctx context.Context) (err error) {
	if len(g.of) == 0 {
		return nil
	}
	if g.loaded, err = g.e.Store.Read(ctx, g.want); err != nil {
		return txn.PublicFault(err)
	}
	for id, why := range g.loaded.Unreadable {
		g.e.passedOver(id, why)
	}
	for id, x := range g.loaded.Executions {
		w, err := waitingOf(g.loaded, x)
		if err != nil {
			g.e.passedOver(id, err)
			continue
		}
		g.of[id] = &w
	}
	return nil
}

// passedOver notes what a list does not show because it cannot be read.
func (e *Waits) passedOver(id base.UUID, why error) {
	e.QuietLog.Error("a list passes over waits that cannot be read", "execution_id", id, "error", why)
}

// waitpoint shows a waitpoint of one of the executions; nil if it or the execution is gone, or the execution was not added.
func (g *waitingGroup) waitpoint(execution, id base.UUID) (*core.WaitpointView, error) {
	w := g.of[execution]
	if w == nil {
		return nil, nil
	}
	row := w.d.Waitpoint(id)
	if row == nil {
		return nil, nil
	}
	view, err := w.x.WaitpointView(w.d, row)
	return &view, err
}

const (
	longestLook = 1000   // so many marks one look takes at most, unless the page is longer
	mostLooked  = 10_000 // and one call: others may have many marks, and filters may let few pass
)

// fillPage reads marks in order until it has limit items to show and knows that one more follows. next returns the n marks after those it returned
// before, fewer at the end; show loads their items, nil for a mark that the list does not show. A read that found too little is followed by a
// longer one. last is the mark after which the list continues, nil at its end: after many marks that show nothing a page may be short or empty
// although the list continues.
func fillPage[M, T any](limit int, next func(n int) ([]M, error), show func([]M) ([]*T, error)) (items []T, last *M, err error) {
	for look, looked := limit+1, 0; ; look = min(2*look, max(longestLook, limit+1), mostLooked-looked) {
		marks, err := next(look)
		if err != nil {
			return nil, nil, err
		}
		shown, err := show(marks)
		if err != nil {
			return nil, nil, err
		}
		for i, item := range shown {
			switch {
			case item == nil:
			case len(items) == limit:
				return items, last, nil
			default:
				items, last = append(items, *item), &marks[i]
			}
		}
		if len(marks) < look {
			return items, nil, nil
		}
		if looked += len(marks); looked >= mostLooked {
			return items, &marks[len(marks)-1], nil
		}
	}
}
