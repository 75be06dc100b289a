package core

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// LC1.
func TestL89_claim_renew_complete(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	s.now++
	f := s.claim()
	s.want(Running, ReasonNone, NextNone)
	if f.Epoch != 1 || s.x.StartedAt != s.now || s.x.RunStartedAt != s.now || s.x.Attempt.Type != AttemptInitial || s.x.Attempt.Index != 0 {
		t.Errorf("%+v", s.x)
	}
	acquired := s.last("lease.acquired")
	want := map[string]any{
		"lease_epoch": 1.0, "lease_id": f.LeaseID.String(), "worker_id": "w", "expires_at": s.now.Add(30_000).String(),
		"attempt_id": f.AttemptID.String(), "attempt_index": 0.0, "attempt_type": "initial", "how": "fresh",
	}
	if diff := cmp.Diff(want, acquired); diff != "" {
		t.Error(diff)
	}
	s.now += 1000
	must[int](t)(0, s.renew(f, 0))
	result := &Payload{ContentType: "text/plain", Data: []byte("done"), Size: 4}
	s.now += 500
	if answer := must[CompleteAnswer](t)(s.complete(f, result)); answer != (CompleteAnswer{Status: Succeeded}) {
		t.Errorf("%+v", answer)
	}
	s.want(Succeeded, Completed, NextNone)
	if s.x.Lease != nil || s.x.Result != result || s.x.ResultEpoch != 1 || s.x.CompletedAt != s.now || s.x.WakeAt != 0 {
		t.Errorf("%+v", s.x)
	}
	record := s.history[1]
	if record.End != EndComplete || record.Result != result || record.Attempt.State != EndedSuccess || record.Attempt.RunningMS != 1500 || record.Replaces {
		t.Errorf("%+v", record)
	}
	want = map[string]any{
		"outcome": "success", "status": "succeeded", "reason": "completed",
		"result":      map[string]any{"size": 4.0, "content_type": "text/plain"},
		"totals":      map[string]any{"attempts": 1.0, "retries": 0.0, "reclaims": 0.0},
		"lease_epoch": 1.0,
		"lease":       map[string]any{"lease_id": f.LeaseID.String(), "worker_id": "w", "worker_instance_id": "w-1", "held_ms": 1500.0},
	}
	if diff := cmp.Diff(want, s.last("execution.completed")); diff != "" {
		t.Error(diff)
	}
	if event := s.events[len(s.events)-1]; event.InstanceID != "w-1" || event.AttemptIndex != 0 {
		t.Errorf("%+v", event)
	}
}

func TestL89_success_after_a_retry_leaves_no_failure_on_the_execution(t *testing.T) {
	t.Parallel()
	s := begin(t, `{"retry_policy":{"backoff":{"strategy":"fixed","delay_ms":0}}}`)
	must[FailAnswer](t)(s.fail(s.claim(), ""))
	must[CompleteAnswer](t)(s.complete(s.claim(), nil))
	if s.x.Failure != nil || s.history[1].Attempt.Failure == nil || s.x.Result != nil {
		t.Errorf("%+v", s.x)
	}
}

