package engine_test

import (
	"path/filepath"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

func TestL104_LC11_work_of_a_dead_worker_is_taken_over_without_help(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		w.turn(29_999)
		w.nothing()
		w.turn(1)
		again := w.claimAs(engine.ClaimRequest{WorkerID: "w", InstanceID: "w2", Lanes: []string{"default"}})
		x := again.Execution
		same(t, "how", again.How, "reclaimed")
		same(t, "epoch", x.LeaseEpoch, 2)
		same(t, "attempt", [2]any{x.Attempt.Index, x.Attempt.Type}, [2]any{1, core.AttemptReclaim})
		same(t, "lineage", *x.Attempt.Lineage, core.Lineage{Cause: "lease_expired"})
		same(t, "reclaims", x.ReclaimCount, 1)
		same(t, "retries", x.RetryCount, 0)
		same(t, "place in the queue", x.QueuedAt, task.Execution.QueuedAt)
		same(t, "old attempt", w.attempts(given(task))[0].State, core.InterruptedReclaimed)
		same(t, "events", w.story(given(task)), []string{
			"execution.submitted", "lease.acquired", "lease.expired", "attempt.ended", "lease.acquired",
		})
		refused(t, w.completing(task), base.CodeStaleLease)
		w.complete(again)
	})
}

func TestLC11_the_reclaim_cap_ends_the_execution(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		two := w.submit(policy(`{"max_reclaim_count":2}`))
		for i := range 3 {
			same(t, "attempt", w.claim().Execution.Attempt.Index, i)
			w.turn(30_000)
			if i < 2 {
				w.becomes(two, core.Ready)
			}
		}
		w.becomes(two, core.Failed)
		x := w.is(two, core.Failed, core.ReclaimsExhausted)
		same(t, "reclaims", x.ReclaimCount, 2)
		same(t, "failure", [2]string{x.Failure.Class, x.Failure.Category}, [2]string{"infra_crash", "lease_lost"})
		same(t, "attempt", x.Attempt.State, core.EndedFailure)
		same(t, "at the cap the completion alone tells it", w.count(two, "lease.expired"), 2)

		none := w.started(policy(`{"max_reclaim_count":0}`))
		w.turn(30_000)
		w.becomes(given(none), core.Failed)
		w.is(given(none), core.Failed, core.ReclaimsExhausted)
	})
}

func TestLC12_in_grace_a_lease_renews_and_at_the_lapse_it_does_not(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.started(policy(`{"lease_grace_ms":5000}`))
		w.turn(30_000 + 4999)
		w.is(given(task), core.Running, core.ReasonNone)
		lease := must(w.renew(task, 10_000))(t)
		same(t, "expiry", lease.ExpiresAt, w.now()+10_000)
		w.turn(15_000)
		_, err := w.renew(task, 0)
		refused(t, err, base.CodeLeaseExpired)
		err = w.e.Progress(w.ctx(), client, given(task), fence(task), ptr(5), nil)
		refused(t, err, base.CodeLeaseExpired)
		w.is(given(task), core.Ready, core.WaitingForWorker)
	})
}

func TestLC12_late_commands_count_until_somebody_takes_over(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		lapse := func(p string) engine.Task {
			task := w.started(policy(p))
			w.turn(30_000)
			w.becomes(given(task), core.Ready)
			return task
		}
		done := lapse(`{}`)
		same(t, "late complete", w.complete(done), core.CompleteAnswer{Status: core.Succeeded, Late: true})
		x := w.is(given(done), core.Succeeded, core.Completed)
		same(t, "the lapse is replaced", x.LastLease.End, core.EndComplete)
		events := w.events(engine.EventFilter{ExecutionID: ptr(given(done))})
		same(t, "late event", data(t, events[len(events)-1])["late"], any(true))

		failed := lapse(`{"retry_policy":{}}`)
		answer := w.fail(failed, "")
		same(t, "late fail", [2]any{answer.Outcome, answer.Late}, [2]any{"retry_scheduled", true})
		w.cancel(given(failed))

		rested := lapse(`{}`)
		w.hold(given(rested)) // from blocked
		same(t, "late delay", w.delay(rested, w.now()+1000), core.LeaveAnswer{
			Status: core.Delayed, Reason: core.WaitingForDelay, DelayUntil: w.now() + 1000, Late: true,
		})
		same(t, "it is a resume now", w.get(given(rested)).Next, core.NextResume)
		w.cancel(given(rested))

		given1 := lapse(`{}`)
		same(t, "late release", w.release(given1).Late, true)
		again := w.claim()
		same(t, "same attempt", again.Execution.Attempt.ID, given1.Execution.Attempt.ID)
		w.complete(again)
	})
}

