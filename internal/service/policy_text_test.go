package service

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// The submissions whose policies are checked: as JSON, and what the rules see of them.
var policyTexts = []struct{ name, text, want string }{
	{"nothing", `{"kind":"k"}`, ``},
	{"a policy alone", `{"kind":"k","policy":{"max_replay_count":4,"odd":1}}`, `{"max_replay_count":4,"odd":1}`},
	{"what has no field in Go", `{"kind":"k","policy":{"quotas":[{"quota":"q"}],"odd":1}}`, `{"quotas":[{"quota":"q"}],"odd":1}`},
	{"a field beside the policy", `{"kind":"k","fairness_key":"f","policy":{"slots_while_waiting":"hold"}}`, `{"fairness_key":"f","slots_while_waiting":"hold"}`},
	{"a field and no policy", `{"kind":"k","fairness_key":"f"}`, `{"fairness_key":"f"}`},
	{"capabilities", `{"kind":"k","requires":["gpu"],"policy":{"odd":1}}`, `{"routing_requirements":{"required_capabilities":["gpu"]},"odd":1}`},
	{"capabilities and an empty policy", `{"kind":"k","requires":["gpu"],"policy":{}}`, `{"routing_requirements":{"required_capabilities":["gpu"]}}`},
	{"budgets", `{"kind":"k","policy":{"budgets":[{"hard":{"a":1}}]}}`, `{"budgets":[{"hard":{"a":1}}]}`},
	{"no object", `{"kind":"k","requires":["gpu"],"policy":[1]}`, `[1]`},
}

func TestU32_the_rules_see_the_policy_of_a_request_as_it_was_written(t *testing.T) {
	t.Parallel()
	for _, c := range policyTexts {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var request, read api.Submission
			if err := wire.DecodeJSON([]byte(c.text), &request); err != nil { // as the server reads it
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(c.text), &read); err != nil { // as programs do
				t.Fatal(err)
			}
			for _, s := range []*api.Submission{&request, &read} {
				sub, err := coreSubmission(s, base.GivenID{}, "default")
				if err != nil || string(sub.PolicyJSON) != c.want {
					t.Errorf("the rules see %s, %v, want %s", sub.PolicyJSON, err, c.want)
				}
			}
		})
	}
}

func TestU32_a_field_beside_the_policy_and_in_it_is_refused(t *testing.T) {
	t.Parallel()
	for field, text := range map[string]string{
		"requires":     `{"kind":"k","requires":["gpu"],"policy":{"routing_requirements":{"required_capabilities":["a"]}}}`,
		"fairness_key": `{"kind":"k","fairness_key":"f","policy":{"fairness_key":"g"}}`,
		"budget_ids":   `{"kind":"k","budget_ids":["f"],"policy":{"budget_ids":["g"]}}`,
		"estimate":     `{"kind":"k","estimate":{"a":1},"policy":{"estimate":{"b":1}}}`,
		"quotas":       `{"kind":"k","quotas":[{"quota":"f"}],"policy":{"quotas":[{"quota":"g"}]}}`,
		"budgets":      `{"kind":"k","budgets":[{"dimensions":{}}],"policy":{"budgets":[{"dimensions":{}}]}}`,
	} {
		var request, read api.Submission
		if err := wire.DecodeJSON([]byte(text), &request); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(text), &read); err != nil {
			t.Fatal(err)
		}
		for _, s := range []*api.Submission{&request, &read} {
			_, err := coreSubmission(s, base.GivenID{}, "default")
			var refusal *api.Error
			if !errors.As(api.AsError(err), &refusal) || refusal.Code != string(base.CodeInvalidArgument) || refusal.Field != field {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
}

func TestU32_a_policy_that_was_changed_after_reading_is_the_changed_one(t *testing.T) {
	t.Parallel()
	var s api.Submission
	if err := json.Unmarshal([]byte(`{"kind":"k","policy":{"max_replay_count":4,"retry_policy":{"retryable_categories":["a"]}}}`), &s); err != nil {
		t.Fatal(err)
	}
	s.Policy.Retry.Categories[0] = "b"
	const want = `{"retry_policy":{"retryable_categories":["b"]},"max_replay_count":4}`
	if sub, err := coreSubmission(&s, base.GivenID{}, "default"); err != nil || string(sub.PolicyJSON) != want {
		t.Errorf("the rules see %s, %v", sub.PolicyJSON, err)
	}
}

func TestU32_a_budget_that_contradicts_itself_is_refused_where_it_was_given(t *testing.T) {
	t.Parallel()
	const own = `"budgets":[{"dimensions":{},"reset":{"type":"none","unit":"day"}}]`
	for field, text := range map[string]string{"budgets[0].reset": `{"kind":"k",` + own + `}`, "policy.budgets[0].reset": `{"kind":"k","policy":{` + own + `}}`} {
		var s api.Submission
		if err := wire.DecodeJSON([]byte(text), &s); err != nil {
			t.Fatal(err)
		}
		_, err := coreSubmission(&s, base.GivenID{}, "default")
		var refusal *api.Error
		if !errors.As(err, &refusal) || refusal.Code != string(base.CodeInvalidBudget) || refusal.Field != field {
			t.Errorf("%s: %v", text, err)
		}
	}
}
