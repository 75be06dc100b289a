package core

import "math"

// DefaultRetention is how long finished executions are kept when neither policy nor lane say so (L139).
func DefaultRetention() RetentionByStatus {
	days := func(n Millis) *Millis { ms := n * Day; return &ms }
	return RetentionByStatus{Succeeded: days(3), Skipped: days(3), Cancelled: days(7), Failed: days(14), Expired: days(14)}
}

// of is the retention of a terminal status, nil when it is not set.
func (r RetentionByStatus) of(s Status) *Millis {
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

// Shortens reports whether something is kept for less long by r than by old, where neither says anything by the defaults.
func (r RetentionByStatus) Shortens(old, defaults RetentionByStatus) bool {
	for _, status := range Statuses() {
		if status.Terminal() && r.keeps(status, defaults) < old.keeps(status, defaults) {
			return true
		}
	}
	return false
}

// Same reports whether r and other keep everything for equally long.
func (r RetentionByStatus) Same(other RetentionByStatus) bool {
	return !r.Shortens(other, RetentionByStatus{}) && !other.Shortens(r, RetentionByStatus{})
}

// keeps is how long a finished execution is kept.
func (r RetentionByStatus) keeps(s Status, defaults RetentionByStatus) Millis {
	for _, rule := range [...]RetentionByStatus{r, defaults} {
		if keep := rule.of(s); keep != nil && *keep >= 0 {
			return *keep
		} else if keep != nil {
			break
		}
	}
	return math.MaxInt64 // for ever
}

// RemoveAt is the moment from which retention may remove x: the first that is set of its policy, its lane and the defaults
// (L139). ok is false while x is not terminal and when it is kept for ever.
func (x *Execution) RemoveAt(lane *LaneSettings, defaults RetentionByStatus) (at Time, ok bool) {
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

// CheckRemovable reports whether x itself allows its removal, by retention or delete (L140). Errors: execution_not_terminal,
// retained naming the cause.
func (x *Execution) CheckRemovable(now Time) error {
	switch {
	case !x.Status.Terminal():
		return x.refuse(CodeExecutionNotTerminal)
	case x.CheckRetained(now) != nil:
		return x.CheckRetained(now)
	case x.Member != nil:
		return Errorf(CodeRetained, "the execution is a member of a flow: members go together").With("cause", "flow").
			With("flow_id", x.FlowID.String()).With("root_flow_id", x.RootFlowID().String()).WithHint("delete the outermost flow when it has ended")
	default:
		return nil
	}
}

// CheckRetained is the refusal of a removal that somebody has asked to wait. Errors: retained.
func (x *Execution) CheckRetained(now Time) error {
	if x.Retain == nil || x.Retain.Until != 0 && x.Retain.Until <= now {
		return nil
	}
	return Errorf(CodeRetained, "the execution is retained").
		With("cause", "retain").With("by", x.Retain.By).With("until", x.Retain.Until).With("execution_id", x.ID.String())
}

// CheckRemovable reports whether the flow itself allows its removal (L140). Errors: flow_not_terminal.
func (f *Flow) CheckRemovable() error {
	if f.Finished() {
		return nil
	}
	return Errorf(CodeFlowNotTerminal, "the flow is %s, and %d of its members have not ended", f.State, f.Open).
		With("state", string(f.State)).With("open", f.Open).WithHint("cancel it, or wait for its end")
}

// FlowLeavesAt is the moment from which retention may remove a member with its whole flow: its own time counts from the end of that
// (L140), or from its own where it outlived a flow that was cancelled alone. ok is false when it is kept for ever.
func (x *Execution) FlowLeavesAt(f *Flow, lane *LaneSettings, defaults RetentionByStatus) (at Time, ok bool) {
	if at, ok = x.RemoveAt(lane, defaults); !ok {
		return 0, false
	}
	at = max(at, f.EndedAt.Add(at.Sub(x.CompletedAt)))
	if x.Retain != nil {
		return max(at, x.Retain.Until), x.Retain.Until != 0
	}
	return at, true
}

// LeavesAt is the moment from which retention may remove a finished flow that has no members to say so: the default for how it ended. ok is
// false when that is kept for ever.
func (f *Flow) LeavesAt(defaults RetentionByStatus) (at Time, ok bool) {
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

// SetRetain keeps x from retention and delete, or with nil lets it go again (U54); in every status. Stating what is already
// the case changes nothing. Errors: none now.
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

// Shortest is the shortest time that r keeps anything; ok is false when it says nothing of the kind.
func (r RetentionByStatus) Shortest() (keep Millis, ok bool) {
	for _, status := range Statuses() {
		if own := r.of(status); own != nil && *own >= 0 && (!ok || *own < keep) {
			keep, ok = *own, true
		}
	}
	return keep, ok
}
