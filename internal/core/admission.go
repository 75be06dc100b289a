package core

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// retryUnreadable is the delay before an unreadable record is tried again (S45).
const retryUnreadable = base.Minute

// Room holds the loaded and locked rows that admission checks and takes from in one transaction (S44). Claims, grants, targeted claims and explain
// all decide with it.
type Room struct {
	Quotas     func(id string) *Quota // nil: the quota no longer exists and limits nothing (S38)
	Slots      map[string]int64       // in use, by SlotsKey
	Rates      map[string]*RateWindow // by RateKey; absent: nothing was admitted yet
	Books      *Books                 // the budgets
	Unreadable map[string]bool        // keys whose records cannot be read (S45)
}

// Refusal states why an execution is not admitted: the first key without room for it (S44).
type Refusal struct {
	Reason   Reason // WaitingForBudget or WaitingForQuota
	Key      string // budget:<id>, rate:<id>[/<key>], slots:<id>[/<key>]
	Detail   json.RawMessage
	NextFree base.Time // of a rate: the first moment with room (S40); of a budget: its next reset, if that makes enough room
	Retry    base.Time // unreadable: when to try again (S45)
}

// Err returns the refusal as the error of a targeted claim (L75): admission_refused with the key.
func (r *Refusal) Err() error {
	err := base.Errorf(base.CodeAdmissionRefused, "there is no room under %s", r.Key).
		With("reason", r.Reason.String()).With("blocked_on", r.Key).With("key", r.Key)
	if len(r.Detail) > 0 {
		err = err.With("blocking_detail", r.Detail)
	}
	return err
}

// Admission returns nil if x may be taken now, else the refusal. set lists the budgets that apply to x, in the order of B8. Nothing is changed. It
// depends on `next` and on the slots that x already holds, so it must be called before the acquisition.
func (x *Execution) Admission(r *Room, set []base.UUID, now base.Time) *Refusal {
	if why := x.admitBudgets(r, set, now); why != nil {
		return why
	}
	if x.Next != NextResume {
		for _, use := range x.quotaUses() {
			if why := r.admitRate(use, now); why != nil {
				return why
			}
		}
	}
	for _, use := range x.quotaUses() {
		if slices.Contains(x.Holds, use.SlotsKey()) {
			continue
		}
		if why := r.admitSlot(use, now); why != nil {
			return why
		}
	}
	return nil
}

// TakeRoom takes everything that an admitted execution needs: reservations under the epoch that its lease has or will have, one admission of each
// rate unless it resumes, and one slot of each quota (S44 step 4). Like Admission it must be called before the acquisition.
func (x *Execution) TakeRoom(fx *Effects, r *Room, set []base.UUID) {
	if len(set) > 0 {
		r.Books.Reserve(fx, x, set, x.Policy.Estimate)
	}
	if x.Next != NextResume {
		x.takeRates(r, fx.Now)
	}
	x.TakeSlots(r)
}

// TakeForced takes what a forced claim, which skips admission, takes: the slots, even above their limit (S35). The lease is charged to the budgets
// that apply, as every lease is (B6, B7), but nothing is reserved from them.
func (x *Execution) TakeForced(fx *Effects, r *Room, set []base.UUID) {
	if len(set) > 0 {
		r.Books.hold(fx, x, set, func(*Budget) map[string]int64 { return nil })
	}
	x.TakeSlots(r)
}

// Refuse blocks x on the key that refused it (S44, B11). If x is already blocked on that key, nothing changes. It reports whether the record
// changed. Going from one blocking key to another is not a change of status and emits no event (S48, E28).
func (x *Execution) Refuse(fx *Effects, why *Refusal) (changed bool) {
	was := x.Status
	if x.blockedByAdmission() && x.BlockedOn == why.Key && (x.RetryAt != 0 || why.Retry == 0) {
		return false
	}
	x.BlockedOn, x.BlockingDetail, x.RetryAt = why.Key, why.Detail, why.Retry
	x.become(fx.Now, Blocked, why.Reason)
	if was != Blocked {
		x.emitBlocked(fx)
	}
	return true
}

// quotaUses returns the quotas that the policy attaches, each once, in policy order.
func (x *Execution) quotaUses() []QuotaUse {
	uses := x.Policy.Quotas
	for i, use := range uses {
		if slices.Contains(uses[:i], use) {
			return withoutRepeats(uses)
		}
	}
	return uses
}

func withoutRepeats(uses []QuotaUse) (once []QuotaUse) {
	for _, use := range uses {
		if !slices.Contains(once, use) {
			once = append(once, use)
		}
	}
	return once
}

// admitBudgets checks the budgets in order. An unreadable budget refuses, but only after those before it have been checked.
func (x *Execution) admitBudgets(r *Room, set []base.UUID, now base.Time) *Refusal {
	readable := slices.IndexFunc(set, func(id base.UUID) bool { return r.Unreadable[BudgetKey(id)] })
	if readable < 0 {
		readable = len(set)
	}
	if readable > 0 {
		if why := r.Books.Admits(x, set[:readable], x.Policy.Estimate, now); why != nil {
			return why
		}
	}
	if readable == len(set) {
		return nil
	}
	return unreadable(WaitingForBudget, BudgetKey(set[readable]), now)
}

