package engine_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// cancelFlow cancels a flow.
func (w *world) cancelFlow(of engine.FlowAnswer, policy core.CancelPolicy, reason string) engine.CancelFlowAnswer {
	w.t.Helper()
	return must(w.e.CancelFlow(w.ctx(), operator, engine.CancelFlowRequest{Flow: of.Flow.ID.Given(), Policy: policy, Reason: reason}))(w.t)
}

// motley is a flow with a member in every status, and the task that runs.
func (w *world) motley() (engine.FlowAnswer, engine.Task) {
	w.t.Helper()
	retry := []byte(`{"retry_policy":{"max_retries":3,"backoff":{"strategy":"fixed","delay_ms":3600000}}}`)
	flow := w.submitFlow(core.FlowSubmission{Kind: "motley", Nodes: append(
		nodesNamed("ready", "running", "granted", "suspended", "succeeded", "failed", "cancelled"),
		core.FlowNode{Name: "delayed", Kind: "delayed", DelayMS: ptr(base.Hour)},
		core.FlowNode{Name: "retrying", Kind: "retrying", PolicyJSON: retry},
		core.FlowNode{Name: "blocked", Kind: "blocked", After: []string{"running"}},
		core.FlowNode{Name: "skipped", Kind: "skipped", After: []string{"failed"}},
		core.FlowNode{Name: "expired", Kind: "expired", DelayMS: ptr(base.Hour), DeadlineAt: w.now().Add(base.Minute)},
	)})
	w.pass(2 * base.Minute)
	w.becomes(flow.Members["expired"].Given(), core.Expired)
	w.workOff("succeeded", 1, succeeds)
	w.workOff("failed", 1, fails)
	w.cancel(flow.Members["cancelled"].Given())
	w.fail(w.takeKind("retrying", 1)[0], "transient")
	w.suspend(w.takeKind("suspended", 1)[0], operatorOnly)
	r := ask()
	r.Kinds, r.GrantTTL = []string{"granted"}, base.Minute
	same(w.t, "granted", len(must(w.e.Grant(w.ctx(), client, r))(w.t)), 1)
	return flow, w.takeKind("running", 1)[0]
}

func TestF49_F50_F51_F53_each_policy_with_members_in_every_status(t *testing.T) {
	t.Parallel()
	finished := map[string]string{"succeeded": "succeeded", "failed": "failed", "cancelled": "cancelled", "skipped": "skipped", "expired": "expired"}
	for policy, c := range map[core.CancelPolicy]struct {
		statuses  map[string]string
		state     core.FlowState
		cancelled int
		remaining int
	}{
		core.CancelAll: {map[string]string{
			"ready": "cancelled", "running": "cancelled", "granted": "cancelled", "suspended": "cancelled", "delayed": "cancelled", "retrying": "cancelled", "blocked": "cancelled",
		}, core.FlowStopped, 7, 0},
		core.CancelPending: {map[string]string{
			"ready": "cancelled", "running": "running", "granted": "cancelled", "suspended": "suspended", "delayed": "cancelled", "retrying": "delayed", "blocked": "cancelled",
		}, core.FlowCancelling, 4, 3},
		core.CancelFlowOnly: {map[string]string{
			"ready": "ready", "running": "running", "granted": "granted", "suspended": "suspended", "delayed": "delayed", "retrying": "delayed", "blocked": "blocked",
		}, core.FlowStopped, 0, 0},
	} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			onSigning(t, func(t *testing.T, w *world) {
				flow, task := w.motley()
				answer := w.cancelFlow(flow, policy, "no more")
				same(t, "answer", answer, engine.CancelFlowAnswer{
					State: c.state, Policy: policy, Reason: "no more", Cancelled: c.cancelled, FinishedBefore: 5, Remaining: c.remaining,
				})
				want := map[string]string{}
				for _, some := range []map[string]string{finished, c.statuses} {
					for name, status := range some {
						want[name] = status
					}
				}
				same(t, "statuses", w.statuses(flow), want)
				for name, status := range c.statuses {
					if status == "cancelled" {
						x := w.is(flow.Members[name].Given(), core.Cancelled, core.FlowCancelled)
						same(t, name, []string{x.Cancellation.Source, x.Cancellation.By, x.Cancellation.Reason}, []string{core.SourceFlow, "op", "no more"})
						same(t, "told once", w.count(flow.Members[name].Given(), "execution.completed"), 1)
					}
				}
				_, err := w.e.Complete(w.ctx(), client, given(task), fence(task), nil)
				same(t, "the running one may complete", err == nil, policy != core.CancelAll)
				_, err = w.e.ExtendFlow(w.ctx(), client, core.FlowExtension{Flow: flow.Flow.ID.Given(), Seal: true})
				refused(t, err, base.CodeFlowAlreadyTerminal)
			})
		})
	}
}

