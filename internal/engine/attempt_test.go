package engine_test

import (
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

func TestL126_one_attempt_is_read_by_its_index(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		fresh := w.submit(core.Submission{Kind: "fresh", Lane: "other"})
		_, err := w.e.Attempt(w.ctx(), client, fresh, -1)
		refused(t, err, base.CodeAttemptNotFound)
		task := w.started(policy(`{"retry_policy":{"backoff":{"strategy":"fixed","delay_ms":1}}}`))
		id := given(task)
		w.fail(task, "")
		w.pass(1)
		w.becomes(id, core.Ready)
		w.claim()
		all := w.attempts(id)
		for index, want := range all {
			same(t, "attempt", must(w.e.Attempt(w.ctx(), client, id, index))(t), want)
		}
		same(t, "latest", must(w.e.Attempt(w.ctx(), client, id, -1))(t).Index, 1)
		_, err = w.e.Attempt(w.ctx(), client, id, 2)
		refused(t, err, base.CodeAttemptNotFound)
		_, err = w.e.Attempt(w.ctx(), client, base.GivenID{UUID: base.UUID{1}}, 0)
		refused(t, err, base.CodeExecutionNotFound)
	})
}

func TestU8_the_detail_of_a_failure_keeps_bytes_and_content_type(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		every := make([]byte, 256)
		for i := range every {
			every[i] = byte(i)
		}
		for _, c := range []struct {
			detail     []byte
			give, want string
		}{
			{every, "", ""},
			{every, "image/x-odd; a=b", "image/x-odd; a=b"},
			{[]byte{}, "text/plain", "text/plain"},
			{[]byte("{}"), "application/octet-stream", ""},
			{nil, "text/plain", ""},
		} {
			task := w.started(policy(`{"retry_policy":{"backoff":{"strategy":"fixed","delay_ms":1}}}`))
			fail := core.FailCommand{Fence: fence(task), Message: "m", Detail: c.detail, DetailType: c.give}
			must(w.e.Fail(w.ctx(), client, given(task), fail))(t)
			w.pass(1)
			w.becomes(given(task), core.Ready)
			last := w.get(given(task)).Failure
			same(t, "of the execution", [2]any{last.Detail, last.DetailType}, [2]any{c.detail, c.want})
			w.complete(w.claim())
			past := must(w.e.Attempt(w.ctx(), client, given(task), 0))(t).Failure
			same(t, "of an attempt that is over", [2]any{past.Detail, past.DetailType}, [2]any{c.detail, c.want})
		}
		task := w.started(core.Submission{})
		_, err := w.e.Fail(w.ctx(), client, given(task), core.FailCommand{Fence: fence(task), Detail: every, DetailType: "a\nb"})
		same(t, "field", refused(t, err, base.CodeInvalidArgument).Field, "detail_content_type")
	})
}

func TestU66_a_renewal_tells_that_the_instance_is_to_drain(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		mine, others := w.started(core.Submission{}), w.startedBy("w2")
		told := func(want bool) {
			t.Helper()
			items := must(w.e.Renew(w.ctx(), client, []engine.LeaseRef{
				{ID: given(mine), Fence: fence(mine)}, {ID: given(others), Fence: fence(others)}, {ID: given(mine), Fence: fence(others)},
			}))(t)
			same(t, "drain", [3]bool{items[0].Drain, items[1].Drain, items[2].Drain}, [3]bool{want, false, false})
		}
		told(false)
		ok(t, w.e.Drain(w.ctx(), operator, "", "w1", true))
		told(true)
		beat := must(w.e.Heartbeat(w.ctx(), client, "w1", []engine.LeaseRef{{ID: given(mine), Fence: fence(mine)}}))(t)
		same(t, "heartbeat", [2]bool{beat.Drain, beat.Leases[0].Drain}, [2]bool{true, true})
		w.restart()
		told(true)
		ok(t, w.e.Drain(w.ctx(), operator, "", "w1", false))
		told(false)
	})
}

func TestU66_a_drain_in_one_process_shows_in_renewals_of_another(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{}, func(t *testing.T, w *world) {
		other, task := w.another(), w.started(core.Submission{})
		drains := func() bool {
			return must(other.Renew(w.ctx(), client, []engine.LeaseRef{{ID: given(task), Fence: fence(task)}}))(t)[0].Drain
		}
		same(t, "before", drains(), false)
		ok(t, w.e.Drain(w.ctx(), operator, "", "w1", true))
		eventually(t, "the other process knows", drains)
	})
}

// startedBy is a new execution that the instance runs.
func (w *world) startedBy(instance string) engine.Task {
	w.t.Helper()
	w.submit(core.Submission{})
	r := ask()
	r.InstanceID = instance
	return w.claimAs(r)
}

func TestU70_a_delay_may_be_a_span_of_the_store_s_time(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		must(w.e.DelayFor(w.ctx(), client, given(task), fence(task), 700))(t)
		same(t, "until", w.is(given(task), core.Delayed, core.WaitingForDelay).DelayUntil, w.now()+700)
		now := w.started(core.Submission{})
		must(w.e.DelayFor(w.ctx(), client, given(now), fence(now), 0))(t)
		w.is(given(now), core.Ready, core.WaitingForWorker)
		for _, span := range []base.Millis{-1, base.MaxAhead + 1} {
			_, err := w.e.DelayFor(w.ctx(), client, given(task), fence(task), span)
			same(t, "field", refused(t, err, base.CodeInvalidArgument).Field, "delay_ms")
		}
	})
}
