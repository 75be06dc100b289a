package core

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

func TestL33_a_fence_is_whole_or_refused(t *testing.T) {
	t.Parallel()
	whole := Fence{LeaseID: base.UUID{1}, Epoch: 1, AttemptID: base.UUID{2}}
	wantCode(t, whole.Validate(), "")
	wantCode(t, Fence{}.Validate(), base.CodeFenceRequired)
	for part, f := range map[string]Fence{
		"lease_id":    {Epoch: 1, AttemptID: base.UUID{2}},
		"lease_epoch": {LeaseID: base.UUID{1}, AttemptID: base.UUID{2}},
		"attempt_id":  {LeaseID: base.UUID{1}, Epoch: 1},
	} {
		if err := wantCode(t, f.Validate(), base.CodePartialFence); err.Field != "lease."+part {
			t.Errorf("field %q, want %q", err.Field, part)
		}
	}
}

// workerCommands are the operations that carry a fence.
var workerCommands = []string{"renew", "progress", "complete", "fail", "delay", "release"}

// LC14.
func TestL34_each_part_of_the_fence_counts_and_a_correct_call_afterwards_still_works(t *testing.T) {
	t.Parallel()
	for _, operation := range workerCommands {
		t.Run(operation, func(t *testing.T) {
			t.Parallel()
			s := begin(t, tablePolicy)
			f := s.claim()
			for part, wrong := range map[string]Fence{
				"lease_id":    {base.UUID{9}, f.Epoch, f.AttemptID},
				"lease_epoch": {f.LeaseID, f.Epoch + 1, f.AttemptID},
				"attempt_id":  {f.LeaseID, f.Epoch, base.UUID{9}},
			} {
				err := wantCode(t, s.run(operation, wrong), base.CodeStaleLease)
				if diff := cmp.Diff(map[string]any{"part": part, "current_epoch": int64(1)}, err.Details); diff != "" {
					t.Error(diff)
				}
			}
			wantCode(t, s.run(operation, Fence{}), base.CodeFenceRequired)
			wantCode(t, s.run(operation, Fence{Epoch: 1}), base.CodePartialFence)
			wantCode(t, s.run(operation, f), "")
		})
	}
}

func TestL34_the_epoch_of_an_earlier_lease_does_not_pass_beside_the_lease_of_today(t *testing.T) {
	t.Parallel()
	for _, operation := range workerCommands {
		s := begin(t, tablePolicy)
		earlier := s.claim()
		s.pass(30 * base.Second)
		f := s.claim()
		err := wantCode(t, s.run(operation, Fence{f.LeaseID, earlier.Epoch, f.AttemptID}), base.CodeStaleLease)
		if err.Details["part"] != "lease_epoch" {
			t.Errorf("%s: %v", operation, err.Details)
		}
		wantCode(t, s.run(operation, f), "")
	}
}

func TestL34_an_old_fence_is_refused_after_retry_reclaim_replay_and_cancel(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		lose func(s *story, f Fence)
		code base.Code
	}{
		{"retry waiting", func(s *story, f Fence) { must[FailAnswer](s.t)(s.fail(f, "")) }, base.CodeExecutionNotActive},
		{"retry claimed", func(s *story, f Fence) { must[FailAnswer](s.t)(s.fail(f, "")); s.pass(1000); s.claim() }, base.CodeStaleLease},
		{"reclaimed", func(s *story, _ Fence) { s.pass(30 * base.Second); s.claim() }, base.CodeStaleLease},
		{"revoked", func(s *story, _ Fence) { must[RevokeAnswer](s.t)(s.revoke(false)) }, base.CodeLeaseRevoked},
		{"revoked and taken over", func(s *story, _ Fence) { must[RevokeAnswer](s.t)(s.revoke(false)); s.claim() }, base.CodeStaleLease},
		{"cancelled", func(s *story, _ Fence) { must[bool](s.t)(s.cancel(nil)) }, base.CodeExecutionNotActive},
		{"replayed", func(s *story, _ Fence) {
			must[bool](s.t)(s.cancel(nil))
			must[int](s.t)(0, s.replay(ReplayCommand{}))
		}, base.CodeStaleLease},
		{"suspended", func(s *story, _ Fence) { s.suspend() }, base.CodeExecutionNotActive},
		{"waits for children", func(s *story, _ Fence) { s.waitForChildren() }, base.CodeExecutionNotActive},
		{"timed out", func(s *story, f Fence) {
			must[int](s.t)(0, s.renew(f, 24*base.Hour))
			s.pass(base.Hour)
		}, base.CodeExecutionNotActive},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, operation := range []string{"renew", "complete", "delay", "release"} {
				s := begin(t, tablePolicy)
				f := s.claim()
				c.lose(s, f)
				wantCode(t, s.run(operation, f), c.code)
			}
		})
	}
}

