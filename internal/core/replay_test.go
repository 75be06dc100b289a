package core

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// LC17: the reset list field by field, from each terminal status.
func TestL110_replay_resets_the_run_and_keeps_the_rest(t *testing.T) {
	t.Parallel()
	for _, status := range []Status{Succeeded, Failed, Cancelled, Expired, Skipped} {
		t.Run(status.String(), func(t *testing.T) {
			t.Parallel()
			s := broughtTo(t, tablePolicy, status)
			s.now += 500
			before, n := s.x.Clone(), len(s.events)
			before.RetryCount, s.x.RetryCount = 1, 1
			before.ReclaimCount, s.x.ReclaimCount = 2, 2
			s.x.Progress = &Progress{UpdatedAt: 1}
			must[int](t)(0, s.replay(ReplayCommand{By: "ann", Reason: "again"}))

			want := before.Clone()
			want.Status, want.Reason, want.StatusSince, want.LastMutationAt = Ready, WaitingForWorker, s.now, s.now
			want.Result, want.ResultEpoch, want.Failure, want.Cancellation, want.Progress = nil, 0, nil, nil, nil
			want.RetryCount, want.ReclaimCount, want.LastLease = 0, 0, nil
			want.CompletedAt, want.RunStartedAt = 0, 0
			want.ReplayCount, want.QueuedAt, want.Next = 1, s.now, NextInitial
			if before.Attempt != nil {
				want.Next = NextReplay
				want.ReplayLineage = &Lineage{PreviousIndex: 0, Reason: "again", By: "ann", ReplayNumber: 1}
			}
			if diff := cmp.Diff(want, s.x); diff != "" {
				t.Fatal(diff)
			}
			data := s.last("execution.replayed")
			if len(s.events) != n+1 || data["from_status"] != status.String() || data["replay_count"] != 1.0 || data["cascade"] != "none" {
				t.Errorf("%v", data)
			}
			started, epoch := before.StartedAt, before.LeaseEpoch
			f := s.claim()
			if f.Epoch != epoch+1 || s.x.RunStartedAt != s.now || started != 0 && s.x.StartedAt != started {
				t.Errorf("%+v", s.x)
			}
			if before.Attempt != nil && (s.x.Attempt.Type != AttemptReplay || s.x.Attempt.Index != 1 || s.x.Attempt.Lineage.By != "ann") {
				t.Errorf("%+v", s.x.Attempt)
			}
		})
	}
}

func TestL110_each_case_of_the_deadline(t *testing.T) {
	t.Parallel()
	const relative = `{"timeout_policy":{"execution_deadline_ms":60000}}`
	const now = storyStart + 1000
	for _, c := range []struct {
		name   string
		policy string
		old    base.Time
		given  base.Time
		want   base.Time
	}{
		{"the call's", relative, 0, now + 7, now + 7},
		{"the policy's, counted anew", relative, 0, 0, now + 60_000},
		{"the old one, still ahead", `{}`, now + 5, 0, now + 5},
		{"the old one has passed", `{}`, now, 0, 0},
		{"none", `{}`, 0, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := begin(t, c.policy, func(sub *Submission) { sub.DeadlineAt = c.old })
			must[bool](t)(s.cancel(nil))
			s.now = now
			must[int](t)(0, s.replay(ReplayCommand{DeadlineAt: c.given}))
			if s.x.DeadlineAt != c.want || s.x.WakeAt != c.want {
				t.Errorf("%s, wake_at %s, want %s", s.x.DeadlineAt, s.x.WakeAt, c.want)
			}
		})
	}
	s := broughtTo(t, `{}`, Cancelled)
	wantCode(t, s.replay(ReplayCommand{DeadlineAt: s.now}), base.CodeInvalidArgument)
	wantCode(t, s.replay(ReplayCommand{DeadlineAt: s.now.Add(base.MaxAhead + 1)}), base.CodeInvalidArgument)
}

func TestL109_the_cap_comes_before_the_lane_and_exactly_the_cap_of_replays_succeeds(t *testing.T) {
	t.Parallel()
	s := begin(t, `{"max_replay_count":2}`)
	wantCode(t, s.replay(ReplayCommand{}), base.CodeExecutionNotTerminal)
	must[bool](t)(s.cancel(nil))
	for _, state := range []LaneState{LaneDraining, LaneDisabled} {
		s.lane.Settings.State = state
		wantCode(t, s.replay(ReplayCommand{}), base.CodeLaneNotAccepting)
	}
	s.lane.Settings.State = LanePaused
	for range 2 {
		must[int](t)(0, s.replay(ReplayCommand{}))
		must[bool](t)(s.cancel(nil))
	}
	s.lane.Settings.State = LaneDisabled
	wantCode(t, s.replay(ReplayCommand{}), base.CodeMaxReplaysExhausted)
}
