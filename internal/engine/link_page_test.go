package engine_test

import (
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/metrics"
	"github.com/flowfabric/flowfabric/internal/store"
)

// opened is what a link shows.
func (w *world) opened(l engine.IssuedLink) engine.LinkPage {
	w.t.Helper()
	return must(w.e.OpenLink(w.ctx(), stranger, l.ID, l.Token))(w.t)
}

// refusedTokens counts the tokens that an engine has refused, by cause.
func refusedTokens(t *testing.T, e *engine.Engine) map[string]float64 {
	t.Helper()
	families, err := metrics.Registry{e.Collector()}.Gather()
	ok(t, err)
	counts := map[string]float64{}
	for _, family := range families {
		if family.Name == metrics.TokensRefused.Name {
			for _, s := range family.Samples {
				if s.Value > 0 {
					counts[s.Labels[0]] = s.Value
				}
			}
		}
	}
	return counts
}

func TestW70_a_live_link_shows_what_is_asked_and_looking_changes_nothing(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{Kind: "deploy", Creator: "carol", Tags: base.Tags{"service": "web"}})
		at := w.suspend(task, twoApprovers, timingOut(base.Hour, core.BehaviorFail))
		titled := func(c *core.CreateLinkCommand) {
			c.Title, c.Message, c.CommentRequired = "Deploy?", "Version 7 to everybody.", true
		}
		ann := w.link(at.Waitpoints[0].ID, "ann@example.com", titled)
		bob := w.link(at.Waitpoints[0].ID, "bob@example.com")
		end := must(w.store.Poll(w.ctx(), store.PollAsk{}))(t).LogEnd
		for range 100 {
			w.opened(ann)
		}
		same(t, "events", must(w.store.Poll(w.ctx(), store.PollAsk{}))(t).LogEnd, end)

		page := w.opened(ann)
		same(t, "question", [5]any{page.Title, page.Message, page.Approver, page.CommentRequired, page.State},
			[5]any{"Deploy?", "Version 7 to everybody.", "ann@example.com", true, core.LinkOpen})
		same(t, "work", [3]any{page.Kind, page.Tags["service"], page.Asker}, [3]any{"deploy", "web", "carol"})
		same(t, "progress", [3]any{page.Progress, page.Needed, page.Counted}, [3]any{0, 2, "approved"})
		same(t, "time left", page.TimeoutAt.Sub(page.Now), base.Hour)
		same(t, "decidable", page.Undecided, nil)
		same(t, "choices", page.Decisions, core.DefaultDecisions())

		must(w.decideLink(bob, "approve"))(t)
		page = w.opened(ann)
		same(t, "1 of 2 have approved", [2]int{page.Progress, page.Needed}, [2]int{1, 2})
		page = w.opened(bob)
		same(t, "decided", [3]any{page.State, page.End.Decision, page.Undecided}, [3]any{core.LinkDecided, "approve", nil})

		must(w.approve("op1", given(task), core.ApproveCommand{Name: "approved"}))(t)
		page = w.opened(ann)
		same(t, "the wait is over", [4]any{page.State, page.Progress, page.TimeoutAt, page.Waitpoint.CloseReason}, [4]any{core.LinkClosed, 2, base.Time(0), core.ClosedResumed})
		refused(t, page.Undecided, base.CodeWaitpointClosed)
	})
}

func TestW73_a_link_that_cannot_be_decided_says_why(t *testing.T) {
	t.Parallel()
	unsweptWithKey(t, func(t *testing.T, w *world) {
		_, at := w.asleep(atA, timingOut(base.Hour, core.BehaviorFail))
		hasty := w.link(at.Waitpoints[0].ID, "ann", func(c *core.CreateLinkCommand) { c.ExpiresInMS = ptr(base.Minute) })
		w.turn(1)
		withdrawn := w.link(at.Waitpoints[0].ID, "bob")
		w.turn(1)
		patient := w.link(at.Waitpoints[0].ID, "cyd")
		ok(t, w.e.RevokeLink(w.ctx(), operator, withdrawn.ID, nil, engine.Operator{}))
		w.turn(base.Minute - 3)
		same(t, "a moment before", w.opened(hasty).Undecided, nil)
		w.turn(1)
		refused(t, w.opened(hasty).Undecided, base.CodeLinkExpired)
		refused(t, w.opened(withdrawn).Undecided, base.CodeLinkRevoked)
		w.turn(base.Hour)
		refused(t, w.opened(patient).Undecided, base.CodeWaitpointClosed)
		same(t, "states", [3]string{w.opened(hasty).State, w.opened(withdrawn).State, w.opened(patient).State}, [3]string{core.LinkExpired, core.LinkRevoked, core.LinkClosed})

		links := must(w.e.Links(w.ctx(), client, at.Waitpoints[0].ID))(t)
		same(t, "links", [4]any{len(links), links[0].Approver, links[1].State, links[2].State}, [4]any{3, "ann", core.LinkRevoked, core.LinkClosed})
		same(t, "counted", must(w.e.Waitpoint(w.ctx(), client, at.Waitpoints[0].ID))(t).LinkCount, 3)
	})
}

func TestW69_every_link_that_does_not_verify_is_not_found_in_the_same_words(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		_, at := w.asleep(atA)
		l, other := w.link(at.Waitpoints[0].ID, "ann"), w.link(at.Waitpoints[0].ID, "bob")
		_, err := w.e.OpenLink(w.ctx(), stranger, base.UUID{9}, l.Token)
		want := refused(t, err, base.CodeLinkNotFound).Error()
		for what, c := range map[string]struct {
			link  base.UUID
			token keyring.Token
		}{
			"no token":               {l.ID, keyring.Token{}},
			"no shape":               {l.ID, keyring.TokenOf("a:zz")},
			"of another link":        {l.ID, other.Token},
			"of the waitpoint":       {l.ID, at.Tokens[0]},
			"of a key that is not":   {l.ID, keyring.TokenOf("b" + l.Token.Reveal()[1:])},
			"for the waitpoint's id": {at.Waitpoints[0].ID, l.Token},
		} {
			_, err := w.e.OpenLink(w.ctx(), stranger, c.link, c.token)
			same(t, what, refused(t, err, base.CodeLinkNotFound).Error(), want)
		}
		same(t, "causes", refusedTokens(t, w.e), map[string]float64{"unknown_target": 2, "shape": 1, "mismatch": 2, "unknown_kid": 1})

		w.opened(l)
		must(w.e.ReissueToken(w.ctx(), operator, at.Waitpoints[0].ID, engine.Operator{}))(t)
		_, err = w.e.OpenLink(w.ctx(), stranger, l.ID, l.Token)
		refused(t, err, base.CodeLinkNotFound)
		fresh := must(w.e.ReadLink(w.ctx(), operator, l.ID))(t)
		w.opened(fresh)
		must(w.rotateKey("b", 2, 1000))(t)
		w.opened(fresh)
		w.turn(1001)
		_, err = w.e.OpenLink(w.ctx(), stranger, l.ID, fresh.Token)
		refused(t, err, base.CodeLinkNotFound)
		same(t, "of an old key", refusedTokens(t, w.e)["expired_kid"], 1)
	})
}
