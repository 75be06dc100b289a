package core

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// KindFlowNode is the kind of the execution of a flow node (F46). No worker claims it: its membership distinguishes it from a handler's kind of the
// same name.
const KindFlowNode = "flow"

// checkMemberName: names of members and of inputs, 1..64 of `[A-Za-z0-9][A-Za-z0-9._-]*` (F33).
func checkMemberName(text string) string {
	if why := base.CheckLength(text, 1, 64); why != "" {
		return why
	}
	if why := base.CheckNameText(text); why != "" || strings.Contains(text, ":") {
		return "must be letters, digits and . _ - beginning with a letter or digit"
	}
	return ""
}

// checkContent checks defaults, nodes and edges one by one, in request order. Defaults are filled into copies.
func (p *graphPart) checkContent() error {
	if err := p.checkDefaults(); err != nil {
		return err
	}
	p.nodes, p.edges = slices.Clone(p.nodes), slices.Clone(p.edges)
	for i := range p.nodes {
		if err := p.checkNode(i); err != nil {
			return err
		}
	}
	for i := range p.edges {
		if err := p.edges[i].checkShape(p.at + base.Element("edges", i)); err != nil {
			return err
		}
	}
	return nil
}

// checkDefaults refuses what only a single node can have: in the defaults it would have no effect.
func (p *graphPart) checkDefaults() error {
	d := p.defaults
	for _, own := range []struct {
		field string
		given bool
	}{
		{"execution_id", d.ID != nil},
		{"name", d.Name != ""},
		{"join", d.Join != nil},
		{"may_fail", d.MayFail},
		{"after", len(d.After) > 0},
		{"flow", d.Flow != nil},
	} {
		if own.given {
			return invalidFlow(p.at+"defaults."+own.field, "is given to the nodes themselves")
		}
	}
	return nil
}

func (p *graphPart) checkNode(i int) error {
	n, at := &p.nodes[i], p.node(i)
	if err := invalidFlow(at+".name", checkMemberName(n.Name)); err != nil {
		return err
	}
	for j, name := range n.After {
		if name == "" {
			return invalidFlow(at+"."+base.Element("after", j), "is required")
		}
	}
	switch {
	case n.Flow == nil && n.Kind == "" && p.defaults.Kind == "":
		return invalidFlow(at+".kind", "is required: a node has a kind or a flow")
	case n.Flow == nil:
		return nil
	case n.Kind != "":
		return invalidFlow(at+".flow", "a node has a kind or a flow, not both")
	case n.Priority != nil:
		return invalidFlow(at+".priority", "a node with a flow is claimed by no worker: give a priority to the nodes inside")
	case n.Input != nil:
		return invalidFlow(at+".input", "a node with a flow has no handler that would take an input: give it to the nodes inside")
	}
	inner := *n.Flow
	n.Flow = &inner
	inner.Kind = cmp.Or(inner.Kind, n.Name)
	return inner.checkSubflow(at + ".flow.")
}

// checkSubflow checks the definition of a sub-flow. Its kind defaults to the node's name; namespace and creator are those of the enclosing flow,
// and it is sealed (F46).
func (s *FlowSubmission) checkSubflow(at string) error {
	for _, outer := range []struct {
		field string
		given bool
	}{
		{"flow_id", s.ID != nil},
		{"namespace", s.Namespace != ""},
		{"idempotency_key", s.IdempotencyKey != ""},
		{"seal", s.Unsealed},
		{"budgets", len(s.Budgets) > 0},
	} {
		if outer.given {
			return invalidFlow(at+outer.field, "is not for a flow inside another")
		}
	}
	return s.checkContent(at)
}

func (e *FlowEdge) checkShape(at string) error {
	e.Kind = cmp.Or(e.Kind, SuccessOnly)
	switch {
	case e.From == "":
		return invalidFlow(at+".from", "is required")
	case e.To == "":
		return invalidFlow(at+".to", "is required")
	case !e.Kind.Known():
		return base.Errorf(base.CodeInvalidFlow, "%q is not a kind of edges", base.CutText(string(e.Kind), 80)).WithField(at + ".kind").
			WithHint("use success_only, failure_only or any_terminal")
	case e.Pass == "":
		return nil
	}
	return invalidFlow(at+".pass", checkMemberName(e.Pass))
}

// Submission returns the submission of node i, with omitted fields taken from the defaults, not yet normalized. The submission of the flow must
// have passed CheckShape.
func (s *FlowSubmission) Submission(i int) Submission {
	n := s.Nodes[i].Submission(s.Namespace, s.Creator, &s.Defaults)
	if n.Trace == nil {
		n.Trace = s.Trace
	}
	return n
}

