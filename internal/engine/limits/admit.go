package limits

import (
	"context"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// What admission needs is locked after the executions, in one load: budgets, then rate keys, then slots and places, then lanes (S73). Testing,
// taking and freeing a key are thereby serialized on its own row (S47).

// RateRef names the record of the rate window of an admission key.
func RateRef(key string) store.DocRef { return store.DocRef{Kind: DocRate, Key: key} }

// Limits reports whether admission may refuse the execution.
func Limits(u *txn.Tx, x *core.Execution) bool { return len(x.Budgets) > 0 || Limited(u.Dict, x.Class) }

// WantRoom adds the rows that decide whether the execution is admitted. They are to be locked. Rows of quotas may be added once for each of many
// executions: a caller with many executions removes the duplicates in one step.
func WantRoom(u *txn.Tx, w *store.Want, x *core.Execution) {
	w.LockDocs = true
	WantBudgets(u, w, BudgetsOf(u.Dict, x))
	for _, use := range x.Policy.Quotas {
		if RulesOf(u.Dict).QuotaUnreadable(use.Quota) {
			txn.SetIn(&partOf(u).unreadable, use.RateKey(), true)
			txn.SetIn(&partOf(u).unreadable, use.SlotsKey(), true)
			continue
		}
		quota := RulesOf(u.Dict).Quotas[use.Quota]
		if quota == nil {
			continue
		}
		if quota.Settings.RateLimit > 0 && x.Next != core.NextResume {
			if _, loaded := u.Docs[RateRef(use.RateKey())]; !loaded {
				w.Docs = append(w.Docs, RateRef(use.RateKey()))
			}
		}
		if _, loaded := u.Counters[use.SlotsKey()]; !loaded && quota.Settings.ConcurrencyLimit > 0 {
			w.Counters = append(w.Counters, use.SlotsKey()) // otherwise they are only counted (S43)
		}
	}
}

// wantIndex finds a record among those of a want. A request may want tens of thousands, under locks that others wait for: they are not walked for
// each of them.
type wantIndex struct {
	of   *store.Want
	docs map[store.DocRef]bool // of the first n of its records
	n    int
	last store.DocRef // the n-th: it is another one if the want was begun anew
}

// fewDocs is how many records are rather walked.
const fewDocs = 32

func (x *wantIndex) has(w *store.Want, ref store.DocRef) bool {
	if len(w.Docs) < fewDocs {
		return slices.Contains(w.Docs, ref)
	}
	if x.of != w || x.n > len(w.Docs) || w.Docs[x.n-1] != x.last {
		*x = wantIndex{of: w, docs: make(map[store.DocRef]bool, 2*len(w.Docs))}
	}
	for ; x.n < len(w.Docs); x.n++ {
		x.last = w.Docs[x.n]
		x.docs[x.last] = true
	}
	return x.docs[ref]
}

// wantDoc adds a record that the transaction has not loaded.
func wantDoc(u *txn.Tx, w *store.Want, ref store.DocRef) {
	if _, loaded := u.Docs[ref]; !loaded && !partOf(u).index.has(w, ref) {
		w.Docs = append(w.Docs, ref)
	}
}

// loadReserved locks the budgets and rates that the grants and leases of the loaded executions are charged to: a due timer may end them, whatever
// the command is (L18).
func loadReserved(ctx context.Context, u *txn.Tx) error {
	want := store.Want{LockDocs: true}
	for _, ent := range u.Entries {
		r := ent.Exec.Reservation
		if (r != nil || len(ent.Exec.ChargedTo()) > 0) && leavesReserved(u, ent) {
			continue
		}
		WantBudgets(u, &want, ent.Exec.ChargedTo())
		if r == nil {
			continue
		}
		for _, taken := range r.Rates {
			wantDoc(u, &want, RateRef(taken.Key))
		}
	}
	if len(want.Docs) == 0 {
		return nil
	}
	if err := u.MeetsLater(&want); err != nil {
		return err
	}
	loaded, err := u.StoreTx.Load(ctx, want)
	if u.Engine.Failed(err) != nil {
		return err
	}
	u.Now = max(u.Now, loaded.Now) // whether an epoch has ended is judged by the clock read after the lock (BI9)
	u.Absorb(want, loaded)
	OpenBudgetSet(u)
	return nil
}

// Room returns what admission decides on, from the rows that were loaded.
func Room(u *txn.Tx) *core.Room {
	if u.Counters == nil {
		u.Counters = map[string]int64{}
	}
	openRates(u)
	return &core.Room{
		Quotas: func(id string) *core.Quota { return RulesOf(u.Dict).Quotas[id] },
		Slots:  u.Counters, Rates: partOf(u).rates, Budgets: OpenBudgetSet(u), Unreadable: partOf(u).unreadable,
	}
}

// openRates reads the windows among the records that were loaded.
func openRates(u *txn.Tx) {
	if partOf(u).rates == nil {
		partOf(u).rates = map[string]*core.RateWindow{}
	}
	if partOf(u).opened == len(u.Docs) {
		return
	}
	partOf(u).opened = len(u.Docs)
	for ref, doc := range u.Docs {
		if ref.Kind != DocRate || doc == nil || partOf(u).rates[ref.Key] != nil || partOf(u).unreadable[ref.Key] {
			continue
		}
		window, err := core.DecodeRateWindow(doc.Data)
		if err != nil {
			txn.SetIn(&partOf(u).unreadable, ref.Key, true)
			u.Engine.QuietLog.Error("the window of a rate cannot be read: nothing is admitted under it", "row", ref.Key, "error", err)
			continue
		}
		partOf(u).rates[ref.Key] = window
	}
}

// giveBack returns admissions of grants that ended unused (S40).
func giveBack(u *txn.Tx, admissions []core.RateAdmission) {
	if len(admissions) == 0 {
		return
	}
	openRates(u)
	for _, a := range admissions {
		if window := partOf(u).rates[a.Key]; window != nil && window.GiveBack(a.At) {
			u.RoomBack = txn.AppendNew(u.RoomBack, a.Key)
		}
	}
}

// writeRates writes the windows that changed. Entries that no longer count are left out, and an empty window is dropped.
func writeRates(u *txn.Tx) {
	part := txn.Known[limitPart](u, limitSlot)
	if part == nil {
		return
	}
	for key, window := range part.rates {
		if window.Changed() {
			writeRate(u, key, window)
		}
	}
}

// writeRate writes a window, or drops it, and arms a timer for the time when nothing of it counts any more.
func writeRate(u *txn.Tx, key string, window *core.RateWindow) {
	length := rateWindow(u, key)
	window.Trim(u.Now, length)
	if window.Empty() {
		u.DropDoc(RateRef(key))
		return
	}
	until := window.LastsUntil(length)
	doc := store.Doc{DocRef: RateRef(key), Body: []byte("{}"), Data: window.Encode()}
	if known := u.Doc(doc.DocRef); known != nil && known.ExpiresAt >= until {
		doc.ExpiresAt = known.ExpiresAt // the look at it is armed
	} else {
		doc.ExpiresAt = txn.RoundUp(until.Add(length), base.Second) // late, so that a key in use has few timers
		timer := u.TimerAt(TimerRates, doc.ExpiresAt)
		timer.Texts = append(timer.Texts, key)
	}
	u.PutOrAdd(doc)
}

// rateWindow returns how long admissions of a rate key count. Those of a quota that was removed do not count any more.
func rateWindow(u *txn.Tx, key string) base.Millis {
	id, _, _ := strings.Cut(strings.TrimPrefix(key, "rate:"), "/")
	if quota := RulesOf(u.Dict).Quotas[id]; quota != nil {
		return quota.Settings.WindowMS
	}
	if RulesOf(u.Dict).QuotaUnreadable(id) {
		return base.Day // the longest possible: nothing is dropped before it is repaired
	}
	return 0
}

// sweepRates wakes the claims that wait for room in a rate (S47), and drops windows in which nothing counts any more.
func (e *Admission) sweepRates(ctx context.Context, t store.Timer) error {
	e.Dispatcher.Room(t.Texts)
	e.Hints.Send(store.Hint{Keys: t.Texts})
	return e.OnDocs(ctx, DocRate, t.Texts, func(u *txn.Tx, doc *store.Doc) error {
		window, err := core.DecodeRateWindow(doc.Data)
		if err != nil { // claims report it; the other keys are still handled
			return nil
		}
		if doc.ExpiresAt <= u.Now {
			writeRate(u, doc.Key, window)
		}
		return nil
	})
}

// Admit tests the execution for admission and takes what it needs (S44); the rows of wantRoom must be loaded. A forced claim is
// not tested, and takes the slots even above their limit (S35). Errors: admission_refused.
func Admit(u *txn.Tx, x *core.Execution, fx *core.Effects, force bool) error {
	lane := u.Lane(x)
	if lane != nil && !force && (lane.Counting || !u.HasPlace(lane)) {
		Of(u).CountFull()
		return base.Errorf(base.CodeAdmissionRefused, "lane %q is at its cap of %d", lane.Name, lane.Settings.MaxConcurrent).
			With("key", txn.LaneCounter(lane.Name))
	}
	if Limits(u, x) {
		room, set := Room(u), BudgetsOf(u.Dict, x)
		switch why := x.Admission(room, set, fx.Now); {
		case force:
			x.TakeForced(fx, room, set)
		case why != nil:
			Of(u).CountRefusal(why)
			return why.Err()
		default:
			x.TakeRoom(fx, room, set)
		}
	}
	u.TakePlace(lane, x)
	return nil
}

// WantTaking adds the rows that decide whether the execution may be taken now. Its lane is locked, so that a pause is a barrier for targeted claims
// too (S4), and its places are counted.
func WantTaking(u *txn.Tx, w *store.Want, x *core.Execution) {
	if Limits(u, x) {
		WantRoom(u, w, x)
	}
	if lane := u.Lane(x); lane != nil {
		w.ShareLanes = append(w.ShareLanes, lane.ID)
		if lane.Settings.MaxConcurrent > 0 {
			w.Counters = append(w.Counters, txn.LaneCounter(lane.Name))
		}
	}
}
