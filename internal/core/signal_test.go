package core

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/condition"
)

// suspendedAt is an execution that waits for the condition at fresh waitpoints, with their ids by key.
func suspendedAt(t tester, policy, condition string, keys ...string) (*story, map[string]base.UUID) {
	t.Helper()
	s := begin(t, policy)
	a := must[SuspendAnswer](t)(s.suspendFor(s.claim(), condition, bound(fresh(keys...)...)))
	byKey := map[string]base.UUID{}
	for _, w := range a.Waitpoints {
		byKey[w.Key] = w.ID
	}
	return s, byKey
}

func keyOf(key string) func(*SignalCommand) {
	return func(c *SignalCommand) { c.IdempotencyKey = key }
}

func carrying(data string) func(*SignalCommand) {
	return func(c *SignalCommand) { c.Payload = Payload{Data: []byte(data), ContentType: "text/plain"} }
}

func TestW61_each_effect(t *testing.T) {
	t.Parallel()
	two := countOf(2, "distinct_sources", `"name":"approved","waitpoints":["a"]`)
	for _, row := range []struct {
		name    string
		before  []string
		signal  string
		effect  condition.SignalEffect
		matched bool
	}{
		{"satisfied", []string{"a approved ci x"}, "a approved ci y", condition.EffectSatisfied, true},
		{"appended", nil, "a approved ci x", condition.EffectAppended, true},
		{"repeated", []string{"a approved ci x"}, "a approved ci x", condition.EffectRepeated, true},
		{"not matched", nil, "a rejected ci x", condition.EffectNotMatched, false},
	} {
		s, byKey := suspendedAt(t, `{}`, two, "a")
		s.deliver(byKey, row.before)
		a := s.deliver(byKey, []string{row.signal})[0]
		stored := s.d.Signals[len(s.d.Signals)-1]
		if a.Effect != row.effect || stored.Effect != row.effect || stored.Matched != row.matched || a.Duplicate {
			t.Errorf("%s: %+v, stored %+v", row.name, a, stored)
		}
		if resumed := s.x.Status != Suspended; resumed != (row.effect == condition.EffectSatisfied) {
			t.Errorf("%s: %s", row.name, s.x.Status)
		}
	}
	s, byKey := suspendedAt(t, `{}`, operatorOnly, "a")
	if a := must[SignalAnswer](t)(s.signal(byKey["a"], "go")); a.Effect != condition.EffectNotMentioned {
		t.Errorf("not in the condition: %+v", a)
	}
	s = begin(t, `{}`)
	s.claim()
	if a := must[SignalAnswer](t)(s.signal(s.pendingAt("a")[0], "go")); a.Effect != condition.EffectBuffered {
		t.Errorf("buffered: %+v", a)
	}
}

func TestW60_everything_about_a_signal_is_stored_and_told_without_its_payload(t *testing.T) {
	t.Parallel()
	s, byKey := suspendedAt(t, `{}`, operatorOnly, "a")
	category := ""
	a := must[SignalAnswer](t)(s.signal(byKey["a"], "go", from("ci", "build-7"), keyOf("k"), carrying("hello"), func(c *SignalCommand) {
		c.Category, c.CorrelationID, c.SentAt = &category, "c-1", 5
	}))
	want := Signal{
		Ordinal: 1, ID: a.SignalID, WaitpointID: byKey["a"], WaitpointKey: "a", Name: "go", SourceType: "ci", SourceIdentity: "build-7",
		CorrelationID: "c-1", IdempotencyKey: "k", SentAt: 5, AcceptedAt: s.now, Effect: condition.EffectNotMentioned, TokenKid: "k1",
		TokenFingerprint: "0123456789abcdef", Payload: Payload{ContentType: "text/plain", Data: []byte("hello"), Size: 5},
	}
	got := s.d.Signals[0]
	got.Digest = nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	wantData := map[string]any{
		"signal_id": a.SignalID.String(), "waitpoint_id": byKey["a"].String(), "waitpoint_key": "a", "name": "go", "category": "",
		"source_type": "ci", "source_identity": "build-7", "source_verified": false, "effect": "signal_ignored_not_in_condition",
		"matched": false, "payload": map[string]any{"size": 5.0, "content_type": "text/plain"},
	}
	if diff := cmp.Diff(wantData, s.last("signal.accepted")); diff != "" {
		t.Fatal(diff)
	}
	must[SignalAnswer](t)(s.signal(byKey["a"], "go"))
	if plain := s.d.Signals[1]; plain.Category != "external" || plain.SourceType != "external" || plain.SourceVerified || plain.Ordinal != 2 ||
		plain.Payload.ContentType != base.DefaultContentType {
		t.Fatalf("defaults: %+v", plain)
	}
}

