package engine_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// inEveryStatus makes one execution in each status that this engine knows, and names it.
func (w *world) inEveryStatus() map[core.Status]base.GivenID {
	w.t.Helper()
	made := map[core.Status]base.GivenID{}
	for status, end := range map[core.Status]func(engine.Task){
		core.Running:   func(engine.Task) {},
		core.Suspended: func(task engine.Task) { w.suspend(task, operatorOnly) },
		core.Succeeded: func(task engine.Task) { w.complete(task) },
		core.Failed:    func(task engine.Task) { w.fail(task, "permanent") },
		core.Cancelled: func(task engine.Task) { w.cancel(given(task)) },
		core.Expired: func(task engine.Task) {
			w.turnTo(task.Execution.DeadlineAt)
			w.becomes(given(task), core.Expired)
		},
	} {
		s := core.Submission{}
		if status == core.Expired {
			s.DeadlineAt = w.now() + 50
		}
		task := w.started(s)
		end(task)
		made[status] = given(task)
	}
	made[core.Delayed] = w.submit(core.Submission{DelayMS: ptr(base.Day)})
	made[core.Blocked] = w.submit(core.Submission{})
	w.hold(made[core.Blocked])
	made[core.Ready] = w.submit(core.Submission{})
	for status, id := range made {
		same(w.t, "made", w.get(id).Status, status)
	}
	return made
}

func TestLC16_cancel_ends_every_status_and_overwrites_no_outcome(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		for status, id := range w.inEveryStatus() {
			cancel := func() error {
				_, err := w.e.Cancel(w.ctx(), operator, id, nil, "", engine.Operator{Reason: "enough"})
				return err
			}
			switch {
			case status == core.Cancelled:
				w.untouched(id, cancel, "")
			case status.Terminal():
				refusal := w.untouched(id, cancel, base.CodeExecutionNotActive)
				same(t, "names the outcome", refusal.Details["status"], any(status.String()))
			default:
				ok(t, cancel())
				x := w.is(id, core.Cancelled, core.CancelledByRequest)
				same(t, "cancellation", *x.Cancellation, core.Cancellation{Source: "operator", By: "op", Reason: "enough"})
				same(t, "completions", w.count(id, "execution.completed"), 1)
				same(t, "requests", w.count(id, "execution.cancel_requested"), 1)
				w.untouched(id, cancel, "")
			}
		}
		w.nothing()
	})
}

func TestL27_LC17_replay_resets_and_keeps_field_by_field(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{
			Priority: 7, Tags: base.Tags{"a": "b"}, Input: core.Payload{Data: []byte("in")}, IdempotencyKey: "key",
			PolicyJSON: []byte(`{"retry_policy":{"max_retries":1,"backoff":{"strategy":"fixed","delay_ms":0}}}`),
		})
		id := given(task)
		ok(t, w.e.Progress(w.ctx(), client, id, fence(task), ptr(50), ptr("half")))
		w.fail(task, "")
		w.claim()
		w.turn(30_000)
		again := w.claim() // a reclaim
		w.fail(again, "")
		w.turn(10)
		before := w.get(id)
		same(t, "status", before.Status, core.Failed)
		w.turn(10)
		after := w.replay(id)

		want := before.Clone()
		want.Status, want.Reason, want.Next = core.Ready, core.WaitingForWorker, core.NextReplay
		want.Failure, want.Progress, want.LastLease = nil, nil, nil
		want.RetryCount, want.ReclaimCount, want.ReplayCount = 0, 0, 1
		want.CompletedAt, want.RunStartedAt = 0, 0
		want.QueuedAt, want.StatusSince, want.LastMutationAt = w.now(), w.now(), w.now()
		want.ReplayLineage = &core.Lineage{PreviousIndex: 2, Reason: "again", By: "op", ReplayNumber: 1}
		want.OrderKey, after.OrderKey = 0, 0
		if diff := cmp.Diff(want, after); diff != "" {
			t.Fatalf("replay (-want +got):\n%s", diff)
		}
		fresh := w.claim().Execution
		same(t, "attempt", [2]any{fresh.Attempt.Index, fresh.Attempt.Type}, [2]any{3, core.AttemptReplay})
		same(t, "lineage", *fresh.Attempt.Lineage, core.Lineage{PreviousIndex: 2, Reason: "again", By: "op", ReplayNumber: 1})
		same(t, "started once", fresh.StartedAt, before.StartedAt)
		same(t, "run started", fresh.RunStartedAt, w.now())
		same(t, "all attempts are kept", len(w.attempts(id)), 4)
		same(t, "key still counts", must(w.e.Submit(w.ctx(), client, core.Submission{Kind: "k", IdempotencyKey: "key", Input: core.Payload{Data: []byte("in")}, PolicyJSON: []byte(`{"retry_policy":{"max_retries":1,"backoff":{"strategy":"fixed","delay_ms":0}}}`)}))(t).Outcome, "duplicate")
	})
}

