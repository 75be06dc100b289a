package flows

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// flowScope is what the cursor of a list of flows is for.
const flowScope = "flows"

// flowLook is how many marks one look brings.
const flowLook = 256

// Flows lists flows, newest first within each namespace, the namespaces by name (F60). Codes: invalid_argument, invalid_filter, invalid_cursor.
func (e *Graphs) Flows(ctx context.Context, c txn.Caller, q FlowQuery) (FlowPage, error) {
	if q.State != "" && !slices.Contains(core.FlowStates(), core.FlowState(q.State)) {
		return FlowPage{}, base.Invalid("state", "%q is no state of a flow", q.State)
	}
	if err := cmp.Or(core.CheckFilterText("kind", q.Kind), core.CheckFilterText("creator", q.Creator), core.CheckFilterTags(q.Tags)); err != nil {
		return FlowPage{}, err
	}
	after := ""
	if q.Cursor != "" {
		key, err := core.DecodeCursor(flowScope, q.Cursor)
		if err != nil {
			return FlowPage{}, err
		}
		after = string(key)
	}
	spaces := q.Namespaces
	if len(spaces) == 0 {
		spaces = c.Namespaces
	}
	if spaces != nil && len(spaces) == 0 {
		return FlowPage{}, nil
	}
	l := flowList{e: e, c: c, q: q, limit: pageLimit(q.Limit), after: after}
	if spaces == nil {
		return l.collect(ctx, "")
	}
	spaces = slices.Sorted(slices.Values(spaces))
	for _, space := range slices.Compact(spaces) {
		if space+"\x01" < after[:min(len(after), strings.IndexByte(after, 1)+1)] {
			continue
		}
		if page, err := l.collect(ctx, space); err != nil || page.Next != "" {
			return page, err
		}
	}
	return l.page, nil
}

// flowList collects a page.
type flowList struct {
	e     *Graphs
	c     txn.Caller
	q     FlowQuery
	limit int
	after string // key of the last mark that was looked at
	page  FlowPage
}

// collect adds the flows of a namespace, or of all of them for "", until the page is full.
func (l *flowList) collect(ctx context.Context, namespace string) (FlowPage, error) {
	scan := store.Scan{Kind: docFlowMark, After: l.after, Limit: flowLook}
	if namespace != "" {
		scan.Prefix = namespace + "\x01"
		if l.q.CreatedTo != 0 { // it is not among them
			scan.After = max(scan.After, flowMarkKey(namespace, l.q.CreatedTo-1))
		}
	}
	for {
		loaded, err := l.e.Store.Read(ctx, store.Want{Scans: []store.Scan{scan}})
		if err != nil {
			return FlowPage{}, txn.PublicFault(err)
		}
		marks := loaded.Scanned[0]
		if full, err := l.add(ctx, marks); err != nil || full {
			return l.page, err
		}
		if len(marks) < flowLook {
			return l.page, nil
		}
		scan.After = marks[len(marks)-1].Key
	}
}

// add adds the flows of marks. full reports that the page has no room for the next.
func (l *flowList) add(ctx context.Context, marks []store.Doc) (full bool, err error) {
	var want store.Want
	for i := range marks {
		want.Docs = append(want.Docs, FlowRef(flowOfMark(marks[i].Key)))
	}
	loaded, err := l.e.ReadIf(ctx, want)
	if err != nil {
		return false, txn.PublicFault(err)
	}
	for i, ref := range want.Docs {
		doc, ok := loaded.Docs[ref]
		f := &core.Flow{}
		if !ok || ReadDoc(&doc, f) != nil || !l.matches(f) {
			continue
		}
		if len(l.page.Flows) == l.limit {
			l.page.Next = core.EncodeCursor(flowScope, []byte(l.after))
			return true, nil
		}
		l.page.Flows, l.after = append(l.page.Flows, f), marks[i].Key
	}
	return false, nil
}

func flowOfMark(key string) base.UUID {
	id, _ := base.ParseUUID(key[max(0, len(key)-36):])
	return id
}

func (l *flowList) matches(f *core.Flow) bool {
	q := &l.q
	switch {
	case !l.c.Sees(f.Namespace) || len(q.Namespaces) > 0 && !slices.Contains(q.Namespaces, f.Namespace):
		return false
	case q.Kind != "" && f.Kind != q.Kind, q.State != "" && string(f.State) != q.State, q.Creator != "" && f.Creator != q.Creator:
		return false
	case q.Own && !f.Submitter().Is(l.c.Submitter()):
		return false
	case f.CreatedAt < q.CreatedFrom, q.CreatedTo != 0 && f.CreatedAt >= q.CreatedTo:
		return false
	}
	for key, value := range q.Tags {
		if got, ok := f.Tags[key]; !ok || got != value {
			return false
		}
	}
	return true
}

// SetFlowTags changes the tags of a flow: a nil value deletes one; whole replaces all of them (F61). Codes: invalid_tag_key,
// invalid_argument.
func (e *Graphs) SetFlowTags(ctx context.Context, c txn.Caller, id base.GivenID, changes map[string]*string, whole bool) (base.Tags, error) {
	seen, err := e.ReadFlow(ctx, c, id)
	if err != nil {
		return nil, err
	}
	cmd := &onFlow{op: "set_flow_tags", caller: c, id: id, space: seen.Namespace}
	var tags base.Tags
	cmd.act = func(u *txn.Tx, f *core.Flow, fx *core.Effects) error {
		before := f.Tags
		if err := f.SetTags(fx, changes, whole); err != nil {
			return err
		}
		tags = f.Tags
		touchFlow(u, f)
		auditFlow(u, c, cmd.op, f, "", map[string]any{"tags": before}, map[string]any{"tags": tags})
		return nil
	}
	err = e.DoAlone(ctx, cmd)
	return txn.Answered(&tags, err)
}

// onFlow is a command on the record of a flow alone.
type onFlow struct {
	op     string
	caller txn.Caller
	id     base.GivenID
	space  string // namespace of the flow whose change by an operator is audited; "": none
	act    func(u *txn.Tx, f *core.Flow, fx *core.Effects) error
}

func (c *onFlow) Name() string { return c.op }

func (c *onFlow) Want(*store.Want, bool) {}

func (c *onFlow) Flows(*txn.Tx) []base.UUID { return []base.UUID{c.id.UUID} }

// By returns the caller.
func (c *onFlow) By() txn.Caller { return c.caller }

func (c *onFlow) Chains(*txn.Tx) []string {
	if c.space == "" {
		return nil
	}
	return flowChain(c.caller, c.space)
}

func (c *onFlow) Decide(u *txn.Tx) error {
	f := flow(u, c.id.UUID)
	if f == nil || !c.id.Names(f.ID) || !c.caller.Sees(f.Namespace) {
		return flowNotFound(c.id)
	}
	fx := u.Effects(c.caller)
	if err := c.act(u, f, fx); err != nil {
		return err
	}
	u.Keep(fx)
	return nil
}
