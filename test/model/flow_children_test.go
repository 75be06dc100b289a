package model

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// spawning is a spawn that is being drawn.
type spawning struct {
	k     *knot
	p     plot // what is new
	again []plan
	onEnd string
	code  base.Code
}

// spawn makes children of a running execution, some of which may be there already (F38, F39).
func (m *loom) spawn() {
	if sp := m.drawSpawn(); sp != nil {
		m.send(sp, nil)
	}
}

func (m *loom) spawnAndWait() {
	if sp := m.drawSpawn(); sp != nil {
		m.send(sp, m.drawWait(sp))
	}
}

func (m *loom) drawSpawn() *spawning {
	k := m.some(func(k *knot) bool { return k.status == working && k.below != nil })
	if k == nil || m.d.rarely("any", 2) {
		k = m.worker()
	}
	if k == nil {
		return nil
	}
	sp := &spawning{k: k, onEnd: pickOne(m.d, "on parent end", "", "", "cancel_on_failure", "cancel", "detach")}
	known := []*knot{}
	if k.below != nil {
		known = k.below.knots
	}
	if len(known) > 0 && m.d.rarely("again", 2) {
		again := pickOne(m.d, "child", known...)
		if one := again.origin; !again.lateIn && again.prints {
			if one.after = nil; m.d.rarely("another", 4) && one.sub == nil {
				one.variant += "x"
				sp.code = base.CodeNameTaken
			}
			sp.again = append(sp.again, one)
		}
	}
	if len(sp.again) == 0 || m.d.rarely("more", 2) {
		sp.p = m.plot(m.fresh(1+m.d.under("children", 3)), 1, 1)
	}
	if closed := k.below != nil && k.below.closed() != ""; closed && len(sp.p.plans) > 0 && sp.code == "" {
		sp.code = k.below.closed()
	}
	return sp
}

// send spawns, and waits if that is asked for.
func (m *loom) send(sp *spawning, a *asking) {
	k := sp.k
	r := engine.SpawnRequest{OnParentEnd: sp.onEnd}
	r.Children, r.Edges = m.parts(sp.p)
	for i := range sp.again {
		node := m.node(&sp.again[i])
		r.Children = append(r.Children, node)
	}
	code := sp.code
	if code == "" && a != nil {
		code = a.code
	}
	if code == "" {
		m.did(map[bool]string{true: "spawn_and_wait", false: "spawn"}[a != nil])
		m.spawned(sp)
	}
	var want engine.ChildrenWaitAnswer
	if a != nil {
		r.Wait = &a.r
		if code == "" {
			want = m.asked(k, a)
		}
	}
	m.each(fmt.Sprintf("spawn %s and %s by %s, on end %q, waiting %+v", sp.p, sp.again, k.label(), sp.onEnd, r.Wait), code, func(ctx context.Context, to *subject) error {
		r.ID, r.Fence = k.ids[to.name].Given(), k.fences[to.name]
		answer, err := to.e.Spawn(ctx, client, r)
		if err != nil {
			return err
		}
		k.below.took(to, answer.Children)
		m.same(to, "FI13: created", len(sp.p.plans), answer.Created)
		if a != nil {
			m.sameWait(to, k, want, *answer.Wait)
		}
		return nil
	})
}

// spawned does to the account what an accepted spawn does.
func (m *loom) spawned(sp *spawning) {
	k := sp.k
	if k.below == nil {
		n := m.w.newNet(fmt.Sprintf("%s/children %d", k.label(), k.run))
		n.parent, n.spawned, n.onEnd = k, true, "cancel_on_failure"
		k.below = n
	}
	n := k.below
	if sp.onEnd != "" {
		n.onEnd = sp.onEnd
	}
	if len(sp.p.plans) > 0 {
		n.revision++
		n.told = append(n.told, "flow.extended")
	}
	if len(sp.again) > 0 {
		m.did("a child spawned again")
	}
	for _, child := range m.w.weave(n, sp.p) {
		child.prints = true
	}
}

// asking is a wait for children that is being drawn.
type asking struct {
	r    engine.ChildrenWaitRequest
	code base.Code
}

