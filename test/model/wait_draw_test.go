package model

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/condition"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine"
)

var (
	waitKeys  = []string{"a", "b", "c"}
	behaviors = []string{"", core.BehaviorFail, core.BehaviorCancel, core.BehaviorExpire, core.BehaviorAutoResume, core.BehaviorAutoResume, core.BehaviorEscalate}
	approvers = []string{"ann", "bob"}
)

// waitWeights is how often operations are drawn in a case about waits.
var waitWeights = map[string]int{
	"submit": 2, "claim": 5, "claim_resumed": 2, "complete": 2, "fail": 2, "release": 1, "delay": 1, "cancel": 4, "replay": 3, "delete": 1, "hold": 1,
	"release_hold": 1, "revoke": 1, "bulk cancel": 1, "create_waitpoint": 10, "close_waitpoint": 6, "suspend": 14,
	"signal": 16, "approve": 6, "resume": 6, "read_waitpoint_token": 4, "reissue_token": 3, "create_link": 6, "read_link_url": 4, "decide": 8,
	"revoke_link": 4, "look at waits": 3, "seed key": 2, "rotate key": 2, "revoke key": 3,
}

// begin makes sure that a case about waits has work, with policies that concern them.
func (d *drawing) begin() command {
	alive := 0
	for _, r := range d.m.records { // counted, in whatever order
		if !r.x.Status.Terminal() {
			alive++
		}
	}
	if !d.aboutWaits || alive >= 3 || d.rarely("nothing new", 4) {
		return nil
	}
	s := core.Submission{
		Namespace: pickOne(d, "namespace", "n1", "n1", "n2"), Lane: "a", Kind: "k1",
		PolicyJSON: []byte(pickOne(d, "policy", "", "", policies[len(policies)-3], policies[len(policies)-2], policies[2], policies[5])),
	}
	if d.rarely("deadline", 4) {
		s.DeadlineAt = d.m.now().Add(pickOne(d, "deadline", base.Millis(1000), 5000, 5000))
	}
	for n := range 5 {
		if d.m.records[idAt(n)] == nil {
			s.ID = &base.GivenID{UUID: idAt(n)}
		}
	}
	return submitCommand{C: client, S: s}
}

// stands reports whether something stands in a queue that a timer should have taken out.
func (m *reference) stands() bool {
	return slices.ContainsFunc(m.sorted(), func(id base.UUID) bool {
		x := m.records[id].x
		return x.Status == core.Ready && x.WakeAt != 0 && x.WakeAt <= m.now()
	})
}

// pause is how long nothing happens: where a link is about to expire or a deadline meets a suspended execution, often long enough for that.
func (d *drawing) pause() time.Duration {
	if d.aboutWaits && len(d.openLinks()) > 0 && d.rarely("until it expires", 6) {
		return time.Minute
	}
	late := func(id base.UUID) bool { return asleep(d.m.records[id]) && d.m.records[id].x.DeadlineAt != 0 }
	if d.aboutWaits && slices.ContainsFunc(d.m.sorted(), late) && d.rarely("until the deadline", 2) {
		return 5 * time.Second
	}
	return pickOne(d, "step", steps...)
}

// openLinks lists the links that are not decided, of waitpoints that are open.
func (d *drawing) openLinks() []base.UUID {
	var ids []base.UUID
	for _, id := range d.m.sorted() {
		r := d.m.records[id]
		for _, link := range r.d.Links {
			decided := slices.ContainsFunc(r.d.LinkEnds, func(e core.LinkEnd) bool { return e.LinkID == link.ID && !e.Revoked })
			if open := r.x.Waits != nil && slices.ContainsFunc(r.x.Waits.Open, func(w core.OpenWaitpoint) bool { return w.ID == link.WaitpointID }); open && !decided {
				ids = append(ids, link.ID)
			}
		}
	}
	return ids
}

