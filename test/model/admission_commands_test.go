package model

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// actions is every kind of command about admission. Each must succeed at least once in a run.
var actions = []action{
	{"submit", 8, (*machine).submit},
	{"claim", 13, (*machine).claim},
	{"grant", 4, (*machine).grant},
	{"grant one", 3, func(m *machine) { m.target("grant") }},
	{"operator_claim", 2, func(m *machine) { m.target("operator_claim") }},
	{"force", 3, func(m *machine) { m.target("force") }},
	{"claim_resumed", 4, func(m *machine) { m.target("claim_resumed") }},
	{"reclaim", 5, func(m *machine) { m.target("reclaim") }},
	{"claim_from_grant", 3, (*machine).claimGrant},
	{"return_grant", 2, (*machine).returnGrant},
	{"verify_grant", 3, (*machine).verifyGrant},
	{"complete", 3, (*machine).complete},
	{"fail", 2, (*machine).fail},
	{"delay", 2, (*machine).delay},
	{"suspend", 3, (*machine).suspend},
	{"resume", 5, (*machine).resume},
	{"release", 2, (*machine).handBack},
	{"revoke", 4, (*machine).revoke},
	{"cancel", 1, (*machine).cancel},
	{"hold", 1, (*machine).hold},
	{"release_hold", 2, (*machine).releaseHold},
	{"set_tags", 2, (*machine).setTag},
	{"put_quota", 3, (*machine).putQuota},
	{"delete_quota", 2, (*machine).deleteQuota},
	{"put_namespace", 4, (*machine).putDefaults},
	{"claim that waits", 9, (*machine).claimWaiting},
	{"put_lane", 3, (*machine).putLane},
	{"create_budget", 1, (*machine).createBudget},
	{"update_budget", 3, (*machine).updateBudget},
	{"close_budget", 2, (*machine).closeBudget},
	{"reopen_budget", 3, (*machine).reopenBudget},
	{"reset_budget", 2, (*machine).resetBudget},
	{"delete_budget", 2, (*machine).deleteBudget},
	{"charge", 3, (*machine).charge},
	{"report_usage", 12, (*machine).report},
	{"release_budget", 3, (*machine).releaseBudget},
}

const home = "n1" // the namespace of all this work

// quota is what is fixed of the quotas of these tests: their windows, so that no test asks what a longer one remembers.
var rations = map[string]ration{"q1": {window: 2000}, "q2": {window: 5000, perKey: true}, "q3": {window: 1000}}

// needsOf are the quotas that submits attach.
var needsOf = [][]need{
	nil, nil, {{"q1", ""}}, {{"q1", ""}}, {{"q2", "x"}}, {{"q2", "x"}}, {{"q2", "y"}}, {{"q1", ""}, {"q2", "x"}}, {{"q2", "y"}, {"q1", ""}}, {{"q2", "x"}, {"q2", "y"}},
}

// some picks a job in one of these statuses; nil: there is none.
func (m *machine) some(statuses ...string) *job {
	var fit []*job
	for _, j := range m.w.jobs {
		if slices.Contains(statuses, j.status) {
			fit = append(fit, j)
		}
	}
	if len(fit) == 0 {
		return nil
	}
	return pickOne(m.d, "job", fit...)
}

// led is some with a command that leads there, if none is.
func (m *machine) led(status string, lead func()) *job {
	if j := m.some(status); j != nil {
		return j
	}
	lead()
	return m.some(status)
}

// did counts a command that was accepted.
func (m *machine) did(op string) { m.tally.count(op) }

