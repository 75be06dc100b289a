package engine_test

import (
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

func TestLC15_a_repeated_submit_is_a_duplicate(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		s := core.Submission{Kind: "k", IdempotencyKey: "key", Input: core.Payload{Data: []byte("a")}}
		id := w.submit(s)
		again := must(w.e.Submit(w.ctx(), client, s))(t)
		same(t, "by key", again, engine.SubmitAnswer{Outcome: "duplicate", ID: id.ID(), PublicState: "waiting"})
		own := base.GivenID{UUID: base.UUID{15: 7, 0: 1}}
		s = core.Submission{Kind: "k", ID: &own}
		w.submit(s)
		same(t, "by id", must(w.e.Submit(w.ctx(), client, s))(t).Outcome, "duplicate")
		same(t, "events", w.count(id, "execution.submitted"), 1)
	})
}

func TestSC6_LC15_a_repeated_claim_gives_the_same_leases_and_picks_nothing_new(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.submitMany(5, core.Submission{})
		r := ask()
		r.Max, r.RequestKey = 3, "r1"
		first := w.take(r)
		same(t, "tasks", len(first), 3)
		again := w.take(r)
		same(t, "repeated", leasesOf(again), leasesOf(first))
		w.complete(first[1])
		same(t, "what is still held", leasesOf(w.take(r)), leasesOf([]engine.Task{first[0], first[2]}))
		other := r
		other.InstanceID = "w2"
		same(t, "another instance has its own key", len(w.take(other)), 2)
		w.complete(first[0])
		w.complete(first[2])
		w.submit(core.Submission{})
		fresh := w.take(r)
		same(t, "only when none is held, a new pick", len(fresh), 1)
		same(t, "how", fresh[0].How, "fresh")
	})
}

func TestSC6_a_claim_sent_to_two_servers_at_once_picks_once(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{Clock: turned}, func(t *testing.T, w *world) {
		other := w.another()
		b := w.interpose()
		w.nothing() // both know the instance
		must(other.Claim(w.ctx(), client, ask()))(t)
		w.submitMany(6, core.Submission{})
		r := ask()
		r.RequestKey = "r1"
		for _, what := range []string{"never answered before", "answered before with what is no longer held"} {
			var second []engine.Task
			b.afterBegin.set(picks, func() { second = must(other.Claim(w.ctx(), client, r))(t).Tasks })
			first := w.take(r)
			same(t, what, [2]int{len(first), len(second)}, [2]int{1, 1})
			same(t, what, leasesOf(first), leasesOf(second))
			w.complete(first[0])
		}
	})
}

func TestL117_a_draining_instance_gets_the_leases_of_a_lost_answer_and_nothing_new(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.submitMany(3, core.Submission{})
		r := ask()
		r.RequestKey = "r1"
		first := w.take(r)
		ok(t, w.e.Drain(w.ctx(), operator, "", "w1", true))
		again := must(w.e.Claim(w.ctx(), client, r))(t)
		same(t, "the same leases", leasesOf(again.Tasks), leasesOf(first))
		same(t, "drain", again.Drain, true)
		w.complete(first[0])
		again = must(w.e.Claim(w.ctx(), client, r))(t)
		same(t, "once they are over", [2]any{len(again.Tasks), again.Drain}, [2]any{0, true})
	})
}

func TestL117_mark_dead_repeated_after_a_registration_leaves_the_new_leases(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		keyed := operator
		keyed.RequestKey = "r1"
		old := w.started(core.Submission{})
		ok(t, w.e.MarkDead(w.ctx(), keyed, "w1", "", true))
		w.is(given(old), core.Ready, core.WaitingForWorker)
		w.turn(1000)
		w.register(core.Registration{WorkerID: "w", InstanceID: "w1"})
		w.claim()
		ok(t, w.e.MarkDead(w.ctx(), keyed, "w1", "", true))
		w.is(given(old), core.Running, core.ReasonNone)
	})
}

func leasesOf(tasks []engine.Task) map[base.ID]core.Fence {
	leases := map[base.ID]core.Fence{}
	for _, task := range tasks {
		leases[task.Execution.ID] = fence(task)
	}
	return leases
}

