package core

import (
	"cmp"
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// MaxFlowInput is the maximum total size of the inputs of one request in bytes, equal to that of a request body (section 12 of the flows). A server
// that allows a larger payload allows one of that size here too.
const MaxFlowInput = 32 << 20

// FlowSpawn requests children of a running worker (F38): nodes that may start at once, and edges among them and earlier children.
type FlowSpawn struct {
	Defaults    FlowNode
	Children    []FlowNode
	Edges       []FlowEdge
	OnParentEnd string // "": cancel_on_failure (F44)
}

// graphPart is what submit, extend, spawn and the definition of a sub-flow have in common.
type graphPart struct {
	at       string // prefix of every place: "" in the request itself, "nodes[2].flow." in a sub-flow
	list     string // the field name of the list of nodes
	defaults *FlowNode
	nodes    []FlowNode
	edges    []FlowEdge
	members  []FlowMember
	there    func(name string) bool // reports whether a node is a member already; nil: none is
}

func (s *FlowSubmission) part(at string) *graphPart {
	return &graphPart{at: at, list: "nodes", defaults: &s.Defaults, nodes: s.Nodes, edges: s.Edges}
}

func (x *FlowExtension) part() *graphPart {
	return &graphPart{list: "nodes", defaults: &x.Defaults, nodes: x.Nodes, edges: x.Edges, members: x.Members}
}

func (s *FlowSpawn) part() *graphPart {
	return &graphPart{list: "children", defaults: &s.Defaults, nodes: s.Children, edges: s.Edges}
}

// node returns the place of a node.
func (p *graphPart) node(i int) string { return p.at + base.Element(p.list, i) }

// sub returns the part for the sub-flow of a node.
func (p *graphPart) sub(i int) *graphPart { return p.nodes[i].Flow.part(p.node(i) + ".flow.") }

// CheckShape fills in defaults and checks what depends neither on the nodes' own submissions nor on the graph (F12): sizes, limits, texts, and that
// each node has a kind or a sub-flow. Sub-flows are checked too, at any depth (F46). It changes copies, never the caller's data. Errors:
// invalid_flow, flow_limit_exceeded, nesting_limit_exceeded, payload_too_large, invalid_id, invalid_argument (namespace, creator, tags),
// invalid_tag_key, invalid_budget; the field is the place, such as nodes[3].name.
func (s *FlowSubmission) CheckShape(limits base.Limits) error {
	if err := s.part("").checkSizes(limits, MaxFlowRequestNodes); err != nil {
		return err
	}
	s.Namespace = cmp.Or(s.Namespace, base.DefaultNamespace)
	if s.ID != nil && s.ID.UUID.IsZero() {
		return base.Errorf(base.CodeInvalidID, "the zero UUID names no flow").WithField("flow_id")
	}
	checks := [...]error{
		base.CheckNamespace(s.Namespace),
		base.CheckCreator(s.Creator),
		invalidFlow("idempotency_key", base.CheckPlain(s.IdempotencyKey, 0, base.MaxIdempotencyKey)),
	}
	for _, err := range checks {
		if err != nil {
			return err
		}
	}
	if _, err := s.OwnBudgets(); err != nil {
		return err
	}
	return s.checkContent("")
}

// checkContent checks what a request and the definition of a sub-flow have in common.
func (s *FlowSubmission) checkContent(at string) error {
	if err := invalidFlow(at+"kind", base.CheckGraphic(s.Kind, 128)); err != nil {
		return err
	}
	if err := base.CheckTags(s.Tags); err != nil {
		return AtPlace(err, strings.TrimSuffix(at, "."))
	}
	p := s.part(at)
	if err := p.checkContent(); err != nil {
		return err
	}
	s.Nodes, s.Edges = p.nodes, p.edges
	return nil
}

// CheckShape is FlowSubmission.CheckShape for an extension (F14, F15), with the same errors.
func (x *FlowExtension) CheckShape(limits base.Limits) error {
	p := x.part()
	if err := p.checkSizes(limits, MaxFlowRequestNodes); err != nil {
		return err
	}
	for i, m := range x.Members {
		if err := invalidFlow(base.Element("members", i)+".name", checkMemberName(m.Name)); err != nil {
			return err
		}
	}
	if err := p.checkContent(); err != nil {
		return err
	}
	x.Nodes, x.Edges = p.nodes, p.edges
	return nil
}

// CheckShape is FlowSubmission.CheckShape for a spawn (F38), with the same errors; the nodes are children[0] and so on.
func (s *FlowSpawn) CheckShape(limits base.Limits) error {
	p := s.part()
	if err := p.checkSizes(limits, MaxSpawned); err != nil {
		return err
	}
	switch s.OnParentEnd {
	case "":
		s.OnParentEnd = CancelOnFailure
	case CancelOnFailure, CancelAlways, Detach:
	default:
		return base.Invalid("on_parent_end", "must be cancel_on_failure, cancel or detach")
	}
	if err := p.checkContent(); err != nil {
		return err
	}
	s.Children, s.Edges = p.nodes, p.edges
	return nil
}

// invalidFlow returns invalid_flow for what a check found, nil for "".
func invalidFlow(field, why string) error {
	if why == "" {
		return nil
	}
	return base.Errorf(base.CodeInvalidFlow, "%s", why).WithField(field)
}

// flowSize is the size of one request, over all its sub-flows.
type flowSize struct{ nodes, edges, input int }

// checkSizes runs before all other checks of the parts, so that no input is walked further than the limits allow.
func (p *graphPart) checkSizes(limits base.Limits, nodes int) error {
	if len(p.nodes) > nodes {
		return limitExceeded(p.list, "nodes", len(p.nodes), nodes)
	}
	var size flowSize
	if err := size.add(p, 0); err != nil {
		return err
	}
	return base.CheckSize(p.list, size.input, max(MaxFlowInput, limits.MaxPayload))
}

func (z *flowSize) add(p *graphPart, depth int) error {
	if depth > MaxFlowDepth {
		return nestingExceeded(strings.TrimSuffix(p.at, ".flow."))
	}
	z.nodes += len(p.nodes) + len(p.members)
	z.edges += len(p.edges)
	for i := range p.nodes {
		n := &p.nodes[i]
		z.edges += len(n.After)
		if in := n.input(p.defaults); in != nil {
			z.input += len(in.Data)
		}
	}
	if z.nodes > MaxFlowRequestNodes {
		return limitExceeded(p.at+p.list, "nodes", z.nodes, MaxFlowRequestNodes)
	}
	if z.edges > MaxFlowRequestEdges {
		return limitExceeded(p.at+"edges", "edges", z.edges, MaxFlowRequestEdges)
	}
	if err := p.checkInbound(); err != nil {
		return err
	}
	for i := range p.nodes {
		if p.nodes[i].Flow == nil {
			continue
		}
		if err := z.add(p.sub(i), depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (p *graphPart) checkInbound() error {
	inbound := map[string]int{}
	for _, e := range p.drawn(nil) {
		if inbound[e.To]++; inbound[e.To] > MaxInboundEdges {
			return limitExceeded(e.Place("to"), "edges into one node", inbound[e.To], MaxInboundEdges)
		}
	}
	return nil
}

func limitExceeded(place, what string, n, limit int) error {
	return base.Errorf(base.CodeFlowLimitExceeded, "%d %s, at most %d are allowed", n, what, limit).
		WithField(place).With("count", n).With("limit", limit)
}

// CheckGrowth refuses more members or edges than a flow, or a run of a parent, may have in total: flow_limit_exceeded. list is the field name of
// the nodes in the request.
func (f *Flow) CheckGrowth(list string, members, edges int) error {
	what, limit := "members", MaxFlowMembers
	if f.OfChildren() {
		what, limit = "children", MaxChildren
	}
	if n := f.Nodes + members; n > limit {
		return limitExceeded(list, what, n, limit)
	}
	if n := f.Edges + edges; n > MaxFlowEdges {
		return limitExceeded("edges", "edges", n, MaxFlowEdges)
	}
	return nil
}

func nestingExceeded(place string) error {
	return base.Errorf(base.CodeNestingLimitExceeded, "flows are nested at most %d deep", MaxFlowDepth).WithField(place).With("limit", MaxFlowDepth)
}

// CheckNesting refuses nodes whose sub-flows would be nested too deep in a flow of that depth: nesting_limit_exceeded (F45). list is the field name
// of the nodes in the request. They have passed CheckShape.
func CheckNesting(depth int, list string, nodes []FlowNode) error {
	for i := range nodes {
		if nodes[i].Flow == nil {
			continue
		}
		place := base.Element(list, i)
		if depth >= MaxFlowDepth {
			return nestingExceeded(place)
		}
		if err := CheckNesting(depth+1, place+".flow.nodes", nodes[i].Flow.Nodes); err != nil {
			return err
		}
	}
	return nil
}

// OwnBudgets reads the budgets that are made with the flow and have it as their scope (B3). Their form and maximum number are those of the field
// budgets of a policy. Error: invalid_budget with the place, such as budgets[0].dimensions.
func (s *FlowSubmission) OwnBudgets() ([]BudgetDefinition, error) {
	switch {
	case len(s.Budgets) == 0:
		return nil, nil
	case len(s.Budgets) > MaxPolicySize:
		return nil, invalidBudget("budgets", "%d bytes, at most %d are allowed", len(s.Budgets), MaxPolicySize)
	case !utf8.Valid(s.Budgets) || !json.Valid(s.Budgets):
		return nil, invalidBudget("budgets", "is not valid JSON")
	}
	var all []BudgetDefinition
	r := policyReader{base.ValueReader{Text: s.Budgets, Path: []string{"budgets"}}}
	var wrong *base.Error
	if err := r.budgets(&all); errors.As(err, &wrong) {
		// The messages of the reader are about policies and executions.
		why := strings.NewReplacer("the execution itself", "the flow itself", "a field of the policy", "a field of a budget").Replace(wrong.Message)
		return nil, invalidBudget(wrong.Field, "%s", why)
	}
	return all, nil
}
