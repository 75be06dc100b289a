package core

import "github.com/flowfabric/flowfabric/internal/core/base"

// FlowCancelCommand is the command cancel_flow (section 9 of the flows).
type FlowCancelCommand struct {
	Policy CancelPolicy // "": cancel_all
	Reason string
	By     string
	Source string // "": flow
}

// Check fills in defaults and checks the arguments: invalid_argument.
func (c *FlowCancelCommand) Check() error {
	if c.Policy == "" {
		c.Policy = CancelAll
	}
	if c.Source == "" {
		c.Source = SourceFlow
	}
	if c.Policy.strength() == 0 {
		return base.Invalid("policy", "must be cancel_all, cancel_pending or flow_only")
	}
	return base.CheckReason("reason", c.Reason)
}

// RequestCancel records the request (F49, F52). changed is false if the flow has already ended or an equal or stronger cancel was already
// requested.
func (f *Flow) RequestCancel(fx *Effects, c FlowCancelCommand) (changed bool) {
	switch {
	case f.State == FlowCompleted || f.State == FlowFailed:
		return false
	case f.Cancel != nil && (c.Policy.strength() <= f.Cancel.Policy.strength() || f.Open == 0):
		return false
	}
	from, before := f.State, f.Nodes-f.Open
	if f.Cancel != nil {
		before -= f.Cancel.Cancelled
	}
	f.Cancel = &FlowCancel{Policy: c.Policy, Reason: c.Reason, By: c.By, Source: c.Source, RequestedAt: fx.Now, Before: before, Cancelled: f.Nodes - f.Open - before}
	switch {
	case f.State == FlowStopped: // by flow_only: the state stays while the members end
	case c.Policy == CancelFlowOnly || f.Open == 0:
		f.State, f.EndedAt = FlowStopped, fx.Now
	default:
		f.State = FlowCancelling
	}
	f.LastMutationAt = fx.Now
	f.emitCancelRequested(fx)
	if f.State.Terminal() && !from.Terminal() {
		f.emitEnded(fx, nil)
	}
	return true
}

// Reaches reports whether the cancel of its flow ends x (section 9 of the flows).
func (c *FlowCancel) Reaches(x *Execution) bool {
	switch {
	case x.Status.Terminal():
		return false
	case c.Policy == CancelAll:
		return true
	case c.Policy == CancelPending:
		return x.RunStartedAt == 0 && x.Status != Running && x.Status != Suspended && !x.InSubflow()
	default:
		return false
	}
}

// GoesInto reports whether the cancel is passed to the sub-flow of x instead of ending x: a flow node has started with its sub-flow, and work in it
// that has started continues to its own end, at every depth (F48, F49).
func (c *FlowCancel) GoesInto(x *Execution) bool {
	return c.Policy == CancelPending && x.InSubflow()
}

// Into returns the command that passes the cancel to the sub-flow of a node.
func (c *FlowCancel) Into() FlowCancelCommand {
	return FlowCancelCommand{Policy: c.Policy, Reason: c.Reason, By: c.By, Source: SourceParent}
}

// CancelByFlow ends a member because its flow was cancelled (F50).
func (x *Execution) CancelByFlow(fx *Effects, c *FlowCancel) {
	x.cancel(fx, CancelCommand{Source: c.Source, By: c.By, Reason: c.Reason, Why: FlowCancelled}, entry{})
}

// CancelByJoin ends an upstream that a decided join no longer needs (F31).
func (x *Execution) CancelByJoin(fx *Effects, satisfied bool) {
	why := JoinImpossible
	if satisfied {
		why = JoinSatisfied
	}
	x.cancel(fx, CancelCommand{Source: SourceJoin, By: EngineActor().ID, Why: why}, entry{})
}

// Owed returns how many members the cancel still has to wait for: those that it ends, or lets end (F53).
func (f *Flow) Owed() int {
	if f.Cancel == nil || f.Cancel.Policy == CancelFlowOnly {
		return 0
	}
	return f.Open
}
