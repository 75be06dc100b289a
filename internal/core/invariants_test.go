package core

import (
	"encoding/json"
	"slices"
)

// hear takes in one event as a reader of the log would, and counts what must pair up (L146).
func (s *story) hear(event Event) {
	s.t.Helper()
	var data struct {
		Epoch  int64           `json:"lease_epoch"`
		Lease  json.RawMessage `json:"lease"`
		Late   bool            `json:"late"`
		Status string          `json:"status"`
	}
	if err := json.Unmarshal(event.Data.JSON(), &data); err != nil {
		s.t.Fatalf("%s: data %s: %v", event.Kind, event.Data.JSON(), err)
	}
	if event.Kind == "lease.acquired" {
		s.acquired[data.Epoch]++
	}
	if data.Lease != nil && !data.Late {
		s.closed[data.Epoch]++
	}
	switch event.Kind {
	case "execution.submitted", "execution.completed":
		s.told, _ = ParseStatus(data.Status)
	case "execution.ready":
		s.told = Ready
	case "execution.delayed":
		s.told = Delayed
	case "execution.blocked", "execution.waiting_children":
		s.told = Blocked
	case "grant.issued":
		s.told = Granted
	case "lease.acquired":
		s.told = Running
	case "execution.suspended":
		s.told = Suspended
	case "lease.released", "lease.expired", "lease.revoked", "attempt.ended", "grant.ended", "execution.resumed", "execution.replayed":
		s.told = StatusNone
	}
	if event.Kind == "execution.completed" {
		s.ended++
	}
}

// check holds the record to the invariants that one execution can be held to.
func (s *story) check() {
	s.t.Helper()
	x := s.x
	s.checkState(x)
	s.checkLeases(x)
	s.checkTimes(x)
	s.checkAttempts(x)
	s.checkTimers(x)
	s.checkWaits(x)
	if terminal := x.Status.Terminal(); s.ended != x.ReplayCount && !terminal || s.ended != x.ReplayCount+1 && terminal {
		s.t.Fatalf("LI6: %d completions after %d replays in %s", s.ended, x.ReplayCount, x.Status)
	}
	if retry, from := x.Retry(); retry != nil && from != "worker" && x.RetryCount > retry.MostRetries() ||
		x.ReclaimCount > x.Policy.MaxReclaims || x.ReplayCount > x.Policy.MaxReplays {
		s.t.Fatalf("LI9: a counter is above its cap: %+v", x)
	}
	told := s.told == x.Status || s.told == StatusNone && x.Status.Queues() || s.told == Blocked && x.Status == Ready
	if !told {
		s.t.Fatalf("L147: the log tells %s, the record says %s", s.told, x.Status)
	}
	s.seen = x.Clone()
}

func (s *story) checkState(x *Execution) {
	s.t.Helper()
	resting := x.Status == Running || x.Status.Terminal()
	admission := x.blockedByAdmission()
	for _, rule := range []struct {
		name  string
		holds bool
	}{
		{"reason", slices.Contains(ReasonsOf(x.Status), x.Reason)},
		{"next none iff running or terminal", (x.Next == NextNone) == resting},
		{"suspended resumes", x.Status != Suspended || x.Next == NextResume},
		{"grant iff granted", (x.Grant != nil) == (x.Status == Granted)},
		{"blocked_on iff blocked by admission", (x.BlockedOn != "") == admission},
		{"terminal is not held", !x.Status.Terminal() || x.Held == nil},
		{"ready is not held", x.Status != Ready || x.Held == nil},
		{"ready waits for nothing", x.Status != Ready || x.Dependency == ReasonNone && x.DelayUntil == 0},
		{"delayed has its reason", x.Status != Delayed || x.Reason == x.DelayReason && x.DelayUntil != 0},
		{"paused is held", x.Reason != PausedByOperator || x.Held != nil || x.Status == Suspended},
		{"lineage in store only for what will use it", x.ReplayLineage == nil || x.Next == NextReplay || x.Next == NextReclaim},
		{"no rest of an attempt in the end", !x.Status.Terminal() || x.AttemptRemaining == 0 && x.AttemptDeadline == 0},
		{"no slots in the end", !x.Status.Terminal() || x.Holds == nil},
		{"cancellation iff cancelled", (x.Cancellation != nil) == (x.Status == Cancelled)},
		{"result only of success", x.Result == nil || x.Status == Succeeded},
	} {
		if !rule.holds {
			s.t.Fatalf("LI4: %s: %+v", rule.name, x)
		}
	}
	keeps := x.Next == NextResume && x.Attempt.Interruption.keepsSlots() && x.Policy.SlotsWhileWaiting == SlotsHold
	if x.Holds != nil && x.Status != Running && x.Status != Granted && !keeps {
		s.t.Fatalf("LI17: %s %s holds %v", x.Status, x.Reason, x.Holds)
	}
	public, vector := Derive(x, LaneActive)
	if public == "" || vector.PublicState != public {
		s.t.Fatalf("LI4: no public state: %+v", vector)
	}
}

