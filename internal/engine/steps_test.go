package engine_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

func (w *world) step(task engine.Task, name, result string) engine.StepAnswer {
	w.t.Helper()
	return must(w.e.PutStep(w.ctx(), client, given(task), fence(task), name, core.Payload{Data: []byte(result)}))(w.t)
}

// steps lists the steps that a run sees, as name=result.
func (w *world) steps(id base.GivenID, run *int) []string {
	w.t.Helper()
	got := []string{}
	for _, record := range must(w.e.Steps(w.ctx(), client, id, run))(w.t) {
		got = append(got, record.Name+"="+string(record.Result))
	}
	return got
}

func TestL149_L151_the_first_write_of_a_step_wins_and_changes_nothing_else(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		id := given(task)
		before, story := w.get(id), w.story(id)
		stored := w.step(task, "b", "one")
		same(t, "stored", [2]string{stored.Outcome, string(stored.Record.Result)}, [2]string{"stored", "one"})
		w.turn(5)
		again := w.step(task, "b", "two")
		same(t, "exists", [2]string{again.Outcome, string(again.Record.Result)}, [2]string{"exists", "one"})
		same(t, "its record", again.Record.CreatedAt, stored.Record.CreatedAt)
		w.step(task, "a", "")
		same(t, "in order of writing", w.steps(id, nil), []string{"b=one", "a="})
		same(t, "no change of the record (L151)", w.get(id), before)
		same(t, "no event (L151)", w.story(id), story)
		w.complete(task)
		w.untouched(id, func() error {
			_, err := w.e.PutStep(w.ctx(), client, id, fence(task), "c", core.Payload{})
			return err
		}, base.CodeExecutionNotActive)
	})
}

func TestL150_LC25_steps_survive_retry_reclaim_and_resume_and_start_anew_with_a_replay(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		id := w.submit(policy(`{"retry_policy":{"backoff":{"strategy":"fixed","delay_ms":0}}}`))
		task := w.claim()
		w.step(task, "a", "1")
		w.fail(task, "")
		task = w.claim()
		same(t, "after a retry", w.step(task, "a", "x").Outcome, "exists")
		record := w.step(task, "b", "2").Record
		same(t, "attempt and epoch", [2]any{record.AttemptIndex, record.LeaseEpoch}, [2]any{1, int64(2)})
		w.turn(30_000)
		late := w.step(task, "late", "3") // it was not taken over
		same(t, "late", late.Outcome, "stored")
		task = w.claim()
		w.release(task)
		task = w.claim()
		same(t, "after reclaim and resume", w.step(task, "late", "x").Outcome, "exists")
		w.complete(task)

		w.replay(id)
		same(t, "a replay begins without any", w.steps(id, nil), []string{})
		task = w.claim()
		same(t, "anew", w.step(task, "a", "new").Outcome, "stored")
		w.complete(task)
		same(t, "the first run", w.steps(id, ptr(0)), []string{"a=1", "b=2", "late=3"})

		must(w.e.Replay(w.ctx(), operator, id, engine.ReplayRequest{KeepSteps: true}, engine.Operator{}))(t)
		same(t, "keep_steps", w.steps(id, nil), []string{"a=new"})
		task = w.claim()
		same(t, "seen by the new run", string(w.step(task, "a", "x").Record.Result), "new")
		w.step(task, "c", "4")
		w.complete(task)
		must(w.e.Replay(w.ctx(), operator, id, engine.ReplayRequest{KeepSteps: true}, engine.Operator{}))(t)
		same(t, "also what that saw", w.steps(id, nil), []string{"a=new", "c=4"})
		same(t, "first run unchanged", w.steps(id, ptr(0)), []string{"a=1", "b=2", "late=3"})
	})
}

func TestL149_steps_have_bounds(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		put := func(name string, size int) error {
			_, err := w.e.PutStep(w.ctx(), client, given(task), fence(task), name, core.Payload{Data: make([]byte, size)})
			return err
		}
		long := fmt.Sprintf("%0128d", 0)
		refused(t, put("", 0), base.CodeInvalidArgument)
		refused(t, put("a b", 0), base.CodeInvalidArgument)
		refused(t, put(long+"x", 0), base.CodeInvalidArgument)
		refused(t, put("big", 1<<20+1), base.CodePayloadTooLarge)
		same(t, "nothing was stored", w.steps(given(task), nil), []string{})
		ok(t, put(long, 0))
		ok(t, put("big", 1<<20))
	})
}

func TestL149_ten_thousand_steps_and_no_more(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		var wg sync.WaitGroup
		for part := range 100 {
			wg.Go(func() {
				for i := range 100 {
					if _, err := w.e.PutStep(w.ctx(), client, given(task), fence(task), fmt.Sprint(part, "-", i), core.Payload{}); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		_, err := w.e.PutStep(w.ctx(), client, given(task), fence(task), "more", core.Payload{})
		refused(t, err, base.CodeStepLimitExceeded)
		same(t, "known ones still answer", w.step(task, "0-0", "x").Outcome, "exists")
	})
}
