package engine_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// untimed leaves everything that is due, and everything in the inbox, to the next command.
var untimed = engine.Config{NoTimers: true}

// leaveIn leaves a command under the lease of a task in a transaction of the user's own.
func (w *world) leaveIn(own ownTx, task engine.Task, o engine.TxOutcome) error {
	o.ID, o.Fence = given(task), fence(task)
	_, err := w.e.LeaveTx(w.ctx(), client, own.tx, o)
	return err
}

// leavesIn completes a task in a transaction of the user's own, and commits it.
func (w *world) leavesIn(task engine.Task, result string) {
	w.t.Helper()
	own := w.beginOwn()
	ok(w.t, w.leaveIn(own, task, completes(result)))
	ok(w.t, own.commit())
}

func completes(result string) engine.TxOutcome {
	return engine.TxOutcome{Op: engine.OutcomeComplete, Result: &core.Payload{ContentType: "text/plain", Data: []byte(result)}}
}

func stores(name, result string) engine.TxOutcome {
	return engine.TxOutcome{Op: engine.OutcomeStep, Step: name, Result: &core.Payload{ContentType: "text/plain", Data: []byte(result)}}
}

// endedOnce checks that an execution has ended with a result, once.
func (w *world) endedOnce(id base.GivenID, result string) {
	w.t.Helper()
	x := w.is(id, core.Succeeded, core.Completed)
	if x.LeaseEpoch != 1 || x.Lease != nil || x.TotalAttempts != 1 {
		w.t.Errorf("epoch %d, lease %v, %d attempts", x.LeaseEpoch, x.Lease, x.TotalAttempts)
	}
	same(w.t, "result", string(must(w.e.Result(w.ctx(), client, id))(w.t).Data), result)
	same(w.t, "story", w.story(id), []string{"execution.submitted", "lease.acquired", "execution.completed"})
}

func TestI5_L18_after_the_commit_nothing_undoes_what_was_left_in_a_transaction(t *testing.T) {
	t.Parallel()
	afterwards := map[string]func(w *world, task engine.Task){
		"a read":  func(w *world, task engine.Task) {},
		"a crash": func(w *world, _ engine.Task) { w.restart() },
		"a cancel": func(w *world, task engine.Task) {
			_, _ = w.e.Cancel(w.ctx(), operator, given(task), nil, "", engine.Operator{})
		},
		"a renewal": func(w *world, task engine.Task) {
			_, err := w.renew(task, 0)
			refused(w.t, err, base.CodeExecutionNotActive)
		},
		"a completion": func(w *world, task engine.Task) { ok(w.t, w.completing(task)) }, // is its repeat
		"a failure":    func(w *world, task engine.Task) { refused(w.t, w.failing(task), base.CodeExecutionNotActive) },
		"the lapse":    func(w *world, _ engine.Task) { w.turn(base.Hour); same(w.t, "taken", len(w.take(ask())), 0) },
		"lapse and crash": func(w *world, _ engine.Task) {
			w.turn(base.Hour)
			w.restart()
			same(w.t, "taken", len(w.take(ask())), 0)
		},
		"the deadline": func(w *world, task engine.Task) { w.turn(25 * base.Hour); w.renewing(task) },
		"the sweep":    func(w *world, _ engine.Task) { w.turn(25 * base.Hour); w.swept() },
	}
	for what, then := range afterwards {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			onStoresWith(t, untimed, func(t *testing.T, w *world) {
				deadline := w.now().Add(base.Day)
				task := w.started(core.Submission{DeadlineAt: deadline})
				w.leavesIn(task, "mine")
				then(w, task)
				w.endedOnce(given(task), "mine")
			})
		})
	}
}

// lapses lets a lease lapse, and a command notice it.
func (w *world) lapses(task engine.Task) {
	w.t.Helper()
	w.turn(base.Hour)
	_, err := w.renew(task, 0)
	refused(w.t, err, base.CodeLeaseExpired)
}

func (w *world) failing(task engine.Task) error {
	_, err := w.e.Fail(w.ctx(), client, given(task), core.FailCommand{Fence: fence(task)})
	return err
}

// renewing renews a lease and takes any answer.
func (w *world) renewing(task engine.Task) { _, _ = w.renew(task, 0) }

