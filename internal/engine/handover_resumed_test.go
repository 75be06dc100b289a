package engine_test

import (
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// untilResumed resumes suspended work while a claim waits, until the store has seen that the work was handed over. It returns which
// work that was and what the claim got.
func (w *world) untilResumed(h *handing, condition string, resume func(base.GivenID, engine.SuspendAnswer)) (base.GivenID, engine.ClaimAnswer) {
	w.t.Helper()
	for {
		task := w.started(core.Submission{Input: core.Payload{Data: []byte("in")}})
		suspended := w.suspend(task, condition)
		w.nothing() // the queue was seen to end
		answer := w.claiming(askTwo())
		w.waiters(1)
		before := h.seen.Load()
		resume(given(task), suspended)
		got := <-answer
		if h.seen.Load() > before {
			return given(task), got
		}
		for i := range got.Tasks {
			w.complete(got.Tasks[i])
		}
	}
}

func TestW62_work_that_a_signal_resumes_while_a_claim_waits_is_leased_in_the_same_transaction(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		h := w.handing(nil)
		id, got := w.untilResumed(h, atA, func(_ base.GivenID, s engine.SuspendAnswer) { w.signalled(s, "go") })
		same(t, "tasks", len(got.Tasks), 1)
		task := got.Tasks[0]
		same(t, "the work", [3]any{given(task), task.How, string(task.Execution.Input.Data)}, [3]any{id, "resumed", "in"})
		if task.Resumed == nil || task.Resumed.Cause != core.CauseSignal || len(task.Resumed.Signals) != 1 {
			t.Fatalf("it gets %+v", task.Resumed)
		}
		x := w.is(id, core.Running, core.ReasonNone)
		same(t, "the lease", [3]any{x.LeaseEpoch, x.Lease.ID, x.Attempt.Index}, [3]any{int64(2), task.Execution.Lease.ID, 0})
		w.nothing()
		w.complete(task)
		w.is(id, core.Succeeded, core.Completed)
	})
}

func TestW78_work_that_an_operator_resumes_while_a_claim_waits_is_leased_in_the_same_transaction(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		h := w.handing(nil)
		id, got := w.untilResumed(h, atA, func(id base.GivenID, _ engine.SuspendAnswer) {
			if _, _, err := w.resume(id, core.ResumeCommand{}); err != nil {
				t.Error(err)
			}
		})
		same(t, "tasks", len(got.Tasks), 1)
		same(t, "the work", [2]any{given(got.Tasks[0]), got.Tasks[0].Resumed.Cause}, [2]any{id, core.CauseOperator})
		w.complete(got.Tasks[0])
	})
}

func TestW80_work_that_is_handed_over_is_told_of_signals_of_earlier_transactions_too(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		h := w.handing(nil)
		saying := func(text string) func(*core.SignalCommand) {
			return func(c *core.SignalCommand) { c.Payload = core.Payload{Data: []byte(text)} }
		}
		const both = `{"type":"count","n":2,"count_kind":"distinct_signals","waitpoints":["a"]}`
		_, got := w.untilResumed(h, both, func(_ base.GivenID, s engine.SuspendAnswer) {
			w.signalled(s, "go", saying("one"))
			w.signalled(s, "go", saying("two"))
		})
		var heard []string
		for _, s := range got.Tasks[0].Resumed.Signals {
			heard = append(heard, string(s.Payload.Data))
		}
		same(t, "heard", heard, []string{"one", "two"})
		w.complete(got.Tasks[0])
	})
}