// opportunity uses rare moments of a case about waits: signals that wait to be adopted, and links that can be decided.
func (d *drawing) opportunity() command {
	if !d.aboutWaits {
		return nil
	}
	for _, id := range d.m.sorted() {
		r := d.m.records[id]
		if running(r) && r.x.Waits != nil && r.x.Waits.Signals > 0 && len(r.x.Waits.Open) > 0 && d.rarely("adopt", 2) {
			return d.suspendUnder(r.x.ID.Given(), fenceOf(r.x))
		}
	}
	if links := d.openLinks(); len(links) > 0 && d.rarely("a link", 6) {
		if d.rarely("withdraw", 4) {
			return revokeLinkCommand{C: operator, Link: pickOne(d, "link", links...)}
		}
		return d.decideAt(pickOne(d, "link", links...))
	}
	return nil
}

func waitpointAt(n int) base.UUID  { return base.UUID{0: 3, 6: 0x70, 8: 0x80, 15: byte(n + 1)} }
func suspensionAt(n int) base.UUID { return base.UUID{0: 4, 6: 0x70, 8: 0x80, 15: byte(n + 1)} }

// keyed gives a caller a request key now and then.
func (d *drawing) keyed(c engine.Caller) engine.Caller {
	if d.rarely("request key", 6) {
		c.RequestKey = pickOne(d, "key", "q1", "q2")
	}
	return c
}

// plainOperator is what comes with a command that expects nothing.
func (d *drawing) plainOperator() engine.Operator {
	o := d.operator()
	o.Expect = core.Expect{}
	return o
}

// someWaitpoint names one, most often one that is open.
func (d *drawing) someWaitpoint() base.UUID {
	var open, all []base.UUID
	for _, id := range d.m.sorted() {
		r := d.m.records[id]
		if r.x.Waits != nil {
			for _, w := range r.x.Waits.Open {
				open = append(open, w.ID)
			}
		}
		for i := range r.d.Waitpoints {
			all = append(all, r.d.Waitpoints[i].ID)
		}
	}
	switch {
	case len(open) > 0 && !d.rarely("any waitpoint", 5):
		return pickOne(d, "waitpoint", open...)
	case len(all) > 0 && !d.rarely("no waitpoint", 6):
		return pickOne(d, "waitpoint", all...)
	default:
		return waitpointAt(d.under("waitpoint", 6))
	}
}

// someLink names one, most often one of those made last.
func (d *drawing) someLink() base.UUID {
	var all []base.UUID
	for _, id := range d.m.sorted() {
		for i := range d.m.records[id].d.Links {
			all = append(all, d.m.records[id].d.Links[i].ID)
		}
	}
	if len(all) == 0 || d.rarely("no link", 10) {
		return base.UUID{0: 9}
	}
	return pickOne(d, "link", all...)
}

// token is one for a waitpoint or a link: what an operator would read now, what was shown once, what belongs to another, what is damaged.
func (d *drawing) token(id base.UUID, fields keyring.TokenFields) keyring.Token {
	k := d.m.signing
	shown := k.tokens[id]
	switch d.under("token", 12) {
	case 0:
		return d.tokenOfAnother()
	case 1:
		return d.damaged(id)
	case 2, 3:
		if len(shown) > 0 {
			return pickOne(d, "shown before", shown...)
		}
	case 4, 5, 6:
		if len(shown) > 0 {
			return shown[len(shown)-1]
		}
	}
	if fields == nil {
		return d.tokenOfAnother()
	}
	return k.show(id, fields)
}

func (d *drawing) tokenOfAnother() keyring.Token {
	var all []keyring.Token
	for _, id := range d.m.sorted() {
		r := d.m.records[id]
		for i := range r.d.Waitpoints {
			all = append(all, d.m.signing.tokens[r.d.Waitpoints[i].ID]...)
		}
		for i := range r.d.Links {
			all = append(all, d.m.signing.tokens[r.d.Links[i].ID]...)
		}
	}
	if len(all) == 0 {
		return keyring.TokenOf(firstKid + ":" + strings.Repeat("0", 64))
	}
	return pickOne(d, "token", all...)
}

