package core

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/stream"
)

func mustParsePolicy(t *testing.T, text string) *Policy {
	t.Helper()
	p, err := ParsePolicy([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return p
}

// within puts a value into the object at the path, e.g. a.b: {"a":{"b":value}}.
func within(path, value string) string {
	for _, key := range reversed(strings.Split(path, ".")) {
		value = fmt.Sprintf(`{%q:%s}`, key, value)
	}
	return value
}

func reversed(parts []string) []string {
	var out []string
	for i := len(parts) - 1; i >= 0; i-- {
		out = append(out, parts[i])
	}
	return out
}

func TestL11_every_number_holds_at_the_bound_below_and_above(t *testing.T) {
	t.Parallel()
	const day = int64(86_400_000)
	const year = 365 * day
	cases := []struct {
		path      string
		low, high int64
	}{
		{"retry_policy.max_retries", 0, 10_000},
		{"retry_policy.backoff.initial_ms", 0, 7 * day},
		{"retry_policy.backoff.max_ms", 1000, 30 * day}, // not below the default of initial_ms
		{"retry_policy.max_elapsed_ms", 1, 10 * year},
		{"timeout_policy.attempt_timeout_ms", 1, 365 * day},
		{"timeout_policy.execution_deadline_ms", 1, 10 * year},
		{"lease_grace_ms", 0, 600_000},
		{"max_reclaim_count", 0, 10_000},
		{"max_replay_count", 0, 1000},
		{"dedup_window_ms", 1000, 90 * day},
		{"retention_ms", -1, 10 * year},
		{"retention_ms.succeeded", -1, 10 * year},
		{"retention_ms.failed", -1, 10 * year},
		{"retention_ms.cancelled", -1, 10 * year},
		{"retention_ms.expired", -1, 10 * year},
		{"retention_ms.skipped", -1, 10 * year},
		{"estimate.input_tokens", 0, 1<<53 - 1},
		{"suspension_policy.default_timeout_ms", 1, 31_536_000_000},
		{"max_signals_per_execution", 1, 100_000},
		{"stream_policy.max_frames", 1, 1_000_000},
		{"stream_policy.max_bytes", 65_536, 1 << 30},
		{"stream_policy.best_effort.ttl_ms", 1000, 600_000},
		{"stream_policy.best_effort.floor", 1, 16_384},
		{"stream_policy.best_effort.ceiling", 64, 65_536}, // not below the default of floor
	}
	for _, c := range cases {
		t.Run(c.path, func(t *testing.T) {
			t.Parallel()
			for _, n := range []int64{c.low, c.low + 1, c.high - 1, c.high} {
				p := mustParsePolicy(t, within(c.path, fmt.Sprint(n)))
				if !strings.Contains(string(p.Canonical()), fmt.Sprintf(":%d", n)) {
					t.Errorf("%d is not kept: %s", n, p.Canonical())
				}
			}
			for _, value := range []string{
				fmt.Sprint(c.low - 1), fmt.Sprint(c.high + 1), "99999999999999999999", "1.5", "1e3", "1.0", `"1"`, "true", "null", "[]",
			} {
				_, err := ParsePolicy([]byte(within(c.path, value)))
				expect(t, err, base.CodeInvalidPolicy, c.path)
			}
		})
	}
}

func TestL11_every_fraction_holds_at_its_bounds(t *testing.T) {
	t.Parallel()
	cases := []struct {
		path    string
		good    []string
		refused []string
	}{
		{"retry_policy.backoff.multiplier", []string{"1", "1.0", "2.5", "1e2", "100.0"}, []string{"0.999", "100.001", "-1", "1e999", `"2"`, "null", "{}"}},
		{"retry_policy.backoff.jitter", []string{"0", "0.0", "0.5", "1", "1.0"}, []string{"-0.001", "1.001", `"0"`, "false"}},
		{"stream_policy.best_effort.alpha", []string{"0.0001", "0.2", "1"}, []string{"0", "0.0", "-1", "1.0001", "1e-999", "null"}},
	}
	for _, c := range cases {
		for _, value := range c.good {
			mustParsePolicy(t, within(c.path, value))
		}
		for _, value := range c.refused {
			_, err := ParsePolicy([]byte(within(c.path, value)))
			expect(t, err, base.CodeInvalidPolicy, c.path)
		}
	}
}

func TestL11_every_word_is_one_of_its_list(t *testing.T) {
	t.Parallel()
	for path, words := range map[string][]string{
		"slots_while_waiting":                {"release", "hold"},
		"suspension_policy.timeout_behavior": {"fail", "cancel", "expire", "auto_resume_with_timeout_signal", "escalate"},
		"stream_policy.on_full":              {"drop_oldest", "refuse"},
		"retry_policy.backoff.strategy":      {"exponential"},
	} {
		for _, word := range words {
			mustParsePolicy(t, within(path, `"`+word+`"`))
		}
		for _, value := range []string{`""`, `"Release"`, `"other"`, "1", "null", "{}"} {
			_, err := ParsePolicy([]byte(within(path, value)))
			expect(t, err, base.CodeInvalidPolicy, path)
		}
	}
}

func TestL11_texts_and_lists_hold_at_their_bounds(t *testing.T) {
	t.Parallel()
	list := func(n int, item string) string {
		return "[" + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + "]"
	}
	text := func(n int) string { return `"` + strings.Repeat("a", n) + `"` }
	dimensions := func(n int) string {
		var members []string
		for i := range n {
			members = append(members, fmt.Sprintf(`"d%d":%d`, i, i))
		}
		return "{" + strings.Join(members, ",") + "}"
	}
	cases := []struct {
		path  string
		value string
		field string // "" when accepted
	}{
		{"fairness_key", text(1), ""},
		{"fairness_key", text(128), ""},
		{"fairness_key", text(129), "fairness_key"},
		{"fairness_key", `""`, "fairness_key"},
		{"fairness_key", `"a\nb"`, "fairness_key"},
		{"fairness_key", `"\u00e9 x"`, ""},
		{"budget_ids", list(0, ""), ""},
		{"budget_ids", list(16, text(128)), ""},
		{"budget_ids", list(17, text(1)), "budget_ids"},
		{"budget_ids", `["a","","c"]`, "budget_ids[1]"},
		{"budget_ids", `["a",2]`, "budget_ids[1]"},
		{"budget_ids", `"a"`, "budget_ids"},
		{"retry_policy.retryable_categories", list(64, text(64)), ""},
		{"retry_policy.retryable_categories", list(65, text(1)), "retry_policy.retryable_categories"},
		{"retry_policy.retryable_categories", `["a",` + text(65) + `]`, "retry_policy.retryable_categories[1]"},
		{"retry_policy.retryable_categories", `["A"]`, "retry_policy.retryable_categories[0]"},
		{"quotas", list(8, `{"quota":"q"}`), ""},
		{"quotas", list(9, `{"quota":"q"}`), "quotas"},
		{"quotas", `[{"quota":"q","key":` + text(128) + `}]`, ""},
		{"quotas", `[{"quota":"q","key":` + text(129) + `}]`, "quotas[0].key"},
		{"quotas", `[{"quota":"q"},{"key":"k"}]`, "quotas[1].quota"},
		{"quotas", `[{"quota":"-q"}]`, "quotas[0].quota"},
		{"quotas", `[{"quota":` + text(129) + `}]`, "quotas[0].quota"},
		{"quotas", `[{"quota":"q","limit":1}]`, "quotas[0].limit"},
		{"quotas", `["q"]`, "quotas[0]"},
		{"estimate", dimensions(32), ""},
		{"estimate", dimensions(33), "estimate.d32"},
		{"estimate", `{"Tokens":1}`, "estimate.Tokens"},
		{"estimate", `{"":1}`, "estimate."},
		{"routing_requirements.required_capabilities", `["b","a","b"]`, ""},
		{"routing_requirements.required_capabilities", `[1]`, "routing_requirements.required_capabilities[0]"},
		{"routing_requirements.required_capabilities", `"a"`, "routing_requirements.required_capabilities"},
		{"retention_ms", `{}`, ""},
		{"retention_ms", `{"completed":1}`, "retention_ms.completed"},
	}
	for _, c := range cases {
		_, err := ParsePolicy([]byte(within(c.path, c.value)))
		code := base.CodeInvalidPolicy
		if c.field == "" {
			code = ""
		}
		expect(t, err, code, c.field)
	}
}

func TestL11_backoff_fields_belong_to_their_strategy(t *testing.T) {
	t.Parallel()
	cases := []struct{ backoff, field string }{
		{`{}`, ""},
		{`{"strategy":"fixed","delay_ms":0}`, ""},
		{`{"delay_ms":2592000000,"strategy":"fixed","jitter":0.5}`, ""},
		{`{"strategy":"fixed","delay_ms":2592000001}`, "delay_ms"},
		{`{"strategy":"fixed"}`, "delay_ms"},
		{`{"strategy":"fixed","delay_ms":5,"initial_ms":5}`, "initial_ms"},
		{`{"max_ms":5,"strategy":"fixed","delay_ms":5}`, "max_ms"},
		{`{"strategy":"fixed","delay_ms":5,"multiplier":2}`, "multiplier"},
		{`{"delay_ms":5}`, "delay_ms"},
		{`{"initial_ms":5,"max_ms":5}`, ""},
		{`{"max_ms":5,"initial_ms":6}`, "max_ms"},
		{`{"max_ms":999}`, "max_ms"},
		{`{"initial_ms":60001}`, ""},
	}
	for _, c := range cases {
		_, err := ParsePolicy([]byte(within("retry_policy.backoff", c.backoff)))
		if c.field == "" {
			expect(t, err, "", "")
			continue
		}
		expect(t, err, base.CodeInvalidPolicy, "retry_policy.backoff."+c.field)
	}
	if got := mustParsePolicy(t, `{"retry_policy":{"backoff":{"initial_ms":90000}}}`).Retry.MaxMS; got != 90_000 {
		t.Errorf("an initial delay above the default maximum gives a maximum of %d", got)
	}
	_, err := ParsePolicy([]byte(`{"stream_policy":{"best_effort":{"floor":100,"ceiling":99}}}`))
	expect(t, err, base.CodeInvalidPolicy, "stream_policy.best_effort.ceiling")
}

func TestL11_unknown_and_duplicate_fields_are_refused_at_any_depth_with_their_path(t *testing.T) {
	t.Parallel()
	for text, field := range map[string]string{
		`{"retries":1}`:              "retries",
		`{"Retry_policy":{}}`:        "Retry_policy",
		`{"":1}`:                     "",
		`{"retry_policy":{"max":1}}`: "retry_policy.max",
		`{"retry_policy":{"backoff":{"jiter":1}}}`:             "retry_policy.backoff.jiter",
		`{"timeout_policy":{"x":1}}`:                           "timeout_policy.x",
		`{"routing_requirements":{"x":[]}}`:                    "routing_requirements.x",
		`{"suspension_policy":{"x":1}}`:                        "suspension_policy.x",
		`{"stream_policy":{"best_effort":{"beta":1}}}`:         "stream_policy.best_effort.beta",
		`{"lease_grace_ms":1,"lease_grace_ms":1}`:              "lease_grace_ms",
		`{"lease_grace_ms":1,"lease_grace_m\u0073":1}`:         "lease_grace_ms",
		`{"retry_policy":{"backoff":{"jitter":0,"jitter":0}}}`: "retry_policy.backoff.jitter",
		`{"retention_ms":{"failed":1,"failed":1}}`:             "retention_ms.failed",
		`{"estimate":{"a":1,"a":1}}`:                           "estimate.a",
		`{"quotas":[{"quota":"q"},{"quota":"q","quota":"q"}]}`: "quotas[1].quota",
		`{"retry_policy":[]}`:                                  "retry_policy",
		`{"retry_policy":null}`:                                "retry_policy",
		`{"retry_policy":{"backoff":7}}`:                       "retry_policy.backoff",
		`{"stream_policy":{"best_effort":"x"}}`:                "stream_policy.best_effort",
		`{"quotas":{}}`:                                        "quotas",
		`[]`:                                                   "policy",
		`null`:                                                 "policy",
		`"{}"`:                                                 "policy",
		`{`:                                                    "policy",
		`{}{}`:                                                 "policy",
		`{"lease_grace_ms":01}`:                                "policy",
		"{\"fairness_key\":\"\xff\"}":                          "policy",
		strings.Repeat(`{"retry_policy":`, 3000) + "{}" + strings.Repeat("}", 3000): "retry_policy.retry_policy",
	} {
		_, err := ParsePolicy([]byte(text))
		expect(t, err, base.CodeInvalidPolicy, field)
	}
}

func TestL11_a_fault_of_capabilities_has_its_own_code_and_comes_after_the_others(t *testing.T) {
	t.Parallel()
	_, err := ParsePolicy([]byte(`{"routing_requirements":{"required_capabilities":["a b"]}}`))
	expect(t, err, base.CodeInvalidCapabilities, "routing_requirements.required_capabilities")
	if d := asError(t, err).Details; d["side"] != "required" || d["why"] != "whitespace_or_control" {
		t.Errorf("details %v", d)
	}
	_, err = ParsePolicy([]byte(`{"routing_requirements":{"required_capabilities":["a b"]},"zzz":1}`))
	expect(t, err, base.CodeInvalidPolicy, "zzz")
}

func TestL6_a_policy_has_at_most_64_kib(t *testing.T) {
	t.Parallel()
	padded := func(n int) []byte { return []byte("{" + strings.Repeat(" ", n-2) + "}") }
	for _, n := range []int{2, MaxPolicySize - 1, MaxPolicySize} {
		_, err := ParsePolicy(padded(n))
		expect(t, err, "", "")
	}
	_, err := ParsePolicy(padded(MaxPolicySize + 1))
	expect(t, err, base.CodeInvalidArgument, "policy")
}

// fullPolicy gives every field a value that is not its default.
const fullPolicy = ` {
	"retry_policy": {"max_retries": 7, "backoff": {"strategy": "exponential", "initial_ms": 5, "max_ms": 50, "multiplier": 1.5, "jitter": 0.25},
		"retryable_categories": ["timeout", "net.io"], "max_elapsed_ms": 99},
	"timeout_policy": {"attempt_timeout_ms": 11, "execution_deadline_ms": 12},
	"lease_grace_ms": 13, "max_reclaim_count": 14, "max_replay_count": 15,
	"routing_requirements": {"required_capabilities": ["gpu", "cuda"]},
	"fairness_key": "vip<\"\u00e9", "quotas": [{"quota": "q1", "key": "k"}, {"quota": "q2"}], "slots_while_waiting": "hold",
	"budget_ids": ["b2", "b1"], "dedup_window_ms": 1001,
	"retention_ms": {"succeeded": -1, "failed": 1, "cancelled": 2, "expired": 3, "skipped": 0},
	"estimate": {"wall_ms": 1, "cost_micros": 0},
	"suspension_policy": {"default_timeout_ms": 16, "timeout_behavior": "escalate"},
	"max_signals_per_execution": 17,
	"stream_policy": {"max_frames": 18, "max_bytes": 65537, "on_full": "refuse", "best_effort": {"ttl_ms": 1001, "floor": 2, "ceiling": 3, "alpha": 0.5}}
}`

func TestL11_LC3_every_field_arrives(t *testing.T) {
	t.Parallel()
	ms := func(n base.Millis) *base.Millis { return &n }
	want := &Policy{
		Retry: &RetryPolicy{
			MaxRetries: 7, Strategy: "exponential", InitialMS: 5, MaxMS: 50, Multiplier: 1.5, Jitter: 0.25,
			Categories: []string{"timeout", "net.io"}, MaxElapsedMS: 99,
		},
		AttemptTimeoutMS: 11, ExecutionDeadlineMS: 12, LeaseGraceMS: 13, MaxReclaims: 14, MaxReplays: 15,
		Capabilities: []string{"cuda", "gpu"}, FairnessKey: "vip<\"é",
		Quotas: []QuotaUse{{"q1", "k"}, {"q2", ""}}, SlotsWhileWaiting: "hold", BudgetIDs: []string{"b2", "b1"}, DedupWindowMS: 1001,
		Retention:  RetentionByStatus{Succeeded: ms(-1), Failed: ms(1), Cancelled: ms(2), Expired: ms(3), Skipped: ms(0)},
		Estimate:   map[string]int64{"wall_ms": 1, "cost_micros": 0},
		Suspension: SuspensionPolicy{16, "escalate"},
		MaxSignals: 17,
		Stream:     stream.Policy{MaxFrames: 18, MaxBytes: 65_537, OnFull: "refuse", BestEffort: stream.BestEffortPolicy{TTLMS: 1001, Floor: 2, Ceiling: 3, Alpha: 0.5}},
	}
	if diff := cmp.Diff(want, mustParsePolicy(t, fullPolicy)); diff != "" {
		t.Error(diff)
	}
}

func TestL11_defaults_are_those_of_the_table(t *testing.T) {
	t.Parallel()
	want := &Policy{
		MaxReclaims: 10, MaxReplays: 10, SlotsWhileWaiting: "release", DedupWindowMS: 86_400_000, MaxSignals: 1000,
		Suspension: SuspensionPolicy{0, "fail"},
		Stream:     stream.Policy{MaxFrames: 10_000, MaxBytes: 67_108_864, OnFull: "drop_oldest", BestEffort: stream.BestEffortPolicy{TTLMS: 30_000, Floor: 64, Ceiling: 16_384, Alpha: 0.2}},
	}
	for _, text := range []string{"", "{}", " { } ", `{"retention_ms":{},"estimate":{},"quotas":[],"timeout_policy":{}}`} {
		if diff := cmp.Diff(want, mustParsePolicy(t, text)); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
	retry := &RetryPolicy{MaxRetries: 25, Strategy: "exponential", InitialMS: 1000, MaxMS: 21_600_000, Multiplier: 2}
	if diff := cmp.Diff(retry, mustParsePolicy(t, `{"retry_policy":{}}`).Retry.Filled()); diff != "" {
		t.Error(diff)
	}
}

func TestL139_one_number_is_the_retention_of_every_terminal_status(t *testing.T) {
	t.Parallel()
	one := mustParsePolicy(t, `{"retention_ms":-1}`)
	each := mustParsePolicy(t, `{"retention_ms":{"succeeded":-1,"failed":-1,"cancelled":-1,"expired":-1,"skipped":-1}}`)
	if diff := cmp.Diff(each, one); diff != "" {
		t.Error(diff)
	}
}

// leftOutAside compares retry policies by their values.
func leftOutAside() cmp.Option {
	return cmp.Transformer("values", func(r RetryPolicy) RetryPolicy {
		r.LeftOut = 0
		return r
	})
}

func samplePolicies() []string {
	return []string{
		"", fullPolicy, `{"retry_policy":{}}`, `{"retry_policy":{"backoff":{"strategy":"fixed","delay_ms":0}}}`,
		`{"retry_policy":{"backoff":{"initial_ms":90000}}}`, `{"retry_policy":{"backoff":{"initial_ms":90000,"max_ms":90001}}}`,
		`{"retention_ms":5}`, `{"retention_ms":{"failed":0}}`, `{"fairness_key":"a\"b\\c"}`, `{"stream_policy":{"best_effort":{"alpha":1e-7}}}`,
	}
}

func TestL83_the_canonical_text_has_sorted_keys_and_is_stable(t *testing.T) {
	t.Parallel()
	for _, text := range samplePolicies() {
		p := mustParsePolicy(t, text)
		canonical := p.Canonical()
		again := mustParsePolicy(t, string(canonical))
		if diff := cmp.Diff(p, again, leftOutAside()); diff != "" { // the canonical text has a value for what was left out
			t.Errorf("%s: %s", text, diff)
		}
		if string(again.Canonical()) != string(canonical) {
			t.Errorf("%s is not stable", canonical)
		}
		var tree map[string]any
		if err := json.Unmarshal(canonical, &tree); err != nil {
			t.Fatal(err)
		}
		sorted, _ := json.Marshal(tree)
		if !sameKeyOrder(canonical, sorted) {
			t.Errorf("keys are not sorted:\n%s\n%s", canonical, sorted)
		}
	}
}

// sameKeyOrder compares the strings of two JSON texts in order: number formats and escapes may differ.
func sameKeyOrder(a, b []byte) bool {
	return cmp.Equal(jsonStrings(a), jsonStrings(b))
}

func jsonStrings(text []byte) []string {
	var found []string
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	for {
		token, err := decoder.Token()
		if err != nil {
			return found
		}
		if word, ok := token.(string); ok {
			found = append(found, word)
		}
	}
}

func TestL83_the_canonical_text_does_not_depend_on_spelling(t *testing.T) {
	t.Parallel()
	a := mustParsePolicy(t, `{"lease_grace_ms":5,"retry_policy":{"backoff":{"multiplier":2.0}}}`)
	b := mustParsePolicy(t, ` {"retry_policy" : { "max_retries":3,"backoff":{"multiplier":2,"jitter":0.0}} , "lease_grace_ms":5,"max_replay_count":10}`)
	if string(a.Canonical()) != string(b.Canonical()) {
		t.Errorf("%s\n%s", a.Canonical(), b.Canonical())
	}
}

func TestL12_what_is_stored_gives_the_same_policy_back(t *testing.T) {
	t.Parallel()
	for _, text := range samplePolicies() {
		p := mustParsePolicy(t, text)
		back, err := DecodePolicy(p.Encode())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(p, back); diff != "" {
			t.Errorf("%s as %s: %s", text, p.Encode(), diff)
		}
	}
	if mustParsePolicy(t, `{"max_reclaim_count":10}`).Encode() != nil {
		t.Error("the default policy takes room in the store")
	}
	if p, err := DecodePolicy(nil); p != DefaultPolicy() || err != nil {
		t.Errorf("%v, %v", p, err)
	}
	if got := string(mustParsePolicy(t, `{"retry_policy":{"max_retries":3},"lease_grace_ms":7}`).Encode()); got != `{"lease_grace_ms":7,"retry_policy":{"max_retries":3}}` {
		t.Errorf("stored as %s", got)
	}
}

func TestW10_a_stored_policy_that_cannot_be_read_is_corruption(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"x", "{", `{"zzz":1}`, `{"routing_requirements":{"required_capabilities":[""]}}`} {
		_, err := DecodePolicy([]byte(text))
		expect(t, err, base.CodeCorruption, "policy")
	}
}

func FuzzParsePolicy(f *testing.F) {
	for _, text := range samplePolicies() {
		f.Add([]byte(text))
	}
	f.Add([]byte(`{"retry_policy":{"by_category":{"net":{"max_retries":2,"backoff":{"initial_ms":5}},"timeout":{"backoff":{"strategy":"fixed","delay_ms":1}}}}}`))
	f.Add([]byte(`{"quotas":[{"quota":"q","quota":1}],"estimate":{"\u0061":1e9},"retention_ms":[-1,{}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := ParsePolicy(text)
		if err != nil {
			if base.CodeOf(err).Info().Class != "invalid" {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		canonical := p.Canonical()
		again, err := ParsePolicy(canonical)
		if err != nil || !cmp.Equal(p, again, leftOutAside()) || string(again.Canonical()) != string(canonical) {
			t.Fatalf("%q became %s: %v", text, canonical, err)
		}
		back, err := DecodePolicy(p.Encode())
		if err != nil || !cmp.Equal(p, back) {
			t.Fatalf("%q is stored as %s: %v", text, p.Encode(), err)
		}
	})
}

func BenchmarkDecodePolicy(b *testing.B) {
	p, _ := ParsePolicy([]byte(`{"retry_policy":{"max_retries":5},"timeout_policy":{"attempt_timeout_ms":60000}}`))
	text := p.Encode()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := DecodePolicy(text); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFingerprint(b *testing.B) {
	s := Submission{Kind: "k", Input: Payload{Data: make([]byte, 256)}}
	if err := s.Normalize(base.DefaultLimits()); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		s.Fingerprint()
	}
}
