package model

import (
	"context"
	"fmt"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// replay opens a finished execution again, most often a member (section 10).
func (m *loom) replay() {
	rarer, inside := m.d.rarely("skipped", 2), m.d.rarely("inside", 4)
	k := m.some(func(k *knot) bool { return k.over() && !k.orphan() && (k.status == skipped) == rarer })
	if inside {
		k = m.some(func(k *knot) bool { return k.over() && !k.orphan() && len(k.around()) > 0 })
	}
	if k == nil || m.d.rarely("any", 12) {
		if k = m.some(func(k *knot) bool { return !k.orphan() && (final(k.status) || m.d.rarely("active", 4)) }); k == nil {
			return
		}
	}
	r := engine.ReplayRequest{Cascade: pickOne(m.d, "cascade", "none", "skipped", "all", "all"), IgnoreDependencies: m.d.rarely("ignore dependencies", 2)}
	m.replayOne(k, r)
}

func (m *loom) replayOne(k *knot, r engine.ReplayRequest) {
	below := m.w.reopened(k, r.Cascade)
	code := m.w.replayRefusal(k, r, below)
	if code == "" {
		m.did("replay")
		m.did("replay " + r.Cascade)
		m.w.replay(k, below, r.KeepSteps)
	}
	m.each(fmt.Sprintf("replay %s, %+v", k.label(), r), code, func(ctx context.Context, to *subject) error {
		_, err := to.e.Replay(ctx, operator, k.ids[to.name].Given(), r, engine.Operator{})
		return err
	})
}

// orphan reports whether k is inside a sub-flow that its node has no more.
func (k *knot) orphan() bool {
	for ; k.net != nil && k.net.parent != nil && !k.net.spawned; k = k.net.parent {
		if k.net.parent.below != k.net {
			return true
		}
	}
	return false
}

// reopened are the descendants that a cascade concerns (F56).
func (w *fabric) reopened(k *knot, cascade string) (below []*knot) {
	if cascade == "none" || k.net == nil {
		return nil
	}
	seen := map[*knot]bool{k: true}
	for front := []*knot{k}; len(front) > 0; front = front[1:] {
		for _, t := range front[0].outbound() {
			if seen[t.to] {
				continue
			}
			seen[t.to] = true
			front = append(front, t.to)
			if cascade == "all" || t.to.status == skipped {
				below = append(below, t.to)
			}
		}
	}
	return below
}

// around are the finished sub-flows that k is in, with their nodes, from inside (F57).
func (k *knot) around() (nets []*net) {
	for n := k.net; n != nil && n.parent != nil && !n.spawned && n.isOver(); n = n.parent.net {
		nets = append(nets, n)
	}
	return nets
}

func (n *net) isOver() bool { return n.state == completed || n.state == failed || n.state == cancelled }

// replayRefusal is the code of L109, in its order; "": it is accepted.
func (w *fabric) replayRefusal(k *knot, r engine.ReplayRequest, below []*knot) base.Code {
	closed := func(n *net) bool { return n != nil && (n.state == cancelled || n.state == cancelling) }
	spent := func(k *knot) bool { return k.run >= k.replays }
	switch {
	case !final(k.status):
		return base.CodeExecutionNotTerminal
	case closed(k.net):
		return base.CodeFlowAlreadyTerminal
	case spent(k):
		return base.CodeMaxReplaysExhausted
	case k.status == skipped && !r.IgnoreDependencies && k.anew(nil) == impossible:
		return base.CodeDependenciesImpossible
	}
	if slices.ContainsFunc(below, func(d *knot) bool { return !final(d.status) && d.status != blocked }) {
		return base.CodeDescendantActive
	}
	if slices.ContainsFunc(below, func(d *knot) bool { return final(d.status) && spent(d) }) {
		return base.CodeMaxReplaysExhausted
	}
	for _, n := range k.around() {
		if closed(n.parent.net) {
			return base.CodeFlowAlreadyTerminal
		}
		if spent(n.parent) {
			return base.CodeMaxReplaysExhausted
		}
	}
	return ""
}

// anew is what the join of a member comes to over the present outcomes of its upstreams; those that are opened again have none (F54).
func (k *knot) anew(reopened []*knot) string {
	met, lost, open := 0, 0, 0
	for _, t := range k.inbound() {
		switch {
		case !final(t.from.status) || slices.Contains(reopened, t.from):
			open++
		case meets(t.kind, t.from.status):
			met++
		default:
			lost++
		}
	}
	return fateOf(k.spec, met, lost, open, k.net.sealed)
}

// replay opens k again, with those of its descendants that have ended, and the sub-flows around it.
func (w *fabric) replay(k *knot, below []*knot, keepSteps bool) {
	wasSkipped := k.status == skipped
	override := wasSkipped && k.anew(nil) == impossible
	if wasSkipped {
		w.happened("replay of a skipped member")
	}
	if k.sub != nil {
		w.happened("a new sub-flow")
	}
	all := []*knot{k}
	for _, d := range below {
		if final(d.status) {
			all = append(all, d)
		}
	}
	w.reopenNets(k)
	for _, one := range all {
		w.again(one)
		w.forgets(one, one == k, keepSteps)
	}
	for _, one := range all {
		w.unresolve(one, all)
		if one != k || wasSkipped {
			one.rejoin(w.now())
		}
	}
	if override {
		w.holds(k, overridden)
	}
	for _, one := range all {
		if one == k && override {
			continue
		}
		w.gate(one)
		w.decide(one)
		w.begins(one)
	}
}

// reopenNets opens the flows around k again, and the nodes of sub-flows (F57, F58).
func (w *fabric) reopenNets(k *knot) {
	around := k.around()
	if k.net != nil {
		w.reopenNet(k.net)
	}
	for _, n := range around {
		node := n.parent
		w.happened("a sub-flow opened again")
		w.again(node)
		node.below = n
		w.unresolve(node, nil)
		node.status, node.why = blocked, forSub
		w.reopenNet(node.net)
	}
}

func (w *fabric) reopenNet(n *net) {
	if n.isOver() {
		n.state = open
		n.told = append(n.told, "flow.reopened")
		w.happened("flow: reopened")
	}
}

// again resets what belongs to a run (L110).
func (w *fabric) again(k *knot) {
	k.run++
	k.status, k.why, k.started, k.resumes, k.held, k.byCancel = "", "", false, false, false, false
	k.delayUntil, k.endsAt, k.retriesLeft = 0, 0, k.retries
	k.gift, k.below, k.wait, k.lastWait, k.timeouts = nil, nil, nil, nil, map[string]base.Time{}
	switch {
	case k.life > 0:
		k.deadline = w.now().Add(k.life)
	case k.deadline <= w.now():
		k.deadline = 0
	}
}

// unresolve lets the edges wait again that lead from a reopened member into joins that are pending (F55). Those into others that are opened
// again are computed anew by them.
func (w *fabric) unresolve(k *knot, all []*knot) {
	for _, t := range k.outbound() {
		if t.to.join == pending && !slices.Contains(all, t.to) {
			t.reset()
		}
	}
}

func (t *thread) reset() { t.outcome, t.run, t.at, t.gift = "", 0, 0, nil }

// rejoin computes the edges that lead to a member anew from the upstreams as they are; its join is pending (F54, F56).
func (k *knot) rejoin(now base.Time) {
	for _, t := range k.inbound() {
		if t.reset(); final(t.from.status) {
			t.resolve(now)
		}
	}
	if k.join = ""; len(k.inbound()) > 0 {
		k.join, k.inputs = pending, map[string]entry{}
	}
}
