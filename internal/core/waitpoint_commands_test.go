package core

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
)

func TestW36_a_waitpoint_is_made_pending_with_a_token(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	f := s.claim()
	a := must[CreateWaitpointAnswer](t)(s.createWaitpoint(f, "a"))
	w := a.Waitpoint
	if w.ExpiresAt != s.now.Add(86_400_000) || w.MintedAt != s.now || w.CreatedAt != s.now || w.RequiredNames != nil || w.Key != "a" || w.RunIndex != 0 {
		t.Fatalf("%+v", w)
	}
	token, err := s.keys.Mint(w.TokenFields())
	if err != nil {
		t.Fatal(err)
	}
	if kid, print := token.Split(); kid != w.TokenKid || print != w.TokenFingerprint {
		t.Fatalf("W28: %s %s, stored %s %s", kid, print, w.TokenKid, w.TokenFingerprint)
	}
	want := map[string]any{
		"waitpoint_id": w.ID.String(), "waitpoint_key": "a", "expires_at": w.ExpiresAt.String(), "token_kid": "k1", "token_fingerprint": w.TokenFingerprint,
	}
	if diff := cmp.Diff(want, s.last("waitpoint.created")); diff != "" {
		t.Fatal(diff)
	}
	s.want(Running, ReasonNone, NextNone)
	if s.x.LeaseEpoch != 1 {
		t.Fatalf("WI16: epoch %d", s.x.LeaseEpoch)
	}
}

func TestW36_the_first_fault_of_a_create_is_reported(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	f := s.claim()
	must[CreateWaitpointAnswer](t)(s.createWaitpoint(f, "a", func(c *CreateWaitpointCommand) { c.IdempotencyKey = "used" }))
	for len(s.x.openWaitpoints()) < MaxOpenWaitpoints {
		s.pendingAt("filler")
	}
	zero, long := base.Millis(0), base.Year+1
	stale := f
	stale.LeaseID = base.UUID{1}
	type fault struct {
		code base.Code
		make func(*CreateWaitpointCommand)
	}
	order := []fault{
		{base.CodeInvalidWaitpoint, func(c *CreateWaitpointCommand) { c.Key = strings.Repeat("k", 129) }},
		{base.CodeReservedName, func(c *CreateWaitpointCommand) { c.Key = "__k" }},
		{base.CodeInvalidWaitpoint, func(c *CreateWaitpointCommand) { c.ExpiresInMS = &long }},
		{base.CodeStaleLease, func(c *CreateWaitpointCommand) { c.Fence = stale }},
		{base.CodeIdempotencyConflict, func(c *CreateWaitpointCommand) { c.IdempotencyKey = "used" }},
		{base.CodeWaitpointAlreadyExists, func(c *CreateWaitpointCommand) { c.Taken = true }},
		{base.CodeWaitpointLimitExceeded, func(*CreateWaitpointCommand) {}},
	}
	for i, first := range order {
		for _, later := range order[i:] {
			_, err := s.createWaitpoint(f, "b", later.make, first.make)
			wantCode(t, err, first.code)
		}
	}
	for _, edit := range []func(*CreateWaitpointCommand){
		func(c *CreateWaitpointCommand) { c.Key = "" }, func(c *CreateWaitpointCommand) { c.Key = "a\x00" },
		func(c *CreateWaitpointCommand) { c.ExpiresInMS = &zero }, func(c *CreateWaitpointCommand) { c.IdempotencyKey = "a\n" },
	} {
		_, err := s.createWaitpoint(f, "b", edit)
		wantCode(t, err, base.CodeInvalidWaitpoint)
	}
	must[bool](t)(s.closeWaitpoint(&f, s.x.openWaitpoints()[5].ID))
	_, err := s.createWaitpoint(f, "b", func(c *CreateWaitpointCommand) { c.Keys = &keyring.Ring{} })
	wantCode(t, err, base.CodeSigningKeyMissing)
	must[CreateWaitpointAnswer](t)(s.createWaitpoint(f, "b"))
}