// waitForChildren is F40.
func (m *loom) waitForChildren() {
	k := m.some(func(k *knot) bool { return k.status == working && k.below != nil })
	if k == nil || m.d.rarely("any", 10) {
		k = m.worker()
	}
	if k == nil {
		return
	}
	a := m.drawWait(&spawning{k: k})
	m.waitBy(k, a)
	if open := k.wait != nil && k.wait.cause == "" && a.r.TimeoutMS > 0; !open || m.d.rarely("patient", 2) {
		return
	}
	m.pass(5 * time.Second)
	if k.status == ready { // and asks the same again
		m.claimFrom([]string{k.lane})
		m.waitBy(k, a)
	}
}

func (m *loom) waitBy(k *knot, a *asking) {
	var want engine.ChildrenWaitAnswer
	if a.code == "" {
		m.did("wait_for_children")
		want = m.asked(k, a)
	}
	m.each(fmt.Sprintf("wait_for_children by %s: %+v", k.label(), a.r), a.code, func(ctx context.Context, to *subject) error {
		r := a.r
		r.ID, r.Fence = k.ids[to.name].Given(), k.fences[to.name]
		got, err := to.e.WaitForChildren(ctx, client, r)
		if err == nil {
			m.sameWait(to, k, want, got)
		}
		return err
	})
}

// drawWait draws what a parent asks for, now and then the same as in an earlier wait that ran out of time.
func (m *loom) drawWait(sp *spawning) *asking {
	a := &asking{}
	var names []string
	if sp.k.below != nil {
		for _, child := range sp.k.below.knots {
			names = append(names, child.name)
		}
	}
	for i := range sp.p.plans {
		names = append(names, sp.p.plans[i].name)
	}
	for _, name := range names {
		if m.d.rarely("named", 3) {
			a.r.Names = append(a.r.Names, name)
		}
	}
	if m.d.rarely("all", 2) {
		a.r.Names = nil
	}
	if m.d.rarely("missing", 12) {
		a.r.Names, a.code = append(a.r.Names, "zz"), base.CodeChildNotFound
	}
	a.r.Join = m.spec(max(len(names), 1))
	a.r.Kind = pickOne(m.d, "kind", core.AnyTerminal, core.AnyTerminal, core.SuccessOnly, core.FailureOnly)
	a.r.TimeoutMS = pickOne(m.d, "timeout", base.Millis(0), 550, 3050) // at no moment at which a deadline is
	if last := sp.k.lastWait; last != nil && sp.p.plans == nil && !m.d.rarely("another", 3) {
		a.r, a.code = *last, ""
	}
	return a
}

// asked answers a wait at once, or lets the parent wait.
func (m *loom) asked(k *knot, a *asking) engine.ChildrenWaitAnswer {
	wait := &await{spec: a.r.Join, kind: string(a.r.Kind)}
	if k.below != nil {
		for _, child := range k.below.knots {
			if len(a.r.Names) == 0 || slices.Contains(a.r.Names, child.name) {
				wait.children = append(wait.children, child)
			}
		}
	}
	var names []string
	for _, child := range wait.children {
		names = append(names, child.name)
	}
	slices.Sort(names)
	asked := a.r
	k.lastWait = &asked
	print := fmt.Sprint(names, a.r.Join, a.r.Kind, a.r.TimeoutMS)
	before := k.timeouts[print]
	state := wait.fate()
	if state == pending && before != 0 && before <= m.w.now() {
		state = "timeout"
	}
	if state != pending {
		m.did("wait: " + state)
		k.lastSeen = wait.outcomes()
		if a.r.Join.OnSatisfied == core.CancelRemaining && state != "timeout" {
			m.w.leaveLosers(state == satisfied, wait.children)
		}
		return engine.ChildrenWaitAnswer{State: state}
	}
	if a.r.TimeoutMS > 0 {
		if before == 0 {
			before = m.w.now().Add(a.r.TimeoutMS)
			k.timeouts[print] = before
		}
		wait.timeoutAt = before
	}
	k.wait = wait
	k.leave(true)
	k.status, k.why = blocked, forJoin
	return engine.ChildrenWaitAnswer{Waiting: true}
}

func (m *loom) sameWait(s *subject, k *knot, want, got engine.ChildrenWaitAnswer) {
	outcomes := map[string]string{}
	for _, c := range got.Children {
		outcomes[c.Name] = ""
		if c.Outcome != core.StatusNone {
			outcomes[c.Name] = c.Outcome.String()
		}
	}
	got.Children = nil
	m.same(s, "F40: the wait of "+k.label(), want, got)
	if !want.Waiting {
		m.same(s, "F40: the children of "+k.label(), k.lastSeen, outcomes)
	}
}
