package engine_test

import (
	"sync"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/condition"
	"github.com/flowfabric/flowfabric/internal/engine"
)

func TestWI9_of_many_signals_at_once_one_resumes(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		id, s := w.asleep(goAtA)
		engines := []*engine.Engine{w.e, w.another1()}
		effects := make([]condition.SignalEffect, 64)
		var wg sync.WaitGroup
		for i := range effects {
			wg.Go(func() {
				got, err := engines[i%2].Signal(w.ctx(), stranger, nil, s.Tokens[0], core.SignalCommand{WaitpointID: s.Waitpoints[0].ID, Name: "go"})
				if err != nil {
					refused(t, err, base.CodeWaitpointClosed)
				}
				effects[i] = got.Effect
			})
		}
		wg.Wait()
		satisfied := 0
		for _, effect := range effects {
			if effect == condition.EffectSatisfied {
				satisfied++
			}
		}
		same(t, "who met the condition", satisfied, 1)
		same(t, "told once", []int{w.count(id, "execution.resumed"), w.count(id, "signal.accepted")}, []int{1, 1})
		w.claim()
		w.nothing()
	})
}

func TestWI9_a_suspension_ends_once_whatever_races(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		other := w.another1()
		for range 8 {
			id, s := w.asleep(goAtA, timingOut(1000, core.BehaviorAutoResume))
			var wg sync.WaitGroup
			for _, act := range []func() error{
				func() error { _, err := w.signal(s.Waitpoints[0].ID, s.Tokens[0], "go"); return err },
				func() error {
					_, _, err := other.Resume(w.ctx(), operator, id, core.ResumeCommand{}, engine.Operator{})
					return err
				},
				func() error {
					_, err := other.Cancel(w.ctx(), operator, id, nil, "", engine.Operator{})
					return err
				},
				func() error { w.turn(1000); return nil },
			} {
				wg.Go(func() {
					switch code := base.CodeOf(act()); code {
					case "", base.CodeWaitpointClosed, base.CodeExecutionNotSuspended, base.CodeExecutionNotActive:
					default:
						t.Errorf("refused with %s", code)
					}
				})
			}
			wg.Wait()
			w.becomes(id, core.Cancelled)
			history := must(w.e.Suspensions(w.ctx(), client, id, "", nil))(t)
			same(t, "one suspension", len(history.Items), 1)
			if history.Items[0].Cause == "" {
				t.Error("it did not end")
			}
			eventually(t, "what the other one did is known here", func() bool { return w.count(id, "waitpoint.closed") > 0 })
			same(t, "the waitpoint closed once", w.count(id, "waitpoint.closed"), 1)
		}
	})
}

func TestWI10_a_signal_is_not_lost_when_the_suspend_adopts_its_waitpoint_at_the_same_time(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		other := w.another1()
		for range 24 {
			task := w.started(core.Submission{})
			a := w.pending(task, "a")
			var wg sync.WaitGroup
			var got engine.SuspendAnswer
			wg.Go(func() {
				must(other.Signal(w.ctx(), stranger, nil, a.Token, core.SignalCommand{WaitpointID: a.ID, Name: "go"}))(t)
			})
			wg.Go(func() { got = must(w.e.Suspend(w.ctx(), client, given(task), waitFor(task, goAtA, adopting(a.ID))))(t) })
			wg.Wait()
			if got.Satisfied {
				w.complete(task)
				continue
			}
			w.complete(w.claim())
		}
	})
}

func TestW47_of_two_waitpoints_with_one_id_at_once_one_is_made(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		other := w.another1()
		for n := range 8 {
			id := base.UUID{byte(n + 1)}
			var codes [2]base.Code
			var wg sync.WaitGroup
			for i, e := range []*engine.Engine{w.e, other} {
				task := w.started(core.Submission{})
				wg.Go(func() {
					_, err := e.CreateWaitpoint(w.ctx(), client, given(task), core.CreateWaitpointCommand{Fence: fence(task), Key: "a", WaitpointID: id})
					codes[i] = base.CodeOf(err)
				})
			}
			wg.Wait()
			if codes != [2]base.Code{"", base.CodeWaitpointAlreadyExists} && codes != [2]base.Code{base.CodeWaitpointAlreadyExists, ""} {
				t.Fatalf("answers %q", codes)
			}
		}
	})
}

func TestL88_work_of_a_users_own_transaction_can_be_approved_about_and_resumed(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		answer := w.submitOwn(core.Submission{Kind: "k"})
		_, err := w.approve("ann", answer.ID.Given(), core.ApproveCommand{Name: "yes"})
		refused(t, err, base.CodeWaitpointAmbiguous) // it is known
	})
}
