package core

import (
	"bytes"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

const noon = base.Time(1_767_225_600_000)

func normalized(t *testing.T, change func(*Submission)) *Submission {
	t.Helper()
	s := &Submission{Kind: "charge", Input: Payload{Data: []byte("in")}}
	if change != nil {
		change(s)
	}
	if err := s.Normalize(base.DefaultLimits()); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestL79_absent_fields_take_their_defaults(t *testing.T) {
	t.Parallel()
	s := normalized(t, func(s *Submission) { s.Priority = 12_000 })
	if s.Namespace != "default" || s.Lane != "default" || s.Input.ContentType != "application/octet-stream" ||
		s.Input.Size != 2 || s.Priority != 9000 || s.Policy != DefaultPolicy() || s.IdempotencyKey != "" {
		t.Errorf("%+v", s)
	}
}

func TestL80_faults_are_told_in_order_arguments_policy_capabilities_tags(t *testing.T) {
	t.Parallel()
	s := Submission{
		Kind:       "a b",
		PolicyJSON: []byte(`{"routing_requirements":{"required_capabilities":["a,b"]},"lease_grace_ms":-1}`),
		Tags:       base.Tags{"ff.x": ""},
	}
	expect(t, s.Normalize(base.DefaultLimits()), base.CodeInvalidArgument, "kind")
	s.Kind = "k"
	expect(t, s.Normalize(base.DefaultLimits()), base.CodeInvalidPolicy, "lease_grace_ms")
	s.PolicyJSON = []byte(`{"routing_requirements":{"required_capabilities":["a,b"]}}`)
	expect(t, s.Normalize(base.DefaultLimits()), base.CodeInvalidCapabilities, "routing_requirements.required_capabilities")
	s.PolicyJSON = nil
	expect(t, s.Normalize(base.DefaultLimits()), base.CodeInvalidTagKey, `tags["ff.x"]`)
}

func TestL6_every_argument_of_a_submission_is_checked(t *testing.T) {
	t.Parallel()
	week, never, early := 7*base.Day, base.MaxAhead+1, base.Millis(-1)
	cases := []struct {
		field  string
		code   base.Code
		change func(*Submission)
	}{
		{"execution_id", base.CodeInvalidID, func(s *Submission) { s.ID = &base.GivenID{} }},
		{"namespace", base.CodeInvalidArgument, func(s *Submission) { s.Namespace = "-" }},
		{"lane", base.CodeInvalidArgument, func(s *Submission) { s.Lane = "a b" }},
		{"kind", base.CodeInvalidArgument, func(s *Submission) { s.Kind = "" }},
		{"input", base.CodePayloadTooLarge, func(s *Submission) { s.Input.Data = make([]byte, 4<<20+1) }},
		{"content_type", base.CodeInvalidArgument, func(s *Submission) { s.Input.ContentType = "\n" }},
		{"creator", base.CodeInvalidArgument, func(s *Submission) { s.Creator = "\n" }},
		{"idempotency_key", base.CodeInvalidArgument, func(s *Submission) { s.IdempotencyKey = "\n" }},
		{"delay_ms", base.CodeInvalidArgument, func(s *Submission) { s.DelayMS, s.DelayUntil = &week, noon }},
		{"delay_ms", base.CodeInvalidArgument, func(s *Submission) { s.DelayMS = &never }},
		{"delay_ms", base.CodeInvalidArgument, func(s *Submission) { s.DelayMS = &early }},
		{"tags", base.CodeInvalidArgument, func(s *Submission) {
			s.Tags = base.Tags{}
			for i := range 65 {
				s.Tags[strings.Repeat("a", i+1)] = ""
			}
		}},
	}
	for _, c := range cases {
		s := Submission{Kind: "k"}
		c.change(&s)
		expect(t, s.Normalize(base.DefaultLimits()), c.code, c.field)
	}
}

func TestL81_times_are_held_against_the_present(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name     string
		delay    base.Time
		deadline base.Time
		field    string // "" when accepted
	}{
		{"none", 0, 0, ""},
		{"a delay in the past", noon - 1, 0, ""},
		{"a delay of ten years", noon.Add(base.MaxAhead), 0, ""},
		{"a delay of more", noon.Add(base.MaxAhead + 1), 0, "delay_until"},
		{"a deadline in a millisecond", 0, noon + 1, ""},
		{"a deadline now", 0, noon, "deadline_at"},
		{"a deadline in the past", 0, noon - 1, "deadline_at"},
		{"a deadline in ten years", 0, noon.Add(base.MaxAhead), ""},
		{"a deadline after that", 0, noon.Add(base.MaxAhead + 1), "deadline_at"},
	}
	for _, c := range cases {
		s := Submission{DelayUntil: c.delay, DeadlineAt: c.deadline}
		code := base.CodeInvalidArgument
		if c.field == "" {
			code = ""
		}
		expect(t, s.CheckTimes(noon), code, c.field)
	}
}

func TestL81_a_delay_in_the_past_or_at_now_is_no_delay(t *testing.T) {
	t.Parallel()
	zero, second := base.Millis(0), base.Second
	for _, c := range []struct {
		s    Submission
		want base.Time
	}{
		{Submission{}, 0},
		{Submission{DelayUntil: noon - 1}, 0},
		{Submission{DelayUntil: noon}, 0},
		{Submission{DelayUntil: noon + 1}, noon + 1},
		{Submission{DelayMS: &zero}, 0},
		{Submission{DelayMS: &second}, noon + 1000},
	} {
		if got := c.s.StartAt(noon); got != c.want {
			t.Errorf("%+v starts at %v, want %v", c.s, got, c.want)
		}
	}
}

func TestL83_the_fingerprint_covers_lane_kind_input_content_type_and_policy_and_nothing_else(t *testing.T) {
	t.Parallel()
	second := base.Second
	plain := normalized(t, nil).Fingerprint()
	if len(plain) != 32 {
		t.Fatalf("%d bytes", len(plain))
	}
	for name, change := range map[string]func(*Submission){
		"lane":           func(s *Submission) { s.Lane = "other" },
		"kind":           func(s *Submission) { s.Kind = "other" },
		"input":          func(s *Submission) { s.Input.Data = []byte("IN") },
		"content type":   func(s *Submission) { s.Input.ContentType = "text/plain" },
		"policy":         func(s *Submission) { s.PolicyJSON = []byte(`{"retry_policy":{}}`) },
		"shifted border": func(s *Submission) { s.Lane, s.Kind = "defaultc", "harge" },
	} {
		if bytes.Equal(plain, normalized(t, change).Fingerprint()) {
			t.Errorf("%s has no part in the fingerprint", name)
		}
	}
	for name, change := range map[string]func(*Submission){
		"namespace":          func(s *Submission) { s.Namespace = "acme" },
		"priority":           func(s *Submission) { s.Priority = 5 },
		"delay":              func(s *Submission) { s.DelayMS = &second },
		"deadline":           func(s *Submission) { s.DeadlineAt = noon },
		"tags":               func(s *Submission) { s.Tags = base.Tags{"a": "b"} },
		"creator":            func(s *Submission) { s.Creator = "me" },
		"key":                func(s *Submission) { s.IdempotencyKey = "k" },
		"id":                 func(s *Submission) { s.ID = &base.GivenID{UUID: base.UUID{1}} },
		"default spelt out":  func(s *Submission) { s.PolicyJSON = []byte(`{"max_reclaim_count":10,"lease_grace_ms":0}`) },
		"default lane given": func(s *Submission) { s.Lane = "default" },
	} {
		if !bytes.Equal(plain, normalized(t, change).Fingerprint()) {
			t.Errorf("%s has a part in the fingerprint", name)
		}
	}
}

func TestS13_the_class_holds_what_decides_who_may_take_the_work(t *testing.T) {
	t.Parallel()
	s := normalized(t, func(s *Submission) {
		s.Namespace, s.Lane = "acme", "fast"
		s.PolicyJSON = []byte(`{"fairness_key":"vip","routing_requirements":{"required_capabilities":["gpu","cuda","gpu"]}}`)
	})
	class := s.Class()
	if class.ID != 0 || class.Namespace != "acme" || class.Lane != "fast" || class.Kind != "charge" ||
		strings.Join(class.Capabilities, ",") != "cuda,gpu" || class.FairnessKey != "vip" {
		t.Errorf("%+v", class)
	}
	plain := normalized(t, nil).Class()
	if plain.FairnessKey != "" || plain.Capabilities != nil {
		t.Errorf("%+v", plain)
	}
}

func TestU215_another_trace_context_is_no_other_submission(t *testing.T) {
	t.Parallel()
	plain := Submission{Kind: "charge"}
	if err := plain.Normalize(base.DefaultLimits()); err != nil {
		t.Fatal(err)
	}
	traced := plain
	traced.Trace = base.ParseTrace("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "k=v", "a=b")
	if string(plain.Fingerprint()) != string(traced.Fingerprint()) {
		t.Error("the trace context is part of the fingerprint")
	}
}
