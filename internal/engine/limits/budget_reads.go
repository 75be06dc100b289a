package limits

import (
	"context"
	"math"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

const (
	firstHolders = 10 // that a budget shows (B41)
	budgetLooks  = 8  // maximum number of reads until the queues with blocked rows are known
)

// Budget shows a budget (B39).
func (e *Admission) Budget(ctx context.Context, c txn.Caller, ref BudgetRef) (BudgetView, error) {
	found, err := e.FindBudget(ctx, c, ref)
	if err != nil {
		return BudgetView{}, err
	}
	return e.budgetByID(ctx, c, found.ID)
}

func (e *Admission) budgetByID(ctx context.Context, c txn.Caller, id base.UUID) (BudgetView, error) {
	views, err := e.budgetViews(ctx, []base.UUID{id})
	if err != nil {
		return BudgetView{}, err
	}
	view := views[id]
	switch {
	case view == nil || !c.Sees(view.Namespace):
		return BudgetView{}, core.BudgetNotFound(id.String())
	default:
		return *view, nil
	}
}

// budgetViews returns budgets, all of one snapshot; those that do not exist are left out. Codes: corruption.
func (e *Admission) budgetViews(ctx context.Context, ids []base.UUID) (map[base.UUID]*BudgetView, error) {
	look := budgetLook{e: e, ids: ids}
	for try := 1; ; try++ {
		loaded, err := e.Store.Read(ctx, look.Want())
		if err != nil {
			return nil, txn.PublicFault(err)
		}
		known, err := look.learn(ctx, loaded)
		if err != nil {
			return nil, err
		}
		if known || try == budgetLooks {
			return look.views(loaded)
		}
	}
}

// budgetLook collects what budgets show. Which queues have rows that are blocked on them is found by repeated reads: the read that finds nothing
// new has seen everything in one snapshot.
type budgetLook struct {
	e       *Admission
	ids     []base.UUID
	dict    *txn.Dictionary
	classes []int32      // of the namespaces that the budgets belong to
	picks   []store.Pick // queues with blocked rows
}

func (l *budgetLook) Want() store.Want {
	want := store.Want{Blocks: l.classes, Pick: l.picks}
	for _, id := range l.ids {
		want.Docs = append(want.Docs, BudgetDocRef(id))
		want.Scans = append(want.Scans, store.Scan{Kind: DocBudgetHold, Prefix: BudgetPrefix(id), Limit: firstHolders})
	}
	return want
}

// learn reports whether the look has seen all queues.
func (l *budgetLook) learn(ctx context.Context, loaded *store.Loaded) (known bool, err error) {
	known = true
	if l.dict == nil || l.dict.Version < loaded.Dictionary {
		if l.dict, err = l.e.Dict.At(ctx, loaded.Dictionary); err != nil {
			return false, txn.PublicFault(err)
		}
		if l.classes, err = l.classesOf(loaded); err != nil {
			return false, err
		}
		known = len(l.classes) == 0
	}
	for _, class := range l.classes {
		for _, id := range l.ids {
			number := core.BlockNumber(core.BudgetKey(id))
			pick := store.Pick{Class: class, Block: number, Floor: math.MinInt64, Limit: math.MaxInt32}
			if slices.Contains(loaded.Blocks[class], number) && !slices.Contains(l.picks, pick) {
				l.picks, known = append(l.picks, pick), false
			}
		}
	}
	return known, nil
}

// classesOf are the classes of the namespaces that the budgets belong to.
func (l *budgetLook) classesOf(loaded *store.Loaded) (numbers []int32, err error) {
	spaces := map[string]bool{}
	for _, doc := range loaded.Docs {
		b, err := DecodeBudget(&doc)
		if err != nil {
			return nil, err
		}
		spaces[b.Namespace] = true
	}
	for class := range l.dict.All() {
		if spaces[class.Namespace] {
			numbers = append(numbers, class.ID)
		}
	}
	return numbers, nil
}

func (l *budgetLook) views(loaded *store.Loaded) (map[base.UUID]*BudgetView, error) {
	blocked := map[int32]int{}
	for _, row := range loaded.Picked {
		blocked[row.Block]++
	}
	views := map[base.UUID]*BudgetView{}
	for i, id := range l.ids {
		doc, ok := loaded.Docs[BudgetDocRef(id)]
		if !ok {
			continue
		}
		b, err := settledBudget(&doc, loaded.Now)
		if err != nil {
			return nil, err
		}
		view := &BudgetView{
			Budget: *b, Numbers: map[string]core.DimensionView{}, Exhausted: b.Exhausted(), AsOf: loaded.Now,
			BlockedExecutions: blocked[core.BlockNumber(core.BudgetKey(id))],
		}
		for name := range b.Dimensions {
			view.Numbers[name] = b.View(name)
		}
		if view.Holders, err = holdersIn(loaded.Scanned[i]); err != nil {
			return nil, err
		}
		views[id] = view
	}
	return views, nil
}

// settledBudget reads a budget as its due reset leaves it: no answer depends on the sweep (BI9).
func settledBudget(doc *store.Doc, now base.Time) (*core.Budget, error) {
	b, err := DecodeBudget(doc)
	if err != nil {
		return nil, err
	}
	return settledAt(b, now), nil
}

func settledAt(b *core.Budget, now base.Time) *core.Budget {
	books := core.NewBudgetSet()
	books.Add(b)
	books.SettleResets(&core.Effects{Now: now, Budgets: books})
	return books.Get(b.ID)
}

func holdersIn(docs []store.Doc) (holders []Holder, err error) {
	for i := range docs {
		h, err := DecodeHold(&docs[i])
		if err != nil {
			return nil, err
		}
		holders = append(holders, Holder(h))
	}
	return holders, nil
}

// Budgets lists budgets by id (B40).
func (e *Admission) Budgets(ctx context.Context, c txn.Caller, q BudgetQuery) ([]BudgetView, string, error) {
	if err := q.check(); err != nil {
		return nil, "", err
	}
	now, err := e.ServerTime(ctx)
	if err != nil {
		return nil, "", err
	}
	scope := "budgets\x00" + txn.Fingerprint(q.Namespace, q.Scope, q.Exhausted, q.State)
	ids, next, err := txn.ListDocs(ctx, e.Engine, DocBudget, scope, q.Cursor, q.Limit, func(doc *store.Doc) (base.UUID, bool, error) {
		b, err := settledBudget(doc, now)
		if err != nil { // one that cannot be read hides no other; a read by name returns the error
			e.QuietLog.Error("a budget cannot be read", "row", doc.Key, "error", err)
			return base.UUID{}, false, nil
		}
		return b.ID, c.Sees(b.Namespace) && q.keeps(b), nil
	})
	if err != nil {
		return nil, "", err
	}
	views, err := e.viewsInOrder(ctx, ids)
	return views, next, err
}

// viewsInOrder returns budgets in this order, without those that were removed.
func (e *Admission) viewsInOrder(ctx context.Context, ids []base.UUID) ([]BudgetView, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	views, err := e.budgetViews(ctx, ids)
	if err != nil {
		return nil, err
	}
	var shown []BudgetView
	for _, id := range ids {
		if views[id] != nil {
			shown = append(shown, *views[id])
		}
	}
	return shown, nil
}

// check refuses what no budget can match: invalid_argument.
func (q *BudgetQuery) check() error {
	if q.State != "" && q.State != core.BudgetActive && q.State != core.BudgetClosed {
		return base.Invalid("state", "must be %s or %s", core.BudgetActive, core.BudgetClosed)
	}
	if q.Scope == "" {
		return nil
	}
	known := []string{core.ScopeNamespace, core.ScopeLane, core.ScopeFlow, core.ScopeExecution, core.ScopeTag, core.ScopeNone}
	if kind, _ := q.scope(); !slices.Contains(known, kind) {
		return base.Invalid("scope", "%q is not a scope", kind)
	}
	return core.CheckFilterText("scope", q.Scope)
}

func (q *BudgetQuery) keeps(b *core.Budget) bool {
	kind, value := q.scope()
	return (q.Namespace == "" || b.Namespace == q.Namespace) && (q.State == "" || b.State() == q.State) &&
		(kind == "" || b.Scope.Type == kind) && (value == "" || b.Scope.Value == value) &&
		(q.Exhausted == nil || *q.Exhausted == (len(b.Exhausted()) > 0))
}

// ApplicableBudgets returns which budgets apply to an execution, and whether they would admit it now (B40).
func (e *Admission) ApplicableBudgets(ctx context.Context, c txn.Caller, id base.GivenID) (Applicable, error) {
	loaded, x, err := e.ReadOne(ctx, c, id, store.Want{Executions: []base.UUID{id.UUID}})
	if err != nil {
		return Applicable{}, err
	}
	dict, err := e.Dict.At(ctx, loaded.Dictionary)
	if err != nil {
		return Applicable{}, txn.PublicFault(err)
	}
	set := BudgetsOf(dict, x)
	answer := Applicable{AsOf: loaded.Now}
	if answer.Budgets, err = e.viewsInOrder(ctx, set); err != nil {
		return Applicable{}, err
	}
	books := core.NewBudgetSet()
	for i := range answer.Budgets {
		answer.AsOf = answer.Budgets[i].AsOf
		books.Add(&answer.Budgets[i].Budget)
	}
	answer.Refusal = books.Admits(x, set, x.Policy.Estimate, answer.AsOf)
	return answer, nil
}

// Usage shows the meters of an execution, or of one of its attempts (B18).
func (e *Admission) Usage(ctx context.Context, c txn.Caller, id base.GivenID, attempt *int) (UsageView, error) {
	if attempt == nil {
		_, x, err := e.ReadOne(ctx, c, id, store.Want{Executions: []base.UUID{id.UUID}})
		if err != nil {
			return UsageView{}, err
		}
		return UsageView{ExecutionID: x.ID, Usage: x.Meters()}, nil
	}
	view, err := e.Describe(ctx, c, id)
	if err != nil {
		return UsageView{}, err
	}
	of, err := e.Attempt(ctx, c, id, *attempt)
	if err != nil {
		return UsageView{}, err
	}
	return UsageView{ExecutionID: view.Execution.ID, Attempt: &of.Index, Usage: of.Meters()}, nil
}