func TestF51_F52_repeats_and_a_stronger_policy(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		flow := w.submitFlow(core.FlowSubmission{Kind: "two", Nodes: append(nodesNamed("a", "b"), core.FlowNode{Name: "c", Kind: "c", After: []string{"a"}})})
		task := w.takeKind("a", 1)[0]
		same(t, "flow only", w.cancelFlow(flow, core.CancelFlowOnly, "one").State, core.FlowStopped)
		same(t, "c waits", w.member(flow, "c").Status, core.Blocked)
		again := w.cancelFlow(flow, core.CancelFlowOnly, "other")
		same(t, "again", []any{again.Policy, again.Reason}, []any{core.CancelFlowOnly, "one"})
		stronger := w.cancelFlow(flow, core.CancelPending, "two")
		same(t, "stronger", []any{stronger.State, stronger.Policy, stronger.Reason, stronger.Cancelled, stronger.Remaining}, []any{core.FlowStopped, core.CancelPending, "two", 2, 1})
		same(t, "weaker", w.cancelFlow(flow, core.CancelFlowOnly, "three").Reason, "two")
		all := w.cancelFlow(flow, core.CancelAll, "four")
		same(t, "strongest", []any{all.State, all.Cancelled, all.Remaining}, []any{core.FlowStopped, 3, 0})
		if _, err := w.e.Complete(w.ctx(), client, given(task), fence(task), nil); err == nil {
			t.Error("the fence lives")
		}
		same(t, "events", w.flowStory(flow), []string{"flow.created", "flow.cancel_requested", "flow.cancelled", "flow.cancel_requested", "flow.cancel_requested"})

		ended := w.submitFlow(chain("x"))
		w.run(ended, "x")
		late := w.cancelFlow(ended, core.CancelAll, "late")
		same(t, "ended before", []any{late.AlreadyTerminal, late.State}, []any{true, core.FlowCompleted})
		_, err := w.e.CancelFlow(w.ctx(), operator, engine.CancelFlowRequest{Flow: base.IDOf(base.UUID{7}).Given()})
		refused(t, err, base.CodeFlowNotFound)
		_, err = w.e.CancelFlow(w.ctx(), operator, engine.CancelFlowRequest{Flow: ended.Flow.ID.Given(), Wait: time.Hour})
		refused(t, err, base.CodeInvalidArgument)
	})
}

func TestF51_a_cancelling_flow_ends_with_its_last_member(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		flow := w.submitFlow(core.FlowSubmission{Kind: "two", Unsealed: true, Nodes: nodesNamed("a", "b")})
		task := w.takeKind("a", 1)[0]
		same(t, "state", w.cancelFlow(flow, core.CancelPending, "").State, core.FlowCancelling)
		same(t, "phase", w.flow(flow).Phase, "running")
		w.complete(task)
		view := w.flow(flow)
		same(t, "ended", []any{view.State, view.Cancel.Cancelled, view.Cancel.Before}, []any{core.FlowStopped, 1, 1})
		same(t, "events", w.flowStory(flow), []string{"flow.created", "flow.cancel_requested", "flow.cancelled"})
	})
}

