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

// worker picks a job that runs, or now and then one whose lease lapsed and that was not taken over (L36).
func (m *machine) worker() *job {
	if m.d.rarely("late", 2) {
		var late []*job
		for _, j := range m.w.jobs {
			if j.late {
				late = append(late, j)
			}
		}
		if len(late) > 0 {
			return pickOne(m.d, "late job", late...)
		}
	}
	return m.led(runs, m.claim)
}

// spent draws what a command that leaves the run says was used (B16).
func (m *machine) spent() map[string]int64 {
	return pickOne(m.d, "spent", nil, nil, map[string]int64{"tok": 4}, map[string]int64{"tok": 12, "usd": 2})
}

// spends books what a leaving job used, and acts on others where that breaches a limit. A late command finds no lease: a grant that is
// out is void first.
func (m *machine) spends(j *job, usage map[string]int64) {
	if j.late {
		m.did("a late command")
	}
	hard := m.w.spend(j, usage)
	m.w.act(j, hard, false)
}

func (m *machine) complete() {
	j := m.worker()
	if j == nil {
		return
	}
	m.completeOf(j, m.spent())
}

func (m *machine) completeOf(j *job, usage map[string]int64) {
	m.spends(j, usage)
	m.w.end(j)
	m.did("complete")
	m.each(fmt.Sprintf("complete %s with %v", j.id, usage), "", func(ctx context.Context, s *subject) error {
		_, err := s.e.CompleteWith(ctx, client, j.id.Given(), core.Completion{Fence: j.fences[s.name], Usage: usage})
		return err
	})
}

func (m *machine) fail() {
	j := m.led(runs, m.claim)
	if j == nil {
		return
	}
	usage := m.spent()
	m.spends(j, usage)
	if j.retries > 0 {
		j.retries--
		m.w.leave(j, false, false)
		j.next, j.delayUntil = fresh, m.w.now().Add(500)
		j.queuedAt = j.delayUntil
		m.w.gate(j)
	} else {
		m.w.end(j)
	}
	m.did("fail")
	m.each(fmt.Sprintf("fail %s with %v", j.id, usage), "", func(ctx context.Context, s *subject) error {
		_, err := s.e.Fail(ctx, client, j.id.Given(), core.FailCommand{Fence: j.fences[s.name], Class: "transient", Usage: usage})
		return err
	})
}

func (m *machine) delay() {
	j := m.led(runs, m.claim)
	if j == nil {
		return
	}
	usage := m.spent()
	until := m.w.now().Add(pickOne(m.d, "delay", base.Millis(100), 1000))
	m.spends(j, usage)
	m.w.leave(j, true, false)
	j.next, j.delayUntil, j.queuedAt = resumes, until, until
	m.w.gate(j)
	m.did("delay")
	m.each(fmt.Sprintf("delay %s with %v", j.id, usage), "", func(ctx context.Context, s *subject) error {
		_, err := s.e.DelayWith(ctx, client, j.id.Given(), core.DelayCommand{Fence: j.fences[s.name], Until: until, Usage: usage}, nil)
		return err
	})
}

func (m *machine) suspend() {
	j := m.led(runs, m.claim)
	if j == nil {
		return
	}
	usage := m.spent()
	m.spends(j, usage)
	m.w.suspend(j)
	m.did("suspend")
	m.each(fmt.Sprintf("suspend %s with %v", j.id, usage), "", func(ctx context.Context, s *subject) error {
		_, err := s.e.Suspend(ctx, client, j.id.Given(), core.SuspendCommand{
			Fence: j.fences[s.name], Condition: &condition.Condition{Kind: condition.OperatorOnly}, Usage: usage,
		})
		return err
	})
}

