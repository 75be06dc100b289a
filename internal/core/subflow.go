package core

import (
	"strings"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// AwaitsSubflow reports whether x is a flow node whose sub-flow has not been made yet.
func (x *Execution) AwaitsSubflow() bool {
	return x.Status == Blocked && x.Dependency == WaitingForSubflow && x.Children == nil
}

// InSubflow reports whether x is a flow node whose sub-flow has begun and is not known to have ended.
func (x *Execution) InSubflow() bool {
	return x.Status == Blocked && x.Dependency == WaitingForSubflow && x.Children != nil
}

// BeginSubflow records the sub-flow of a flow node (F46).
func (x *Execution) BeginSubflow(now base.Time, flow base.ID) {
	x.Children = &Children{FlowID: flow}
	x.LastMutationAt = max(now, x.Latest())
}

// TakeInputs records that x has named inputs from no edge: those of the node whose sub-flow it belongs to (F47).
func (x *Execution) TakeInputs() { x.memberToChange().Inputs = true }

// EndSubflow ends a flow node with the outcome of its sub-flow (F47). It reports whether x was waiting for it.
func (x *Execution) EndSubflow(fx *Effects, f *Flow, result *ResultRef) bool {
	if !x.InSubflow() || x.Children.FlowID != f.ID || !f.State.Terminal() {
		return false
	}
	switch f.State {
	case FlowCompleted:
		if result != nil {
			x.Result = &Payload{ContentType: result.ContentType, Size: result.Size}
			x.ResultOf, x.ResultEpoch = result.Of, result.Epoch
		}
		x.end(fx, ending{status: Succeeded, reason: Completed, attempt: EndedSuccess})
	case FlowFailed:
		x.FailSubflow(fx, "of the sub-flow failed: "+strings.Join(f.Failures, ", "))
	default:
		x.end(fx, ending{
			status: Cancelled, reason: FlowCancelled, attempt: EndedCancelled,
			cancellation: &Cancellation{Source: SourceFlow, By: f.Cancel.By, Reason: f.Cancel.Reason},
		})
	}
	return true
}

// FailSubflow ends a flow node whose sub-flow failed or cannot be made. It reports whether x was waiting for one.
func (x *Execution) FailSubflow(fx *Effects, why string) bool {
	if x.Status != Blocked || x.Dependency != WaitingForSubflow {
		return false
	}
	x.end(fx, ending{
		status: Failed, reason: SubflowFailed, attempt: EndedFailure,
		failure: &Failure{Class: classPermanent, Category: SubflowFailed.String(), Message: base.CutText(why, base.MaxMessage), At: fx.Now},
	})
	return true
}
