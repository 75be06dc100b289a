package eventlog

import (
	"cmp"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Check refuses a malformed filter (invalid_filter).
func (f *Filter) Check() error {
	for _, kind := range f.Kinds {
		if err := core.CheckFilterText("kind", kind); err != nil {
			return err
		}
		if kind == "" || strings.HasPrefix(kind, ".") || strings.ContainsAny(kind, " \t\n") {
			return base.Errorf(base.CodeInvalidFilter, "%q is not an event kind", kind).WithField("kind")
		}
	}
	switch f.ActorType {
	case "", "client", "worker", "operator", "approver", "engine":
	default:
		return base.Errorf(base.CodeInvalidFilter, "%q is not an actor type", f.ActorType).WithField("actor")
	}
	return cmp.Or(
		core.CheckFilterText("lane", f.Lane), core.CheckFilterText("outcome", f.Outcome), core.CheckFilterText("worker_instance_id", f.InstanceID),
		core.CheckFilterTags(f.Tags),
	)
}

// subject returns the execution or flow that all events of the filter name; zero: there is none.
func (f *Filter) subject() base.UUID {
	switch {
	case f.ExecutionID != nil:
		return f.ExecutionID.UUID
	case f.FlowID != nil:
		return f.FlowID.UUID
	}
	return base.UUID{}
}

// Keeps reports whether all given parts hold for an event (E35).
func (f *Filter) Keeps(ev *core.Event) bool {
	return (f.InstanceID == "" || ev.InstanceID == f.InstanceID) && // first: every worker sees every event go by
		(f.ExecutionID == nil || f.ExecutionID.Names(ev.ExecutionID)) &&
		(f.FlowID == nil || f.FlowID.Names(ev.FlowID) || f.FlowID.Names(ev.RootFlowID)) &&
		(f.Lane == "" || ev.Class != nil && ev.Class.Lane == f.Lane) && f.keepsKind(ev.Kind) &&
		(f.ActorType == "" || ev.Actor.Type == f.ActorType) &&
		ev.At >= f.Since && f.keepsTags(ev.Tags) && f.keepsOutcome(ev)
}

func (f *Filter) keepsKind(kind string) bool {
	if len(f.Kinds) == 0 {
		return true
	}
	for _, want := range f.Kinds {
		if rest, ok := strings.CutPrefix(kind, strings.TrimSuffix(want, ".")); ok && (rest == "" || rest[0] == '.') {
			return true
		}
	}
	return false
}

func (f *Filter) keepsTags(tags base.Tags) bool {
	for key, value := range f.Tags {
		if got, ok := tags[key]; !ok || got != value {
			return false
		}
	}
	return true
}

func (f *Filter) keepsOutcome(ev *core.Event) bool {
	return f.Outcome == "" || ev.Kind == "execution.completed" && ev.Data.Text("outcome") == f.Outcome // no other kind has one
}
