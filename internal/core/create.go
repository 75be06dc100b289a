package core

import "github.com/flowfabric/flowfabric/internal/core/base"

// NewExecution makes the record of an accepted submission (L79..L81). s is normalized and its times are checked; class is
// s.Class() with the store's number.
func NewExecution(fx *Effects, s *Submission, id base.ID, class *Class) *Execution {
	now := fx.Now
	x := &Execution{
		ID: id, Class: class, Creator: s.Creator, CreatorKey: s.CreatorKey, IdempotencyKey: s.IdempotencyKey, FlowID: s.FlowID, ParentID: s.ParentID, Member: s.Member, Budgets: s.Budgets, Trace: s.Trace,
		Input: s.Input, Policy: s.Policy, Tags: s.Tags,
		Next: NextInitial, Priority: s.Priority, CreatedAt: now,
		DeadlineAt: s.DeadlineAt,
	}
	if start := s.StartAt(now); start != 0 {
		x.DelayUntil, x.DelayReason = start, WaitingForDelay
	}
	x.QueuedAt = base.Later(now, x.DelayUntil)
	if relative := s.Policy.ExecutionDeadlineMS; relative > 0 {
		x.DeadlineAt = base.Earliest(x.DeadlineAt, now.Add(relative))
	}
	x.Dependency = s.Member.dependency()
	x.gate(now)
	x.emitSubmitted(fx)
	return x
}