func TestL119_LC15_lease_ending_commands_repeat_their_recorded_answer_whatever_is_sent(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		id := w.submit(policy(`{"retry_policy":{"max_retries":9,"backoff":{"strategy":"fixed","delay_ms":1000}}}`))

		failed := w.claim()
		answer := w.fail(failed, "")
		w.turn(300)
		answer.Repeated = true
		repeatFail := func() {
			t.Helper()
			w.untouched(id, func() error { same(t, "fail", w.fail(failed, ""), answer); return nil }, "")
		}
		repeatFail()
		w.turn(700)
		delayed := w.claim()
		repeatFail() // also after the retry was claimed

		left := w.delay(delayed, w.now()+500)
		left.Repeated = true
		w.untouched(id, func() error { same(t, "delay", w.delay(delayed, w.now()+500), left); return nil }, "")
		w.turn(500)
		released := w.claim()
		gave := w.release(released)
		gave.Repeated = true
		w.untouched(id, func() error { same(t, "release", w.release(released), gave); return nil }, "")

		done := w.claim()
		for _, c := range []struct {
			name   string
			repeat func() error
		}{
			{"delay", func() error { same(t, "delay", w.delay(delayed, w.now()+500), left); return nil }},
			{"release", func() error { same(t, "release", w.release(released), gave); return nil }},
		} {
			w.untouched(id, c.repeat, "")
		}
		must(w.e.Complete(w.ctx(), client, id, fence(done), &core.Payload{Data: []byte("first")}))(t)
		again := must(w.e.Complete(w.ctx(), client, id, fence(done), &core.Payload{Data: []byte("second")}))(t)
		same(t, "complete", again, core.CompleteAnswer{Status: core.Succeeded, Repeated: true})
		same(t, "the stored result stays (L119)", string(must(w.e.Result(w.ctx(), client, id))(t).Data), "first")
		repeatFail() // also when all is over
		w.untouched(id, func() error { _, err := w.e.Delay(w.ctx(), client, id, fence(done), w.now()+1); return err }, base.CodeExecutionNotActive)
	})
}

func TestLC15_a_late_command_repeats_as_late(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		w.turn(40_000)
		w.complete(task)
		same(t, "again", w.complete(task), core.CompleteAnswer{Status: core.Succeeded, Late: true, Repeated: true})
	})
}

func TestLC15_a_holders_cancel_repeats(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		id, f := given(task), fence(task)
		cancel := func() error {
			view, err := w.e.Cancel(w.ctx(), client, id, &f, "", engine.Operator{Reason: "mine"})
			if err == nil {
				same(t, "status", view.Execution.Status, core.Cancelled)
			}
			return err
		}
		ok(t, cancel())
		same(t, "source", w.get(id).Cancellation.Source, "worker")
		w.untouched(id, cancel, "")
		w.replay(id)
		again := w.claim()
		w.untouched(id, func() error { _, err := w.e.Cancel(w.ctx(), client, id, &f, "", engine.Operator{}); return err }, "")
		w.is(id, core.Running, core.ReasonNone)
		w.complete(again)
	})
}

func TestL118_LC15_operator_commands_repeat_by_request_key_for_a_day(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		id := w.submit(core.Submission{})
		op := func(key string) engine.Operator { return engine.Operator{RequestKey: key, Reason: "r"} }
		commands := map[string]func(key string, other bool) error{
			"hold":         func(k string, _ bool) error { _, err := w.e.Hold(w.ctx(), operator, id, op(k)); return err },
			"release_hold": func(k string, _ bool) error { _, err := w.e.ReleaseHold(w.ctx(), operator, id, op(k)); return err },
			"priority": func(k string, other bool) error {
				p := 5
				if other {
					p = 6
				}
				_, err := w.e.SetPriority(w.ctx(), operator, id, p, op(k))
				return err
			},
			"tags": func(k string, other bool) error {
				v := "a"
				if other {
					v = "b"
				}
				_, err := w.e.SetTags(w.ctx(), operator, id, map[string]*string{"x": &v}, op(k))
				return err
			},
		}
		for _, name := range []string{"hold", "release_hold", "priority", "tags"} {
			ok(t, commands[name]("k1", false))
		}
		must(w.e.SetPriority(w.ctx(), operator, id, 1, engine.Operator{}))(t)
		must(w.e.SetTags(w.ctx(), operator, id, map[string]*string{"x": nil}, engine.Operator{}))(t)
		for _, name := range []string{"hold", "release_hold", "priority", "tags"} {
			w.untouched(id, func() error { return commands[name]("k1", false) }, "")
		}
		for _, name := range []string{"priority", "tags"} {
			w.untouched(id, func() error { return commands[name]("k1", true) }, base.CodeIdempotencyConflict)
		}
		w.pass(base.Day)
		ok(t, commands["priority"]("k1", true)) // recorded answers live 24 h (L118)
		same(t, "priority", w.get(id).Priority, 6)
	})
}

