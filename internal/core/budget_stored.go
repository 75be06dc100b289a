package core

import (
	"encoding/json"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Encode encodes the budget for the store.
func (b *Budget) Encode() []byte {
	text, _ := json.Marshal(b)
	return text
}

// DecodeBudget decodes what Encode wrote and refuses values that no rule can have written: corruption. No execution is admitted under an unreadable
// budget (B3).
func DecodeBudget(text []byte) (*Budget, error) {
	var b Budget
	if err := decodeWait("budget", text, &b); err != nil {
		return nil, err
	}
	for _, d := range b.Dimensions {
		if d == nil || !d.sound() {
			return nil, sound("budget", false)
		}
	}
	d := b.Definition()
	d.Reset = BudgetReset{} // checked below: loading the time zone each time would cost more than the rest of the decoding
	if err := d.Normalize(); err != nil {
		return nil, base.Errorf(base.CodeCorruption, "the stored budget %s cannot be one: %w", b.ID, err).With("record", "budget")
	}
	counted := b.Revision > 0 && b.Epoch > 0 && b.Breaches >= 0 && b.SoftBreaches >= 0 && b.EpochHard >= 0 && b.EpochSoft >= 0 && b.LiveHolds >= 0
	scheduled := b.Reset.sound() && (b.NextResetAt != 0) == (b.Reset.Type != "")
	levels := len(b.Ancestors) < maxBudgetLevels && (len(b.Ancestors) == 0) == b.Parent.IsZero()
	return &b, sound("budget", !b.ID.IsZero() && b.Namespace != "" && counted && scheduled && levels)
}

// sound reports whether normalize may have produced the schedule, ignoring the time zone.
func (r *BudgetReset) sound() bool {
	switch r.Type {
	case "":
		return *r == BudgetReset{}
	case ResetInterval:
		return r.EveryMS >= minResetEvery && r.EveryMS <= maxResetEvery
	default:
		return r.Type == ResetCalendar && knownUnit(r.Unit) && r.Timezone != ""
	}
}

// sound reports whether the amounts satisfy BI1.
func (d *BudgetDimension) sound() bool {
	if d.Used < 0 || d.Reserved < 0 || d.Overrun < 0 || d.Raised < 0 || d.Carried < 0 {
		return false
	}
	if d.Hard == nil && d.Raised+d.Carried > 0 {
		return false
	}
	return d.Used <= d.most() && d.Reserved <= d.most()-d.Used
}

// Encode encodes the history row for the store.
func (r *EpochRecord) Encode() []byte {
	text, _ := json.Marshal(r)
	return text
}

// DecodeEpochRecord decodes what Encode wrote; corruption.
func DecodeEpochRecord(text []byte) (r EpochRecord, err error) {
	if err := decodeWait("epoch of a budget", text, &r); err != nil {
		return EpochRecord{}, err
	}
	return r, sound("epoch of a budget", !r.Budget.IsZero() && r.Epoch > 0)
}
