package limits

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/admin"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// createTries is how often a create starts over because its name or id was taken meanwhile.
const createTries = 8

// CreateBudget creates a budget, or recognises the one that the same create has created (B2). Codes: invalid_budget, budget_already_exists,
// budget_not_found for the parent, execution_not_found and flow_not_found for the scope.
func (e *Admission) CreateBudget(ctx context.Context, c txn.Caller, namespace string, d core.BudgetDefinition, how admin.AdminAction) (BudgetAnswer, error) {
	if err := base.CheckNamespace(namespace); err != nil {
		return BudgetAnswer{}, err
	}
	if err := d.Normalize(); err != nil {
		return BudgetAnswer{}, err
	}
	if !c.Sees(namespace) {
		return BudgetAnswer{}, admin.NoSuchNamespace(namespace)
	}
	for range createTries {
		cmd, err := e.newCreate(ctx, c, namespace, d, how)
		if err != nil {
			return BudgetAnswer{}, err
		}
		answer, taken, err := cmd.run(ctx)
		if err != nil || !taken {
			return answer, err
		}
	}
	return BudgetAnswer{}, base.Errorf(base.CodeOverloaded, "others make and remove budgets of this name").WithRetryAfter(100)
}

// createBudget is the command of CreateBudget.
type createBudget struct {
	budgetCommand
	e      *Admission
	d      core.BudgetDefinition
	id     base.UUID
	parent base.UUID    // zero: none
	known  *core.Budget // the budget that has the name or id already
	// reaches is the flow to whose members the budget applies besides the execution that it is for; zero: none.
	reaches base.UUID
	made    createdBudget
}

const opCreateBudget = "create_budget"

// createdBudget is what is recorded of a create.
type createdBudget struct {
	ID      base.UUID `json:"budget_id"`
	Outcome string    `json:"outcome"`
}

// newCreate looks for what the create refers to.
func (e *Admission) newCreate(ctx context.Context, c txn.Caller, namespace string, d core.BudgetDefinition, how admin.AdminAction) (*createBudget, error) {
	cmd := &createBudget{e: e, d: d, id: d.ID}
	if cmd.id.IsZero() {
		cmd.id = e.Mint()
	}
	if d.Parent != "" {
		parent, err := e.FindBudget(ctx, c, BudgetRef{namespace, d.Parent})
		if err != nil {
			return nil, err
		}
		if parent.Namespace != namespace {
			return nil, core.BudgetNotFound(d.Parent)
		}
		cmd.parent, cmd.locks = parent.ID, []base.UUID{parent.ID}
	}
	var err error
	if cmd.known, err = e.knownBudget(ctx, namespace, &d); err != nil {
		return nil, err
	}
	if how.RequestKey != "" && cmd.known != nil { // this call may have created it
		answered, err := e.Answered(ctx, BudgetRef{namespace, d.Name}.request(c, opCreateBudget, how.RequestKey))
		if err != nil {
			return nil, err
		}
		if answered {
			cmd.known = nil
		}
	}
	cmd.budgetCommand = budgetCommand{
		op: opCreateBudget, caller: c, how: how, target: BudgetRef{namespace, d.Name}, answer: &cmd.made, act: cmd.create,
		budget: core.BudgetEntry{ID: cmd.id, Namespace: namespace, Name: d.Name, Scope: d.Scope}, locks: cmd.locks,
		docs: []store.DocRef{budgetNameRef(namespace, d.Name), budgetGoneRef(cmd.id)},
	}
	switch scoped, ok := scopedTo(&d.Scope); {
	case ok:
		cmd.executions = []base.UUID{scoped}
	case d.Scope.Type == core.ScopeFlow:
		flow, err := e.flowOfScope(ctx, c, namespace, &d.Scope)
		if err != nil {
			return nil, err
		}
		cmd.graphs = []base.UUID{flow}
	}
	return cmd, nil
}

// knownBudget returns the budget that has the name, or the id if one is given, or nil.
func (e *Admission) knownBudget(ctx context.Context, namespace string, d *core.BudgetDefinition) (*core.Budget, error) {
	if !d.ID.IsZero() {
		if b, err := e.readBudget(ctx, namespace, d.ID.String()); b != nil || err != nil {
			return b, err
		}
	}
	docs, err := e.ReadDocs(ctx, budgetNameRef(namespace, d.Name))
	if err != nil {
		return nil, err
	}
	doc, ok := docs[budgetNameRef(namespace, d.Name)]
	if !ok {
		return nil, nil
	}
	id, err := decodeBudgetName(&doc)
	if err != nil {
		return nil, err
	}
	return e.readBudget(ctx, namespace, id.String())
}