func TestLC12_late_commands_are_refused_after_takeover_revocation_and_deadline(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		taken := w.started(core.Submission{})
		w.turn(30_000)
		again := w.claim()
		refusal := w.untouched(given(taken), func() error { return w.completing(taken) }, base.CodeStaleLease)
		same(t, "details", [2]any{refusal.Details["part"], refusal.Details["current_epoch"]}, [2]any{"lease_id", int64(2)})
		w.complete(again)

		revoked := w.started(core.Submission{})
		w.revoke(given(revoked))
		w.untouched(given(revoked), func() error { return w.completing(revoked) }, base.CodeLeaseRevoked)
		_, err := w.renew(revoked, 0)
		refused(t, err, base.CodeLeaseRevoked)
		w.cancel(given(revoked))

		over := w.started(core.Submission{DeadlineAt: w.now() + 31_000})
		w.turn(31_000)
		refused(t, w.completing(over), base.CodeExecutionNotActive)
	})
}

func TestLC13_a_release_keeps_attempt_place_and_counters(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		w.turn(1000)
		later := w.submit(core.Submission{})
		same(t, "answer", w.release(task), core.LeaveAnswer{Status: core.Ready, Reason: core.WaitingForWorker})
		again := w.claimAs(engine.ClaimRequest{WorkerID: "w", InstanceID: "w2", Lanes: []string{"default"}})
		x := again.Execution
		same(t, "begun work comes before new work (S7)", x.ID, task.Execution.ID)
		same(t, "told", [2]any{again.How, again.ResumedFrom}, [2]any{"resumed", core.InterruptedReleased})
		same(t, "attempt", x.Attempt.ID, task.Execution.Attempt.ID)
		same(t, "counters", [3]int{x.RetryCount, x.ReclaimCount, x.TotalAttempts}, [3]int{0, 0, 1})
		same(t, "epoch", x.LeaseEpoch, 2)
		same(t, "running time", x.Attempt.RunningMS, 1000)
		w.complete(again)
		w.cancel(later)
	})
}

func TestLC14_each_wrong_part_of_a_fence_alone_is_stale(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		id, right := given(task), fence(task)
		for part, wrong := range map[string]core.Fence{
			"lease_id":    {LeaseID: right.AttemptID, Epoch: right.Epoch, AttemptID: right.AttemptID},
			"lease_epoch": {LeaseID: right.LeaseID, Epoch: right.Epoch + 1, AttemptID: right.AttemptID},
			"attempt_id":  {LeaseID: right.LeaseID, Epoch: right.Epoch, AttemptID: right.LeaseID},
		} {
			for name, command := range w.fenced(id) {
				refusal := w.untouched(id, func() error { return command(wrong) }, base.CodeStaleLease)
				if refusal.Details["part"] != part {
					t.Fatalf("%s: part %v, want %s", name, refusal.Details["part"], part)
				}
			}
		}
		for name, command := range w.fenced(id) {
			w.untouched(id, func() error { return command(core.Fence{}) }, base.CodeFenceRequired)
			w.untouched(id, func() error { return command(core.Fence{Epoch: 1}) }, base.CodePartialFence)
			w.untouched(id, func() error { return command(core.Fence{LeaseID: right.LeaseID, AttemptID: right.AttemptID}) }, base.CodePartialFence)
			_ = name
		}
		w.complete(task) // the right fence still works
	})
}

