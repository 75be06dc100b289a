package engine_test

import (
	"sync"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/condition"
	"github.com/flowfabric/flowfabric/internal/engine"
)

func TestW65_W66_W67_two_different_people_are_needed(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		id := given(task)
		s := w.suspend(task, twoApprovers)
		at := s.Waitpoints[0].ID
		yes := core.ApproveCommand{Name: "approved"}
		same(t, "ann", must(w.approve("ann", id, yes))(t).Effect, condition.EffectAppended)
		same(t, "ann again", must(w.approve("ann", id, yes))(t).Duplicate, true)
		yes.Suffix = "2"
		same(t, "ann once more", must(w.approve("ann", id, yes))(t).Effect, condition.EffectRepeated)
		pretended := must(w.signal(at, s.Tokens[0], "approved", func(c *core.SignalCommand) { c.SourceIdentity = "bob" }))(t)
		same(t, "somebody who says that he is bob", pretended.Effect, condition.EffectNotMatched)
		same(t, "ann by a link", must(w.decideLink(w.link(at, "ann"), "approve"))(t).Signal.Effect, condition.EffectRepeated)
		w.is(id, core.Suspended, core.WaitingForSignal)
		decided := must(w.decideLink(w.link(at, "bob"), "approve"))(t)
		same(t, "bob by a link", decided.Signal.Effect, condition.EffectSatisfied)
		signals := w.claim().Resumed.Signals
		last := signals[len(signals)-1]
		same(t, "what the handler gets", []any{last.SourceType, last.SourceIdentity, last.SourceVerified, last.Category},
			[]any{"approver", "bob", true, "approval"})
		same(t, "U131", w.deeds("default"), []string{
			"default approve execution", "default approve execution", "default create_link approval_link", "default decide approval_link",
			"default create_link approval_link", "default decide approval_link",
		})
		for _, ev := range w.events(engine.EventFilter{ExecutionID: &id, Kinds: []string{"approval_link.decided"}}) {
			same(t, "E24: actor", ev.Actor.Type, "approver")
		}
	})
}

func TestW65_approvals_are_checked_in_order(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		id, s := w.asleep(`{"type":"any_of","members":[` + atA + `,{"type":"single","waitpoint_key":"b"}]}`)
		approve := func(c core.ApproveCommand) error { _, err := w.approve("ann", id, c); return err }
		bad := core.ApproveCommand{Name: "__x", Lane: "other", WaitpointID: base.UUID{8}}
		_, err := w.approve("ann", base.GivenID{UUID: base.UUID{8}}, bad)
		refused(t, err, base.CodeExecutionNotFound)
		refused(t, approve(bad), base.CodeLaneMismatch)
		bad.Lane = "default"
		refused(t, approve(bad), base.CodeWaitpointNotFound)
		bad.WaitpointID = base.UUID{}
		refused(t, approve(bad), base.CodeWaitpointAmbiguous)
		bad.WaitpointID = s.Waitpoints[1].ID
		refused(t, approve(bad), base.CodeReservedName)
		bad.Name, bad.Comment = "yes", "do it"
		_, err = w.approve("", id, bad)
		refused(t, err, base.CodePrincipalRequired)
		status := core.Ready
		_, err = w.e.Approve(w.ctx(), operator, id, bad, engine.Operator{Expect: core.Expect{Status: &status}})
		refused(t, err, base.CodePreconditionFailed)
		ok(t, approve(bad))
		same(t, "the comment", heard(w.claim().Resumed.Signals), []string{`yes: {"comment":"do it"}`})
	})
}

func TestW68_W71_W72_WI20_a_link_is_decided_once(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		id, s := w.asleep(atA)
		l := w.link(s.Waitpoints[0].ID, "ann", func(c *core.CreateLinkCommand) { c.CommentRequired = true })
		decide := func(decision, comment string) (core.DecideAnswer, error) {
			return w.e.Decide(w.ctx(), stranger, l.Token, core.DecideCommand{LinkID: l.ID, Decision: decision, Comment: comment})
		}
		_, err := decide("perhaps", "x")
		refused(t, err, base.CodeInvalidDecision)
		_, err = decide("approve", "")
		refused(t, err, base.CodeInvalidDecision)
		first := must(decide("approve", "fine"))(t)
		same(t, "decided", []any{first.Already, first.End.Decision, first.Signal.Effect}, []any{false, "approve", condition.EffectSatisfied})
		second := must(decide("reject", "no"))(t)
		same(t, "it stays so", []any{second.Already, second.End}, []any{true, first.End})
		again := must(decide("perhaps", ""))(t)
		same(t, "whatever is sent", []any{again.Already, again.End}, []any{true, first.End})
		same(t, "one signal", []int{w.count(id, "signal.accepted"), w.count(id, "approval_link.decided")}, []int{1, 1})
	})
}

