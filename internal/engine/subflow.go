package engine

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/store"
)

// beginSubflow makes the sub-flow of a node that may start (F46), in one transaction with the note of it in the node.
func (e *Engine) beginSubflow(ctx context.Context, t task) error {
	loaded, err := e.store.Read(ctx, store.Want{
		Executions: []core.UUID{t.Execution}, Docs: []store.DocRef{subflowRef(t.Execution), inputsRef(t.Execution)},
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
	outer, err := e.readFlow(ctx, engineCaller, node.FlowID.Given())
	if err != nil {
		return err
	}
	return e.submitSubflow(ctx, cmd, node, outer)
}

func (e *Engine) submitSubflow(ctx context.Context, cmd *subflowBegin, node *core.Execution, outer *core.Flow) error {
	s := &cmd.s
	s.Namespace, s.Creator, s.Unsealed, s.ID, s.IdempotencyKey = outer.Namespace, outer.Creator, false, nil, ""
	if s.Kind == "" {
		s.Kind = outer.Kind
	}
	if s.Trace == nil {
		s.Trace = outer.Trace
	}
	if err := s.CheckShape(e.cfg.Limits); err != nil {
		return e.failNode(ctx, node, err)
	}
	cmd.flow = core.ID{N: outer.ID.N, UUID: e.mint()}
	cmd.root = outer.Root
	cmd.above = core.FlowParent{Execution: node.ID, Run: node.RunIndex(), Root: outer.Root, Depth: outer.Depth + 1}
	cmd.scoped = node.Budgets
	caller := engineCaller
	caller.Principal = outer.Creator
	if err := e.planFlow(ctx, caller, &cmd.submitFlow); err != nil {
		return e.failNode(ctx, node, err)
	}
	if err := e.do(ctx, cmd); err != nil {
		return e.failNode(ctx, node, err)
	}
	return nil
}

// failNode ends a node whose sub-flow cannot be made: a lane may have been closed, a budget removed since it was accepted. If it is the
// store that does not answer, the work is tried again.
func (e *Engine) failNode(ctx context.Context, node *core.Execution, why error) error {
	code := core.CodeOf(why)
	if info := code.Info(); info.HTTP >= 500 || info.Retryable && code != core.CodeLaneNotAccepting {
		return why
	}
	return e.do(ctx, &onOne{
		op: "end_node", caller: engineCaller, id: node.ID.Given(),
		act: func(_ *unit, x *core.Execution, fx *core.Effects, _ *core.LeaseRecord) (bool, error) {
			return x.FailSubflow(fx, why.Error()), nil
		},
	})
}

// subflowBegin is the submit of a sub-flow.
type subflowBegin struct {
	submitFlow
	node   core.ID
	inputs []core.NamedInput // of the node: the roots of the sub-flow get them beside their own (F47)
}

func (s *subflowBegin) name() string { return "begin_subflow" }

func (s *subflowBegin) want(w *store.Want, careful bool) {
	s.submitFlow.want(w, careful)
	w.Executions = append(w.Executions, s.node.UUID)
}

func (s *subflowBegin) decide(u *unit) error {
	ent := u.entries[s.node.UUID]
	if ent == nil {
		return nil
	}
	if u.settle(ent); !ent.x.AwaitsSubflow() {
		return nil
	}
	if err := s.check(u); err != nil || u.redo != nil {
		return err
	}
	s.make(u, nil)
	for i := range s.nodes {
		root := u.entries[s.nodes[i].id.UUID]
		if len(s.inputs) > 0 && root.x.Member.Join.N == 0 {
			u.ch.NewDocs = append(u.ch.NewDocs, docOf(inputsRef(root.x.ID.UUID), s.inputs))
			root.x.TakeInputs()
		}
	}
	ent.x.BeginSubflow(u.now, s.flow)
	u.touch(ent)
	return nil
}

// endNode ends a flow node with its sub-flow (F47).
func (e *Engine) endNode(ctx context.Context, t task) error {
	loaded, err := e.store.Read(ctx, store.Want{Docs: []store.DocRef{flowRef(t.Flow)}})
	if err != nil {
		return err
	}
	doc, ok := loaded.Docs[flowRef(t.Flow)]
	if !ok {
		return nil
	}
	f := &core.Flow{}
	if err := readDoc(&doc, f); err != nil {
		return err
	}
	var result *core.ResultRef
	if f.State == core.FlowCompleted && f.Output != "" {
		output, err := e.member(ctx, engineCaller, f.ID.Given(), f.Output)
		if err != nil {
			return err
		}
		if output.Status == core.Succeeded {
			result = output.EndedRun().Result
		}
	}
	return e.do(ctx, &onOne{
		op: "end_node", caller: engineCaller, id: f.Parent.Given(),
		act: func(_ *unit, x *core.Execution, fx *core.Effects, _ *core.LeaseRecord) (bool, error) {
			return x.EndSubflow(fx, f, result), nil
		},
	})
}
