package core

// EdgeResolved books an edge that leads to x and has left pending (F23): in its join, or in its wait for children.
func (x *Execution) EdgeResolved(e *Edge) {
	if e.Wait != 0 {
		if x.waitsForChildren(e.Wait) {
			x.waitToChange().Join.count(e.State)
		}
		return
	}
	x.memberToChange().Join.count(e.State)
}

// EdgeAdded books a new edge that leads to x (F21): it waits now, unless its join is decided by what has ended before.
func (x *Execution) EdgeAdded(e *Edge) {
	j := &x.memberToChange().Join
	if j.add(e); j.State == JoinNone {
		j.State = JoinPending
	}
}

// DueJoin is what the edges counted so far make of the join that x is blocked on: pending while they do not decide it, none where x is
// blocked on no join (F25, F26). sealed reports whether more edges may come.
func (x *Execution) DueJoin(sealed bool) JoinState {
	switch {
	case x.Status.Terminal() || x.Member == nil || x.Member.Join.State != JoinPending:
		return JoinNone
	default:
		return x.Member.Join.verdict(sealed)
	}
}

// ShortQuorum reports whether the join of x asks for more edges than lead to it, which a seal makes impossible (F24); also that of one that
// has ended, which a replay may open again.
func (x *Execution) ShortQuorum() bool {
	return x.Member != nil && x.Member.Join.N > 0 && x.Member.Join.needed() > x.Member.Join.N
}

// HoldJoin lets x go: its join is satisfied, and it passes the gate (F26). inputs reports whether named inputs were frozen for it.
func (x *Execution) HoldJoin(fx *Effects, inputs bool) {
	m := x.memberToChange()
	m.Join.State, m.Join.DecidedAt, m.Inputs = JoinHeld, fx.Now, inputs
	x.Dependency = m.dependency()
	x.pass(fx, causeDependencies)
}

// causeDependencies is why a member becomes ready whose join is satisfied.
const causeDependencies = "dependencies"

// Gated waits for the join that edges have given x which was ready or delayed: its own delay is kept (F21).
func (x *Execution) Gated(fx *Effects) {
	x.Dependency = x.Member.dependency()
	x.pass(fx, causeDependencies)
	x.LastMutationAt = fx.Now
}

// BreakJoin skips x: its join cannot be satisfied any more (F26). by are the names of the upstreams that made it so.
func (x *Execution) BreakJoin(fx *Effects, sealed bool, by []string) {
	j := &x.memberToChange().Join
	j.State, j.DecidedAt = JoinBroken, fx.Now
	if sealed && j.needed() > j.N {
		j.Detail = quorumUnreachable
	}
	x.end(fx, ending{status: Skipped, reason: DependencyImpossible, attempt: EndedCancelled, edges: by})
}

// Loser reports whether x ends because a join that it fed is decided, with all that it feeds: it is none while it is the output of its
// flow (F31). The caller has looked at its edges.
func (x *Execution) Loser() bool { return !x.Status.Terminal() && x.Member != nil && !x.Member.Output }

// MayBeLost reports whether an edge from a candidate leads to one that needs it no more (F31).
func (x *Execution) MayBeLost() bool {
	return x.Status.Terminal() || x.Member != nil && x.Member.Join.State.Decided()
}