func TestLC17_replay_from_every_status(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		for status, id := range w.inEveryStatus() {
			replay := func() error {
				_, err := w.e.Replay(w.ctx(), operator, id, engine.ReplayRequest{}, engine.Operator{})
				return err
			}
			if !status.Terminal() {
				w.untouched(id, replay, base.CodeExecutionNotTerminal)
				continue
			}
			ok(t, replay())
			x := w.is(id, core.Ready, core.WaitingForWorker)
			same(t, "result and cancellation", [2]bool{x.Result == nil, x.Cancellation == nil}, [2]bool{true, true})
			same(t, "a passed deadline is dropped", x.DeadlineAt, 0)
		}
		never := w.submit(core.Submission{})
		w.cancel(never)
		same(t, "without an attempt the next is the first", w.replay(never).Next, core.NextInitial)
	})
}

func TestLC17_the_replay_cap_and_the_deadline_of_a_replay(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.started(policy(`{"max_replay_count":2,"timeout_policy":{"execution_deadline_ms":1000}}`))
		id := given(task)
		w.complete(task)
		w.turn(5000)
		same(t, "by policy", w.replay(id).DeadlineAt, w.now()+1000)
		w.cancel(id)
		bad := engine.ReplayRequest{DeadlineAt: w.now()}
		w.untouched(id, func() error { _, err := w.e.Replay(w.ctx(), operator, id, bad, engine.Operator{}); return err }, base.CodeInvalidArgument)
		good := engine.ReplayRequest{DeadlineAt: w.now() + 77}
		same(t, "by call", must(w.e.Replay(w.ctx(), operator, id, good, engine.Operator{}))(t).Execution.DeadlineAt, w.now()+77)
		w.cancel(id)
		w.untouched(id, func() error {
			_, err := w.e.Replay(w.ctx(), operator, id, engine.ReplayRequest{}, engine.Operator{})
			return err
		}, base.CodeMaxReplaysExhausted)

		old := w.submit(core.Submission{DeadlineAt: w.now() + 10_000})
		w.cancel(old)
		same(t, "the old one if still ahead", w.replay(old).DeadlineAt, w.now()+10_000)
		w.cancel(old)
		w.turn(10_000)
		same(t, "else none", w.replay(old).DeadlineAt, 0)
		w.turn(60_000)
		w.is(old, core.Ready, core.WaitingForWorker)
	})
}

func TestLC17_revoke_cancel_replay_claim_and_renew_in_a_row(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		w.revoke(given(task))
		w.cancel(given(task))
		w.replay(given(task))
		again := w.claim()
		w.renewed(again)
		w.complete(again)
		same(t, "attempts", w.attempts(given(task))[0].State, core.EndedCancelled)
	})
}

func TestLC18_priority_in_every_status(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		made := w.inEveryStatus()
		for status, id := range made {
			set := func(p int) func() error {
				return func() error {
					_, err := w.e.SetPriority(w.ctx(), operator, id, p, engine.Operator{})
					return err
				}
			}
			if status.Terminal() {
				w.untouched(id, set(5), base.CodeExecutionNotActive)
				continue
			}
			before := w.get(id)
			ok(t, set(100_000)())
			x := w.get(id)
			same(t, "clamped", x.Priority, base.MaxPriority)
			same(t, "status stays", x.Status, before.Status)
			same(t, "lease is not disturbed", x.Lease, before.Lease)
			w.untouched(id, set(9000), "")
			ok(t, set(-5)())
			same(t, "clamped", w.get(id).Priority, 0)
		}
	})
}

func TestLC18_a_priority_change_shows_in_the_order_of_claims(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		first, second := w.submit(core.Submission{}), w.submit(core.Submission{})
		held, later := w.submit(core.Submission{}), w.submit(core.Submission{DelayMS: ptr(int64(100))})
		w.hold(held)
		for i, id := range []base.GivenID{later, second, held} {
			must(w.e.SetPriority(w.ctx(), operator, id, 10-i, engine.Operator{}))(t)
		}
		w.turn(100)
		w.becomes(later, core.Ready)
		w.releaseHold(held)
		for _, want := range []base.GivenID{later, second, held, first} {
			same(t, "order", given(w.claim()), want)
		}
	})
}