// resume ends a suspension: one by a budget by a decision (B30, B31), or any by an operator's word.
func (m *machine) resume() {
	j := m.some(suspends)
	if j == nil {
		return
	}
	if at := slices.IndexFunc(m.w.jobs, func(j *job) bool { return j.status == suspends && j.asked != nil }); at >= 0 {
		j = m.w.jobs[at]
	}
	if j.asked == nil || m.d.rarely("by an operator", 4) {
		m.resumeBy(j)
		return
	}
	p, name := j.asked, pickOne(m.d, "decision", "budget_approved", "budget_denied")
	cmd := core.ApproveCommand{Name: name}
	a := p.amounts[j.askedFor]
	switch {
	case name == "budget_denied":
		m.w.end(j)
	default:
		if m.exists(p) && a != nil && a.hard > 0 && m.d.rarely("raise", 2) {
			raise := int64(9)
			if j.askedFor == core.WallMS {
				raise = 900
			}
			cmd.Payload = &core.Payload{Data: fmt.Appendf(nil, `{"raise":{%q:%d}}`, j.askedFor, raise), ContentType: "application/json"}
			a.raised += raise
		}
		m.w.shrink()
		m.w.gate(j)
	}
	m.did(name)
	m.each(fmt.Sprintf("%s for %s", name, j.id), "", func(ctx context.Context, s *subject) error {
		_, err := s.e.Approve(ctx, operator, j.id.Given(), cmd, engine.Operator{})
		return err
	})
}

func (m *machine) resumeBy(j *job) {
	m.w.gate(j)
	m.did("resume")
	m.each(fmt.Sprintf("resume %s", j.id), "", func(ctx context.Context, s *subject) error {
		_, _, err := s.e.Resume(ctx, operator, j.id.Given(), core.ResumeCommand{}, engine.Operator{})
		return err
	})
}

func (m *machine) handBack() {
	j := m.led(runs, m.claim)
	if j == nil {
		return
	}
	m.w.leave(j, false, false)
	j.next = resumes
	m.w.gate(j)
	m.did("release")
	m.each(fmt.Sprintf("release %s", j.id), "", func(ctx context.Context, s *subject) error {
		_, err := s.e.Release(ctx, client, j.id.Given(), j.fences[s.name], "")
		return err
	})
}

// revoke takes a lease away, and may hand the job to another worker in the same step (L113): that is admitted anew.
func (m *machine) revoke() {
	j := m.led(runs, m.claim)
	if j == nil {
		return
	}
	r := engine.RevokeRequest{Hold: m.d.rarely("hold", 4)}
	m.w.leave(j, false, true)
	j.next, j.held = reclaimed, j.held || r.Hold
	m.w.gate(j)
	refused := base.Code("")
	if m.d.rarely("hand to", 2) {
		i := pickOne(m.d, "instance", crew...)
		r.Handoff = &engine.Handoff{WorkerID: workerOf(i.id), InstanceID: i.id, Capabilities: i.caps, GrantTTL: 5000}
		if refused = m.refusal("grant", j, i); refused == "" {
			m.w.take(j, false)
			m.w.promise(j, i.id, 5000)
			m.did("hand_to")
		}
	}
	m.did("revoke")
	m.each(fmt.Sprintf("revoke %s, hold %v, hand to %v: %q", j.id, r.Hold, r.Handoff, refused), "", func(ctx context.Context, s *subject) error {
		got, err := s.e.Revoke(ctx, operator, j.id.Given(), r, engine.Operator{})
		if r.Handoff == nil || err != nil {
			return err
		}
		code := base.Code("")
		if got.Refused != nil {
			code = got.Refused.Code
		} else {
			j.keys[s.name] = got.Grant.Key
		}
		m.same(s, "hand to", refused, code)
		return nil
	})
}

func (m *machine) cancel() {
	j := m.some(waits, heldBack, granted, runs, delayed, suspends)
	if j == nil {
		return
	}
	m.w.end(j)
	m.did("cancel")
	m.each(fmt.Sprintf("cancel %s", j.id), "", func(ctx context.Context, s *subject) error {
		_, err := s.e.Cancel(ctx, operator, j.id.Given(), nil, "operator", engine.Operator{})
		return err
	})
}

// hold keeps a job back; a grant of it is void (L115).
func (m *machine) hold() {
	j := m.some(waits, granted, delayed)
	if j == nil {
		return
	}
	j.held = true
	m.w.void(j)
	if j.status == waits {
		m.w.gate(j)
	}
	m.did("hold")
	m.each(fmt.Sprintf("hold %s", j.id), "", func(ctx context.Context, s *subject) error {
		_, err := s.e.Hold(ctx, operator, j.id.Given(), engine.Operator{})
		return err
	})
}

func (m *machine) releaseHold() {
	if j := m.led(heldBack, m.hold); j != nil {
		m.releaseHoldOf(j)
	}
}

