package core

import "github.com/flowfabric/flowfabric/internal/core/base"

// Children is what the record of an execution keeps about the work that its present run spawned (section 7 of the flows).
type Children struct {
	FlowID base.ID
	Waits  int           // the number of waits so far
	Wait   *ChildrenWait // the open wait, or the last one; nil: none
}

// FlowsBelow returns the flows below x: the sub-flows or children flows of all its runs, that of the present run last.
func (x *Execution) FlowsBelow() []base.ID {
	if x.Children == nil {
		return x.Earlier
	}
	return append(x.Earlier[:len(x.Earlier):len(x.Earlier)], x.Children.FlowID)
}

// ChildrenWait is a wait for children (F40). Its edges lead from the children to their parent.
type ChildrenWait struct {
	Number    int
	Join      Join
	Kind      EdgeKind
	Since     base.Time
	TimeoutAt base.Time // absent: none
	Cause     string    // what ended it: children, children_impossible or children_timeout; "" while it is open
}

// The ways in which a wait for children ends (F41).
const (
	CauseChildren           = "children"
	CauseChildrenImpossible = "children_impossible"
	CauseChildrenTimeout    = "children_timeout"
)

// The policies about children whose parent ends (F44). "" is the first.
const (
	CancelOnFailure = "cancel_on_failure"
	CancelAlways    = "cancel"
	Detach          = "detach"
)

// waitsForChildren reports whether the numbered wait of x is open.
func (x *Execution) waitsForChildren(number int) bool {
	return x.Children != nil && x.Children.Wait != nil && x.Children.Wait.Number == number && x.Children.Wait.Cause == "" &&
		x.Status == Blocked && x.Dependency == WaitingForChildren
}

// waitToChange returns a copy of the last wait for children that may be changed; snapshots of x are not affected.
func (x *Execution) waitToChange() *ChildrenWait {
	children, wait := *x.Children, *x.Children.Wait
	children.Wait = &wait
	x.Children = &children
	return &wait
}

// childrenDue returns the timeout of the open wait for children.
func (x *Execution) childrenDue() base.Time {
	if x.Children == nil || x.Children.Wait == nil || !x.waitsForChildren(x.Children.Wait.Number) {
		return 0
	}
	return x.Children.Wait.TimeoutAt
}

// timeOutChildren ends a wait for children that has timed out (F41).
func (x *Execution) timeOutChildren(fx *Effects) { x.endChildrenWait(fx, CauseChildrenTimeout) }

// DueChildren ends the open wait if the children that have ended decide it as satisfied or impossible (F41). It reports whether it did.
func (x *Execution) DueChildren(fx *Effects) bool {
	if x.Children == nil || x.Children.Wait == nil || !x.waitsForChildren(x.Children.Wait.Number) {
		return false
	}
	switch x.Children.Wait.Join.verdict(true) {
	case JoinHeld, JoinNone:
		x.endChildrenWait(fx, CauseChildren)
	case JoinBroken:
		x.endChildrenWait(fx, CauseChildrenImpossible)
	default:
		return false
	}
	return true
}

// endChildrenWait lets x continue the same attempt after its wait, through the gate (W80).
func (x *Execution) endChildrenWait(fx *Effects, cause string) {
	w := x.waitToChange()
	w.Cause, w.Join.DecidedAt = cause, fx.Now
	if w.Join.State = w.Join.verdict(true); cause == CauseChildren {
		w.Join.State = JoinHeld // there are no children
	}
	x.Dependency, x.Next = ReasonNone, NextResume
	x.pass(fx, cause)
}