func TestL117_a_repeat_of_an_operator_command_gets_the_recorded_answer(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		s := core.Submission{
			Tags: base.Tags{"a": "b"}, Input: core.Payload{Data: []byte("in")}, IdempotencyKey: "key", PolicyJSON: []byte(`{"max_replay_count":3}`),
		}
		id := w.submit(s)
		w.complete(w.claim())
		op := engine.Operator{RequestKey: "once", Reason: "r"}
		commands := []struct {
			name string
			do   func() (engine.View, error)
		}{
			{"retain", func() (engine.View, error) { return w.e.Retain(w.ctx(), operator, id, 0, op) }},
			{"end_retain", func() (engine.View, error) { return w.e.Unretain(w.ctx(), operator, id, op) }},
			{"replay", func() (engine.View, error) { return w.e.Replay(w.ctx(), operator, id, engine.ReplayRequest{}, op) }},
			{"hold", func() (engine.View, error) { return w.e.Hold(w.ctx(), operator, id, op) }},
			{"set_priority", func() (engine.View, error) { return w.e.SetPriority(w.ctx(), operator, id, 7, op) }},
			{"release_hold", func() (engine.View, error) { return w.e.ReleaseHold(w.ctx(), operator, id, op) }},
			{"cancel", func() (engine.View, error) { return w.e.Cancel(w.ctx(), operator, id, nil, "operator", op) }},
		}
		first := make([]engine.View, len(commands))
		for i, command := range commands {
			first[i] = must(command.do())(t)
			w.turn(1)
		}
		changes := map[string]*string{"a": nil, "c": ptr("d")}
		tags := must(w.e.SetTags(w.ctx(), operator, id, changes, op))(t)
		must(w.e.SetTags(w.ctx(), operator, id, map[string]*string{"c": nil, "e": ptr("f")}, engine.Operator{}))(t)
		for i, command := range commands {
			w.untouched(id, func() error {
				again := must(command.do())(t)
				then, now := *first[i].Execution, *again.Execution
				then.Version, now.Version = 0, 0 // counts the writes of a row, which is not shown
				same(t, command.name, now, then)
				same(t, command.name+": lane", again.Lane, first[i].Lane)
				return nil
			}, "")
		}
		same(t, "tags", must(w.e.SetTags(w.ctx(), operator, id, changes, op))(t), tags)
	})
}

func TestL118_LC15_a_replay_repeats_by_request_key_only(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		id := given(task)
		w.complete(task)
		replay := func(key string) error {
			_, err := w.e.Replay(w.ctx(), operator, id, engine.ReplayRequest{}, engine.Operator{RequestKey: key})
			return err
		}
		ok(t, replay("k"))
		w.untouched(id, func() error { return replay("k") }, "")
		w.untouched(id, func() error { return replay("") }, base.CodeExecutionNotTerminal)
		w.complete(w.claim())
		w.untouched(id, func() error { return replay("k") }, "")
		same(t, "replays", w.get(id).ReplayCount, 1)
	})
}

func TestLC15_a_revoke_repeats_as_already_satisfied(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		id := given(task)
		revoked := w.revoke(id)
		same(t, "revoked", revoked, core.RevokeAnswer{Outcome: "revoked", LeaseID: fence(task).LeaseID, Epoch: 1})
		w.untouched(id, func() error {
			same(t, "again", w.revoke(id), core.RevokeAnswer{Outcome: "already_satisfied", Cause: "already_revoked", LeaseID: fence(task).LeaseID, Epoch: 1})
			return nil
		}, "")
	})
}

