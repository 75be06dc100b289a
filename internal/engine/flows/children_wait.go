package flows

import (
	"context"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// WaitForChildren gives the lease back until children have ended, or returns how they have ended (F40). Codes: those of the fence, child_not_found,
// invalid_join, invalid_argument, invalid_usage, reserved_dimension.
func (e *Graphs) WaitForChildren(ctx context.Context, c txn.Caller, r ChildrenWaitRequest) (ChildrenWaitAnswer, error) {
	if err := r.Fence.Validate(); err != nil {
		return ChildrenWaitAnswer{}, err
	}
	wait, err := newChildrenWait(c, r.ID, r.Fence, &r)
	if err != nil {
		return ChildrenWaitAnswer{}, err
	}
	for range extendTries {
		cmd := *wait
		if err := e.planWait(ctx, &cmd); err != nil {
			return ChildrenWaitAnswer{}, e.FromElsewhere(&r.Fence, err)
		}
		if err := e.Do(ctx, &cmd); err != nil { // never alone: it reads beside its transaction, and there are few connections
			return ChildrenWaitAnswer{}, err
		}
		if !cmd.outdated {
			return cmd.answer, nil
		}
	}
	return ChildrenWaitAnswer{}, graphBusy()
}

// childrenWait is the command of a wait for children. It is planned on a read of the children, which the transaction checks to be still valid.
type childrenWait struct {
	caller   txn.Caller
	id       base.GivenID
	ask      core.ChildrenWaitCommand
	names    []string // none: all
	request  store.DocRef
	flow     base.ID // the children flow; absent: there is none
	seen     int64   // its revision
	children []core.NodeRef
	there    []base.UUID // those of them that are not made by the same call
	missing  error       // no child has one of the names
	peeked   map[base.UUID]*core.Execution
	outdated bool
	first    *core.RecordedChildrenWait // not nil: the call was answered before, with this
	answer   ChildrenWaitAnswer
}

// newChildrenWait checks the arguments; nil: there is nothing to wait for.
func newChildrenWait(c txn.Caller, id base.GivenID, f core.Fence, r *ChildrenWaitRequest) (*childrenWait, error) {
	if r == nil {
		return nil, nil
	}
	w := &childrenWait{caller: c, id: id, names: r.Names}
	w.ask = core.ChildrenWaitCommand{Fence: f, Join: r.Join, Kind: r.Kind, TimeoutMS: r.TimeoutMS, Usage: r.Usage}
	if c.RequestKey != "" && len(r.Usage) > 0 {
		w.request = txn.RequestRef(c, w.Name(), id.UUID.String(), c.RequestKey)
		w.request.Owner = txn.Owner(id.UUID)
	}
	return w, w.ask.Check()
}

// planWait finds the children of the current run that a wait is about.
func (e *Graphs) planWait(ctx context.Context, w *childrenWait) error {
	_, x, err := e.ReadOne(ctx, w.caller, w.id, store.Want{Executions: []base.UUID{w.id.UUID}})
	if err != nil {
		return err
	}
	if x.Children == nil {
		w.missing = noChild(w.names, nil)
		return nil
	}
	f, err := e.ReadFlow(ctx, txn.EngineCaller, x.Children.FlowID.Given())
	if err != nil {
		return err
	}
	w.flow, w.seen = f.ID, f.Revision
	return w.findChildren(ctx, e, nil)
}

// planWait does the same for a spawn that waits: its flow is known, and its children are created by the same command.
func (s *spawn) planWait(ctx context.Context) error {
	s.wait.flow, s.wait.seen = s.flow, s.seen.Revision
	return s.wait.findChildren(ctx, s.e, s.nodes)
}

// findChildren finds the children by name, including those that the same call creates.
func (w *childrenWait) findChildren(ctx context.Context, e *Graphs, made []plannedNode) error {
	var known *memberNames
	var err error
	if len(w.names) == 0 {
		known, err = e.namesOf(ctx, w.flow.UUID)
	} else {
		known, _, err = e.childNames(ctx, w.flow, w.names)
	}
	if err != nil {
		return err
	}
	for _, id := range known.ids {
		w.there = append(w.there, id.UUID)
	}
	for i := range made {
		known.ids[made[i].node.Name] = made[i].id
	}
	names := w.names
	if len(names) == 0 {
		for name := range known.ids {
			names = append(names, name)
		}
	}
	w.missing = noChild(w.names, known.ids)
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		w.children = append(w.children, core.NodeRef{Name: name, ID: known.ids[name]})
	}
	return nil
}

