package flows

import (
	"cmp"
	"context"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// resolveLeft resolves the edges of a member that its end left pending (F28), in batches. If some lead to members that cannot be read, it resolves
// all others and then fails, to be tried again.
func (e *Graphs) resolveLeft(ctx context.Context, t taskArgs) error {
	var unread error
	for after := ""; ; {
		loaded, err := e.Store.Read(ctx, store.Want{Scans: []store.Scan{{Kind: docEdge, Owner: txn.Owner(t.Execution), After: after, Limit: edgesAtOnce}}})
		if err != nil {
			return err
		}
		docs := loaded.Scanned[0]
		cmd := &resolveSome{from: t.Execution, end: *t.End}
		for i := range docs {
			var edge core.Edge
			if err := ReadDoc(&docs[i], &edge); err != nil {
				return err
			}
			if edge.State == core.EdgePending {
				cmd.to = append(cmd.to, edge.To.ID.UUID)
			}
		}
		if len(cmd.to) > 0 {
			err := e.resolveReadable(ctx, cmd)
			if err != nil && base.CodeOf(err) != base.CodeCorruption {
				return err
			}
			unread = cmp.Or(unread, err)
		}
		if cmd.over || len(docs) < edgesAtOnce {
			return unread
		}
		after = docs[len(docs)-1].Key
	}
}

// resolveReadable resolves some edges. If some lead to members that cannot be read, it resolves the others and returns an error.
func (e *Graphs) resolveReadable(ctx context.Context, cmd *resolveSome) error {
	unread := e.Do(ctx, cmd)
	if base.CodeOf(unread) != base.CodeCorruption {
		return unread
	}
	var err error
	if cmd.to, err = e.readable(ctx, cmd.to); err != nil {
		return err
	}
	return cmp.Or(e.Do(ctx, cmd), unread)
}

// readable are those of the executions that can be read.
func (e *Graphs) readable(ctx context.Context, ids []base.UUID) ([]base.UUID, error) {
	loaded, err := e.ReadIf(ctx, store.Want{Executions: ids, SkipUnreadable: true})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(ids, func(id base.UUID) bool { return loaded.Unreadable[id] != nil }), nil
}

// resolveSome resolves some edges of a member that has ended.
type resolveSome struct {
	from base.UUID
	end  core.EndedRun
	to   []base.UUID
	over bool // there is nothing left to do: the member was replayed or removed
}

func (r *resolveSome) Name() string { return "resolve_edges" }

func (r *resolveSome) Want(w *store.Want, _ bool) {
	w.Executions = append(w.Executions, r.from)
	w.Executions = append(w.Executions, r.to...)
}

func (r *resolveSome) Flows(u *txn.Tx) []base.UUID { return flowOf(u.Entries[r.from]) }

// flowOf is the flow of a member; none of one that does not exist.
func flowOf(ent *txn.Row) []base.UUID {
	if ent == nil {
		return nil
	}
	return []base.UUID{ent.Exec.FlowID.UUID}
}

// Graph reads the edges again: under the lock no other transaction resolves them.
func (r *resolveSome) Graph(ctx context.Context, u *txn.Tx) error {
	var want store.Want
	for _, to := range r.to {
		want.Docs = append(want.Docs, EdgeRef(r.from, to))
	}
	return lockFlows(ctx, u, nil, nil, want)
}

func (r *resolveSome) Decide(u *txn.Tx) error {
	ent := u.Entries[r.from]
	if err := u.Broken[r.from]; err != nil {
		return err
	}
	// Work left over from an older run does nothing (F27).
	if r.over = ent == nil || !ent.Exec.Status.Terminal() || ent.Exec.RunIndex() != r.end.Run; r.over {
		return nil
	}
	for _, to := range r.to {
		if edge := graphOf(u).edges[edgeKey{r.from, to}]; edge != nil {
			graphOf(u).left = append(graphOf(u).left, &resolution{edge: edge, end: r.end})
		}
	}
	return nil
}

// cancelLosers ends the upstreams that a decided join no longer needs, with all that leads only to them (F30, F31).
func (e *Graphs) cancelLosers(ctx context.Context, t taskArgs) error {
	loaded, err := e.Store.Read(ctx, store.Want{Executions: []base.UUID{t.Execution}})
	if err != nil {
		return err
	}
	x := loaded.Executions[t.Execution]
	if t.Cursor != "" {
		return e.cancelUnneededChildren(ctx, t, x)
	}
	if x == nil || x.Member == nil || !x.Member.Join.State.Decided() {
		return nil // it was replayed since
	}
	return e.cancelBranches(ctx, x.Member.Join.State == core.JoinHeld, x.Member.Join.DecidedAt, upstreamsRef(t.Execution))
}

// cancelBranches ends those of the listed members that are no longer needed since a join is decided, and what leads only to them.
func (e *Graphs) cancelBranches(ctx context.Context, satisfied bool, since base.Time, lists ...store.DocRef) error {
	seen := map[base.UUID]bool{}
	for len(lists) > 0 {
		var next []base.UUID
		candidates, lost, err := e.losingUpstreams(ctx, since, lists)
		if err != nil {
			return err
		}
		for _, id := range lost { // by an earlier try: what leads to them may be left
			if !seen[id] {
				seen[id] = true
				next = append(next, id)
			}
		}
		for some := range slices.Chunk(candidates, edgesAtOnce) {
			cmd := &cancelSome{satisfied: satisfied, candidates: some}
			if err := e.Do(ctx, cmd); err != nil {
				return err
			}
			next = append(next, cmd.cancelled...)
		}
		lists = nil
		for _, to := range next {
			lists = append(lists, upstreamsRef(to))
		}
	}
	return nil
}

// losingUpstreams finds the listed members that may have to end, and those that a join has ended since then: what an earlier decision has ended
// does not belong to this one.
func (e *Graphs) losingUpstreams(ctx context.Context, since base.Time, lists []store.DocRef) (candidates []candidate, lost []base.UUID, err error) {
	loaded, err := e.ReadIf(ctx, store.Want{Docs: lists})
	if err != nil {
		return nil, nil, err
	}
	want := store.Want{SkipUnreadable: true}
	for _, ref := range slices.Collect(docRefs(loaded)) {
		doc := loaded.Docs[ref]
		upstreams, err := UpstreamsOf(&doc)
		if err != nil {
			return nil, nil, err
		}
		for _, from := range upstreams {
			if !slices.Contains(want.Executions, from) {
				want.Executions = append(want.Executions, from)
				want.Owned = append(want.Owned, EdgesOf(from))
			}
		}
	}
	if loaded, err = e.ReadIf(ctx, want); err != nil {
		return nil, nil, err
	}
	for _, id := range want.Executions {
		x := loaded.Executions[id]
		switch {
		case x == nil:
		case x.Status == core.Cancelled && (x.Reason == core.JoinSatisfied || x.Reason == core.JoinImpossible):
			if x.CompletedAt >= since {
				lost = append(lost, id)
			}
		case x.Loser():
			some, err := candidateOf(x, loaded.Owned[EdgesOf(id)])
			if err != nil {
				return nil, nil, err
			}
			candidates = append(candidates, some)
		}
	}
	return candidates, lost, nil
}

func docRefs(loaded *store.Loaded) func(yield func(store.DocRef) bool) {
	return func(yield func(store.DocRef) bool) {
		for ref := range loaded.Docs {
			if !yield(ref) {
				return
			}
		}
	}
}

// candidate is a member that may have to end, and where its edges lead.
type candidate struct {
	id     base.UUID
	to     []base.UUID
	parent base.UUID // the execution that may wait for it; absent: none
}

func candidateOf(x *core.Execution, docs []store.Doc) (candidate, error) {
	c := candidate{id: x.ID.UUID, parent: x.ParentID.UUID}
	for i := range docs {
		var edge core.Edge
		if err := ReadDoc(&docs[i], &edge); err != nil {
			return c, err
		}
		if edge.Wait != 0 {
			c.parent = edge.To.ID.UUID
		} else {
			c.to = append(c.to, edge.To.ID.UUID)
		}
	}
	return c, nil
}

// ends are all that the candidate's edges may lead to.
func (c *candidate) ends() []base.UUID {
	if c.parent.IsZero() {
		return c.to
	}
	return append(c.to[:len(c.to):len(c.to)], c.parent)
}

// cancelSome ends those candidates that no undecided join needs (F31).
type cancelSome struct {
	satisfied  bool
	candidates []candidate
	cancelled  []base.UUID
}

func (c *cancelSome) Name() string { return "cancel_losers" }

func (c *cancelSome) Want(w *store.Want, _ bool) {
	for _, some := range c.candidates {
		w.Executions = append(w.Executions, some.id)
		w.Executions = append(w.Executions, some.ends()...)
	}
}

func (c *cancelSome) Flows(u *txn.Tx) (flows []base.UUID) {
	for _, some := range c.candidates {
		flows = append(flows, flowOf(u.Entries[some.id])...)
	}
	return flows
}

// Graph loads the edges of the candidates as they are under the lock.
func (c *cancelSome) Graph(ctx context.Context, u *txn.Tx) error {
	var from []base.UUID
	for _, some := range c.candidates {
		from = append(from, some.id)
	}
	return lockFlows(ctx, u, nil, from, store.Want{})
}

func (c *cancelSome) Decide(u *txn.Tx) error {
	c.cancelled = nil
	for _, some := range c.candidates {
		ent := u.Entries[some.id]
		if ent == nil {
			continue
		}
		u.Settle(ent)
		if !ent.Exec.Loser() || ent.Exec.Member.Out != len(some.to) || !needless(u, some) {
			continue
		}
		fx := u.EngineEffects()
		held := ent.Exec.Holds
		ent.Exec.CancelByJoin(fx, c.satisfied)
		u.Freed(held, ent.Exec.Holds)
		u.Touch(ent)
		u.Keep(fx)
		c.cancelled = append(c.cancelled, some.id)
	}
	return nil
}

// needless reports whether nothing that a candidate's edges lead to needs it.
func needless(u *txn.Tx, c candidate) bool {
	for _, to := range c.to {
		if down := u.Entries[to]; down != nil && !down.Exec.MayBeLost() {
			return false
		}
	}
	for _, edge := range graphOf(u).from[c.id] {
		if edge.edge.Wait == 0 {
			continue
		}
		parent := u.Entries[c.parent]
		if edge.edge.To.ID.UUID != c.parent || parent != nil && !parent.Exec.ChildrenWaitOver(edge.edge.Wait) {
			return false
		}
	}
	return true
}