func (m *machine) submit() {
	m.made++
	j := m.newJob()
	j.lane, j.tag = pickOne(m.d, "lane", "a", "a", "a", "a", "b", "b", "c"), pickOne(m.d, "tag", "", "1", "2")
	j.priority, j.keeps, j.retries = pickOne(m.d, "priority", 0, 0, 1), m.d.rarely("keeps", 3), pickOne(m.d, "retries", 0, 1)
	j.estimate = pickOne(m.d, "estimate", nil, nil, map[string]int64{"tok": 3}, map[string]int64{"tok": 7, "usd": 1}, map[string]int64{"usd": 0})
	if m.timed && m.d.rarely("estimate of time", 2) {
		j.estimate = maps.Clone(orNone(j.estimate))
		j.estimate[core.WallMS] = pickOne(m.d, "time", int64(300), 1000, 1500)
	}
	if !m.money || m.d.rarely("other limits", 4) {
		j.needs = pickOne(m.d, "needs", needsOf...)
		j.caps = pickOne(m.d, "capabilities", nil, nil, nil, nil, []string{"gpu"}, []string{"gpu"}, []string{"fpga"})
	}
	if m.d.rarely("delay", 8) {
		j.delayUntil = m.w.now().Add(pickOne(m.d, "delay", base.Millis(100), 1000))
		j.queuedAt = j.delayUntil
	}
	m.send(j)
}

func (m *machine) newJob() *job {
	return &job{
		id:     base.IDOf(base.UUID{0: 3, 6: 0x70, 8: 0x80, 14: byte(m.made >> 8), 15: byte(m.made)}),
		meters: map[string]int64{}, receipts: map[string]receipt{}, fences: map[string]core.Fence{}, keys: map[string]keyring.GrantKey{},
		queuedAt: m.w.now(), next: fresh,
	}
}

// send submits the job.
func (m *machine) send(j *job) {
	policy, code := m.policy(j)
	given := j.id.Given()
	submission := core.Submission{
		ID: &given, Namespace: home, Lane: j.lane, Kind: "k1", Priority: j.priority, PolicyJSON: policy, DelayUntil: j.delayUntil,
	}
	if j.tag != "" {
		submission.Tags = base.Tags{"t": j.tag}
	}
	if code == "" {
		m.addDefaults(j)
		m.w.gate(j)
		m.w.jobs = append(m.w.jobs, j)
		m.w.purses = append(m.w.purses, j.own...)
		m.did("submit")
	}
	m.each(fmt.Sprintf("submit %s to %s with %s", j.id, j.lane, policy), code, func(ctx context.Context, s *subject) error {
		_, err := s.e.Submit(ctx, client, submission)
		return err
	})
}

// policy writes the policy of a job. Quotas and budgets that are not there, and keys where there are none, are invalid_policy.
func (m *machine) policy(j *job) (text []byte, code base.Code) {
	p := map[string]any{"retention_ms": -1}
	if len(j.needs) > 0 {
		var uses []map[string]string
		for _, n := range j.needs {
			use := map[string]string{"quota": n.quota}
			if n.key != "" {
				use["key"] = n.key
			}
			if m.d.rarely("key amiss", 40) {
				use["key"] = map[bool]string{true: "", false: "z"}[n.key != ""]
				code = base.CodeInvalidPolicy
			}
			if use["key"] == "" {
				delete(use, "key")
			}
			if m.w.quotas[n.quota] == nil {
				code = base.CodeInvalidPolicy
			}
			uses = append(uses, use)
		}
		p["quotas"] = uses
	}
	if m.d.rarely("named budget", 3) {
		if named := m.purse(core.ScopeNone); named != nil {
			j.named = []*purse{named}
			p["budget_ids"] = []string{pickOne(m.d, "by", named.name, named.id.String())}
		} else if m.d.rarely("unknown budget", 3) {
			p["budget_ids"], code = []string{"missing"}, base.CodeInvalidPolicy
		}
	}
	if j.brings != nil || m.d.rarely("own budget", 5) {
		own, definition := m.define("of "+j.id.UUID.String(), core.BudgetScope{Type: core.ScopeExecution, Value: j.id.UUID.String()})
		definition.Scope = core.BudgetScope{}
		if j.brings != nil {
			j.brings(own, &definition)
		}
		j.own, p["budgets"] = []*purse{own}, []core.BudgetDefinition{definition}
	}
	if j.estimate != nil {
		p["estimate"] = j.estimate
	}
	if j.keeps {
		p["slots_while_waiting"] = "hold"
	}
	if len(j.caps) > 0 {
		p["routing_requirements"] = map[string]any{"required_capabilities": j.caps}
	}
	p["retry_policy"] = map[string]any{"max_retries": j.retries, "backoff": map[string]any{"strategy": "fixed", "delay_ms": 500}}
	text, err := json.Marshal(p)
	if err != nil {
		m.d.t.Fatal(err)
	}
	return text, code
}