// damaged is a token with one byte changed, or something that is none.
func (d *drawing) damaged(id base.UUID) keyring.Token {
	shown := d.m.signing.tokens[id]
	if len(shown) == 0 || d.rarely("no token", 4) {
		return keyring.TokenOf(pickOne(d, "text", "", "x", ":", "k0:", "k0:"+strings.Repeat("a", 63), "missing:"+strings.Repeat("a", 64)))
	}
	text := []byte(pickOne(d, "token", shown...).Reveal())
	at := d.under("place", len(text))
	text[at] = pickOne(d, "byte", byte('0'), 'f', 'A', ':', 0) + text[at]&1
	return keyring.TokenOf(string(text))
}

func (d *drawing) createWaitpoint() command {
	id, f := d.fenced()
	cmd := core.CreateWaitpointCommand{Fence: f, Key: pickOne(d, "waitpoint key", waitKeys...)}
	if !d.rarely("default expiry", 3) {
		ms := pickOne(d, "expires", base.Millis(500), 1000, 5000, 30_000, 0)
		cmd.ExpiresInMS = &ms
	}
	if d.rarely("own id", 4) {
		cmd.WaitpointID = waitpointAt(d.under("waitpoint id", 4))
	}
	if d.rarely("idempotency", 3) {
		cmd.IdempotencyKey = pickOne(d, "idempotency key", "w1", "w2")
	}
	return createCommand{C: d.keyed(d.caller(client)), ID: id, Cmd: cmd}
}

// suspend binds some pending waitpoints and fresh ones and asks for something about their keys.
func (d *drawing) suspend() command {
	return d.suspendUnder(d.fenced())
}

func (d *drawing) suspendUnder(id base.GivenID, f core.Fence) command {
	cmd := core.SuspendCommand{Fence: f, ResumeDelayMS: pickOne(d, "resume delay", base.Millis(0), 0, 0, 500)}
	keys := d.bind(&cmd, d.m.records[id.UUID])
	cmd.Condition = d.conditionOver(keys)
	if cmd.Condition.BindsNothing() && d.rarely("no waitpoints", 2) {
		cmd.Waitpoints = nil
	}
	switch d.under("timeout", 8) {
	case 0, 1, 2, 3:
		ms := pickOne(d, "timeout", base.Millis(0), 500, 1000, 1000, 5000, 30_000)
		cmd.TimeoutMS, cmd.Behavior = &ms, pickOne(d, "behavior", behaviors...)
	case 4:
		cmd.TimeoutAt, cmd.Behavior = d.m.now().Add(pickOne(d, "timeout at", base.Millis(-700_000), -1000, 1000, 5000)), pickOne(d, "behavior", behaviors...)
	}
	if d.rarely("idempotency", 2) {
		cmd.IdempotencyKey = pickOne(d, "idempotency key", "s1", "s2", "s3")
	}
	if d.rarely("own suspension id", 8) {
		cmd.SuspensionID = suspensionAt(d.under("suspension id", 3))
	}
	if d.rarely("continuation", 3) {
		cmd.Continuation = d.payload()
	}
	cmd.ReasonCode = pickOne(d, "reason code", "", "waiting_for_approval", "manual_pause", "step_boundary")
	return suspendCommand{C: d.keyed(d.caller(client)), ID: id, Cmd: cmd}
}

// bind draws the bindings and tells their keys.
func (d *drawing) bind(cmd *core.SuspendCommand, r *record) (keys []string) {
	if r != nil && r.x.Waits != nil {
		for _, open := range r.x.Waits.Open {
			if !slices.Contains(keys, open.Key) && !d.rarely("leave pending", 3) {
				keys = append(keys, open.Key)
				cmd.Waitpoints = append(cmd.Waitpoints, core.Binding{UsePending: true, ID: open.ID})
			}
		}
	}
	if d.rarely("adopt any", 12) {
		cmd.Waitpoints = append(cmd.Waitpoints, core.Binding{UsePending: true, ID: d.someWaitpoint()})
		return append(keys, pickOne(d, "waitpoint key", waitKeys...))
	}
	for len(keys) == 0 || d.rarely("one more", 4) && len(keys) < len(waitKeys) {
		key := pickOne(d, "waitpoint key", waitKeys...)
		if slices.Contains(keys, key) {
			continue
		}
		fresh := core.Binding{Key: &key}
		if d.rarely("own id", 6) {
			fresh.ID = waitpointAt(d.under("waitpoint id", 6))
		}
		keys, cmd.Waitpoints = append(keys, key), append(cmd.Waitpoints, fresh)
	}
	return keys
}

