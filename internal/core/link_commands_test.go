package core

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/condition"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
)

// linked is an execution that waits for a person, with a link for her.
func linked(t tester, edits ...func(*CreateLinkCommand)) (*story, base.UUID, Link) {
	t.Helper()
	s, byKey := suspendedAt(t, `{}`, `{"type":"single","waitpoint_key":"a","name":"approved"}`, "a")
	c := CreateLinkCommand{WaitpointID: byKey["a"], Approver: "ann@example.com"}
	for _, edit := range edits {
		edit(&c)
	}
	return s, byKey["a"], must[Link](t)(s.createLink(c))
}

func TestW68_a_link_has_defaults_and_is_told(t *testing.T) {
	t.Parallel()
	s, waitpoint, link := linked(t)
	if link.ExpiresAt != s.now.Add(604_800_000) || link.WaitpointID != waitpoint || link.ExecutionID != s.x.ID || link.Namespace != "default" {
		t.Fatalf("%+v", link)
	}
	var names []string
	for _, d := range link.Decisions {
		names = append(names, d.ID+" "+d.SignalName)
	}
	if diff := cmp.Diff([]string{"approve approved", "reject rejected"}, names); diff != "" {
		t.Fatal(diff)
	}
	want := map[string]any{
		"link_id": link.ID.String(), "waitpoint_id": waitpoint.String(), "approver": "ann@example.com", "expires_at": link.ExpiresAt.String(),
	}
	if diff := cmp.Diff(want, s.last("approval_link.created")); diff != "" {
		t.Fatal(diff)
	}
}

func TestW68_the_checks_of_a_link_come_in_their_order(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	f := s.claim()
	ids := s.pendingAt("open", "shut", "late")
	must[bool](t)(s.closeWaitpoint(&f, ids[1]))
	stale := f
	stale.Epoch = 7
	short, long := base.Minute-1, 90*base.Day+1
	text := func(n int) string { return strings.Repeat("x", n) }
	decision := func(edit func(*Decision)) func(*CreateLinkCommand) {
		return func(c *CreateLinkCommand) {
			d := Decision{ID: "yes", Label: "Yes", SignalName: "yes"}
			edit(&d)
			c.Decisions = []Decision{{ID: "no", Label: "No", SignalName: "no"}, d}
		}
	}
	type fault struct {
		code base.Code
		make func(*CreateLinkCommand)
	}
	order := []fault{
		{base.CodeInvalidArgument, func(c *CreateLinkCommand) { c.Approver = "" }},
		{base.CodeInvalidArgument, func(c *CreateLinkCommand) { c.Approver = text(257) }},
		{base.CodeInvalidArgument, func(c *CreateLinkCommand) { c.Decisions = make([]Decision, 9) }},
		{base.CodeInvalidArgument, decision(func(d *Decision) { d.ID = "" })},
		{base.CodeInvalidArgument, decision(func(d *Decision) { d.ID = "no" })},
		{base.CodeInvalidArgument, decision(func(d *Decision) { d.Label = "" })},
		{base.CodeInvalidArgument, decision(func(d *Decision) { d.SignalName = text(129) })},
		{base.CodeReservedName, decision(func(d *Decision) { d.SignalName = "__yes" })},
		{base.CodeInvalidArgument, func(c *CreateLinkCommand) { c.ExpiresInMS = &short }},
		{base.CodeInvalidArgument, func(c *CreateLinkCommand) { c.ExpiresInMS = &long }},
		{base.CodeInvalidArgument, func(c *CreateLinkCommand) { c.Title = text(257) }},
		{base.CodeInvalidArgument, func(c *CreateLinkCommand) { c.Message = text(4097) }},
		{base.CodeStaleLease, func(c *CreateLinkCommand) { c.Fence = &stale }},
		{base.CodeWaitpointNotFound, func(c *CreateLinkCommand) { c.WaitpointID = base.UUID{1} }},
		{base.CodeWaitpointClosed, func(c *CreateLinkCommand) { c.WaitpointID = ids[1] }},
	}
	for i, first := range order {
		for _, later := range order[i:] {
			c := CreateLinkCommand{Fence: &f, WaitpointID: ids[0], Approver: "ann"}
			later.make(&c)
			first.make(&c)
			_, err := s.createLink(c)
			wantCode(t, err, first.code)
		}
	}
	sound := CreateLinkCommand{Fence: &f, WaitpointID: ids[0], Approver: "ann"}
	err := s.do(func(fx *Effects) error {
		sound.Keys, sound.LinkID = &keyring.Ring{}, s.mint()
		_, err := s.x.CreateLink(fx, &s.d, sound)
		return err
	})
	wantCode(t, err, base.CodeSigningKeyMissing)
	decision(func(*Decision) {})(&sound)
	must[Link](t)(s.createLink(sound)) // on a pending one, by the lease holder
}