func TestW37_an_idempotency_key_makes_one_waitpoint_a_run(t *testing.T) {
	t.Parallel()
	s := begin(t, `{"retry_policy":{"backoff":{"strategy":"fixed","delay_ms":0}}}`)
	once := func(c *CreateWaitpointCommand) { c.IdempotencyKey = "k" }
	first := must[CreateWaitpointAnswer](t)(s.createWaitpoint(s.claim(), "a", once))
	wantSame := func() {
		t.Helper()
		told := len(s.events)
		again := must[CreateWaitpointAnswer](t)(s.createWaitpoint(s.fence(), "a", once))
		if !again.Repeated || !cmp.Equal(again.Waitpoint, first.Waitpoint) || len(s.events) != told {
			t.Fatalf("%+v", again)
		}
	}
	wantSame()
	must[FailAnswer](t)(s.fail(s.fence(), ""))
	s.claim()
	wantSame() // from a later attempt
	_, err := s.createWaitpoint(s.fence(), "b", once)
	wantCode(t, err, base.CodeIdempotencyConflict)
	for range 2 { // without a key each call makes one
		if a := must[CreateWaitpointAnswer](t)(s.createWaitpoint(s.fence(), "a")); a.Repeated {
			t.Fatalf("%+v", a)
		}
	}
	must[CompleteAnswer](t)(s.complete(s.fence(), nil))
	if err := s.replay(ReplayCommand{By: "ann"}); err != nil {
		t.Fatal(err)
	}
	if a := must[CreateWaitpointAnswer](t)(s.createWaitpoint(s.claim(), "b", once)); a.Repeated {
		t.Fatalf("a key of the run before: %+v", a)
	}
}

func TestW38_who_may_close_a_waitpoint_and_when(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	f := s.claim()
	ids := s.pendingAt("a", "b", "c")
	for i, by := range []*Fence{&f, nil} {
		if already := must[bool](t)(s.closeWaitpoint(by, ids[i])); already {
			t.Fatal("closed already")
		}
		s.wantClosed(ids[i], ClosedByRequest)
		if data := s.last("waitpoint.closed"); data["close_reason"] != "closed" || data["waitpoint_id"] != ids[i].String() {
			t.Fatalf("%v", data)
		}
		if already := must[bool](t)(s.closeWaitpoint(by, ids[i])); !already {
			t.Fatal("closed twice")
		}
	}
	_, err := s.suspendFor(f, `{"type":"single"}`, bound(pending(ids[0])...))
	wantCode(t, err, base.CodeWaitpointNotPending)
	_, err = s.closeWaitpoint(nil, base.UUID{1})
	wantCode(t, err, base.CodeWaitpointNotFound)
	stale := f
	stale.Epoch = 9
	_, err = s.closeWaitpoint(&stale, ids[2])
	wantCode(t, err, base.CodeStaleLease)
	must[SuspendAnswer](t)(s.suspendFor(f, `{"type":"single"}`, bound(pending(ids[2])...)))
	_, err = s.closeWaitpoint(nil, ids[2])
	wantCode(t, err, base.CodeWaitpointActive)
}

func TestW31_W32_a_token_is_read_and_reissued_while_the_waitpoint_is_open(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	f := s.claim()
	id := s.pendingAt("a")[0]
	read := func(keys *keyring.Ring) (w Waitpoint, err error) {
		err = s.do(func(fx *Effects) error { w, err = s.x.ReadToken(fx, &s.d, id, keys); return err })
		return w, err
	}
	before := must[Waitpoint](t)(read(s.keys))
	if data := s.last("waitpoint.token_read"); data["waitpoint_id"] != id.String() || data["token_kid"] != "k1" {
		t.Fatalf("%v", data)
	}
	link := must[Link](t)(s.createLink(CreateLinkCommand{WaitpointID: id, Approver: "ann"}))
	old, _ := s.keys.Mint(before.TokenFields())
	oldLink, _ := s.keys.Mint(link.TokenFields(before.MintedAt))
	after := must[Waitpoint](t)(s.reissue(id))
	if after.MintedAt != before.MintedAt+1 || after.TokenFingerprint != before.TokenFingerprint {
		t.Fatalf("W28, W32: %+v", after)
	}
	if data := s.last("waitpoint.token_reissued"); data["waitpoint_id"] != id.String() || data["token_kid"] != "k1" {
		t.Fatalf("%v", data)
	}
	if fault, _ := s.keys.Verify(s.now, old, s.d.Waitpoint(id).TokenFields()); fault != keyring.TokenMismatch {
		t.Fatalf("the old token: %s", fault)
	}
	if fault, _ := s.keys.Verify(s.now, oldLink, s.d.Link(link.ID).TokenFields(s.d.Waitpoint(id).MintedAt)); fault != keyring.TokenMismatch {
		t.Fatalf("the old link: %s", fault)
	}
	s.pass(base.Second)
	if again := must[Waitpoint](t)(s.reissue(id)); again.MintedAt != s.now {
		t.Fatalf("%+v", again)
	}
	_, err := read(&keyring.Ring{})
	wantCode(t, err, base.CodeSigningKeyMissing)
	must[bool](t)(s.closeWaitpoint(&f, id))
	_, err = read(s.keys)
	wantCode(t, err, base.CodeWaitpointNotFound)
	_, err = s.reissue(id)
	wantCode(t, err, base.CodeWaitpointNotFound)
	_, err = s.reissue(base.UUID{1})
	wantCode(t, err, base.CodeWaitpointNotFound)
}

