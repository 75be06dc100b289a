package core

import (
	"math"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// DefaultRetention returns how long finished executions are kept if neither policy nor lane states it (L139).
func DefaultRetention() RetentionByStatus {
	days := func(n base.Millis) *base.Millis { ms := n * base.Day; return &ms }
	return RetentionByStatus{Succeeded: days(3), Skipped: days(3), Cancelled: days(7), Failed: days(14), Expired: days(14)}
}

// of returns the retention of a terminal status, nil if it is not set.
func (r RetentionByStatus) of(s Status) *base.Millis {
	switch s {
	case Succeeded:
		return r.Succeeded
	case Failed:
		return r.Failed
	case Cancelled:
		return r.Cancelled
	case Expired:
		return r.Expired
	case Skipped:
		return r.Skipped
	default:
		return nil
	}
}

// Shortens reports whether r keeps any status for a shorter time than old. Absent values are taken from the defaults.
func (r RetentionByStatus) Shortens(old, defaults RetentionByStatus) bool {
	for _, status := range Statuses() {
		if status.Terminal() && r.keeps(status, defaults) < old.keeps(status, defaults) {
			return true
		}
	}
	return false
}

// Same reports whether r and other keep everything equally long.
func (r RetentionByStatus) Same(other RetentionByStatus) bool {
	return !r.Shortens(other, RetentionByStatus{}) && !other.Shortens(r, RetentionByStatus{})
}

// keeps returns how long a finished execution is kept.
func (r RetentionByStatus) keeps(s Status, defaults RetentionByStatus) base.Millis {
	for _, rule := range [...]RetentionByStatus{r, defaults} {
		if keep := rule.of(s); keep != nil && *keep >= 0 {
			return *keep
		} else if keep != nil {
			break
		}
	}
	return math.MaxInt64 // forever
}

// RemoveAt returns the moment from which retention may remove x: by the first setting that is present of its policy, its lane and the defaults
// (L139). ok is false while x is not terminal and if it is kept forever.
func (x *Execution) RemoveAt(lane *LaneSettings, defaults RetentionByStatus) (at base.Time, ok bool) {
	for _, rule := range [...]RetentionByStatus{x.Policy.Retention, lane.RetentionMS, defaults} {
		switch keep := rule.of(x.Status); {
		case keep == nil:
		case *keep < 0:
			return 0, false
		default:
			return x.CompletedAt.Add(*keep), true
		}
	}
	return 0, false
}

// CheckRemovable returns nil if x itself may be removed by retention or delete (L140). Errors: execution_not_terminal, retained naming the cause.
func (x *Execution) CheckRemovable(now base.Time) error {
	switch {
	case !x.Status.Terminal():
		return x.refuse(base.CodeExecutionNotTerminal)
	case x.CheckRetained(now) != nil:
		return x.CheckRetained(now)
	case x.Member != nil:
		return base.Errorf(base.CodeRetained, "the execution is a member of a flow: members go together").With("cause", "flow").
			With("flow_id", x.FlowID.String()).With("root_flow_id", x.RootFlowID().String()).WithHint("delete the outermost flow when it has ended")
	default:
		return nil
	}
}

// CheckRetained is the refusal to remove an execution with an active retain. Errors: retained.
func (x *Execution) CheckRetained(now base.Time) error {
	if x.Retain == nil || x.Retain.Until != 0 && x.Retain.Until <= now {
		return nil
	}
	return base.Errorf(base.CodeRetained, "the execution is retained").
		With("cause", "retain").With("by", x.Retain.By).With("until", x.Retain.Until).With("execution_id", x.ID.String())
}

// CheckRemovable returns nil if the flow itself may be removed (L140). Errors: flow_not_terminal.
func (f *Flow) CheckRemovable() error {
	if f.Finished() {
		return nil
	}
	return base.Errorf(base.CodeFlowNotTerminal, "the flow is %s, and %d of its members have not ended", f.State, f.Open).
		With("state", string(f.State)).With("open", f.Open).WithHint("cancel it, or wait for its end")
}

// FlowLeavesAt returns the moment from which retention may remove a member with its whole flow. Its retention is counted from the end of the flow
// (L140), or from its own end if it outlived a flow that was cancelled alone. ok is false if it is kept forever.
func (x *Execution) FlowLeavesAt(f *Flow, lane *LaneSettings, defaults RetentionByStatus) (at base.Time, ok bool) {
	if at, ok = x.RemoveAt(lane, defaults); !ok {
		return 0, false
	}
	at = max(at, f.EndedAt.Add(at.Sub(x.CompletedAt)))
	if x.Retain != nil {
		return max(at, x.Retain.Until), x.Retain.Until != 0
	}
	return at, true
}

// LeavesAt returns the moment from which retention may remove a finished flow without members: by the default for its outcome. ok is false if it is
// kept forever.
func (f *Flow) LeavesAt(defaults RetentionByStatus) (at base.Time, ok bool) {
	status := Failed
	switch f.State {
	case FlowCompleted:
		status = Succeeded
	case FlowStopped:
		status = Cancelled
	}
	keep := RetentionByStatus{}.keeps(status, defaults)
	return f.EndedAt.Add(keep), keep != math.MaxInt64
}

// SetRetain protects x from retention and delete or, with nil, ends the protection (U54), in every status. An equal value changes nothing. It
// always returns nil today.
func (x *Execution) SetRetain(fx *Effects, r *Retain) error {
	old := x.Retain
	switch {
	case old == nil && r == nil, old != nil && r != nil && *old == *r:
		return nil
	case r == nil:
		x.emitRetained(fx, "execution.retain_ended", old)
	default:
		x.emitRetained(fx, "execution.retained", r)
	}
	x.Retain = r
	x.LastMutationAt = fx.Now
	return nil
}

// Shortest returns the shortest retention in r; ok is false if it has none.
func (r RetentionByStatus) Shortest() (keep base.Millis, ok bool) {
	for _, status := range Statuses() {
		if own := r.of(status); own != nil && *own >= 0 && (!ok || *own < keep) {
			keep, ok = *own, true
		}
	}
	return keep, ok
}