func TestLC18_hold_and_release_in_every_status(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		for status, id := range w.inEveryStatus() {
			hold := func() error { _, err := w.e.Hold(w.ctx(), operator, id, engine.Operator{Reason: "stay"}); return err }
			release := func() error { _, err := w.e.ReleaseHold(w.ctx(), operator, id, engine.Operator{}); return err }
			if status.Terminal() {
				w.untouched(id, hold, base.CodeExecutionNotActive)
				w.untouched(id, release, base.CodeExecutionNotActive)
				continue
			}
			want := map[core.Status]core.Status{core.Ready: core.Blocked, core.Delayed: core.Delayed, core.Blocked: core.Blocked, core.Running: core.Running, core.Suspended: core.Suspended}[status]
			if status != core.Blocked {
				ok(t, hold())
			}
			x := w.get(id)
			same(t, "status", x.Status, want)
			same(t, "hold", [2]string{x.Held.By, x.Held.Reason}, [2]string{"op", "stay"})
			w.untouched(id, hold, "")
			ok(t, release())
			w.untouched(id, release, "")
			if status == core.Blocked {
				want = core.Ready
			} else {
				want = status
			}
			same(t, "status after release", w.get(id).Status, want)
		}
	})
}

func TestL115_a_running_execution_is_held_when_it_would_queue_again(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		w.hold(given(task))
		w.release(task)
		w.is(given(task), core.Blocked, core.PausedByOperator)
		w.nothing()
		w.releaseHold(given(task))
		w.complete(w.claim())
	})
}

func TestL113_revoke_queues_for_a_takeover_that_is_no_reclaim(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.started(policy(`{"max_reclaim_count":0}`))
		id := given(task)
		w.revoke(id)
		x := w.is(id, core.Ready, core.WaitingForWorker)
		same(t, "reclaims", [2]any{x.ReclaimCount, x.Next}, [2]any{0, core.NextReclaim})
		again := w.claim()
		same(t, "cause", again.Execution.Attempt.Lineage.Cause, "lease_revoked")
		answer := must(w.e.Revoke(w.ctx(), operator, id, engine.RevokeRequest{Hold: true}, engine.Operator{}))(t)
		same(t, "outcome", answer.Outcome, "revoked")
		w.is(id, core.Blocked, core.PausedByOperator)
		w.nothing()

		fresh := w.submit(core.Submission{})
		w.untouched(fresh, func() error {
			_, err := w.e.Revoke(w.ctx(), operator, fresh, engine.RevokeRequest{}, engine.Operator{})
			return err
		}, base.CodeNoActiveLease)
		w.cancel(fresh)
		w.untouched(fresh, func() error {
			_, err := w.e.Revoke(w.ctx(), operator, fresh, engine.RevokeRequest{}, engine.Operator{})
			return err
		}, base.CodeExecutionNotActive)
		lapsed := w.started(core.Submission{})
		w.turn(30_000)
		same(t, "after a lapse", w.revoke(given(lapsed)).Cause, "already_expired")
	})
}

func TestL77_expect_guards_operator_commands(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		id := given(task)
		for field, expect := range map[string]core.Expect{
			"expect.status":      {Status: ptr(core.Ready)},
			"expect.lease_epoch": {LeaseEpoch: ptr(int64(2))},
			"expect.lease_id":    {LeaseID: ptr(base.UUID{1})},
		} {
			refusal := w.untouched(id, func() error {
				_, err := w.e.Cancel(w.ctx(), operator, id, nil, "", engine.Operator{Expect: expect})
				return err
			}, base.CodePreconditionFailed)
			same(t, "field", refusal.Field, field)
		}
		right := core.Expect{Status: ptr(core.Running), LeaseEpoch: ptr(int64(1)), LeaseID: ptr(fence(task).LeaseID)}
		must(w.e.Cancel(w.ctx(), operator, id, nil, "", engine.Operator{Expect: right}))(t)
	})
}

func TestL116_tags_change_in_every_status_all_or_nothing(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		for status, id := range w.inEveryStatus() {
			set := func(changes map[string]*string) (base.Tags, error) {
				return w.e.SetTags(w.ctx(), operator, id, changes, engine.Operator{})
			}
			same(t, status.String(), must(set(map[string]*string{"a": ptr("1"), "b": ptr("2")}))(t), base.Tags{"a": "1", "b": "2"})
			same(t, "null deletes", must(set(map[string]*string{"a": nil}))(t), base.Tags{"b": "2"})
			w.untouched(id, func() error { _, err := set(map[string]*string{"c": ptr("3"), "Bad": ptr("")}); return err }, base.CodeInvalidTagKey)
			w.untouched(id, func() error { _, err := set(map[string]*string{"b": ptr("2")}); return err }, "")
		}
	})
}

func TestL107_an_operator_event_carries_actor_and_reason(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		id := w.submit(core.Submission{})
		caller := operator
		caller.RequestID = "req-1"
		must(w.e.Hold(w.ctx(), caller, id, engine.Operator{Reason: "why"}))(t)
		events := w.events(engine.EventFilter{Kinds: []string{"execution.held"}})
		same(t, "events", len(events), 1)
		same(t, "actor", events[0].Actor, core.Actor{Type: "operator", ID: "op"})
		same(t, "request", events[0].RequestID, "req-1")
		same(t, "reason", data(t, events[0])["reason"], any("why"))
	})
}