func TestW71_WI20_of_two_decisions_at_once_one_counts(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		id, s := w.asleep(operatorOnly, func(c *core.SuspendCommand) { c.Waitpoints = []core.Binding{{Key: ptr("a")}} })
		l := w.link(s.Waitpoints[0].ID, "ann")
		answers := make([]core.DecideAnswer, 16)
		var wg sync.WaitGroup
		for i := range answers {
			wg.Go(func() {
				answers[i] = must(w.decideLink(l, []string{"approve", "reject"}[i%2]))(t)
			})
		}
		wg.Wait()
		firsts := 0
		for _, a := range answers {
			same(t, "the decision", a.End, answers[0].End)
			if !a.Already {
				firsts++
			}
		}
		same(t, "who decided", firsts, 1)
		same(t, "one signal", w.count(id, "signal.accepted"), 1)
	})
}

func TestW73_W74_links_end_by_their_time_by_hand_and_with_their_waitpoint(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		id, s := w.asleep(atA)
		at := s.Waitpoints[0].ID
		refusedBy := func(l engine.IssuedLink, code base.Code) {
			t.Helper()
			w.untouched(id, func() error { _, err := w.decideLink(l, "approve"); return err }, code)
		}
		short := w.link(at, "ann", func(c *core.CreateLinkCommand) { c.ExpiresInMS = ptr(base.Minute) })
		withdrawn, late := w.link(at, "ann"), w.link(at, "ann")
		w.turn(base.Minute)
		refusedBy(short, base.CodeLinkExpired)
		revoke := func(link base.UUID) error { return w.e.RevokeLink(w.ctx(), operator, link, nil, engine.Operator{}) }
		ok(t, revoke(withdrawn.ID))
		ok(t, revoke(withdrawn.ID))
		refusedBy(withdrawn, base.CodeLinkRevoked)
		refused(t, revoke(base.UUID{6}), base.CodeLinkNotFound)
		same(t, "told once", w.count(id, "approval_link.revoked"), 1)
		decided := w.link(at, "bob")
		must(w.decideLink(decided, "approve"))(t)
		refused(t, revoke(decided.ID), base.CodeLinkAlreadyDecided)
		refusedBy(late, base.CodeWaitpointClosed)
		_, err := w.e.CreateLink(w.ctx(), operator, core.CreateLinkCommand{WaitpointID: at, Approver: "ann"}, engine.Operator{})
		refused(t, err, base.CodeWaitpointClosed)
	})
}

func TestW68_W69_links_are_made_by_worker_or_operator_and_shown_to_operators(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{Namespace: "a"})
		a := w.pending(task, "a")
		make := func(c engine.Caller, f *core.Fence, key string) (engine.IssuedLink, error) {
			return w.e.CreateLink(w.ctx(), c, core.CreateLinkCommand{Fence: f, WaitpointID: a.ID, Approver: "ann"}, engine.Operator{RequestKey: key})
		}
		l := must(make(client, ptr(fence(task)), "k"))(t)
		again := must(make(client, ptr(fence(task)), "k"))(t)
		same(t, "W4: the same link", []any{again.ID, again.Token.Reveal()}, []any{l.ID, l.Token.Reveal()})
		stale := fence(task)
		stale.AttemptID = base.UUID{1}
		_, err := make(client, &stale, "")
		refused(t, err, base.CodeStaleLease)
		foreign := engine.Caller{Principal: "op", Actor: "operator", Namespaces: []string{"b"}}
		_, err = make(foreign, nil, "")
		refused(t, err, base.CodeWaitpointNotFound)
		_, err = w.e.ReadLink(w.ctx(), foreign, l.ID)
		refused(t, err, base.CodeLinkNotFound)
		refused(t, w.e.RevokeLink(w.ctx(), foreign, l.ID, nil, engine.Operator{}), base.CodeLinkNotFound)

		must(w.rotateKey("b", 2, 1000))(t)
		shown := must(w.e.ReadLink(w.ctx(), operator, l.ID))(t)
		kid, _ := shown.Token.Split()
		same(t, "under the active key", kid, "b")
		w.turn(1001)
		_, err = w.decideLink(l, "approve")
		refused(t, err, base.CodeLinkNotFound)
		other := w.link(a.ID, "bob")
		_, err = w.e.Decide(w.ctx(), stranger, other.Token, core.DecideCommand{LinkID: l.ID, Decision: "approve"})
		refused(t, err, base.CodeLinkNotFound)
		_, err = w.e.Decide(w.ctx(), stranger, a.Token, core.DecideCommand{LinkID: l.ID, Decision: "approve"})
		refused(t, err, base.CodeLinkNotFound)
		_, err = w.e.Decide(w.ctx(), stranger, shown.Token, core.DecideCommand{LinkID: base.UUID{4}, Decision: "approve"})
		refused(t, err, base.CodeLinkNotFound)
		same(t, "decided", must(w.e.Decide(w.ctx(), stranger, shown.Token, core.DecideCommand{LinkID: l.ID, Decision: "approve"}))(t).Signal.Effect, condition.EffectBuffered)
		same(t, "U131", w.deeds("a"), []string{
			"a read_link_url approval_link", "a create_link approval_link", "a decide approval_link",
		})
	})
}
