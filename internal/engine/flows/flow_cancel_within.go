package flows

import (
	"cmp"
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// cancelWithin cancels the sub-flows of some nodes of a cancelled flow (F48, F49): what no worker has had there ends, the rest continues, and a
// node ends with its sub-flow. One that fails does not delay the others.
func (e *Graphs) cancelWithin(ctx context.Context, nodes []*core.Execution) (failed error) {
	for _, node := range nodes {
		cmd := &subflowCancel{node: node.ID.UUID, flow: node.Children.FlowID.UUID}
		loaded, err := e.Store.Read(ctx, store.Want{Scans: []store.Scan{{Kind: DocMember, Owner: txn.Owner(cmd.flow), Limit: cancelPage}}})
		if err == nil {
			cmd.members, err = memberIDs(loaded.Scanned[0])
		}
		if err == nil {
			cmd.members, err = e.readable(ctx, cmd.members) // those that cannot be read are left to the work that follows
		}
		if err == nil {
			err = e.Do(ctx, cmd)
		}
		failed = cmp.Or(failed, err)
	}
	return failed
}

// subflowCancel is the cancel of a flow on its way into the sub-flow of a node.
type subflowCancel struct {
	node    base.UUID
	flow    base.UUID // the sub-flow
	members []base.UUID
}

func (c *subflowCancel) Name() string { return "cancel_subflow" }

func (c *subflowCancel) Want(w *store.Want, _ bool) {
	w.Executions = append(append(w.Executions, c.node), c.members...)
}

// Flows returns both flows: that of the node contains the kind of the cancel.
func (c *subflowCancel) Flows(u *txn.Tx) []base.UUID {
	return append(flowOf(u.Entries[c.node]), c.flow)
}

// Decide uses the flows as they are under their locks. A node that has ended, or has another sub-flow, has follow-up work of its own; a stronger
// cancel ends the node itself.
func (c *subflowCancel) Decide(u *txn.Tx) error {
	node, f := u.Entries[c.node], flow(u, c.flow)
	if node == nil || f == nil {
		return u.Broken[c.node]
	}
	u.Settle(node)
	outer := flow(u, node.Exec.FlowID.UUID)
	if outer == nil || outer.Cancel == nil || !outer.Cancel.GoesInto(node.Exec) || node.Exec.Children.FlowID != f.ID {
		return nil
	}
	cancelGraph(u, f, outer.Cancel.Into(), u.EngineEffects(), c.members)
	return nil
}