// fenced lists every command that carries a fence.
func (w *world) fenced(id base.GivenID) map[string]func(core.Fence) error {
	return map[string]func(core.Fence) error{
		"renew": func(f core.Fence) error {
			items, err := w.e.Renew(w.ctx(), client, []engine.LeaseRef{{ID: id, Fence: f}})
			if err != nil {
				return err
			}
			return items[0].Err
		},
		"progress": func(f core.Fence) error { return w.e.Progress(w.ctx(), client, id, f, ptr(1), nil) },
		"complete": func(f core.Fence) error { _, err := w.e.Complete(w.ctx(), client, id, f, nil); return err },
		"fail": func(f core.Fence) error {
			_, err := w.e.Fail(w.ctx(), client, id, core.FailCommand{Fence: f})
			return err
		},
		"delay":   func(f core.Fence) error { _, err := w.e.Delay(w.ctx(), client, id, f, w.now()+1); return err },
		"release": func(f core.Fence) error { _, err := w.e.Release(w.ctx(), client, id, f, ""); return err },
		"cancel": func(f core.Fence) error {
			_, err := w.e.Cancel(w.ctx(), client, id, &f, "", engine.Operator{})
			return err
		},
		"step": func(f core.Fence) error {
			_, err := w.e.PutStep(w.ctx(), client, id, f, "s", core.Payload{})
			return err
		},
		"suspend": func(f core.Fence) error {
			_, err := w.e.Suspend(w.ctx(), client, id, core.SuspendCommand{Fence: f, Condition: parsedCondition(operatorOnly), IdempotencyKey: "k"})
			return err
		},
		"create_waitpoint": func(f core.Fence) error {
			_, err := w.e.CreateWaitpoint(w.ctx(), client, id, core.CreateWaitpointCommand{Fence: f, Key: "a", IdempotencyKey: "k"})
			return err
		},
	}
}

func TestLC14_old_fences_stay_stale_after_retry_reclaim_replay_and_cancel(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		id := w.submit(policy(`{"retry_policy":{"max_retries":3,"backoff":{"strategy":"fixed","delay_ms":0}}}`))
		first := w.claim()
		w.fail(first, "")
		w.untouched(id, func() error { return w.completing(first) }, base.CodeExecutionNotActive) // its attempt has ended
		second := w.claim()
		w.untouched(id, func() error { return w.completing(first) }, base.CodeStaleLease)
		w.turn(30_000)
		third := w.claim()
		w.untouched(id, func() error { return w.completing(second) }, base.CodeStaleLease)
		w.cancel(id)
		refusal := w.untouched(id, func() error { return w.completing(third) }, base.CodeExecutionNotActive)
		same(t, "outcome", refusal.Details["terminal_outcome"], any("cancelled"))
		w.replay(id)
		fourth := w.claim()
		for _, old := range []engine.Task{first, second, third} {
			w.untouched(id, func() error { return w.completing(old) }, base.CodeStaleLease)
		}
		w.renewed(fourth)
		w.complete(fourth)
	})
}

func TestL37_an_operator_overrides_only_while_running(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		id := w.submit(policy(`{"retry_policy":{}}`))
		override := func() error {
			_, err := w.e.CompleteOverride(w.ctx(), operator, id, nil, engine.Operator{Reason: "by hand"})
			return err
		}
		w.untouched(id, override, base.CodeExecutionNotActive)
		w.claim()
		answer := must(w.e.FailOverride(w.ctx(), operator, id, core.FailCommand{Message: "by hand"}, engine.Operator{}))(t)
		same(t, "fail", answer.Outcome, "retry_scheduled")
		w.untouched(id, override, base.CodeExecutionNotActive)
		w.turn(1000)
		w.claim()
		ok(t, override())
		w.is(id, core.Succeeded, core.Completed)
		w.untouched(id, override, base.CodeExecutionNotActive)
	})
}

