package waits

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/condition"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Suspended lists what is suspended, oldest first (W84, U85).
func (e *Waits) Suspended(ctx context.Context, c txn.Caller, q SuspendedQuery) (SuspendedPage, error) {
	list, err := e.newSuspendedList(c, &q)
	if err != nil || list.limit == 0 {
		return SuspendedPage{}, err
	}
	items, last, err := fillPage(list.limit, list.next(ctx), list.show(ctx))
	if err != nil {
		return SuspendedPage{}, err
	}
	var page SuspendedPage
	if page.Items, err = e.fillDecisions(ctx, items); err != nil {
		return SuspendedPage{}, err
	}
	if last != nil {
		page.Next = last.Cursor(list.scope)
	}
	return page, nil
}

// suspendedList reads what is suspended in order of (suspended_at, execution_id).
type suspendedList struct {
	e      *Waits
	caller txn.Caller
	query  *SuspendedQuery
	filter core.Filter // what the query says of the execution
	scope  string
	after  *core.Position
	limit  int
}

// Codes: invalid_argument, invalid_filter, invalid_cursor.
func (e *Waits) newSuspendedList(c txn.Caller, q *SuspendedQuery) (*suspendedList, error) {
	n, err := core.PageLimit(q.Limit)
	if err != nil {
		return nil, err
	}
	for _, code := range q.ReasonCodes {
		if err := core.CheckReasonCode(code); err != nil {
			return nil, err
		}
	}
	l := &suspendedList{e: e, caller: c, query: q, limit: n}
	if q.Lane != "" {
		l.filter.Lane = []string{q.Lane}
	}
	if q.FlowID != nil {
		l.filter.FlowID = []string{q.FlowID.UUID.String()}
	}
	for _, key := range slices.Sorted(maps.Keys(q.Tags)) {
		l.filter.Tags = append(l.filter.Tags, core.TagFilter{Key: key, Value: txn.Ptr(q.Tags[key])})
	}
	if err := cmp.Or(l.filter.Validate(), core.CheckFilterText("approver", q.Approver)); err != nil {
		return nil, err
	}
	l.scope = "suspended\x00" + txn.Fingerprint(q.Namespace, l.filter, slices.Sorted(slices.Values(q.ReasonCodes)), q.Approver)
	if q.Cursor != "" {
		at, err := core.ParsePosition(l.scope, q.Cursor)
		if err != nil {
			return nil, err
		}
		l.after = &at
	}
	return l, nil
}

// suspendedAt is a mark in the list.
type suspendedAt struct {
	core.Position
	doc store.Doc
}

// next returns marks in order. Each namespace has a list of its own: they are read together and merged.
func (l *suspendedList) next(ctx context.Context) func(n int) ([]suspendedAt, error) {
	return func(n int) ([]suspendedAt, error) {
		lists, err := l.scan(ctx, n)
		if err != nil {
			return nil, err
		}
		var marks []suspendedAt
		for _, docs := range lists {
			for _, doc := range docs {
				at, err := suspendedPosition(doc.Key)
				if err != nil {
					return nil, err
				}
				marks = append(marks, suspendedAt{at, doc})
			}
		}
		slices.SortFunc(marks, func(a, b suspendedAt) int { return comparePositions(a.Position, b.Position) })
		if marks = marks[:min(n, len(marks))]; len(marks) > 0 {
			l.after = &marks[len(marks)-1].Position
		}
		return marks, nil
	}
}

// scan reads up to n marks of each namespace that the caller may see. New namespaces are found in the dictionary: what is in them has classes.
func (l *suspendedList) scan(ctx context.Context, n int) ([][]store.Doc, error) {
	dict := l.e.Dict.Now()
	for {
		var want store.Want
		for _, namespace := range l.namespaces(dict) {
			scan := store.Scan{Kind: DocSuspended, Prefix: suspendedPrefix(namespace), Limit: n}
			if l.after != nil {
				scan.After = suspendedRef(namespace, l.after.At, l.after.ID).Key
			}
			want.Scans = append(want.Scans, scan)
		}
		loaded, err := l.e.Store.Read(ctx, want)
		if err != nil {
			return nil, txn.PublicFault(err)
		}
		if loaded.Dictionary <= dict.Version {
			return loaded.Scanned, nil
		}
		if dict, err = l.e.Dict.At(ctx, loaded.Dictionary); err != nil {
			return nil, txn.PublicFault(err)
		}
	}
}

// namespaces returns the namespaces to search.
func (l *suspendedList) namespaces(dict *txn.Dictionary) []string {
	switch {
	case l.query.Namespace != "" && !l.caller.Sees(l.query.Namespace):
		return nil
	case l.query.Namespace != "":
		return []string{l.query.Namespace}
	case l.caller.Namespaces != nil:
		return l.caller.Namespaces
	}
	known := map[string]bool{}
	for _, classes := range dict.OfLane {
		for _, class := range classes {
			known[class.Namespace] = true
		}
	}
	return slices.Collect(maps.Keys(known))
}

