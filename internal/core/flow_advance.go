package core

// EdgeResolved counts an edge to x that has left pending (F23): in its join, or in its wait for children.
func (x *Execution) EdgeResolved(e *Edge) {
	if e.Wait != 0 {
		if x.waitsForChildren(e.Wait) {
			x.waitToChange().Join.count(e.State)
		}
		return
	}
	x.memberToChange().Join.count(e.State)
}

// EdgeAdded counts a new edge to x (F21): x now waits, unless its join is already decided by what has ended before.
func (x *Execution) EdgeAdded(e *Edge) {
	j := &x.memberToChange().Join
	if j.add(e); j.State == JoinNone {
		j.State = JoinPending
	}
}

// DueJoin returns what the edges counted so far make of the join that x is blocked on: pending while they do not decide it, none if x is blocked on
// no join (F25, F26). sealed reports whether no more edges can come.
func (x *Execution) DueJoin(sealed bool) JoinState {
	switch {
	case x.Status.Terminal() || x.Member == nil || x.Member.Join.State != JoinPending:
		return JoinNone
	default:
		return x.Member.Join.verdict(sealed)
	}
}

// ShortQuorum reports whether the join of x requires more edges than lead to it, which a seal makes impossible to satisfy (F24). It also applies to
// an ended member, which a replay may open again.
func (x *Execution) ShortQuorum() bool {
	return x.Member != nil && x.Member.Join.N > 0 && x.Member.Join.needed() > x.Member.Join.N
}

// HoldJoin releases x: its join is satisfied, and it passes the gate (F26). inputs reports whether named inputs were frozen for it.
func (x *Execution) HoldJoin(fx *Effects, inputs bool) {
	m := x.memberToChange()
	m.Join.State, m.Join.DecidedAt, m.Inputs = JoinHeld, fx.Now, inputs
	x.Dependency = m.dependency()
	x.pass(fx, causeDependencies)
}

// causeDependencies is the cause of execution.ready for a member whose join is satisfied.
const causeDependencies = "dependencies"

// Gated makes x, which was ready or delayed, wait for the join that new edges have given it. Its own delay is kept (F21).
func (x *Execution) Gated(fx *Effects) {
	x.Dependency = x.Member.dependency()
	x.pass(fx, causeDependencies)
	x.LastMutationAt = fx.Now
}

// BreakJoin skips x: its join can no longer be satisfied (F26). by names the upstreams that made it impossible.
func (x *Execution) BreakJoin(fx *Effects, sealed bool, by []string) {
	j := &x.memberToChange().Join
	j.State, j.DecidedAt = JoinBroken, fx.Now
	if sealed && j.needed() > j.N {
		j.Detail = quorumUnreachable
	}
	x.end(fx, ending{status: Skipped, reason: DependencyImpossible, attempt: EndedCancelled, edges: by})
}

// Loser reports whether x may be ended because a join that it fed is decided. The output of a flow is never ended this way (F31). The caller has
// checked that nothing else that x feeds needs it.
func (x *Execution) Loser() bool { return !x.Status.Terminal() && x.Member != nil && !x.Member.Output }

// MayBeLost reports whether an edge from a candidate to x leads to a join that no longer needs it (F31).
func (x *Execution) MayBeLost() bool {
	return x.Status.Terminal() || x.Member != nil && x.Member.Join.State.Decided()
}