func TestL34_a_stale_lease_is_refused_inside_the_transaction(t *testing.T) {
	t.Parallel()
	before := map[string]struct {
		do   func(w *world, task engine.Task)
		code base.Code
	}{
		"superseded": {func(w *world, task engine.Task) { w.lapses(task); w.claim() }, base.CodeStaleLease},
		"revoked": {func(w *world, task engine.Task) {
			_, err := w.e.Revoke(w.ctx(), operator, given(task), engine.RevokeRequest{}, engine.Operator{})
			ok(w.t, err)
		}, base.CodeLeaseRevoked},
		"cancelled":    {func(w *world, task engine.Task) { w.cancel(given(task)) }, base.CodeExecutionNotActive},
		"ended":        {func(w *world, task engine.Task) { w.complete(task) }, base.CodeExecutionNotActive},
		"past its end": {func(w *world, _ engine.Task) { w.turn(25 * base.Hour) }, base.CodeExecutionNotActive},
		"left before":  {func(w *world, task engine.Task) { w.leavesIn(task, "first") }, base.CodeExecutionNotActive},
	}
	for what, c := range before {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			onStoresWith(t, untimed, func(t *testing.T, w *world) {
				deadline := w.now().Add(base.Day)
				task := w.started(core.Submission{DeadlineAt: deadline})
				c.do(w, task)
				own := w.beginOwn()
				for _, o := range []engine.TxOutcome{completes("late"), stores("step", "late")} {
					refused(t, w.leaveIn(own, task, o), c.code)
				}
				ok(t, own.commit()) // it is usable, and has written nothing
				same(t, "steps", len(must(w.e.Steps(w.ctx(), client, given(task), engine.StepsRequest{}))(t).Records), 0)
			})
		})
	}
}

// A lease that lapsed and was not taken over still ends the work (L36).
func TestL36_a_late_outcome_in_a_transaction_counts(t *testing.T) {
	t.Parallel()
	onStoresWith(t, untimed, func(t *testing.T, w *world) {
		for _, noticed := range []bool{false, true} {
			task := w.started(core.Submission{})
			w.turn(base.Hour)
			if noticed {
				_, err := w.renew(task, 0) // settles the lapse
				refused(t, err, base.CodeLeaseExpired)
			}
			w.leavesIn(task, "late")
			same(t, "taken over", len(w.take(ask())), 0)
			w.is(given(task), core.Succeeded, core.Completed)
		}
	})
}

func TestL88_what_a_transaction_leaves_is_gone_if_it_is_rolled_back(t *testing.T) {
	t.Parallel()
	onStoresWith(t, untimed, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		own := w.beginOwn()
		ok(t, w.leaveIn(own, task, stores("step", "x")))
		ok(t, w.leaveIn(own, task, completes("x")))
		ok(t, own.rollback())
		w.is(given(task), core.Running, core.ReasonNone)
		same(t, "steps", len(must(w.e.Steps(w.ctx(), client, given(task), engine.StepsRequest{}))(t).Records), 0)
		w.complete(task)
	})
}

func TestL149_steps_of_transactions_are_stored_once_and_before_anything_else(t *testing.T) {
	t.Parallel()
	onStoresWith(t, untimed, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		own := w.beginOwn()
		ok(t, w.leaveIn(own, task, stores("a", "one")))
		ok(t, w.leaveIn(own, task, stores("b", "two")))
		o := stores("a", "other")
		o.ID, o.Fence = given(task), fence(task)
		answer := must(w.e.LeaveTx(w.ctx(), client, own.tx, o))(t)
		same(t, "the step of the transaction itself", string(answer.Step.Result), "one")
		ok(t, own.commit())
		w.turn(base.Hour) // the transaction was open for long, and its commit is a sign of life
		steps := must(w.e.Steps(w.ctx(), client, given(task), engine.StepsRequest{}))(t).Records
		same(t, "steps", [3]string{steps[0].Name, steps[1].Name, string(steps[1].Result)}, [3]string{"a", "b", "two"})
		x := w.is(given(task), core.Running, core.ReasonNone)
		same(t, "the lease was renewed", x.Lease.ExpiresAt > w.now(), true)
		answer2 := must(w.e.PutStep(w.ctx(), client, given(task), fence(task), "a", core.Payload{Data: []byte("third")}))(t)
		same(t, "first write wins", answer2.Outcome, "exists")

		w.lapses(task)
		taken := w.claim() // the next lease sees them too
		same(t, "id", given(taken), given(task))
		own = w.beginOwn()
		o = stores("b", "other")
		o.ID, o.Fence = given(taken), fence(taken)
		answer = must(w.e.LeaveTx(w.ctx(), client, own.tx, o))(t)
		same(t, "the step of an earlier attempt", string(answer.Step.Result), "two")
		ok(t, own.rollback())
	})
}

