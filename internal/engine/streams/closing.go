package streams

import (
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/stream"
)

// leaseEnd is how the last lease of an attempt ended. The zero value is that of a lease that has not.
type leaseEnd struct {
	end core.LeaseEnd
	at  base.Time
}

// closing returns how the stream of an attempt was closed: it is closed once the attempt is final, with the reason for that (E12). last is how the
// attempt's last lease ended; timedOut is set if the attempt ended with the timeout of its suspension.
func closing(a *core.Attempt, last leaseEnd, timedOut bool) stream.Closing {
	if !a.State.Final() {
		return stream.Closing{}
	}
	return stream.Closing{At: a.EndedAt, Reason: reasonOf(a, last, timedOut)}
}

func reasonOf(a *core.Attempt, last leaseEnd, timedOut bool) stream.Reason {
	switch {
	case timedOut:
		return stream.SuspensionTimeout
	case a.State == core.InterruptedReclaimed:
		return stream.Reclaimed
	case a.State == core.EndedSuccess:
		return stream.AttemptSuccess
	}
	if a.EndedAt == last.at { // with its lease
		switch last.end {
		case core.EndFail:
			return stream.AttemptFailure
		case core.EndCancel, core.EndCancelled:
			return stream.AttemptCancelled
		case core.EndAttemptTimeout:
			return stream.AttemptTimeout
		case core.EndDeadline:
			return stream.ExecutionDeadline
		case core.EndBudgetExceeded:
			return stream.BudgetExceeded
		case core.EndExpired, core.EndRevoked:
			if a.State == core.EndedFailure && a.Failure != nil {
				return stream.ReclaimsExhausted
			}
		}
	}
	switch {
	case a.State == core.EndedCancelled:
		return stream.AttemptCancelled
	case a.Failure == nil: // nothing else ends a waiting attempt without a failure
		return stream.ExecutionDeadline
	case a.Failure.Category == core.BudgetExceeded.String():
		return stream.BudgetExceeded
	default:
		return stream.AttemptFailure
	}
}
