package limits

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// A policy names quotas and budgets. They are checked last, with the dictionary whose version the commit checks (L80), so that a submit cannot
// attach what is removed at the same time. Which budget a name means is decided there too; it is part of the class.

// References are what a submission's policy names.
type References struct {
	Given   *core.Policy                // as the caller gave it, without what the namespace adds
	found   map[string]core.BudgetEntry // budgets of one execution or flow, by what names them: they are no rules, and looked for beforehand
	Budgets []base.UUID                 // those named, in the order of the policy, as last resolved, then those above found ones
	Fixed   bool                        // they were judged already
}

// none reports whether the policy names nothing that must exist.
func (r *References) none() bool {
	return r.Given == nil || len(r.Given.Quotas)+len(r.Given.BudgetIDs) == 0
}

// Resolve finds what the policy names: invalid_policy with the place of the first that does not exist.
func (r *References) Resolve(rules *RuleSet, namespace string) error {
	if r.Fixed || r.none() {
		return nil
	}
	for i, use := range r.Given.Quotas {
		if rules.removing[quotaKey(use.Quota)] {
			return beingRemoved(quotaKey(use.Quota))
		}
		if err := rules.checkQuotaUse(use); err != nil {
			return base.Errorf(base.CodeInvalidPolicy, "%s", err.why).WithField(fmt.Sprintf("quotas[%d].%s", i, err.member)).WithHint("%s", err.hint)
		}
	}
	var budgets, above []base.UUID
	for i, name := range r.Given.BudgetIDs {
		entry, ok := rules.registry.Resolve(namespace, name)
		if !ok {
			entry, ok = r.foundBudget(name)
			above = append(above, entry.Ancestors...) // the registry does not contain them (B6)
		}
		if !ok {
			return base.Errorf(base.CodeInvalidPolicy, "no budget %q", name).WithField(fmt.Sprintf("budget_ids[%d]", i))
		}
		if key := core.BudgetKey(entry.ID); rules.removing[key] {
			return beingRemoved(key)
		}
		budgets = append(budgets, entry.ID)
	}
	for _, id := range above {
		if !slices.Contains(budgets, id) {
			budgets = append(budgets, id)
		}
	}
	r.Budgets = budgets
	return nil
}

// foundBudget returns a budget that is in no rule.
func (r *References) foundBudget(name string) (core.BudgetEntry, bool) {
	if entry, ok := r.found[name]; ok {
		return entry, true
	}
	id, ok := base.ParseUUID(name)
	if !ok {
		return core.BudgetEntry{}, false
	}
	entry, ok := r.found[id.String()]
	return entry, ok
}

// badUse says what is wrong with the use of a quota.
type badUse struct{ member, why, hint string }

// checkQuotaUse wants the quota to exist, and a key iff it counts by key (S37).
func (r *RuleSet) checkQuotaUse(use core.QuotaUse) *badUse {
	quota := r.Quotas[use.Quota]
	switch {
	case quota == nil && r.QuotaUnreadable(use.Quota): // what it needs of a key cannot be decided; admission refuses (S45)
		return nil
	case quota == nil:
		return &badUse{"quota", fmt.Sprintf("no quota %q", use.Quota), "set it up first: quotas are shared by all namespaces"}
	case quota.Settings.PerKey && use.Key == "":
		return &badUse{"key", fmt.Sprintf("quota %q counts by key", use.Quota), "give the key, for example the customer"}
	case !quota.Settings.PerKey && use.Key != "":
		return &badUse{"key", fmt.Sprintf("quota %q has no keys", use.Quota), "leave the key out, or set the quota to count by key"}
	default:
		return nil
	}
}