func TestW83_waitpoints_are_listed_by_id_with_their_states(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	f := s.claim()
	ids := s.pendingAt("a", "b", "c")
	low := must[CreateWaitpointAnswer](t)(s.createWaitpoint(f, "low", func(c *CreateWaitpointCommand) { c.WaitpointID = base.UUID{0, 1} })).Waitpoint.ID
	must[bool](t)(s.closeWaitpoint(&f, ids[1]))
	must[SuspendAnswer](t)(s.suspendFor(f, singleNamed, bound(pending(ids[0])...)))
	must[SignalAnswer](t)(s.signal(low, "x"))
	must[Link](t)(s.createLink(CreateLinkCommand{WaitpointID: low, Approver: "ann"}))
	show := func(closed bool) []string {
		views, err := s.x.WaitpointViews(&s.d, closed)
		if err != nil {
			t.Fatal(err)
		}
		var shown []string
		for _, v := range views {
			shown = append(shown, v.Key+" "+v.State+" "+string(v.CloseReason))
			if v.Key == "low" && (v.SignalCount != 1 || v.LinkCount != 1) || v.Key == "a" && !cmp.Equal(v.RequiredNames, []string{"go"}) {
				t.Fatalf("%+v", v)
			}
		}
		return shown
	}
	if diff := cmp.Diff([]string{"low pending ", "a active ", "c pending "}, show(false)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"low pending ", "a active ", "b closed closed", "c pending "}, show(true)); diff != "" {
		t.Error(diff)
	}
}

func TestW84_W85_a_suspended_execution_shows_its_progress_and_all_signals(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	if view, err := s.x.SuspendedView(&s.d); view != nil || err != nil {
		t.Fatalf("%+v, %v", view, err)
	}
	f := s.claim()
	other := s.pendingAt("other")[0]
	must[SignalAnswer](t)(s.signal(other, "early"))
	s.now = s.now.Add(base.Second)
	a := must[SuspendAnswer](t)(s.suspendFor(f, bothOf(singleNamed, countOf(3, "distinct_signals", `"waitpoints":["a","b"]`)),
		bound(fresh("a", "b")...), timedOut(base.Hour, ""), func(c *SuspendCommand) { c.ReasonCode = "waiting_for_approval" }))
	must[SignalAnswer](t)(s.signal(a.Waitpoints[0].ID, "no"))
	must[SignalAnswer](t)(s.signal(a.Waitpoints[1].ID, "go"))
	view, err := s.x.SuspendedView(&s.d)
	if err != nil || view.SuspensionID != a.SuspensionID || view.SuspendedAt != s.now || view.TimeoutAt != a.TimeoutAt ||
		view.ReasonCode != "waiting_for_approval" || len(view.Waitpoints) != 2 || view.Waitpoints[0].Key != "a" {
		t.Fatalf("%+v, %v", view, err)
	}
	if p := view.Progress; p[0].Progress != 0 || p[0].Needed != 1 || p[1].Progress != 2 || p[1].Needed != 3 {
		t.Fatalf("%+v", p)
	}
	all, err := s.d.SignalViews(base.UUID{})
	if err != nil || !cmp.Equal(namesOf(all), []string{"early", "no", "go"}) {
		t.Fatalf("%+v, %v", all, err)
	}
	own, err := s.d.SignalViews(a.SuspensionID)
	if err != nil || !cmp.Equal(namesOf(own), []string{"no", "go"}) {
		t.Fatalf("%+v, %v", own, err)
	}
}

func TestL19_a_waitpoint_that_closed_wakes_no_call(t *testing.T) {
	t.Parallel()
	soon := func(c *CreateWaitpointCommand) { ms := base.Second; c.ExpiresInMS = &ms }
	s := begin(t, `{}`)
	id := must[CreateWaitpointAnswer](t)(s.createWaitpoint(s.claim(), "a", soon)).Waitpoint.ID
	must[LeaveAnswer](t)(s.release(s.fence()))
	if s.x.WakeAt != s.now.Add(base.Second) {
		t.Fatalf("wakes at %s", s.x.WakeAt)
	}
	must[bool](t)(s.closeWaitpoint(nil, id))
	if s.x.WakeAt != 0 {
		t.Fatalf("wakes at %s after the close", s.x.WakeAt)
	}

	s = begin(t, `{}`)
	id = must[CreateWaitpointAnswer](t)(s.createWaitpoint(s.claim(), "a", soon)).Waitpoint.ID
	must[SignalAnswer](t)(s.signal(id, "go"))
	must[SuspendAnswer](t)(s.suspendFor(s.fence(), singleA, bound(pending(id)...)))
	if s.x.WakeAt != s.x.Lease.ExpiresAt {
		t.Fatalf("wakes at %s after the wait was passed", s.x.WakeAt)
	}
}
