package limits

import (
	"context"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// limitSlot is the place of limitPart in a transaction.
const limitSlot txn.Slot = 1

// partOf returns what a transaction has of limits, besides the books.
func partOf(u *txn.Tx) *limitPart { return txn.State[limitPart](u, limitSlot) }

// limitPart is what a transaction has of limits, besides the books. Most transactions meet none, and have no such part.
type limitPart struct {
	index      wantIndex                   // of the want that is being put together
	rates      map[string]*core.RateWindow // by key
	opened     int                         // number of docs already searched for them
	unreadable map[string]bool             // admission keys whose records cannot be read (S45)
	assumed    map[string]int64            // slots in use according to the cache: their values in counters are not locked

	wanted    []base.UUID             // requested and not opened yet
	resets    map[base.UUID]base.Time // time of the armed timer, of those that were loaded
	epochs    map[base.UUID]int64     // as they were loaded
	cancelled int                     // number of cancel_running orders that were carried out
}

// WantBudgets adds the records of budgets that the transaction has not loaded. They are to be locked.
func WantBudgets(u *txn.Tx, w *store.Want, ids []base.UUID) {
	for _, id := range ids {
		if ref := BudgetDocRef(id); !partOf(u).index.has(w, ref) {
			if _, loaded := u.Docs[ref]; !loaded {
				w.Docs = append(w.Docs, ref)
				partOf(u).wanted = append(partOf(u).wanted, id)
			}
		}
	}
}

// loadBudgetSet locks, in one trip for the whole batch, what its commands need behind the executions.
func (e *Admission) loadBudgetSet(ctx context.Context, u *txn.Tx, batch []*txn.Request) error {
	want := store.Want{LockDocs: true}
	for _, ent := range u.Entries {
		e.wantCharged(u, &want, ent)
	}
	for _, r := range batch {
		if b, ok := r.Command.(txn.Behind); ok {
			b.Behind(u, &want)
		}
	}
	if len(want.Docs)+len(want.Scans) == 0 {
		OpenBudgetSet(u)
		return nil
	}
	if err := u.MeetsLater(&want); err != nil {
		return err
	}
	loaded, err := u.StoreTx.Load(ctx, want)
	if u.Engine.Failed(err) != nil {
		return err
	}
	// A batch that wanted nothing before was begun without reading the clock. Whether an epoch has ended is judged by the clock read after the
	// lock: no command after a boundary sees the old epoch (BI9).
	u.Now = max(u.Now, loaded.Now)
	u.Absorb(want, loaded)
	OpenBudgetSet(u)
	return nil
}

// wantCharged adds the budgets that a command on the execution may change: those that its lease is or was charged to, and the one that it asks to
// be raised.
func (e *Admission) wantCharged(u *txn.Tx, w *store.Want, ent *txn.Row) {
	WantBudgets(u, w, ent.Exec.ChargedTo())
	if ent.Exec.Status != core.Suspended {
		return
	}
	if asked, ok := e.askedBudget(u, ent); ok {
		WantBudgets(u, w, []base.UUID{asked})
	}
}

// OpenBudgetSet adds the loaded budgets to the books, and starts new epochs of those whose epoch has ended (B36). A budget that is missing or cannot be
// read is recorded as such: it never counts as one without limits (B3).
func OpenBudgetSet(u *txn.Tx) *core.BudgetSet {
	part := txn.Known[limitPart](u, limitSlot)
	if part == nil || len(part.wanted) == 0 {
		return u.Accounts
	}
	if u.Accounts == nil {
		u.Accounts = core.NewBudgetSet()
	}
	var later []base.UUID
	for _, id := range partOf(u).wanted {
		doc, loaded := u.Docs[BudgetDocRef(id)]
		if !loaded {
			later = append(later, id)
			continue
		}
		openBudget(u, id, doc)
	}
	partOf(u).wanted = later
	fx := &core.Effects{Now: u.Now, Actor: core.EngineActor(), Budgets: u.Accounts}
	u.Accounts.SettleResets(fx)
	u.Keep(fx)
	return u.Accounts
}

func openBudget(u *txn.Tx, id base.UUID, doc *store.Doc) {
	if doc == nil {
		txn.SetIn(&partOf(u).unreadable, core.BudgetKey(id), true)
		u.Accounts.Miss(id)
		return
	}
	budget, err := DecodeBudget(doc)
	if err != nil {
		txn.SetIn(&partOf(u).unreadable, core.BudgetKey(id), true)
		u.Engine.QuietLog.Error("a budget cannot be read: nothing is admitted under it", "row", id, "error", err)
		return
	}
	txn.SetIn(&partOf(u).resets, id, budget.NextResetAt)
	txn.SetIn(&partOf(u).epochs, id, budget.Epoch)
	u.Accounts.Add(budget)
}

// Budget returns a loaded budget that the caller named. Codes: budget_not_found, also for one of another namespace (W5), corruption.
func Budget(u *txn.Tx, c txn.Caller, id base.UUID) (*core.Budget, error) {
	b := u.Accounts.Get(id)
	switch {
	case b == nil && u.Doc(BudgetDocRef(id)) != nil && !slices.Contains(u.Accounts.Deleted(), id):
		return nil, base.Errorf(base.CodeCorruption, "the budget cannot be read").With("record", "budget")
	case b == nil || !c.Sees(b.Namespace):
		return nil, core.BudgetNotFound(id.String())
	}
	return b, nil
}

// loadLedger loads the rows of the ledger that change.
func loadLedger(ctx context.Context, u *txn.Tx) error {
	if u.Accounts == nil {
		return nil
	}
	want := store.Want{LockDocs: true}
	for _, spend := range u.Accounts.Spends() {
		wantDoc(u, &want, ledgerRef(spend.Budget, spend.Epoch, spend.Execution))
	}
	return u.Load(ctx, want)
}

// writeBudgetSet writes the budgets that changed with their side records, and collects which have room again (B33).
func writeBudgetSet(u *txn.Tx) {
	if u.Accounts == nil {
		return
	}
	for _, b := range u.Accounts.Changed() {
		u.PutOrAdd(budgetDoc(b))
		armReset(u, b)
	}
	for _, id := range u.Accounts.Deleted() {
		u.DropDoc(BudgetDocRef(id))
	}
	for _, record := range u.Accounts.Epochs() {
		u.PutDoc(store.Doc{DocRef: epochRef(record.Budget, record.Epoch), Body: record.Encode()})
		u.AddTaskAt(taskDropEpoch, TaskArgs{Budget: record.Budget, Epoch: record.Epoch}, u.Now.Add(budgetRetention))
	}
	writeLedger(u)
	for _, id := range u.Accounts.Freed() {
		u.RoomBack = txn.AppendNew(u.RoomBack, core.BudgetKey(id))
	}
}

// armReset arms a timer for the end of the budget's epoch.
func armReset(u *txn.Tx, b *core.Budget) {
	if b.NextResetAt == 0 || b.NextResetAt == partOf(u).resets[b.ID] {
		return
	}
	timer := u.TimerAt(timerBudgets, b.NextResetAt)
	timer.Texts = append(timer.Texts, b.ID.String())
}

// writeLedger adds what was booked to the rows of the ledger. A row that is used up goes (B25).
func writeLedger(u *txn.Tx) {
	rows := map[store.DocRef]ledgerRow{}
	for _, spend := range u.Accounts.Spends() {
		ref := ledgerRef(spend.Budget, spend.Epoch, spend.Execution)
		row, begun := rows[ref]
		if !begun {
			row = loadedRow(u, ref, spend.Execution)
		}
		row.Used[spend.Dimension] += spend.Amount
		if row.Used[spend.Dimension] <= 0 {
			delete(row.Used, spend.Dimension)
		}
		rows[ref] = row
	}
	for ref, row := range rows {
		switch {
		case len(row.Used) > 0:
			u.PutOrAdd(row.doc(ref))
		case u.Doc(ref) != nil:
			u.DropDoc(ref)
		}
	}
}

// loadedRow returns a row of the ledger as it was loaded. One that cannot be read starts from zero: what was booked is in the budget.
func loadedRow(u *txn.Tx, ref store.DocRef, execution base.UUID) ledgerRow {
	fresh := ledgerRow{ExecutionID: base.IDOf(execution), Used: map[string]int64{}}
	if ent := u.Entries[execution]; ent != nil {
		fresh.ExecutionID = ent.Exec.ID
	}
	doc := u.Doc(ref)
	if doc == nil {
		return fresh
	}
	row, err := decodeLedgerRow(doc)
	if err != nil || row.Used == nil {
		u.Engine.QuietLog.Error("a row of a budget's ledger cannot be read: it begins anew", "row", ref.Key, "error", err)
		return fresh
	}
	return row
}

// markHolds updates the records by which the holders of a budget are found: they follow from the record as it was loaded and as it is now.
func markHolds(u *txn.Tx, ent *txn.Row) {
	before, now := ent.Reserved, ent.Exec.Reservation
	if before == now {
		return
	}
	epoch, kept, since := txn.ReservedFor(ent.Exec), map[base.UUID]bool{}, u.Now
	if ent.AcquiredAt != 0 { // the clock may have moved since
		since = ent.AcquiredAt
	}
	if now != nil && !ent.Removed {
		for i := range now.Holds {
			kept[now.Holds[i].Budget] = true
			marked := before != nil && ent.Leased == epoch && slices.ContainsFunc(before.Holds, func(h core.BudgetHold) bool { return h.Budget == now.Holds[i].Budget })
			if !marked {
				u.PutDoc(hold{ExecutionID: ent.Exec.ID, Epoch: epoch, Since: since}.doc(now.Holds[i].Budget))
			}
		}
	}
	if before == nil {
		return
	}
	for i := range before.Holds {
		if budget := before.Holds[i].Budget; !kept[budget] {
			u.DropDoc(HoldRef(budget, ent.Exec.ID.UUID))
		}
	}
}