func TestF49_F53_a_thousand_members_are_cancelled_and_somebody_waits_for_it(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		s := core.FlowSubmission{Kind: "many"}
		for i := range 1000 {
			s.Nodes = append(s.Nodes, core.FlowNode{Name: fmt.Sprintf("n%04d", i), Kind: "work"})
		}
		flow := w.submitFlow(s)
		w.workOff("work", 10, succeeds)
		answer := must(w.e.CancelFlow(w.ctx(), operator, engine.CancelFlowRequest{Flow: flow.Flow.ID.Given(), Wait: time.Minute}))(t)
		same(t, "answer", answer, engine.CancelFlowAnswer{State: core.FlowStopped, Policy: core.CancelAll, Cancelled: 990, FinishedBefore: 10})
		view := w.flow(flow)
		same(t, "counts", []int{view.Counts["cancelled"], view.Counts["completed"]}, []int{990, 10})
	})
}

func TestF53_a_wait_that_is_over_is_no_error_and_says_what_remains(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		flow := w.submitFlow(core.FlowSubmission{Kind: "one", Nodes: nodesNamed("a", "b")})
		task := w.takeKind("a", 1)[0]
		ask := engine.CancelFlowRequest{Flow: flow.Flow.ID.Given(), Policy: core.CancelPending, Wait: time.Millisecond}
		answer := must(w.e.CancelFlow(w.ctx(), operator, ask))(t)
		same(t, "remaining", []any{answer.State, answer.Remaining}, []any{core.FlowCancelling, 1})
		ask.Wait = time.Minute
		done := make(chan engine.CancelFlowAnswer, 1)
		go func() {
			answer, err := w.e.CancelFlow(w.ctx(), operator, ask)
			if err != nil {
				t.Errorf("refused: %v", err)
			}
			done <- answer
		}()
		w.complete(task)
		answer = <-done
		same(t, "nothing remains", []any{answer.State, answer.Remaining}, []any{core.FlowStopped, 0})
	})
}

func TestF52_U13_a_cancel_under_a_request_key_is_done_once(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		flow := w.submitFlow(core.FlowSubmission{Kind: "two", Nodes: nodesNamed("a", "b")})
		var again atomic.Bool
		keyed := operator
		keyed.RequestKey, keyed.Repeated = "k1", &again
		r := engine.CancelFlowRequest{Flow: flow.Flow.ID.Given(), Policy: core.CancelFlowOnly, Reason: "one"}
		first := must(w.e.CancelFlow(w.ctx(), keyed, r))(t)
		same(t, "the first is no repeat", again.Load(), false)
		w.cancelFlow(flow, core.CancelAll, "all")
		second := must(w.e.CancelFlow(w.ctx(), keyed, r))(t)
		same(t, "a repeat", []any{again.Load(), first.Policy, second.Policy}, []any{true, core.CancelFlowOnly, core.CancelAll})
		r.Reason = "other"
		_, err := w.e.CancelFlow(w.ctx(), keyed, r)
		refused(t, err, base.CodeIdempotencyConflict)
	})
}

func TestF61_a_wait_for_a_flow_ends_when_another_process_has_ended_the_flow(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{}, func(t *testing.T, w *world) {
		flow := w.submitFlow(lineOf("a"))
		task := w.claimKind("a")
		w.cfg.Clock = turned // no look of its own is ever due
		other, over := w.another(), make(chan core.FlowState, 1)
		go func() {
			view, err := other.WaitFlow(t.Context(), client, flow.Flow.ID.Given(), time.Minute)
			if err != nil {
				t.Error(err)
				return
			}
			over <- view.Flow.State
		}()
		w.complete(task)
		eventually(t, "the wait is over", func() bool {
			w.submit(core.Submission{}) // hints of commits follow each other: the first may come before the other process listens
			return len(over) > 0
		})
		same(t, "state", <-over, core.FlowCompleted)
	})
}
