package core

import (
	"cmp"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// PlacedEdge is an edge to be made, with its place in the request.
type PlacedEdge struct {
	FlowEdge
	EdgePlace
}

// EdgePlace is the place of an edge in a request: in its list of edges, or in the list after of a node.
type EdgePlace struct {
	part *graphPart
	node int // the node whose list after contains it; -1: it is in the list of edges
	item int // its index in that list
}

// Place returns the place as refusals name it. field is the field of the edge that is at fault; it is appended only if the edge is written out:
// edges[3].pass, but nodes[2].after[0].
func (e EdgePlace) Place(field string) string {
	if e.node >= 0 {
		return e.part.node(e.node) + "." + base.Element("after", e.item)
	}
	return inPlace(e.part.at+base.Element("edges", e.item), field)
}

// drawn lists the edges of the part, then those of the nodes' after lists (F9). A repeated edge is listed once, as first given; a pair of nodes
// joined in different ways is listed once for each. canonical maps the ends to names; nil leaves them unchanged.
func (p *graphPart) drawn(canonical func(end string) string) []PlacedEdge {
	if canonical == nil {
		canonical = func(end string) string { return end }
	}
	var all []PlacedEdge
	seen := make(map[FlowEdge]bool, len(p.edges))
	add := func(e PlacedEdge) {
		key := e.FlowEdge
		key.ID = base.UUID{}
		if !seen[key] {
			seen[key] = true
			all = append(all, e)
		}
	}
	for i, e := range p.edges {
		e.From, e.To, e.Kind = canonical(e.From), canonical(e.To), cmp.Or(e.Kind, SuccessOnly)
		add(PlacedEdge{e, EdgePlace{p, -1, i}})
	}
	for i := range p.nodes {
		for j, from := range p.nodes[i].After {
			name := canonical(from)
			add(PlacedEdge{FlowEdge{From: name, To: p.nodes[i].Name, Kind: SuccessOnly, Pass: name}, EdgePlace{p, i, j}})
		}
	}
	return all
}

// AllEdges lists the edges of the submission including those of the nodes' after lists, which are success_only and pass the upstream's result under
// the upstream's name. Each is listed once. Both checks must have passed, so there is one for a pair of nodes.
func (s *FlowSubmission) AllEdges() []FlowEdge { return flowEdges(s.part("").drawn(nil)) }

// AtOnce returns how many executions of the flow wait for workers as soon as it is created: nodes that follow no other, with a node that has a
// sub-flow replaced by those of the sub-flow.
func (s *FlowSubmission) AtOnce() int { return NodesAtOnce(s.Nodes, s.AllEdges()) }

// NodesAtOnce is AtOnce for a list of nodes and the edges among them.
func NodesAtOnce(nodes []FlowNode, edges []FlowEdge) (n int) {
	follows := map[string]bool{}
	for i := range edges {
		follows[edges[i].To] = true
	}
	for i := range nodes {
		switch {
		case follows[nodes[i].Name]:
		case nodes[i].Flow != nil:
			n += nodes[i].Flow.AtOnce()
		default:
			n++
		}
	}
	return n
}

func flowEdges(drawn []PlacedEdge) []FlowEdge {
	all := make([]FlowEdge, len(drawn))
	for i, e := range drawn {
		all[i] = e.FlowEdge
	}
	return all
}

func pairs(drawn []PlacedEdge) [][2]string {
	all := make([][2]string, len(drawn))
	for i, e := range drawn {
		all[i] = [2]string{e.From, e.To}
	}
	return all
}

// CheckGraph checks the graph of a submission that has passed CheckShape and CheckNodes, in the order of F12: names (duplicate_name, unknown_name),
// edges (self_referencing_edge, dependency_already_exists, edge_id_taken, duplicate_name of inputs, cycle_detected), joins (join_without_edges,
// invalid_join, quorum_exceeds_edges), then the same for each sub-flow. The field is the place.
func (s *FlowSubmission) CheckGraph() error { return s.checkGraph("") }

func (s *FlowSubmission) checkGraph(at string) error {
	p := s.part(at)
	names, err := p.names()
	if err != nil {
		return err
	}
	edges := p.drawn(nil)
	if err := s.checkKnown(p, names, edges); err != nil {
		return err
	}
	book := newEdgeBook(p, names)
	for _, e := range edges {
		if err := book.enter(e); err != nil {
			return err
		}
	}
	if err := book.checkInputs(edges); err != nil {
		return err
	}
	if cycle := FindCycle(pairs(edges)); cycle != nil {
		return CycleDetected(cycle).WithField(book.by[[2]string{cycle[len(cycle)-2], cycle[0]}].Place(""))
	}
	if err := book.checkJoins(nil, !s.Unsealed); err != nil {
		return err
	}
	return p.eachSubflow((*FlowSubmission).checkGraph)
}

// checkKnown finds names that no node has: in edges, then in the output.
func (s *FlowSubmission) checkKnown(p *graphPart, names map[string]int, edges []PlacedEdge) error {
	unknown := func(place, name string) error {
		return base.Errorf(base.CodeUnknownName, "no node is called %q", base.CutText(name, 80)).WithField(place)
	}
	for _, e := range edges {
		if _, known := names[e.From]; !known {
			return unknown(e.Place("from"), e.From)
		}
		if _, known := names[e.To]; !known {
			return unknown(e.Place("to"), e.To)
		}
	}
	if _, known := names[s.Output]; s.Output != "" && !known {
		return unknown(p.at+"output", s.Output)
	}
	return nil
}

// CheckGraph checks the graph of an extension as far as the request and the names of members allow, in the order of F15. It returns its edges like
// AllEdges, both ends by name, each with its place. member returns the name of an existing member, given its name or id. Checks that need the
// records are left to the caller: whether an edge exists, comes too late or closes a cycle, and the inputs of existing members. Errors:
// duplicate_name, self_referencing_edge, execution_not_in_flow, dependency_already_exists, edge_id_taken, join_without_edges, invalid_join, and
// those of sub-flows.
func (x *FlowExtension) CheckGraph(member func(end string) (name string, ok bool)) ([]PlacedEdge, error) {
	return x.part().checkGrowth(member)
}

// CheckGraph is FlowExtension.CheckGraph for a spawn; member finds the existing children of the parent's run.
func (s *FlowSpawn) CheckGraph(member func(end string) (name string, ok bool)) ([]PlacedEdge, error) {
	return s.part().checkGrowth(member)
}

func (p *graphPart) checkGrowth(member func(end string) (string, bool)) ([]PlacedEdge, error) {
	names, err := p.names()
	if err != nil {
		return nil, err
	}
	known := p.resolver(names, member)
	edges := p.drawn(func(end string) string {
		name, _ := known(end)
		return cmp.Or(name, end)
	})
	book := newEdgeBook(p, names)
	book.known = known
	for _, e := range edges {
		if err := book.enter(e); err != nil {
			return nil, err
		}
	}
	if err := book.checkInputs(edges); err != nil {
		return nil, err
	}
	if err := book.checkJoins(member, false); err != nil {
		return nil, err
	}
	return edges, p.eachSubflow((*FlowSubmission).checkGraph)
}

// resolver returns a function that finds the name of an end of an edge: a new node by name, an existing member, or a new node by the id that the
// request gives it.
func (p *graphPart) resolver(names map[string]int, member func(end string) (string, bool)) func(end string) (string, bool) {
	ids := map[base.UUID]string{}
	for _, m := range p.members {
		ids[m.ID.UUID] = m.Name
	}
	for i := range p.nodes {
		if id := p.nodes[i].ID; id != nil {
			ids[id.UUID] = p.nodes[i].Name
		}
	}
	return func(end string) (string, bool) {
		if _, here := names[end]; here {
			return end, true
		}
		if name, ok := member(end); ok {
			return name, true
		}
		if id, err := base.ParseID(end); err == nil {
			name, ok := ids[id.UUID]
			return name, ok
		}
		return "", false
	}
}

// names numbers the nodes by name. Members of the request follow, with numbers after the nodes.
func (p *graphPart) names() (map[string]int, error) {
	names := make(map[string]int, len(p.nodes)+len(p.members))
	enter := func(name, place string) error {
		if _, taken := names[name]; taken {
			return base.Errorf(base.CodeDuplicateName, "another node is called %q", name).WithField(place + ".name")
		}
		names[name] = len(names)
		return nil
	}
	for i := range p.nodes {
		if err := enter(p.nodes[i].Name, p.node(i)); err != nil {
			return nil, err
		}
	}
	for i, m := range p.members {
		if err := enter(m.Name, base.Element("members", i)); err != nil {
			return nil, err
		}
	}
	return names, nil
}

func (p *graphPart) eachSubflow(check func(s *FlowSubmission, at string) error) error {
	for i := range p.nodes {
		if p.nodes[i].Flow == nil {
			continue
		}
		if err := check(p.nodes[i].Flow, p.sub(i).at); err != nil {
			return err
		}
	}
	return nil
}

// CycleDetected is the refusal of edges that would close a cycle, given in the form of FindCycle (F19). The details contain all of its names.
func CycleDetected(cycle []string) *base.Error {
	const shown = 20
	text := strings.Join(cycle[:min(len(cycle), shown)], " -> ")
	if len(cycle) > shown {
		text += " -> ..."
	}
	return base.Errorf(base.CodeCycleDetected, "the edges would close a cycle: %s", text).With("cycle", cycle)
}

// DependencyExists is the refusal of an edge between members that are already joined by a different edge; it carries that edge (F19).
func DependencyExists(e FlowEdge) *base.Error {
	edge := map[string]any{"from": e.From, "to": e.To, "kind": string(e.Kind)}
	if e.Pass != "" {
		edge["pass"] = e.Pass
	}
	if !e.ID.IsZero() {
		edge["edge_id"] = e.ID.String()
	}
	return base.Errorf(base.CodeDependencyAlreadyExists, "an edge of another kind, or that passes something else, leads from %s to %s", e.From, e.To).With("edge", edge)
}
