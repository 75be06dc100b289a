package invariants

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
)

// member is the record of a member, or what the flow keeps of one that was deleted; nil: there is none.
func (g *Graph) member(s *Snapshot, name string) *core.Execution {
	if erased := g.Erased[name]; erased != nil {
		return erased.Execution()
	}
	return s.Records[g.Members[name].UUID].X
}

// rows is FI2: what the flow counts are rows, and each member says the same of itself.
func (g *Graph) rows(s *Snapshot) (found []string) {
	f := g.Flow
	if f.Nodes != len(g.Members) || f.Edges != len(g.Edges) {
		found = append(found, fmt.Sprintf("FI2: %d nodes and %d edges, there are %d and %d", f.Nodes, f.Edges, len(g.Members), len(g.Edges)))
	}
	if f.Revision < 0 || f.Nodes > 0 && f.Revision == 0 {
		found = append(found, fmt.Sprintf("FI2: revision %d with %d nodes", f.Revision, f.Nodes))
	}
	for name, id := range g.Members {
		switch x := g.member(s, name); {
		case x == nil:
			found = append(found, fmt.Sprintf("FI2: its member %s is not there", name))
		case x.FlowID != f.ID || x.Member == nil || x.Member.Name != name || x.ID.N != f.ID.N || x.Member.Root != f.Root:
			found = append(found, fmt.Sprintf("FI2, F2: %s says to be %+v of %s", id, x.Member, x.FlowID))
		}
	}
	return found
}

// satisfies reports whether an outcome satisfies an edge of the kind (section 5).
func satisfies(kind core.EdgeKind, outcome core.Status) bool {
	switch outcome {
	case core.Succeeded:
		return kind == core.SuccessOnly || kind == core.AnyTerminal
	case core.Failed, core.Expired, core.Cancelled:
		return kind == core.FailureOnly || kind == core.AnyTerminal
	default:
		return kind == core.AnyTerminal
	}
}

// edges is FI1 and the part of FI3 that looks at each edge: it tells what became of its upstream.
func (g *Graph) edges(s *Snapshot) (found []string) {
	listed := map[base.UUID][]base.UUID{}
	for i := range g.Edges {
		e := &g.Edges[i]
		listed[e.To.ID.UUID] = append(listed[e.To.ID.UUID], e.From.ID.UUID)
		if g.Members[e.From.Name] != e.From.ID || g.Members[e.To.Name] != e.To.ID {
			found = append(found, fmt.Sprintf("F1: the edge from %s to %s joins others than members", e.From.Name, e.To.Name))
			continue
		}
		if text := disagrees(e, g.member(s, e.From.Name)); text != "" {
			found = append(found, fmt.Sprintf("FI3: the edge from %s to %s %s", e.From.Name, e.To.Name, text))
		}
	}
	for _, id := range g.Members {
		want, got := sorted(listed[id.UUID]), sorted(g.Upstreams[id.UUID])
		if !slices.Equal(want, got) {
			found = append(found, fmt.Sprintf("FI2: %d edges lead to %s, and %d upstreams are listed", len(want), id, len(got)))
		}
	}
	if g.cyclic() {
		found = append(found, "FI1: it has a cycle")
	}
	return found
}

func sorted(ids []base.UUID) []base.UUID {
	return slices.SortedFunc(slices.Values(ids), func(a, b base.UUID) int { return bytes.Compare(a[:], b[:]) })
}

// disagrees returns in what an edge does not agree with its upstream. What has resolved it may be an earlier run (F55).
func disagrees(e *core.Edge, from *core.Execution) string {
	switch {
	case from == nil:
		return "" // rows tells of it
	case e.State == core.EdgePending && from.Status.Terminal():
		return fmt.Sprintf("is pending, though that is %s", from.Status)
	case e.State == core.EdgePending && (e.End != nil || e.Resolved != 0), e.State != core.EdgePending && (e.End == nil || e.Resolved == 0):
		return fmt.Sprintf("is %s by %+v", e.State, e.End)
	case e.State == core.EdgePending:
		return ""
	case (e.State == core.EdgeSatisfied) != satisfies(e.Kind, e.End.Status):
		return fmt.Sprintf("is %s of kind %s by %s", e.State, e.Kind, e.End.Status)
	case e.End.Run > from.RunIndex() || e.End.Run == from.RunIndex() && e.End.Status != from.Status:
		return fmt.Sprintf("was resolved by run %d that ended %s, and that is %s in run %d", e.End.Run, e.End.Status, from.Status, from.RunIndex())
	}
	return ""
}

