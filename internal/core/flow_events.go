package core

import "github.com/flowfabric/flowfabric/internal/core/eventdata"

// emit appends an event about the flow itself (E24).
func (f *Flow) emit(fx *Effects, kind string, o *eventdata.Builder) {
	fx.Events = append(fx.Events, Event{
		Kind: kind, At: fx.Now, Namespace: f.Namespace, FlowID: f.ID, RootFlowID: f.Root, AttemptIndex: -1,
		Tags: f.Tags, Actor: fx.Actor, RequestID: fx.RequestID, Data: o.Done(),
	})
}

func (f *Flow) emitGraph(fx *Effects, kind string, nodes, edges int) {
	var o eventdata.Builder
	o.Str(eventdata.FieldKind, f.Kind)
	o.Num(eventdata.FieldGraphRevision, f.Revision)
	o.Num(eventdata.FieldNodesAdded, int64(nodes))
	o.Num(eventdata.FieldEdgesAdded, int64(edges))
	f.emit(fx, kind, &o)
}

func (f *Flow) emitCancelRequested(fx *Effects) {
	var o eventdata.Builder
	o.Str(eventdata.FieldPolicy, string(f.Cancel.Policy))
	o.StrIf(eventdata.FieldReason, f.Cancel.Reason)
	o.Num(eventdata.FieldMembers, int64(f.Open))
	f.emit(fx, "flow.cancel_requested", &o)
}

func (f *Flow) emitEnded(fx *Effects, failures []string) {
	var o eventdata.Builder
	o.Open(eventdata.FieldCounts)
	o.Num(eventdata.FieldCompleted, int64(f.Ends.Completed))
	o.Num(eventdata.FieldFailed, int64(f.Ends.Failed))
	o.Num(eventdata.FieldCancelled, int64(f.Ends.Cancelled))
	o.Num(eventdata.FieldExpired, int64(f.Ends.Expired))
	o.Num(eventdata.FieldSkipped, int64(f.Ends.Skipped))
	o.Shut()
	o.Strs(eventdata.FieldFailures, failures)
	f.emit(fx, "flow."+string(f.State), &o)
}

// EmitDeleted emits that the flow was deleted on request, with all its members. Retention removes without an event.
func (f *Flow) EmitDeleted(fx *Effects, reason string) {
	var o eventdata.Builder
	o.Num(eventdata.FieldMembers, int64(f.Nodes))
	o.StrIf(eventdata.FieldReason, reason)
	f.emit(fx, "flow.deleted", &o)
}

func (f *Flow) emitReopened(fx *Effects, member, cascade string) {
	var o eventdata.Builder
	o.Str(eventdata.FieldMember, member)
	o.Str(eventdata.FieldCascade, cascade)
	f.emit(fx, "flow.reopened", &o)
}