// checkDefaultQuotas wants the quotas that a namespace is to give to its submits to exist: invalid_argument.
func checkDefaultQuotas(u *txn.Tx, uses []core.QuotaUse) error {
	if len(uses) == 0 {
		return nil
	}
	for i, use := range uses {
		if RulesOf(u.Dict).removing[quotaKey(use.Quota)] {
			return beingRemoved(quotaKey(use.Quota))
		}
		if err := RulesOf(u.Dict).checkQuotaUse(use); err != nil {
			return base.Invalid(fmt.Sprintf("default_quotas[%d].%s", i, err.member), "%s", err.why).WithHint("%s", err.hint)
		}
	}
	u.Changes.Dictionary = u.Dict.Version
	return nil
}

// Class is the claim class of a submission with such references (S13), without its number.
func (r *References) Class(s *core.Submission) core.Class {
	class := s.Class()
	needs := core.Needs{Quotas: s.Policy.Quotas, Budgets: r.Budgets, Estimate: s.Policy.Estimate}
	class.Needs = needs.Text()
	return class
}

// AddDefaults adds the quotas that the namespace adds to every submit which does not name them (U101). One that was removed limits nothing.
func (r *RuleSet) AddDefaults(p *core.Policy, defaults []core.QuotaUse) (*core.Policy, error) {
	var added []core.QuotaUse
	for _, use := range defaults {
		named := func(other core.QuotaUse) bool { return other.Quota == use.Quota }
		if r.Quotas[use.Quota] != nil && !slices.ContainsFunc(p.Quotas, named) {
			added = append(added, use)
		}
	}
	return p.WithQuotas(append(slices.Clip(p.Quotas), added...))
}

// SameSubmission reports whether an execution is what a submission asks for (L85). What its namespace added when it was created does not count.
func (r *References) SameSubmission(s core.Submission, x *core.Execution) bool {
	if s.Policy = r.Given; len(x.Policy.Quotas) > len(s.Policy.Quotas) && slices.Equal(x.Policy.Quotas[:len(s.Policy.Quotas)], s.Policy.Quotas) {
		policy, err := s.Policy.WithQuotas(x.Policy.Quotas)
		if err != nil {
			return false
		}
		s.Policy = policy
	}
	return slices.Equal(fingerprintOf(x), s.Fingerprint())
}

// DocReader reads small records that no execution owns.
type DocReader func(ctx context.Context, refs ...store.DocRef) (map[store.DocRef]store.Doc, error)

// FindBudgets looks for budgets that are in no rule: those of one execution or one flow. What is not found is refused later (L80).
func (r *References) FindBudgets(ctx context.Context, rules *RuleSet, namespace string, read DocReader) error {
	var names, records []store.DocRef
	for _, name := range r.Given.BudgetIDs {
		if _, known := rules.registry.Resolve(namespace, name); !known {
			names = append(names, budgetNameRef(namespace, name))
			if id, ok := base.ParseUUID(name); ok {
				records = append(records, BudgetDocRef(id))
			}
		}
	}
	if len(names) == 0 {
		return nil
	}
	named, err := read(ctx, names...)
	if err != nil {
		return err
	}
	called := map[store.DocRef]string{}
	for ref, doc := range named {
		if id, err := decodeBudgetName(&doc); err == nil {
			records = append(records, BudgetDocRef(id))
			called[BudgetDocRef(id)] = ref.Key[len(namespace)+1:]
		}
	}
	if len(records) == 0 {
		return nil
	}
	docs, err := read(ctx, records...)
	if err != nil {
		return err
	}
	r.found = map[string]core.BudgetEntry{}
	for ref, doc := range docs {
		if b, err := DecodeBudget(&doc); err == nil && b.Namespace == namespace {
			r.found[ref.Key], r.found[cmp.Or(called[ref], ref.Key)] = b.Entry(), b.Entry()
		}
	}
	return nil
}

// fingerprintOf recomputes the fingerprint of a stored execution (L83, L85). Its input must be loaded.
func fingerprintOf(x *core.Execution) []byte {
	s := core.Submission{Lane: x.Class.Lane, Kind: x.Class.Kind, Input: x.Input, Policy: x.GivenPolicy()}
	return s.Fingerprint()
}
