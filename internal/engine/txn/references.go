package txn

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// A policy names quotas and budgets. They are checked last, with the dictionary whose version the commit checks (L80), so that a submit cannot
// attach what is removed at the same time. Which budget a name means is decided there too; it is part of the class.

// references are what a submission's policy names.
type references struct {
	given   *core.Policy                // as the caller gave it, without what the namespace adds
	found   map[string]core.BudgetEntry // budgets of one execution or flow, by what names them: they are no rules, and looked for beforehand
	budgets []base.UUID                 // those named, in the order of the policy, as last resolved, then those above found ones
	fixed   bool                        // they were judged already
}

// none reports whether the policy names nothing that must exist.
func (r *references) none() bool {
	return r.given == nil || len(r.given.Quotas)+len(r.given.BudgetIDs) == 0
}

// resolve finds what the policy names: invalid_policy with the place of the first that does not exist.
func (r *references) resolve(rules *rules, namespace string) error {
	if r.fixed || r.none() {
		return nil
	}
	for i, use := range r.given.Quotas {
		if rules.removing[quotaKey(use.Quota)] {
			return beingRemoved(quotaKey(use.Quota))
		}
		if err := rules.checkQuotaUse(use); err != nil {
			return base.Errorf(base.CodeInvalidPolicy, "%s", err.why).WithField(fmt.Sprintf("quotas[%d].%s", i, err.member)).WithHint("%s", err.hint)
		}
	}
	var budgets, above []base.UUID
	for i, name := range r.given.BudgetIDs {
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
	r.budgets = budgets
	return nil
}

// foundBudget returns a budget that is in no rule.
func (r *references) foundBudget(name string) (core.BudgetEntry, bool) {
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
func (r *rules) checkQuotaUse(use core.QuotaUse) *badUse {
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
func (u *Tx) checkDefaultQuotas(uses []core.QuotaUse) error {
	if len(uses) == 0 {
		return nil
	}
	for i, use := range uses {
		if u.dict.removing[quotaKey(use.Quota)] {
			return beingRemoved(quotaKey(use.Quota))
		}
		if err := u.dict.checkQuotaUse(use); err != nil {
			return base.Invalid(fmt.Sprintf("default_quotas[%d].%s", i, err.member), "%s", err.why).WithHint("%s", err.hint)
		}
	}
	u.Changes.Dictionary = u.dict.version
	return nil
}

// class is the claim class of a submission with such references (S13), without its number.
func (r *references) class(s *core.Submission) core.Class {
	class := s.Class()
	needs := core.Needs{Quotas: s.Policy.Quotas, Budgets: r.budgets, Estimate: s.Policy.Estimate}
	class.Needs = needs.Text()
	return class
}

// addDefaults adds the quotas that the namespace adds to every submit which does not name them (U101). One that was removed limits nothing.
func (r *rules) addDefaults(p *core.Policy, defaults []core.QuotaUse) (*core.Policy, error) {
	var added []core.QuotaUse
	for _, use := range defaults {
		named := func(other core.QuotaUse) bool { return other.Quota == use.Quota }
		if r.Quotas[use.Quota] != nil && !slices.ContainsFunc(p.Quotas, named) {
			added = append(added, use)
		}
	}
	return p.WithQuotas(append(slices.Clip(p.Quotas), added...))
}

// sameSubmission reports whether an execution is what a submission asks for (L85). What its namespace added when it was created does not count.
func (r *references) sameSubmission(s core.Submission, x *core.Execution) bool {
	if s.Policy = r.given; len(x.Policy.Quotas) > len(s.Policy.Quotas) && slices.Equal(x.Policy.Quotas[:len(s.Policy.Quotas)], s.Policy.Quotas) {
		policy, err := s.Policy.WithQuotas(x.Policy.Quotas)
		if err != nil {
			return false
		}
		s.Policy = policy
	}
	return slices.Equal(fingerprintOf(x), s.Fingerprint())
}

// refer notes what the policy names, and adds to it what the namespace does.
func (s *submit) refer(ctx context.Context, known *rules, defaults []core.QuotaUse, read docReader) (err error) {
	s.refs.given = s.s.Policy
	if len(defaults) > 0 {
		if s.s.Policy, err = known.addDefaults(s.s.Policy, defaults); err != nil {
			return err
		}
	}
	if len(s.refs.given.BudgetIDs) == 0 {
		return nil
	}
	return s.refs.findBudgets(ctx, known, s.s.Namespace, read)
}

// unresolved reports whether something that the policy names was not found. It must be known whether the submit is a duplicate before it is refused
// (L80): until then it has a class without a number.
func (s *submit) unresolved() bool {
	if s.refs.resolve(s.e.Dict.Now().rules, s.s.Namespace) == nil {
		return false
	}
	class := s.refs.class(&s.s)
	s.class = &class
	return true
}

// docReader reads small records that no execution owns.
type docReader func(ctx context.Context, refs ...store.DocRef) (map[store.DocRef]store.Doc, error)

// findBudgets looks for budgets that are in no rule: those of one execution or one flow. What is not found is refused later (L80).
func (r *references) findBudgets(ctx context.Context, rules *rules, namespace string, read docReader) error {
	var names, records []store.DocRef
	for _, name := range r.given.BudgetIDs {
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