func (m *machine) ask(i instance) engine.ClaimRequest {
	return engine.ClaimRequest{
		WorkerID: workerOf(i.id), InstanceID: i.id, Capabilities: i.caps, LaneOrder: "listed", Max: pickOne(m.d, "max", 1, 1, 2, 3),
		Lanes: pickOne(m.d, "lanes", []string{"a"}, []string{"b"}, []string{"a", "b"}, []string{"b", "a"}),
	}
}

func (m *machine) leaseTTL() base.Millis {
	if m.timed {
		return pickOne(m.d, "ttl", base.Millis(5000), 90_000, 90_000, 90_000)
	}
	return pickOne(m.d, "ttl", base.Millis(500), 5000, 90_000, 90_000)
}

// claim predicts exactly which jobs a claim takes (SI1, SI3, SI10, SI12), and that one which matches nothing changes nothing (SI2).
func (m *machine) claim() { m.claimBy(pickOne(m.d, "instance", crew...)) }

func (m *machine) claimBy(i instance) { m.claimWith(m.ask(i), m.leaseTTL()) }

func (m *machine) claimWith(r engine.ClaimRequest, ttl base.Millis) {
	r.TTL = ttl
	stranger := !slices.ContainsFunc(m.w.jobs, func(j *job) bool {
		return slices.ContainsFunc(r.Lanes, func(lane string) bool { return j.match(lane, r.Capabilities) })
	})
	before := m.recordTexts(stranger)
	var taken []*job
	var left []map[base.UUID]map[string]int64 // once all have taken theirs
	m.each(fmt.Sprintf("claim %d of %v for %s", r.Max, r.Lanes, r.InstanceID), "", func(ctx context.Context, s *subject) error {
		answer, err := s.e.Claim(ctx, client, r)
		if err != nil {
			return err
		}
		if s == m.subjects[0] {
			taken = m.taken(&r, len(answer.Tasks))
			for _, j := range taken {
				left = append(left, leftOf(m.w, j))
			}
		}
		var want, got []base.ID
		for _, j := range taken {
			want = append(want, j.id)
		}
		for _, task := range answer.Tasks {
			got = append(got, task.Execution.ID)
		}
		m.same(s, "claim", want, got)
		for n, task := range answer.Tasks {
			taken[n].fences[s.name] = fenceOf(task.Execution)
			m.same(s, "remaining", left[n], orNone(task.Remaining))
		}
		return nil
	})
	if len(taken) > 0 {
		m.did("claim")
	}
	if stranger {
		m.did("a claim that matches nothing")
		m.sameTexts(before, m.recordTexts(true))
	}
}

// taken are the jobs that a claim takes which got n: as many as it asks for, or all that there are. Only when it met jobs that were
// refused may it have seen no further than them, and even then not before it had one (S19, S21).
func (m *machine) taken(r *engine.ClaimRequest, n int) (taken []*job) {
	refused := func(j *job) bool {
		return slices.ContainsFunc(r.Lanes, func(lane string) bool { return j.match(lane, r.Capabilities) }) && len(m.w.full(j)) > 0
	}
	for len(taken) < r.Max {
		j := m.w.best(r.Lanes, r.Capabilities)
		if j == nil || n > 0 && n == len(taken) && slices.ContainsFunc(m.w.jobs, refused) {
			break
		}
		m.w.take(j, false)
		m.w.acquire(j, r.TTL)
		taken = append(taken, j)
	}
	return taken
}

