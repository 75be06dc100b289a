package sim

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/condition"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// conditions are what executions wait for.
func conditions() []string {
	return []string{
		`{"type":"single","waitpoint_key":"a"}`,
		`{"type":"single","waitpoint_key":"a","name":"go"}`,
		`{"type":"count","n":2,"count_kind":"distinct_sources","waitpoints":["a"]}`,
		`{"type":"operator_only"}`,
	}
}

func suspend(w *World, r *rand.Rand) {
	text := pick(r, conditions()...)
	c, err := condition.Parse([]byte(text))
	if err != nil {
		w.found("a condition: %v", err)
		return
	}
	timeout := pick(r, base.Millis(0), 500, 5000)
	behavior := pick(r, core.BehaviorFail, core.BehaviorAutoResume, core.BehaviorCancel, core.BehaviorExpire)
	key := w.requestKey()
	underLease(w, r, "suspend", true, func(ctx context.Context, e *engine.Engine, l *lease) (any, error) {
		cmd := core.SuspendCommand{Fence: l.f, Condition: c, IdempotencyKey: key}
		for _, name := range c.Keys() {
			cmd.Waitpoints = append(cmd.Waitpoints, core.Binding{Key: &name})
		}
		if timeout > 0 {
			cmd.TimeoutMS, cmd.Behavior = &timeout, behavior
		}
		return e.Suspend(ctx, client(""), l.j.id.Given(), cmd)
	}, func(l *lease, _ int64, answer any, err error) {
		if err != nil {
			return
		}
		a := answer.(engine.SuspendAnswer)
		for i := range a.Waitpoints {
			w.journal.waits = append(w.journal.waits, wait{j: l.j, waitpoint: a.Waitpoints[i].ID, token: a.Tokens[i]})
		}
	})
}

// early makes a waitpoint before the suspension that waits at it, if one ever does.
func early(w *World, r *rand.Rand) {
	key := w.requestKey()
	underLease(w, r, "create waitpoint", false, func(ctx context.Context, e *engine.Engine, l *lease) (any, error) {
		return e.CreateWaitpoint(ctx, client(""), l.j.id.Given(), core.CreateWaitpointCommand{Fence: l.f, Key: "early-" + key, IdempotencyKey: key})
	}, func(l *lease, _ int64, answer any, err error) {
		if err == nil {
			a := answer.(engine.Issued)
			w.journal.waits = append(w.journal.waits, wait{j: l.j, waitpoint: a.ID, token: a.Token})
		}
	})
}

func signal(w *World, r *rand.Rand) {
	p, n := w.up(r), len(w.journal.waits)
	if p == nil || n == 0 {
		return
	}
	at := max(0, n-1-r.IntN(6))
	one := &w.journal.waits[at]
	one.signals++
	name, key, source := pick(r, "go", "go", "stop"), w.requestKey(), fmt.Sprintf("s%d", r.IntN(3))
	waitpoint, token := one.waitpoint, one.token
	w.issue(p, "signal to "+short(one.j.id), func(ctx context.Context, e *engine.Engine) (any, error) {
		return e.Signal(ctx, client(""), nil, token, core.SignalCommand{
			WaitpointID: waitpoint, Name: name, IdempotencyKey: key, SourceIdentity: source, Payload: core.Payload{Data: []byte(key), ContentType: "text/plain"},
		})
	}, func(any, error) {})
}

func resume(w *World, r *rand.Rand) {
	p, j := w.up(r), w.someJob(r)
	if n := len(w.journal.waits); n > 0 {
		j = w.journal.waits[r.IntN(n)].j
	}
	if p == nil || j == nil {
		return
	}
	op := engine.Operator{RequestKey: w.requestKey()}
	approve := r.IntN(3) == 0
	w.issue(p, "resume "+short(j.id), func(ctx context.Context, e *engine.Engine) (any, error) {
		if approve {
			return e.Approve(ctx, operator(), j.id.Given(), core.ApproveCommand{Name: "go"}, op)
		}
		_, resumed, err := e.Resume(ctx, operator(), j.id.Given(), core.ResumeCommand{}, op)
		return resumed, err
	}, func(any, error) {})
}

func step(w *World, r *rand.Rand) {
	name := fmt.Sprintf("step-%d", r.IntN(4))
	underLease(w, r, "put step", false, func(ctx context.Context, e *engine.Engine, l *lease) (any, error) {
		return e.PutStep(ctx, client(""), l.j.id.Given(), l.f, name, core.Payload{Data: []byte(name)})
	}, func(l *lease, known int64, answer any, err error) {
		w.journal.fenced("put step", l, known, err, err == nil && answer.(engine.StepAnswer).Outcome != "stored")
	})
}
