package core

import (
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/condition"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
)

const twoPeople = `{"type":"any_of","members":[` +
	`{"type":"count","n":2,"count_kind":"distinct_sources","name":"approved","source_types":["operator","approver"],"waitpoints":["a"]},` +
	`{"type":"single","waitpoint_key":"a","name":"rejected"}]}`

func TestW65_W67_the_checks_of_an_approval_come_in_their_order(t *testing.T) {
	t.Parallel()
	s, byKey := suspendedAt(t, `{"max_signals_per_execution":1}`, twoPeople, "a")
	sound := ApproveCommand{Principal: "ann", Name: "approved", WaitpointID: byKey["a"]}
	type fault struct {
		code base.Code
		make func(*ApproveCommand)
	}
	order := []fault{
		{base.CodePrincipalRequired, func(c *ApproveCommand) { c.Principal = "" }},
		{base.CodeLaneMismatch, func(c *ApproveCommand) { c.Lane = "other" }},
		{base.CodeWaitpointNotFound, func(c *ApproveCommand) { c.WaitpointID = base.UUID{1} }},
		{base.CodeReservedName, func(c *ApproveCommand) { c.Name = "__x" }},
		{base.CodeInvalidSignal, func(c *ApproveCommand) { c.Suffix = "a\n" }},
		{base.CodePayloadTooLarge, func(c *ApproveCommand) { c.Payload = &Payload{Data: make([]byte, MaxSignalPayload+1)} }},
		{base.CodeInvalidSignal, func(c *ApproveCommand) { c.Comment = strings.Repeat("x", MaxComment+1) }},
		{base.CodeSignalLimitExceeded, func(*ApproveCommand) {}},
	}
	must[SignalAnswer](t)(s.signal(byKey["a"], "filler"))
	for i, first := range order {
		for _, later := range order[i:] {
			c := sound
			later.make(&c)
			first.make(&c)
			_, err := s.approve(c)
			wantCode(t, err, first.code)
		}
	}
}

func TestW65_without_a_waitpoint_the_active_one_is_meant_if_there_is_one(t *testing.T) {
	t.Parallel()
	s, _ := suspendedAt(t, `{}`, together(singleA, singleB), "a", "b")
	_, err := s.approve(ApproveCommand{Principal: "ann", Name: "x"})
	if refused := wantCode(t, err, base.CodeWaitpointAmbiguous); refused.Details["active"] != 2 {
		t.Fatalf("%+v", refused)
	}
	s = begin(t, `{}`)
	f := s.claim()
	s.pendingAt("pending")
	_, err = s.approve(ApproveCommand{Principal: "ann", Name: "x"})
	wantCode(t, err, base.CodeWaitpointAmbiguous)
	must[SuspendAnswer](t)(s.suspendFor(f, singleA, bound(fresh("a")...)))
	if a := must[SignalAnswer](t)(s.approve(ApproveCommand{Principal: "ann", Name: "x", Lane: "default"})); a.Effect != condition.EffectSatisfied {
		t.Fatalf("%+v", a)
	}
}

func TestW66_an_approval_is_verified_and_counts_once_a_person(t *testing.T) {
	t.Parallel()
	s, byKey := suspendedAt(t, `{}`, twoPeople, "a")
	vote := func(who, suffix string) SignalAnswer {
		t.Helper()
		return must[SignalAnswer](t)(s.approve(ApproveCommand{Principal: who, Name: "approved", Suffix: suffix, Comment: `fine "so"`}))
	}
	first := vote("ann", "")
	stored := s.d.Signals[0]
	if stored.Category != "approval" || stored.SourceType != "operator" || stored.SourceIdentity != "ann" || !stored.SourceVerified ||
		stored.IdempotencyKey != "approval:ann:approved:" || stored.Principal != "ann" ||
		string(stored.Payload.Data) != `{"comment":"fine \"so\""}` || stored.Payload.ContentType != "application/json" {
		t.Fatalf("%+v", stored)
	}
	if again := vote("ann", ""); !again.Duplicate || again.SignalID != first.SignalID {
		t.Fatalf("%+v", again)
	}
	if other := vote("ann", "2"); other.Duplicate || other.Effect != condition.EffectRepeated {
		t.Fatalf("one person counts twice: %+v", other)
	}
	for _, source := range []string{"bob", "eve"} { // self-declared sources do not count
		if a := must[SignalAnswer](t)(s.signal(byKey["a"], "approved", from("person", source))); a.Effect != condition.EffectNotMatched {
			t.Fatalf("%+v", a)
		}
	}
	link := must[Link](t)(s.createLink(CreateLinkCommand{WaitpointID: byKey["a"], Approver: "ann"}))
	if a := must[DecideAnswer](t)(s.decide(link.ID, "approve", "")); a.Signal.Effect != condition.EffectRepeated {
		t.Fatalf("the same name on a link is another person: %+v", a)
	}
	if a := vote("bob", ""); a.Effect != condition.EffectSatisfied {
		t.Fatalf("%+v", a)
	}
	s.want(Ready, WaitingForWorker, NextResume)
}

