package core

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

func TestB1_B2_a_definition_that_cannot_be_is_refused_with_its_field(t *testing.T) {
	t.Parallel()
	many := []string{}
	for i := range 33 {
		many = append(many, fmt.Sprintf(`"d%d":{}`, i))
	}
	for text, field := range map[string]string{
		`{"dimensions":{"t":{}}}`:      "name",
		`{"name":"b"}`:                 "dimensions",
		`{"name":"b","dimensions":{}}`: "dimensions",
		`{"name":"b","dimensions":{` + strings.Join(many, ",") + `}}`:                                        "dimensions",
		`{"name":"b","dimensions":{"Tokens":{}}}`:                                                            "dimensions.Tokens",
		`{"name":"b","dimensions":{"t":{"hard":0}}}`:                                                         "dimensions.t.hard",
		`{"name":"b","dimensions":{"t":{"hard":9007199254740992}}}`:                                          "dimensions.t.hard",
		`{"name":"b","dimensions":{"t":{"hard":10,"soft":11}}}`:                                              "dimensions.t.soft",
		`{"name":"b","dimensions":{"t":{"soft":0}}}`:                                                         "dimensions.t.soft",
		`{"name":"b","dimensions":{"t":{"hard":10,"default_reserve":11}}}`:                                   "dimensions.t.default_reserve",
		`{"name":"b","dimensions":{"t":{"default_reserve":-1}}}`:                                             "dimensions.t.default_reserve",
		`{"name":"b","dimensions":{"t":{}},"on_hard":"explode"}`:                                             "on_hard",
		`{"name":"b","dimensions":{"t":{}},"on_lease_loss":"keep"}`:                                          "on_lease_loss",
		`{"name":"b","dimensions":{"t":{}},"scope":{"type":"team"}}`:                                         "scope.type",
		`{"name":"b","dimensions":{"t":{}},"scope":{"type":"lane"}}`:                                         "scope.value",
		`{"name":"b","dimensions":{"t":{}},"scope":{"type":"none","value":"x"}}`:                             "scope.value",
		`{"name":"b","dimensions":{"t":{}},"scope":{"type":"execution","value":"x"}}`:                        "scope.value",
		`{"name":"b","dimensions":{"t":{}},"scope":{"type":"tag","value":"team"}}`:                           "scope.value",
		`{"name":"b","dimensions":{"t":{}},"scope":{"type":"tag","value":"T=1"}}`:                            "scope.value",
		`{"name":"b","dimensions":{"t":{}},"reset":{"type":"weekly"}}`:                                       "reset.type",
		`{"name":"b","dimensions":{"t":{}},"reset":{"type":"interval","every_ms":59999}}`:                    "reset.every_ms",
		`{"name":"b","dimensions":{"t":{}},"reset":{"type":"calendar","unit":"year"}}`:                       "reset.unit",
		`{"name":"b","dimensions":{"t":{}},"reset":{"type":"calendar","unit":"day","timezone":"Mars/Base"}}`: "reset.timezone",
		`{"name":"b","dimensions":{"t":{}},"reset":{"type":"calendar","unit":"day","timezone":"Local"}}`:     "reset.timezone",
		`{"name":"b","dimensions":{"t":{}},"approval":{"timeout_ms":-1}}`:                                    "approval.timeout_ms",
		`{"name":"b","dimensions":{"t":{}},"approval":{"timeout_behavior":"shrug"}}`:                         "approval.timeout_behavior",
		`{"name":"b","dimensions":{"t":{}},"approval":{"default_raise":{"t":1}}}`:                            "approval.default_raise.t",
		`{"name":"b","dimensions":{"t":{"hard":1}},"approval":{"default_raise":{"t":0}}}`:                    "approval.default_raise.t",
		`{"name":"b","dimensions":{"t":{}},"parent":"` + strings.Repeat("x", 129) + `"}`:                     "parent",
	} {
		var d BudgetDefinition
		if err := json.Unmarshal([]byte(text), &d); err != nil {
			t.Fatal(err)
		}
		if err := wantCode(t, d.Normalize(), base.CodeInvalidBudget); err.Field != field {
			t.Errorf("%s: field %q, want %q", text, err.Field, field)
		}
	}
}