func TestW71_a_decision_is_a_verified_signal_and_is_recorded(t *testing.T) {
	t.Parallel()
	s, waitpoint, link := linked(t)
	s.pass(base.Minute)
	told := len(s.events)
	a := must[DecideAnswer](t)(s.decide(link.ID, "approve", "looks good"))
	if a.Already || a.Signal.Effect != condition.EffectSatisfied || a.End.Decision != "approve" || a.End.Comment != "looks good" || a.End.At != s.now {
		t.Fatalf("%+v", a)
	}
	s.want(Ready, WaitingForWorker, NextResume)
	one := s.d.Signals[0]
	if one.Name != "approved" || one.Category != "approval" || one.SourceType != "approver" || one.SourceIdentity != "ann@example.com" ||
		!one.SourceVerified || one.IdempotencyKey != "link:"+link.ID.String() || one.WaitpointID != waitpoint || a.End.SignalID != one.ID {
		t.Fatalf("%+v", one)
	}
	var payload map[string]string
	if err := json.Unmarshal(one.Payload.Data, &payload); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"decision": "approve", "comment": "looks good", "link_id": link.ID.String()}, payload); diff != "" {
		t.Fatal(diff)
	}
	kinds := []string{"signal.accepted", "waitpoint.closed", "execution.resumed", "approval_link.decided"}
	if diff := cmp.Diff(kinds, s.kinds(told)); diff != "" {
		t.Fatal(diff)
	}
	if data := s.last("approval_link.decided"); data["decision"] != "approve" || data["expires_at"] != nil {
		t.Fatalf("%v", data)
	}
}

func TestW72_WI20_a_link_is_decided_once(t *testing.T) {
	t.Parallel()
	s, _, link := linked(t)
	first := must[DecideAnswer](t)(s.decide(link.ID, "reject", ""))
	s.pass(30 * base.Day) // nor does its expiry matter any more
	for _, decision := range []string{"reject", "approve", "no such decision"} {
		told := len(s.events)
		again := must[DecideAnswer](t)(s.decide(link.ID, decision, ""))
		if !again.Already || !cmp.Equal(again.End, first.End) || len(s.events) != told {
			t.Fatalf("%+v", again)
		}
	}
	_, err := s.revokeLink(nil, link.ID)
	wantCode(t, err, base.CodeLinkAlreadyDecided)
}

