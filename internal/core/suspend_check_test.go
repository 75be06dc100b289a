package core

import (
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/condition"
)

// alsoIf adds a member to the condition of a command, which is an any_of.
func alsoIf(text string) func(*SuspendCommand) {
	return func(c *SuspendCommand) {
		member, err := condition.Decode([]byte(text))
		if err != nil {
			panic(err)
		}
		c.Condition.Members = append(c.Condition.Members, *member)
	}
}

// suspendFault is a row of W46: its reason, and how an otherwise sound command comes to have it.
type suspendFault struct {
	reason string
	make   func(*SuspendCommand)
}

// suspendFaults are the rows of W46 in their order.
func suspendFaults() []suspendFault {
	long, empty := strings.Repeat("k", condition.MaxWaitpointKey+1), ""
	deep := singleA
	for range condition.MaxConditionDepth {
		deep = bothOf(deep)
	}
	return []suspendFault{
		{"waitpoints_empty", func(c *SuspendCommand) { c.Waitpoints = nil }},
		{"too_many_waitpoints", func(c *SuspendCommand) {
			for range MaxBindings {
				c.Waitpoints = append(c.Waitpoints, Binding{})
			}
		}},
		{"duplicate_binding", func(c *SuspendCommand) { c.Waitpoints = append(c.Waitpoints, fresh("a")...) }},
		{"waitpoint_key_empty", func(c *SuspendCommand) { c.Waitpoints = append(c.Waitpoints, Binding{Key: &empty}) }},
		{"waitpoint_key_too_long", func(c *SuspendCommand) { c.Waitpoints = append(c.Waitpoints, Binding{Key: &long}) }},
		{"condition_too_deep", alsoIf(deep)},
		{"condition_too_large", func(c *SuspendCommand) {
			for range condition.MaxConditionNodes {
				alsoIf(singleA)(c)
			}
		}},
		{"allof_empty_members", alsoIf(`{"type":"all_of","members":[]}`)},
		{"anyof_empty_members", alsoIf(`{"type":"any_of","members":[]}`)},
		{"count_n_zero", alsoIf(countOf(0, "distinct_signals", `"waitpoints":["a"]`))},
		{"count_waitpoints_empty", alsoIf(countOf(1, "distinct_signals", `"waitpoints":[]`))},
		{"count_waitpoints_duplicate", alsoIf(countOf(1, "distinct_signals", `"waitpoints":["a","a"]`))},
		{"count_exceeds_waitpoint_set", alsoIf(countOf(2, "distinct_waitpoints", `"waitpoints":["a"]`))},
		{"matcher_name_empty", alsoIf(`{"type":"single","waitpoint_key":"a","name":""}`)},
		{"timeout_ambiguous", func(c *SuspendCommand) {
			c.TimeoutAt = 1
			if c.TimeoutMS == nil {
				sound := base.Minute
				c.TimeoutMS = &sound
			}
		}},
		{"bad_number", func(c *SuspendCommand) { c.ResumeDelayMS = -1 }},
		{"unknown_reason_code", func(c *SuspendCommand) { c.ReasonCode = "bored" }},
		{"unknown_timeout_behavior", func(c *SuspendCommand) { c.Behavior = "shrug" }},
	}
}

func soundSuspend(t tester) SuspendCommand {
	return SuspendCommand{Condition: parsed(t, together(singleA, singleA)), Waitpoints: fresh("a")}
}

func TestW46_the_first_fault_of_the_table_is_reported_whatever_else_is_wrong(t *testing.T) {
	t.Parallel()
	sound := soundSuspend(t)
	if err := sound.Check(); err != nil {
		t.Fatal(err)
	}
	faults := suspendFaults()
	for i, fault := range faults {
		c := soundSuspend(t)
		fault.make(&c)
		if reason := reasonOf(wantCode(t, c.Check(), base.CodeInvalidSuspend)); reason != fault.reason {
			t.Errorf("%s is reported as %s", fault.reason, reason)
		}
		for _, later := range faults[i+1:] {
			c := soundSuspend(t)
			later.make(&c)
			fault.make(&c)
			if reason := reasonOf(wantCode(t, c.Check(), base.CodeInvalidSuspend)); reason != fault.reason {
				t.Errorf("%s with %s is reported as %s", fault.reason, later.reason, reason)
			}
		}
	}
}