func TestW62_a_satisfying_signal_ends_the_suspension_and_queues_the_attempt(t *testing.T) {
	t.Parallel()
	for _, delay := range []base.Millis{0, 5000} {
		s := begin(t, `{}`)
		f := s.claim()
		queued := s.x.QueuedAt
		a := must[SuspendAnswer](t)(s.suspendFor(f, bothOf(singleA, singleB), bound(fresh("a", "b")...), timedOut(base.Hour, BehaviorFail),
			func(c *SuspendCommand) { c.ResumeDelayMS = delay }))
		s.now = s.now.Add(base.Minute)
		must[SignalAnswer](t)(s.signal(a.Waitpoints[0].ID, "go"))
		told := len(s.events)
		closer := must[SignalAnswer](t)(s.signal(a.Waitpoints[1].ID, "go"))
		kinds := []string{"signal.accepted", "waitpoint.closed", "waitpoint.closed", "execution.resumed"}
		if diff := cmp.Diff(kinds, s.kinds(told)); diff != "" {
			t.Fatal(diff)
		}
		for _, w := range a.Waitpoints {
			s.wantClosed(w.ID, ClosedResumed)
		}
		s.wantCause(a.SuspensionID, CauseSignal)
		data := s.last("execution.resumed")
		if data["cause"] != "signal" || data["closer_signal_id"] != closer.SignalID.String() || s.d.SuspensionEnds[0].CloserSignalID != closer.SignalID {
			t.Fatalf("%v", data)
		}
		if delay == 0 {
			s.want(Ready, WaitingForWorker, NextResume)
			if s.x.WakeAt != 0 || data["delay_until"] != nil {
				t.Fatalf("WI14: a timer is left at %s", s.x.WakeAt)
			}
		} else {
			s.want(Delayed, WaitingForResumeDelay, NextResume)
			if s.x.DelayUntil != s.now.Add(delay) || s.x.WakeAt != s.x.DelayUntil || data["delay_until"] != s.x.DelayUntil.String() {
				t.Fatalf("%+v", data)
			}
			s.pass(delay)
			s.want(Ready, WaitingForWorker, NextResume)
		}
		if s.x.QueuedAt != queued {
			t.Fatalf("W80: queued at %s, was %s", s.x.QueuedAt, queued)
		}
		s.pass(base.Day)
		s.want(Ready, WaitingForWorker, NextResume)
	}
}

func TestW62_what_resumes_passes_the_gate(t *testing.T) {
	t.Parallel()
	s, byKey := suspendedAt(t, `{}`, singleA, "a")
	must[bool](t)(s.hold())
	s.want(Suspended, WaitingForSignal, NextResume)
	must[SignalAnswer](t)(s.signal(byKey["a"], "go"))
	s.want(Blocked, PausedByOperator, NextResume)
	must[bool](t)(s.releaseHold())
	s.want(Ready, WaitingForWorker, NextResume)
}

func TestW63_WI13_a_signal_counts_only_for_the_suspension_of_its_waitpoint(t *testing.T) {
	t.Parallel()
	s, byKey := suspendedAt(t, `{}`, singleA, "a")
	must[SignalAnswer](t)(s.signal(byKey["a"], "go"))
	second := must[SuspendAnswer](t)(s.suspendFor(s.claim(), singleA, bound(fresh("a")...)))
	_, err := s.signal(byKey["a"], "go")
	refused := wantCode(t, err, base.CodeWaitpointClosed)
	if refused.Details["close_reason"] != "resumed" {
		t.Fatalf("%+v", refused)
	}
	s.want(Suspended, WaitingForSignal, NextResume)
	if progress := s.progressOf(); progress[0] != 0 {
		t.Fatalf("the old signal counts: %v", progress)
	}
	must[SignalAnswer](t)(s.signal(second.Waitpoints[0].ID, "go"))
	s.want(Ready, WaitingForWorker, NextResume)
}