// orNone writes that there is nothing in one way.
func orNone[K comparable, V any](all map[K]V) map[K]V {
	if all == nil {
		return map[K]V{}
	}
	return all
}

// leftOf is what a lease may still report of its budgets (B23).
func leftOf(w *account, j *job) map[base.UUID]map[string]int64 {
	b := booking{w: w, j: j, lines: j.charged, holds: true}
	return b.remaining()
}

func (m *machine) grant() {
	i := pickOne(m.d, "instance", crew...)
	r := m.ask(i)
	r.GrantTTL = pickOne(m.d, "grant ttl", base.Millis(50), 500, 5000, 60_000)
	var taken []*job
	var ids []base.ID
	for len(taken) < r.Max {
		j := m.w.best(r.Lanes, i.caps)
		if j == nil {
			break
		}
		m.w.take(j, false)
		m.w.promise(j, i.id, r.GrantTTL)
		taken, ids = append(taken, j), append(ids, j.id)
	}
	if len(taken) > 0 {
		m.did("grant")
	}
	m.each(fmt.Sprintf("grant %d of %v to %s", r.Max, r.Lanes, i.id), "", func(ctx context.Context, s *subject) error {
		answer, err := s.e.Grant(ctx, client, r)
		var got []base.ID
		for n, g := range answer {
			got = append(got, g.ID)
			if n < len(taken) {
				taken[n].keys[s.name] = g.Key
			}
		}
		m.same(s, "grant", ids, got)
		return err
	})
}

// target takes one job by its id (S34, S35, L75), or promises it (L44).
func (m *machine) target(op string) {
	j := m.targetOf(op)
	if j == nil {
		return
	}
	i := pickOne(m.d, "instance", crew...)
	r := engine.TargetedRequest{WorkerID: workerOf(i.id), InstanceID: i.id, Capabilities: i.caps, Force: op == "force", TTL: m.leaseTTL()}
	if op == "grant" {
		r.GrantTTL = pickOne(m.d, "grant ttl", base.Millis(500), 5000)
	}
	code := m.refusal(op, j, i)
	if code == "" {
		m.did(map[string]string{"grant": "grant one"}[op] + map[bool]string{true: op}[op != "grant"])
		m.w.take(j, r.Force)
		if op == "grant" {
			m.w.promise(j, i.id, r.GrantTTL)
		} else {
			m.w.acquire(j, r.TTL)
		}
	}
	m.each(fmt.Sprintf("%s of %s for %s", op, j.id, i.id), code, func(ctx context.Context, s *subject) (err error) {
		var task engine.Task
		switch op {
		case "grant":
			var g engine.Grant
			if g, err = s.e.GrantOne(ctx, client, j.id.Given(), r); err == nil {
				j.keys[s.name] = g.Key
			}
			return err
		case "claim_resumed":
			task, err = s.e.ClaimResumed(ctx, client, j.id.Given(), r)
		case "reclaim":
			task, err = s.e.Reclaim(ctx, client, j.id.Given(), r)
		default:
			task, err = s.e.OperatorClaim(ctx, operator, j.id.Given(), r)
		}
		if err == nil {
			j.fences[s.name] = fenceOf(task.Execution)
		}
		return err
	})
}

// targetOf picks a job for a targeted claim, most often one that it is meant for.
func (m *machine) targetOf(op string) *job {
	next := map[string]string{"claim_resumed": resumes, "reclaim": reclaimed}[op]
	lead := map[string]func(){"claim_resumed": m.handBack, "reclaim": m.revoke}[op]
	fits := func(j *job) bool { return j.status == waits && j.next == next }
	if next != "" && !m.d.rarely("any", 4) {
		if !slices.ContainsFunc(m.w.jobs, fits) {
			lead()
		}
		if at := slices.IndexFunc(m.w.jobs, fits); at >= 0 {
			return m.w.jobs[at]
		}
	}
	return m.some(waits, delayed, heldBack, granted, runs, suspends)
}

