package core

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

func TestB3_a_policy_with_budgets_is_kept_as_it_was_given(t *testing.T) {
	t.Parallel()
	text := `{"budgets":[{"name":"mine","parent":"above","dimensions":{"tokens":{"hard":20,"soft":10,"default_reserve":0},"calls":{}},` +
		`"reset":{"type":"interval","every_ms":60000,"anchor_at":"2031-05-17T12:00:00.000Z"},"on_hard":"fail","on_lease_loss":"forfeit",` +
		`"approval":{"timeout_ms":5,"default_raise":{"tokens":3}}},{"dimensions":{"tokens":{"hard":1}},"reset":{"type":"calendar","unit":"day","timezone":"Europe/Berlin"}}]}`
	p, err := ParsePolicy([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Budgets) != 2 || p.Budgets[0].OnHard != OnHardFail || p.Budgets[1].OnHard != OnHardBlockNew || p.Budgets[1].Name != "" {
		t.Fatalf("%+v", p.Budgets)
	}
	for _, written := range [][]byte{p.Encode(), p.Canonical()} {
		again, err := DecodePolicy(written)
		if err != nil {
			t.Fatalf("%v: %s", err, written)
		}
		if diff := cmp.Diff(p.Budgets, again.Budgets); diff != "" {
			t.Fatal(diff)
		}
		if string(again.Canonical()) != string(p.Canonical()) {
			t.Fatalf("L83: %s", again.Canonical())
		}
	}
}

func TestB3_a_faulty_budget_in_a_policy_is_named(t *testing.T) {
	t.Parallel()
	for text, field := range map[string]string{
		`{"budgets":[{"name":"a"}]}`:                                                                                            "budgets[0].dimensions",
		`{"budgets":[{"dimensions":{"tokens":{"hard":0}}}]}`:                                                                    "budgets[0].dimensions.tokens.hard",
		`{"budgets":[{"dimensions":{"tokens":{"hard":2,"soft":3}}}]}`:                                                           "budgets[0].dimensions.tokens.soft",
		`{"budgets":[{"dimensions":{"tokens":{"hard":-1}}}]}`:                                                                   "budgets[0].dimensions.tokens.hard",
		`{"budgets":[{"dimensions":{"tokens":{"limit":1}}}]}`:                                                                   "budgets[0].dimensions.tokens.limit",
		`{"budgets":[{"scope":{"type":"namespace"},"dimensions":{"tokens":{}}}]}`:                                               "budgets[0].scope",
		`{"budgets":[{"on_hard":"shout","dimensions":{"tokens":{}}}]}`:                                                          "budgets[0].on_hard",
		`{"budgets":[{"reset":{"type":"calendar","unit":"day","timezone":"Nowhere/None"},"dimensions":{"tokens":{}}}]}`:         "budgets[0].reset.timezone",
		`{"budgets":[{"reset":{"type":"interval","every_ms":60000,"anchor_at":"soon"},"dimensions":{"tokens":{}}}]}`:            "budgets[0].reset.anchor_at",
		`{"budgets":[{"budget_id":"x","dimensions":{"tokens":{}}}]}`:                                                            "budgets[0].budget_id",
		`{"budgets":[{"dimensions":{"a":{}}},{"dimensions":{"a":{}}},{"dimensions":{"a":{}}},{"dimensions":{"a":{}}},{"x":1}]}`: "budgets",
	} {
		_, err := ParsePolicy([]byte(text))
		refusal := wantCode(t, err, base.CodeInvalidPolicy)
		if refusal.Field != field {
			t.Errorf("%s: %s, want %s", text, refusal.Field, field)
		}
	}
}

func TestL83_a_policy_without_budgets_has_the_text_it_always_had(t *testing.T) {
	t.Parallel()
	p, err := ParsePolicy([]byte(`{"budgets":[]}`))
	if err != nil || string(p.Canonical()) != string(DefaultPolicy().Canonical()) || p.Encode() != nil {
		t.Fatalf("%v, %s", err, p.Canonical())
	}
}