func (s *story) checkLeases(x *Execution) {
	s.t.Helper()
	if (x.Lease != nil) != (x.Status == Running) {
		s.t.Fatalf("LI1: %s with lease %+v", x.Status, x.Lease)
	}
	if x.Lease != nil && x.Lease.AttemptID != x.Attempt.ID {
		s.t.Fatalf("the lease is of another attempt")
	}
	if s.seen != nil && x.LeaseEpoch < s.seen.LeaseEpoch {
		s.t.Fatalf("LI2: the epoch fell from %d to %d", s.seen.LeaseEpoch, x.LeaseEpoch)
	}
	for epoch := int64(1); epoch <= x.LeaseEpoch; epoch++ {
		open := epoch == x.LeaseEpoch && x.Lease != nil
		_, there := s.history[epoch]
		if there == open || s.acquired[epoch] != 1 || open != (s.closed[epoch] == 0) || s.closed[epoch] > 1 {
			s.t.Fatalf("LI2, L146: epoch %d: in history %v, acquired %d times, closed %d times, open %v",
				epoch, there, s.acquired[epoch], s.closed[epoch], open)
		}
	}
	if int64(len(s.acquired)) != x.LeaseEpoch {
		s.t.Fatalf("LI2: %d acquisitions, epoch %d", len(s.acquired), x.LeaseEpoch)
	}
}

func (s *story) checkTimes(x *Execution) {
	s.t.Helper()
	if (x.CompletedAt != 0) != x.Status.Terminal() {
		s.t.Fatalf("LI5: %s with completed_at %s", x.Status, x.CompletedAt)
	}
	if x.StartedAt != 0 && x.StartedAt < x.CreatedAt || x.CompletedAt != 0 && x.CompletedAt < x.StartedAt || x.StatusSince > x.LastMutationAt {
		s.t.Fatalf("LI5: times run backwards: %+v", x)
	}
	if seen := s.seen; seen != nil {
		if x.Latest() < seen.Latest() || x.LastMutationAt < seen.LastMutationAt || seen.StartedAt != 0 && x.StartedAt != seen.StartedAt {
			s.t.Fatalf("LI5: times run backwards from %+v to %+v", seen, x)
		}
		if seen.Status.Terminal() && x.ReplayCount == seen.ReplayCount && (x.Status != seen.Status || x.Reason != seen.Reason) {
			s.t.Fatalf("LI6: %s %s became %s %s", seen.Status, seen.Reason, x.Status, x.Reason)
		}
		if (seen.Status != x.Status || seen.Reason != x.Reason) && x.StatusSince < seen.StatusSince {
			s.t.Fatalf("L9: status changed, but since %s", x.StatusSince)
		}
	}
}

func (s *story) checkAttempts(x *Execution) {
	s.t.Helper()
	attempts := AttemptsOf(x, s.entries())
	if len(attempts) != x.TotalAttempts {
		s.t.Fatalf("LI7: %d attempts, want %d", len(attempts), x.TotalAttempts)
	}
	for i, a := range attempts {
		last := i == len(attempts)-1
		if a.Index != i || !a.State.Final() && (!last || x.Status.Terminal()) {
			s.t.Fatalf("LI7: attempt %d of %s: %+v", i, x.Status, a)
		}
		if a.State.Final() != (a.EndedAt != 0) {
			s.t.Fatalf("LI7: attempt %d is %s and ended at %s", i, a.State, a.EndedAt)
		}
		lineage := a.Lineage
		switch {
		case i == 0:
			if a.Type != AttemptInitial || lineage != nil {
				s.t.Fatalf("LI7: attempt 0: %+v", a)
			}
			continue
		case lineage == nil || lineage.PreviousIndex != i-1:
			s.t.Fatalf("LI7: attempt %d follows %+v", i, lineage)
		}
		previous := attempts[i-1]
		fits := a.Type == AttemptRetry && previous.State == EndedFailure && lineage.Class == previous.Failure.Class ||
			a.Type == AttemptReclaim && previous.State == InterruptedReclaimed && lineage.Cause != "" ||
			a.Type == AttemptReplay && previous.State.Final() && lineage.ReplayNumber > 0
		if !fits {
			s.t.Fatalf("LI7: attempt %d, %s %+v, follows %s", i, a.Type, lineage, previous.State)
		}
	}
}

func (s *story) checkTimers(x *Execution) {
	s.t.Helper()
	armed := false
	for _, timer := range timers() {
		due := timer.due(x)
		armed = armed || due != 0
		if due != 0 && x.WakeAt > due {
			s.t.Fatalf("LI11: wake_at %s is after the %s at %s", x.WakeAt, timer.name, due)
		}
	}
	if armed != (x.WakeAt != 0) {
		s.t.Fatalf("LI11: wake_at %s, armed %v", x.WakeAt, armed)
	}
	if !x.Status.Terminal() && x.Status != Ready && x.WakeAt == 0 && x.Status != Blocked && x.Status != Suspended {
		s.t.Fatalf("LI10: a lost execution: %+v", x)
	}
}
