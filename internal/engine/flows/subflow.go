package flows

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/engine/work"
	"github.com/flowfabric/flowfabric/internal/store"
)

// beginSubflow makes the sub-flow of a node that may start (F46), in one transaction with the note of it in the node.
func (e *Graphs) beginSubflow(ctx context.Context, t taskArgs) error {
	loaded, err := e.Store.Read(ctx, store.Want{
		Executions: []base.UUID{t.Execution}, Docs: []store.DocRef{subflowRef(t.Execution), inputsRef(t.Execution)},
	})
	if err != nil {
		return err
	}
	node := loaded.Executions[t.Execution]
	doc, ok := loaded.Docs[subflowRef(t.Execution)]
	if node == nil || !ok || !node.AwaitsSubflow() {
		return nil
	}
	cmd := &subflowBegin{node: node.ID}
	if err := readSubflow(&doc, &cmd.s); err != nil {
		return err
	}
	if cmd.inputs, err = namedInputs(loaded, node); err != nil {
		return err
	}
	outer, err := e.ReadFlow(ctx, txn.EngineCaller, node.FlowID.Given())
	if err != nil {
		return err
	}
	return e.submitSubflow(ctx, cmd, node, outer)
}

func (e *Graphs) submitSubflow(ctx context.Context, cmd *subflowBegin, node *core.Execution, outer *core.Flow) error {
	s := &cmd.s
	s.Namespace, s.Creator, s.CreatorKey = outer.Namespace, outer.Creator, outer.CreatorKey
	s.Unsealed, s.ID, s.IdempotencyKey = false, nil, ""
	if s.Kind == "" {
		s.Kind = outer.Kind
	}
	if s.Trace == nil {
		s.Trace = outer.Trace
	}
	if err := s.CheckShape(work.AnySize); err != nil { // it was accepted with its flow
		return e.failNode(ctx, node, err)
	}
	cmd.flow = base.ID{N: outer.ID.N, UUID: e.Mint()}
	cmd.root, cmd.agreed = outer.Root, true
	cmd.above = core.FlowParent{Execution: node.ID, Run: node.RunIndex(), Root: outer.Root, Depth: outer.Depth + 1}
	caller := txn.EngineCaller
	caller.Principal, caller.KeyID = outer.Creator, outer.CreatorKey
	if err := e.planFlow(ctx, caller, &cmd.submitFlow); err != nil {
		return e.failNode(ctx, node, err)
	}
	if err := cmd.classify(ctx, store.Want{}); err != nil {
		return e.failNode(ctx, node, err)
	}
	if err := e.Do(ctx, cmd); err != nil {
		return e.failNode(ctx, node, err)
	}
	return nil
}

// failNode ends a node whose sub-flow cannot be made: a lane may have been closed, a budget removed since it was accepted. If it is the
// store that does not answer, the work is tried again.
func (e *Graphs) failNode(ctx context.Context, node *core.Execution, why error) error {
	code := base.CodeOf(why)
	if info := code.Info(); info.HTTP >= 500 || info.Retryable && code != base.CodeLaneNotAccepting {
		return why
	}
	return e.Do(ctx, &txn.OnOne{
		Op: "end_node", Caller: txn.EngineCaller, ID: node.ID.Given(),
		Act: func(_ *txn.Tx, x *core.Execution, fx *core.Effects, _ *core.LeaseRecord) (bool, error) {
			if !x.AwaitsSubflow() || x.RunIndex() != node.RunIndex() { // another process was faster, or it was replayed (S64)
				return false, nil
			}
			return x.FailSubflow(fx, why.Error()), nil
		},
	})
}

// subflowBegin is the submit of a sub-flow.
type subflowBegin struct {
	submitFlow
	node   base.ID
	inputs []core.NamedInput // of the node: the roots of the sub-flow get them beside their own (F47)
}

func (s *subflowBegin) Name() string { return "begin_subflow" }

func (s *subflowBegin) Want(w *store.Want, careful bool) {
	s.submitFlow.Want(w, careful)
	w.Executions = append(w.Executions, s.node.UUID)
}

func (s *subflowBegin) Decide(u *txn.Tx) error {
	ent := u.Entries[s.node.UUID]
	if ent == nil {
		return u.Broken[s.node.UUID]
	}
	if u.Settle(ent); !ent.Exec.AwaitsSubflow() || ent.Exec.RunIndex() != s.above.Run {
		return nil // it was replayed since: that run has work of its own
	}
	if err := s.check(u); err != nil || u.Redo != nil {
		return err
	}
	s.scoped = ent.Exec.Budgets // as they are under the lock (B6)
	s.make(u, nil)
	for i := range s.nodes {
		root := u.Entries[s.nodes[i].id.UUID]
		if len(s.inputs) > 0 && root.Exec.Member.Join.N == 0 {
			u.Changes.NewDocs = append(u.Changes.NewDocs, docOf(inputsRef(root.Exec.ID.UUID), s.inputs))
			root.Exec.TakeInputs()
		}
	}
	ent.Exec.BeginSubflow(u.Now, s.flow)
	u.Touch(ent)
	return nil
}

// endNode ends a flow node with its sub-flow (F47).
func (e *Graphs) endNode(ctx context.Context, t taskArgs) error {
	loaded, err := e.Store.Read(ctx, store.Want{Docs: []store.DocRef{FlowRef(t.Flow)}})
	if err != nil {
		return err
	}
	doc, ok := loaded.Docs[FlowRef(t.Flow)]
	if !ok {
		return nil
	}
	f := &core.Flow{}
	if err := ReadDoc(&doc, f); err != nil {
		return err
	}
	cmd := &nodeEnd{node: f.Parent, flow: t.Flow, state: f.State}
	if f.State == core.FlowCompleted && f.Output != "" {
		output, err := e.member(ctx, txn.EngineCaller, f.ID.Given(), f.Output)
		if err != nil {
			return err
		}
		cmd.output = output.ID
	}
	return e.Do(ctx, cmd)
}

// nodeEnd is the end of a sub-flow on its way to its node.
type nodeEnd struct {
	node   base.ID
	flow   base.UUID
	state  core.FlowState // of the sub-flow when it was looked at
	output base.ID        // the member whose result is that of the node; absent: none is
}

func (n *nodeEnd) Name() string { return "end_node" }

func (n *nodeEnd) Want(w *store.Want, _ bool) {
	w.Executions = append(w.Executions, n.node.UUID)
	if !n.output.IsZero() {
		w.Executions = append(w.Executions, n.output.UUID)
	}
}

// Flows returns both flows: the end of the node also advances its own flow.
func (n *nodeEnd) Flows(u *txn.Tx) []base.UUID { return append(flowOf(u.Entries[n.node.UUID]), n.flow) }

// Decide uses the sub-flow as it is under its lock. If it was opened again since, its next end is reported separately (F57, S64).
func (n *nodeEnd) Decide(u *txn.Tx) error {
	f := flow(u, n.flow)
	if f == nil || f.State != n.state {
		return nil
	}
	var result *core.ResultRef
	if !n.output.IsZero() {
		output, err := u.Find(txn.EngineCaller, n.output.Given())
		if err != nil {
			return err
		}
		if output.Exec.Status == core.Succeeded {
			result = output.Exec.EndedRun().Result
		}
	}
	return u.On(txn.EngineCaller, n.node.Given(), func(x *core.Execution, fx *core.Effects) (bool, error) {
		ended := x.EndSubflow(fx, f, result)
		if ended {
			u.Entries[x.ID.UUID].Followed = true
		}
		return ended, nil
	})
}
