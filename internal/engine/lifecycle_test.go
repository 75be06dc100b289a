package engine_test

import (
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

func TestLC1_an_execution_is_submitted_claimed_renewed_and_completed(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		id := w.submit(core.Submission{Input: core.Payload{Data: []byte("in"), ContentType: "text/plain"}})
		same(t, "public state", w.public(id), "waiting")
		w.turn(5)
		task := w.claim()
		x := task.Execution
		same(t, "epoch", x.LeaseEpoch, 1)
		same(t, "attempt", [2]string{x.Attempt.Type.String(), task.How}, [2]string{"initial", "fresh"})
		same(t, "index", x.Attempt.Index, 0)
		same(t, "input", string(x.Input.Data), "in")
		same(t, "expiry", x.Lease.ExpiresAt, w.now().Add(30*base.Second))
		same(t, "public state", w.public(id), "active")

		w.turn(1000)
		before := w.get(id)
		lease := must(w.renew(task, 0))(t)
		same(t, "renewed expiry", lease.ExpiresAt, w.now().Add(30*base.Second))
		after := w.get(id)
		before.Lease.ExpiresAt, before.Lease.RenewedAt, before.Version = after.Lease.ExpiresAt, after.Lease.RenewedAt, after.Version
		same(t, "a renewal changes only the times of the lease (L9)", after, before)

		answer := must(w.e.Complete(w.ctx(), client, id, fence(task), &core.Payload{Data: []byte{0, 255, 1}, ContentType: "a/b"}))(t)
		same(t, "answer", answer, core.CompleteAnswer{Status: core.Succeeded})
		x = w.is(id, core.Succeeded, core.Completed)
		same(t, "public state", w.public(id), "completed")
		if x.Lease != nil || x.CompletedAt != w.now() || x.StartedAt != w.now()-1000 {
			t.Fatalf("lease %v, started %s, completed %s", x.Lease, x.StartedAt, x.CompletedAt)
		}
		result := must(w.e.Result(w.ctx(), client, id))(t)
		same(t, "result", result, &core.Payload{Data: []byte{0, 255, 1}, ContentType: "a/b", Size: 3})
		same(t, "events", w.story(id), []string{"execution.submitted", "lease.acquired", "execution.completed"})
		w.nothing()
	})
}

func TestL20_the_state_vector_follows_the_record_and_the_lane(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		id := w.submit(core.Submission{})
		same(t, "ready", w.vector(id), core.Vector{
			LifecyclePhase: "runnable", OwnershipState: "unowned", EligibilityState: "eligible_now", BlockingReason: "waiting_for_worker",
			TerminalOutcome: "none", AttemptState: "pending_first_attempt", PublicState: "waiting",
		})
		w.lane("default", core.LaneSettings{State: core.LanePaused})
		v := w.vector(id)
		same(t, "paused lane", [2]string{v.EligibilityState, v.BlockingReason}, [2]string{"blocked_by_lane_state", "paused_by_policy"})
		w.lane("default", core.LaneSettings{})
		w.claim()
		same(t, "running", w.vector(id), core.Vector{
			LifecyclePhase: "active", OwnershipState: "leased", EligibilityState: "not_applicable", BlockingReason: "none",
			TerminalOutcome: "none", AttemptState: "running_attempt", PublicState: "active",
		})
		w.turn(30_000)
		w.becomes(id, core.Ready)
		v = w.vector(id)
		same(t, "lapsed", [2]string{v.OwnershipState, v.AttemptState}, [2]string{"lease_expired_reclaimable", "attempt_interrupted"})
		w.claim()
		w.revoke(id)
		same(t, "revoked", w.vector(id).OwnershipState, "lease_revoked")
		task := w.claim()
		w.release(task)
		same(t, "released", w.public(id), "resumable")
		task = w.claim()
		w.complete(task)
		same(t, "succeeded", w.vector(id), core.Vector{
			LifecyclePhase: "terminal", OwnershipState: "unowned", EligibilityState: "not_applicable", BlockingReason: "none",
			TerminalOutcome: "success", AttemptState: "attempt_terminal", PublicState: "completed",
		})
	})
}

func TestL2_an_id_with_another_partition_or_of_another_namespace_names_nothing(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		id := w.submit(core.Submission{})
		bare := base.GivenID{UUID: id.UUID}
		same(t, "bare UUID", w.get(bare).ID, id.ID())
		wrong := base.GivenID{UUID: id.UUID, N: id.N + 1, Full: true}
		_, err := w.e.Describe(w.ctx(), client, wrong)
		refused(t, err, base.CodeExecutionNotFound)
		_, err = w.e.Cancel(w.ctx(), operator, wrong, nil, "", engine.Operator{})
		refused(t, err, base.CodeExecutionNotFound)
		stranger := engine.Caller{Principal: "s", Actor: "client", Namespaces: []string{"other"}}
		_, err = w.e.Describe(w.ctx(), stranger, id)
		refused(t, err, base.CodeExecutionNotFound)
		_, err = w.e.Cancel(w.ctx(), stranger, id, nil, "", engine.Operator{})
		refused(t, err, base.CodeExecutionNotFound)
		answer := must(w.e.Claim(w.ctx(), stranger, ask()))(t)
		same(t, "tasks for a stranger", len(answer.Tasks), 0)
		w.is(id, core.Ready, core.WaitingForWorker)
	})
}

func TestL5_times_of_an_execution_never_run_backwards(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.turn(10_000)
		task := w.started(core.Submission{})
		created := task.Execution.CreatedAt
		w.setBack(5000)
		w.complete(task)
		x := w.get(given(task))
		if x.CompletedAt < created || x.LastMutationAt < created {
			t.Fatalf("created %s, completed %s", created, x.CompletedAt)
		}
	})
}

func TestLI5_a_renewal_is_a_moment_that_nothing_later_comes_before(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		for name, command := range map[string]func(task engine.Task) base.Time{
			"renew": func(task engine.Task) base.Time {
				must(w.renew(task, 0))(t)
				return w.get(given(task)).Lease.RenewedAt
			},
			"complete": func(task engine.Task) base.Time { w.complete(task); return w.get(given(task)).CompletedAt },
			"fail":     func(task engine.Task) base.Time { w.fail(task, ""); return w.get(given(task)).Failure.At },
			"cancel":   func(task engine.Task) base.Time { w.cancel(given(task)); return w.get(given(task)).CompletedAt },
			"priority": func(task engine.Task) base.Time {
				must(w.e.SetPriority(w.ctx(), operator, given(task), 3, engine.Operator{}))(t)
				return w.get(given(task)).LastMutationAt
			},
		} {
			task := w.started(core.Submission{Lane: name}) // no later one is given what this one leaves to be tried again
			w.turn(8000)
			must(w.renew(task, 0))(t)
			renewed := w.get(given(task)).Lease.RenewedAt
			w.setBack(8000)
			if at := command(task); at < renewed {
				t.Errorf("%s is of %s, the lease was renewed at %s", name, at, renewed)
			}
			w.turn(8000)
		}
	})
}
