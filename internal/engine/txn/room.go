package txn

import (
	"context"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// What admission needs is locked after the executions, in one load: budgets, then rate keys, then slots and places, then lanes (S73). Testing,
// taking and freeing a key are thereby serialized on its own row (S47).

// RateRef names the record of the rate window of an admission key.
func RateRef(key string) store.DocRef { return store.DocRef{Kind: DocRate, Key: key} }

// limits reports whether admission may refuse the execution.
func (u *Tx) limits(x *core.Execution) bool { return len(x.Budgets) > 0 || u.dict.limited(x.Class) }

// wantRoom adds the rows that decide whether the execution is admitted. They are to be locked. Rows of quotas may be added once for each of many
// executions: a caller with many executions removes the duplicates in one step.
func (u *Tx) wantRoom(w *store.Want, x *core.Execution) {
	w.LockDocs = true
	u.wantBudgets(w, u.budgetsOf(x))
	for _, use := range x.Policy.Quotas {
		if u.dict.QuotaUnreadable(use.Quota) {
			SetIn(&u.unreadable, use.RateKey(), true)
			SetIn(&u.unreadable, use.SlotsKey(), true)
			continue
		}
		quota := u.dict.Quotas[use.Quota]
		if quota == nil {
			continue
		}
		if quota.Settings.RateLimit > 0 && x.Next != core.NextResume {
			if _, loaded := u.docs[RateRef(use.RateKey())]; !loaded {
				w.Docs = append(w.Docs, RateRef(use.RateKey()))
			}
		}
		if _, loaded := u.counters[use.SlotsKey()]; !loaded && quota.Settings.ConcurrencyLimit > 0 {
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

// wantDoc adds a record that the unit has not loaded.
func (u *Tx) wantDoc(w *store.Want, ref store.DocRef) {
	if _, loaded := u.docs[ref]; !loaded && !u.wanted.has(w, ref) {
		w.Docs = append(w.Docs, ref)
	}
}

// loadReserved locks the budgets and rates that the grants and leases of the loaded executions are charged to: a due timer may end them, whatever
// the command is (L18).
func (u *Tx) loadReserved(ctx context.Context) error {
	want := store.Want{LockDocs: true}
	for _, ent := range u.Entries {
		r := ent.Exec.Reservation
		if (r != nil || len(ent.Exec.ChargedTo()) > 0) && u.leavesReserved(ent) {
			continue
		}
		u.wantBudgets(&want, ent.Exec.ChargedTo())
		if r == nil {
			continue
		}
		for _, taken := range r.Rates {
			u.wantDoc(&want, RateRef(taken.Key))
		}
	}
	if len(want.Docs) == 0 {
		return nil
	}
	if err := u.meetsLater(&want); err != nil {
		return err
	}
	loaded, err := u.tx.Load(ctx, want)
	if u.Engine.failed(err) != nil {
		return err
	}
	u.Now = max(u.Now, loaded.Now) // whether an epoch has ended is judged by the clock read after the lock (BI9)
	u.absorb(want, loaded)
	u.openBooks()
	return nil
}

// room returns what admission decides on, from the rows that were loaded.
func (u *Tx) room() *core.Room {
	if u.counters == nil {
		u.counters = map[string]int64{}
	}
	u.openRates()
	return &core.Room{
		Quotas: func(id string) *core.Quota { return u.dict.Quotas[id] },
		Slots:  u.counters, Rates: u.rates, Books: u.openBooks(), Unreadable: u.unreadable,
	}
}

// openRates reads the windows among the records that were loaded.
func (u *Tx) openRates() {
	if u.rates == nil {
		u.rates = map[string]*core.RateWindow{}
	}
	if u.opened == len(u.docs) {
		return
	}
	u.opened = len(u.docs)
	for ref, doc := range u.docs {
		if ref.Kind != DocRate || doc == nil || u.rates[ref.Key] != nil || u.unreadable[ref.Key] {
			continue
		}
		window, err := core.DecodeRateWindow(doc.Data)
		if err != nil {
			SetIn(&u.unreadable, ref.Key, true)
			u.Engine.notes.Error("the window of a rate cannot be read: nothing is admitted under it", "row", ref.Key, "error", err)
			continue
		}
		u.rates[ref.Key] = window
	}
}

// giveBack returns admissions of grants that ended unused (S40).
func (u *Tx) giveBack(admissions []core.RateAdmission) {
	if len(admissions) == 0 {
		return
	}
	u.openRates()
	for _, a := range admissions {
		if window := u.rates[a.Key]; window != nil && window.GiveBack(a.At) {
			u.roomBack = appendNew(u.roomBack, a.Key)
		}
	}
}

// writeRates writes the windows that changed. Entries that no longer count are left out, and an empty window is dropped.
func (u *Tx) writeRates() {
	for key, window := range u.rates {
		if window.Changed() {
			u.writeRate(key, window)
		}
	}
}

// writeRate writes a window, or drops it, and arms a timer for the time when nothing of it counts any more.
func (u *Tx) writeRate(key string, window *core.RateWindow) {
	length := u.rateWindow(key)
	window.Trim(u.Now, length)
	if window.Empty() {
		u.dropDoc(RateRef(key))
		return
	}
	until := window.LastsUntil(length)
	doc := store.Doc{DocRef: RateRef(key), Body: []byte("{}"), Data: window.Encode()}
	if known := u.Doc(doc.DocRef); known != nil && known.ExpiresAt >= until {
		doc.ExpiresAt = known.ExpiresAt // the look at it is armed
	} else {
		doc.ExpiresAt = RoundUp(until.Add(length), base.Second) // late, so that a key in use has few timers
		timer := u.TimerAt(timerRates, doc.ExpiresAt)
		timer.Texts = append(timer.Texts, key)
	}
	u.putOrAdd(doc)
}

// rateWindow returns how long admissions of a rate key count. Those of a quota that was removed do not count any more.
func (u *Tx) rateWindow(key string) base.Millis {
	id, _, _ := strings.Cut(strings.TrimPrefix(key, "rate:"), "/")
	if quota := u.dict.Quotas[id]; quota != nil {
		return quota.Settings.WindowMS
	}
	if u.dict.QuotaUnreadable(id) {
		return base.Day // the longest possible: nothing is dropped before it is repaired
	}
	return 0
}

// sweepRates wakes the claims that wait for room in a rate (S47), and drops windows in which nothing counts any more.
func (e *Engine) sweepRates(ctx context.Context, t store.Timer) error {
	e.picker.roomIn(t.Texts)
	e.hints.send(store.Hint{Keys: t.Texts})
	return e.onDocs(ctx, DocRate, t.Texts, func(u *Tx, doc *store.Doc) error {
		window, err := core.DecodeRateWindow(doc.Data)
		if err != nil { // claims report it; the other keys are still handled
			return nil
		}
		if doc.ExpiresAt <= u.Now {
			u.writeRate(doc.Key, window)
		}
		return nil
	})
}

// admit tests the execution for admission and takes what it needs (S44); the rows of wantRoom must be loaded. A forced claim is
// not tested, and takes the slots even above their limit (S35). Errors: admission_refused.
func (u *Tx) admit(x *core.Execution, fx *core.Effects, force bool) error {
	lane := u.Lane(x)
	if lane != nil && !force && (lane.Counting || !u.hasPlace(lane)) {
		u.Engine.Meter.full()
		return base.Errorf(base.CodeAdmissionRefused, "lane %q is at its cap of %d", lane.Name, lane.Settings.MaxConcurrent).
			With("key", LaneCounter(lane.Name))
	}
	if u.limits(x) {
		room, set := u.room(), u.budgetsOf(x)
		switch why := x.Admission(room, set, fx.Now); {
		case force:
			x.TakeForced(fx, room, set)
		case why != nil:
			u.Engine.Meter.refusedAdmission(why)
			return why.Err()
		default:
			x.TakeRoom(fx, room, set)
		}
	}
	u.takePlace(lane, x)
	return nil
}
