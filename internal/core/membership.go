package core

// Membership is what the record of an execution knows of its place in a flow (F2). Which flow that is says FlowID.
type Membership struct {
	Name    string
	Root    ID   // the outermost flow that it is part of
	MayFail bool // its failure is none of the flow's (F5)
	Output  bool // its result is that of the flow
	Subflow bool // a flow node: it has no worker but a sub-flow (F46)
	Late    bool // it was there before it became a member
	Out     int  // edges that lead from it
	Join    Join
	Inputs  bool // its named inputs are frozen (F35)
}

// memberToChange is the membership of x to be written to: a copy, so that snapshots of x keep theirs.
func (x *Execution) memberToChange() *Membership {
	var copied Membership
	if x.Member != nil {
		copied = *x.Member
	}
	x.Member = &copied
	return x.Member
}

// AddOutgoing notes new edges that lead from x.
func (x *Execution) AddOutgoing(n int) { x.memberToChange().Out += n }

// JoinFlow makes an execution that is there already a member (F14), which budgets of the flow reach from its next claim on (B6).
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

// RootFlowID is the outermost flow that x is part of; absent outside a flow.
func (x *Execution) RootFlowID() ID {
	if x.Member == nil {
		return ID{}
	}
	return x.Member.Root
}

// Started reports whether the present run of x was claimed already (F19).
func (x *Execution) Started() bool {
	return x.RunStartedAt != 0 || x.Status == Granted || x.Status.Terminal()
}

// CountsBad reports whether the end of x is a failure of its flow unless somebody took care of it (F5).
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

// dependency is what a member waits for before it may pass the gate (L14); nothing outside a flow.
func (m *Membership) dependency() Reason {
	if m != nil && m.Join.State == JoinPending {
		return WaitingForChildren
	}
	return ReasonNone
}

// TookCare reports whether x, which an edge of one that did not end well leads to, is as its graph meant it for that case (F5).
func (x *Execution) TookCare() bool {
	return x.Member != nil && (x.Member.Join.State == JoinHeld || x.Member.Join.State == JoinOverridden)
}

// AddInbound books an edge that leads to a member which is yet to be made.
func (m *Membership) AddInbound(e *Edge) {
	m.Join.add(e)
	m.Join.State = JoinPending
}