func (r *Room) admitRate(use QuotaUse, now base.Time) *Refusal {
	key := use.RateKey()
	if r.Unreadable[key] {
		return unreadable(WaitingForQuota, key, now)
	}
	quota := r.Quotas(use.Quota)
	if quota == nil || quota.Settings.RateLimit == 0 {
		return nil
	}
	window, s := r.Rates[key], quota.Settings
	if window == nil || window.Count(now, s.WindowMS) < s.RateLimit {
		return nil
	}
	next := window.NextFree(now, s.WindowMS, s.RateLimit)
	o := base.NewObject(80)
	o.Num("limit", int64(s.RateLimit))
	o.Num("window_ms", s.WindowMS)
	o.Moment("next_free", next)
	return &Refusal{Reason: WaitingForQuota, Key: key, Detail: o.Done(), NextFree: next}
}

func (r *Room) admitSlot(use QuotaUse, now base.Time) *Refusal {
	key := use.SlotsKey()
	if r.Unreadable[key] {
		return unreadable(WaitingForQuota, key, now)
	}
	limit, limited := r.slotLimit(use)
	if !limited || r.Slots[key] < limit {
		return nil
	}
	o := base.NewObject(80)
	o.Num("limit", limit)
	o.Num("in_use", r.Slots[key])
	return &Refusal{Reason: WaitingForQuota, Key: key, Detail: o.Done()}
}

// slotLimit returns how many executions may hold a slot of the quota at a time; false means any number.
func (r *Room) slotLimit(use QuotaUse) (limit int64, limited bool) {
	quota := r.Quotas(use.Quota)
	if quota == nil || quota.Settings.ConcurrencyLimit == 0 {
		return 0, false
	}
	return int64(quota.Settings.ConcurrencyLimit), true
}

// SlotBounds returns, for each slot key of x that has a limit, the largest count that may be in use once x has its slots. It serves callers that
// decide on counts that are not locked: the admission is valid if the counts that are written stay within these bounds.
func (x *Execution) SlotBounds(r *Room) map[string]int64 {
	bounds := map[string]int64{}
	for _, use := range x.quotaUses() {
		if limit, limited := r.slotLimit(use); limited {
			bounds[use.SlotsKey()] = limit
		}
	}
	return bounds
}

func unreadable(reason Reason, key string, now base.Time) *Refusal {
	return &Refusal{Reason: reason, Key: key, Detail: json.RawMessage(`"unreadable"`), Retry: now.Add(retryUnreadable)}
}

// takeRates counts one admission of each rate that limits, in the room and, until the acquisition, in the record.
func (x *Execution) takeRates(r *Room, now base.Time) {
	var taken []RateAdmission
	for _, use := range x.quotaUses() {
		quota := r.Quotas(use.Quota)
		if quota == nil || quota.Settings.RateLimit == 0 {
			continue
		}
		key := use.RateKey()
		if r.Rates[key] == nil {
			r.Rates[key] = &RateWindow{}
		}
		r.Rates[key].Take(now)
		taken = append(taken, RateAdmission{Key: key, At: now})
	}
	if taken == nil {
		return
	}
	reservation := Reservation{Rates: taken}
	if x.Reservation != nil {
		reservation.Holds = x.Reservation.Holds
	}
	x.Reservation = &reservation
}

// TakeSlots takes a slot of each existing quota whose slot x does not already hold. It does so even where the limit is off, so that turning the
// limit on later finds every holder counted (S43).
func (x *Execution) TakeSlots(r *Room) {
	var taken []string
	for _, use := range x.quotaUses() {
		key := use.SlotsKey()
		if r.Quotas(use.Quota) == nil || slices.Contains(x.Holds, key) {
			continue
		}
		r.Slots[key]++
		taken = append(taken, key)
	}
	if len(taken) > 0 {
		x.Holds = slices.SortedFunc(slices.Values(append(slices.Clone(x.Holds), taken...)), strings.Compare)
	}
}

// keepRates makes the admissions of the rates final: a lease never gives them back (S40).
func (x *Execution) keepRates() {
	if x.Reservation == nil || x.Reservation.Rates == nil {
		return
	}
	if len(x.Reservation.Holds) == 0 {
		x.Reservation = nil
		return
	}
	x.Reservation = &Reservation{Holds: x.Reservation.Holds}
}

// giveRatesBack returns the rate admissions of a grant that ends unused (S40, S32).
func (x *Execution) giveRatesBack(fx *Effects) {
	if x.Reservation != nil {
		fx.RatesBack = append(fx.RatesBack, x.Reservation.Rates...)
		x.keepRates()
	}
}

// clearBlock removes what x was blocked on.
func (x *Execution) clearBlock() {
	x.BlockedOn, x.BlockingDetail, x.RetryAt = "", nil, 0
}

// retryDue returns when an execution that is blocked on an unreadable record is tried again (S45).
func (x *Execution) retryDue() base.Time {
	if !x.blockedByAdmission() {
		return 0
	}
	return x.RetryAt
}

// retryAdmission sends x through the gate, so that the next claim tests its admission again (L73).
func (x *Execution) retryAdmission(fx *Effects) { x.pass(fx, "") }

// Reservation is what admission has taken for the present grant or lease, apart from the slots in Holds. It ends with the grant or lease (B14).
type Reservation struct {
	Holds []BudgetHold    `json:"holds,omitempty"` // in the order of B8: the set is fixed for the lease (B7)
	Rates []RateAdmission `json:"rates,omitempty"` // while granted: returned if the grant is not used (S40)
}

// BudgetHold is the amount that one budget has reserved for the lease (B10).
type BudgetHold struct {
	Budget base.UUID `json:"budget"`
	// Remaining is what is left of the reserved amount, by dimension; dimensions without any are absent.
	Remaining map[string]int64 `json:"remaining,omitempty"`
}

// RateAdmission is one admission of a rate key.
type RateAdmission struct {
	Key string    `json:"key"`
	At  base.Time `json:"at"`
}
