package core

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// laneBlockers returns a closed lane and a reached cap.
func (in *ExplainInput) laneBlockers() (list []Blocker) {
	lane := in.Lane
	if lane == nil {
		return nil
	}
	if state := lane.Settings.State; !state.Claimable() {
		o := base.NewObject(80)
		o.Str("lane", lane.Name)
		o.Str("state", state.String())
		text := fmt.Sprintf("Lane %q is %s", lane.Name, state)
		if lane.Since != 0 {
			text += " since " + lane.Since.String()
		}
		list = append(list, Blocker{Code: BlockerLaneState, Message: text + ": nothing is taken from it.", Since: lane.Since, Data: o.Done()})
	}
	limit := int64(lane.Settings.MaxConcurrent)
	if limit == 0 || !lane.Counting && in.LaneInUse < limit {
		return list
	}
	o := base.NewObject(80)
	o.Str("lane", lane.Name)
	o.Num("in_use", in.LaneInUse)
	o.Num("limit", limit)
	o.FlagIf("counting", lane.Counting)
	text := fmt.Sprintf("Lane %q is at its cap: %d of %d are granted or running.", lane.Name, in.LaneInUse, limit)
	if lane.Counting {
		text = fmt.Sprintf("Lane %q was given a cap: what runs in it is being counted.", lane.Name)
	}
	return append(list, Blocker{Code: BlockerLaneCap, Message: text, Data: o.Done()})
}

// roomBlockers returns the budgets, rates and slots without room for x, as determined by admission (S44).
func (in *ExplainInput) roomBlockers() (list []Blocker) {
	mark := in.Room.Budgets.Mark()
	defer in.Room.Budgets.Back(mark)
	x, r := in.withoutGrant()
	for _, id := range in.Set {
		if why := x.admitBudgets(r, []base.UUID{id}, in.Now); why != nil {
			list = append(list, in.budgetBlocker(r, id, why))
		}
	}
	if x.Next != NextResume {
		for _, use := range x.quotaUses() {
			if why := r.admitRate(use, in.Now); why != nil {
				list = append(list, in.rateBlocker(r, use, why))
			}
		}
	}
	for _, use := range x.quotaUses() {
		if slices.Contains(x.Holds, use.SlotsKey()) {
			continue
		}
		if why := r.admitSlot(use, in.Now); why != nil {
			list = append(list, in.slotBlocker(r, use, why))
		}
	}
	for i := range list {
		if list[i].Key == in.Execution.BlockedOn {
			list[i].Since = in.Execution.StatusSince
		}
	}
	return list
}

func (in *ExplainInput) budgetBlocker(r *Room, id base.UUID, why *Refusal) Blocker {
	o := base.NewObject(300)
	o.Str("key", why.Key)
	o.UUID("budget_id", id)
	b := Blocker{Code: BlockerBudget, Key: why.Key, Until: why.NextFree}
	budget := r.Budgets.Get(id)
	if why.Retry != 0 || budget == nil {
		b.Message = in.unreadableMessage(o, why)
		b.Data = o.Done()
		return b
	}
	budget = budget.at(in.Now)
	o.Str("name", budget.Name)
	var short shortage
	_ = json.Unmarshal(why.Detail, &short) // written by the budget itself
	if d := budget.Dimensions[short.Dimension]; d == nil {
		o.Str("state", BudgetClosed)
		b.Message = fmt.Sprintf("Budget %q is closed: it admits no work.", budget.Name)
	} else {
		o.Str("dimension", short.Dimension)
		o.Num("need", short.Need)
		o.Num("available", short.Available)
		o.Num("used", d.Used)
		o.Num("reserved", d.Reserved)
		o.Num("limit", d.most())
		b.Message = fmt.Sprintf("Budget %q has %d %s left and it needs %d: of %d, %d are used and %d reserved",
			budget.Name, short.Available, short.Dimension, short.Need, d.most(), d.Used, d.Reserved)
		if b.Until != 0 {
			b.Message += fmt.Sprintf("; it resets at %s", b.Until)
		}
		b.Message += "."
	}
	o.Moment("next_reset_at", budget.NextResetAt)
	o.Moment("resets_at", b.Until) // the same time, if a reset makes room
	o.Strs("holders", ids(in.Holders[why.Key]))
	b.Data = o.Done()
	return b
}

func (in *ExplainInput) rateBlocker(r *Room, use QuotaUse, why *Refusal) Blocker {
	o := base.NewObject(200)
	writeUse(o, why.Key, use)
	b := Blocker{Code: BlockerRate, Key: why.Key, Until: why.NextFree}
	if why.Retry != 0 {
		b.Message = in.unreadableMessage(o, why)
		b.Data = o.Done()
		return b
	}
	s := r.Quotas(use.Quota).Settings
	admitted := r.Rates[why.Key].Count(in.Now, s.WindowMS)
	o.Num("admissions", int64(admitted))
	o.Num("limit", int64(s.RateLimit))
	o.Num("window_ms", s.WindowMS)
	o.Moment("next_free", why.NextFree)
	b.Data = o.Done()
	b.Message = fmt.Sprintf("Quota %s lets %d start in %s, and %d did: it has room again at %s.",
		useText(use), s.RateLimit, shortSpan(s.WindowMS), admitted, why.NextFree)
	return b
}

func (in *ExplainInput) slotBlocker(r *Room, use QuotaUse, why *Refusal) Blocker {
	o := base.NewObject(200)
	writeUse(o, why.Key, use)
	b := Blocker{Code: BlockerConcurrency, Key: why.Key}
	if why.Retry != 0 {
		b.Message = in.unreadableMessage(o, why)
		b.Data = o.Done()
		return b
	}
	limit := r.Quotas(use.Quota).Settings.ConcurrencyLimit
	used := r.Slots[why.Key]
	o.Num("in_use", used)
	o.Num("limit", int64(limit))
	o.Strs("holders", ids(in.Holders[why.Key]))
	b.Data = o.Done()
	b.Message = fmt.Sprintf("All slots of quota %s are taken: %d in use, %d allowed.", useText(use), used, limit)
	return b
}

// unreadableMessage states that a record cannot be read and when it is tried again (S45).
func (in *ExplainInput) unreadableMessage(o *base.JSONObject, why *Refusal) string {
	o.Flag("unreadable", true)
	text := fmt.Sprintf("The record of %s cannot be read", why.Key)
	if in.Execution.BlockedOn == why.Key && in.Execution.RetryAt != 0 {
		o.Moment("retry_at", in.Execution.RetryAt)
		text += fmt.Sprintf("; it is tried again at %s", in.Execution.RetryAt)
	}
	return text + "."
}

func writeUse(o *base.JSONObject, key string, use QuotaUse) {
	o.Str("key", key)
	o.Str("quota", use.Quota)
	o.StrIf("quota_key", use.Key)
}

func useText(use QuotaUse) string {
	if use.Key == "" {
		return fmt.Sprintf("%q", use.Quota)
	}
	return fmt.Sprintf("%q for %q", use.Quota, use.Key)
}

// shortSpan formats a span of time without its zero parts.
func shortSpan(ms base.Millis) string {
	text := (time.Duration(ms) * time.Millisecond).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// shortage is the detail of a budget's refusal: the dimension with too little room (B11).
type shortage struct {
	Dimension string `json:"dimension"`
	Need      int64  `json:"need"`
	Available int64  `json:"available"`
}
