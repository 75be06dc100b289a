package core

// emit appends an event about the flow itself (E24).
func (f *Flow) emit(fx *Effects, kind string, o *dataBuilder) {
	fx.Events = append(fx.Events, Event{
		Kind: kind, At: fx.Now, Namespace: f.Namespace, FlowID: f.ID, RootFlowID: f.Root, AttemptIndex: -1,
		Tags: f.Tags, Actor: fx.Actor, RequestID: fx.RequestID, Data: o.done(),
	})
}

func (f *Flow) emitGraph(fx *Effects, kind string, nodes, edges int) {
	var o dataBuilder
	o.str(fieldKind, f.Kind)
	o.num(fieldGraphRevision, f.Revision)
	o.num(fieldNodesAdded, int64(nodes))
	o.num(fieldEdgesAdded, int64(edges))
	f.emit(fx, kind, &o)
}

func (f *Flow) emitCancelRequested(fx *Effects) {
	var o dataBuilder
	o.str(fieldPolicy, string(f.Cancel.Policy))
	o.strIf(fieldReason, f.Cancel.Reason)
	o.num(fieldMembers, int64(f.Open))
	f.emit(fx, "flow.cancel_requested", &o)
}

func (f *Flow) emitEnded(fx *Effects, failures []string) {
	var o dataBuilder
	o.open(fieldCounts)
	o.num(fieldCompleted, int64(f.Ends.Completed))
	o.num(fieldFailed, int64(f.Ends.Failed))
	o.num(fieldCancelled, int64(f.Ends.Cancelled))
	o.num(fieldExpired, int64(f.Ends.Expired))
	o.num(fieldSkipped, int64(f.Ends.Skipped))
	o.shut()
	o.strs(fieldFailures, failures)
	f.emit(fx, "flow."+string(f.State), &o)
}

// EmitDeleted emits that the flow was deleted on request, with all its members. Retention removes without an event.
func (f *Flow) EmitDeleted(fx *Effects, reason string) {
	var o dataBuilder
	o.num(fieldMembers, int64(f.Nodes))
	o.strIf(fieldReason, reason)
	f.emit(fx, "flow.deleted", &o)
}

func (f *Flow) emitReopened(fx *Effects, member, cascade string) {
	var o dataBuilder
	o.str(fieldMember, member)
	o.str(fieldCascade, cascade)
	f.emit(fx, "flow.reopened", &o)
}
