package txn

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Rules are the quotas, and which budgets apply to which executions, as in the dictionary. They are immutable and shared.
type Rules struct {
	Quotas   map[string]*core.Quota // by id
	budgets  []core.BudgetEntry
	registry *core.BudgetRegistry // of them
	lost     []base.UUID          // budgets whose rule cannot be read
	removing map[string]bool      // what is being removed, by removalRef: new references to it are refused
	// unreadable are the rules whose bytes cannot be read: an execution that needs one of them is not admitted (S45).
	unreadable map[store.DocRef]bool
}

// QuotaRef names the record of a quota.
func QuotaRef(id string) store.DocRef { return store.DocRef{Kind: docQuota, Key: id} }

func budgetEntryRef(id base.UUID) store.DocRef {
	return store.DocRef{Kind: docBudgetEntry, Key: id.String()}
}

// BudgetDocRef names the record of a budget.
func BudgetDocRef(id base.UUID) store.DocRef { return store.DocRef{Kind: DocBudget, Key: id.String()} }

// budgetGoneRef names the mark of a budget that was deleted.
func budgetGoneRef(id base.UUID) store.DocRef {
	return store.DocRef{Kind: docBudgetGone, Key: id.String()}
}

func budgetNameRef(namespace, name string) store.DocRef {
	return store.DocRef{Kind: docBudgetName, Key: namespace + "\x00" + name}
}

// ParseRules reads the rules. One that cannot be read does not affect the others.
func ParseRules(docs []store.Doc) *Rules {
	r := &Rules{Quotas: map[string]*core.Quota{}, unreadable: map[store.DocRef]bool{}, removing: map[string]bool{}}
	for i := range docs {
		if !r.add(&docs[i]) {
			r.unreadable[docs[i].DocRef] = true
		}
	}
	r.registerBudgets()
	return r
}

func (r *Rules) add(doc *store.Doc) (read bool) {
	switch doc.Kind {
	case docQuota:
		quota, err := decodeQuota(doc)
		if err != nil {
			return false
		}
		r.Quotas[quota.ID] = quota
	case docBudgetEntry:
		var entry core.BudgetEntry
		if json.Unmarshal(doc.Body, &entry) != nil || entry.ID.String() != doc.Key {
			return false
		}
		r.budgets = append(r.budgets, entry)
	case docRemoval:
		r.removing[doc.Key] = true
	}
	return true
}

// decodeQuota reads the record of a quota. Errors: corruption.
func decodeQuota(doc *store.Doc) (*core.Quota, error) {
	var q core.Quota
	if err := json.Unmarshal(doc.Body, &q); err != nil {
		return nil, Corrupt("quota", err)
	}
	if q.ID != doc.Key {
		return nil, base.Errorf(base.CodeCorruption, "the record of quota %q is that of %q", doc.Key, q.ID)
	}
	return &q, nil
}

// QuotaUnreadable reports whether there is a quota of this id whose record cannot be read.
func (r *Rules) QuotaUnreadable(id string) bool { return r.unreadable[QuotaRef(id)] }

// Limited reports whether admission may refuse executions of the class: it needs something, or a budget may apply to them by namespace, lane or
// tags. A budget that cannot be read may apply to every execution.
func (d *Dictionary) Limited(class *core.Class) bool {
	return class.Needs != "" || len(d.lost) > 0 || d.registry.MayReach(class)
}

// ruleChanger is a command that may change what admission requires of many executions.
type ruleChanger interface {
	Command
	changesRules() bool
}

func (a *adminCommand) changesRules() bool { return a.ref.Kind.Rule() }

func (b *budgetCommand) changesRules() bool {
	switch b.budget.Scope.Type {
	case core.ScopeNamespace, core.ScopeLane, core.ScopeTag:
		return b.op == opCreateBudget
	default:
		return false
	}
}

// awaitClaims locks all lanes exclusively if a command of the batch changes a rule. Claims lock their lanes for sharing, so those under way end
// first, and later ones see the change. The rule thus takes effect with its commit (S36, B7).
func (u *Tx) awaitClaims(ctx context.Context, batch []*Request) error {
	if !slices.ContainsFunc(batch, func(r *Request) bool {
		changer, ok := r.Command.(ruleChanger)
		return ok && changer.changesRules()
	}) {
		return nil
	}
	var want store.Want
	for _, lane := range u.Dict.Lanes {
		want.LockLanes = append(want.LockLanes, lane.ID)
	}
	slices.Sort(want.LockLanes)
	u.Changes.Dictionary = u.Dict.Version // checked by the commit: no lane was added since
	return u.Load(ctx, want)
}