// conditionOver is a condition that names every key.
func (d *drawing) conditionOver(keys []string) *condition.Condition {
	matcher := func() condition.Matcher {
		return pickOne(d, "matcher", condition.Matcher{}, condition.ByName("approved"))
	}
	count := condition.Condition{
		Kind: condition.Count, Waitpoints: keys, N: pickOne(d, "n", 1, 2, 2), Matcher: matcher(),
		CountKind: pickOne(d, "count", condition.CountDistinctSignals, condition.CountDistinctSources, condition.CountDistinctWaitpoints),
	}
	if count.CountKind == condition.CountDistinctWaitpoints {
		count.N = min(count.N, len(keys))
	}
	all := condition.Condition{Kind: pickOne(d, "kind", condition.AllOf, condition.AnyOf)}
	for _, key := range keys {
		all.Members = append(all.Members, condition.Condition{Kind: condition.Single, Waitpoints: []string{key}, Matcher: matcher()})
	}
	switch d.under("form", 8) {
	case 0, 1, 2:
		return &count
	case 3, 4:
		return &all
	case 5:
		return &condition.Condition{Kind: condition.AllOf, Members: []condition.Condition{all, count}}
	case 6:
		return &condition.Condition{Kind: condition.OperatorOnly}
	default:
		return &condition.Condition{Kind: condition.TimeoutOnly}
	}
}

func (d *drawing) signal() command {
	id := d.someWaitpoint()
	var fields keyring.TokenFields
	r := d.m.ofWaitpoint(id)
	if r != nil {
		fields = r.d.Waitpoint(id).TokenFields()
	}
	cmd := core.SignalCommand{
		WaitpointID: id, Name: pickOne(d, "name", "approved", "rejected"), SourceType: pickOne(d, "source", "", "ci", "operator"),
		SourceIdentity: pickOne(d, "identity", "x", "y"), Payload: *d.payload(),
	}
	if cmd.SourceType == "operator" && !d.rarely("reserved", 6) {
		cmd.SourceType = "ci"
	}
	if d.rarely("idempotency", 3) {
		cmd.IdempotencyKey = pickOne(d, "idempotency key", "g1", "g2")
	}
	if d.rarely("own signal id", 6) {
		cmd.SignalID = base.UUID{0: 5, 6: 0x70, 8: 0x80, 15: byte(1 + d.under("signal id", 3))}
	}
	c := signalCommand{C: d.keyed(pickOne(d, "caller", stranger, client)), Token: d.token(id, fields), Cmd: cmd}
	if r != nil && d.rarely("execution given", 4) {
		given := r.x.ID.Given()
		if d.rarely("of another", 4) {
			given = d.someID(anyOf)
		}
		c.Given = &given
	}
	return c
}

func asleep(r *record) bool { return r.x.Status == core.Suspended }

func (d *drawing) approve() command {
	c := engine.Caller{Principal: pickOne(d, "approver", approvers...), Actor: "operator"}
	cmd := core.ApproveCommand{Name: pickOne(d, "name", "approved", "approved", "rejected"), Suffix: pickOne(d, "suffix", "", "1"), Comment: pickOne(d, "comment", "", "fine")}
	id := d.someID(asleep)
	if r := d.m.records[id.UUID]; d.rarely("named", 2) && r != nil && len(r.d.Waitpoints) > 0 {
		cmd.WaitpointID = pickOne(d, "waitpoint", r.d.Waitpoints...).ID
	}
	if d.rarely("lane", 8) {
		cmd.Lane = pickOne(d, "lane", "a", "b")
	}
	return approveCommand{C: d.caller(c), ID: id, Cmd: cmd, O: d.plainOperator()}
}

func (d *drawing) resume() command {
	id := d.someID(pickOne(d, "who", asleep, asleep, asleep, leased))
	cmd := core.ResumeCommand{DelayMS: pickOne(d, "delay", base.Millis(0), 0, 500, -1)}
	if r := d.m.records[id.UUID]; d.rarely("expected", 3) && r != nil && len(r.d.Suspensions) > 0 {
		cmd.ExpectedSuspensionID = pickOne(d, "suspension", r.d.Suspensions...).ID
	}
	return resumeCommand{C: d.caller(operator), ID: id, Cmd: cmd, O: d.plainOperator()}
}

