package core

import (
	"encoding/json"
	"maps"
	"slices"
)

// envelope returns an event about the budget itself (E24).
func (b *Budget) envelope(fx *Effects, kind string, o *dataBuilder) Event {
	return Event{
		Kind: kind, At: fx.Now, Namespace: b.Namespace, AttemptIndex: -1, Actor: fx.Actor, RequestID: fx.RequestID, Data: o.done(),
	}
}

// emitChange emits a change of the budget with the names of the changed fields (E29).
func (b *Budget) emitChange(fx *Effects, kind string, changed []string) {
	var o dataBuilder
	o.uuid(fieldBudgetID, b.ID)
	o.str(fieldName, b.Name)
	if len(changed) > 0 {
		o.strs(fieldChanged, changed)
	}
	fx.Events = append(fx.Events, b.envelope(fx, kind, &o))
}

func (b *Budget) emitReset(fx *Effects, over *EpochRecord, cause string) {
	var o dataBuilder
	o.uuid(fieldBudgetID, b.ID)
	o.num(fieldEpoch, b.Epoch)
	used := make(map[string]int64, len(over.Dimensions))
	for name, use := range over.Dimensions {
		used[name] = use.Used
	}
	o.raw(fieldUsed, amountsText(used))
	o.moment(fieldNextResetAt, b.NextResetAt)
	o.str(fieldCause, cause)
	event := b.envelope(fx, "budget.reset", &o)
	if cause == resetBySchedule {
		event.Actor, event.RequestID = EngineActor(), ""
	}
	fx.Events = append(fx.Events, event)
}

// amountsText encodes amounts, sorted by dimension.
func amountsText(amounts map[string]int64) json.RawMessage {
	o := newObject(32 * len(amounts))
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		o.num(name, amounts[name])
	}
	return o.done()
}

// emitBreach emits a budget event caused by x; nil means that no execution caused it.
func (b *Budget) emitBreach(fx *Effects, x *Execution, kind string, o *dataBuilder) {
	if x == nil {
		fx.Events = append(fx.Events, b.envelope(fx, kind, o))
		return
	}
	x.emit(fx, kind, o)
}

func (b *Budget) emitSoftBreach(fx *Effects, x *Execution, dimension string) {
	d := b.Dimensions[dimension]
	var o dataBuilder
	o.uuid(fieldBudgetID, b.ID)
	o.str(fieldDimension, dimension)
	o.num(fieldUsed, d.Used)
	o.num(fieldReserved, d.Reserved)
	o.num(fieldSoft, *d.Soft)
	b.emitBreach(fx, x, "budget.soft_breach", &o)
}

func (b *Budget) emitHardBreach(fx *Effects, x *Execution, breach *UsageBreach, action string) {
	var o dataBuilder
	o.uuid(fieldBudgetID, b.ID)
	o.str(fieldDimension, breach.Dimension)
	o.num(fieldUsed, breach.Used)
	o.num(fieldReserved, breach.Reserved)
	o.num(fieldHard, breach.Hard)
	o.num(fieldAttempted, breach.Attempted)
	if breach.Overrun > 0 {
		o.num(fieldOverrun, breach.Overrun)
	}
	o.str(fieldAction, action)
	b.emitBreach(fx, x, "budget.hard_breach", &o)
}

// emitApprovalRequested emits that x waits for a person to raise the limit or refuse (B29).
func (x *Execution) emitApprovalRequested(fx *Effects, breach *UsageBreach, waitpoint UUID) {
	var o dataBuilder
	o.uuid(fieldBudgetID, breach.Budget)
	o.str(fieldDimension, breach.Dimension)
	o.uuid(fieldWaitpointID, waitpoint)
	o.num(fieldUsed, breach.Used)
	o.num(fieldHard, breach.Hard)
	o.num(fieldAttempted, breach.Attempted)
	x.emit(fx, "budget.approval_requested", &o)
}

// emitRaised emits a raise and, if known, when it ends (B30).
func (b *Budget) emitRaised(fx *Effects, x *Execution, dimension string, raise int64, by string) {
	var o dataBuilder
	o.uuid(fieldBudgetID, b.ID)
	o.str(fieldDimension, dimension)
	o.num(fieldRaise, raise)
	o.str(fieldBy, by)
	o.moment(fieldUntil, b.NextResetAt)
	b.emitBreach(fx, x, "budget.raised", &o)
}
