package engine_test

import (
	"sync"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

func TestL108_a_cancel_of_what_does_not_exist_says_so(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		elsewhere := w.submit(core.Submission{Namespace: "other"})
		here := engine.Caller{Principal: "op", Actor: "operator", Namespaces: []string{"default"}}
		for _, id := range []base.GivenID{{UUID: base.UUID{1}}, elsewhere} {
			_, err := w.e.Cancel(w.ctx(), here, id, nil, "", engine.Operator{})
			refused(t, err, base.CodeExecutionNotFound)
		}
		w.is(elsewhere, core.Ready, core.WaitingForWorker)
	})
}

func TestL120_reads_of_what_does_not_exist_say_so(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		id := base.GivenID{UUID: base.UUID{1}}
		for name, read := range map[string]func() error{
			"describe": func() error { _, err := w.e.Describe(w.ctx(), client, id); return err },
			"input":    func() error { _, err := w.e.Input(w.ctx(), client, id); return err },
			"result":   func() error { _, err := w.e.Result(w.ctx(), client, id); return err },
			"attempts": func() error { _, err := w.e.Attempts(w.ctx(), client, id); return err },
			"leases":   func() error { _, _, err := w.e.Leases(w.ctx(), client, id, 0, 10); return err },
			"steps":    func() error { _, err := w.e.Steps(w.ctx(), client, id, engine.StepsRequest{}); return err },
			"wait":     func() error { _, err := w.e.Wait(w.ctx(), client, id, time.Second); return err },
		} {
			if err := read(); base.CodeOf(err) != base.CodeExecutionNotFound {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

func TestL123_a_result_exists_only_after_success(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		_, err := w.e.Result(w.ctx(), client, given(task))
		refused(t, err, base.CodeExecutionNotTerminal)
		w.complete(task)
		same(t, "without result", must(w.e.Result(w.ctx(), client, given(task)))(t), nil)
		failed := w.started(core.Submission{})
		w.fail(failed, "permanent")
		_, err = w.e.Result(w.ctx(), client, given(failed))
		refusal := refused(t, err, base.CodeExecutionNotSucceeded)
		same(t, "failure", refusal.Details["failure"].(core.Failure).Message, "it broke")
		empty := w.started(core.Submission{})
		must(w.e.Complete(w.ctx(), client, given(empty), fence(empty), &core.Payload{}))(t)
		result := must(w.e.Result(w.ctx(), client, given(empty)))(t)
		if result == nil || len(result.Data) != 0 || result.ContentType != base.DefaultContentType {
			t.Fatalf("an empty result is a result (L7): %v", result)
		}
	})
}

func TestL124_any_number_waits_and_all_are_answered_at_the_end(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		for name, end := range map[string]func(task engine.Task){
			"complete": func(task engine.Task) { w.complete(task) },
			"fail":     func(task engine.Task) { w.fail(task, "permanent") },
			"cancel":   func(task engine.Task) { w.cancel(given(task)) },
			"deadline": func(task engine.Task) { w.turn(10_000) },
		} {
			task := w.started(core.Submission{DeadlineAt: w.now() + 10_000})
			var wg sync.WaitGroup
			for range 20 {
				wg.Go(func() {
					view, err := w.e.Wait(w.ctx(), client, given(task), patience)
					if err != nil || !view.Execution.Status.Terminal() {
						t.Errorf("%s: %v, %v", name, view.Execution, err)
					}
				})
			}
			end(task)
			wg.Wait()
		}
	})
}

func TestL124_a_wait_ends_with_the_present_state_when_its_time_is_over(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		id := w.submit(core.Submission{})
		same(t, "no time", must(w.e.Wait(w.ctx(), client, id, 0))(t).Execution.Status, core.Ready)
		same(t, "little time", must(w.e.Wait(w.ctx(), client, id, 20*time.Millisecond))(t).Execution.Status, core.Ready)
		for _, bad := range []time.Duration{-1, 60*time.Second + 1} {
			_, err := w.e.Wait(w.ctx(), client, id, bad)
			refused(t, err, base.CodeInvalidArgument)
		}
	})
}

func TestL25_L126_attempts_tell_their_whole_story(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		id := w.submit(policy(`{"retry_policy":{"backoff":{"strategy":"fixed","delay_ms":0}}}`))
		same(t, "none yet", len(w.attempts(id)), 0)
		task := w.claim()
		w.turn(100)
		w.release(task)
		w.turn(50)
		task = w.claim()
		w.turn(10)
		w.fail(task, "infra_crash")
		w.complete(w.claim())
		attempts := w.attempts(id)
		first := attempts[0]
		same(t, "first", [6]any{first.Index, first.Type, first.State, first.RunningMS, first.FirstEpoch, first.LastEpoch},
			[6]any{0, core.AttemptInitial, core.EndedFailure, int64(110), int64(1), int64(2)})
		same(t, "its times", [2]base.Time{first.StartedAt, first.EndedAt}, [2]base.Time{w.now() - 160, w.now()})
		same(t, "its failure", first.Failure.Class, "infra_crash")
		same(t, "its worker", [2]string{first.WorkerID, first.InstanceID}, [2]string{"w", "w1"})
		same(t, "its interruption", [2]any{first.Interruption, first.InterruptAt}, [2]any{core.InterruptedReleased, w.now() - 60})
		second := attempts[1]
		same(t, "second", [3]any{second.Type, second.State, second.LastEpoch}, [3]any{core.AttemptRetry, core.EndedSuccess, int64(3)})
		same(t, "lineage", *second.Lineage, core.Lineage{Class: "infra_crash", Category: "infra_crash"})
	})
}

func TestL127_the_lease_history_is_paged_by_epoch(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		id := w.submit(core.Submission{})
		for range 4 {
			w.release(w.claim())
		}
		w.claim()
		epochs := []int64{}
		for after := int64(0); ; {
			entries, more, err := w.e.Leases(w.ctx(), client, id, after, 2)
			ok(t, err)
			for _, entry := range entries {
				epochs = append(epochs, entry.Epoch)
				after = entry.Epoch
			}
			if !more {
				break
			}
		}
		same(t, "epochs", epochs, []int64{1, 2, 3, 4, 5})
		entries, _, err := w.e.Leases(w.ctx(), client, id, 4, 2)
		ok(t, err)
		same(t, "the open one", [2]any{entries[0].EndedAt, entries[0].End}, [2]any{base.Time(0), core.EndNone})
	})
}

func TestL129_W1_server_time_is_the_stores_clock(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.turn(12_345)
		same(t, "time", must(w.e.ServerTime(w.ctx()))(t), w.now())
	})
}
