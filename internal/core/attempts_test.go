package core

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// waits are the ways in which an attempt waits for its resumption.
var waits = map[Interruption]func(s *story){
	InterruptedReleased:        func(s *story) { must[LeaveAnswer](s.t)(s.release(s.fence())) },
	InterruptedDelayed:         func(s *story) { must[LeaveAnswer](s.t)(s.delay(s.fence(), s.now)) },
	InterruptedSuspended:       func(s *story) { s.suspend(); s.now = s.now.Add(5); s.resume() },
	InterruptedWaitingChildren: func(s *story) { s.waitForChildren(); s.now = s.now.Add(5); s.satisfy() },
}

func TestL26_L29_an_attempt_that_waits_is_interrupted_and_goes_on_as_itself_under_a_new_lease(t *testing.T) {
	t.Parallel()
	for kind, wait := range waits {
		s := begin(t, `{}`)
		first := s.claim()
		s.now = s.now.Add(7)
		wait(s)
		if a := s.x.Attempt; a.State != AttemptInterrupted || a.Interruption != kind || a.InterruptAt != storyStart.Add(7) || a.EndedAt != 0 {
			t.Errorf("%s: %+v", kind, a)
		}
		again := s.claim()
		if again.AttemptID != first.AttemptID || s.x.Attempt.Index != 0 || s.x.TotalAttempts != 1 || s.x.Attempt.State != AttemptStarted {
			t.Errorf("%s: another attempt: %+v", kind, s.x.Attempt)
		}
		if again.LeaseID == first.LeaseID || again.Epoch != 2 {
			t.Errorf("%s: the lease is the old one: %+v", kind, again)
		}
	}
}

func TestL25_an_attempt_knows_its_times_leases_and_workers(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	f := s.claim()
	s.now = s.now.Add(100)
	must[LeaveAnswer](t)(s.release(f))
	s.now = s.now.Add(50)
	f = s.claim()
	s.now = s.now.Add(10)
	must[FailAnswer](t)(s.fail(f, classPermanent))
	want := []Attempt{{
		ID: f.AttemptID, Index: 0, Type: AttemptInitial, State: EndedFailure, StartedAt: storyStart, EndedAt: storyStart.Add(160), RunningMS: 110,
		FirstEpoch: 1, LastEpoch: 2, WorkerID: "w", InstanceID: "w-1", Failure: s.x.Failure,
		Interruption: InterruptedReleased, InterruptAt: storyStart.Add(100),
	}}
	if diff := cmp.Diff(want, AttemptsOf(s.x, s.entries())); diff != "" {
		t.Error(diff)
	}
}

func TestL27_L28_each_new_attempt_has_the_next_index_and_says_what_it_follows(t *testing.T) {
	t.Parallel()
	s := begin(t, `{"retry_policy":{"backoff":{"strategy":"fixed","delay_ms":0}}}`)
	must[FailAnswer](t)(s.failWith(FailCommand{Fence: s.claim(), Class: classTimeout, Category: "net"}))
	s.claim() // 1: the retry
	s.pass(30 * base.Second)
	s.claim() // 2: takes over from a lapsed lease
	must[RevokeAnswer](t)(s.revoke(false))
	s.claim() // 3: from a revoked one
	_ = s.do(func(fx *Effects) error { s.x.LapseNow(fx); return nil })
	must[CompleteAnswer](t)(s.complete(s.claim(), nil)) // 4: from a dead worker
	kept := AttemptsOf(s.x, s.entries())
	must[int](t)(0, s.replay(ReplayCommand{By: "ann", Reason: "again"}))
	s.claim() // 5
	attempts := AttemptsOf(s.x, s.entries())
	var lineages []*Lineage
	for i, a := range attempts {
		if a.Index != i {
			t.Errorf("attempt %d has index %d", i, a.Index)
		}
		lineages = append(lineages, a.Lineage)
	}
	want := []*Lineage{
		nil,
		{PreviousIndex: 0, Class: "timeout", Category: "net"},
		{PreviousIndex: 1, Cause: "lease_expired"},
		{PreviousIndex: 2, Cause: "lease_revoked"},
		{PreviousIndex: 3, Cause: "worker_dead"},
		{PreviousIndex: 4, Reason: "again", By: "ann", ReplayNumber: 1},
	}
	if diff := cmp.Diff(want, lineages); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(kept, attempts[:5]); diff != "" {
		t.Errorf("the replay rewrote attempts: %s", diff)
	}
}

func TestL26_L30_every_final_state_has_its_cause(t *testing.T) {
	t.Parallel()
	want := map[string]AttemptState{
		"complete": EndedSuccess, "fail": EndedFailure, "fail for good": EndedFailure, "attempt timeout": EndedFailure, "deadline": EndedFailure,
		"cancel": EndedCancelled, "own cancel": EndedCancelled,
	}
	for name, c := range departures {
		s := begin(t, `{"retry_policy":{}}`)
		s.claim()
		c.leave(s)
		final, known := want[name]
		if !known {
			final = AttemptInterrupted
		}
		if s.x.Attempt.State != final {
			t.Errorf("%s: %s, want %s", name, s.x.Attempt.State, final)
		}
	}
	s := begin(t, `{}`)
	s.claim()
	s.pass(30 * base.Second)
	s.claim()
	if a := AttemptsOf(s.x, s.entries())[0]; a.State != InterruptedReclaimed {
		t.Errorf("taken over: %s", a.State)
	}
}

func TestL31_an_acquisition_raises_the_epoch_by_one_and_nothing_else_changes_it(t *testing.T) {
	t.Parallel()
	afterEach(t, func(t *testing.T, operation string, before *Execution, s *story) {
		want := before.LeaseEpoch
		if s.x.Lease != nil && before.Lease == nil {
			want++
		}
		if s.x.LeaseEpoch != want {
			t.Errorf("%s: epoch %d after %d", operation, s.x.LeaseEpoch, before.LeaseEpoch)
		}
		if s.x.Lease != nil && before.Lease == nil && before.LastLease != nil && s.x.Lease.ID == before.LastLease.ID {
			t.Error("the lease id is not new")
		}
	})
}

func TestL90_a_failure_is_on_attempt_and_execution_and_the_answer_tells_what_follows(t *testing.T) {
	t.Parallel()
	s := begin(t, `{"retry_policy":{"max_retries":1,"backoff":{"strategy":"fixed","delay_ms":500}}}`)
	command := FailCommand{Fence: s.claim(), Class: classInfraCrash, Category: "disk", Message: "full", Detail: []byte{0, 255}, DetailType: "a/b"}
	s.now = s.now.Add(7)
	answer := must[FailAnswer](t)(s.failWith(command))
	if answer.Outcome != OutcomeRetryScheduled || answer.RetryAt != s.now.Add(500) {
		t.Errorf("%+v", answer)
	}
	want := &Failure{Class: "infra_crash", Category: "disk", Message: "full", Detail: []byte{0, 255}, DetailType: "a/b", At: s.now}
	if diff := cmp.Diff([]*Failure{want, want}, []*Failure{s.x.Failure, s.x.Attempt.Failure}); diff != "" {
		t.Error(diff)
	}
	if s.x.Attempt.State != EndedFailure {
		t.Errorf("attempt %s", s.x.Attempt.State)
	}
	s.pass(500)
	answer = must[FailAnswer](t)(s.fail(s.claim(), ""))
	if answer.Outcome != OutcomeFailed || answer.Reason != RetriesExhausted || s.x.Failure.Category != "transient" {
		t.Errorf("%+v %+v", answer, s.x.Failure)
	}
}
