package model

import (
	"fmt"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
)

// endNet ends a flow with its last member (F4, F51).
func (w *fabric) endNet(n *net) {
	switch {
	case !n.sealed && n.state == open, n.state != open && n.state != cancelling, n.left() > 0:
		return
	case n.state == cancelling:
		n.state = cancelled
	case slices.ContainsFunc(n.knots, w.isFailure):
		n.state = failed
	default:
		n.state = completed
	}
	n.ends(w)
}

// ends tells that the flow has ended.
func (n *net) ends(w *fabric) {
	n.told = append(n.told, "flow."+n.state)
	w.happened("flow: " + n.state)
	if n.parent != nil && !n.spawned {
		w.work = append(w.work, func() { w.endNode(n) })
	}
}

// left counts the members that have not ended.
func (n *net) left() (open int) {
	for _, k := range n.knots {
		if !final(k.status) {
			open++
		}
	}
	return open
}

// isFailure is F5.
func (w *fabric) isFailure(k *knot) bool {
	if k.status == succeeded || k.status == skipped || k.mayFail || k.lost() {
		return false
	}
	out := k.outbound()
	unheard := func(t *thread) bool { return t.to.join != satisfied && t.to.join != overridden }
	cared := len(out) > 0 && !slices.ContainsFunc(out, unheard)
	if cared {
		w.happened("a failure that somebody took care of")
	}
	return !cared
}

// weave makes the members and edges of a plot, as a submit, an extension or a spawn does. ends are the members that it may name.
func (w *fabric) weave(n *net, p plot) (made []*knot) {
	for i := range p.plans {
		k := w.knot(p.plans[i])
		k.net, k.part = n, n.part()
		n.knots = append(n.knots, k)
		made = append(made, k)
	}
	lines := slices.Clone(p.lines)
	for _, one := range p.plans {
		for _, from := range one.after {
			lines = append(lines, line{from, one.name, success, from})
		}
	}
	var reached []*knot
	for _, l := range lines {
		t := &thread{from: n.named(l.from), to: n.named(l.to), kind: l.kind, pass: l.pass}
		n.threads = append(n.threads, t)
		if final(t.from.status) {
			t.resolve(w.now())
			w.happened("an edge from one that has ended")
		}
		if t.to.join == "" {
			t.to.join = pending
		}
		if !slices.Contains(reached, t.to) {
			reached = append(reached, t.to)
		}
	}
	for _, k := range slices.Concat(reached, made) {
		if !final(k.status) {
			w.gate(k)
		}
	}
	for _, k := range reached {
		w.decide(k)
	}
	for _, k := range made {
		w.begins(k)
	}
	return made
}

func (w *fabric) knot(p plan) *knot {
	k := &knot{plan: p, origin: p, part: ownPart, text: "for " + p.name, ids: map[string]base.ID{}, fences: map[string]core.Fence{}, timeouts: map[string]base.Time{}, retriesLeft: p.retries, inputs: map[string]entry{}}
	if p.delay > 0 {
		k.delayUntil = w.now().Add(p.delay)
	}
	if p.life > 0 {
		k.deadline = w.now().Add(p.life)
	}
	w.knots = append(w.knots, k)
	return k
}

// part is the partition number of a flow: below an execution it is that one's.
func (n *net) part() uint8 {
	if n.parent != nil {
		return n.parent.part
	}
	return ownPart
}

// named finds a member.
func (n *net) named(name string) *knot {
	at := slices.IndexFunc(n.knots, func(k *knot) bool { return k.name == name })
	if at < 0 {
		return nil
	}
	return n.knots[at]
}

// newNet makes a flow without members.
func (w *fabric) newNet(label string) *net {
	n := &net{label: label, ids: map[string]base.ID{}, state: open, told: []string{"flow.created"}}
	w.nets = append(w.nets, n)
	return n
}

// seal lets nothing more come: a quorum that wants more edges than there are is impossible now (F3, F24).
func (w *fabric) seal(n *net) {
	n.sealed = true
	n.told = append(n.told, "flow.sealed")
	for _, k := range slices.Clone(n.knots) {
		w.decide(k)
	}
}

// beginSub makes the sub-flow of a node (F46). Its roots get the inputs of the node (F47).
func (w *fabric) beginSub(k *knot) {
	if k.status != blocked || k.why != forSub || k.below != nil {
		return
	}
	n := w.newNet(fmt.Sprintf("%s/sub %d", k.label(), k.run))
	n.sealed, n.parent, n.output, n.revision = true, k, k.sub.output, 1
	k.below = n
	for _, root := range w.weave(n, *k.sub) {
		if root.join == "" {
			root.inputs = k.inputs
		}
	}
	w.happened("a sub-flow")
}

func (k *knot) label() string {
	if k.net == nil {
		return k.name
	}
	return k.net.label + "." + k.name
}

// endNode ends a flow node with its sub-flow (F47).
func (w *fabric) endNode(n *net) {
	k := n.parent
	if k.status != blocked || k.why != forSub || k.below != n {
		return
	}
	w.happened("sub-flow: " + n.state)
	switch n.state {
	case completed:
		k.gift = nil
		if out := n.named(n.output); out != nil && out.status == succeeded {
			k.gift = out.gift
		}
		w.end(k, succeeded, "")
	case failed:
		w.end(k, failed, "subflow_failed")
	default:
		w.end(k, cancelled, "flow_cancelled")
	}
}

