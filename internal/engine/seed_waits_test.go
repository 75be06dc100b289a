package engine_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/condition"
	"github.com/flowfabric/flowfabric/internal/store"
)

// What docs/seed-coverage.md says of suspends, where the published code behaves otherwise.

func TestW6_every_part_of_the_fence_counts_for_a_suspend(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		right := fence(task)
		for what, wrong := range map[string]core.Fence{
			"lease":   {LeaseID: right.AttemptID, Epoch: right.Epoch, AttemptID: right.AttemptID},
			"epoch":   {LeaseID: right.LeaseID, Epoch: right.Epoch + 1, AttemptID: right.AttemptID},
			"attempt": {LeaseID: right.LeaseID, Epoch: right.Epoch, AttemptID: right.LeaseID},
		} {
			t.Log(what)
			w.untouched(given(task), func() error {
				_, err := w.e.Suspend(w.ctx(), client, given(task), waitFor(task, goAtA, func(c *core.SuspendCommand) { c.Fence = wrong }))
				return err
			}, base.CodeStaleLease)
		}
		w.suspend(task, goAtA)
	})
}

func TestW53_a_second_suspend_replaces_neither_condition_nor_signals(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		id := given(task)
		s := w.suspend(task, goAtA)
		same(t, "ignored", w.signalled(s, "stay"), condition.EffectNotMatched)
		w.untouched(id, func() error { // the lease that made it has ended by it: it gets the first answer
			again, err := w.e.Suspend(w.ctx(), client, id, waitFor(task, atA))
			same(t, "answered", again.SuspensionID, s.SuspensionID)
			return err
		}, "")
		seen := w.observed(id)
		same(t, "the wait", []any{seen.ID, heard(seen.Signals)}, []any{s.SuspensionID, []string{"stay: from stay"}})
		same(t, "the condition", w.signalled(s, "go"), condition.EffectSatisfied)
	})
}

func TestW51_waitpoints_are_answered_in_the_order_of_their_bindings(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		b := w.pending(task, "b")
		all := `{"type":"all_of","members":[` + atA + `,{"type":"single","waitpoint_key":"b"},{"type":"single","waitpoint_key":"c"}]}`
		s := w.suspend(task, all, func(c *core.SuspendCommand) {
			c.Waitpoints = []core.Binding{{Key: ptr("c")}, {UsePending: true, ID: b.ID}, {Key: ptr("a")}}
		})
		var keys []string
		for i := range s.Waitpoints {
			keys = append(keys, s.Waitpoints[i].Key)
		}
		same(t, "keys", keys, []string{"c", "b", "a"})
		same(t, "the token that was handed out", s.Tokens[1].Reveal(), b.Token.Reveal())
		for i := range s.Waitpoints {
			must(w.signal(s.Waitpoints[i].ID, s.Tokens[i], "go"))(t)
		}
		same(t, "all of them", len(w.claim().Resumed.Signals), 3)
	})
}

func TestW62_pending_waitpoints_that_the_wait_had_nothing_to_do_with_outlive_it(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		later := w.pending(task, "later")
		s := w.suspend(task, goAtA)
		same(t, "enough", w.signalled(s, "go"), condition.EffectSatisfied)
		same(t, "early", must(w.signal(later.ID, later.Token, "x"))(t).Effect, condition.EffectBuffered)
		again := w.claim()
		passed := must(w.e.Suspend(w.ctx(), client, given(again),
			waitFor(again, `{"type":"single","waitpoint_key":"later"}`, adopting(later.ID))))(t)
		same(t, "the next wait", []any{passed.Satisfied, passed.Cause}, []any{true, core.CauseEarlySignals})
	})
}

// aborting is a store whose transactions abort as long as it says.
type aborting struct {
	store.Store
	on atomic.Bool
}

func (s *aborting) Begin(ctx context.Context, want store.Want) (store.Tx, *store.Loaded, error) {
	if s.on.Load() {
		return nil, nil, &store.Fault{Kind: store.Retry, Err: errors.New("could not serialize access")}
	}
	return s.Store.Begin(ctx, want)
}

func TestW3_a_transaction_of_a_wait_that_aborts_is_tried_again_and_one_that_goes_on_aborting_is_unavailable(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		closeEngine(t, w.e)
		below := &aborting{Store: w.store}
		s := &stumbling{Store: below}
		w.e = w.openEngine(s)
		stumble := func() { s.begins.Store(2); s.commits.Store(2) }
		task := w.started(core.Submission{})
		below.on.Store(true)
		_, err := w.e.Suspend(w.ctx(), client, given(task), waitFor(task, twoApprovers))
		refused(t, err, base.CodeStoreUnavailable)
		below.on.Store(false)
		stumble()
		slept := w.suspend(task, twoApprovers)
		link := w.link(slept.Waitpoints[0].ID, "ana")
		stumble()
		same(t, "by token", w.signalled(slept, "note"), condition.EffectNotMatched)
		stumble()
		same(t, "by link", must(w.decideLink(link, "approve"))(t).Signal.Effect, condition.EffectAppended)
		stumble()
		same(t, "by an operator", must(w.approve("ben", given(task), core.ApproveCommand{Name: "approved"}))(t).Effect, condition.EffectSatisfied)
		w.complete(w.claim())
		same(t, "each happened once", w.story(given(task)), []string{
			"execution.submitted", "lease.acquired", "waitpoint.created", "execution.suspended", "approval_link.created", "signal.accepted",
			"signal.accepted", "approval_link.decided", "signal.accepted", "waitpoint.closed", "execution.resumed", "lease.acquired", "execution.completed",
		})
	})
}