// cyclic takes members without inbound edges away until none is left, or none can be.
func (g *Graph) cyclic() bool {
	inbound, out := map[string]int{}, map[string][]string{}
	for i := range g.Edges {
		inbound[g.Edges[i].To.Name]++
		out[g.Edges[i].From.Name] = append(out[g.Edges[i].From.Name], g.Edges[i].To.Name)
	}
	var free []string
	for name := range g.Members {
		if inbound[name] == 0 {
			free = append(free, name)
		}
	}
	for n := 0; n < len(free); n++ {
		for _, to := range out[free[n]] {
			if inbound[to]--; inbound[to] == 0 {
				free = append(free, to)
			}
		}
	}
	return len(free) != len(g.Members)
}

// fate is what a join comes to, by how many of its edges are what, and "pending" as long as it can come to either (F23, F24).
func fate(spec core.JoinSpec, satisfied, impossible, pending int, sealed bool) core.JoinState {
	n := satisfied + impossible + pending
	need := map[core.JoinPolicy]int{core.AllOf: n, core.AnyOf: 1, core.Quorum: spec.K}[spec.Policy]
	switch {
	case n == 0:
		return core.JoinNone
	case need > n && !sealed:
		return core.JoinPending
	case satisfied+pending < need:
		return core.JoinBroken
	case satisfied >= need:
		return core.JoinHeld
	default:
		return core.JoinPending
	}
}

// joins is FI3, FI8 and FI14: what a join has counted, what it came to, and what its member did.
func (g *Graph) joins(s *Snapshot) (found []string) {
	type count struct{ satisfied, impossible, pending int }
	counts := map[string]count{}
	for i := range g.Edges {
		c := counts[g.Edges[i].To.Name]
		switch g.Edges[i].State {
		case core.EdgeSatisfied:
			c.satisfied++
		case core.EdgeImpossible:
			c.impossible++
		default:
			c.pending++
		}
		counts[g.Edges[i].To.Name] = c
	}
	for name := range g.Members {
		x := g.member(s, name)
		if x == nil || x.Member == nil {
			continue
		}
		j, c := &x.Member.Join, counts[name]
		if j.Satisfied != c.satisfied || j.Impossible != c.impossible || j.N != c.satisfied+c.impossible+c.pending {
			found = append(found, fmt.Sprintf("FI3: the join of %s counts %d, %d of %d, there are %+v", name, j.Satisfied, j.Impossible, j.N, c))
		}
		if text := decided(x, fate(j.JoinSpec, c.satisfied, c.impossible, c.pending, g.Flow.Sealed)); text != "" {
			found = append(found, fmt.Sprintf("%s (%s)", text, name))
		}
	}
	return found
}

// decided holds the state of a join and of its member to what its edges come to.
func decided(x *core.Execution, fate core.JoinState) string {
	j := &x.Member.Join
	waits := x.Status == core.Blocked && x.Dependency == core.WaitingForChildren && !parked(x)
	switch {
	case j.State == core.JoinPending && waits && fate != core.JoinPending:
		return fmt.Sprintf("FI8: waits for its join, whose edges make it %s", fate)
	case j.State == core.JoinHeld && fate != core.JoinHeld, j.State == core.JoinBroken && fate != core.JoinBroken, j.State == core.JoinNone && fate != core.JoinNone:
		return fmt.Sprintf("FI3: its join is %q, whose edges make it %q", j.State, fate)
	case (x.Status == core.Skipped) != (j.State == core.JoinBroken):
		return fmt.Sprintf("FI8: %s with a join that is %q", x.Status, j.State)
	case waits != (j.State == core.JoinPending && !x.Status.Terminal()):
		return fmt.Sprintf("FI14: %s (%s) with a join that is %q", x.Status, x.Reason, j.State)
	case x.RunStartedAt != 0 && (j.State == core.JoinPending || j.State == core.JoinBroken):
		return fmt.Sprintf("FI14: it has started, and its join is %s", j.State)
	case (j.DecidedAt != 0) != (j.State > core.JoinPending):
		return fmt.Sprintf("FI3: its join is %q since %s", j.State, j.DecidedAt)
	}
	return ""
}

// counts is FI10: how many members have ended in which way.
func (g *Graph) counts(s *Snapshot) []string {
	open, ends := 0, core.FlowEnds{}
	of := map[core.Status]*int{
		core.Succeeded: &ends.Completed, core.Failed: &ends.Failed, core.Cancelled: &ends.Cancelled, core.Expired: &ends.Expired, core.Skipped: &ends.Skipped,
	}
	for name := range g.Members {
		if x := g.member(s, name); x == nil || !x.Status.Terminal() {
			open++
		} else {
			*of[x.Status]++
		}
	}
	if g.Flow.Open != open || g.Flow.Ends != ends {
		return []string{fmt.Sprintf("FI10: counts %d open and %+v, there are %d and %+v", g.Flow.Open, g.Flow.Ends, open, ends)}
	}
	return nil
}