// parentEnded does what the end of a parent means for the flow below it (F44, F48).
func (w *fabric) parentEnded(k *knot, n *net, status string) {
	if !n.spawned {
		if k.below == n && final(k.status) {
			w.stop(n, stop{"cancel_all", "*"})
		}
		return
	}
	w.happened("parent " + n.onEnd + ": " + status)
	cancels := n.onEnd == "cancel" || n.onEnd == "cancel_on_failure" && status != succeeded
	seals := !n.sealed && (n.state == open || n.state == cancelling)
	if seals {
		n.sealed = true
		n.told = append(n.told, "flow.sealed")
	}
	if cancels && n.left() > 0 {
		w.stop(n, stop{"cancel_all", "*"})
	} else if seals {
		for _, child := range slices.Clone(n.knots) {
			w.decide(child)
		}
	}
}

var strengths = []string{"", "flow_only", "cancel_pending", "cancel_all"}

// stop is a cancel of a flow (section 9). It reports whether it does anything.
func (w *fabric) stop(n *net, s stop) bool {
	if n.state == completed || n.state == failed {
		return false
	}
	if n.cancel != nil && (n.left() == 0 || slices.Index(strengths, s.policy) <= slices.Index(strengths, n.cancel.policy)) {
		return false
	}
	if n.cancel != nil {
		w.happened("a stronger cancel")
	}
	n.cancel = &s
	n.told = append(n.told, "flow.cancel_requested")
	switch {
	case n.state == cancelled:
	case s.policy == "flow_only" || n.left() == 0:
		n.state = cancelled
		n.ends(w)
	default:
		n.state = cancelling
	}
	for _, k := range slices.Clone(n.knots) {
		switch {
		case s.policy == "cancel_pending" && k.sub != nil && k.below != nil && !final(k.status):
			w.work = append(w.work, func() { w.stopWithin(k, k.below, s) })
		case s.policy == "cancel_all" || s.policy == "cancel_pending" && !k.started:
			w.end(k, cancelled, "flow_cancelled")
		}
	}
	return true
}

// stopWithin takes a cancel of what is pending into the sub-flow of a node: what has started goes on there as well (F48, F49).
func (w *fabric) stopWithin(k *knot, n *net, s stop) {
	if !final(k.status) && k.below == n && k.net.cancel.policy == "cancel_pending" {
		w.happened("a cancel of what is pending in a sub-flow")
		w.stop(n, s)
	}
}

// decideWait ends the wait of a parent if its children decide it (F41).
func (w *fabric) decideWait(k *knot) {
	if k.wait == nil || k.wait.cause != "" {
		return
	}
	switch k.wait.fate() {
	case pending:
	case impossible:
		w.endWait(k, "children_impossible")
	default:
		w.endWait(k, "children")
	}
}

// fate is what the children make of a wait; none at all satisfy it.
func (a *await) fate() string {
	met, lost, open := 0, 0, 0
	for _, child := range a.children {
		switch {
		case !final(child.status):
			open++
		case meets(a.kind, child.status):
			met++
		default:
			lost++
		}
	}
	if fate := fateOf(a.spec, met, lost, open, true); fate != "" {
		return fate
	}
	return satisfied
}

func (a *await) outcomes() map[string]string {
	seen := map[string]string{}
	for _, child := range a.children {
		if seen[child.name] = ""; final(child.status) {
			seen[child.name] = child.status
		}
	}
	return seen
}

func (w *fabric) endWait(k *knot, cause string) {
	k.wait.cause, k.wait.seen = cause, k.wait.outcomes()
	k.resumes = true
	w.happened("parent: " + cause)
	w.gate(k)
	if k.wait.spec.OnSatisfied == core.CancelRemaining && cause != "children_timeout" {
		w.leaveLosers(cause == "children", k.wait.children)
	}
}

// due is the first moment at which a timer acts; 0: none.
func (w *fabric) due() (first base.Time) {
	note := func(at base.Time, armed bool) {
		if armed && at > 0 && (first == 0 || at < first) {
			first = at
		}
	}
	for _, k := range w.knots {
		note(k.deadline, !final(k.status))
		note(k.delayUntil, k.status == delayed)
		note(k.endsAt, k.status == working || k.status == granted)
		if k.wait != nil {
			note(k.wait.timeoutAt, k.wait.cause == "")
		}
	}
	return first
}

// wake lets everything act that is due now, a deadline before all else (L18).
func (w *fabric) wake() {
	now := w.now()
	at := func(due base.Time) bool { return due != 0 && due <= now }
	for _, k := range w.knots {
		switch {
		case final(k.status):
		case at(k.deadline):
			w.end(k, expired, "")
			w.happened("expired")
		case k.status == working && at(k.endsAt):
			k.leave(false)
			w.gate(k)
			w.happened("a lease that lapsed")
		case k.status == granted && at(k.endsAt):
			k.endsAt = 0
			w.gate(k)
		case k.wait != nil && k.wait.cause == "" && at(k.wait.timeoutAt):
			w.endWait(k, "children_timeout")
		case k.status == delayed && at(k.delayUntil):
			w.gate(k)
		}
	}
	w.follow()
}