// Submission returns the submission of the node, with omitted fields taken from the defaults (F9), not yet normalized. A node with a flow has
// KindFlowNode and no input, neither its own nor that of the defaults. Like every other node it has the lane that it or the defaults name, else
// DefaultLane, but takes no slot of it (F46). Flow and membership are added by the engine.
func (n *FlowNode) Submission(namespace, creator string, defaults *FlowNode) Submission {
	s := Submission{
		ID: n.ID, Namespace: namespace, Creator: creator, Trace: n.Trace,
		Lane: cmp.Or(n.Lane, defaults.Lane), Kind: cmp.Or(n.Kind, defaults.Kind), DeadlineAt: cmp.Or(n.DeadlineAt, defaults.DeadlineAt),
		DelayUntil: n.DelayUntil, DelayMS: n.DelayMS, PolicyJSON: n.PolicyJSON, Tags: n.Tags,
	}
	if n.Flow != nil {
		s.Kind = KindFlowNode
	}
	if in := n.input(defaults); in != nil {
		s.Input = *in
	}
	if priority := cmp.Or(n.Priority, defaults.Priority); priority != nil {
		s.Priority = *priority
	}
	if s.DelayUntil == 0 && s.DelayMS == nil {
		s.DelayUntil, s.DelayMS = defaults.DelayUntil, defaults.DelayMS
	}
	if len(s.PolicyJSON) == 0 {
		s.PolicyJSON = defaults.PolicyJSON
	}
	if s.Tags == nil {
		s.Tags = defaults.Tags
	}
	return s
}

// input returns the input that the node will have; nil if none.
func (n *FlowNode) input(defaults *FlowNode) *Payload {
	if n.Flow != nil {
		return nil
	}
	return cmp.Or(n.Input, defaults.Input)
}

// NodeCheck checks the submission of a node. place is where the request has the node, inside reports whether it is one of a sub-flow.
type NodeCheck func(place string, inside bool, s *Submission) error

// CheckNodes calls check for the submission of each node, those of sub-flows included, in request order, and adds the place to a refusal (F12). An
// execution id that occurs in two nodes is id_conflict. The request must have passed CheckShape.
func (s *FlowSubmission) CheckNodes(check NodeCheck) error {
	return s.part("").checkNodes(s.Namespace, s.Creator, map[base.UUID]bool{}, check)
}

// CheckNodes is FlowSubmission.CheckNodes for an extension of a flow in that namespace. Nodes that exist already are skipped: they do not change.
func (x *FlowExtension) CheckNodes(namespace, creator string, there func(name string) bool, check NodeCheck) error {
	p := x.part()
	p.there = there
	return p.checkNodes(namespace, creator, map[base.UUID]bool{}, check)
}

// CheckNodes is FlowExtension.CheckNodes for a spawn of an execution in that namespace.
func (s *FlowSpawn) CheckNodes(namespace, creator string, there func(name string) bool, check NodeCheck) error {
	p := s.part()
	p.there = there
	return p.checkNodes(namespace, creator, map[base.UUID]bool{}, check)
}

func (p *graphPart) checkNodes(namespace, creator string, ids map[base.UUID]bool, check NodeCheck) error {
	for i := range p.nodes {
		if p.there != nil && p.there(p.nodes[i].Name) {
			continue
		}
		s := p.nodes[i].Submission(namespace, creator, p.defaults)
		if err := check(p.node(i), p.at != "", &s); err != nil {
			return AtPlace(err, p.node(i))
		}
		if s.ID != nil {
			if ids[s.ID.UUID] {
				return base.Errorf(base.CodeIDConflict, "another node of the request has this id").WithField(p.node(i) + ".execution_id")
			}
			ids[s.ID.UUID] = true
		}
		if p.nodes[i].Flow == nil {
			continue
		}
		if err := p.nodes[i].checkOwnPolicy(); err != nil {
			return AtPlace(err, p.node(i))
		}
		if err := p.sub(i).checkNodes(namespace, creator, ids, check); err != nil {
			return err
		}
	}
	return nil
}

// checkOwnPolicy refuses what the policy of a flow node says about workers: it has none, so that it would have no effect. What the defaults say
// is for the other nodes.
func (n *FlowNode) checkOwnPolicy() error {
	policy, err := ParsePolicy(n.PolicyJSON)
	if err != nil {
		return err
	}
	field := policy.ofWorkers()
	if field == "" {
		return nil
	}
	return base.Errorf(base.CodeInvalidPolicy, "a node with a flow is claimed by no worker").WithField(field).WithHint("give it to the nodes inside")
}

// AtPlace prefixes the field of a refusal with the place of the part: lane becomes nodes[3].lane, an empty field nodes[3]. Policy fields are
// relative to the policy, so the policy is inserted between. Other errors, and those without a place, are returned unchanged.
func AtPlace(err error, place string) error {
	var refusal *base.Error
	if place == "" || !errors.As(err, &refusal) {
		return err
	}
	placed := *refusal
	if (placed.Code == base.CodeInvalidPolicy || placed.Code == base.CodeInvalidCapabilities) && placed.Field != "policy" {
		placed.Field = inPlace("policy", placed.Field)
	}
	return placed.WithField(inPlace(place, placed.Field))
}

// inPlace returns the place of a field of the part at place; place itself if there is no field.
func inPlace(place, field string) string {
	if place == "" || field == "" {
		return place + field
	}
	return place + "." + field
}
