package model

import (
	"context"
	"fmt"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/condition"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// submitOne submits an execution outside any flow.
func (m *loom) submitOne() {
	p := m.plans(m.fresh(1), 0)[0]
	part := uint8(ownPart)
	if m.d.rarely("foreign", 4) {
		part++
	}
	m.submitPlan(p, part)
}

// submitPlan submits an execution outside any flow. That it may fail is said of a node alone (F9): who joins a flow later comes with an id
// and a name (F14), and counts as every member does (F5).
func (m *loom) submitPlan(p plan, part uint8) *knot {
	p.mayFail = false
	k := m.w.knot(p)
	k.part = part
	m.w.gate(k)
	n := m.node(&p)
	s := core.Submission{ID: m.newID(k.part), Namespace: home, Lane: n.Lane, Kind: n.Kind, Input: *n.Input, DelayMS: n.DelayMS, PolicyJSON: n.PolicyJSON}
	m.did("submit")
	m.each("submit "+k.name, "", func(ctx context.Context, to *subject) error {
		answer, err := to.e.Submit(ctx, client, s)
		k.ids[to.name] = answer.ID
		return err
	})
	return k
}

func (m *loom) claim() {
	m.claimFrom(pickOne(m.d, "lanes", []string{"a"}, []string{"b"}, []string{"a", "b"}))
}

// claimFrom takes everything that lanes have: exactly what the account says may be claimed (FI14).
func (m *loom) claimFrom(lanes []string) {
	m.claimFor(lanes, pickOne(m.d, "ttl", base.Millis(5000), 90_000, 90_000))
}

func (m *loom) claimFor(lanes []string, ttl base.Millis) {
	r := engine.ClaimRequest{WorkerID: workerOf("i1"), InstanceID: "i1", Lanes: lanes, Max: 1000, TTL: ttl}
	var taken []*knot
	for _, k := range m.w.knots {
		if k.status == ready && slices.Contains(lanes, k.lane) {
			taken = append(taken, k)
		}
	}
	resumed := map[*knot]bool{}
	for _, k := range taken {
		resumed[k] = k.resumes
		m.acquire(k, r.TTL)
	}
	if len(taken) > 0 {
		m.did("claim")
	}
	m.each(fmt.Sprintf("claim from %v", lanes), "", func(ctx context.Context, to *subject) error {
		answer, err := to.e.Claim(ctx, client, r)
		if err != nil {
			return err
		}
		var want, got []string
		for _, k := range taken {
			want = append(want, k.ids[to.name].String())
		}
		for i := range answer.Tasks {
			got = append(got, answer.Tasks[i].Execution.ID.String())
		}
		slices.Sort(want)
		slices.Sort(got)
		m.same(to, "FI14: claim", want, got)
		for _, k := range taken {
			at := slices.IndexFunc(answer.Tasks, func(t engine.Task) bool { return t.Execution.ID == k.ids[to.name] })
			m.got(to, k, &answer.Tasks[at], resumed[k])
		}
		return nil
	})
}

func (m *loom) acquire(k *knot, ttl base.Millis) {
	k.status, k.started, k.resumes = working, true, false
	k.epoch++
	k.endsAt = m.w.now().Add(ttl)
}

// got compares what a claim tells of an execution: its own input, the named ones, and the wait that is over (FI11, F35, F41).
func (m *loom) got(s *subject, k *knot, task *engine.Task, resumed bool) {
	k.fences[s.name] = fenceOf(task.Execution)
	m.same(s, "FI11: the submitted input of "+k.label(), k.text, string(task.Execution.Input.Data))
	inputs := map[string]entry{}
	for _, in := range task.Inputs {
		one := entry{From: in.From.Name, Outcome: in.Outcome.String(), Present: in.Result != nil, Data: string(in.Data)}
		if (in.FailureReason != "") != (in.Outcome != core.Succeeded) {
			m.t.Fatalf("F34: %s: input %s of %s is %s for the reason %q", s.name, in.Name, k.label(), in.Outcome, in.FailureReason)
		}
		m.did("inputs")
		if in.Result == nil {
			m.did("an input without bytes")
		}
		inputs[in.Name] = one
	}
	m.same(s, "F35: inputs of "+k.label(), k.inputs, inputs)
	cause, seen := "", map[string]string{}
	if resumed && k.wait != nil && k.wait.cause != "" {
		cause, seen = k.wait.cause, k.wait.seen
	}
	outcomes := map[string]string{}
	for _, c := range task.Children {
		outcomes[c.Name] = ""
		if c.Outcome != core.StatusNone {
			outcomes[c.Name] = c.Outcome.String()
		}
	}
	m.same(s, "F41: what ended the wait of "+k.label(), cause, task.ChildrenCause)
	m.same(s, "F41: the children of "+k.label(), seen, outcomes)
}

// claimOne takes one execution, whatever it is (S34).
func (m *loom) claimOne() {
	k := m.some(func(k *knot) bool { return k.status == ready || m.d.rarely("any", 6) })
	if k == nil {
		return
	}
	code := base.Code("")
	switch {
	case k.status == ready:
	case final(k.status):
		code = base.CodeExecutionNotActive
	case k.status == working:
		code = base.CodeLeaseConflict
	case k.status == granted:
		code = base.CodeGrantOutstanding
	default:
		code = base.CodeExecutionNotEligible
	}
	r := engine.TargetedRequest{WorkerID: workerOf("i1"), InstanceID: "i1", TTL: 90_000}
	resumed := k.resumes
	if code == "" {
		m.did("operator_claim")
		m.acquire(k, r.TTL)
	}
	m.each(fmt.Sprintf("operator_claim of %s, which is %s", k.label(), k.status), code, func(ctx context.Context, to *subject) error {
		task, err := to.e.OperatorClaim(ctx, operator, k.ids[to.name].Given(), r)
		if err == nil {
			m.got(to, k, &task, resumed)
		}
		return err
	})
}

// grant promises an execution to a worker, who does not come.
func (m *loom) grant() {
	k := m.in(ready)
	if k == nil {
		return
	}
	k.status, k.endsAt = granted, m.w.now().Add(2000)
	m.did("grant")
	m.each("grant "+k.label(), "", func(ctx context.Context, to *subject) error {
		_, err := to.e.GrantOne(ctx, client, k.ids[to.name].Given(), engine.TargetedRequest{WorkerID: workerOf("i1"), InstanceID: "i1", GrantTTL: 2000})
		return err
	})
}

func (m *loom) complete() {
	k := m.worker()
	if k == nil {
		return
	}
	m.completeOne(k, !m.d.rarely("no result", 4))
}

func (m *loom) completeOne(k *knot, withResult bool) {
	m.made++
	var payload *core.Payload
	if k.gift = nil; withResult {
		text := fmt.Sprintf("result %d \x00\xff", m.made)
		k.gift = &text
		payload = &core.Payload{Data: []byte(text), ContentType: "application/octet-stream"}
	}
	m.w.end(k, succeeded, "")
	m.did("complete")
	m.each("complete "+k.label(), "", func(ctx context.Context, to *subject) error {
		_, err := to.e.Complete(ctx, client, k.ids[to.name].Given(), k.fences[to.name], payload)
		return err
	})
}

func (m *loom) fail() {
	k := m.worker()
	if k != nil {
		m.failOne(k)
	}
}

func (m *loom) failOne(k *knot) {
	if k.retriesLeft > 0 {
		k.retriesLeft--
		k.leave(false)
		k.delayUntil = m.w.now().Add(500)
		m.w.gate(k)
	} else {
		m.w.end(k, failed, "")
	}
	m.did("fail")
	m.each("fail "+k.label(), "", func(ctx context.Context, to *subject) error {
		_, err := to.e.Fail(ctx, client, k.ids[to.name].Given(), core.FailCommand{Fence: k.fences[to.name], Class: "transient"})
		return err
	})
}

func (m *loom) cancel() {
	k := m.some(func(k *knot) bool { return !final(k.status) })
	if k != nil {
		m.cancelOne(k)
	}
}

func (m *loom) cancelOne(k *knot) {
	m.w.end(k, cancelled, "")
	m.did("cancel")
	m.each("cancel "+k.label(), "", func(ctx context.Context, to *subject) error {
		_, err := to.e.Cancel(ctx, operator, k.ids[to.name].Given(), nil, "operator", engine.Operator{})
		return err
	})
}

// hold keeps an execution back that waits for a worker, for its join or for children (L115).
func (m *loom) hold() {
	k := m.some(func(k *knot) bool {
		return k.sub == nil && (k.status == ready || k.status == delayed || k.status == blocked)
	})
	if k != nil {
		m.holdOne(k)
	}
}

func (m *loom) holdOne(k *knot) {
	if k.held = true; k.status == ready {
		m.w.gate(k)
	}
	m.did("hold")
	m.each("hold "+k.label(), "", func(ctx context.Context, to *subject) error {
		_, err := to.e.Hold(ctx, operator, k.ids[to.name].Given(), engine.Operator{})
		return err
	})
}

func (m *loom) releaseHold() {
	k := m.some(func(k *knot) bool { return k.held })
	if k == nil {
		return
	}
	if k.held = false; k.why == byHold {
		m.w.gate(k)
	}
	m.did("release_hold")
	m.each("release_hold "+k.label(), "", func(ctx context.Context, to *subject) error {
		_, err := to.e.ReleaseHold(ctx, operator, k.ids[to.name].Given(), engine.Operator{})
		return err
	})
}

func (m *loom) suspend() {
	k := m.worker()
	if k != nil {
		m.suspendOne(k)
	}
}

func (m *loom) suspendOne(k *knot) {
	k.leave(true)
	k.status = suspends
	m.did("suspend")
	m.each("suspend "+k.label(), "", func(ctx context.Context, to *subject) error {
		_, err := to.e.Suspend(ctx, client, k.ids[to.name].Given(), core.SuspendCommand{
			Fence: k.fences[to.name], Condition: &condition.Condition{Kind: condition.OperatorOnly},
		})
		return err
	})
	k.forgetWait()
}

// forgetWait: the next claim goes on after something else than a wait for children.
func (k *knot) forgetWait() {
	if k.wait != nil && k.wait.cause != "" {
		k.wait = nil
	}
}

func (m *loom) resume() {
	k := m.in(suspends)
	if k == nil {
		return
	}
	m.w.gate(k)
	m.did("resume")
	m.each("resume "+k.label(), "", func(ctx context.Context, to *subject) error {
		_, _, err := to.e.Resume(ctx, operator, k.ids[to.name].Given(), core.ResumeCommand{}, engine.Operator{})
		return err
	})
}

func (m *loom) delay() {
	k := m.worker()
	if k == nil {
		return
	}
	k.leave(true)
	k.delayUntil = m.w.now().Add(1000)
	until := k.delayUntil
	k.forgetWait()
	m.w.gate(k)
	m.did("delay")
	m.each("delay "+k.label(), "", func(ctx context.Context, to *subject) error {
		_, err := to.e.Delay(ctx, client, k.ids[to.name].Given(), k.fences[to.name], until)
		return err
	})
}

func (m *loom) handBack() {
	k := m.worker()
	if k == nil {
		return
	}
	k.leave(true)
	k.forgetWait()
	m.w.gate(k)
	m.did("release")
	m.each("release "+k.label(), "", func(ctx context.Context, to *subject) error {
		_, err := to.e.Release(ctx, client, k.ids[to.name].Given(), k.fences[to.name], "")
		return err
	})
}