func TestB2_defaults_are_filled_in_and_equal_scopes_are_equal_texts(t *testing.T) {
	t.Parallel()
	d := define(t, `{"name":"b","dimensions":{"t":{"hard":1}}}`)
	want := BudgetApproval{TimeoutMS: 604_800_000, TimeoutBehavior: BehaviorFail}
	if d.Scope.Type != ScopeNone || d.OnHard != OnHardBlockNew || d.OnLeaseLoss != OnLossRelease || !cmp.Equal(d.Approval, want) {
		t.Errorf("%+v", d)
	}
	id := base.IDOf(base.UUID{15: 9})
	full, bare := define(t, `{"name":"b","dimensions":{"t":{}},"scope":{"type":"execution","value":"`+id.String()+`"}}`),
		define(t, `{"name":"b","dimensions":{"t":{}},"scope":{"type":"execution","value":"`+id.UUID.String()+`"}}`)
	if full.Scope != bare.Scope {
		t.Errorf("%v and %v", full.Scope, bare.Scope)
	}
}

func TestB2_create_is_idempotent_by_name_and_id(t *testing.T) {
	t.Parallel()
	k := openBank(t)
	const text = `{"name":"b","dimensions":{"t":{"hard":10,"soft":5}},"reset":{"type":"calendar","unit":"day"}}`
	id := k.open(text)
	k.open(`{"name":"child","dimensions":{"t":{}}}`, id)
	b := k.budget(id)
	if err := b.CheckSame(define(t, text), base.UUID{}); err != nil {
		t.Errorf("the same definition: %v", err)
	}
	same := define(t, text)
	same.ID = id
	if err := b.CheckSame(same, base.UUID{}); err != nil {
		t.Errorf("the same definition by id: %v", err)
	}
	for name, other := range map[string]string{
		"limit": `{"name":"b","dimensions":{"t":{"hard":11,"soft":5}},"reset":{"type":"calendar","unit":"day"}}`,
		"reset": `{"name":"b","dimensions":{"t":{"hard":10,"soft":5}}}`,
		"name":  `{"name":"c","dimensions":{"t":{"hard":10,"soft":5}},"reset":{"type":"calendar","unit":"day"}}`,
		"scope": `{"name":"b","scope":{"type":"namespace"},"dimensions":{"t":{"hard":10,"soft":5}},"reset":{"type":"calendar","unit":"day"}}`,
	} {
		if err := b.CheckSame(define(t, other), base.UUID{}); base.CodeOf(err) != base.CodeBudgetAlreadyExists {
			t.Errorf("another %s: %v", name, err)
		}
	}
	wantCode(t, b.CheckSame(define(t, text), base.UUID{1}), base.CodeBudgetAlreadyExists)
	same.ID = base.UUID{7}
	wantCode(t, b.CheckSame(same, base.UUID{}), base.CodeBudgetAlreadyExists)
	if k.told("budget.created", id) != 1 {
		t.Error("budget.created was not told once")
	}
}

func TestB2_eight_levels_are_allowed_and_no_ninth(t *testing.T) {
	t.Parallel()
	k := openBank(t)
	const text = `{"name":"b","dimensions":{"t":{}}}`
	line := []base.UUID{k.open(text)}
	for range 7 {
		line = append([]base.UUID{k.open(text, line[0])}, line...)
	}
	if got := k.budget(line[0]).Ancestors; !slices.Equal(got, line[1:]) {
		t.Errorf("ancestors %v, want %v", got, line[1:])
	}
	_, err := NewBudget(&Effects{Now: k.now}, "n", define(t, text), k.mint(), k.budget(line[0]))
	if e := wantCode(t, err, base.CodeInvalidBudget); e.Field != "parent" {
		t.Errorf("field %q", e.Field)
	}
}

