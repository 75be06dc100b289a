package core

import (
	"errors"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Cascades of a replay (F56).
const (
	CascadeNone    = "none"
	CascadeSkipped = "skipped"
	CascadeAll     = "all"
)

// MaxReplayed bounds the members that one replay reopens (F56).
const MaxReplayed = 1000

// CheckCascade requires one of the cascades, or "" for none: invalid_argument.
func CheckCascade(text string) error {
	switch text {
	case "", CascadeNone, CascadeSkipped, CascadeAll:
		return nil
	default:
		return base.Invalid("cascade", "must be none, skipped or all")
	}
}

// Rejoin states the join of a replayed member when it is reopened (F54, F56). nil leaves join and inputs unchanged.
type Rejoin struct {
	Join     Join
	Override bool // the member continues although the join is not satisfied
}

// Recount returns the pending join of a member, counted over the present state of its inbound edges.
func (m *Membership) Recount(inbound []Edge) Join {
	j := Join{JoinSpec: m.Join.JoinSpec}
	for i := range inbound {
		j.add(&inbound[i])
	}
	if j.N > 0 {
		j.State = JoinPending
	}
	return j
}

// Verdict returns what the counted edges make of a pending join.
func (j *Join) Verdict(sealed bool) JoinState { return j.verdict(sealed) }

// rejoin sets the join of a member that is reopened.
func (x *Execution) rejoin(now base.Time, r *Rejoin) {
	if x.Member == nil {
		return
	}
	m := x.memberToChange()
	if r != nil {
		m.Join, m.Inputs = r.Join, false
		if r.Override {
			m.Join.State, m.Join.DecidedAt = JoinOverridden, now
		}
	}
	x.Dependency = m.dependency()
}

// Reopen makes an edge wait for its upstream again and removes it from the count of its downstream, whose join is pending (F55). It reports whether
// the edge was resolved.
func (x *Execution) Reopen(e *Edge) bool {
	if e.State == EdgePending {
		return false
	}
	if e.Wait != 0 {
		if !x.waitsForChildren(e.Wait) {
			return false
		}
		x.waitToChange().Join.uncount(e.State)
	} else {
		if x.Member.Join.State != JoinPending {
			return false
		}
		x.memberToChange().Join.uncount(e.State)
	}
	e.reopen()
	return true
}

// uncount reverts count.
func (j *Join) uncount(state EdgeState) {
	if state == EdgeSatisfied {
		j.Satisfied--
	} else {
		j.Impossible--
	}
}

// Recompute judges an edge again from its upstream, which may or may not be terminal (F54).
func (e *Edge) Recompute(upstream *Execution, now base.Time) {
	e.reopen()
	if upstream != nil && upstream.Status.Terminal() {
		e.Resolve(upstream.EndedRun(), now)
	}
}

// ReopenNode makes a flow node wait again for its sub-flow, one of whose members is replayed (F57). It counts as a replay. Errors:
// max_replays_exhausted.
func (x *Execution) ReopenNode(fx *Effects, by, reason string) error {
	if x.ReplayCount >= x.Policy.MaxReplays {
		return x.replaysExhausted()
	}
	from, children, earlier := x.Status, x.Children, x.Earlier
	x.ReplayCount++
	x.Next = NextInitial
	x.DeadlineAt = x.deadlineAfterReplay(fx.Now, 0)
	x.forgetRun()
	x.Children, x.Earlier, x.QueuedAt = children, earlier, fx.Now
	x.Dependency = WaitingForSubflow
	x.gate(fx.Now)
	x.emitReplayed(fx, from, reason, nil, CascadeNone)
	return nil
}

// CheckReplayable is the refusal of a flow whose members cannot be replayed (L109).
func (f *Flow) CheckReplayable() error {
	if f.State == FlowStopped || f.State == FlowCancelling {
		return base.Errorf(base.CodeFlowAlreadyTerminal, "the flow is %s", f.State).With("state", string(f.State))
	}
	return nil
}

// Reopen reopens a flow that has ended (F58) and emits an event.
func (f *Flow) Reopen(fx *Effects, member, cascade string) {
	if !f.State.Terminal() {
		return
	}
	f.State, f.EndedAt, f.Failures = FlowOpen, 0, nil
	f.LastMutationAt = fx.Now
	f.emitReopened(fx, member, cascade)
}

// AtMember names the member that a refusal is about.
func AtMember(err error, name string) error {
	var refusal *base.Error
	if !errors.As(err, &refusal) {
		return err
	}
	return refusal.With("name", name)
}
