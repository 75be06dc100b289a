package model

import (
	"fmt"
	"math/bits"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// Small spaces, so that commands collide.
var (
	client   = engine.Caller{Principal: "me", Actor: "client", RequestID: "r-1"}
	operator = engine.Caller{Principal: "op", Actor: "operator"}
	stranger = engine.Caller{Principal: "me", Actor: "client", Namespaces: []string{"n2"}}

	policies = []string{
		"", "",
		`{"retry_policy":{"max_retries":2,"backoff":{"strategy":"fixed","delay_ms":500}}}`,
		`{"retry_policy":{"max_retries":1,"backoff":{"initial_ms":100,"max_ms":1000},"retryable_categories":["timeout","net"],"max_elapsed_ms":5000},"lease_grace_ms":500}`,
		`{"timeout_policy":{"attempt_timeout_ms":1000},"max_reclaim_count":1,"retry_policy":{"max_retries":1,"backoff":{"strategy":"fixed","delay_ms":0}}}`,
		`{"timeout_policy":{"execution_deadline_ms":5000},"max_replay_count":1}`,
		`{"max_reclaim_count":0,"dedup_window_ms":1000}`,
		`{"routing_requirements":{"required_capabilities":["gpu"]},"slots_while_waiting":"hold"}`,
		`{"retention_ms":1000,"lease_grace_ms":1000}`,
		`{"suspension_policy":{"default_timeout_ms":5000,"timeout_behavior":"auto_resume_with_timeout_signal"},"max_replay_count":5}`,
		`{"max_signals_per_execution":2,"retry_policy":{"max_retries":1,"backoff":{"strategy":"fixed","delay_ms":0}}}`,
		`{"nope":1}`,
	}
	steps = []time.Duration{
		50 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 100 * time.Millisecond, 500 * time.Millisecond, 500 * time.Millisecond,
		time.Second, time.Second, 2 * time.Second, 5 * time.Second, 30 * time.Second, time.Minute,
	}
	instances = []string{"i1", "i2"}
)

func idAt(n int) base.UUID {
	return base.UUID{0: 2, 6: 0x70, 8: 0x80, 15: byte(n + 1)}
}

// drawing makes commands for one case.
type drawing struct {
	t    *rapid.T
	m    *reference
	sent []command

	aboutWaits bool // it is a case about waits
}

// coin is drawn again and again: rapid's numbers lean towards the small ones, its coins do not.
var coin = rapid.Bool()

// under draws a number below n, all of them nearly as often.
func (d *drawing) under(what string, n int) int {
	number := 0
	for range bits.Len(uint(n)) + 3 {
		number *= 2
		if coin.Draw(d.t, what) {
			number++
		}
	}
	return number % n
}

func pickOne[T any](d *drawing, what string, from ...T) T { return from[d.under(what, len(from))] }

// rarely is true once in n draws.
func (d *drawing) rarely(what string, n int) bool { return d.under(what, n) == n-1 }

func (d *drawing) caller(usual engine.Caller) engine.Caller {
	if d.rarely("stranger", 20) {
		return stranger
	}
	return usual
}

func (d *drawing) later(what string) base.Time {
	return d.m.now().Add(pickOne(d, what, steps...).Milliseconds())
}

// someID names an execution, most often one that exists.
func (d *drawing) someID(prefer func(r *record) bool) base.GivenID {
	var ids []base.UUID
	for _, id := range d.m.sorted() {
		if prefer(d.m.records[id]) {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		ids = d.m.sorted()
	}
	if len(ids) == 0 || d.rarely("any id", 8) {
		ids = nil
		for n := range 5 {
			ids = append(ids, idAt(n))
		}
	}
	given := base.GivenID{UUID: pickOne(d, "id", ids...)}
	switch {
	case d.rarely("wrong n", 40):
		given.Full, given.N = true, base.PartitionOf(given.UUID)+1
	case d.rarely("full form", 2):
		given = given.ID().Given()
	}
	return given
}

func running(r *record) bool  { return r.x.Status == core.Running }
func leased(r *record) bool   { return r.x.LeaseEpoch > 0 }
func terminal(r *record) bool { return r.x.Status.Terminal() }
func queued(r *record) bool   { return r.x.Status.Queues() }
func anyOf(*record) bool      { return true }

// fenced names an execution and a fence: that of its lease, an old one, or a damaged one.
func (d *drawing) fenced() (base.GivenID, core.Fence) {
	prefer := running
	if d.rarely("not running", 4) {
		prefer = leased
	}
	id := d.someID(prefer)
	f := core.Fence{LeaseID: base.UUID{5: 1}, Epoch: 1, AttemptID: base.UUID{5: 2}}
	r := d.m.records[id.UUID]
	if r == nil {
		return id, f
	}
	if x := r.x; x.Lease != nil && !d.rarely("old fence", 6) {
		f = fenceOf(x)
	} else if len(r.history) > 0 {
		entry := r.history[len(r.history)-1]
		if d.rarely("older fence", 3) {
			entry = pickOne(d, "entry", r.history...)
		}
		f = core.Fence{LeaseID: entry.LeaseID, Epoch: entry.Epoch, AttemptID: entry.Attempt.ID}
	}
	if d.rarely("damage", 8) {
		switch d.under("part", 6) {
		case 0:
			f.LeaseID[15]++
		case 1:
			f.Epoch++
		case 2:
			f.AttemptID[15]++
		case 3:
			f.AttemptID = base.UUID{}
		case 4:
			f.Epoch = 0
		default:
			f = core.Fence{}
		}
	}
	return id, f
}

func (d *drawing) operator() engine.Operator {
	o := engine.Operator{Reason: pickOne(d, "reason", "", "because")}
	if d.rarely("request key", 3) {
		o.RequestKey = pickOne(d, "key", "q1", "q2")
	}
	if d.rarely("expect", 6) {
		status := pickOne(d, "status", core.Ready, core.Running, core.Succeeded)
		o.Expect.Status = &status
	}
	if d.rarely("expect epoch", 20) {
		epoch := int64(d.under("epoch", 3))
		o.Expect.LeaseEpoch = &epoch
	}
	return o
}

func (d *drawing) payload() *core.Payload {
	return &core.Payload{Data: pickOne(d, "bytes", []byte{}, []byte("x"), []byte{0, 255, '\n'})}
}

func (d *drawing) submit() command {
	s := core.Submission{
		Namespace: pickOne(d, "namespace", "n1", "n1", "n2"), Lane: pickOne(d, "lane", "a", "a", "b"), Kind: pickOne(d, "kind", "k1", "k2"),
		Input:      core.Payload{Data: []byte(pickOne(d, "input", "", "in", "\x00\xff"))},
		Priority:   pickOne(d, "priority", 0, 0, 1, 9001),
		PolicyJSON: []byte(pickOne(d, "policy", policies...)),
	}
	if !d.rarely("minted id", 4) {
		given := base.GivenID{UUID: idAt(d.under("id", 5))}
		if d.rarely("own n", 10) {
			given.Full, given.N = true, 7
		}
		s.ID = &given
	}
	if d.rarely("key", 3) {
		s.IdempotencyKey = pickOne(d, "key", "x", "y")
	}
	if d.rarely("tags", 3) {
		s.Tags = base.Tags{"t": pickOne(d, "tag", "1", "2")}
	}
	switch d.under("times", 10) {
	case 0:
		s.DelayUntil = d.later("delay")
	case 1:
		ms := pickOne(d, "delay", steps...).Milliseconds()
		s.DelayMS = &ms
	case 2:
		s.DeadlineAt = d.later("deadline")
	case 3:
		s.DeadlineAt = d.m.now()
	case 4:
		s.DelayUntil, s.DeadlineAt = d.later("delay"), d.later("deadline")
	}
	return submitCommand{C: client, S: s}
}

func (d *drawing) ttl() base.Millis {
	return pickOne(d, "ttl", base.Millis(500), 1000, 5000, 5000, 90_000, 90_000)
}

func (d *drawing) requestKey() string {
	if d.rarely("request key", 3) {
		return pickOne(d, "key", "c1", "c2")
	}
	return ""
}

func workerOf(instance string) string { return "w" + instance[1:] }

func (d *drawing) claim() command {
	instance := pickOne(d, "instance", instances...)
	r := engine.ClaimRequest{
		WorkerID: workerOf(instance), InstanceID: instance, Lanes: pickOne(d, "lanes", []string{"a"}, []string{"a", "b"}, []string{"b", "a"}),
		Max: pickOne(d, "max", 0, 1, 2, 3), Capabilities: pickOne(d, "capabilities", nil, []string{"cpu", "gpu"}, []string{"gpu"}),
		LaneOrder: pickOne(d, "order", "", "listed"), TTL: d.ttl(), RequestKey: d.requestKey(),
	}
	if d.rarely("kinds", 4) {
		r.Kinds = []string{"k1"}
	}
	if d.rarely("namespaces", 6) {
		r.Namespaces = []string{pickOne(d, "namespace", "n1", "n2")}
	}
	return claimCommand{C: d.caller(client), R: r}
}

func (d *drawing) target(op string) command {
	prefer := map[string]func(*record) bool{
		"claim_resumed":  func(r *record) bool { return queued(r) && r.x.Next == core.NextResume },
		"reclaim":        func(r *record) bool { return queued(r) && r.x.Next == core.NextReclaim },
		"operator_claim": func(r *record) bool { return r.x.Status == core.Ready },
	}[op]
	instance := pickOne(d, "instance", instances...)
	r := engine.TargetedRequest{
		WorkerID: workerOf(instance), InstanceID: instance, Capabilities: pickOne(d, "capabilities", nil, []string{"gpu"}), TTL: d.ttl(), RequestKey: d.requestKey(),
	}
	if d.rarely("lane", 4) {
		r.Lane = pickOne(d, "lane", "a", "b")
	}
	usual := client // to whom the instances belong
	if op == "operator_claim" {
		usual, r.Force = operator, d.rarely("force", 3)
	}
	return targetCommand{Op: op, C: d.caller(usual), ID: d.someID(prefer), R: r}
}

func (d *drawing) renewals(instance string) command {
	cmd := renewCommand{C: d.caller(client), Instance: instance}
	for range 1 + d.under("leases", 2) {
		id, f := d.fenced()
		cmd.Leases = append(cmd.Leases, engine.LeaseRef{ID: id, Fence: f, TTL: pickOne(d, "ttl", base.Millis(0), 500, 5000)})
	}
	return cmd
}

func (d *drawing) work(op string) command {
	id, f := d.fenced()
	cmd := workerCommand{Op: op, C: d.caller(client), ID: id, Fence: f}
	switch op {
	case "complete":
		if !d.rarely("no result", 3) {
			cmd.Result = d.payload()
		}
	case "fail":
		cmd.Fail = core.FailCommand{
			Class: pickOne(d, "class", "", "transient", "timeout", "infra_crash", "permanent", "cancelled"), Category: pickOne(d, "category", "", "net"),
			Message: pickOne(d, "message", "", "broken \xff pipe"), Detail: pickOne(d, "detail", nil, []byte{0, 1, 254}),
		}
		if d.rarely("retry after", 4) {
			after := pickOne(d, "after", base.Millis(0), 500, 30_000)
			cmd.Fail.RetryAfter = &after
		}
	case "delay":
		cmd.Until = pickOne(d, "until", d.m.now(), d.m.now().Add(-1000), d.m.now().Add(100), d.m.now().Add(5000))
	case "release":
		cmd.Reason = pickOne(d, "reason", "", "stop")
	case "step":
		cmd.Step, cmd.Result = pickOne(d, "step", "one", "two"), d.payload()
	case "progress":
		if percent := d.under("percent", 101); percent != 50 {
			cmd.Percent = &percent
		}
		if d.rarely("message", 2) {
			text := pickOne(d, "text", "", "on it")
			cmd.Message = &text
		}
	}
	return cmd
}

func (d *drawing) operate(op string) command {
	prefer := map[string]func(*record) bool{
		"replay": terminal, "delete": terminal, "retain": terminal, "end_retain": func(r *record) bool { return r.x.Retain != nil },
		"revoke": running, "complete_override": running, "fail_override": running, "hold": queued,
		"release_hold": func(r *record) bool { return r.x.Held != nil },
	}[op]
	switch {
	case d.aboutWaits && op == "cancel" && !d.rarely("awake", 3):
		prefer = asleep
	case prefer == nil:
		prefer = anyOf
	}
	cmd := operatorCommand{Op: op, C: d.caller(operator), ID: d.someID(prefer), O: d.operator()}
	switch op {
	case "replay":
		cmd.Keep = d.rarely("keep steps", 2)
		if d.rarely("deadline", 4) {
			cmd.Deadline = pickOne(d, "deadline", d.m.now(), d.m.now().Add(1000), d.m.now().Add(60_000))
		}
	case "set_priority":
		cmd.Priority = pickOne(d, "priority", -1, 0, 1, 2, 10_000)
	case "revoke":
		cmd.Hold = d.rarely("hold", 3)
	case "set_tags":
		value := pickOne(d, "value", "1", "2")
		cmd.Tags = pickOne(d, "tags", map[string]*string{"t": &value}, map[string]*string{"t": nil, "u": &value}, map[string]*string{"ff.x": &value})
	case "retain":
		cmd.Until = pickOne(d, "until", 0, d.m.now().Add(2000), d.m.now().Add(60_000))
	case "complete_override":
		cmd.Result = pickOne(d, "result", nil, d.payload())
	case "fail_override":
		cmd.Fail = core.FailCommand{Class: pickOne(d, "class", "permanent", "transient"), Message: "no"}
	}
	return cmd
}

func (d *drawing) holderCancel() command {
	id, f := d.fenced()
	return operatorCommand{Op: "cancel", C: d.caller(client), ID: id, Fence: &f, O: engine.Operator{Reason: "mine"}}
}

func (d *drawing) laneState() command {
	return laneCommand{C: operator, Name: pickOne(d, "lane", "a", "b"), State: pickOne(d, "state", core.LaneActive, core.LaneActive, core.LaneActive, core.LaneActive, core.LanePaused, core.LaneDraining, core.LaneDisabled), O: engine.Operator{Reason: "so"}}
}

func (d *drawing) putLane() command {
	s := &core.LaneSettings{
		State: pickOne(d, "state", 0, 0, 0, core.LanePaused), MaxConcurrent: pickOne(d, "cap", 0, 0, 1, 2), AgeingMS: pickOne(d, "ageing", base.Millis(0), 0, 1000),
	}
	return laneCommand{C: operator, Name: pickOne(d, "lane", "a", "b"), Settings: s}
}

func (d *drawing) mark(op string) command {
	instance := pickOne(d, "instance", instances...)
	by := operator
	if op == "register" {
		by = client // to whom the instances belong
	}
	return markCommand{Op: op, C: by, Worker: workerOf(instance), Instance: instance, On: d.rarely("on", 3)}
}

// operations is every kind of command, with how often it is drawn in a case that is not about waits. Each must succeed at least once in a run.
var operations = []struct {
	name   string
	weight int
	draw   func(d *drawing) command
}{
	{"submit", 8, (*drawing).submit},
	{"claim", 14, (*drawing).claim},
	{"claim_resumed", 3, func(d *drawing) command { return d.target("claim_resumed") }},
	{"reclaim", 2, func(d *drawing) command { return d.target("reclaim") }},
	{"operator_claim", 6, func(d *drawing) command { return d.target("operator_claim") }},
	{"renew", 4, func(d *drawing) command { return d.renewals("") }},
	{"heartbeat", 4, func(d *drawing) command { return d.renewals(pickOne(d, "instance", instances...)) }},
	{"progress", 5, func(d *drawing) command { return d.work("progress") }},
	{"complete", 5, func(d *drawing) command { return d.work("complete") }},
	{"fail", 6, func(d *drawing) command { return d.work("fail") }},
	{"delay", 4, func(d *drawing) command { return d.work("delay") }},
	{"release", 4, func(d *drawing) command { return d.work("release") }},
	{"step", 5, func(d *drawing) command { return d.work("step") }},
	{"cancel by the holder", 4, (*drawing).holderCancel},
	{"cancel", 3, func(d *drawing) command { return d.operate("cancel") }},
	{"replay", 4, func(d *drawing) command { return d.operate("replay") }},
	{"set_priority", 5, func(d *drawing) command { return d.operate("set_priority") }},
	{"hold", 4, func(d *drawing) command { return d.operate("hold") }},
	{"release_hold", 4, func(d *drawing) command { return d.operate("release_hold") }},
	{"revoke", 3, func(d *drawing) command { return d.operate("revoke") }},
	{"set_tags", 4, func(d *drawing) command { return d.operate("set_tags") }},
	{"retain", 4, func(d *drawing) command { return d.operate("retain") }},
	{"end_retain", 5, func(d *drawing) command { return d.operate("end_retain") }},
	{"complete_override", 4, func(d *drawing) command { return d.operate("complete_override") }},
	{"fail_override", 4, func(d *drawing) command { return d.operate("fail_override") }},
	{"delete", 3, func(d *drawing) command { return d.operate("delete") }},
	{"mark_dead", 3, func(d *drawing) command { return d.mark("mark_dead") }},
	{"register", 2, func(d *drawing) command { return d.mark("register") }},
	{"drain", 2, func(d *drawing) command { return d.mark("drain") }},
	{"set_lane_state", 2, (*drawing).laneState},
	{"put_lane", 2, (*drawing).putLane},
	{"put a fair lane", 2, (*drawing).putFairLane},
	{"submit under a fairness key", 5, (*drawing).fairSubmit},
	{"claim in turn", 6, (*drawing).fairClaim},
	{"submit in a transaction", 3, func(d *drawing) command { return d.ownTx(true) }},
	{"submit in a transaction rolled back", 3, func(d *drawing) command { return d.ownTx(false) }},
	{"create_waitpoint", 0, (*drawing).createWaitpoint},
	{"close_waitpoint", 0, (*drawing).closeWaitpoint},
	{"suspend", 0, (*drawing).suspend},
	{"signal", 0, (*drawing).signal},
	{"approve", 0, (*drawing).approve},
	{"resume", 0, (*drawing).resume},
	{"read_waitpoint_token", 0, (*drawing).readToken},
	{"reissue_token", 0, (*drawing).reissue},
	{"create_link", 0, (*drawing).createLink},
	{"read_link_url", 0, (*drawing).readLink},
	{"decide", 0, (*drawing).decide},
	{"revoke_link", 0, (*drawing).revokeLink},
	{"look at waits", 0, (*drawing).look},
	{"seed key", 0, func(d *drawing) command { return d.key("seed key") }},
	{"rotate key", 0, func(d *drawing) command { return d.key("rotate key") }},
	{"revoke key", 0, func(d *drawing) command { return d.key("revoke key") }},
	{"bulk cancel", 1, func(d *drawing) command { return d.bulk("cancel") }},
	{"bulk hold", 3, func(d *drawing) command { return d.bulk("hold") }},
	{"bulk release_hold", 3, func(d *drawing) command { return d.bulk("release_hold") }},
}

// weighted lists the operations as often as they are to be drawn, in a case about waits or in another.
func weighted(aboutWaits bool) []string {
	var all []string
	for _, o := range operations {
		weight := o.weight
		if aboutWaits {
			weight = waitWeights[o.name]
		}
		all = append(all, slices.Repeat([]string{o.name}, weight)...)
	}
	return all
}

// busy makes sure, most of the time, that there is something to work on: a claim that takes what it can while little runs.
func (d *drawing) busy() command {
	runs, waits := 0, 0
	for _, r := range d.m.records { // counted, in whatever order
		switch r.x.Status {
		case core.Running:
			runs++
		case core.Ready:
			waits++
		}
	}
	for _, instance := range instances {
		if w := d.m.workers[instance]; runs < 2 && waits > 0 && (w == nil || !w.marked && !w.draining) && d.rarely("busy", 2) {
			return claimCommand{C: client, R: engine.ClaimRequest{
				WorkerID: workerOf(instance), InstanceID: instance, Lanes: []string{"a", "b"}, Max: 2, Capabilities: []string{"gpu"}, TTL: 90_000,
			}}
		}
	}
	return nil
}

// takeover uses the rare moments in which begun work waits for somebody to go on with it.
func (d *drawing) takeover() command {
	for _, id := range d.m.sorted() {
		r := d.m.records[id]
		if r.x.Status != core.Ready || r.x.Next != core.NextResume && r.x.Next != core.NextReclaim {
			continue
		}
		if !d.rarely("takeover", 2) {
			return nil
		}
		if r.x.Next == core.NextResume {
			return d.target("claim_resumed")
		}
		return d.target("reclaim")
	}
	return nil
}

// next draws a command: a new one, or one that was sent before, exactly as it was.
func (d *drawing) next(weights []string) command {
	if cmd := d.begin(); cmd != nil {
		return cmd
	}
	if cmd := d.takeover(); cmd != nil {
		return cmd
	}
	if cmd := d.busy(); cmd != nil {
		return cmd
	}
	if cmd := d.opportunity(); cmd != nil {
		return cmd
	}
	if len(d.sent) > 0 && d.rarely("again", 12) {
		return pickOne(d, "earlier command", d.sent...)
	}
	return d.operation(pickOne(d, "operation", weights...))
}

// show writes a command for the log of a failure.
func show(c command) string {
	if s, isSubmit := c.(submitCommand); isSubmit {
		return fmt.Sprintf("submit %v %s/%s/%s key %q input %q policy %s priority %d delay %s deadline %s",
			s.S.ID, s.S.Namespace, s.S.Lane, s.S.Kind, s.S.IdempotencyKey, s.S.Input.Data, s.S.PolicyJSON, s.S.Priority, s.S.DelayUntil, s.S.DeadlineAt)
	}
	return fmt.Sprintf("%s %+v", c.op(), c)
}
