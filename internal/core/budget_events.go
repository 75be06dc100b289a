package core

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/eventdata"
)

// envelope returns an event about the budget itself (E24).
func (b *Budget) envelope(fx *Effects, kind string, o *eventdata.Builder) Event {
	return Event{
		Kind: kind, At: fx.Now, Namespace: b.Namespace, AttemptIndex: -1, Actor: fx.Actor, RequestID: fx.RequestID, Data: o.Done(),
	}
}

// emitChange emits a change of the budget with the names of the changed fields (E29).
func (b *Budget) emitChange(fx *Effects, kind string, changed []string) {
	var o eventdata.Builder
	o.UUID(eventdata.FieldBudgetID, b.ID)
	o.Str(eventdata.FieldName, b.Name)
	if len(changed) > 0 {
		o.Strs(eventdata.FieldChanged, changed)
	}
	fx.Events = append(fx.Events, b.envelope(fx, kind, &o))
}

func (b *Budget) emitReset(fx *Effects, over *EpochRecord, cause string) {
	var o eventdata.Builder
	o.UUID(eventdata.FieldBudgetID, b.ID)
	o.Num(eventdata.FieldEpoch, b.Epoch)
	used := make(map[string]int64, len(over.Dimensions))
	for name, use := range over.Dimensions {
		used[name] = use.Used
	}
	o.Raw(eventdata.FieldUsed, amountsText(used))
	o.Moment(eventdata.FieldNextResetAt, b.NextResetAt)
	o.Str(eventdata.FieldCause, cause)
	event := b.envelope(fx, "budget.reset", &o)
	if cause == resetBySchedule {
		event.Actor, event.RequestID = EngineActor(), ""
	}
	fx.Events = append(fx.Events, event)
}

// amountsText encodes amounts, sorted by dimension.
func amountsText(amounts map[string]int64) json.RawMessage {
	o := base.NewObject(32 * len(amounts))
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		o.Num(name, amounts[name])
	}
	return o.Done()
}

// emitBreach emits a budget event caused by x; nil means that no execution caused it.
func (b *Budget) emitBreach(fx *Effects, x *Execution, kind string, o *eventdata.Builder) {
	if x == nil {
		fx.Events = append(fx.Events, b.envelope(fx, kind, o))
		return
	}
	x.emit(fx, kind, o)
}

func (b *Budget) emitSoftBreach(fx *Effects, x *Execution, dimension string) {
	d := b.Dimensions[dimension]
	var o eventdata.Builder
	o.UUID(eventdata.FieldBudgetID, b.ID)
	o.Str(eventdata.FieldDimension, dimension)
	o.Num(eventdata.FieldUsed, d.Used)
	o.Num(eventdata.FieldReserved, d.Reserved)
	o.Num(eventdata.FieldSoft, *d.Soft)
	b.emitBreach(fx, x, "budget.soft_breach", &o)
}

func (b *Budget) emitHardBreach(fx *Effects, x *Execution, breach *UsageBreach, action string) {
	var o eventdata.Builder
	o.UUID(eventdata.FieldBudgetID, b.ID)
	o.Str(eventdata.FieldDimension, breach.Dimension)
	o.Num(eventdata.FieldUsed, breach.Used)
	o.Num(eventdata.FieldReserved, breach.Reserved)
	o.Num(eventdata.FieldHard, breach.Hard)
	o.Num(eventdata.FieldAttempted, breach.Attempted)
	if breach.Overrun > 0 {
		o.Num(eventdata.FieldOverrun, breach.Overrun)
	}
	o.Str(eventdata.FieldAction, action)
	b.emitBreach(fx, x, "budget.hard_breach", &o)
}

// emitApprovalRequested emits that x waits for a person to raise the limit or refuse (B29).
func (x *Execution) emitApprovalRequested(fx *Effects, breach *UsageBreach, waitpoint base.UUID) {
	var o eventdata.Builder
	o.UUID(eventdata.FieldBudgetID, breach.Budget)
	o.Str(eventdata.FieldDimension, breach.Dimension)
	o.UUID(eventdata.FieldWaitpointID, waitpoint)
	o.Num(eventdata.FieldUsed, breach.Used)
	o.Num(eventdata.FieldHard, breach.Hard)
	o.Num(eventdata.FieldAttempted, breach.Attempted)
	x.emit(fx, "budget.approval_requested", &o)
}

// emitRaised emits a raise and, if known, when it ends (B30).
func (b *Budget) emitRaised(fx *Effects, x *Execution, dimension string, raise int64, by string) {
	var o eventdata.Builder
	o.UUID(eventdata.FieldBudgetID, b.ID)
	o.Str(eventdata.FieldDimension, dimension)
	o.Num(eventdata.FieldRaise, raise)
	o.Str(eventdata.FieldBy, by)
	o.Moment(eventdata.FieldUntil, b.NextResetAt)
	b.emitBreach(fx, x, "budget.raised", &o)
}
