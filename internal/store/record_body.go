package store

import "github.com/flowfabric/flowfabric/internal/core"

// Parts of Row.State. Values are stored.
const (
	bodyTags uint64 = 1 << iota
	bodyLease
	bodyAttempt
	bodyStarted
	bodyRunStarted
	bodyDeadline
	bodyLastLease
	bodyLastLeaseIDs // of the last lease, while the columns hold those of another one
	bodyResult
	bodyResultEpoch
	bodyCounters
	bodyDelay
	bodyDependency
	bodyDetail
	bodyHeld
	bodyBlockedOn
	bodyHolds
	bodyGrant
	bodyAttemptRemaining
	bodyAttemptDeadline
	bodyReplayLineage
	bodyFailure
	bodyCancellation
	bodyRetain
	bodyProgress
	bodyTotalAttempts
	bodyWaits
	bodyReservation
	bodyBudgets
	bodyUsage
	bodyRetryAt
	bodyWallHold
	bodyLastLeaseBudgets
	bodyMember
	bodyChildren
	bodyResultOf
	bodyEarlier
	bodyRetries
)

// bodyParts returns the parts of x that the body must contain.
func bodyParts(x *core.Execution) uint64 {
	return bits(bodyTags, len(x.Tags) != 0) |
		bits(bodyLease, x.Lease != nil) |
		bits(bodyAttempt, x.Attempt != nil) |
		bits(bodyStarted, x.StartedAt != 0) |
		bits(bodyRunStarted, x.RunStartedAt != 0) |
		bits(bodyDeadline, x.DeadlineAt != 0) |
		bits(bodyLastLease, x.LastLease != nil) |
		bits(bodyLastLeaseIDs, x.LastLease != nil && x.Lease != nil) |
		bits(bodyResult, x.Result != nil) |
		bits(bodyResultEpoch, x.ResultEpoch != 0) |
		bits(bodyCounters, x.RetryCount != 0 || x.ReclaimCount != 0 || x.ReplayCount != 0) |
		bits(bodyDelay, x.DelayUntil != 0 || x.DelayReason != 0) |
		bits(bodyDependency, x.Dependency != 0) |
		bits(bodyDetail, x.BlockingDetail != nil) |
		bits(bodyHeld, x.Held != nil) |
		bits(bodyBlockedOn, x.BlockedOn != "") |
		bits(bodyHolds, x.Holds != nil) |
		bits(bodyGrant, x.Grant != nil) |
		bits(bodyAttemptRemaining, x.AttemptRemaining != 0) |
		bits(bodyAttemptDeadline, x.AttemptDeadline != 0) |
		bits(bodyReplayLineage, x.ReplayLineage != nil) |
		bits(bodyFailure, x.Failure != nil) |
		bits(bodyCancellation, x.Cancellation != nil) |
		bits(bodyRetain, x.Retain != nil) |
		bits(bodyProgress, x.Progress != nil) |
		bits(bodyTotalAttempts, x.TotalAttempts != 0) |
		bits(bodyWaits, x.Waits != nil) |
		bits(bodyReservation, x.Reservation != nil) |
		bits(bodyBudgets, len(x.Budgets) != 0) |
		bits(bodyUsage, len(x.Usage) != 0) |
		bits(bodyRetryAt, x.RetryAt != 0) |
		bits(bodyWallHold, x.WallHoldAt != 0) |
		bits(bodyLastLeaseBudgets, x.LastLease != nil && len(x.LastLease.Budgets) != 0) |
		bits(bodyMember, x.Member != nil) |
		bits(bodyChildren, x.Children != nil) |
		bits(bodyResultOf, !x.ResultOf.IsZero()) |
		bits(bodyEarlier, len(x.Earlier) != 0) |
		bits(bodyRetries, x.Retries != nil)
}

// bodyRoom fits the body of most executions.
const bodyRoom = 160

// body codes what the columns of r do not contain. It must not depend on what a renewal changes: renewals write only columns.
func (c *coder) body(x *core.Execution, r *columns) {
	parts := bodyParts(x)
	c.uint(&parts)
	if parts&bodyTags != 0 {
		c.tags(&x.Tags)
	}
	c.bodyTimes(x, parts)
	c.bodyLeases(x, r, parts)
	c.bodyOutcome(x, parts) // before the attempt, which may share its failure
	c.bodyAttempts(x, r, parts)
	c.bodyQueue(x, parts)
	if parts&bodyWaits != 0 {
		c.waits(present(c, &x.Waits))
	}
	c.bodyAdmission(x, parts)
	c.bodyFlow(x, parts)
}

