package core

import "github.com/flowfabric/flowfabric/internal/core/base"

// Membership is the part of an execution record about its place in a flow (F2). The flow itself is FlowID.
type Membership struct {
	Name    string
	Root    base.ID // the outermost flow that it is part of
	MayFail bool    // its failure does not count as a failure of the flow (F5)
	Output  bool    // its result is that of the flow
	Subflow bool    // a flow node: it has no worker but a sub-flow (F46)
	Late    bool    // it existed before it became a member
	Out     int     // edges that lead from it
	Join    Join
	Inputs  bool // its named inputs are frozen (F35)
}

// memberToChange returns a copy of the membership of x that may be changed; snapshots of x are not affected.
func (x *Execution) memberToChange() *Membership {
	var copied Membership
	if x.Member != nil {
		copied = *x.Member
	}
	x.Member = &copied
	return x.Member
}

// AddOutgoing counts new edges that lead from x.
func (x *Execution) AddOutgoing(n int) { x.memberToChange().Out += n }

// JoinFlow makes an existing execution a member (F14). The budgets of the flow apply to it from its next claim on (B6).
func (x *Execution) JoinFlow(f *Flow, name string) {
	x.FlowID = f.ID
	m := x.memberToChange()
	m.Name, m.Root, m.Late = name, f.Root, true
	m.Output = name == f.Output
	for _, budget := range f.Budgets {
		addScoped(&x.Budgets, budget)
	}
	x.LastMutationAt = x.Latest()
}

// RootFlowID returns the outermost flow that x is part of; absent outside a flow.
func (x *Execution) RootFlowID() base.ID {
	if x.Member == nil {
		return base.ID{}
	}
	return x.Member.Root
}

// Started reports whether the present run of x has been claimed (F19).
func (x *Execution) Started() bool {
	return x.RunStartedAt != 0 || x.Status == Granted || x.Status.Terminal()
}

// CountsBad reports whether the end of x is a failure of its flow unless it was handled (F5).
func (x *Execution) CountsBad() bool {
	switch {
	case x.Member == nil || x.Member.MayFail:
		return false
	case x.Status == Cancelled:
		return x.Reason != JoinSatisfied && x.Reason != JoinImpossible
	default:
		return x.Status == Failed || x.Status == Expired
	}
}

// dependency returns what a member waits for before it may pass the gate (L14); nothing outside a flow.
func (m *Membership) dependency() Reason {
	if m != nil && m.Join.State == JoinPending {
		return WaitingForChildren
	}
	return ReasonNone
}

// TookCare reports whether x, which has an edge from a member that did not succeed, handles that failure as the graph intends (F5).
func (x *Execution) TookCare() bool {
	return x.Member != nil && (x.Member.Join.State == JoinHeld || x.Member.Join.State == JoinOverridden)
}

// AddInbound counts an edge to a member that has not been made yet.
func (m *Membership) AddInbound(e *Edge) {
	m.Join.add(e)
	m.Join.State = JoinPending
}
