package limits

import (
	"encoding/json"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// RuleSet are the quotas, and which budgets apply to which executions, as in the dictionary. They are immutable and shared.
type RuleSet struct {
	Quotas   map[string]*core.Quota // by id
	budgets  []core.BudgetEntry
	registry *core.BudgetRegistry // of them
	lost     []base.UUID          // budgets whose rule cannot be read
	removing map[string]bool      // what is being removed, by removalRef: new references to it are refused
	// unreadable are the rules whose bytes cannot be read: an execution that needs one of them is not admitted (S45).
	unreadable map[store.DocRef]bool
}

// RulesOf returns the rules of a dictionary.
func RulesOf(d *txn.Dictionary) *RuleSet { return txn.Rules(d, ParseRules) }

// QuotaRef names the record of a quota.
func QuotaRef(id string) store.DocRef { return store.DocRef{Kind: docQuota, Key: id} }

func budgetEntryRef(id base.UUID) store.DocRef {
	return store.DocRef{Kind: docBudgetEntry, Key: id.String()}
}

// BudgetDocRef names the record of a budget.
func BudgetDocRef(id base.UUID) store.DocRef {
	return store.DocRef{Kind: DocBudget, Key: id.String()}
}

// budgetGoneRef names the mark of a budget that was deleted.
func budgetGoneRef(id base.UUID) store.DocRef {
	return store.DocRef{Kind: docBudgetGone, Key: id.String()}
}

func budgetNameRef(namespace, name string) store.DocRef {
	return store.DocRef{Kind: DocBudgetName, Key: namespace + "\x00" + name}
}

// ParseRules reads the rules. One that cannot be read does not affect the others.
func ParseRules(docs []store.Doc) *RuleSet {
	r := &RuleSet{Quotas: map[string]*core.Quota{}, unreadable: map[store.DocRef]bool{}, removing: map[string]bool{}}
	for i := range docs {
		if !r.add(&docs[i]) {
			r.unreadable[docs[i].DocRef] = true
		}
	}
	r.registerBudgets()
	return r
}

func (r *RuleSet) add(doc *store.Doc) (read bool) {
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
		return nil, txn.Corrupt("quota", err)
	}
	if q.ID != doc.Key {
		return nil, base.Errorf(base.CodeCorruption, "the record of quota %q is that of %q", doc.Key, q.ID)
	}
	return &q, nil
}

// QuotaUnreadable reports whether there is a quota of this id whose record cannot be read.
func (r *RuleSet) QuotaUnreadable(id string) bool { return r.unreadable[QuotaRef(id)] }

// Limited reports whether admission may refuse executions of the class: it needs something, or a budget may apply to them by namespace, lane or
// tags. A budget that cannot be read may apply to every execution.
func Limited(d *txn.Dictionary, class *core.Class) bool {
	return class.Needs != "" || len(RulesOf(d).lost) > 0 || RulesOf(d).registry.MayReach(class)
}