// show loads the executions of marks; nil for one that was removed, has continued, or does not match.
func (l *suspendedList) show(ctx context.Context) func(marks []suspendedAt) ([]*SuspendedItem, error) {
	return func(marks []suspendedAt) ([]*SuspendedItem, error) {
		items := make([]*SuspendedItem, len(marks))
		group := l.e.newWaitingGroup()
		for i := range marks {
			mark, err := decodeSuspendedMark(&marks[i].doc)
			if err != nil {
				l.e.passedOver(marks[i].ID, err)
			} else if l.mayKeep(&mark) {
				group.add(marks[i].ID)
			}
		}
		if err := group.load(ctx); err != nil {
			return nil, err
		}
		for i := range marks {
			w := group.of[marks[i].ID]
			if w == nil {
				continue
			}
			item, err := l.item(w)
			if err != nil {
				l.e.passedOver(marks[i].ID, err)
				continue
			}
			if item != nil {
				if item.View, err = l.e.View(ctx, w.x, group.loaded.Dictionary); err != nil {
					return nil, err
				}
			}
			if item != nil && item.SuspendedAt == marks[i].At && l.keeps(w, item) { // otherwise it has another mark by now
				items[i] = item
			}
		}
		return items, nil
	}
}

// mayKeep checks what a mark contains. The reason is written last when a timeout hands the work to operators.
func (l *suspendedList) mayKeep(m *suspendedMark) bool {
	q := l.query
	return (q.Lane == "" || m.Lane == q.Lane) && (q.FlowID == nil || q.FlowID.Names(m.FlowID)) &&
		(len(q.ReasonCodes) == 0 || slices.Contains(q.ReasonCodes, m.ReasonCode) || slices.Contains(q.ReasonCodes, core.ReasonCodeOperatorReview))
}

// keeps reports whether the query asks for the item.
func (l *suspendedList) keeps(w *waiting, item *SuspendedItem) bool {
	q := l.query
	return l.filter.Matches(w.x, item.Lane) && (q.FlowID == nil || q.FlowID.Names(w.x.FlowID)) &&
		(len(q.ReasonCodes) == 0 || slices.Contains(q.ReasonCodes, item.ReasonCode)) &&
		(q.Approver == "" || slices.ContainsFunc(item.Links, func(link core.LinkView) bool { return link.Approver == q.Approver }))
}

// item returns what the execution waits for, or nil if it does not wait. Codes: corruption.
func (l *suspendedList) item(w *waiting) (*SuspendedItem, error) {
	shown, err := w.x.SuspendedView(w.d)
	if err != nil || shown == nil {
		return nil, err
	}
	item := &SuspendedItem{SuspendedView: *shown, Needed: neededSources(shown.Progress)}
	for _, open := range w.x.Waits.Open {
		item.Links = append(item.Links, w.d.LinkViews(w.now, open.ID)...)
	}
	observed, err := w.x.Observe(w.d)
	if err != nil {
		return nil, err
	}
	for _, signal := range observed.Signals {
		if signal.SourceVerified {
			item.Decisions = append(item.Decisions, signal)
		}
	}
	return item, nil
}

// neededSources returns how many different people the condition requires; of several numbers the first.
func neededSources(nodes []core.NodeProgress) int {
	for _, node := range nodes {
		if node.Node.Kind == condition.Count && node.Node.CountKind == condition.CountDistinctSources {
			return node.Needed
		}
	}
	return 0
}

// Bounds of comments: one comment of the greatest length fits into the first, and a page has as many as fit into the second.
const (
	commentBytes  = 32 << 10
	commentsBytes = WaitBytes
)

// fillDecisions loads the comments for the whole page at once. A payload that is longer than any comment is left out. What cannot be read of one
// execution is missing only there, and an execution that was removed since is no longer in the list.
func (e *Waits) fillDecisions(ctx context.Context, items []SuspendedItem) ([]SuspendedItem, error) {
	var data WaitData
	room := commentsBytes
	for i := range items {
		for k := range items[i].Decisions {
			if d := &items[i].Decisions[k]; d.Payload.Size <= min(room, commentBytes) {
				data.add(items[i].ExecutionID.UUID, signalDataRef(items[i].ExecutionID.UUID, d.Ordinal), &d.Payload)
				room -= d.Payload.Size
			}
		}
	}
	missing, err := data.Load(ctx, e.Store)
	if err != nil {
		return nil, txn.PublicFault(err)
	}
	if len(missing) == 0 {
		return items, nil
	}
	there, err := e.Store.Read(ctx, store.Want{Executions: slices.Collect(maps.Keys(missing)), SkipUnreadable: true})
	if err != nil {
		return nil, txn.PublicFault(err)
	}
	return slices.DeleteFunc(items, func(item SuspendedItem) bool {
		id := item.ExecutionID.UUID
		switch why := missing[id]; {
		case why == nil:
			return false
		case there.Executions[id] == nil && there.Unreadable[id] == nil:
			return true
		default:
			e.QuietLog.Error("what was said at a waitpoint cannot be read", "execution_id", item.ExecutionID, "error", why)
			return false
		}
	}), nil
}

// suspendedPosition reads the place of a mark from its key. Codes: corruption.
func suspendedPosition(key string) (core.Position, error) {
	id, err := SuspendedID(key)
	if err != nil {
		return core.Position{}, err
	}
	_, moment, _ := strings.Cut(key[:strings.LastIndexByte(key, 1)], "\x01") // no namespace has such a byte (W11)
	at, err := strconv.ParseInt(moment, 16, 64)
	if err != nil {
		return core.Position{}, txn.Corrupt("suspended", err)
	}
	return core.Position{At: base.Time(at), ID: id}, nil
}

func comparePositions(a, b core.Position) int {
	return cmp.Or(cmp.Compare(a.At, b.At), bytes.Compare(a.ID[:], b.ID[:]))
}
