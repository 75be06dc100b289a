package model

import (
	"context"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// command is one call, with everything that it says, so that it can be sent again.
type command interface {
	op() string
	onModel(m *reference) (any, error)
	onEngine(ctx context.Context, on *subject) (any, error)
}

type submitCommand struct {
	C engine.Caller
	S core.Submission
}

func (c submitCommand) op() string {
	if c.S.Lane == fairLane {
		return "submit under a fairness key"
	}
	return "submit"
}

func (c submitCommand) onModel(m *reference) (any, error) { return m.submit(c.C, c.S) }
func (c submitCommand) onEngine(ctx context.Context, on *subject) (any, error) {
	return on.e.Submit(ctx, c.C, c.S)
}

type claimCommand struct {
	C engine.Caller
	R engine.ClaimRequest
}

func (c claimCommand) op() string {
	if slices.Equal(c.R.Lanes, []string{fairLane}) {
		return "claim in turn"
	}
	return "claim"
}

func (c claimCommand) onModel(m *reference) (any, error) { return m.claim(c.C, c.R) }
func (c claimCommand) onEngine(ctx context.Context, on *subject) (any, error) {
	got, err := on.e.Claim(ctx, c.C, c.R)
	answer := claimed{Drain: got.Drain}
	for _, t := range got.Tasks {
		answer.Tasks = append(answer.Tasks, takenOf(t.Execution, core.Acquired{How: t.How, ResumedFrom: t.ResumedFrom}, t.Resumed))
	}
	return answer, err
}

type targetCommand struct {
	Op string
	C  engine.Caller
	ID base.GivenID
	R  engine.TargetedRequest
}

func (c targetCommand) op() string                        { return c.Op }
func (c targetCommand) onModel(m *reference) (any, error) { return m.target(c.C, c.Op, c.ID, c.R) }
func (c targetCommand) onEngine(ctx context.Context, on *subject) (any, error) {
	call := map[string]func(context.Context, engine.Caller, base.GivenID, engine.TargetedRequest) (engine.Task, error){
		"claim_resumed": on.e.ClaimResumed, "reclaim": on.e.Reclaim, "operator_claim": on.e.OperatorClaim,
	}[c.Op]
	t, err := call(ctx, c.C, c.ID, c.R)
	if err != nil {
		return nil, err
	}
	return takenOf(t.Execution, core.Acquired{How: t.How, ResumedFrom: t.ResumedFrom}, t.Resumed), nil
}

// renewed is the answer to one renewal.
type renewed struct {
	Code  base.Code
	Lease engine.LeaseView
}

type renewCommand struct {
	C        engine.Caller
	Leases   []engine.LeaseRef
	Instance string // of a heartbeat, "" for a plain renewal
}

func (c renewCommand) op() string {
	if c.Instance != "" {
		return "heartbeat"
	}
	return "renew"
}

func (c renewCommand) onModel(m *reference) (any, error) {
	var answers []renewed
	for _, ref := range c.Leases {
		answers = append(answers, m.renew(c.C, ref))
	}
	return answers, nil
}

func (m *reference) renew(c engine.Caller, ref engine.LeaseRef) (answer renewed) {
	err := ref.Fence.Validate()
	if err == nil {
		err = m.on(c, ref.ID, func(r *record, fx *core.Effects) error {
			if err := r.x.Renew(fx, ref.Fence, ref.TTL); err != nil {
				return err
			}
			l := r.x.Lease
			answer.Lease = engine.LeaseView{ID: l.ID, Epoch: r.x.LeaseEpoch, AttemptID: l.AttemptID, InstanceID: l.InstanceID, ExpiresAt: l.ExpiresAt, TTL: l.TTL}
			return nil
		})
	}
	answer.Code = base.CodeOf(err)
	return answer
}

func (c renewCommand) onEngine(ctx context.Context, on *subject) (any, error) {
	var items []engine.RenewItem
	var err error
	if c.Instance != "" {
		var beat engine.HeartbeatAnswer
		beat, err = on.e.Heartbeat(ctx, c.C, c.Instance, c.Leases)
		items = beat.Leases
	} else {
		items, err = on.e.Renew(ctx, c.C, c.Leases)
	}
	var answers []renewed
	for _, item := range items {
		answers = append(answers, renewed{Code: base.CodeOf(item.Err), Lease: item.Lease})
	}
	return answers, err
}

// workerCommand is every command of a lease holder that is about its own execution.
type workerCommand struct {
	Op      string
	C       engine.Caller
	ID      base.GivenID
	Fence   core.Fence
	Result  *core.Payload
	Fail    core.FailCommand
	Until   base.Time
	Reason  string
	Percent *int
	Message *string
	Step    string
}

func (c workerCommand) op() string { return c.Op }

func (c workerCommand) onModel(m *reference) (answer any, err error) {
	if c.Op == "step" {
		return m.step(c)
	}
	if c.Op == "fail" {
		if err := c.Fence.Validate(); err != nil {
			return nil, err
		}
		if err := c.Fail.Normalize(); err != nil {
			return nil, err
		}
	}
	err = m.asWorker(c.C, c.ID, c.Fence, func(x *core.Execution, fx *core.Effects, recorded *core.LeaseRecord) (err error) {
		switch c.Op {
		case "complete":
			answer, err = x.Complete(fx, core.Completion{Fence: c.Fence, Result: sized(c.Result), Recorded: recorded})
		case "fail":
			f := c.Fail
			f.Fence, f.Recorded = c.Fence, recorded
			answer, err = x.Fail(fx, f)
		case "delay":
			answer, err = x.Delay(fx, core.DelayCommand{Fence: c.Fence, Until: c.Until, Recorded: recorded})
		case "release":
			answer, err = x.Release(fx, core.ReleaseCommand{Fence: c.Fence, Reason: c.Reason, Recorded: recorded})
		default:
			err = x.ReportProgress(fx, c.Fence, c.Percent, c.Message)
		}
		return err
	})
	return answer, err
}

func sized(p *core.Payload) *core.Payload {
	if p == nil {
		return nil
	}
	return &core.Payload{ContentType: base.DefaultContentType, Data: p.Data, Size: len(p.Data)}
}

func (c workerCommand) onEngine(ctx context.Context, on *subject) (any, error) {
	switch c.Op {
	case "complete":
		return on.e.Complete(ctx, c.C, c.ID, c.Fence, c.Result)
	case "fail":
		f := c.Fail
		f.Fence = c.Fence
		return on.e.Fail(ctx, c.C, c.ID, f)
	case "delay":
		return on.e.Delay(ctx, c.C, c.ID, c.Fence, c.Until)
	case "release":
		return on.e.Release(ctx, c.C, c.ID, c.Fence, c.Reason)
	case "step":
		a, err := on.e.PutStep(ctx, c.C, c.ID, c.Fence, c.Step, *c.Result)
		return a, err
	default:
		return nil, on.e.Progress(ctx, c.C, c.ID, c.Fence, c.Percent, c.Message)
	}
}

// step is L149.
func (m *reference) step(c workerCommand) (any, error) {
	if err := c.Fence.Validate(); err != nil {
		return nil, err
	}
	r, err := m.find(c.C, c.ID)
	if err != nil {
		return nil, err
	}
	m.settle(r)
	if _, err := r.x.CheckKeep(nil, c.Fence); err != nil {
		return nil, err
	}
	for _, known := range r.visible(r.x.RunIndex()) {
		if known.Name == c.Step {
			return engine.StepAnswer{Outcome: "exists", Record: known}, nil
		}
	}
	written := core.StepRecord{
		ExecutionID: r.x.ID, RunIndex: r.x.RunIndex(), Name: c.Step, Ordinal: len(r.steps), AttemptIndex: r.x.Attempt.Index,
		LeaseEpoch: c.Fence.Epoch, CreatedAt: m.now(), ContentType: base.DefaultContentType, Result: c.Result.Data,
	}
	r.steps = append(r.steps, written)
	return engine.StepAnswer{Outcome: "stored", Record: written}, nil
}

// visible lists the steps that a run sees (L150).
func (r *record) visible(run int) []core.StepRecord {
	first, kept := r.sees[run]
	if !kept {
		first = run
	}
	var seen []core.StepRecord
	for _, s := range r.steps {
		if s.RunIndex >= first && s.RunIndex <= run {
			seen = append(seen, s)
		}
	}
	return seen
}

// markCommand marks an instance dead, drains it or registers it.
type markCommand struct {
	Op       string // mark_dead, drain, register
	C        engine.Caller
	Worker   string
	Instance string
	On       bool // take leases; drain on
}

func (c markCommand) op() string { return c.Op }

func (c markCommand) onModel(m *reference) (any, error) {
	switch c.Op {
	case "mark_dead":
		return nil, m.markDead(c.C, c.Instance, c.On)
	case "drain":
		w := m.workers[c.Instance]
		if !w.seenBy(c.C) {
			return nil, base.Errorf(base.CodeWorkerNotRegistered, "unknown")
		}
		w.draining = c.On
		return nil, nil
	default:
		w := m.workers[c.Instance]
		if w == nil {
			w = &worker{}
			m.workers[c.Instance] = w
		} else if !w.seenBy(c.C) && w.owner != c.C.Principal {
			return nil, base.Errorf(base.CodeInstanceIDTaken, "of another namespace")
		}
		w.marked, w.namespaces, w.owner = false, c.C.Namespaces, c.C.Principal
		return nil, nil
	}
}

func (c markCommand) onEngine(ctx context.Context, on *subject) (any, error) {
	switch c.Op {
	case "mark_dead":
		return nil, on.e.MarkDead(ctx, c.C, c.Instance, "", c.On)
	case "drain":
		return nil, on.e.Drain(ctx, c.C, "", c.Instance, c.On)
	default:
		_, err := on.e.Register(ctx, c.C, core.Registration{WorkerID: c.Worker, InstanceID: c.Instance, Lanes: []string{"a", "b"}})
		return nil, err
	}
}