// noChild is the refusal of a name that no child has.
func noChild(names []string, known map[string]base.ID) error {
	for _, name := range names {
		if _, ok := known[name]; !ok {
			return base.Errorf(base.CodeChildNotFound, "the run has no child called %s", base.QuoteID(name)).WithField("names")
		}
	}
	return nil
}

func (w *childrenWait) Name() string { return "wait_for_children" }

// Carried is the lease under which the command is sent; nil: none.
func (w *childrenWait) Carried() *core.Fence { return &w.ask.Fence }

func (w *childrenWait) Want(want *store.Want, _ bool) {
	want.Executions = append(want.Executions, w.id.UUID)
	w.wantRequest(want)
}

func (w *childrenWait) wantRequest(want *store.Want) {
	if w.request.Key != "" {
		want.Docs = append(want.Docs, w.request)
	}
}

func (w *childrenWait) More(u *txn.Tx, want *store.Want) {
	if ent, err := u.Find(w.caller, w.id); err == nil && ent.Exec.NeedsRecord(w.ask.Fence) {
		want.History = append(want.History, store.HistoryRef{ID: w.id.UUID, Epoch: w.ask.Fence.Epoch})
	}
}

func (w *childrenWait) Flows(*txn.Tx) []base.UUID {
	if w.flow.IsZero() {
		return nil
	}
	return []base.UUID{w.flow.UUID}
}

// Graph reads the children under the lock of their flow. The children need no locks: a transaction that ends one takes the lock of the flow before
// it commits. Either it came first and its end is visible here, or it finds the edge that leads to the parent (F42).
func (w *childrenWait) Graph(ctx context.Context, u *txn.Tx) error {
	if w.flow.IsZero() {
		return nil
	}
	var want store.Want
	if w.ask.TimeoutMS > 0 {
		want.Docs = append(want.Docs, w.timeoutRef())
	}
	if err := lockFlows(ctx, u, nil, nil, want); err != nil {
		return err
	}
	w.peeked = map[base.UUID]*core.Execution{}
	for some := range slices.Chunk(w.there, graphPage) {
		found, err := peek(ctx, u, some)
		if err != nil {
			return err
		}
		for id, x := range found {
			w.peeked[id] = x
		}
	}
	return nil
}

// timeoutRef is the record of the timeout of this wait. If a handler that starts over waits again, the wait ends at the time set first (F42, U139).
func (w *childrenWait) timeoutRef() store.DocRef {
	names := make([]string, len(w.children))
	for i := range w.children {
		names[i] = w.children[i].Name
	}
	fingerprint := txn.Fingerprint(w.flow.UUID, names, w.ask.Join, w.ask.Kind, w.ask.TimeoutMS)
	return store.DocRef{Kind: docUpstreams, Owner: txn.Owner(w.id.UUID), Key: "timeout/" + fingerprint}
}

func (w *childrenWait) Decide(u *txn.Tx) error {
	w.outdated, w.first, w.answer = false, nil, ChildrenWaitAnswer{}
	ent, err := u.Find(w.caller, w.id)
	if err != nil {
		return err
	}
	u.Settle(ent)
	if w.repeats(u, ent) {
		return w.judge(u, ent, 0)
	}
	if _, err := ent.Exec.CheckKeep(nil, w.ask.Fence); err != nil {
		return err
	}
	if w.outdated = w.stale(u, ent.Exec); w.outdated {
		return nil
	}
	if w.missing != nil {
		return w.missing
	}
	return w.judge(u, ent, 0)
}

// repeats reports whether the call is a repeat of one that has ended the lease.
func (w *childrenWait) repeats(u *txn.Tx, ent *txn.Row) bool {
	repeats, _ := ent.Exec.RepeatsChildrenWait(u.Effects(w.caller), w.ask.Fence, u.Record(ent.Exec.ID.UUID, w.ask.Fence.Epoch))
	return repeats
}

// stale reports whether the children are not those that the wait was planned on.
func (w *childrenWait) stale(u *txn.Tx, x *core.Execution) bool {
	if x.Children == nil {
		return !w.flow.IsZero()
	}
	f := flow(u, w.flow.UUID)
	return x.Children.FlowID != w.flow || f == nil || len(w.names) == 0 && f.Revision != w.seen
}
