package engine_test

import (
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// waiting starts a claim that waits, and returns once it has looked at the store and found nothing.
func (w *world) waiting(e *engine.Engine, r engine.ClaimRequest) <-chan engine.ClaimAnswer {
	w.t.Helper()
	r.Wait = patience
	r.InstanceID = "waiting"
	answer := make(chan engine.ClaimAnswer, 1)
	go func() {
		got, err := e.Claim(w.ctx(), client, r)
		if err != nil {
			w.t.Error(err)
		}
		answer <- got
	}()
	w.seen(r.InstanceID)
	return answer
}

// wakeCauses is everything that makes work claimable: prepare sets the stage and returns what then happens.
var wakeCauses = map[string]struct {
	prepare func(w *world) func()
}{
	"submit":      {func(w *world) func() { return func() { w.submit(core.Submission{}) } }},
	"bulk submit": {func(w *world) func() { return func() { w.submitMany(1, core.Submission{}) } }},
	"a new lane":  {func(w *world) func() { return func() { w.submit(core.Submission{Lane: "new"}) } }},
	"delay due": {func(w *world) func() {
		w.submit(core.Submission{DelayMS: ptr(int64(500))})
		return func() { w.turn(500) }
	}},
	"retry due": {func(w *world) func() {
		w.fail(w.started(policy(`{"retry_policy":{}}`)), "")
		return func() { w.turn(1000) }
	}},
	"worker delay due": {func(w *world) func() {
		w.delay(w.started(core.Submission{}), w.now()+500)
		return func() { w.turn(500) }
	}},
	"release": {func(w *world) func() {
		task := w.started(core.Submission{})
		return func() { w.release(task) }
	}},
	"lapse": {func(w *world) func() {
		w.started(core.Submission{})
		return func() { w.turn(30_000) }
	}},
	"revoke": {func(w *world) func() {
		task := w.started(core.Submission{})
		return func() { w.revoke(given(task)) }
	}},
	"mark dead": {func(w *world) func() {
		w.started(core.Submission{})
		return func() { ok(w.t, w.e.MarkDead(w.ctx(), operator, "w1", "gone", true)) }
	}},
	"replay": {func(w *world) func() {
		task := w.started(core.Submission{})
		w.complete(task)
		return func() { w.replay(given(task)) }
	}},
	"hold released": {func(w *world) func() {
		id := w.submit(core.Submission{})
		w.hold(id)
		return func() { w.releaseHold(id) }
	}},
	"signal": {func(w *world) func() {
		_, s := w.asleep(atA)
		return func() { w.signalled(s, "go") }
	}},
	"approval": {func(w *world) func() {
		id, _ := w.asleep(atA)
		return func() { must(w.approve("ann", id, core.ApproveCommand{Name: "yes"}))(w.t) }
	}},
	"link decided": {func(w *world) func() {
		_, s := w.asleep(atA)
		l := w.link(s.Waitpoints[0].ID, "ann")
		return func() { must(w.decideLink(l, "approve"))(w.t) }
	}},
	"resume": {func(w *world) func() {
		id, _ := w.asleep(operatorOnly)
		return func() {
			_, _, err := w.resume(id, core.ResumeCommand{})
			ok(w.t, err)
		}
	}},
	"resume delay due": {func(w *world) func() {
		id, _ := w.asleep(operatorOnly)
		_, _, err := w.resume(id, core.ResumeCommand{DelayMS: 500})
		ok(w.t, err)
		return func() { w.turn(500) }
	}},
	"suspension timeout": {func(w *world) func() {
		w.asleep(timeoutOnly, timingOut(500, core.BehaviorAutoResume))
		return func() { w.turn(500) }
	}},
	"lane resumed": {func(w *world) func() {
		w.lane("default", core.LaneSettings{State: core.LanePaused})
		w.submit(core.Submission{})
		return func() { w.lane("default", core.LaneSettings{}) }
	}},
	"room under the cap": {func(w *world) func() {
		w.lane("default", core.LaneSettings{MaxConcurrent: 1})
		task := w.started(core.Submission{})
		w.submit(core.Submission{})
		return func() { w.complete(task) }
	}},
	"cap raised": {func(w *world) func() {
		w.lane("default", core.LaneSettings{MaxConcurrent: 1})
		w.started(core.Submission{})
		w.submit(core.Submission{})
		return func() { w.lane("default", core.LaneSettings{MaxConcurrent: 2}) }
	}},
	"bulk job": {func(w *world) func() {
		w.hold(w.submit(core.Submission{}))
		return func() {
			must(w.e.Bulk(w.ctx(), operator, engine.BulkRequest{Action: "release_hold", Filter: core.Filter{Kind: []string{"k"}}}))(w.t)
		}
	}},
}

func TestSC5_a_waiting_claim_is_woken_by_every_cause(t *testing.T) {
	t.Parallel()
	for name, c := range wakeCauses {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onStores(t, func(t *testing.T, w *world) {
				cause := c.prepare(w)
				r := ask()
				r.Lanes = []string{"default", "new"}
				answer := w.waiting(w.e, r)
				cause()
				same(t, "tasks", len((<-answer).Tasks), 1)
			})
		})
	}
}

func TestS67_a_commit_of_one_row_answers_one_of_many_waiting_claims(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		first := w.waiting(w.e, ask())
		r := ask()
		r.InstanceID = "second"
		second := make(chan engine.ClaimAnswer, 1)
		go func() {
			r.Wait = patience
			answer, err := w.e.Claim(w.ctx(), client, r)
			if err != nil {
				t.Error(err)
			}
			second <- answer
		}()
		w.seen("second")
		one := w.submit(core.Submission{})
		same(t, "longest waiting first", given((<-first).Tasks[0]), one)
		select {
		case <-second:
			t.Fatal("the second was answered without work")
		default:
		}
		two := w.submit(core.Submission{})
		same(t, "then the next", given((<-second).Tasks[0]), two)
	})
}

func TestS69_claims_and_waits_of_one_process_are_woken_by_another(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{}, func(t *testing.T, w *world) {
		other := w.another()
		answer := w.waiting(w.e, ask())
		submitted := must(other.Submit(w.ctx(), client, core.Submission{Kind: "k"}))(t)
		task := (<-answer).Tasks[0]
		same(t, "task", task.Execution.ID, submitted.ID)
		ended := make(chan core.Status, 1)
		go func() {
			view, err := other.Wait(w.ctx(), client, given(task), patience)
			if err != nil {
				t.Error(err)
			}
			ended <- view.Execution.Status
		}()
		w.complete(task)
		same(t, "wait(id) of the other process", <-ended, core.Succeeded)
		other.Nudge(w.ctx(), client, "default")
	})
}