func TestL38_many_leases_renew_in_one_call_each_with_its_own_answer(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		a, b, c := w.started(core.Submission{}), w.started(core.Submission{}), w.started(core.Submission{})
		w.complete(b)
		w.turn(10)
		items := must(w.e.Renew(w.ctx(), client, []engine.LeaseRef{
			{ID: given(a), Fence: fence(a), TTL: 500},
			{ID: given(b), Fence: fence(b)},
			{ID: given(c), Fence: core.Fence{Epoch: 1}},
			{ID: given(c), Fence: fence(c), TTL: 499},
			{ID: given(c), Fence: fence(c), TTL: base.Day + 1},
			{ID: base.GivenID{UUID: base.UUID{1}}, Fence: fence(c)},
			{ID: given(c), Fence: fence(c), TTL: base.Day},
		}))(t)
		codes := []base.Code{}
		for _, item := range items {
			codes = append(codes, base.CodeOf(item.Err))
		}
		same(t, "answers", codes, []base.Code{
			"", base.CodeExecutionNotActive, base.CodePartialFence, base.CodeInvalidArgument, base.CodeInvalidArgument, base.CodeExecutionNotFound, "",
		})
		same(t, "shorter", items[0].Lease.ExpiresAt, w.now()+500)
		same(t, "longer", items[6].Lease.ExpiresAt, w.now().Add(base.Day))
		w.pass(500)
		w.becomes(given(a), core.Ready) // a shorter lease lapses earlier (L19)
		same(t, "renewals emit nothing", w.story(given(c)), []string{"execution.submitted", "lease.acquired"})
	})
}

func TestL99_progress_replaces_what_is_given_and_emits_nothing(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		id := given(task)
		report := func(percent *int, message *string) error {
			return w.e.Progress(w.ctx(), client, id, fence(task), percent, message)
		}
		ok(t, report(ptr(10), ptr("begun")))
		w.turn(5)
		ok(t, report(nil, ptr("half")))
		same(t, "absent percent stays", *w.get(id).Progress, core.Progress{Percent: ptr(10), Message: ptr("half"), UpdatedAt: w.now()})
		ok(t, report(ptr(0), nil))
		same(t, "0 is a value", *w.get(id).Progress.Percent, 0)
		for _, bad := range []int{-1, 101} {
			w.untouched(id, func() error { return report(&bad, nil) }, base.CodeInvalidArgument)
		}
		same(t, "events", w.story(id), []string{"execution.submitted", "lease.acquired"})
	})
}

func TestL39_a_worker_learns_of_a_lost_lease_from_the_feed_of_its_instance(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		end := must(w.e.ReadEvents(w.ctx(), client, engine.EventsRequest{After: "end"}))(t).Next
		w.cancel(given(task))
		page := must(w.e.ReadEvents(w.ctx(), client, engine.EventsRequest{
			After: end, Wait: patience, Filter: engine.EventFilter{InstanceID: "w1", Kinds: []string{"execution.completed"}},
		}))(t)
		same(t, "events", len(page.Events), 1)
		same(t, "instance", page.Events[0].InstanceID, "w1")
		_, err := w.renew(task, 0)
		refused(t, err, base.CodeExecutionNotActive)
	})
}

func TestW6_a_lease_of_another_store_is_an_invalid_handle(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		elsewhere := &world{t: t, cfg: w.cfg, clock: w.clock, path: filepath.Join(t.TempDir(), "elsewhere.db")}
		elsewhere.store = elsewhere.openStore()
		elsewhere.e = elsewhere.openEngine(elsewhere.store)
		foreign := elsewhere.started(core.Submission{})
		here := w.started(core.Submission{})
		for name, send := range w.fenced(given(here)) {
			t.Log(name)
			w.untouched(given(here), func() error { return send(fence(foreign)) }, base.CodeInvalidHandle)
		}
		for name, send := range w.fenced(given(foreign)) {
			t.Log(name, "of an execution that is not here")
			refused(t, send(fence(foreign)), base.CodeInvalidHandle)
		}
		other := w.started(core.Submission{}) // of this store
		for name, send := range w.fenced(given(here)) {
			t.Log(name, "with the lease of another execution")
			w.untouched(given(here), func() error { return send(fence(other)) }, base.CodeStaleLease)
		}
		w.complete(here)
	})
}