func TestW66_a_person_counts_once_however_the_name_is_written(t *testing.T) {
	t.Parallel()
	s, byKey := suspendedAt(t, `{}`, twoPeople, "a")
	must[SignalAnswer](t)(s.approve(ApproveCommand{Principal: "ana@example.com", Name: "approved"}))
	for _, name := range []string{"ANA@example.com", "ana@example.com ", " Ana@Example.Com", "ana@exam\u200bple.com", "\ufeffana@example.com"} {
		if a := must[SignalAnswer](t)(s.approve(ApproveCommand{Principal: name, Name: "approved"})); a.Effect != condition.EffectRepeated {
			t.Fatalf("%q is another person: %+v", name, a)
		}
	}
	link := must[Link](t)(s.createLink(CreateLinkCommand{WaitpointID: byKey["a"], Approver: "Ana@Example.com"}))
	if a := must[DecideAnswer](t)(s.decide(link.ID, "approve", "")); a.Signal.Effect != condition.EffectRepeated {
		t.Fatalf("on a link it is another person: %+v", a)
	}
	if a := must[SignalAnswer](t)(s.approve(ApproveCommand{Principal: "bob", Name: "approved"})); a.Effect != condition.EffectSatisfied {
		t.Fatalf("%+v", a)
	}
}

func TestW66_names_with_invisible_characters_are_refused_for_links_and_keys(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ana\u200b", "\u202eana", "an\u00ada", "ana\ufe0f", "ana\u2028", "ana\x07", " ", "\u3164"} {
		link := CreateLinkCommand{Approver: name}
		expect(t, link.Check(), base.CodeInvalidArgument, "approver")
		key := keyring.APIKeySettings{Name: name, Roles: []string{"read"}, Namespaces: []string{"a"}}
		expect(t, key.Normalize(), base.CodeInvalidArgument, "name")
	}
	for _, name := range []string{"ana@example.com", "Ana María", "安娜", "mailer-1"} {
		key := keyring.APIKeySettings{Name: name, Roles: []string{"read"}, Namespaces: []string{"a"}}
		expect(t, key.Normalize(), "", "")
	}
}

func TestW66_who_repeats_the_vote_that_ended_the_wait_hears_what_it_did(t *testing.T) {
	t.Parallel()
	s, byKey := suspendedAt(t, `{}`, singleA, "a")
	vote := ApproveCommand{Principal: "ann", Name: "x", Comment: "fine"}
	first := must[SignalAnswer](t)(s.approve(vote))
	if first.Effect != condition.EffectSatisfied {
		t.Fatalf("%+v", first)
	}
	for _, moment := range []func(){func() {}, func() { s.claim() }} { // it waits for a worker, then it runs
		moment()
		if again := must[SignalAnswer](t)(s.approve(vote)); !again.Duplicate || !again.SameRequest || again.SignalID != first.SignalID || again.Effect != first.Effect {
			t.Fatalf("%+v", again)
		}
		for _, other := range []ApproveCommand{{Principal: "bob", Name: "x"}, {Principal: "ann", Name: "y"}, {Principal: "ann", Name: "x", Suffix: "2"}} {
			_, err := s.approve(other)
			wantCode(t, err, base.CodeWaitpointAmbiguous)
		}
	}
	if len(s.d.Signals) != 1 || s.d.Signals[0].WaitpointID != byKey["a"] {
		t.Fatalf("%+v", s.d.Signals)
	}
}

func TestW66_a_vote_at_two_waitpoints_of_one_wait_must_name_its_own(t *testing.T) {
	t.Parallel()
	s, byKey := suspendedAt(t, `{}`, `{"type":"count","n":2,"count_kind":"distinct_waitpoints","waitpoints":["a","b"]}`, "a", "b")
	for _, key := range []string{"a", "b"} {
		must[SignalAnswer](t)(s.approve(ApproveCommand{Principal: "ann", Name: "x", WaitpointID: byKey[key]}))
	}
	s.want(Ready, WaitingForWorker, NextResume)
	_, err := s.approve(ApproveCommand{Principal: "ann", Name: "x"})
	wantCode(t, err, base.CodeWaitpointAmbiguous)
}

func TestW66_a_veto_ends_the_vote(t *testing.T) {
	t.Parallel()
	s, _ := suspendedAt(t, `{}`, twoPeople, "a")
	must[SignalAnswer](t)(s.approve(ApproveCommand{Principal: "ann", Name: "approved"}))
	veto := ApproveCommand{Principal: "ann", Name: "rejected", Payload: &Payload{Data: []byte("no")}, Comment: "unused"}
	if a := must[SignalAnswer](t)(s.approve(veto)); a.Effect != condition.EffectSatisfied {
		t.Fatalf("%+v", a)
	}
	if last := s.d.Signals[1]; string(last.Payload.Data) != "no" {
		t.Fatalf("W65: %+v", last)
	}
}

func TestW66_a_vote_is_not_that_of_another_whose_name_and_word_read_the_same_together(t *testing.T) {
	t.Parallel()
	s, _ := suspendedAt(t, `{}`, `{"type":"count","n":9,"count_kind":"distinct_signals","waitpoints":["a"]}`, "a")
	for _, vote := range []ApproveCommand{ // each is a:b:c:d when it is written one part after the other
		{Principal: "a", Name: "b", Suffix: "c:d"},
		{Principal: "a", Name: "b:c", Suffix: "d"},
		{Principal: "a:b", Name: "c", Suffix: "d"},
		{Principal: "a%3Ab", Name: "c", Suffix: "d"},
	} {
		if a := must[SignalAnswer](t)(s.approve(vote)); a.Duplicate {
			t.Errorf("%+v is taken for another vote", vote)
		}
		if a := must[SignalAnswer](t)(s.approve(vote)); !a.Duplicate {
			t.Errorf("%+v counts twice", vote)
		}
	}
}
