package core

import (
	"slices"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

func TestB6_B8_budgets_apply_in_order_and_each_once(t *testing.T) {
	t.Parallel()
	id := func(n byte) base.UUID { return base.UUID{0: n} }
	entry := func(n byte, name string, scope BudgetScope, ancestors ...base.UUID) BudgetEntry {
		return BudgetEntry{ID: id(n), Namespace: base.DefaultNamespace, Name: name, Scope: scope, Ancestors: ancestors}
	}
	r := NewBudgetRegistry([]BudgetEntry{
		entry(90, "all", BudgetScope{Type: ScopeNamespace}),
		entry(80, "lane", BudgetScope{ScopeLane, "default"}, id(90)),
		entry(81, "other lane", BudgetScope{ScopeLane, "bulk"}),
		entry(70, "team b", BudgetScope{ScopeTag, "team=red"}, id(5)),
		entry(69, "team a", BudgetScope{ScopeTag, "team=red"}, id(4)),
		entry(68, "blue", BudgetScope{ScopeTag, "team=blue"}),
		entry(60, "named b", BudgetScope{Type: ScopeNone}, id(3), id(2)),
		entry(59, "named a", BudgetScope{Type: ScopeNone}),
		entry(5, "parent 5", BudgetScope{Type: ScopeNone}, id(1)),
		entry(4, "parent 4", BudgetScope{Type: ScopeNone}, id(2)),
		entry(3, "parent 3", BudgetScope{Type: ScopeNone}, id(2)),
		entry(2, "grandparent", BudgetScope{Type: ScopeNone}),
		{ID: id(50), Namespace: "elsewhere", Name: "all", Scope: BudgetScope{Type: ScopeNamespace}},
	})
	x := begin(t, `{}`).x
	x.Tags = base.Tags{"team": "red", "x": "y"}
	for _, b := range []*Budget{
		{ID: id(29), Scope: BudgetScope{Type: ScopeFlow}, Depth: 1},
		{ID: id(31), Scope: BudgetScope{Type: ScopeFlow}, Depth: 2},
		{ID: id(20), Scope: BudgetScope{Type: ScopeExecution}},
		{ID: id(28), Scope: BudgetScope{Type: ScopeFlow}},
		{ID: id(30), Scope: BudgetScope{Type: ScopeFlow}, Depth: 2},
		{ID: id(19), Scope: BudgetScope{Type: ScopeExecution}, Ancestors: []base.UUID{id(90)}},
	} {
		if !x.AddBudget(b) || x.AddBudget(b) {
			t.Fatal("a budget is added once")
		}
	}
	got := r.Applicable(x, []base.UUID{id(60), id(59), id(60)})
	var want []base.UUID
	for _, n := range []byte{59, 60, 19, 20, 30, 31, 29, 28, 69, 70, 80, 90, 3, 4, 5, 2} {
		want = append(want, id(n))
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := r.Applicable(x, []base.UUID{id(200)}); got[0] != id(200) {
		t.Error("B3: a named budget that does not exist counts as none")
	}
	var none *BudgetRegistry
	if got := none.Applicable(begin(t, `{}`).x, nil); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

func TestB6_names_and_ids_are_resolved_in_their_namespace(t *testing.T) {
	t.Parallel()
	r := NewBudgetRegistry([]BudgetEntry{{ID: base.UUID{1}, Namespace: "a", Name: "b"}, {ID: base.UUID{2}, Namespace: "c", Name: "b"}})
	for _, c := range []struct {
		namespace, given string
		want             base.UUID
	}{{"a", "b", base.UUID{1}}, {"c", "b", base.UUID{2}}, {"a", base.UUID{1}.String(), base.UUID{1}}, {"a", base.UUID{2}.String(), base.UUID{}}, {"a", "x", base.UUID{}}} {
		if e, ok := r.Resolve(c.namespace, c.given); e.ID != c.want || ok == c.want.IsZero() {
			t.Errorf("%s in %s: %v %v", c.given, c.namespace, e.ID, ok)
		}
	}
}

func TestS19_what_every_execution_of_a_class_is_under_is_known(t *testing.T) {
	t.Parallel()
	entry := func(n byte, scope BudgetScope, above ...base.UUID) BudgetEntry {
		return BudgetEntry{ID: base.UUID{n}, Namespace: "a", Scope: scope, Ancestors: above}
	}
	r := NewBudgetRegistry([]BudgetEntry{
		entry(1, BudgetScope{Type: ScopeNone}), entry(2, BudgetScope{ScopeLane, "mail"}, base.UUID{1}), entry(3, BudgetScope{Type: ScopeNone}, base.UUID{4}),
		entry(5, BudgetScope{ScopeTag, "t=v"}),
	})
	mail, other, foreign := &Class{Namespace: "a", Lane: "mail"}, &Class{Namespace: "a", Lane: "x"}, &Class{Namespace: "b", Lane: "mail"}
	for key, want := range map[byte]bool{1: true, 2: true, 3: false, 4: false, 5: false} {
		if r.Covers(mail, nil, BudgetKey(base.UUID{key})) != want {
			t.Errorf("budget %d covers the lane: %v", key, !want)
		}
	}
	if !r.Covers(other, []base.UUID{{3}}, BudgetKey(base.UUID{4})) || r.Covers(foreign, nil, BudgetKey(base.UUID{2})) || r.Covers(mail, nil, "slots:x") {
		t.Error("those above a named one cover it, those of another namespace and other keys cover none")
	}
	if !r.MayReach(mail) || !r.MayReach(other) || r.MayReach(foreign) || (*BudgetRegistry)(nil).MayReach(mail) {
		t.Error("a tag may reach all of its namespace, and no others")
	}
}
