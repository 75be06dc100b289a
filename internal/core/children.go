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