func TestB4_update_changes_the_definition_and_counts_it(t *testing.T) {
	t.Parallel()
	k := openBank(t)
	id := k.open(`{"name":"b","dimensions":{"t":{"hard":100,"soft":50},"u":{}}}`)
	name, one := "c", int64(1)
	u := BudgetUpdate{ExpectedRevision: &one, Name: &name, Reset: &BudgetReset{Type: ResetInterval, EveryMS: base.Hour}}
	u.Dimensions = map[string]DimensionUpdate{
		"t": {Soft: LimitChange{Set: true}}, "u": {Remove: true}, "v": {Hard: LimitChange{true, &[]int64{7}[0]}},
	}
	if changed := must[bool](t)(k.update(id, u)); !changed {
		t.Fatal("nothing changed")
	}
	b := k.budget(id)
	if b.Name != "c" || b.Revision != 2 || b.NextResetAt == 0 || b.Dimensions["t"].Soft != nil || *b.Dimensions["t"].Hard != 100 ||
		b.Dimensions["u"] != nil || *b.Dimensions["v"].Hard != 7 {
		t.Errorf("%+v", b)
	}
	want := []any{"name", "dimensions.t", "dimensions.u", "dimensions.v", "reset"}
	if diff := cmp.Diff(want, k.lastTold("budget.updated")["changed"]); diff != "" {
		t.Error(diff)
	}
	_, err := k.update(id, u)
	if e := wantCode(t, err, base.CodeStaleVersion); e.Details["revision"] != int64(2) {
		t.Errorf("%+v", e)
	}
	u.ExpectedRevision = nil
	u.Dimensions = nil
	if changed := must[bool](t)(k.update(id, u)); changed || k.budget(id).Revision != 2 {
		t.Error("the same again counts as a change")
	}
	_, err = k.update(base.UUID{9}, u)
	wantCode(t, err, base.CodeBudgetNotFound)
	_, err = k.update(id, hard("t", 0))
	wantCode(t, err, base.CodeInvalidBudget)
}

func TestB4_a_limit_does_not_go_below_what_is_used_and_reserved(t *testing.T) {
	t.Parallel()
	k := openBank(t)
	id := k.open(`{"name":"b","dimensions":{"tokens":{"hard":100,"default_reserve":30}}}`)
	s := k.running(`{}`, id)
	must[UsageOutcome](t)(k.report(s, s.fence(), amounts("tokens", 10)))
	k.want(id, "tokens", 10, 20, 0)
	_, err := k.update(id, hard("tokens", 29))
	if e := wantCode(t, err, base.CodeInvalidBudget); e.Field != "dimensions.tokens.default_reserve" {
		t.Fatalf("field %q", e.Field)
	}
	tokens := DimensionUpdate{Hard: LimitChange{true, &[]int64{29}[0]}, DefaultReserve: LimitChange{Set: true}}
	_, err = k.update(id, BudgetUpdate{Dimensions: map[string]DimensionUpdate{"tokens": tokens}})
	if e := wantCode(t, err, base.CodeLimitBelowUsage); e.Details["minimum"] != int64(30) {
		t.Errorf("%+v", e)
	}
	must[bool](t)(k.update(id, hard("tokens", 30)))
	_, err = k.update(id, BudgetUpdate{Dimensions: map[string]DimensionUpdate{"tokens": {Remove: true}, "x": {}}})
	wantCode(t, err, base.CodeBudgetInUse)
	k.on(s, func() { must[CompleteAnswer](t)(s.complete(s.fence(), nil)) })
	must[bool](t)(k.update(id, BudgetUpdate{Dimensions: map[string]DimensionUpdate{"tokens": {Remove: true}, "x": {}}}))
}

