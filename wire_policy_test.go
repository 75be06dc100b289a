package flowfabric

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/testseed"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func TestU32_a_policy_read_from_json_is_the_one_that_was_written(t *testing.T) {
	t.Parallel()
	testseed.Check(t, func(t *rapid.T) {
		policy := &Policy{}
		draw(t, reflect.ValueOf(policy).Elem())
		for _, kept := range []*time.Duration{&policy.Retention.Failed, &policy.Retention.Succeeded} {
			*kept = rapid.SampledFrom([]time.Duration{0, KeepForever, time.Hour}).Draw(t, "kept")
		}
		for _, count := range []*int{&policy.MaxReclaims, &policy.MaxReplays} {
			*count = rapid.IntRange(-1, 9).Draw(t, "count")
		}
		text := must(json.Marshal(Submission{Kind: "k", SubmitOptions: SubmitOptions{Policy: policy}}))
		var read Submission
		if err := json.Unmarshal(text, &read); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		again := must(json.Marshal(read))
		read.Policy.text = nil
		if !reflect.DeepEqual(read.Policy, policy) || string(again) != string(text) {
			t.Fatalf("%s\nagain %s\n wrote %+v\n  read %+v", text, again, policy, read.Policy)
		}
	})
}

func TestU32_a_policy_keeps_what_has_no_field_here(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"another field", `{"kind":"k","policy":{"quotas":[{"quota":"q"}],"odd":1}}`, `{"quotas":[{"quota":"q"}],"odd":1}`},
		{"a shorthand", `{"kind":"k","fairness_key":"f","policy":{"slots_while_waiting":"hold"}}`, `{"fairness_key":"f","slots_while_waiting":"hold"}`},
		{"a shorthand and nothing else", `{"kind":"k","fairness_key":"f"}`, `{"fairness_key":"f"}`},
		{"capabilities", `{"kind":"k","requires":["gpu"],"policy":{"odd":1}}`, `{"routing_requirements":{"required_capabilities":["gpu"]},"odd":1}`},
		{"capabilities alone", `{"kind":"k","requires":["gpu"],"policy":{}}`, `{"routing_requirements":{"required_capabilities":["gpu"]}}`},
		{"nothing", `{"kind":"k"}`, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var s Submission
			if err := json.Unmarshal([]byte(c.text), &s); err != nil {
				t.Fatal(err)
			}
			if got := string(must(encodePolicy(s.Policy, s.short()))); got != c.want {
				t.Errorf("the rules see %s, want %s", got, c.want)
			}
		})
	}
}

func TestU32_a_policy_of_a_request_is_left_to_the_rules(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text, want string
		read             bool // the fields of the policy
	}{
		{name: "alone", text: `{"kind":"k","policy":{"max_replay_count":4,"odd":1}}`, want: `{"max_replay_count":4,"odd":1}`},
		{name: "a shorthand", text: `{"kind":"k","fairness_key":"f","policy":{"odd":1}}`, want: `{"fairness_key":"f","odd":1}`},
		{name: "capabilities", text: `{"kind":"k","requires":["gpu"],"policy":{"odd":1}}`, want: `{"routing_requirements":{"required_capabilities":["gpu"]},"odd":1}`},
		{name: "budgets", text: `{"kind":"k","policy":{"budgets":[{"hard":{"a":1}}]}}`, want: `{"budgets":[{"hard":{"a":1}}]}`, read: true},
		{name: "none", text: `{"kind":"k"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var w wire.Submission
			if err := wire.DecodeJSON([]byte(c.text), &w); err != nil {
				t.Fatal(err)
			}
			s := must(SubmissionOf(&w))
			if got := string(must(encodePolicy(s.Policy, s.short()))); got != c.want {
				t.Errorf("the rules see %s, want %s", got, c.want)
			}
			if s.Policy != nil && s.Policy.unread == c.read {
				t.Errorf("the fields of the policy were read: %t", c.read)
			}
		})
	}
	var twice wire.Submission
	if err := wire.DecodeJSON([]byte(`{"kind":"k","requires":["gpu"],"policy":{"routing_requirements":{"required_capabilities":["a"]}}}`), &twice); err != nil {
		t.Fatal(err)
	}
	s := must(SubmissionOf(&twice))
	if _, err := encodePolicy(s.Policy, s.short()); CodeOf(err) != string(core.CodeInvalidArgument) {
		t.Errorf("capabilities that are given twice are %v", err)
	}
}

func TestU32_a_policy_that_was_changed_after_reading_is_the_changed_one(t *testing.T) {
	t.Parallel()
	var s Submission
	if err := json.Unmarshal([]byte(`{"kind":"k","policy":{"max_replay_count":4,"retry_policy":{"retryable_categories":["a"]}}}`), &s); err != nil {
		t.Fatal(err)
	}
	s.Policy.Retry.Categories[0] = "b"
	if got := string(must(encodePolicy(s.Policy, Policy{}))); got != `{"retry_policy":{"retryable_categories":["b"]},"max_replay_count":4}` {
		t.Errorf("the rules see %s", got)
	}
}

func TestU5_a_submission_is_read_strictly(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text, field string
		code        core.Code
	}{
		{`{"kind":"k","lnae":"x"}`, "/lnae", core.CodeUnknownField},
		{`{}`, "/kind", core.CodeMissingField},
		{`{"kind":"k","delay_ms":1,"delay_until":"2030-01-01T00:00:00Z"}`, "", core.CodeInvalidArgument},
		{`{"kind":"k","fairness_key":"f","policy":{"fairness_key":"g"}}`, "/fairness_key", core.CodeInvalidArgument},
	} {
		var s Submission
		err := s.UnmarshalJSON([]byte(c.text))
		var e *Error
		if !errors.As(err, &e) || e.Code != string(c.code) || c.field != "" && e.Field != c.field {
			t.Errorf("%s: %v, want %s at %s", c.text, err, c.code, c.field)
		}
	}
}

func TestU32_a_limit_of_0_is_refused_where_work_is_read(t *testing.T) {
	t.Parallel()
	const own = `"budgets":[{"dimensions":{"tokens":{"hard":1}}},{"dimensions":{"tokens":{"soft":0}}}]`
	for _, c := range []struct {
		text, place string
		into        json.Unmarshaler
	}{
		{`{"kind":"k",` + own + `}`, "", &Submission{}},
		{`{"kind":"k",` + own + `}`, "", &Flow{}},
		{`{"kind":"k","nodes":[{"name":"a","kind":"k",` + own + `}]}`, "nodes[0].", &Flow{}},
		{`{"kind":"k","defaults":{` + own + `},"nodes":[{"name":"a","kind":"k"}]}`, "defaults.", &Flow{}},
		{`{"nodes":[{"name":"a","kind":"k",` + own + `}]}`, "nodes[0].", &FlowExtension{}},
	} {
		if err := c.into.UnmarshalJSON([]byte(c.text)); CodeOf(err) != string(core.CodeInvalidBudget) || fieldOf(err) != c.place+"budgets[1].dimensions.tokens.soft" {
			t.Errorf("%s: %v", c.text, err)
		}
	}
}