func (c *coder) bodyTimes(x *core.Execution, parts uint64) {
	if parts&bodyStarted != 0 {
		c.time(&x.StartedAt)
	}
	if parts&bodyRunStarted != 0 {
		c.time(&x.RunStartedAt)
	}
	if parts&bodyDeadline != 0 {
		c.time(&x.DeadlineAt)
	}
	if parts&bodyAttemptRemaining != 0 {
		c.int64(&x.AttemptRemaining)
	}
	if parts&bodyAttemptDeadline != 0 {
		c.time(&x.AttemptDeadline)
	}
}

func (c *coder) bodyLeases(x *core.Execution, r *columns, parts uint64) {
	if parts&bodyLease != 0 {
		l := present(c, &x.Lease)
		if c.reading {
			l.ID, l.AttemptID = r.LeaseID, r.AttemptID
			l.ExpiresAt, l.RenewedAt, l.TTL = r.LeaseExpires, r.LeaseRenewed, r.LeaseTTL
		}
		c.text(&l.WorkerID)
		c.text(&l.InstanceID)
		c.time(&l.AcquiredAt)
		c.text(&l.RequestKey)
		c.bytes(&l.GrantHash)
	}
	if parts&bodyLastLease != 0 {
		l := present(c, &x.LastLease)
		if c.reading {
			l.ID, l.AttemptID = r.LeaseID, r.AttemptID
		}
		if parts&bodyLastLeaseIDs != 0 {
			c.uuid(&l.ID)
			c.uuid(&l.AttemptID)
		}
		c.int64(&l.Epoch)
		c.time(&l.EndedAt)
		small(c, &l.End)
		c.check(known(l.End.String()))
		if parts&bodyLastLeaseBudgets != 0 {
			list(c, &l.Budgets, c.uuid)
		}
	}
}

func (c *coder) bodyOutcome(x *core.Execution, parts uint64) {
	if parts&bodyResult != 0 {
		c.payload(present(c, &x.Result))
	}
	if parts&bodyResultEpoch != 0 {
		c.int64(&x.ResultEpoch)
	}
	if parts&bodyFailure != 0 {
		c.failure(present(c, &x.Failure))
	}
	if parts&bodyCancellation != 0 {
		c.cancellation(present(c, &x.Cancellation))
	}
	if parts&bodyRetain != 0 {
		c.retain(present(c, &x.Retain))
	}
	if parts&bodyProgress != 0 {
		c.progress(present(c, &x.Progress))
	}
}

func (c *coder) bodyAttempts(x *core.Execution, r *columns, parts uint64) {
	if parts&bodyAttempt != 0 {
		around := surroundings{id: r.AttemptID, failure: x.Failure}
		if x.Lease != nil {
			around.worker, around.instance = x.Lease.WorkerID, x.Lease.InstanceID
		}
		c.attempt(present(c, &x.Attempt), around)
	}
	if parts&bodyTotalAttempts != 0 {
		c.int(&x.TotalAttempts)
	}
	if parts&bodyReplayLineage != 0 {
		c.lineage(present(c, &x.ReplayLineage))
	}
	if parts&bodyCounters != 0 {
		c.int(&x.RetryCount)
		c.int(&x.ReclaimCount)
		c.int(&x.ReplayCount)
	}
	if parts&bodyRetries != 0 {
		c.retries(present(c, &x.Retries))
	}
}

func (c *coder) bodyQueue(x *core.Execution, parts uint64) {
	if parts&bodyDelay != 0 {
		c.time(&x.DelayUntil)
		small(c, &x.DelayReason)
	}
	if parts&bodyDependency != 0 {
		small(c, &x.Dependency)
	}
	if parts&bodyDetail != 0 {
		c.json(&x.BlockingDetail)
	}
	if parts&bodyHeld != 0 {
		c.hold(present(c, &x.Held))
	}
	if parts&bodyBlockedOn != 0 {
		c.text(&x.BlockedOn)
	}
	if parts&bodyHolds != 0 {
		c.texts(&x.Holds)
	}
	if parts&bodyGrant != 0 {
		c.grant(present(c, &x.Grant))
	}
	c.check(known(x.DelayReason.String()) && known(x.Dependency.String()))
}

func (c *coder) bodyAdmission(x *core.Execution, parts uint64) {
	if parts&bodyReservation != 0 {
		c.reservation(present(c, &x.Reservation))
	}
	if parts&bodyBudgets != 0 {
		c.scopedBudgets(&x.Budgets)
	}
	if parts&bodyUsage != 0 {
		c.amounts(&x.Usage)
	}
	if parts&bodyRetryAt != 0 {
		c.time(&x.RetryAt)
	}
	if parts&bodyWallHold != 0 {
		c.time(&x.WallHoldAt)
	}
}