func TestB5_a_closed_budget_admits_no_work_and_still_settles(t *testing.T) {
	t.Parallel()
	k := openBank(t)
	id := k.open(`{"name":"b","dimensions":{"tokens":{"hard":100}}}`)
	s := k.running(`{}`, id)
	turn := func(how func(*BudgetSet, *Effects, base.UUID, *int64) (bool, error), want bool) {
		t.Helper()
		var changed bool
		err := k.do(func(fx *Effects) (err error) { changed, err = how(k.books, fx, id, nil); return err })
		if err != nil || changed != want {
			t.Fatalf("changed %v, %v", changed, err)
		}
	}
	turn((*BudgetSet).Close, true)
	turn((*BudgetSet).Close, false)
	if refusal := k.claim(k.submit(`{}`), id); refusal == nil || string(refusal.Detail) != `{"state":"closed"}` {
		t.Errorf("%+v", refusal)
	}
	_, err := k.charge(ChargeCommand{Budget: id, Usage: amounts("tokens", 1)}, nil)
	wantCode(t, err, base.CodeBudgetClosed)
	must[UsageOutcome](t)(k.report(s, s.fence(), amounts("tokens", 10)))
	k.want(id, "tokens", 10, 0, 0)
	turn((*BudgetSet).Reopen, true)
	if !slices.Contains(k.freed, id) || k.claim(k.submit(`{}`), id) != nil {
		t.Error("an open budget admits")
	}
	if k.told("budget.closed", id) != 1 || k.told("budget.reopened", id) != 1 {
		t.Error("closing and reopening are told once each")
	}
}

func TestB5_a_budget_that_somebody_needs_is_not_deleted(t *testing.T) {
	t.Parallel()
	k := openBank(t)
	id := k.open(`{"name":"b","dimensions":{"tokens":{"hard":100}}}`)
	s := k.running(`{}`, id)
	remove := func(f DeleteFacts) error {
		return k.do(func(fx *Effects) error { return k.books.Delete(fx, id, f) })
	}
	wantCode(t, remove(DeleteFacts{}), base.CodeBudgetInUse)
	k.on(s, func() { must[LeaveAnswer](t)(s.release(s.fence())) })
	wantCode(t, remove(DeleteFacts{Children: true}), base.CodeBudgetInUse)
	wantCode(t, remove(DeleteFacts{Named: true}), base.CodeBudgetInUse)
	if err := remove(DeleteFacts{}); err != nil || k.stored[id] != nil || k.told("budget.deleted", id) != 1 {
		t.Fatalf("delete: %v", err)
	}
	wantCode(t, remove(DeleteFacts{}), base.CodeBudgetNotFound)
	if refusal := k.claim(k.submit(`{}`), id); refusal == nil || string(refusal.Detail) != `"unreadable"` || refusal.Retry == 0 {
		t.Errorf("B3: a budget that is not there: %+v", refusal)
	}
}

func TestB3_a_stored_budget_that_no_rule_can_have_written_is_corruption(t *testing.T) {
	t.Parallel()
	k := openBank(t)
	id := k.open(`{"name":"b","dimensions":{"t":{"hard":10}},"reset":{"type":"calendar","unit":"day"}}`)
	for name, spoil := range map[string]func(*Budget){
		"used above the limit": func(b *Budget) { b.Dimensions["t"].Used = 11 },
		"negative":             func(b *Budget) { b.Dimensions["t"].Reserved = -1 },
		"no dimension":         func(b *Budget) { b.Dimensions["t"] = nil },
		"no dimensions":        func(b *Budget) { b.Dimensions = nil },
		"hard 0":               func(b *Budget) { b.Dimensions["t"].Hard = new(int64) },
		"action":               func(b *Budget) { b.OnHard = "x" },
		"no zone":              func(b *Budget) { b.Reset.Timezone = "" },
		"interval":             func(b *Budget) { b.Reset = BudgetReset{Type: ResetInterval, EveryMS: 1} },
		"no next reset":        func(b *Budget) { b.NextResetAt = 0 },
		"epoch":                func(b *Budget) { b.Epoch = 0 },
		"levels":               func(b *Budget) { b.Ancestors = make([]base.UUID, 8) },
	} {
		b := k.budget(id)
		spoil(b)
		if _, err := DecodeBudget(b.Encode()); base.CodeOf(err) != base.CodeCorruption {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := DecodeBudget([]byte("{"))
	wantCode(t, err, base.CodeCorruption)
}