func TestL95_a_delay_keeps_the_attempt_and_queues_behind_its_due_time(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	f := s.claim()
	until := s.now + 5000
	answer := must[LeaveAnswer](t)(s.delay(f, until))
	if answer != (LeaveAnswer{Status: Delayed, Reason: WaitingForDelay, DelayUntil: until}) || s.x.QueuedAt != until {
		t.Errorf("%+v", answer)
	}
	if data := s.last("lease.released"); data["by"] != "delay" || data["delay_until"] != until.String() {
		t.Errorf("%v", data)
	}
	s.pass(4999)
	s.want(Delayed, WaitingForDelay, NextResume)
	s.pass(1)
	s.want(Ready, WaitingForWorker, NextResume)
	if s.last("execution.ready")["cause"] != "delay" {
		t.Error("cause")
	}
	again := s.claim()
	if again.AttemptID != f.AttemptID || s.x.Attempt.Index != 0 || again.Epoch != 2 || again.LeaseID == f.LeaseID {
		t.Errorf("L29: %+v", again)
	}
	if a := s.x.Attempt; a.State != AttemptStarted || a.Interruption != InterruptedDelayed || a.FirstEpoch != 1 || a.LastEpoch != 2 {
		t.Errorf("%+v", a)
	}
	answer = must[LeaveAnswer](t)(s.delay(again, s.now-1))
	s.want(Ready, WaitingForWorker, NextResume)
	if answer.DelayUntil != 0 || s.x.QueuedAt != s.now {
		t.Errorf("%+v", answer)
	}
	third := s.claim()
	_, err := s.delay(third, s.now.Add(base.MaxAhead+1))
	wantCode(t, err, base.CodeInvalidArgument)
	_, err = s.delay(third, 0)
	wantCode(t, err, base.CodeInvalidArgument)
}

// LC13.
func TestL98_a_release_burns_nothing_and_the_next_worker_is_told(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	f := s.claim()
	s.pass(1000)
	s.x.Holds = []string{"slots:api"}
	before := s.x.Clone()
	must[LeaveAnswer](t)(s.release(f))
	s.want(Ready, WaitingForWorker, NextResume)
	if s.x.QueuedAt != before.QueuedAt || s.x.RetryCount+s.x.ReclaimCount+s.x.ReplayCount != 0 || s.x.Holds != nil || s.x.TotalAttempts != 1 {
		t.Errorf("%+v", s.x)
	}
	if data := s.last("lease.released"); data["by"] != "release" || data["reason"] != "shutdown" {
		t.Errorf("%v", data)
	}
	var got Acquired
	_ = s.do(func(fx *Effects) error {
		got = s.x.Acquire(fx, Acquisition{LeaseID: s.mint(), AttemptID: s.mint(), WorkerID: "w", InstanceID: "w-2", TTL: base.Minute})
		return nil
	})
	if got != (Acquired{How: "resumed", ResumedFrom: InterruptedReleased}) || s.x.Attempt.ID != f.AttemptID || s.x.Attempt.InstanceID != "w-2" {
		t.Errorf("%+v", got)
	}
}

func TestL99_progress_replaces_what_is_given_and_keeps_the_rest(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	f := s.claim()
	told := len(s.events)
	report := func(percent *int, message *string) error {
		return s.do(func(fx *Effects) error { return s.x.ReportProgress(fx, f, percent, message) })
	}
	forty, over, text := 40, 101, "half way"
	must[int](t)(0, report(&forty, nil))
	s.now++
	must[int](t)(0, report(nil, &text))
	if p := s.x.Progress; *p.Percent != 40 || *p.Message != text || p.UpdatedAt != s.now || s.x.LastMutationAt != s.now {
		t.Errorf("%+v", p)
	}
	wantCode(t, report(&over, nil), base.CodeInvalidArgument)
	if len(s.events) != told {
		t.Errorf("L146: told %v", s.kinds(told))
	}
}

func TestL100_the_holder_cancels_with_its_fence(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	f := s.claim()
	stale := Fence{base.UUID{9}, 1, f.AttemptID}
	_, err := s.cancel(&stale)
	wantCode(t, err, base.CodeStaleLease)
	_, err = s.cancel(&Fence{Epoch: 1})
	wantCode(t, err, base.CodePartialFence)
	told := len(s.events)
	must[bool](t)(s.cancel(&f))
	s.want(Cancelled, CancelledByRequest, NextNone)
	if s.x.Cancellation.Source != "worker" || s.history[1].End != EndCancel || s.history[1].Answer == nil {
		t.Errorf("%+v %+v", s.x.Cancellation, s.history[1])
	}
	if diff := cmp.Diff([]string{"execution.completed"}, s.kinds(told)); diff != "" {
		t.Error(diff)
	}
}
