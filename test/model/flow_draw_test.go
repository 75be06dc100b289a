package model

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
)

// plans draws nodes with these names.
func (m *loom) plans(names []string, nested int) (all []plan) {
	for _, name := range names {
		p := plan{name: name, lane: pickOne(m.d, "lane", "a", "a", "b"), mayFail: m.d.rarely("may fail", 5), replays: pickOne(m.d, "replays", 10, 10, 10, 1)}
		if nested > 0 && m.d.rarely("sub-flow", 6) {
			sub := m.plot(names[:1+m.d.under("nodes", min(2, len(names)))], nested-1, 0)
			sub.output = pickOne(m.d, "output", "", sub.plans[len(sub.plans)-1].name)
			p.sub = &sub
		} else {
			if m.d.rarely("delay", 8) {
				p.delay = pickOne(m.d, "delay", base.Millis(500), 5000)
			}
			if m.d.rarely("life", 8) {
				m.made++
				p.life = 1500 + 100*base.Millis(m.made) // no two end at the same moment
			}
			p.retries = pickOne(m.d, "retries", 0, 0, 0, 1)
		}
		all = append(all, p)
	}
	return all
}

// plot draws a graph: edges lead from nodes to later ones. extra is by how much a quorum may exceed its edges.
func (m *loom) plot(names []string, nested, extra int) plot {
	p := plot{plans: m.plans(names, nested)}
	for i := range p.plans {
		var from []string
		for _, earlier := range p.plans[:i] {
			if !m.d.rarely("no edge", 3) {
				from = append(from, earlier.name)
			}
		}
		m.joinTo(&p, &p.plans[i], from, extra)
	}
	return p
}

// joinTo draws the edges that lead to a new node, and its join.
func (m *loom) joinTo(p *plot, to *plan, from []string, extra int) {
	if len(from) == 0 {
		return
	}
	to.spec = m.spec(len(from) + extra)
	for _, name := range from {
		l := line{name, to.name, pickOne(m.d, "kind", success, success, success, failure, whatever, whatever), pickOne(m.d, "pass", "", name)}
		if to.spec.Policy != core.AllOf && l.pass != "" && m.d.rarely("shared name", 3) {
			l.pass = "shared"
		}
		if l.kind == success && l.pass == name && m.d.rarely("after", 3) {
			to.after = append(to.after, name)
			continue
		}
		p.lines = append(p.lines, l)
	}
}

// spec draws a join over n edges.
func (m *loom) spec(n int) core.JoinSpec {
	spec := core.JoinSpec{Policy: pickOne(m.d, "policy", core.AllOf, core.AllOf, core.AnyOf, core.Quorum), OnSatisfied: pickOne(m.d, "on satisfied", core.LetRun, core.CancelRemaining)}
	if spec.Policy == core.Quorum {
		if spec.K = 1 + m.d.under("k", n); spec.K > 1 {
			m.did("a quorum of several")
		}
	}
	return spec
}

// String is for the log of a case.
func (p plan) String() string {
	text := fmt.Sprintf("%s%s:%s", p.name, p.variant, p.lane)
	if p.spec != (core.JoinSpec{}) {
		text += fmt.Sprintf(" %s %d %s", p.spec.Policy, p.spec.K, p.spec.OnSatisfied)
	}
	if p.sub != nil {
		text += fmt.Sprintf(" sub %s", *p.sub)
	}
	return text + fmt.Sprintf(" after %v delay %d life %d retries %d replays %d may fail %v", p.after, p.delay, p.life, p.retries, p.replays, p.mayFail)
}

// String is for the log of a case.
func (p plot) String() string { return fmt.Sprintf("{%s %s output %q}", p.plans, p.lines, p.output) }

// String is for the log of a case.
func (l line) String() string { return l.from + "->" + l.to + " " + l.kind + " " + l.pass }

// node writes a plan as a request has it.
func (m *loom) node(p *plan) core.FlowNode {
	n := core.FlowNode{Name: p.name, Lane: p.lane, Kind: "k" + p.variant, MayFail: p.mayFail, After: p.after}
	if p.spec != (core.JoinSpec{}) {
		spec := p.spec
		n.Join = &spec
	}
	if p.sub != nil {
		sub := m.submission(*p.sub)
		sub.Kind, sub.Namespace = "sub", ""
		n.Flow, n.Kind = &sub, ""
	} else {
		n.Input = &core.Payload{Data: []byte("for " + p.name), ContentType: "text/plain"}
	}
	if p.delay > 0 {
		delay := p.delay
		n.DelayMS = &delay
	}
	n.PolicyJSON = m.policyOf(p)
	return n
}

func (m *loom) policyOf(p *plan) []byte {
	policy := map[string]any{"max_replay_count": p.replays}
	if p.life > 0 {
		policy["timeout_policy"] = map[string]any{"execution_deadline_ms": p.life}
	}
	if p.sub == nil {
		policy["retry_policy"] = map[string]any{"max_retries": p.retries, "backoff": map[string]any{"strategy": "fixed", "delay_ms": 500}}
	}
	text, err := json.Marshal(policy)
	if err != nil {
		m.t.Fatal(err)
	}
	return text
}

// submission writes a plot as a request has it.
func (m *loom) submission(p plot) core.FlowSubmission {
	s := core.FlowSubmission{Kind: "flow", Namespace: home, Output: p.output}
	s.Nodes, s.Edges = m.parts(p)
	return s
}

func (m *loom) parts(p plot) (nodes []core.FlowNode, edges []core.FlowEdge) {
	for i := range p.plans {
		nodes = append(nodes, m.node(&p.plans[i]))
	}
	for _, l := range p.lines {
		edges = append(edges, core.FlowEdge{From: l.from, To: l.to, Kind: core.EdgeKind(l.kind), Pass: l.pass})
	}
	return nodes, edges
}

// some picks an execution; nil: none fits.
func (m *loom) some(fits func(k *knot) bool) *knot {
	var all []*knot
	for _, k := range m.w.knots {
		if fits(k) {
			all = append(all, k)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return pickOne(m.d, "execution", all...)
}

// in picks an execution in one of these statuses.
func (m *loom) in(statuses ...string) *knot {
	return m.some(func(k *knot) bool { return slices.Contains(statuses, k.status) })
}

// worker picks an execution that runs; if none does, it claims.
func (m *loom) worker() *knot {
	k := m.in(working)
	if k == nil {
		m.claimFrom([]string{"a", "b"})
		k = m.in(working)
	}
	return k
}

// someNet picks a flow, most often one that fits; nil: there is none.
func (m *loom) someNet(fits func(n *net) bool) *net {
	var all []*net
	for _, n := range m.w.nets {
		if fits(n) {
			all = append(all, n)
		}
	}
	if len(all) == 0 || m.d.rarely("any flow", 8) {
		all = m.w.nets
	}
	if len(all) == 0 {
		return nil
	}
	return pickOne(m.d, "flow", all...)
}

// fresh names nodes that a flow does not have.
func (m *loom) fresh(n int) (names []string) {
	for range n {
		m.made++
		names = append(names, fmt.Sprintf("n%d", m.made))
	}
	return names
}
