package core

import "errors"

// Cascades of a replay (F56).
const (
	CascadeNone    = "none"
	CascadeSkipped = "skipped"
	CascadeAll     = "all"
)

// MaxReplayed bounds the members that one replay opens again (F56).
const MaxReplayed = 1000

// CheckCascade wants one of the cascades, "" for none: invalid_argument.
func CheckCascade(text string) error {
	switch text {
	case "", CascadeNone, CascadeSkipped, CascadeAll:
		return nil
	default:
		return Invalid("cascade", "must be none, skipped or all")
	}
}

// Rejoin says how the join of a replayed member stands when it opens again (F54, F56). nil: as it was, with its inputs.
type Rejoin struct {
	Join     Join
	Override bool // the member goes on although the join is not satisfied
}

// Recount is the join of a member over its inbound edges as they are now, pending.
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

// Verdict is what the edges counted make of a join that is pending.
func (j *Join) Verdict(sealed bool) JoinState { return j.verdict(sealed) }

// rejoin sets the join of a member that opens again.
func (x *Execution) rejoin(now Time, r *Rejoin) {
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

// Reopen makes an edge wait for its upstream again, and its downstream, whose join is pending, count it no more (F55). It reports whether it
// was resolved.
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

// uncount takes back what count booked.
func (j *Join) uncount(state EdgeState) {
	if state == EdgeSatisfied {
		j.Satisfied--
	} else {
		j.Impossible--
	}
}

// Again computes an edge anew from its upstream, terminal or not (F54).
func (e *Edge) Again(upstream *Execution, now Time) {
	e.reopen()
	if upstream != nil && upstream.Status.Terminal() {
		e.Resolve(upstream.EndedRun(), now)
	}
}

// ReopenNode lets a flow node wait for its sub-flow again, one of whose members is replayed (F57). It counts as a replay. Errors:
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
		return Errorf(CodeFlowAlreadyTerminal, "the flow is %s", f.State).With("state", string(f.State))
	}
	return nil
}

// Reopen opens a flow again that has ended (F58), and tells of it.
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
	var refusal *Error
	if !errors.As(err, &refusal) {
		return err
	}
	return refusal.With("name", name)
}