// refusal is the code with which a targeted claim is refused, in the order of L75; "": it is not.
func (m *machine) refusal(op string, j *job, i instance) base.Code {
	notNow := base.CodeExecutionNotEligible
	switch {
	case op == "claim_resumed" && (j.next != resumes || j.status == suspends):
		return base.CodeNotAResumedExecution
	case op == "claim_resumed":
		notNow = base.CodeNotAResumedExecution
	case j.status == runs:
		return base.CodeLeaseConflict
	case op == "reclaim" && j.next != reclaimed:
		return base.CodeExecutionNotReclaimable
	}
	switch {
	case j.status == granted:
		return base.CodeGrantOutstanding
	case j.status != waits:
		return notNow
	case op == "force":
		return ""
	case !m.w.lanes[j.lane].open:
		return base.CodeLaneNotClaimable
	case op != "operator_claim" && !j.suits(i.caps):
		return base.CodeCapabilityMismatch
	case m.w.laneFull(j.lane) || len(m.w.full(j)) > 0:
		return base.CodeAdmissionRefused
	default:
		return ""
	}
}

func (m *machine) claimGrant() {
	j := m.led(granted, m.grant)
	if j == nil {
		return
	}
	if m.d.rarely("another first", 2) { // whose try consumes nothing (S32)
		m.claimGrantBy(j, map[string]string{"i1": "i2", "i2": "i1"}[j.to], base.CodeGrantSignatureMismatch)
	}
	m.claimGrantBy(j, j.to, "")
}

func (m *machine) claimGrantBy(j *job, by string, code base.Code) {
	ttl := m.leaseTTL()
	if code == "" {
		m.did("claim_from_grant")
		m.w.acquire(j, ttl)
	}
	m.each(fmt.Sprintf("claim_from_grant %s by %s", j.id, by), code, func(ctx context.Context, s *subject) error {
		task, err := s.e.ClaimGrant(ctx, client, j.keys[s.name], engine.GrantClaim{WorkerID: workerOf(by), InstanceID: by, TTL: ttl})
		if err == nil {
			j.fences[s.name] = fenceOf(task.Execution)
		}
		return err
	})
}

// returnGrant returns a grant, or one that is no more.
func (m *machine) returnGrant() {
	j := m.led(granted, m.grant)
	if j == nil {
		return
	}
	m.did("return_grant")
	m.w.void(j)
	m.each(fmt.Sprintf("return_grant of %s", j.id), "", func(ctx context.Context, s *subject) error {
		return s.e.ReturnGrant(ctx, client, j.keys[s.name])
	})
	m.each(fmt.Sprintf("return_grant of %s again", j.id), base.CodeGrantUnknown, func(ctx context.Context, s *subject) error {
		return s.e.ReturnGrant(ctx, client, j.keys[s.name])
	})
}

// verifyGrant verifies a key as it is, and with one character changed (SI6).
func (m *machine) verifyGrant() {
	j := m.led(granted, m.grant)
	if j == nil {
		return
	}
	m.did("verify_grant")
	m.each(fmt.Sprintf("verify_grant of %s", j.id), "", func(ctx context.Context, s *subject) error {
		return s.e.VerifyGrant(ctx, client, j.keys[s.name])
	})
	at := m.d.under("character", 256)
	m.each("verify_grant of a changed key", "", func(ctx context.Context, s *subject) error {
		text := []byte(j.keys[s.name].Reveal())
		at %= len(text)
		text[at] = map[bool]byte{true: '1', false: '0'}[text[at] == '0']
		if err := s.e.VerifyGrant(ctx, client, keyring.GrantKeyOf(string(text))); err == nil {
			m.d.t.Fatalf("SI6: %s accepts the key of %s with another character at %d", s.name, j.id, at)
		}
		return nil
	})
}