// The row in the cache of another process is not written any more once an outcome was left (ADR 5).
func TestI3_a_process_with_the_row_in_its_cache_meets_the_outcome(t *testing.T) {
	t.Parallel()
	onShared(t, untimed, func(t *testing.T, w *world) {
		first, second := w.e, w.another()
		for _, command := range []func(task engine.Task) error{
			w.completing,
			w.failing,
			func(task engine.Task) error { _, err := w.renew(task, 0); return err },
			func(task engine.Task) error {
				half := 50
				return w.e.Progress(w.ctx(), client, given(task), fence(task), &half, nil)
			},
		} {
			task := w.started(core.Submission{}) // cached by the first engine
			w.e = second
			w.leavesIn(task, "mine")
			w.e = first
			_ = command(task)
			w.endedOnce(given(task), "mine")
		}
	})
}

func TestS73_an_open_transaction_with_an_outcome_stops_nothing_else(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{}, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		own := w.beginOwn()
		ok(t, w.leaveIn(own, task, completes("mine")))
		w.complete(w.started(core.Submission{}))
		_, err := w.renew(task, 0)
		refusal := refused(t, err, base.CodeStoreUnavailable)
		same(t, "why", refusal.Details[base.DetailHeld], any(true))
		w.turn(base.Hour) // the sweep waits for the row, as everything does that needs it
		w.complete(w.started(core.Submission{}))
		ok(t, own.commit())
		// The sweep, which has waited for the row, may hold it now: a read does not wait for that, and shows the outcome a moment later.
		eventually(t, "the outcome is applied", func() bool { return w.get(given(task)).Status == core.Succeeded })
		w.endedOnce(given(task), "mine")
	})
}

func TestI13_a_commit_races_with_cancel_lapse_and_takeover(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		for n := range 12 {
			task := w.started(core.Submission{})
			var all sync.WaitGroup
			var left, cancelled error
			all.Go(func() {
				own := w.beginOwn()
				if left = w.leaveIn(own, task, completes("mine")); left == nil {
					left = own.commit()
				} else {
					left = errors.Join(left, own.rollback())
				}
			})
			all.Go(func() {
				if n%2 == 0 {
					_, cancelled = w.e.Cancel(w.ctx(), operator, given(task), nil, "", engine.Operator{})
				} else {
					w.turn(base.Hour)
					for _, taken := range w.take(ask()) {
						cancelled = w.completing(taken)
					}
				}
			})
			all.Wait()
			x := w.get(given(task))
			switch {
			case left == nil && x.LeaseEpoch == 1:
				w.is(given(task), core.Succeeded, core.Completed)
			case left == nil:
				t.Fatalf("a committed outcome did not count: %s, epoch %d", x.Status, x.LeaseEpoch)
			case !x.Status.Terminal():
				t.Fatalf("the outcome was refused (%v), and the execution is %s (%v)", left, x.Status, cancelled)
			}
		}
	})
}

// Members of a flow may each end the other: outcomes that wait for each other are applied together.
func TestI12_outcomes_of_members_that_end_each_other_are_applied(t *testing.T) {
	t.Parallel()
	onStoresWith(t, untimed, func(t *testing.T, w *world) {
		parent := w.parent()
		w.spawn(parent, "a", "b")
		a, b := w.claimKind("a"), w.claimKind("b")
		w.leavesIn(a, "a")
		w.leavesIn(b, "b")
		w.leavesIn(parent, "parent")
		for _, task := range []engine.Task{a, b, parent} {
			if x := w.get(given(task)); !x.Status.Terminal() {
				t.Errorf("%s is %s", x.ID, x.Status)
			}
		}
	})
}

// A submit inside a transaction starts as soon as it is committed, without a nudge.
func TestU137_work_of_a_committed_transaction_starts_without_a_nudge(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{PollInterval: time.Hour}, func(t *testing.T, w *world) {
		r := ask()
		answer := w.waiting(w.e, r)
		own := w.beginOwn()
		first := must(w.e.SubmitTx(w.ctx(), client, own.tx, core.Submission{Kind: "k"}))(t)
		ok(t, own.commit())
		select {
		case got := <-answer:
			same(t, "id", got.Tasks[0].Execution.ID, first.ID)
		case <-time.After(giveUp):
			t.Fatal("it was not found")
		}
	})
}