// outcome is FI7: a flow ends with its last member, as F5 says.
func (g *Graph) outcome(s *Snapshot) []string {
	f, open, failed := g.Flow, 0, false
	for name := range g.Members {
		if x := g.member(s, name); x == nil || !x.Status.Terminal() {
			open++
		}
		failed = failed || g.failure(s, name)
	}
	over := f.State == core.FlowCompleted || f.State == core.FlowFailed
	switch {
	case f.State == core.FlowOpen && f.Sealed && open == 0, f.State == core.FlowCancelling && open == 0:
		return []string{fmt.Sprintf("FI7: %s, and all its members have ended", f.State)}
	case over && (open > 0 || !f.Sealed):
		return []string{fmt.Sprintf("FI7: %s with %d members that have not ended, sealed: %v", f.State, open, f.Sealed)}
	case over && (f.State == core.FlowFailed) != failed:
		return []string{fmt.Sprintf("FI7: %s, and a member counts as a failure: %v", f.State, failed)}
	case f.State.Terminal() != (f.EndedAt != 0):
		return []string{fmt.Sprintf("FI7: %s since %s", f.State, f.EndedAt)}
	}
	return nil
}

// failure is F5 for one member.
func (g *Graph) failure(s *Snapshot, name string) bool {
	x := g.member(s, name)
	if x == nil || x.Member == nil || x.Member.MayFail {
		return false
	}
	lost := x.Reason == core.JoinSatisfied || x.Reason == core.JoinImpossible
	if x.Status != core.Failed && x.Status != core.Expired && (x.Status != core.Cancelled || lost) {
		return false
	}
	edges := 0
	for i := range g.Edges {
		if g.Edges[i].From.Name != name {
			continue
		}
		edges++
		down := g.member(s, g.Edges[i].To.Name)
		if down == nil || down.Member == nil || down.Member.Join.State != core.JoinHeld && down.Member.Join.State != core.JoinOverridden {
			return true
		}
	}
	return edges == 0
}

// cancelled is FI9 as far as rows tell.
func (g *Graph) cancelled(s *Snapshot) (found []string) {
	f := g.Flow
	if (f.State == core.FlowCancelling || f.State == core.FlowStopped) != (f.Cancel != nil) {
		return []string{fmt.Sprintf("F49: %s, and a cancel was asked for: %v", f.State, f.Cancel != nil)}
	}
	if f.Cancel == nil {
		return nil
	}
	for name := range g.Members {
		x := g.member(s, name)
		switch {
		case x == nil:
		case f.Cancel.Policy == core.CancelAll && !x.Status.Terminal():
			found = append(found, fmt.Sprintf("FI9: %s after cancel_all (%s)", x.Status, name))
		case f.Cancel.Policy == core.CancelPending && x.Member != nil && x.Member.Subflow && x.Children != nil: // it has started with its sub-flow
		case f.Cancel.Policy == core.CancelPending && !x.Status.Terminal() && x.RunStartedAt == 0:
			found = append(found, fmt.Sprintf("F49: %s after cancel_pending, and it never started (%s)", x.Status, name))
		case f.Cancel.Policy == core.CancelPending && x.Status == core.Cancelled && x.Reason == core.FlowCancelled && x.RunStartedAt != 0:
			found = append(found, fmt.Sprintf("FI9: cancelled by cancel_pending, and it had started (%s)", name))
		}
	}
	return found
}

// waits is FI12: an execution that waits for children has one that can still decide it.
func (g *Graph) waits(s *Snapshot) (found []string) {
	type wait struct {
		of     base.UUID
		number int
	}
	edges := map[wait][]*core.Edge{}
	for i := range g.Waits {
		e := &g.Waits[i]
		key := wait{e.To.ID.UUID, e.Wait}
		edges[key] = append(edges[key], e)
	}
	for key, all := range edges {
		parent := s.Records[key.of].X
		if parent == nil || !parked(parent) || parent.Children.Wait.Number != key.number || parent.Children.FlowID != g.Flow.ID {
			continue // it is over
		}
		j, satisfied, impossible := &parent.Children.Wait.Join, 0, 0
		for _, e := range all {
			child := s.Records[e.From.ID.UUID].X
			if text := disagrees(e, child); text != "" {
				found = append(found, fmt.Sprintf("FI12: the edge of a wait from %s %s", e.From.Name, text))
			}
			if child != nil && child.Status.Terminal() {
				if satisfies(e.Kind, child.Status) {
					satisfied++
				} else {
					impossible++
				}
			}
		}
		if state := fate(j.JoinSpec, satisfied, impossible, len(all)-satisfied-impossible, true); state != core.JoinPending || j.N != len(all) {
			found = append(found, fmt.Sprintf("FI12: %s waits for %d of %d children, which make it %s", parent.ID, j.N, len(all), state))
		}
	}
	return found
}