func TestW58_WI11_a_known_key_or_id_answers_the_first_delivery(t *testing.T) {
	t.Parallel()
	const one = `{"max_signals_per_execution":1}`
	id := base.UUID{9}
	byID := func(c *SignalCommand) { c.SignalID = id }
	for name, same := range map[string]func(*SignalCommand){"key": keyOf("k"), "id": byID} {
		s := begin(t, one)
		f := s.claim()
		hour := base.Hour
		waitpoint := must[CreateWaitpointAnswer](t)(s.createWaitpoint(f, "a", func(c *CreateWaitpointCommand) { c.ExpiresInMS = &hour })).Waitpoint.ID
		first := must[SignalAnswer](t)(s.signal(waitpoint, "go", same, carrying("x")))
		again := func(want bool, edits ...func(*SignalCommand)) {
			t.Helper()
			told := len(s.events)
			a := must[SignalAnswer](t)(s.signal(waitpoint, "go", append([]func(*SignalCommand){same, carrying("x")}, edits...)...))
			if !a.Duplicate || a.SignalID != first.SignalID || a.Effect != condition.EffectBuffered || a.SameRequest != want || len(s.events) != told {
				t.Fatalf("%s: %+v", name, a)
			}
		}
		category := "other"
		again(true)
		again(true, from("ci", "else"))
		again(false, func(c *SignalCommand) { c.Name = "stop" })
		again(false, carrying("y"))
		again(false, func(c *SignalCommand) { c.Category = &category })
		_, err := s.signal(waitpoint, "another")
		wantCode(t, err, base.CodeSignalLimitExceeded)
		again(true) // at the cap
		s.pass(base.Hour)
		_, err = s.signal(waitpoint, "another")
		wantCode(t, err, base.CodeWaitpointExpired)
		again(true) // after expiry
		must[CompleteAnswer](t)(s.complete(f, nil))
		again(true) // after the end
	}
}

func TestW58_a_key_is_known_at_its_waitpoint_only_and_a_token_cannot_take_that_of_an_operator(t *testing.T) {
	t.Parallel()
	s, byKey := suspendedAt(t, `{}`, operatorOnly, "a", "b")
	for _, waitpoint := range byKey {
		if a := must[SignalAnswer](t)(s.signal(waitpoint, "go", keyOf("k"))); a.Duplicate {
			t.Fatalf("%+v", a)
		}
	}
	must[SignalAnswer](t)(s.signal(byKey["a"], "approved", keyOf("approval:ann:approved:")))
	if a := must[SignalAnswer](t)(s.approve(ApproveCommand{Principal: "ann", Name: "approved", WaitpointID: byKey["a"]})); a.Duplicate {
		t.Fatalf("a sender has taken the vote of an operator: %+v", a)
	}
}

func TestW12_W59_WI12_signals_are_refused_at_the_cap_and_ignored_ones_count(t *testing.T) {
	t.Parallel()
	s, byKey := suspendedAt(t, `{"max_signals_per_execution":2}`, singleNamed, "a")
	must[SignalAnswer](t)(s.signal(byKey["a"], "no"))
	must[SignalAnswer](t)(s.signal(byKey["a"], "no"))
	_, err := s.signal(byKey["a"], "go")
	if refused := wantCode(t, err, base.CodeSignalLimitExceeded); refused.Details["limit"] != 2 {
		t.Fatalf("%+v", refused)
	}
	s.want(Suspended, WaitingForSignal, NextResume)
}

// signalFault is a refusal or answer of W57, in the order of its steps.
type signalFault struct {
	code base.Code
	make func(s *story, waitpoint base.UUID, c *SignalCommand)
}

