package limits

import (
	"context"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// budgetRetention is how long past epochs and their ledgers are kept, and those of a budget that was deleted (B5).
const budgetRetention = 90 * base.Day

// dropBatch is how many records are removed in one transaction.
const dropBatch = 1000

// resetDue starts a new epoch of a budget whose epoch has ended (B36): opening the budget does it.
type resetDue struct {
	budget base.UUID
	at     base.Time // time of the timer, which is used up
}

func (r *resetDue) Name() string { return "reset_due_budget" }

func (r *resetDue) Want(*store.Want, bool) {}

func (r *resetDue) Behind(u *txn.Tx, w *store.Want) { WantBudgets(u, w, []base.UUID{r.budget}) }

// Decide arms the timer again if the clock was set back before it.
func (r *resetDue) Decide(u *txn.Tx) error {
	if b := u.Accounts.Get(r.budget); b != nil && b.NextResetAt != 0 && b.NextResetAt <= r.at {
		timer := u.TimerAt(timerBudgets, b.NextResetAt)
		timer.Texts = append(timer.Texts, b.ID.String())
	}
	return nil
}

// sweepBudgets starts new epochs of budgets whose epochs have ended. Two processes at one boundary take turns on the record, and the second finds
// nothing due.
func (e *Admission) sweepBudgets(ctx context.Context, t store.Timer) error {
	var cmds []txn.Command
	for _, text := range t.Texts {
		if id, ok := base.ParseUUID(text); ok {
			cmds = append(cmds, &resetDue{id, t.At})
		}
	}
	for _, err := range e.DoAll(ctx, cmds) {
		if err != nil {
			return err
		}
	}
	return nil
}

// freeBudget unblocks what waited for a budget that was deleted (B33, S47). A budget that is merely missing blocks everything that needs it (B3).
func (e *Admission) freeBudget(ctx context.Context, t TaskArgs) error {
	deleted, err := e.budgetDeleted(ctx, t.Budget)
	if err != nil || !deleted {
		return err
	}
	seen := map[base.UUID]bool{}
	for {
		ids, err := e.blockedOnBudget(ctx, t.Budget)
		// An execution that is found again names the budget itself: it waits until it is cancelled.
		ids = slices.DeleteFunc(ids, func(id base.UUID) bool { return seen[id] })
		if err != nil || len(ids) == 0 {
			return err
		}
		for _, id := range ids {
			seen[id] = true
		}
		if err := e.unblock(ctx, ids, Without(t.Budget)); err != nil {
			return err
		}
	}
}

// budgetDeleted reports whether a budget was deleted. Its mark shows that until the history of the budget is removed (B5). After that nothing is
// left of it; of a budget whose record was lost the name still exists.
func (e *Admission) budgetDeleted(ctx context.Context, id base.UUID) (bool, error) {
	docs, err := e.ReadDocs(ctx, budgetGoneRef(id), BudgetDocRef(id), budgetEntryRef(id))
	if _, marked := docs[budgetGoneRef(id)]; err != nil || marked || len(docs) > 0 {
		return marked, err
	}
	scan := store.Scan{Kind: DocBudgetName, Limit: dropBatch}
	for {
		loaded, err := e.Store.Read(ctx, store.Want{Scans: []store.Scan{scan}})
		if err != nil {
			return false, txn.PublicFault(err)
		}
		names := loaded.Scanned[0]
		for i := range names {
			if named, err := decodeBudgetName(&names[i]); err != nil || named == id { // one that cannot be read may belong to it
				return false, nil
			}
		}
		if len(names) < scan.Limit {
			return true, nil
		}
		scan.After = names[len(names)-1].Key
	}
}

// Without removes a deleted budget from an execution. If the execution waits for it, or for one above it that no longer applies, it is unblocked:
// nothing else would look at it (B33, B34).
func Without(gone base.UUID) func(u *txn.Tx, x *core.Execution, fx *core.Effects) bool {
	return func(u *txn.Tx, x *core.Execution, fx *core.Effects) bool {
		dropped := core.DropBudget(&x.Budgets, gone)
		return PassUnreached(u, x, fx) || dropped
	}
}

// SuspectGone adds follow-up work that checks a budget which refused an execution and does not exist. The execution has it from its flow, from its
// parent or from a flow around those: they may have been removed with their budget, unnoticed by the execution (F44).
func SuspectGone(u *txn.Tx, x *core.Execution, why *core.Refusal) {
	for i := range x.Budgets {
		if id := x.Budgets[i].ID; core.BudgetKey(id) == why.Key && u.Doc(BudgetDocRef(id)) == nil {
			u.AddTask(taskFreeBudget, TaskArgs{Budget: id})
		}
	}
}

// freeUnreached unblocks what waited for a budget that no longer applies, since one below it was deleted (B33). The others stay as they are: a
// claim passes over all executions of a class that are blocked on one key when the first of them is refused (S19), so none may be among them that
// does not need the key.
func (e *Admission) freeUnreached(ctx context.Context, t TaskArgs) error {
	key := core.BudgetKey(t.Budget)
	queues, err := e.queuesBlockedOn(ctx, key)
	if err != nil {
		return err
	}
	for _, queue := range queues {
		for at := queue.pick(unblockBatch); ; {
			loaded, err := e.Store.Read(ctx, store.Want{Pick: []store.Pick{at}})
			if err != nil {
				return txn.PublicFault(err)
			}
			rows := loaded.Picked
			ids := make([]base.UUID, len(rows))
			for i, row := range rows {
				ids[i] = row.ID
			}
			if err := e.unblock(ctx, ids, Without(t.Gone)); err != nil {
				return err
			}
			if len(rows) < at.Limit {
				break
			}
			if last := rows[len(rows)-1].Order; last > at.Floor {
				at.Floor = last
			} else {
				at.Limit *= 2 // all of them were filed at the same time
			}
		}
	}
	return nil
}

// queuesBlockedOn finds the queues of what is blocked on a key.
func (e *Admission) queuesBlockedOn(ctx context.Context, key string) (queues []blockedQueue, err error) {
	dict, err := e.dictionaryNow(ctx)
	if err != nil {
		return nil, err
	}
	for some := range slices.Chunk(slices.Collect(dict.All()), ClassesAsked) {
		loaded, err := e.Store.Read(ctx, store.Want{Blocks: ClassNumbers(some)})
		if err != nil {
			return nil, txn.PublicFault(err)
		}
		for _, class := range some {
			if slices.Contains(loaded.Blocks[class.ID], core.BlockNumber(key)) {
				queues = append(queues, blockedQueue{class, key})
			}
		}
	}
	return queues, nil
}

// blockedOnBudget finds some of the executions that are blocked on a budget.
func (e *Admission) blockedOnBudget(ctx context.Context, budget base.UUID) (ids []base.UUID, err error) {
	queues, err := e.queuesBlockedOn(ctx, core.BudgetKey(budget))
	if err != nil {
		return nil, err
	}
	for _, queue := range queues {
		found, err := e.blockedOnKey(ctx, queue)
		if err != nil {
			return nil, err
		}
		if ids = append(ids, found...); len(ids) >= unblockBatch {
			return ids[:unblockBatch], nil
		}
	}
	return ids, nil
}

// blockedOnKey finds those in one queue. Rows of another key with the same block number are left out.
func (e *Admission) blockedOnKey(ctx context.Context, queue blockedQueue) (ids []base.UUID, err error) {
	rows, err := e.Store.Read(ctx, store.Want{Pick: []store.Pick{queue.pick(unblockBatch)}})
	if err != nil {
		return nil, txn.PublicFault(err)
	}
	want := store.Want{SkipUnreadable: true}
	for _, row := range rows.Picked {
		want.Executions = append(want.Executions, row.ID)
	}
	loaded, err := e.Store.Read(ctx, want)
	if err != nil {
		return nil, txn.PublicFault(err)
	}
	for _, id := range want.Executions {
		if x := loaded.Executions[id]; x != nil && x.Queued() && x.BlockedOn == queue.key {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// dropEpoch removes a past epoch and its ledger.
func (e *Admission) dropEpoch(ctx context.Context, t TaskArgs) error {
	if err := e.dropDocs(ctx, DocLedger, ledgerPrefix(t.Budget, t.Epoch)); err != nil {
		return err
	}
	return e.Write(ctx, "drop_epoch", &store.Changes{DropDocs: []store.DocRef{epochRef(t.Budget, t.Epoch)}})
}

// dropBudget removes everything of a deleted budget. From then on its id may be used again.
func (e *Admission) dropBudget(ctx context.Context, t TaskArgs) error {
	for _, kind := range []store.DocKind{DocLedger, docEpoch, docUsageDedup} {
		if err := e.dropDocs(ctx, kind, BudgetPrefix(t.Budget)); err != nil {
			return err
		}
	}
	return e.Write(ctx, "drop_budget", &store.Changes{DropDocs: []store.DocRef{budgetGoneRef(t.Budget)}})
}

// dropDocs removes small records by what their keys begin with.
func (e *Admission) dropDocs(ctx context.Context, kind store.DocKind, prefix string) error {
	for {
		loaded, err := e.Store.Read(ctx, store.Want{Scans: []store.Scan{{Kind: kind, Prefix: prefix, Limit: dropBatch}}})
		if err != nil {
			return txn.PublicFault(err)
		}
		docs := loaded.Scanned[0]
		if len(docs) == 0 {
			return nil
		}
		ch := &store.Changes{}
		for i := range docs {
			ch.DropDocs = append(ch.DropDocs, docs[i].DocRef)
		}
		if err := e.Write(ctx, "drop_docs", ch); err != nil {
			return err
		}
	}
}

// budgetNamed reports whether an execution that has not ended names the budget (B5).
func (e *Admission) budgetNamed(ctx context.Context, b *core.BudgetEntry) (bool, error) {
	e.Ingest(ctx)
	dict, err := e.dictionaryNow(ctx)
	if err != nil {
		return false, err
	}
	if err := e.Follower.ReachAll(ctx); err != nil { // so that everything that exists is counted
		return false, err
	}
	var naming []*core.Class
	for class := range dict.All() {
		if !txn.MayNeed(class, b.ID.String()) {
			continue
		}
		if needs := dict.Needs(class.ID); needs != nil && slices.Contains(needs.Budgets, b.ID) {
			naming = append(naming, class)
		}
	}
	for some := range slices.Chunk(naming, ClassesAsked) {
		n, err := e.Store.Count(ctx, store.Query{Classes: ClassNumbers(some), Statuses: unfinished()}, 1)
		if err != nil {
			return false, txn.PublicFault(err)
		}
		if n > 0 {
			return true, nil
		}
	}
	return false, nil
}
