package core

import "github.com/flowfabric/flowfabric/internal/core/base"

// FlowParent is the parent of a flow that is not a root: a flow node (F46) or the execution that spawns its members (F38).
type FlowParent struct {
	Execution base.ID
	Run       int
	Root      base.ID // absent: the flow is a root of its own
	Depth     int
}

// NewFlow makes the record of an accepted submission, without its members (F8, F13).
func NewFlow(fx *Effects, s *FlowSubmission, id base.ID, parent FlowParent) *Flow {
	f := &Flow{
		ID: id, Namespace: s.Namespace, Kind: s.Kind, Creator: s.Creator, CreatorKey: s.CreatorKey, Tags: s.Tags, State: FlowOpen, Output: s.Output,
		Parent: parent.Execution, ParentRun: parent.Run, Root: parent.Root, Depth: parent.Depth, Trace: s.Trace,
		CreatedAt: fx.Now, LastMutationAt: fx.Now,
	}
	if f.Root.IsZero() {
		f.Root = id
	}
	return f
}

// Created emits that the flow was created, with the size of its graph.
func (f *Flow) Created(fx *Effects, nodes, edges int) { f.emitGraph(fx, "flow.created", nodes, edges) }

// Extended counts a change of the graph and emits it (F17).
func (f *Flow) Extended(fx *Effects, nodes, edges int) {
	f.Revision++
	f.LastMutationAt = fx.Now
	f.emitGraph(fx, "flow.extended", nodes, edges)
}

// Seal allows no more members or edges (F3). It reports whether the flow was not sealed before.
func (f *Flow) Seal(fx *Effects) bool {
	if f.Sealed {
		return false
	}
	f.Sealed = true
	f.LastMutationAt = fx.Now
	f.emitGraph(fx, "flow.sealed", 0, 0)
	return true
}

// AddMember counts a new member, which may already have ended.
func (f *Flow) AddMember(x *Execution) {
	f.Nodes++
	f.Open++
	if keep, ok := x.Policy.Retention.Shortest(); ok && (f.Keep == nil || keep < *f.Keep) {
		f.Keep = &keep
	}
	if x.Status.Terminal() {
		f.MemberEnded(x)
	}
}

// MemberEnded counts a member that has ended.
func (f *Flow) MemberEnded(x *Execution) {
	f.Open--
	*f.Ends.of(x.Status)++
	if x.CountsBad() {
		f.Bad++
		if len(f.BadNames) < MaxBadNames {
			f.BadNames = append(f.BadNames[:len(f.BadNames):len(f.BadNames)], x.Member.Name)
		}
	}
	if f.Cancel == nil {
		return
	}
	if x.Status == Cancelled && x.Reason == FlowCancelled {
		f.Cancel.Cancelled++
	} else {
		f.Cancel.Before++
	}
}

// MemberReopened reverts MemberEnded before the member is replayed.
func (f *Flow) MemberReopened(x *Execution) {
	f.Open++
	*f.Ends.of(x.Status)--
	if !x.CountsBad() {
		return
	}
	f.Bad--
	var others []string
	for _, name := range f.BadNames {
		if name != x.Member.Name {
			others = append(others, name)
		}
	}
	f.BadNames = others
}

// Finished reports whether the flow and all its members have ended: a flow that was cancelled alone may have running members.
func (f *Flow) Finished() bool { return f.State.Terminal() && f.Open == 0 }

// Touch records a change of the flow. No two changes have the same time.
func (f *Flow) Touch(now base.Time) { f.LastMutationAt = max(now, f.LastMutationAt+1) }

// Due reports whether the flow ends now: nothing is left to do, and nothing can be added (F4, F51).
func (f *Flow) Due() bool {
	return f.Open == 0 && (f.State == FlowCancelling || f.State == FlowOpen && f.Sealed)
}

// End ends a flow that is due. failures names the members that count as failures (F5), up to the number that events show.
func (f *Flow) End(fx *Effects, failures []string) {
	switch {
	case f.State == FlowCancelling:
		f.State = FlowStopped
	case len(failures) > 0:
		f.State, f.Failures = FlowFailed, failures
	default:
		f.State = FlowCompleted
	}
	f.EndedAt, f.LastMutationAt = fx.Now, fx.Now
	f.emitEnded(fx, failures)
}

// NotOpen is the refusal of a change of the graph, nil while the graph may grow (F7, F15).
func (f *Flow) NotOpen() error {
	switch {
	case f.State != FlowOpen:
		return base.Errorf(base.CodeFlowAlreadyTerminal, "the flow is %s", f.State).With("state", string(f.State))
	case f.Sealed:
		return base.Errorf(base.CodeFlowSealed, "the flow is sealed: no member and no edge can come").WithHint("submit it with `seal` false to extend it later")
	default:
		return nil
	}
}

// Stale is the refusal of a change that expects another revision of the graph (F15).
func (f *Flow) Stale(expected *int64) error {
	if expected == nil || *expected == f.Revision {
		return nil
	}
	return base.Errorf(base.CodeStaleGraphRevision, "the graph has revision %d, not %d", f.Revision, *expected).WithField("revision").With("graph_revision", f.Revision)
}

// SetTags changes the tags like those of executions (F61); whole replaces them all. Errors: invalid_tag_key, invalid_argument.
func (f *Flow) SetTags(fx *Effects, changes map[string]*string, whole bool) error {
	old := f.Tags
	if whole {
		old = nil
	}
	tags, _, err := changedTags(old, changes)
	if err != nil {
		return err
	}
	f.Tags, f.LastMutationAt = tags, fx.Now
	return nil
}

// Phase returns the phase of a flow that has not ended, by the statuses of its members: the first that matches (F6).
func Phase(has func(Status) bool) string {
	switch {
	case has(Running) || has(Granted):
		return "running"
	case has(Ready) || has(Delayed):
		return "waiting"
	case has(Suspended):
		return "suspended"
	case has(Blocked):
		return "blocked"
	default:
		return "idle"
	}
}
