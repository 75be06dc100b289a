package limits

import (
	"context"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/admin"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// budgetCommand changes a budget for a caller that may do so, and writes an audit row.
type budgetCommand struct {
	op          string
	caller      txn.Caller
	how         admin.AdminAction
	target      BudgetRef // as the caller named it
	budget      core.BudgetEntry
	locks       []base.UUID // budgets beside it
	executions  []base.UUID
	graphs      []base.UUID    // flows that it is about
	docs        []store.DocRef // locked after the executions
	scans       []store.Scan
	scanned     int          // place of their answers
	request     store.DocRef // zero: no request key
	fingerprint string
	answer      any  // pointer to the answer, which is recorded and returned again to a repeat; nil: nothing
	taken       bool // another command was faster: nothing was done, and nothing is recorded
	// act reports whether anything changed.
	act func(u *txn.Tx, fx *core.Effects) (changed bool, err error)
}

// changeBudget runs the command. A repeat is recognised by args.
func (e *Admission) changeBudget(ctx context.Context, cmd *budgetCommand, args ...any) error {
	if err := base.CheckReason("reason", cmd.how.Reason); err != nil {
		return err
	}
	if err := base.CheckRequestKey(cmd.how.RequestKey); err != nil {
		return err
	}
	if cmd.how.RequestKey != "" {
		cmd.request = cmd.target.request(cmd.caller, cmd.op, cmd.how.RequestKey)
		cmd.fingerprint = txn.Fingerprint(args, cmd.how.Reason, cmd.how.Revision)
	}
	return e.Do(ctx, cmd)
}

// request names the record of a request about the budget.
func (r BudgetRef) request(c txn.Caller, op, key string) store.DocRef {
	return txn.RequestRef(c, op, r.Namespace+"\x00"+r.Budget, key)
}

func (b *budgetCommand) Name() string { return b.op }

func (b *budgetCommand) Flows(*txn.Tx) []base.UUID { return b.graphs }

func (b *budgetCommand) Want(w *store.Want, _ bool) {
	w.Executions = append(w.Executions, b.executions...)
	if b.request.Key != "" {
		w.Docs = append(w.Docs, b.request)
	}
}

func (b *budgetCommand) Behind(u *txn.Tx, w *store.Want) {
	WantBudgets(u, w, append([]base.UUID{b.budget.ID}, b.locks...))
	for _, ref := range b.docs {
		wantDoc(u, w, ref)
	}
	b.scanned = len(u.Scanned) + len(w.Scans)
	w.Scans = append(w.Scans, b.scans...)
}

// By returns the caller.
func (b *budgetCommand) By() txn.Caller { return b.caller }

func (b *budgetCommand) Chains(*txn.Tx) []string {
	if !admin.Audits(b.caller) {
		return nil
	}
	return []string{b.budget.Namespace}
}

func (b *budgetCommand) Decide(u *txn.Tx) error {
	if repeated, err := u.Repeated(b.caller, b.request, b.fingerprint, b.answer); repeated || err != nil {
		return err
	}
	var before any
	if was := u.Accounts.Get(b.budget.ID); was != nil {
		before = was.Definition()
	}
	mark, fx := u.Accounts.Mark(), u.Effects(b.caller)
	changed, err := b.act(u, fx)
	if err != nil {
		u.Accounts.Back(mark)
		return err
	}
	if b.taken {
		return nil
	}
	if changed {
		u.Keep(fx)
		b.audit(u, before)
	}
	u.RecordRequest(b.request, b.fingerprint, b.answer)
	return nil
}

func (b *budgetCommand) audit(u *txn.Tx, before any) {
	if !admin.Audits(b.caller) {
		return
	}
	var after any
	if now := u.Accounts.Get(b.budget.ID); now != nil {
		after = now.Definition()
	}
	admin.Audit(u, b.caller, core.AuditRow{
		Namespace: b.budget.Namespace, Action: b.op, Entity: "budget", EntityID: b.budget.ID.String(), Reason: b.how.Reason,
	}, before, after)
}

// onBudget runs a command on a budget that must exist, and returns the budget as the command left it.
func (e *Admission) onBudget(ctx context.Context, c txn.Caller, op string, ref BudgetRef, how admin.AdminAction, act func(u *txn.Tx, fx *core.Effects, id base.UUID) (bool, error), args ...any) (BudgetView, error) {
	found, err := e.FindBudget(ctx, c, ref)
	if err != nil {
		return BudgetView{}, err
	}
	err = e.changeBudget(ctx, &budgetCommand{
		op: op, caller: c, how: how, target: ref, budget: found,
		act: func(u *txn.Tx, fx *core.Effects) (bool, error) {
			if _, err := Budget(u, c, found.ID); err != nil {
				return false, err
			}
			return act(u, fx, found.ID)
		},
	}, args...)
	if err != nil {
		return BudgetView{}, err
	}
	return e.budgetByID(ctx, c, found.ID)
}

// CloseBudget makes a budget admit nothing and refuse charges. Leases that are charged to it still book (B5).
func (e *Admission) CloseBudget(ctx context.Context, c txn.Caller, ref BudgetRef, how admin.AdminAction) (BudgetView, error) {
	return e.onBudget(ctx, c, "close_budget", ref, how, func(_ *txn.Tx, fx *core.Effects, id base.UUID) (bool, error) {
		return fx.Budgets.Close(fx, id, how.Revision)
	})
}

// ReopenBudget undoes CloseBudget.
func (e *Admission) ReopenBudget(ctx context.Context, c txn.Caller, ref BudgetRef, how admin.AdminAction) (BudgetView, error) {
	return e.onBudget(ctx, c, "reopen_budget", ref, how, func(_ *txn.Tx, fx *core.Effects, id base.UUID) (bool, error) {
		return fx.Budgets.Reopen(fx, id, how.Revision)
	})
}

// ResetBudget starts a new epoch now and leaves the schedule as it is (B37).
func (e *Admission) ResetBudget(ctx context.Context, c txn.Caller, ref BudgetRef, how admin.AdminAction) (BudgetView, error) {
	return e.onBudget(ctx, c, "reset_budget", ref, how, func(_ *txn.Tx, fx *core.Effects, id base.UUID) (bool, error) {
		if err := checkBudgetRevision(how.Revision, fx.Budgets.Get(id)); err != nil {
			return false, err
		}
		return true, fx.Budgets.Reset(fx, id)
	})
}

// checkBudgetRevision returns stale_version, with the current revision, if it is not the expected one (U17).
func checkBudgetRevision(expected *int64, b *core.Budget) error {
	if expected == nil || *expected == b.Revision {
		return nil
	}
	return base.Errorf(base.CodeStaleVersion, "the revision is %d", b.Revision).WithField("revision").With("revision", b.Revision)
}

// UpdateBudget changes the definition of a budget (B4).
func (e *Admission) UpdateBudget(ctx context.Context, c txn.Caller, ref BudgetRef, up core.BudgetUpdate, how admin.AdminAction) (BudgetView, error) {
	found, err := e.FindBudget(ctx, c, ref)
	if err != nil {
		return BudgetView{}, err
	}
	if up.ExpectedRevision == nil {
		up.ExpectedRevision = how.Revision
	}
	cmd := &budgetCommand{op: "update_budget", caller: c, how: how, target: ref, budget: found}
	if up.Name != nil {
		cmd.docs = append(cmd.docs, budgetNameRef(found.Namespace, *up.Name))
	}
	cmd.act = func(u *txn.Tx, fx *core.Effects) (bool, error) {
		before, err := Budget(u, c, found.ID)
		if err != nil {
			return false, err
		}
		changed, err := fx.Budgets.Update(fx, found.ID, up)
		if err != nil {
			return false, err
		}
		return changed, rename(u, before, fx.Budgets.Get(found.ID))
	}
	if err := e.changeBudget(ctx, cmd, up); err != nil {
		return BudgetView{}, err
	}
	return e.budgetByID(ctx, c, found.ID)
}

// rename gives a budget its new name. Codes: budget_already_exists if another budget has it.
func rename(u *txn.Tx, before, now *core.Budget) error {
	if before.Name == now.Name {
		return nil
	}
	if u.Doc(budgetNameRef(now.Namespace, now.Name)) != nil {
		return nameTaken(now.Name)
	}
	u.DropDoc(budgetNameRef(before.Namespace, before.Name))
	u.AddDoc(budgetNameDoc(now))
	putRule(u, now)
	return nil
}

func nameTaken(name string) error {
	return base.Errorf(base.CodeBudgetAlreadyExists, "another budget is called %q", name).WithField("name")
}

// putRule adds a budget to the registry if it applies to executions by more than their own records.
func putRule(u *txn.Tx, b *core.Budget) {
	if ruled(b) {
		u.PutDoc(ruleDoc(b))
		u.After = append(u.After, u.Engine.RulesChanged)
	}
}

// DeleteBudget removes a budget that nothing depends on. Codes: budget_in_use. Its history is kept until retention (B5).
func (e *Admission) DeleteBudget(ctx context.Context, c txn.Caller, ref BudgetRef, how admin.AdminAction) error {
	found, err := e.FindBudget(ctx, c, ref)
	if err != nil {
		return e.deletedBefore(ctx, c, ref, how, err)
	}
	return e.unlessNamed(ctx, &found, func(named bool, mark *removalMark) error {
		return e.DropFound(ctx, c, ref, found, how, named, mark)
	})
}

// unlessNamed calls do with whether an execution that has not ended names the budget (B5). If none does, no new reference can appear until do has
// removed the mark or has returned.
func (e *Admission) unlessNamed(ctx context.Context, b *core.BudgetEntry, do func(named bool, mark *removalMark) error) error {
	named, err := e.budgetNamed(ctx, b)
	if err != nil {
		return err
	}
	if named {
		return do(true, nil)
	}
	return e.whileMarked(ctx, core.BudgetKey(b.ID), func(mark *removalMark) error {
		named, err := e.budgetNamed(ctx, b) // again: from now on no new reference can appear
		if err != nil {
			return err
		}
		return do(named, mark)
	})
}

// DropFound is DeleteBudget once the budget is found.
func (e *Admission) DropFound(ctx context.Context, c txn.Caller, ref BudgetRef, found core.BudgetEntry, how admin.AdminAction, named bool, mark *removalMark) error {
	cmd := &budgetCommand{
		op: opDeleteBudget, caller: c, how: how, target: ref, budget: found,
		scans: []store.Scan{{Kind: docBudgetChild, Prefix: BudgetPrefix(found.ID), Limit: 1}},
	}
	if mark != nil {
		cmd.docs = append(cmd.docs, removalRef(mark.key))
	}
	if scoped, ok := scopedTo(&found.Scope); ok {
		cmd.executions = append(cmd.executions, scoped)
	}
	if flow, ok := scopedToFlow(&found.Scope); ok {
		cmd.graphs = append(cmd.graphs, flow)
	}
	cmd.act = func(u *txn.Tx, fx *core.Effects) (bool, error) {
		b, err := Budget(u, c, found.ID)
		if err != nil {
			return false, err
		}
		ent := scopeOf(u, b)
		facts := core.DeleteFacts{
			Expected: how.Revision, Children: hasBelow(u, found.ID, cmd.scanned),
			Named: named || ent != nil && !ent.Exec.Status.Terminal() || openFlowOf(u, b),
		}
		if err := fx.Budgets.Delete(fx, found.ID, facts); err != nil {
			return false, err
		}
		if err := mark.take(u); err != nil {
			return false, err
		}
		forgetBudget(u, b, ent)
		return true, nil
	}
	return e.changeBudget(ctx, cmd)
}

const opDeleteBudget = "delete_budget"

// deletedBefore answers a delete whose budget does not exist: success if it is a repeat.
func (e *Admission) deletedBefore(ctx context.Context, c txn.Caller, ref BudgetRef, how admin.AdminAction, notFound error) error {
	if how.RequestKey == "" || base.CodeOf(notFound) != base.CodeBudgetNotFound {
		return notFound
	}
	return e.changeBudget(ctx, &budgetCommand{
		op: opDeleteBudget, caller: c, how: how, target: ref, budget: core.BudgetEntry{Namespace: ref.Namespace},
		act: func(*txn.Tx, *core.Effects) (bool, error) { return false, notFound },
	})
}

// scopedTo is the execution that a budget is for.
func scopedTo(s *core.BudgetScope) (base.UUID, bool) {
	if s.Type != core.ScopeExecution {
		return base.UUID{}, false
	}
	return base.ParseUUID(s.Value)
}

// scopeOf is the execution that a budget is for, if it has one that is still there.
func scopeOf(u *txn.Tx, b *core.Budget) *txn.Row {
	id, ok := scopedTo(&b.Scope)
	if !ok || u.Entries[id] == nil || u.Entries[id].Removed {
		return nil
	}
	return u.Entries[id]
}

// hasBelow reports whether a budget has others below it: found by the scan, or created since by another command of the transaction (B5).
func hasBelow(u *txn.Tx, id base.UUID, scan int) bool {
	return len(u.Scanned[scan]) > 0 || slices.ContainsFunc(u.Accounts.Changed(), func(b *core.Budget) bool { return b.Parent == id })
}

// forgetBudget removes everything by which a budget is found, and lets executions continue that waited for it. ent is the execution that it was
// for; nil: none.
func forgetBudget(u *txn.Tx, b *core.Budget, ent *txn.Row) {
	u.DropDoc(budgetNameRef(b.Namespace, b.Name))
	if ruled(b) {
		u.DropDoc(budgetEntryRef(b.ID))
		u.After = append(u.After, u.Engine.RulesChanged)
	}
	if !b.Parent.IsZero() {
		u.DropDoc(childRef(b.Parent, b.ID))
	}
	flow, covers := scopedToFlow(&b.Scope)
	if ent != nil {
		core.DropBudget(&ent.Exec.Budgets, b.ID)
		u.Touch(ent)
		if covers = ent.Exec.Children != nil; covers { // they get it from their parent (B6)
			flow = ent.Exec.Children.FlowID.UUID
		}
	}
	if covers {
		u.AddTask(TaskSpreadBudget, TaskArgs{Flow: flow, Budget: b.ID})
	}
	u.PutDoc(store.Doc{DocRef: budgetGoneRef(b.ID), Body: []byte("{}")})
	u.AddTask(taskFreeBudget, TaskArgs{Budget: b.ID})
	for _, ancestor := range b.Ancestors {
		u.AddTask(taskFreeUnreached, TaskArgs{Budget: ancestor, Gone: b.ID})
	}
	u.AddTaskAt(taskDropBudget, TaskArgs{Budget: b.ID}, u.Now.Add(budgetRetention))
}

func (b *budgetCommand) ChangesRules() bool {
	switch b.budget.Scope.Type {
	case core.ScopeNamespace, core.ScopeLane, core.ScopeTag:
		return b.op == opCreateBudget
	default:
		return false
	}
}
