package flows

import (
	"context"
	"errors"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/limits"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// DeleteFlow removes a finished flow with its members and all flows below them (L140, L141): their records in one transaction, so that they
// disappear at once, the rest by follow-up work. Codes: flow_not_found, stale_graph_revision, flow_not_terminal, retained naming the cause,
// corruption.
func (e *Graphs) DeleteFlow(ctx context.Context, c txn.Caller, r DeleteFlowRequest) error {
	if err := base.CheckReason("reason", r.Reason); err != nil {
		return err
	}
	if err := base.CheckRequestKey(c.RequestKey); err != nil {
		return err
	}
	for range extendTries {
		cmd, err := e.planFlowRemoval(ctx, c, r)
		if err != nil {
			return err
		}
		if err = e.DoAlone(ctx, cmd); !errors.Is(err, errOutdated) {
			return err
		}
	}
	return graphBusy()
}

func (e *Graphs) planFlowRemoval(ctx context.Context, c txn.Caller, r DeleteFlowRequest) (*flowRemoval, error) {
	cmd := &flowRemoval{caller: c, id: r.Flow, r: r, fingerprint: txn.Fingerprint(r.Reason, r.Expected), tree: erasure{e: e}}
	if c.RequestKey != "" { // the answer outlives the flow
		cmd.request = txn.RequestRef(c, cmd.Name(), r.Flow.UUID.String(), c.RequestKey)
	}
	f, err := e.ReadFlow(ctx, c, r.Flow)
	if base.CodeOf(err) == base.CodeFlowNotFound {
		return cmd, nil // a repeat of the request that removed it succeeds
	}
	if err != nil {
		return nil, err
	}
	cmd.space = f.Namespace
	return cmd, cmd.tree.find(ctx, []base.UUID{r.Flow.UUID})
}

// DeleteFlowRequest asks for the removal of a finished flow.
type DeleteFlowRequest struct {
	Flow     base.GivenID
	Reason   string
	Expected *int64 // the graph revision that the caller expects; nil: any
}

// flowRemoval is the command of DeleteFlow.
type flowRemoval struct {
	caller      txn.Caller
	id          base.GivenID
	r           DeleteFlowRequest
	space       string // namespace of the flow
	tree        erasure
	request     store.DocRef
	fingerprint string
}

func (r *flowRemoval) Name() string { return "delete_flow" }

func (r *flowRemoval) Want(*store.Want, bool) {}

func (r *flowRemoval) Flows(*txn.Tx) []base.UUID { return r.tree.flows }

// By returns the caller.
func (r *flowRemoval) By() txn.Caller { return r.caller }

func (r *flowRemoval) Chains(*txn.Tx) []string { return flowChain(r.caller, r.space) }

func (r *flowRemoval) Graph(ctx context.Context, u *txn.Tx) error {
	return lookForRequest(ctx, u, r.request)
}

func (r *flowRemoval) Decide(u *txn.Tx) error {
	if again, err := u.Repeated(r.caller, r.request, r.fingerprint, nil); again || err != nil {
		return err
	}
	f := flow(u, r.id.UUID)
	if f == nil || !r.id.Names(f.ID) || !r.caller.Sees(f.Namespace) {
		return flowNotFound(r.id)
	}
	if err := f.Stale(r.r.Expected); err != nil {
		return err
	}
	if err := f.CheckRemovable(); err != nil {
		return err
	}
	ctx, cancel := u.Engine.Bounded()
	defer cancel()
	if err := r.tree.checkAbove(ctx, f); err != nil {
		return err
	}
	if err := r.tree.check(ctx, u); err != nil {
		return err
	}
	fx := u.Effects(r.caller)
	f.EmitDeleted(fx, r.r.Reason)
	u.Keep(fx)
	auditFlow(u, r.caller, r.Name(), f, r.r.Reason, auditedCancelOf(f), nil)
	r.tree.drop(u)
	u.RecordRequest(r.request, r.fingerprint, nil)
	return nil
}

// erasure is a set of flows that are removed together, including those below their members, at every depth.
type erasure struct {
	e     *Graphs
	flows []base.UUID
}

// find finds some flows and all flows below them.
func (t *erasure) find(ctx context.Context, from []base.UUID) error {
	t.flows = nil
	seen := map[base.UUID]bool{}
	for front := from; len(front) > 0; front = front[1:] {
		if seen[front[0]] {
			continue
		}
		seen[front[0]] = true
		t.flows = append(t.flows, front[0])
		err := t.e.eachMember(ctx, front[0], "", func(m walked) (bool, error) {
			for _, below := range m.x.FlowsBelow() {
				front = append(front, below.UUID)
			}
			return true, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// check returns the refusal of an erasure, decided under the locks of all its flows: a command that opens a member again, or retains it, takes the
// lock of its flow. Codes: retained; errOutdated if there are further flows by now.
func (t *erasure) check(ctx context.Context, u *txn.Tx) error {
	known := map[base.UUID]bool{}
	for _, id := range t.flows {
		known[id] = true
	}
	for _, id := range t.flows {
		f := flow(u, id)
		if f == nil {
			continue // it is gone already
		}
		if !f.Finished() {
			return base.Errorf(base.CodeRetained, "members of a flow below have not ended").With("cause", "children").With("flow_id", f.ID.String())
		}
		err := t.e.eachMember(ctx, id, "", func(m walked) (bool, error) {
			for _, below := range m.x.FlowsBelow() {
				if !known[below.UUID] {
					return false, errOutdated
				}
			}
			if err := m.x.CheckRetained(u.Now); err != nil {
				return false, err
			}
			return true, edgesSettled(m.x, m.loaded)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// covers returns errOutdated if a flow has come below x since the erasure was planned.
func (t *erasure) covers(x *core.Execution) error {
	for _, below := range x.FlowsBelow() {
		if !slices.Contains(t.flows, below.UUID) {
			return errOutdated
		}
	}
	return nil
}

// edgesSettled returns the refusal of a finished member with edges that its end has not resolved yet: follow-up work is outstanding (L140).
func edgesSettled(x *core.Execution, loaded *store.Loaded) error {
	edges, err := EdgesIn(loaded.Owned[EdgesOf(x.ID.UUID)])
	if err != nil {
		return err
	}
	for i := range edges {
		if edges[i].State == core.EdgePending {
			return base.Errorf(base.CodeRetained, "the end of %s has not reached all its edges yet", x.Member.Name).
				With("cause", "follow_up").With("execution_id", x.ID.String())
		}
	}
	return nil
}

// checkAbove is the refusal of a flow that an execution still has: it goes with that.
func (t *erasure) checkAbove(ctx context.Context, f *core.Flow) error {
	if f.Parent.IsZero() {
		return nil
	}
	loaded, err := t.e.Store.Read(ctx, store.Want{Executions: []base.UUID{f.Parent.UUID}})
	if err != nil {
		return txn.PublicFault(err)
	}
	if x := loaded.Executions[f.Parent.UUID]; x != nil && x.Children != nil && x.Children.FlowID == f.ID {
		err := base.Errorf(base.CodeRetained, "the flow belongs to the execution %s", f.Parent.UUID).
			With("cause", "parent").With("execution_id", f.Parent.String())
		if f.Root != f.ID {
			return err.With("root_flow_id", f.Root.String()).WithHint("delete the outermost flow")
		}
		return err.WithHint("delete that execution")
	}
	return nil
}

// drop removes the records of the flows, and leaves what hangs on them to follow-up work.
func (t *erasure) drop(u *txn.Tx) {
	for _, id := range t.flows {
		if f := flow(u, id); f != nil {
			dropFlow(u, f)
			u.AddTask(taskRemoveFlow, taskArgs{Flow: id})
		}
	}
}

// dropFlow removes the record of a flow: nothing shows it or its members any more.
func dropFlow(u *txn.Tx, f *core.Flow) {
	u.Changes.DropDocs = append(u.Changes.DropDocs, FlowRef(f.ID.UUID), flowMarkRef(f))
	for _, budget := range f.Budgets { // those of flows around it stay
		u.AddTask(limits.TaskLeaveBudget, limits.TaskArgs{Budget: budget.ID})
	}
}