// run creates the budget. taken: there is one of this name or id by now, so the create must start over.
func (b *createBudget) run(ctx context.Context) (answer BudgetAnswer, taken bool, err error) {
	if b.known != nil {
		return b.exists(ctx)
	}
	err = b.e.changeBudget(ctx, &b.budgetCommand, b.d)
	if base.CodeOf(err) == base.CodeExecutionNotFound && len(b.executions) > 0 && b.e.Appeared(ctx, b.executions[0]) { // L88
		err = b.e.Do(ctx, &b.budgetCommand)
	}
	if err != nil {
		return BudgetAnswer{}, false, err
	}
	if b.taken {
		return BudgetAnswer{}, true, nil
	}
	if !b.reaches.IsZero() { // the caller relies on it once it has the answer
		if err := b.e.flows.Spread(ctx, b.reaches, b.made.ID); err != nil {
			return BudgetAnswer{}, false, err
		}
	}
	budget, err := b.e.budgetByID(ctx, b.caller, b.made.ID)
	if err != nil {
		return BudgetAnswer{}, false, err
	}
	return BudgetAnswer{Outcome: b.made.Outcome, Budget: budget}, false, nil
}

// exists answers a create of a budget that exists already (B2).
func (b *createBudget) exists(ctx context.Context) (answer BudgetAnswer, taken bool, err error) {
	if !b.caller.Sees(b.known.Namespace) || b.known.Namespace != b.target.Namespace {
		return answer, false, base.Errorf(base.CodeBudgetAlreadyExists, "the id belongs to another budget").WithField("budget_id")
	}
	if err := b.known.CheckSame(&b.d, b.parent); err != nil {
		return answer, false, err
	}
	answer.Outcome = "already_exists"
	answer.Budget, err = b.e.budgetByID(ctx, b.caller, b.known.ID)
	return answer, base.CodeOf(err) == base.CodeBudgetNotFound, nilIf(err, base.CodeBudgetNotFound)
}

func nilIf(err error, code base.Code) error {
	if base.CodeOf(err) == code {
		return nil
	}
	return err
}

func (b *createBudget) create(u *txn.Tx, fx *core.Effects) (bool, error) {
	if b.taken = budgetTaken(u, b.id, b.target.Namespace, b.d.Name); b.taken {
		return false, nil
	}
	if u.Doc(budgetGoneRef(b.id)) != nil {
		return false, idUsedBefore().WithField("budget_id")
	}
	var ent *txn.Row
	if len(b.executions) > 0 {
		var err error
		if ent, err = u.Find(b.caller, base.GivenID{UUID: b.executions[0]}); err != nil {
			return false, err
		}
		if ent.Exec.Class.Namespace != b.target.Namespace {
			return false, txn.NotFound(ent.Exec.ID.Given())
		}
	}
	var f *core.Flow
	if len(b.graphs) > 0 {
		if f = Of(u).flows.Locked(u, b.graphs[0]); f == nil {
			return false, noFlowOfScope(b.d.Scope.Value)
		}
	}
	made, err := makeBudget(u, fx, b.target.Namespace, &b.d, b.id, b.parent)
	if err != nil {
		return false, err
	}
	if f != nil {
		made.Depth = f.Depth
	}
	b.reaches = reachFlow(u, f, ent, made)
	if ent != nil && ent.Exec.AddBudget(made) {
		u.Touch(ent)
	}
	b.made = createdBudget{ID: b.id, Outcome: "created"}
	return true, nil
}

// idUsedBefore returns the refusal of the id of a deleted budget: its ledgers and receipts would become those of the new one (B5, B26).
func idUsedBefore() *base.Error {
	return base.Errorf(base.CodeBudgetAlreadyExists, "the id belonged to a budget that was deleted, whose history is kept").
		WithHint("give another id, or none")
}

// budgetTaken reports whether the id or the name has a budget already.
func budgetTaken(u *txn.Tx, id base.UUID, namespace, name string) bool {
	return budgetIDTaken(u, id) || u.Doc(budgetNameRef(namespace, name)) != nil
}

func budgetIDTaken(u *txn.Tx, id base.UUID) bool {
	return u.Doc(BudgetDocRef(id)) != nil || u.Accounts.Get(id) != nil
}

// makeBudget creates a budget with all records by which it is found. Its parent must be in the books. Codes: budget_not_found.
func makeBudget(u *txn.Tx, fx *core.Effects, namespace string, d *core.BudgetDefinition, id, parent base.UUID) (*core.Budget, error) {
	var above *core.Budget
	if !parent.IsZero() {
		if above = u.Accounts.Get(parent); above == nil {
			return nil, core.BudgetNotFound(d.Parent)
		}
	}
	made, err := core.NewBudget(fx, namespace, d, id, above)
	if err != nil {
		return nil, err
	}
	u.Accounts.Create(made)
	delete(partOf(u).unreadable, core.BudgetKey(id)) // it was looked for, and does not exist
	u.AddDoc(budgetNameDoc(made))
	if above != nil {
		u.PutDoc(store.Doc{DocRef: childRef(above.ID, made.ID), Body: []byte("{}")})
	}
	putRule(u, made)
	return made, nil
}