// LC12.
func TestL36_late_commands_act_until_somebody_takes_over(t *testing.T) {
	t.Parallel()
	for _, status := range []Status{Ready, Delayed, Blocked, Granted} {
		t.Run(status.String(), func(t *testing.T) {
			t.Parallel()
			s := begin(t, `{"lease_grace_ms":100}`)
			f := s.claim()
			s.pass(30_100)
			s.queueAs(status)
			s.x.Holds = nil
			if !s.x.NeedsRecord(f) {
				t.Fatal("the lapse is not asked for")
			}
			s.now += 50
			answer := must[CompleteAnswer](t)(s.complete(f, &Payload{Data: []byte("r"), Size: 1}))
			if !answer.Late || s.x.Grant != nil || s.x.Attempt.State != EndedSuccess || s.x.Attempt.Interruption != InterruptedNone {
				t.Errorf("%+v, attempt %+v", answer, s.x.Attempt)
			}
			record := s.history[1]
			if record.End != EndComplete || !record.Late || record.EndedAt != s.now || record.Attempt.RunningMS != 30_100 || record.AcquiredAt != storyStart {
				t.Errorf("%+v", record)
			}
			if !reflect.DeepEqual(*s.x.LastLease, LastLease{ID: f.LeaseID, Epoch: 1, AttemptID: f.AttemptID, EndedAt: s.now, End: EndComplete}) {
				t.Errorf("%+v", s.x.LastLease)
			}
			data := s.last("execution.completed")
			if data["late"] != true || data["lease"].(map[string]any)["held_ms"] != 30_100.0 {
				t.Errorf("%v", data)
			}
		})
	}
}

func TestL36_a_late_command_keeps_the_count_of_the_lapse_and_its_own_next(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	f := s.claim()
	s.pass(30 * base.Second)
	answer := must[LeaveAnswer](t)(s.release(f))
	s.want(Ready, WaitingForWorker, NextResume)
	if !answer.Late || s.x.ReclaimCount != 1 || s.x.Attempt.State != AttemptInterrupted {
		t.Errorf("%+v %+v", answer, s.x)
	}
	again := must[LeaveAnswer](t)(s.release(f))
	if !again.Repeated || !again.Late {
		t.Errorf("%+v", again)
	}
	wantCode(t, s.renew(f, 0), base.CodeExecutionNotActive)
	s.claim()
	if s.x.Attempt.Index != 0 || s.x.LeaseEpoch != 2 {
		t.Errorf("LI8: %+v", s.x.Attempt)
	}
}

func TestL36_a_late_command_in_the_transaction_of_the_lapse_finds_it(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	f := s.claim()
	s.now += 30_000
	fx := s.effects()
	s.x.Settle(fx)
	if _, err := s.x.Complete(fx, Completion{Fence: f}); err != nil {
		t.Fatal(err)
	}
	if last := fx.History[len(fx.History)-1]; !last.Replaces || len(fx.History) != 2 {
		t.Errorf("%+v", fx.History)
	}
}

func TestL36_a_lapse_missing_in_the_history_is_corruption_not_a_panic(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	f := s.claim()
	s.pass(30 * base.Second)
	delete(s.history, 1)
	fx := s.effects()
	_, err := s.x.Complete(fx, Completion{Fence: f})
	wantCode(t, err, base.CodeCorruption)
	_, err = s.x.Complete(fx, Completion{Fence: f, Recorded: &LeaseRecord{Epoch: 1, LeaseID: f.LeaseID, Attempt: Attempt{ID: f.AttemptID}, End: EndComplete, Answer: []byte("{")}})
	wantCode(t, err, base.CodeCorruption)
}