func TestLC15_targeted_claims_repeat_by_request_key(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		id := w.submit(core.Submission{})
		r := engine.TargetedRequest{RequestKey: "k"}
		first := must(w.e.OperatorClaim(w.ctx(), operator, id, r))(t)
		w.untouched(id, func() error {
			same(t, "operator claim", fence(must(w.e.OperatorClaim(w.ctx(), operator, id, r))(t)), fence(first))
			return nil
		}, "")
		w.untouched(id, func() error {
			_, err := w.e.OperatorClaim(w.ctx(), operator, id, engine.TargetedRequest{RequestKey: "other"})
			return err
		}, base.CodeLeaseConflict)
		w.release(first)
		worker := engine.TargetedRequest{WorkerID: "w", InstanceID: "w1", RequestKey: "k2"}
		second := must(w.e.ClaimResumed(w.ctx(), client, id, worker))(t)
		repeated := must(w.e.ClaimResumed(w.ctx(), client, id, worker))(t)
		same(t, "claim resumed", [3]any{fence(repeated), repeated.How, repeated.ResumedFrom}, [3]any{fence(second), "resumed", core.InterruptedReleased})
		w.revoke(id)
		worker.RequestKey = "k3"
		third := must(w.e.Reclaim(w.ctx(), client, id, worker))(t)
		repeated = must(w.e.Reclaim(w.ctx(), client, id, worker))(t)
		same(t, "reclaim", [2]any{fence(repeated), repeated.How}, [2]any{fence(third), "reclaimed"})
	})
}

func TestLI14_LC15_a_lost_answer_is_found_again_by_the_same_call(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		lost := &forgetful{}
		w.cfg.Probe = lost
		w.restart()
		twice := func(command string, call func() error) {
			t.Helper()
			lost.next(command)
			refused(t, call(), base.CodeTimeout)
			ok(t, call())
		}
		own := base.GivenID{UUID: base.UUID{0: 1, 15: 9}}
		s := core.Submission{Kind: "k", ID: &own, PolicyJSON: []byte(`{"retry_policy":{"backoff":{"strategy":"fixed","delay_ms":0}}}`)}
		twice("submit", func() error { _, err := w.e.Submit(w.ctx(), client, s); return err })
		var task engine.Task
		claim := func(key string) {
			t.Helper()
			r := ask()
			r.RequestKey, r.Wait = key, patience
			twice("claim", func() error {
				answer, err := w.e.Claim(w.ctx(), client, r)
				if err == nil {
					task = answer.Tasks[0]
				}
				return err
			})
		}
		claim("c1")
		same(t, "one lease", w.get(own).LeaseEpoch, 1)
		twice("step", func() error {
			_, err := w.e.PutStep(w.ctx(), client, own, fence(task), "s", core.Payload{})
			return err
		})
		twice("fail", func() error {
			answer, err := w.e.Fail(w.ctx(), client, own, core.FailCommand{Fence: fence(task)})
			if err == nil {
				same(t, "retry_at as first given", answer.RetryAt, w.now())
			}
			return err
		})
		claim("c2")
		twice("release", func() error { _, err := w.e.Release(w.ctx(), client, own, fence(task), ""); return err })
		claim("c3")
		twice("delay", func() error { _, err := w.e.Delay(w.ctx(), client, own, fence(task), w.now()+50); return err })
		w.turn(50)
		claim("c4")
		twice("complete", func() error { _, err := w.e.Complete(w.ctx(), client, own, fence(task), nil); return err })
		twice("replay", func() error {
			_, err := w.e.Replay(w.ctx(), operator, own, engine.ReplayRequest{}, engine.Operator{RequestKey: "r"})
			return err
		})
		twice("cancel", func() error { _, err := w.e.Cancel(w.ctx(), operator, own, nil, "", engine.Operator{}); return err })
		x := w.get(own)
		same(t, "one effect each", [4]any{x.LeaseEpoch, x.RetryCount, x.ReplayCount, x.Status}, [4]any{int64(4), 0, 1, core.Cancelled})
	})
}

// The lease is then acquired, by the clock, before the instance was registered.
func TestL117_L5_a_claim_repeats_after_the_clock_was_set_back_behind_the_registration_of_its_instance(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.nothing() // registers the instance
		w.setBack(base.Hour)
		w.submit(core.Submission{})
		r := ask()
		r.RequestKey = "r1"
		first := w.take(r)
		same(t, "tasks", len(first), 1)
		same(t, "repeated", leasesOf(w.take(r)), leasesOf(first))
		id := w.submit(core.Submission{})
		w.release(w.claim())
		worker := engine.TargetedRequest{WorkerID: r.WorkerID, InstanceID: r.InstanceID, RequestKey: "k2"}
		second := must(w.e.ClaimResumed(w.ctx(), client, id, worker))(t)
		same(t, "targeted", fence(must(w.e.ClaimResumed(w.ctx(), client, id, worker))(t)), fence(second))
	})
}
