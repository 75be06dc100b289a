package core

import (
	"slices"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// BudgetEntry is the part of a budget that decides to which executions it applies, for the registry (B6).
type BudgetEntry struct {
	ID        base.UUID   `json:"id"`
	Namespace string      `json:"namespace"`
	Name      string      `json:"name"`
	Scope     BudgetScope `json:"scope"`
	Ancestors []base.UUID `json:"ancestors,omitempty"`
}

// ScopedBudget is a budget that applies to an execution by scope execution or flow. The execution record lists it, so that a claim need not look it
// up.
type ScopedBudget struct {
	ID        base.UUID   `json:"id"`
	Scope     string      `json:"scope"`           // ScopeExecution or ScopeFlow
	Depth     int         `json:"depth,omitempty"` // of the flow: inner ones come before outer ones (B8)
	Ancestors []base.UUID `json:"ancestors,omitempty"`
}

// BudgetRegistry finds the budgets that apply to an execution. It is immutable; a nil registry has no budgets.
type BudgetRegistry struct {
	byID    map[base.UUID]BudgetEntry
	byName  map[budgetName]base.UUID
	byScope map[scopeKey][]base.UUID // in order of id
	tagged  map[string]bool          // namespaces with a budget of scope tag
}

type budgetName struct{ namespace, name string }

type scopeKey struct {
	namespace string
	scope     BudgetScope
}

// NewBudgetRegistry makes a registry of the entries of all namespaces.
func NewBudgetRegistry(entries []BudgetEntry) *BudgetRegistry {
	r := &BudgetRegistry{
		byID: make(map[base.UUID]BudgetEntry, len(entries)), byName: make(map[budgetName]base.UUID, len(entries)), byScope: map[scopeKey][]base.UUID{},
		tagged: map[string]bool{},
	}
	for _, e := range entries {
		r.byID[e.ID] = e
		r.byName[budgetName{e.Namespace, e.Name}] = e.ID
		if e.Scope.Type != ScopeNone {
			key := scopeKey{e.Namespace, e.Scope}
			r.byScope[key] = append(r.byScope[key], e.ID)
		}
		if e.Scope.Type == ScopeTag {
			r.tagged[e.Namespace] = true
		}
	}
	for _, ids := range r.byScope {
		slices.SortFunc(ids, compareUUIDs)
	}
	return r
}

// Resolve finds the budget of the namespace with this id or name. An id takes precedence over a name that looks like one.
func (r *BudgetRegistry) Resolve(namespace, idOrName string) (BudgetEntry, bool) {
	if r == nil {
		return BudgetEntry{}, false
	}
	if id, ok := base.ParseUUID(idOrName); ok {
		if e, known := r.byID[id]; known && e.Namespace == namespace {
			return e, true
		}
	}
	id, known := r.byName[budgetName{namespace, idOrName}]
	return r.byID[id], known
}

// Applicable lists the budgets that apply to x now (B6) in the order of B8, each once. named lists those of its policy. A named budget that is not
// in the registry stays in the list: no execution is admitted under a budget that cannot be found (B3).
func (r *BudgetRegistry) Applicable(x *Execution, named []base.UUID) []base.UUID {
	set := budgetSet{}
	explicit := slices.SortedFunc(slices.Values(named), compareUUIDs)
	for _, id := range explicit {
		set.add(id, r.ancestorsOf(id))
	}
	for _, scope := range [...]string{ScopeExecution, ScopeFlow} {
		for i := range x.Budgets {
			if b := &x.Budgets[i]; b.Scope == scope {
				set.add(b.ID, b.Ancestors)
			}
		}
	}
	if r != nil && len(r.byScope) > 0 {
		r.addScoped(&set, x)
	}
	return set.withAncestors()
}

// MayReach reports whether a budget may apply to executions of the class that neither name it nor list it in their record.
func (r *BudgetRegistry) MayReach(class *Class) bool {
	return r != nil && (r.tagged[class.Namespace] || len(r.byScope[inLane(class)])+len(r.byScope[inNamespace(class)]) > 0)
}

// Covers reports whether key belongs to a budget that applies to every execution of the class. named lists the budgets of its policy.
func (r *BudgetRegistry) Covers(class *Class, named []base.UUID, key string) bool {
	id, ok := budgetOfKey(key)
	if r == nil || !ok {
		return false
	}
	covers := func(other base.UUID) bool { return other == id || slices.Contains(r.byID[other].Ancestors, id) }
	return slices.ContainsFunc(named, covers) || slices.ContainsFunc(r.byScope[inLane(class)], covers) || slices.ContainsFunc(r.byScope[inNamespace(class)], covers)
}

func inLane(class *Class) scopeKey {
	return scopeKey{class.Namespace, BudgetScope{ScopeLane, class.Lane}}
}

func inNamespace(class *Class) scopeKey {
	return scopeKey{class.Namespace, BudgetScope{Type: ScopeNamespace}}
}

func (r *BudgetRegistry) ancestorsOf(id base.UUID) []base.UUID {
	if r == nil {
		return nil
	}
	return r.byID[id].Ancestors
}

// addScoped adds the budgets that apply to x by a tag, its lane or its namespace.
func (r *BudgetRegistry) addScoped(set *budgetSet, x *Execution) {
	var tagged []base.UUID
	for key, value := range x.Tags {
		tagged = append(tagged, r.byScope[scopeKey{x.Class.Namespace, BudgetScope{ScopeTag, key + "=" + value}}]...)
	}
	slices.SortFunc(tagged, compareUUIDs)
	for _, ids := range [...][]base.UUID{
		tagged,
		r.byScope[inLane(x.Class)],
		r.byScope[inNamespace(x.Class)],
	} {
		for _, id := range ids {
			set.add(id, r.byID[id].Ancestors)
		}
	}
}

// budgetSet collects budgets and, separately, their ancestors by level.
type budgetSet struct {
	ids    []base.UUID
	levels [maxBudgetLevels][]base.UUID
}

func (s *budgetSet) add(id base.UUID, ancestors []base.UUID) {
	if slices.Contains(s.ids, id) {
		return
	}
	s.ids = append(s.ids, id)
	for level, ancestor := range ancestors {
		if level < len(s.levels) {
			s.levels[level] = append(s.levels[level], ancestor)
		}
	}
}

func (s *budgetSet) withAncestors() []base.UUID {
	for _, level := range s.levels {
		slices.SortFunc(level, compareUUIDs)
		for _, id := range level {
			if !slices.Contains(s.ids, id) {
				s.ids = append(s.ids, id)
			}
		}
	}
	return s.ids
}

// AddBudget adds a budget that applies to x by scope execution or flow to the record. It reports whether it was added.
func (x *Execution) AddBudget(b *Budget) bool { return addScoped(&x.Budgets, b.scoped()) }

// AddBudget adds a budget whose scope is the flow or an enclosing one, so that later members are charged to it. It reports whether it was added.
func (f *Flow) AddBudget(b *Budget) bool { return addScoped(&f.Budgets, b.scoped()) }

func (b *Budget) scoped() ScopedBudget {
	return ScopedBudget{ID: b.ID, Scope: b.Scope.Type, Depth: b.Depth, Ancestors: b.Ancestors}
}

// JoinBudgets merges two lists in the order of B8, each budget once. The arguments are not changed.
func JoinBudgets(one, other []ScopedBudget) []ScopedBudget {
	for _, budget := range other {
		addScoped(&one, budget)
	}
	return one
}

// addScoped inserts a budget at its place in a list (B8). The list is copied, so that snapshots are not changed.
func addScoped(list *[]ScopedBudget, added ScopedBudget) bool {
	if slices.ContainsFunc(*list, func(s ScopedBudget) bool { return s.ID == added.ID }) {
		return false
	}
	at := slices.IndexFunc(*list, func(s ScopedBudget) bool { return added.before(&s) })
	if at < 0 {
		at = len(*list)
	}
	*list = slices.Insert(slices.Clone(*list), at, added)
	return true
}

// before reports whether s comes before o: executions, then flows, inner before outer, ties by id (B8).
func (s *ScopedBudget) before(o *ScopedBudget) bool {
	switch {
	case s.Scope != o.Scope:
		return s.Scope == ScopeExecution
	case s.Depth != o.Depth:
		return s.Depth > o.Depth
	default:
		return compareUUIDs(s.ID, o.ID) < 0
	}
}

// DropBudget removes a deleted budget from a list. The list is copied, so that snapshots are not changed. It reports whether the budget was in it.
func DropBudget(list *[]ScopedBudget, id base.UUID) bool {
	left := slices.DeleteFunc(slices.Clone(*list), func(s ScopedBudget) bool { return s.ID == id })
	if len(left) == len(*list) {
		return false
	}
	*list = left
	return true
}
