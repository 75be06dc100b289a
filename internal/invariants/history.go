package invariants

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
)

// lease is LI1 and LI2.
func lease(r Record) string {
	x := r.X
	if (x.Status == core.Running) != (x.Lease != nil) {
		return "LI1: running without a lease, or the reverse"
	}
	if x.Lease != nil && (x.Attempt == nil || x.Lease.AttemptID != x.Attempt.ID) {
		return "LI1: the lease is for another attempt"
	}
	ended := x.LeaseEpoch
	if x.Lease != nil {
		ended--
	}
	if int64(len(r.History)) != ended {
		return fmt.Sprintf("LI2: epoch %d, but %d leases have ended", x.LeaseEpoch, len(r.History))
	}
	seen := map[base.UUID]bool{}
	for i, entry := range r.History {
		switch {
		case entry.Epoch != int64(i+1):
			return fmt.Sprintf("LI2: entry %d of the lease history has epoch %d", i, entry.Epoch)
		case seen[entry.LeaseID]:
			return "LI2: a lease id was used twice"
		case entry.EndedAt < entry.AcquiredAt:
			return "I2: a lease ended before it began"
		case i > 0 && entry.AcquiredAt < r.History[i-1].EndedAt:
			return fmt.Sprintf("I2: leases %d and %d overlap", i, i+1)
		}
		seen[entry.LeaseID] = true
	}
	return ""
}

// attempts is LI7.
func attempts(r Record) string {
	x := r.X
	all := core.AttemptsOf(x, r.History)
	if len(all) != x.TotalAttempts {
		return fmt.Sprintf("LI7: %d attempts, total_attempts says %d", len(all), x.TotalAttempts)
	}
	for i, a := range all {
		last := i == len(all)-1
		switch {
		case a.Index != i:
			return fmt.Sprintf("LI7: attempt %d has index %d", i, a.Index)
		case !a.State.Final() && (!last || x.Status.Terminal()):
			return fmt.Sprintf("LI7: attempt %d is %s", i, a.State)
		case (a.Type == core.AttemptInitial) != (a.Lineage == nil):
			return fmt.Sprintf("L28: attempt %d is %s with lineage %v", i, a.Type, a.Lineage)
		case a.Lineage != nil && a.Lineage.PreviousIndex != i-1:
			return fmt.Sprintf("L28: attempt %d follows %d", i, a.Lineage.PreviousIndex)
		case a.Type == core.AttemptReclaim && all[i-1].State != core.InterruptedReclaimed:
			return fmt.Sprintf("LI7: attempt %d took over from one that is %s", i, all[i-1].State)
		case a.Type == core.AttemptRetry && all[i-1].State != core.EndedFailure:
			return fmt.Sprintf("LI7: attempt %d retries one that is %s", i, all[i-1].State)
		case x.Status == core.Running && last && a.State != core.AttemptStarted:
			return "LI7: running an attempt that is " + a.State.String()
		}
	}
	return ""
}

// exits are the events that close a lease (L146).
var exits = []string{"lease.released", "lease.expired", "lease.revoked", "attempt.ended", "execution.completed", "execution.suspended", "execution.waiting_children"}

// facts are the fields of events that count here.
type facts struct {
	Epoch     int64  `json:"lease_epoch"`
	Late      bool   `json:"late"`
	How       string `json:"how"`
	AttemptID string `json:"attempt_id"`
}

// History holds the events of an execution against its record (L145, L146, LI2, LI6, LI8, I10): "" when they tell the same. An id
// may be used again after a delete: only what follows the last submit counts.
func History(x *core.Execution, events []core.Event) string {
	var s story
	for _, ev := range events {
		if ev.Kind == "execution.submitted" {
			s = story{}
		}
		if text := s.add(ev); text != "" {
			return text
		}
	}
	over := 0
	if x.Status.Terminal() {
		over = 1
	}
	switch {
	case (s.open != 0) != (x.Lease != nil):
		return fmt.Sprintf("L146: epoch %d is open in the events, the record is %s", s.open, x.Status)
	case s.epoch != x.LeaseEpoch:
		return fmt.Sprintf("LI2: %d acquisitions in the events, epoch is %d", s.epoch, x.LeaseEpoch)
	case s.completed != s.replayed+over || s.replayed != x.ReplayCount:
		return fmt.Sprintf("L145: %d completions in the events, %d replays, %s after %d replays", s.completed, s.replayed, x.Status, x.ReplayCount)
	}
	return ""
}

// story is what the events of an execution have told so far.
type story struct {
	open, epoch         int64
	completed, replayed int
	attempt             string
}

func (s *story) add(ev core.Event) string {
	var f facts
	if err := json.Unmarshal(ev.Data.JSON(), &f); err != nil {
		return fmt.Sprintf("E24: data of %s: %v", ev.Kind, err)
	}
	switch {
	case ev.Kind == "lease.acquired":
		if s.epoch++; f.Epoch != s.epoch || s.open != 0 {
			return fmt.Sprintf("I10: epoch %d acquired after %d while %d is open", f.Epoch, s.epoch-1, s.open)
		}
		if f.How == "resumed" && f.AttemptID != s.attempt {
			return "LI8: a resumption changed the attempt"
		}
		s.open, s.attempt = s.epoch, f.AttemptID
	case slices.Contains(exits, ev.Kind) && f.Epoch != 0 && !f.Late:
		if f.Epoch != s.open {
			return fmt.Sprintf("L146: %s closes epoch %d, open is %d", ev.Kind, f.Epoch, s.open)
		}
		s.open = 0
	}
	switch ev.Kind {
	case "execution.completed":
		s.completed++
	case "execution.replayed":
		s.replayed++
	}
	return ""
}
