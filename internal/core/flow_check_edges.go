package core

import "github.com/flowfabric/flowfabric/internal/core/base"

// edgeBook adds the edges of a part one by one (F19) and then checks the resulting inputs and joins.
type edgeBook struct {
	*graphPart
	names   map[string]int                          // nodes and members of the request
	known   func(end string) (name string, ok bool) // finds a member; nil: the ends were checked before
	by      map[[2]string]PlacedEdge                // by their ends
	ids     map[base.UUID]bool
	inbound map[string]int
}

func newEdgeBook(p *graphPart, names map[string]int) *edgeBook {
	return &edgeBook{graphPart: p, names: names, by: map[[2]string]PlacedEdge{}, ids: map[base.UUID]bool{}, inbound: map[string]int{}}
}

// enter refuses an edge by the rules of F19 that depend only on the request, in their order.
func (b *edgeBook) enter(e PlacedEdge) error {
	if e.From == e.To {
		return base.Errorf(base.CodeSelfReferencingEdge, "%s would wait for itself", base.QuoteID(e.From)).WithField(e.Place(""))
	}
	if err := b.checkEnds(e); err != nil {
		return err
	}
	if other, joined := b.by[[2]string{e.From, e.To}]; joined {
		return DependencyExists(other.FlowEdge).WithField(e.Place(""))
	}
	if !e.ID.IsZero() {
		if b.ids[e.ID] {
			return base.Errorf(base.CodeEdgeIDTaken, "another edge has this id").WithField(e.Place("edge_id"))
		}
		b.ids[e.ID] = true
	}
	b.by[[2]string{e.From, e.To}] = e
	b.inbound[e.To]++
	return nil
}

func (b *edgeBook) checkEnds(e PlacedEdge) error {
	if b.known == nil {
		return nil
	}
	for _, end := range []struct{ field, text string }{{"from", e.From}, {"to", e.To}} {
		if _, ok := b.known(end.text); !ok {
			return base.Errorf(base.CodeExecutionNotInFlow, "no member is %s", base.QuoteID(end.text)).WithField(e.Place(end.field))
		}
	}
	return nil
}

// checkInputs refuses two inputs of one name for a node that waits for all its edges (F36).
func (b *edgeBook) checkInputs(edges []PlacedEdge) error {
	type input struct{ to, name string }
	given := map[input]bool{}
	for _, e := range edges {
		node, here := b.names[e.To]
		if e.Pass == "" || !here || node >= len(b.nodes) || valueOr(b.nodes[node].Join).Policy != AllOf {
			continue
		}
		in := input{e.To, e.Pass}
		if given[in] {
			return base.Errorf(base.CodeDuplicateName, "another edge gives %s an input called %s", e.To, e.Pass).WithField(e.Place("pass"))
		}
		given[in] = true
	}
	return nil
}

// checkJoins checks the joins of the nodes. A node that was a member before may have edges from then.
func (b *edgeBook) checkJoins(member func(end string) (string, bool), sealed bool) error {
	for i := range b.nodes {
		n := &b.nodes[i]
		if n.Join == nil {
			continue
		}
		at, inbound, before := b.node(i)+".join", b.inbound[n.Name], false
		if member != nil {
			name, ok := member(n.Name)
			before = ok && name == n.Name
		}
		if inbound == 0 && !before {
			return base.Errorf(base.CodeJoinWithoutEdges, "no edge leads to %s", n.Name).WithField(at).WithHint("leave the join out, or add the edges that it waits for")
		}
		if err := n.Join.Check(at); err != nil {
			return err
		}
		if sealed && n.Join.K > inbound {
			return base.Errorf(base.CodeQuorumExceedsEdges, "%d edges are needed and %d lead to %s", n.Join.K, inbound, n.Name).
				WithField(at+".k").With("edges", inbound)
		}
	}
	return nil
}

// Check refuses an invalid join: k is allowed for a quorum only and must be at least 1 there. place is where the join is in the request, "" for the
// request itself. Error: invalid_join.
func (j JoinSpec) Check(place string) error {
	refuse := func(field, why string) error {
		return base.Errorf(base.CodeInvalidJoin, "%s", why).WithField(inPlace(place, field))
	}
	switch {
	case int(j.Policy) >= len(joinPolicyNames):
		return refuse("policy", "must be all_of, any_of or quorum")
	case int(j.OnSatisfied) >= len(onSatisfiedNames):
		return refuse("on_satisfied", "must be let_run or cancel_remaining")
	case j.Policy == Quorum && j.K < 1:
		return refuse("k", "must be at least 1 with policy quorum")
	case j.Policy != Quorum && j.K != 0:
		return refuse("k", "is for policy quorum")
	default:
		return nil
	}
}
