package model

import (
	"context"
	"fmt"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// ownPart is the partition number of all these flows, and of executions that may become members (F2).
const ownPart = 7

func (m *loom) newID(part uint8) *base.GivenID {
	m.made++
	given := base.ID{N: part, UUID: base.UUID{0: 5, 6: 0x70, 8: 0x80, 14: byte(m.made >> 8), 15: byte(m.made)}}.Given()
	return &given
}

// took notes the executions that an answer names.
func (n *net) took(s *subject, members map[string]base.ID) {
	for name, id := range members {
		if k := n.named(name); k != nil {
			k.ids[s.name] = id
		}
	}
}

// submitFlow submits a graph, and then perhaps again.
func (m *loom) submitFlow() {
	unsealed := m.d.rarely("unsealed", 3)
	p := m.plot([]string{"a", "b", "c", "d", "e"}[:2+m.d.under("nodes", 4)], 2, map[bool]int{true: 1}[unsealed])
	if m.d.rarely("output", 2) {
		p.output = pickOne(m.d, "output", p.plans...).name
	}
	s := m.submission(p)
	s.ID, s.Unsealed = m.newID(ownPart), unsealed
	if m.d.rarely("amiss", 4) {
		code := m.damage(&s)
		m.each("submit_flow amiss", code, func(ctx context.Context, to *subject) error {
			_, err := to.e.SubmitFlow(ctx, client, s)
			return err
		})
		return
	}
	n := m.w.newNet(fmt.Sprintf("f%d", len(m.w.nets)))
	n.sealed, n.output, n.revision = !unsealed, p.output, 1
	m.w.weave(n, p)
	m.did("submit_flow")
	send := func(created bool) func(ctx context.Context, to *subject) error {
		return func(ctx context.Context, to *subject) error {
			answer, err := to.e.SubmitFlow(ctx, client, s)
			if err != nil {
				return err
			}
			m.same(to, "created", created, answer.Created)
			n.ids[to.name] = answer.Flow.ID
			n.took(to, answer.Members)
			return nil
		}
	}
	m.each(fmt.Sprintf("submit_flow %s: %+v, unsealed %v", n.label, p, unsealed), "", send(true))
	if m.d.rarely("again", 6) {
		m.did("submitted again")
		m.each("submit_flow again", "", send(false))
	}
}

// damage breaks a submission in one way and tells the code of its refusal (F12, F19).
func (m *loom) damage(s *core.FlowSubmission) base.Code {
	first := s.Nodes[0].Name
	switch m.d.under("fault", 6) {
	case 0:
		s.Edges = append(s.Edges, core.FlowEdge{From: "zz", To: first})
		return base.CodeUnknownName
	case 1:
		s.Edges = append(s.Edges, core.FlowEdge{From: first, To: first})
		return base.CodeSelfReferencingEdge
	case 2:
		s.Nodes[0].Join = &core.JoinSpec{Policy: core.AnyOf}
		return base.CodeJoinWithoutEdges
	case 3:
		s.Unsealed = false
		s.Nodes = append(s.Nodes, core.FlowNode{Name: "q", Kind: "k", After: []string{first}, Join: &core.JoinSpec{Policy: core.Quorum, K: 2}})
		return base.CodeQuorumExceedsEdges
	case 4:
		s.Nodes = append(s.Nodes, core.FlowNode{Name: "q", Kind: "k", After: []string{first}})
		s.Edges = append(s.Edges, core.FlowEdge{From: "q", To: first, Kind: core.AnyTerminal})
		return base.CodeCycleDetected
	default:
		s.Nodes = append(s.Nodes, core.FlowNode{Name: "q", Kind: "k", After: []string{first}})
		s.Edges = append(s.Edges, core.FlowEdge{From: first, To: "q", Kind: core.AnyTerminal})
		return base.CodeDependencyAlreadyExists
	}
}

func (m *loom) createFlow() {
	s := core.FlowSubmission{Kind: "flow", Namespace: home, ID: m.newID(ownPart)}
	n := m.w.newNet(fmt.Sprintf("f%d", len(m.w.nets)))
	m.did("create_flow")
	m.each("create_flow "+n.label, "", func(ctx context.Context, to *subject) error {
		answer, err := to.e.CreateFlow(ctx, client, s)
		if err == nil {
			n.ids[to.name] = answer.Flow.ID
		}
		return err
	})
}

// closed is the refusal of a flow that takes no more (F7, F15).
func (n *net) closed() base.Code {
	switch {
	case n.state != open:
		return base.CodeFlowAlreadyTerminal
	case n.sealed:
		return base.CodeFlowSealed
	default:
		return ""
	}
}

// delta is an extension that is being drawn: what it adds, and the code with which it is refused.
type delta struct {
	n       *net
	x       core.FlowExtension
	p       plot
	joining *knot
	name    string // of who joins
	code    base.Code
}

// extendFlow adds nodes, members and edges, and may seal (F14..F21).
func (m *loom) extendFlow() {
	late := m.d.rarely("late", 2) // to one that has members which have ended, if there is any
	n := m.someNet(func(n *net) bool { return n.closed() == "" && (!late || slices.ContainsFunc(n.knots, (*knot).over)) })
	if n == nil {
		return
	}
	g := &delta{n: n, code: n.closed()}
	if m.d.rarely("expected", 3) {
		expected := n.revision
		if m.d.rarely("stale", 3) {
			expected++
			g.refuse(base.CodeStaleGraphRevision)
		}
		g.x.Expected = &expected
	}
	g.p.plans = m.plans(m.fresh(m.d.under("nodes", 3)), 1)
	m.sameNode(g)
	m.joinLate(g)
	for i := range g.p.plans {
		var from []string
		for _, k := range n.knots {
			if late && k.over() || m.d.rarely("from", 3) {
				from = append(from, k.name)
			}
		}
		for _, earlier := range g.p.plans[:i] {
			if m.d.rarely("from", 2) {
				from = append(from, earlier.name)
			}
		}
		m.joinTo(&g.p, &g.p.plans[i], from, 1)
	}
	m.edgeToOld(g)
	g.x.Seal = m.d.rarely("seal", 5)
	if nothing := len(g.p.plans)+len(g.p.lines)+len(g.x.Nodes)+len(g.x.Edges) == 0 && g.joining == nil; nothing && g.x.Seal && g.code == base.CodeFlowSealed {
		g.code = "" // to seal twice is ok (F3)
		if g.x.Expected != nil && *g.x.Expected != n.revision {
			g.code = base.CodeStaleGraphRevision
		}
	}
	m.extend(g)
}

// over reports whether the member has ended.
func (k *knot) over() bool { return final(k.status) }

// refuse notes a code unless one comes before it.
func (g *delta) refuse(code base.Code) {
	if g.code == "" {
		g.code = code
	}
}

// extend sends an extension.
func (m *loom) extend(g *delta) {
	n := g.n
	nodes, edges := m.parts(g.p)
	g.x.Nodes, g.x.Edges = append(nodes, g.x.Nodes...), append(edges, g.x.Edges...)
	if g.code == "" {
		m.did("extend_flow")
		m.grow(g)
	}
	text := g.text()
	m.each(text, g.code, func(ctx context.Context, to *subject) error {
		x := g.x
		x.Flow = n.ids[to.name].Given()
		if g.joining != nil {
			x.Members = []core.FlowMember{{ID: g.joining.ids[to.name].Given(), Name: g.name}}
		}
		answer, err := to.e.ExtendFlow(ctx, client, x)
		if err == nil {
			n.took(to, answer.Members)
			m.same(to, "graph revision", n.revision, answer.Flow.Revision)
		}
		return err
	})
}

func (g *delta) text() string {
	text := fmt.Sprintf("extend_flow %s: %s, seal %v", g.n.label, g.p, g.x.Seal)
	for i := range g.x.Edges[len(g.p.lines):] {
		text += fmt.Sprintf(", edge again %+v", g.x.Edges[len(g.p.lines)+i])
	}
	for i := range g.x.Nodes[len(g.p.plans):] {
		text += ", node again " + g.x.Nodes[len(g.p.plans)+i].Name
	}
	if g.joining != nil {
		text += fmt.Sprintf(", %s joins as %s", g.joining.label(), g.name)
	}
	return text
}

// grow does to the account what an accepted extension does. One that changes nothing raises nothing (F17).
func (m *loom) grow(g *delta) {
	n := g.n
	added := len(g.p.plans) + len(g.p.lines)
	for i := range g.p.plans {
		added += len(g.p.plans[i].after)
	}
	if g.joining != nil && g.joining.net == nil {
		g.joining.net, g.joining.name, g.joining.lateIn = n, g.name, true
		n.knots = append(n.knots, g.joining)
		m.did("joined late")
		added++
	}
	if added > 0 {
		n.told = append(n.told, "flow.extended")
	}
	if added > 0 || g.x.Seal && !n.sealed {
		n.revision++
	} else {
		m.did("unchanged")
	}
	sealing := g.x.Seal && !n.sealed
	n.sealed = n.sealed || g.x.Seal
	m.w.weave(n, g.p)
	if sealing {
		m.w.seal(n)
	}
}

// sameNode asks for a node that is there already: as it is, or another of its name (F16).
func (m *loom) sameNode(g *delta) {
	if !m.d.rarely("a node again", 6) {
		return
	}
	var known []*knot
	for _, k := range g.n.knots {
		if len(k.inbound()) == 0 && !k.lateIn && !g.n.spawned && k.spec == k.origin.spec {
			known = append(known, k)
		}
	}
	if len(known) == 0 {
		return
	}
	again := pickOne(m.d, "node", known...).plan
	if m.d.rarely("another", 2) && again.sub == nil {
		again.variant += "x"
		g.refuse(base.CodeNameTaken)
	}
	node := m.node(&again)
	g.x.Nodes = append(g.x.Nodes, node)
}

// joinLate makes an execution a member that was there before (F16).
func (m *loom) joinLate(g *delta) {
	if !m.d.rarely("join late", 3) {
		return
	}
	k := m.some(func(k *knot) bool { return k.net == nil || k.lateIn })
	if k == nil || m.d.rarely("any", 8) {
		k = m.some(func(*knot) bool { return true })
	}
	if k == nil || g.n.under(k) {
		return
	}
	g.joining, g.name = k, m.fresh(1)[0]
	if k.part != g.n.part() {
		g.refuse(base.CodePartitionMismatch)
	}
	if k.net != nil {
		if k.net == g.n && k.lateIn && m.d.rarely("same", 2) {
			g.name = k.name // it is there already
			return
		}
		g.refuse(base.CodeExecutionAlreadyInFlow)
	}
}

// under reports whether the flow hangs below an execution.
func (n *net) under(k *knot) bool {
	for ; n != nil && n.parent != nil; n = n.parent.net {
		if n.parent == k {
			return true
		}
	}
	return false
}

// edgeToOld draws an edge to a member that is there already (F19, F21).
func (m *loom) edgeToOld(g *delta) {
	n := g.n
	if len(n.knots) == 0 || !m.d.rarely("to a member", 2) {
		return
	}
	to := pickOne(m.d, "to", n.knots...)
	if at := slices.IndexFunc(n.knots, func(k *knot) bool { return k.join != "" && k.join != pending }); at >= 0 && m.d.rarely("decided", 2) {
		to = n.knots[at]
	}
	l := line{"", to.name, pickOne(m.d, "kind", success, failure, whatever), ""}
	from := []string{}
	for _, k := range n.knots {
		from = append(from, k.name)
	}
	for i := range g.p.plans {
		from = append(from, g.p.plans[i].name)
	}
	l.from = pickOne(m.d, "from", from...)
	l.pass = pickOne(m.d, "pass", "", l.from)
	known := slices.IndexFunc(n.threads, func(t *thread) bool { return t.from.name == l.from && t.to == to })
	switch {
	case l.from == l.to:
		g.refuse(base.CodeSelfReferencingEdge)
	case known >= 0 && m.d.rarely("the same", 2):
		t := n.threads[known]
		g.x.Edges = append(g.x.Edges, core.FlowEdge{From: l.from, To: l.to, Kind: core.EdgeKind(t.kind), Pass: t.pass})
		return
	case known >= 0:
		if t := n.threads[known]; t.kind == l.kind && t.pass == l.pass {
			return
		}
		g.refuse(base.CodeDependencyAlreadyExists)
	case to.join != "" && to.join != pending:
		g.refuse(base.CodeJoinAlreadyDecided)
	case to.started || final(to.status) || to.status == granted || to.below != nil:
		g.refuse(base.CodeDownstreamAlreadyStarted)
	case g.leads(to.name, l.from):
		g.refuse(base.CodeCycleDetected)
	}
	g.p.lines = append(g.p.lines, l)
}

// leads reports whether a way leads from one member to another, new edges included.
func (g *delta) leads(from, to string) bool {
	next := map[string][]string{}
	for _, t := range g.n.threads {
		next[t.from.name] = append(next[t.from.name], t.to.name)
	}
	for _, l := range g.p.lines {
		next[l.from] = append(next[l.from], l.to)
	}
	for i := range g.p.plans {
		for _, name := range g.p.plans[i].after {
			next[name] = append(next[name], g.p.plans[i].name)
		}
	}
	seen := map[string]bool{from: true}
	for front := []string{from}; len(front) > 0; front = front[1:] {
		for _, name := range next[front[0]] {
			if !seen[name] {
				seen[name] = true
				front = append(front, name)
			}
		}
	}
	return seen[to]
}

// sealFlow seals a flow, which may be sealed already (F3).
func (m *loom) sealFlow() {
	n := m.someNet(func(n *net) bool { return n.state == open && !n.spawned })
	if n == nil {
		return
	}
	g := &delta{n: n, x: core.FlowExtension{Seal: true}}
	if n.state != open {
		g.code = base.CodeFlowAlreadyTerminal
	} else {
		m.did("seal")
	}
	m.extend(g)
}

// setJoin is F18.
func (m *loom) setJoin() {
	n := m.someNet(func(n *net) bool { return n.closed() == "" && len(n.knots) > 0 })
	if n == nil || len(n.knots) == 0 {
		return
	}
	k := pickOne(m.d, "member", n.knots...)
	spec := m.spec(2)
	if m.d.rarely("as it is", 4) {
		spec = k.spec
	}
	code, changed := base.Code(""), spec != k.spec
	if changed {
		code = n.closed()
		if len(k.inbound()) > 0 {
			code = base.CodeJoinAlreadyFixed
		}
	}
	if code == "" && changed {
		k.spec = spec
		n.revision++
		n.told = append(n.told, "flow.extended")
		m.did("set_join")
	}
	m.each(fmt.Sprintf("set_join of %s to %+v", k.label(), spec), code, func(ctx context.Context, to *subject) error {
		_, got, err := to.e.SetJoin(ctx, client, n.ids[to.name].Given(), k.name, spec)
		if err == nil {
			m.same(to, "changed", changed, got)
		}
		return err
	})
}

// cancelFlow is section 9.
func (m *loom) cancelFlow() {
	inner := m.d.rarely("inner", 3)
	n := m.someNet(func(n *net) bool {
		return (n.parent != nil) == inner && (n.state == open || n.state == failed || n.cancel != nil && n.left() > 0)
	})
	if n == nil {
		return
	}
	m.cancelBy(n, pickOne(m.d, "policy", strengths[1:]...))
	if n.left() > 0 && m.d.rarely("more", 2) {
		m.cancelBy(n, "cancel_all")
	}
}

func (m *loom) cancelBy(n *net, policy string) {
	m.made++
	s := stop{policy, fmt.Sprintf("because %d", m.made)}
	m.w.stop(n, s)
	want := engine.CancelFlowAnswer{State: core.FlowState(n.state), AlreadyTerminal: n.cancel == nil}
	if n.cancel != nil {
		want.Policy, want.Reason, want.Remaining = core.CancelPolicy(n.cancel.policy), n.cancel.reason, n.left()
		for _, k := range n.knots {
			if k.byCancel {
				want.Cancelled++
			}
		}
		want.FinishedBefore = len(n.knots) - n.left() - want.Cancelled
		if n.state == cancelling && n.left() == 0 {
			want.State = core.FlowStopped
		}
		if n.cancel.policy == "flow_only" {
			want.Remaining = 0
		}
		m.did("cancel_flow")
	} else {
		m.did("already_terminal")
	}
	m.each(fmt.Sprintf("cancel_flow %s: %+v", n.label, s), "", func(ctx context.Context, to *subject) error {
		got, err := to.e.CancelFlow(ctx, operator, engine.CancelFlowRequest{Flow: n.ids[to.name].Given(), Policy: core.CancelPolicy(s.policy), Reason: s.reason})
		if n.cancel != nil && n.cancel.reason == "*" {
			got.Reason = "*" // whatever the engine says for itself
		}
		m.same(to, "cancel_flow", want, got)
		return err
	})
}