func TestL36_commands_that_keep_the_lease_pass_late(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	f := s.claim()
	for _, want := range []bool{false, true} {
		late, err := s.x.CheckKeep(s.effects(), f)
		if err != nil || late != want {
			t.Errorf("late %v, %v", late, err)
		}
		s.pass(30 * base.Second)
	}
	s.claim()
	_, err := s.x.CheckKeep(s.effects(), f)
	wantCode(t, err, base.CodeStaleLease)
}

func TestL37_an_operators_override_needs_no_fence_but_a_running_execution(t *testing.T) {
	t.Parallel()
	inEveryStatus(t, tablePolicy, func(t *testing.T, s *story, status Status) {
		want := base.CodeExecutionNotActive
		if status == Running {
			want = ""
		}
		failed := s.x.Clone()
		err := s.do(func(fx *Effects) error { _, err := s.x.Complete(fx, Completion{Override: true}); return err })
		wantCode(t, err, want)
		_, err = failed.Fail(s.effects(), FailCommand{Override: true})
		wantCode(t, err, want)
	})
}

// LC15.
func TestL117_a_repeat_of_a_lease_ending_command_gets_the_recorded_answer_and_changes_nothing(t *testing.T) {
	t.Parallel()
	repeats := func(t *testing.T, s *story, again func()) {
		before, told := s.x.Clone(), len(s.events)
		again()
		if diff := cmp.Diff(before, s.x); diff != "" || len(s.events) != told {
			t.Errorf("%s, told %v", diff, s.kinds(told))
		}
	}
	t.Run("complete", func(t *testing.T) {
		t.Parallel()
		s := begin(t, tablePolicy)
		f := s.claim()
		first := must[CompleteAnswer](t)(s.complete(f, &Payload{Data: []byte("a"), Size: 1}))
		first.Repeated = true
		repeats(t, s, func() {
			if again := must[CompleteAnswer](t)(s.complete(f, &Payload{Data: []byte("b"), Size: 1})); again != first {
				t.Errorf("L119: %+v, want %+v", again, first)
			}
		})
		if string(s.x.Result.Data) != "a" {
			t.Error("L119: the stored result changed")
		}
		_, err := s.fail(f, "")
		wantCode(t, err, base.CodeExecutionNotActive)
	})
	t.Run("fail, after the retry was claimed", func(t *testing.T) {
		t.Parallel()
		s := begin(t, tablePolicy)
		f := s.claim()
		first := must[FailAnswer](t)(s.fail(f, ""))
		first.Repeated = true
		s.pass(1000)
		s.claim()
		repeats(t, s, func() {
			if again := must[FailAnswer](t)(s.fail(f, "")); again != first || again.RetryAt != storyStart+1000 {
				t.Errorf("%+v, want %+v", again, first)
			}
		})
	})
	t.Run("fail for good", func(t *testing.T) {
		t.Parallel()
		s := begin(t, tablePolicy)
		f := s.claim()
		first := must[FailAnswer](t)(s.fail(f, classPermanent))
		first.Repeated = true
		must[int](t)(0, s.replay(ReplayCommand{}))
		repeats(t, s, func() {
			if again := must[FailAnswer](t)(s.fail(f, classPermanent)); again != first {
				t.Errorf("%+v, want %+v", again, first)
			}
		})
	})
	t.Run("delay", func(t *testing.T) {
		t.Parallel()
		s := begin(t, tablePolicy)
		f := s.claim()
		first := must[LeaveAnswer](t)(s.delay(f, s.now+5))
		first.Repeated = true
		s.pass(5)
		repeats(t, s, func() {
			if again := must[LeaveAnswer](t)(s.delay(f, s.now+500)); again != first || again.DelayUntil != storyStart+5 {
				t.Errorf("%+v, want %+v", again, first)
			}
		})
	})
	t.Run("cancel by the holder", func(t *testing.T) {
		t.Parallel()
		s := begin(t, tablePolicy)
		f := s.claim()
		must[bool](t)(s.cancel(&f))
		repeats(t, s, func() {
			if already := must[bool](t)(s.cancel(&f)); !already {
				t.Error("cancelled twice")
			}
		})
		must[int](t)(0, s.replay(ReplayCommand{}))
		repeats(t, s, func() { must[bool](t)(s.cancel(&f)) })
	})
}