func (m *machine) releaseHoldOf(j *job) {
	j.held = false
	if j.status == heldBack {
		m.w.gate(j)
	}
	m.did("release_hold")
	m.each(fmt.Sprintf("release_hold %s", j.id), "", func(ctx context.Context, s *subject) error {
		_, err := s.e.ReleaseHold(ctx, operator, j.id.Given(), engine.Operator{})
		return err
	})
}

// setTag changes by which budgets a job is reached at its next claim (B6).
func (m *machine) setTag() {
	j := m.some(waits, waits, runs, granted, suspends)
	if j == nil {
		return
	}
	j.tag = pickOne(m.d, "tag", "", "1", "2")
	change := map[string]*string{"t": nil}
	if j.tag != "" {
		change["t"] = &j.tag
	}
	m.did("set_tags")
	m.each(fmt.Sprintf("set_tags of %s to %q", j.id, j.tag), "", func(ctx context.Context, s *subject) error {
		_, err := s.e.SetTags(ctx, operator, j.id.Given(), change, engine.Operator{})
		return err
	})
}

func (m *machine) putLane() {
	name := pickOne(m.d, "lane", "a", "b")
	m.setLane(name, track{open: !m.d.rarely("paused", 3), places: pickOne(m.d, "places", 0, 1, 1, 2)})
}

func (m *machine) setLane(name string, t track) {
	*m.w.lanes[name] = t
	settings := core.LaneSettings{MaxConcurrent: t.places}
	if !t.open {
		settings.State = core.LanePaused
	}
	m.did("put_lane")
	m.tell(fmt.Sprintf("put_lane %s %+v", name, t), "", func(ctx context.Context, s *subject) error {
		_, err := s.e.PutLane(ctx, operator, name, settings, engine.Operator{})
		return err
	})
	m.sweep() // what runs is counted as follow-up work
	m.serve()
}

func (m *machine) putQuota() {
	id := pickOne(m.d, "quota", "q1", "q2")
	r := rations[id]
	r.rate, r.slots = pickOne(m.d, "rate", 0, 1, 2, 3), pickOne(m.d, "slots", 0, 1, 1, 2)
	m.setQuota(id, r)
}

func (m *machine) setQuota(id string, r ration) {
	if before := m.w.quotas[id]; before != nil && r.slots > 0 {
		for _, key := range []string{"", "x", "y"} {
			if m.w.slotsInUse(need{id, key}.slots()) > r.slots {
				m.did("a limit below the slots in use")
			}
		}
	}
	m.w.quotas[id] = &r
	m.did("put_quota")
	m.each(fmt.Sprintf("put_quota %s %+v", id, r), "", func(ctx context.Context, s *subject) error {
		_, err := s.e.PutQuota(ctx, operator, id, core.QuotaSettings{RateLimit: r.rate, WindowMS: r.window, ConcurrencyLimit: r.slots, PerKey: r.perKey}, engine.AdminAction{})
		return err
	})
}

// deleteQuota is refused while work that has not ended is attached, unless it is forced (S38).
func (m *machine) deleteQuota() {
	m.deleteQuotaOf(pickOne(m.d, "quota", "q1", "q2"), m.d.rarely("force", 2))
}

func (m *machine) deleteQuotaOf(id string, force bool) {
	code := base.Code("")
	switch {
	case m.w.quotas[id] == nil:
		code = base.CodeQuotaNotFound
	case !force && m.attached(id):
		code = base.CodeQuotaInUse
	case !force && slices.ContainsFunc(m.w.gives, func(n need) bool { return n.quota == id }):
		code = base.CodeQuotaInUse
		m.did("default: keeps its quota")
	default:
		m.did("delete_quota")
		delete(m.w.quotas, id)
		for key := range m.w.starts {
			if _, of := cutQuota(key); of == id {
				delete(m.w.starts, key)
			}
		}
	}
	m.tell(fmt.Sprintf("delete_quota %s, force %v", id, force), code, func(ctx context.Context, s *subject) error {
		return s.e.DeleteQuota(ctx, operator, id, force, engine.AdminAction{})
	})
	m.sweep() // its blocked rows go on by follow-up work
	m.serve()
}

// attached reports whether work that has not ended names the quota.
func (m *machine) attached(id string) bool {
	for _, j := range m.w.jobs {
		for _, n := range j.needs {
			if n.quota == id && j.status != over {
				return true
			}
		}
	}
	return false
}