func TestW57_the_steps_come_in_their_order(t *testing.T) {
	t.Parallel()
	name := signalFault{base.CodeInvalidSignal, func(_ *story, _ base.UUID, c *SignalCommand) { c.Name = "" }}
	reserved := signalFault{base.CodeReservedName, func(_ *story, _ base.UUID, c *SignalCommand) { c.Name = "__timeout__" }}
	size := signalFault{base.CodePayloadTooLarge, func(_ *story, _ base.UUID, c *SignalCommand) { c.Payload.Data = make([]byte, MaxSignalPayload+1) }}
	expired := signalFault{base.CodeWaitpointExpired, func(s *story, _ base.UUID, _ *SignalCommand) { s.now = s.now.Add(base.Day) }}
	closed := signalFault{base.CodeWaitpointClosed, func(s *story, w base.UUID, _ *SignalCommand) { _, _ = s.closeWaitpoint(nil, w) }}
	full := signalFault{base.CodeSignalLimitExceeded, func(s *story, w base.UUID, _ *SignalCommand) {
		for len(s.d.Signals) < 2 {
			if _, err := s.signal(w, "filler"); err != nil {
				return
			}
		}
	}}
	for _, order := range [][]signalFault{{name, expired, full}, {reserved, closed, full}, {size, closed, full}} {
		for i := range order {
			s := begin(t, `{"max_signals_per_execution":2}`)
			f := s.claimFor(base.MaxLeaseTTL)
			waitpoint := must[CreateWaitpointAnswer](t)(s.createWaitpoint(f, "a")).Waitpoint.ID
			must[SignalAnswer](t)(s.signal(waitpoint, "first", keyOf("k")))
			c := SignalCommand{WaitpointID: waitpoint, Name: "go"}
			for at := len(order) - 1; at >= i; at-- { // what is later in the order is brought about first
				order[at].make(s, waitpoint, &c)
			}
			_, err := s.signal(waitpoint, c.Name, func(into *SignalCommand) { into.Payload = c.Payload })
			wantCode(t, err, order[i].code)
			known, err := s.signal(waitpoint, c.Name, keyOf("k"), func(into *SignalCommand) { into.Payload = c.Payload })
			if i == 0 {
				wantCode(t, err, order[0].code) // arguments come before dedup
			} else if err != nil || !known.Duplicate {
				t.Fatalf("dedup does not come before %s: %+v, %v", order[i].code, known, err)
			}
		}
	}
	s := begin(t, `{}`)
	s.claim()
	_, err := s.signal(base.UUID{1}, "go")
	wantCode(t, err, base.CodeWaitpointNotFound)
}

func TestW57_arguments_of_a_signal_have_bounds(t *testing.T) {
	t.Parallel()
	text := func(n int) string { return strings.Repeat("x", n) }
	long, longest := text(65), text(64)
	for name, row := range map[string]struct {
		edit  func(*SignalCommand)
		code  base.Code
		field string
	}{
		"name":                  {func(c *SignalCommand) { c.Name = text(129) }, base.CodeInvalidSignal, "name"},
		"name with control":     {func(c *SignalCommand) { c.Name = "a\tb" }, base.CodeInvalidSignal, "name"},
		"name at the bound":     {func(c *SignalCommand) { c.Name = text(128) }, "", ""},
		"category":              {func(c *SignalCommand) { c.Category = &long }, base.CodeInvalidSignal, "category"},
		"category at the bound": {func(c *SignalCommand) { c.Category = &longest }, "", ""},
		"source type":           {func(c *SignalCommand) { c.SourceType = text(65) }, base.CodeInvalidSignal, "source_type"},
		"operator":              {func(c *SignalCommand) { c.SourceType = "operator" }, base.CodeReservedSourceType, "source_type"},
		"approver":              {func(c *SignalCommand) { c.SourceType = "approver" }, base.CodeReservedSourceType, "source_type"},
		"engine":                {func(c *SignalCommand) { c.SourceType = "engine" }, base.CodeReservedSourceType, "source_type"},
		"identity":              {func(c *SignalCommand) { c.SourceIdentity = text(257) }, base.CodeInvalidSignal, "source_identity"},
		"payload":               {func(c *SignalCommand) { c.Payload.Data = make([]byte, 262_145) }, base.CodePayloadTooLarge, "payload"},
		"payload at the bound":  {func(c *SignalCommand) { c.Payload.Data = make([]byte, 262_144) }, "", ""},
		"content type":          {func(c *SignalCommand) { c.Payload.ContentType = "é" }, base.CodeInvalidSignal, "payload_content_type"},
		"correlation":           {func(c *SignalCommand) { c.CorrelationID = text(129) }, base.CodeInvalidSignal, "correlation_id"},
		"idempotency":           {func(c *SignalCommand) { c.IdempotencyKey = text(257) }, base.CodeInvalidSignal, "idempotency_key"},
		"sent at":               {func(c *SignalCommand) { c.SentAt = latestShown + 1 }, base.CodeInvalidSignal, "sent_at"},
	} {
		c := SignalCommand{Name: "go"}
		row.edit(&c)
		err := c.Check()
		if base.CodeOf(err) != row.code {
			t.Errorf("%s: %v, want %s", name, err, row.code)
			continue
		}
		if row.code != "" && wantCode(t, err, row.code).Field != row.field {
			t.Errorf("%s: %v", name, err)
		}
	}
}