func TestW46_the_table_holds_at_its_edges(t *testing.T) {
	t.Parallel()
	year, tooLong, zero, negative := maxSuspendTimeout, maxSuspendTimeout+1, base.Millis(0), base.Millis(-1)
	id := base.UUID{7}
	for name, row := range map[string]struct {
		edit   func(*SuspendCommand)
		code   base.Code
		reason string
	}{
		"a timeout of nothing":     {func(c *SuspendCommand) { c.TimeoutMS = &zero }, "", ""},
		"a timeout of a year":      {func(c *SuspendCommand) { c.TimeoutMS = &year }, "", ""},
		"a negative timeout":       {func(c *SuspendCommand) { c.TimeoutMS = &negative }, base.CodeInvalidSuspend, "bad_number"},
		"a longer one":             {func(c *SuspendCommand) { c.TimeoutMS = &tooLong }, base.CodeInvalidSuspend, "bad_number"},
		"the longest resume delay": {func(c *SuspendCommand) { c.ResumeDelayMS = 2_592_000_000 }, "", ""},
		"a longer one of these":    {func(c *SuspendCommand) { c.ResumeDelayMS = 2_592_000_001 }, base.CodeInvalidSuspend, "bad_number"},
		"a negative resume delay":  {func(c *SuspendCommand) { c.ResumeDelayMS = -1 }, base.CodeInvalidSuspend, "bad_number"},
		"a moment before 1970":     {func(c *SuspendCommand) { c.TimeoutAt = -1 }, base.CodeInvalidSuspend, "bad_number"},
		"one id twice": {func(c *SuspendCommand) {
			c.Waitpoints = []Binding{{ID: id}, {UsePending: true, ID: id}}
		}, base.CodeInvalidSuspend, "duplicate_binding"},
		"ids that the engine makes": {func(c *SuspendCommand) { c.Waitpoints = []Binding{{}, {}} }, "", ""},
		"no condition":              {func(c *SuspendCommand) { c.Condition = nil }, base.CodeInvalidSuspend, condition.Malformed},
		"no binding, operator only": {func(c *SuspendCommand) {
			c.Waitpoints, c.Condition = nil, &condition.Condition{Kind: condition.OperatorOnly}
		}, "", ""},
		"no binding, timeout only": {func(c *SuspendCommand) {
			c.Waitpoints, c.Condition = nil, &condition.Condition{Kind: condition.TimeoutOnly}
		}, "", ""},
		"no binding, operator only inside": {func(c *SuspendCommand) {
			c.Waitpoints, c.Condition = nil, parsed(t, together(operatorOnly, timeoutOnly))
		}, base.CodeInvalidSuspend, "waitpoints_empty"},
		"an empty key in the condition before a long one in a binding": {func(c *SuspendCommand) {
			c.Waitpoints = append(c.Waitpoints, fresh(strings.Repeat("k", 129))...)
			alsoIf(`{"type":"single","waitpoint_key":""}`)(c)
		}, base.CodeInvalidSuspend, "waitpoint_key_empty"},
		"a long key in the condition": {func(c *SuspendCommand) {
			alsoIf(`{"type":"single","waitpoint_key":"` + strings.Repeat("k", 129) + `"}`)(c)
		}, base.CodeInvalidSuspend, "waitpoint_key_too_long"},
		"a key of 128 bytes":         {func(c *SuspendCommand) { c.Waitpoints = fresh(strings.Repeat("k", 128)) }, "", ""},
		"a key with a control":       {func(c *SuspendCommand) { c.Waitpoints = fresh("a\x00b") }, base.CodeInvalidSuspend, "waitpoint_key_malformed"},
		"a key of the engine":        {func(c *SuspendCommand) { c.Waitpoints = fresh("__a") }, base.CodeReservedName, ""},
		"a pending one without id":   {func(c *SuspendCommand) { c.Waitpoints = []Binding{{UsePending: true}} }, base.CodeInvalidSuspend, "binding_malformed"},
		"a pending one with a key":   {func(c *SuspendCommand) { c.Waitpoints[0].UsePending, c.Waitpoints[0].ID = true, id }, base.CodeInvalidSuspend, "binding_malformed"},
		"an idempotency key, broken": {func(c *SuspendCommand) { c.IdempotencyKey = "a\nb" }, base.CodeInvalidSuspend, "bad_idempotency_key"},
		"a continuation of 64 KiB":   {func(c *SuspendCommand) { c.Continuation = &Payload{Data: make([]byte, 64<<10)} }, "", ""},
		"a larger continuation":      {func(c *SuspendCommand) { c.Continuation = &Payload{Data: make([]byte, 64<<10+1)} }, base.CodePayloadTooLarge, ""},
		"a content type that is none": {func(c *SuspendCommand) {
			c.Continuation = &Payload{ContentType: "é"}
		}, base.CodeInvalidArgument, ""},
	} {
		c := soundSuspend(t)
		row.edit(&c)
		err := c.Check()
		if base.CodeOf(err) != row.code || reasonOf(err) != row.reason {
			t.Errorf("%s: %v, want %s %s", name, err, row.code, row.reason)
		}
	}
}

func TestW52_each_reason_code_gives_its_reason(t *testing.T) {
	t.Parallel()
	for code, reason := range map[string]string{
		"": "waiting_for_signal", "waiting_for_signal": "waiting_for_signal", "step_boundary": "waiting_for_signal",
		"waiting_for_approval": "waiting_for_approval", "waiting_for_callback": "waiting_for_callback",
		"waiting_for_tool_result": "waiting_for_tool_result", "paused_by_policy": "paused_by_policy",
		"waiting_for_operator_review": "paused_by_operator", "manual_pause": "paused_by_operator", "paused_by_budget": "waiting_for_budget",
	} {
		s := begin(t, `{}`)
		must[SuspendAnswer](t)(s.suspendFor(s.claim(), operatorOnly, func(c *SuspendCommand) { c.ReasonCode = code }))
		if s.x.Reason.String() != reason {
			t.Errorf("%s gives %s, want %s", code, s.x.Reason, reason)
		}
		if shown := s.observed().ReasonCode; code != "" && shown != code || code == "" && shown != ReasonCodeSignal {
			t.Errorf("%s is shown as %s", code, shown)
		}
	}
}