func TestW71_W73_what_cannot_be_decided_stays_undecided(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		make     func(s *story, waitpoint base.UUID, link Link)
		decision string
		comment  string
		code     base.Code
		state    string
	}{
		"unknown decision":                  {nil, "perhaps", "x", base.CodeInvalidDecision, LinkOpen},
		"no comment":                        {nil, "approve", "", base.CodeInvalidDecision, LinkOpen},
		"a comment of white space":          {nil, "approve", " \t\n\u00a0", base.CodeInvalidDecision, LinkOpen},
		"long comment":                      {nil, "approve", strings.Repeat("x", 4097), base.CodeInvalidDecision, LinkOpen},
		"expired":                           {func(s *story, _ base.UUID, link Link) { s.now = link.ExpiresAt }, "approve", "x", base.CodeLinkExpired, LinkExpired},
		"expired, and the decision unknown": {func(s *story, _ base.UUID, link Link) { s.now = link.ExpiresAt }, "perhaps", "x", base.CodeLinkExpired, LinkExpired},
		"revoked":                           {func(s *story, _ base.UUID, link Link) { must[bool](t)(s.revokeLink(nil, link.ID)) }, "approve", "x", base.CodeLinkRevoked, LinkRevoked},
		"revoked and expired": {func(s *story, _ base.UUID, link Link) {
			must[bool](t)(s.revokeLink(nil, link.ID))
			s.now = link.ExpiresAt
		}, "approve", "x", base.CodeLinkRevoked, LinkRevoked},
		"closed by somebody else": {func(s *story, w base.UUID, _ Link) { must[SignalAnswer](t)(s.signal(w, "approved")) }, "approve", "x", base.CodeWaitpointClosed, LinkClosed},
	} {
		s, waitpoint, link := linked(t, func(c *CreateLinkCommand) { c.CommentRequired = true })
		if row.make != nil {
			row.make(s, waitpoint, link)
		}
		stored := len(s.d.Signals)
		_, err := s.decide(link.ID, row.decision, row.comment)
		if base.CodeOf(err) != row.code || len(s.d.Signals) != stored {
			t.Errorf("%s: %v, want %s", name, err, row.code)
		}
		if view := s.d.LinkViews(s.now, waitpoint)[0]; view.State != row.state {
			t.Errorf("%s: shown as %s", name, view.State)
		}
	}
	s := begin(t, `{"max_signals_per_execution":1}`)
	s.claim()
	waitpoint := s.pendingAt("a")[0]
	link := must[Link](t)(s.createLink(CreateLinkCommand{WaitpointID: waitpoint, Approver: "ann"}))
	must[SignalAnswer](t)(s.signal(waitpoint, "filler"))
	_, err := s.decide(link.ID, "approve", "")
	wantCode(t, err, base.CodeSignalLimitExceeded)
	if len(s.d.LinkEnds) != 0 {
		t.Fatal("W71: decided, though the signal was refused")
	}
	_, err = s.decide(base.UUID{1}, "approve", "")
	wantCode(t, err, base.CodeLinkNotFound)
	wantCode(t, s.d.CheckDecidable(s.now, base.UUID{1}), base.CodeLinkNotFound)
}

func TestW74_a_link_is_withdrawn_by_the_holder_or_an_operator_and_listed(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	f := s.claim()
	waitpoint := s.pendingAt("a")[0]
	var links []Link
	for _, who := range []string{"ann", "bob", "eve"} {
		links = append(links, must[Link](t)(s.createLink(CreateLinkCommand{WaitpointID: waitpoint, Approver: who})))
	}
	for i, by := range []*Fence{&f, nil} {
		if already := must[bool](t)(s.revokeLink(by, links[i].ID)); already {
			t.Fatal("withdrawn before")
		}
		if data := s.last("approval_link.revoked"); data["link_id"] != links[i].ID.String() || data["expires_at"] != nil {
			t.Fatalf("%v", data)
		}
		if already := must[bool](t)(s.revokeLink(by, links[i].ID)); !already {
			t.Fatal("withdrawn twice")
		}
	}
	stale := f
	stale.Epoch = 5
	_, err := s.revokeLink(&stale, links[2].ID)
	wantCode(t, err, base.CodeStaleLease)
	_, err = s.revokeLink(nil, base.UUID{1})
	wantCode(t, err, base.CodeLinkNotFound)
	must[DecideAnswer](t)(s.decide(links[2].ID, "reject", "no"))
	var shown []string
	for _, v := range s.d.LinkViews(s.now, waitpoint) {
		shown = append(shown, v.Approver+" "+v.State)
	}
	if diff := cmp.Diff([]string{"ann revoked", "bob revoked", "eve decided"}, shown); diff != "" {
		t.Fatal(diff)
	}
	if views := s.d.LinkViews(s.now, base.UUID{1}); len(views) != 0 {
		t.Fatalf("%+v", views)
	}
}