// holderOf is the fence of the lease under which a waitpoint stands, now and then.
func (d *drawing) holderOf(r *record) *core.Fence {
	if r == nil || !d.rarely("by the holder", 3) {
		return nil
	}
	f := core.Fence{LeaseID: base.UUID{5: 1}, Epoch: 1, AttemptID: base.UUID{5: 2}}
	if r.x.Lease != nil {
		f = fenceOf(r.x)
	}
	return &f
}

func (d *drawing) closeWaitpoint() command {
	id := d.someWaitpoint()
	return closeCommand{C: d.caller(operator), Waitpoint: id, Fence: d.holderOf(d.m.ofWaitpoint(id)), O: d.plainOperator()}
}

func (d *drawing) readToken() command {
	w := d.someWaitpoint()
	id := d.someID(anyOf)
	if r := d.m.ofWaitpoint(w); r != nil && !d.rarely("of another", 4) {
		id = r.x.ID.Given()
	}
	return tokenCommand{Op: "read_waitpoint_token", C: d.caller(operator), ID: id, Waitpoint: w}
}

func (d *drawing) reissue() command {
	return tokenCommand{Op: "reissue_token", C: d.caller(operator), Waitpoint: d.someWaitpoint(), O: d.plainOperator()}
}

func (d *drawing) createLink() command {
	id := d.someWaitpoint()
	cmd := core.CreateLinkCommand{WaitpointID: id, Approver: pickOne(d, "approver", approvers...), Fence: d.holderOf(d.m.ofWaitpoint(id)), CommentRequired: d.rarely("comment", 5)}
	if d.rarely("short", 2) {
		ms := base.Minute
		cmd.ExpiresInMS = &ms
	}
	return linkCommand{C: d.caller(operator), Cmd: cmd, O: d.plainOperator()}
}

func (d *drawing) decide() command { return d.decideAt(d.someLink()) }

func (d *drawing) decideAt(id base.UUID) command {
	var fields keyring.TokenFields
	if r := d.m.ofLink(id); r != nil {
		link := r.d.Link(id)
		fields = link.TokenFields(r.d.Waitpoint(link.WaitpointID).MintedAt)
	}
	return decideCommand{C: d.keyed(stranger), Token: d.token(id, fields), Cmd: core.DecideCommand{
		LinkID: id, Decision: pickOne(d, "decision", "approve", "approve", "reject", "perhaps"), Comment: pickOne(d, "comment", "", "well"),
	}}
}

func (d *drawing) readLink() command {
	return readLinkCommand{C: d.caller(operator), Link: d.someLink()}
}

func (d *drawing) revokeLink() command {
	id := d.someLink()
	return revokeLinkCommand{C: d.caller(operator), Link: id, Fence: d.holderOf(d.m.ofLink(id)), O: d.plainOperator()}
}

func (d *drawing) look() command {
	return lookCommand{C: d.caller(client), ID: d.someID(func(r *record) bool { return r.x.Waits != nil })}
}

// key draws a change of the signing keys: of one that is there, or of a new one.
func (d *drawing) key(op string) command {
	keys := d.m.signing.set.Keys
	fresh := fmt.Sprintf("k%d", len(keys))
	kid := fresh
	if d.rarely("known kid", 2) || op == "revoke key" {
		kid = pickOne(d, "kid", keys...).Kid
	}
	if op == "seed key" && d.rarely("active", 2) {
		kid = keys[len(keys)-1].Kid
	}
	secret, grace := secretOf(kid), pickOne(d, "grace", base.Millis(0), 1000, 5000, keyring.DefaultKeyGrace, keyring.DefaultKeyGrace)
	if d.rarely("other secret", 8) {
		secret = secretOf("another")
	}
	return keyCommand{Op: op, Kid: kid, Secret: &secret, GraceMS: &grace, Force: d.rarely("force", 4)}
}
