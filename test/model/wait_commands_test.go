package model

import (
	"context"
	"fmt"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// createCommand makes a pending waitpoint.
type createCommand struct {
	C   engine.Caller
	ID  base.GivenID
	Cmd core.CreateWaitpointCommand
}

func (c createCommand) op() string { return "create_waitpoint" }

func (c createCommand) onModel(m *reference) (any, error) {
	cmd := c.Cmd
	if err := cmd.Check(); err != nil {
		return nil, err
	}
	cmd.MintedID, cmd.Keys = m.ids.next(), m.signing.ring()
	cmd.Taken = !cmd.WaitpointID.IsZero() && m.takenWaitpoint(cmd.WaitpointID)
	type recorded struct {
		id      base.UUID
		expires base.Time
	}
	var answer *issued
	kept, err := m.operate(c.C, "create_waitpoint", c.ID, engine.Operator{RequestKey: c.C.RequestKey}, []any{cmd.Fingerprint(), cmd.IdempotencyKey},
		func(r *record, fx *core.Effects) (any, error) {
			byWorker(r, fx)
			got, err := r.x.CreateWaitpoint(fx, &r.d, cmd)
			if err != nil {
				return nil, err
			}
			answer = &issued{Row: string(got.Waitpoint.Encode()), Token: m.signing.show(got.Waitpoint.ID, got.Waitpoint.TokenFields()).Reveal(), Repeated: got.Repeated}
			return recorded{got.Waitpoint.ID, got.Waitpoint.ExpiresAt}, nil
		})
	if err != nil {
		return nil, err
	}
	if answer == nil { // a repeat by the request key
		known := kept.(recorded)
		row := *m.records[c.ID.UUID].d.Waitpoint(known.id)
		row.ExpiresAt = known.expires
		answer = &issued{Row: string(row.Encode()), Token: m.signing.show(row.ID, row.TokenFields()).Reveal(), Repeated: true}
	}
	return *answer, nil
}

func (c createCommand) onEngine(ctx context.Context, on *subject) (any, error) {
	got, err := on.e.CreateWaitpoint(ctx, c.C, c.ID, c.Cmd)
	return issued{Row: string(got.Waitpoint.Encode()), Token: got.Token.Reveal(), Repeated: got.Repeated}, err
}

// byWorker names the worker of the attempt in what a command tells.
func byWorker(r *record, fx *core.Effects) {
	fx.Actor.Type = "worker"
	if r.x.Attempt != nil {
		fx.Actor.ID = r.x.Attempt.WorkerID
	}
}

// suspendCommand hands the lease back.
type suspendCommand struct {
	C   engine.Caller
	ID  base.GivenID
	Cmd core.SuspendCommand
}

func (c suspendCommand) op() string { return "suspend" }

func (c suspendCommand) onModel(m *reference) (any, error) {
	cmd := c.Cmd
	if err := cmd.Check(); err != nil {
		return nil, err
	}
	cmd.Keys, cmd.Mint, cmd.Taken = m.signing.ring(), m.ids.next, m.takenWaitpoint
	type recorded struct {
		id        base.UUID
		satisfied bool
	}
	var answer *core.SuspendAnswer
	kept, err := m.operate(c.C, "suspend", c.ID, engine.Operator{RequestKey: c.C.RequestKey}, []any{cmd.Fingerprint(), cmd.IdempotencyKey},
		func(r *record, fx *core.Effects) (any, error) {
			byWorker(r, fx)
			cmd.Recorded = r.entry(cmd.Fence.Epoch)
			got, err := r.x.Suspend(fx, &r.d, cmd)
			answer = &got
			return recorded{got.SuspensionID, got.Satisfied}, err
		})
	if err != nil {
		return nil, err
	}
	if answer == nil {
		known := kept.(recorded)
		again, err := m.records[c.ID.UUID].d.SuspendAnswered(known.id, known.satisfied)
		if err != nil {
			return nil, err
		}
		answer = &again
	}
	return suspendedOf(*answer, func(i int) keyring.Token {
		return m.signing.show(answer.Waitpoints[i].ID, answer.Waitpoints[i].TokenFields())
	}), nil
}

func (c suspendCommand) onEngine(ctx context.Context, on *subject) (any, error) {
	got, err := on.e.Suspend(ctx, c.C, c.ID, c.Cmd)
	if err == nil && len(got.Tokens) != len(got.Waitpoints) {
		return nil, fmt.Errorf("%d tokens for %d waitpoints", len(got.Tokens), len(got.Waitpoints))
	}
	return suspendedOf(got.SuspendAnswer, func(i int) keyring.Token { return got.Tokens[i] }), err
}

// signalCommand delivers a signal under a token.
type signalCommand struct {
	C     engine.Caller
	Given *base.GivenID
	Token keyring.Token
	Cmd   core.SignalCommand
}

func (c signalCommand) op() string { return "signal" }

func (c signalCommand) onModel(m *reference) (any, error) {
	r := m.ofWaitpoint(c.Cmd.WaitpointID)
	var fields keyring.TokenFields
	if r != nil {
		fields = r.d.Waitpoint(c.Cmd.WaitpointID).TokenFields()
	}
	cmd := c.Cmd
	cmd.MintedID = m.ids.next()
	cmd.TokenKid, cmd.TokenFingerprint = c.Token.Split()
	if _, err := m.signing.ring().Verify(m.now(), c.Token, fields); err != nil {
		return nil, err
	}
	if c.Given != nil && !c.Given.Names(r.x.ID) {
		return nil, keyring.InvalidToken()
	}
	if err := cmd.Check(); err != nil {
		return nil, err
	}
	return m.operate(everywhere(c.C), "signal "+cmd.WaitpointID.String(), r.x.ID.Given(), engine.Operator{RequestKey: c.C.RequestKey}, c.Cmd,
		func(r *record, fx *core.Effects) (any, error) { return r.x.Deliver(fx, &r.d, cmd) })
}

// everywhere is a caller who has shown a token: his namespaces do not matter.
func everywhere(c engine.Caller) engine.Caller {
	c.Namespaces = nil
	return c
}

func (c signalCommand) onEngine(ctx context.Context, on *subject) (any, error) {
	return on.e.Signal(ctx, c.C, c.Given, c.Token, c.Cmd)
}

// approveCommand is an operator's signal.
type approveCommand struct {
	C   engine.Caller
	ID  base.GivenID
	Cmd core.ApproveCommand
	O   engine.Operator
}

func (c approveCommand) op() string { return "approve" }

func (c approveCommand) onModel(m *reference) (any, error) {
	cmd := c.Cmd
	cmd.Principal, cmd.MintedID = c.C.Principal, m.ids.next()
	return m.operate(c.C, "approve", c.ID, c.O, c.Cmd, func(r *record, fx *core.Effects) (any, error) { return r.x.Approve(fx, &r.d, cmd) })
}

func (c approveCommand) onEngine(ctx context.Context, on *subject) (any, error) {
	return on.e.Approve(ctx, c.C, c.ID, c.Cmd, c.O)
}

// resumed is the answer to a resume.
type resumed struct {
	Shown   any
	Already bool
}

// resumeCommand ends a suspension on an operator's word.
type resumeCommand struct {
	C   engine.Caller
	ID  base.GivenID
	Cmd core.ResumeCommand
	O   engine.Operator
}

func (c resumeCommand) op() string { return "resume" }

func (c resumeCommand) onModel(m *reference) (any, error) {
	cmd := c.Cmd
	cmd.By, cmd.Reason = c.C.Principal, c.O.Reason
	if err := cmd.Check(); err != nil {
		return nil, err
	}
	return m.operate(c.C, "resume", c.ID, c.O, cmd, func(r *record, fx *core.Effects) (any, error) {
		already, err := r.x.Resume(fx, &r.d, cmd)
		return resumed{Shown: r.view(m, "resume"), Already: already}, err
	})
}

func (c resumeCommand) onEngine(ctx context.Context, on *subject) (any, error) {
	view, already, err := on.e.Resume(ctx, c.C, c.ID, c.Cmd, c.O)
	if err != nil {
		return nil, err
	}
	public, _ := core.Derive(view.Execution, view.Lane)
	return resumed{Already: already, Shown: shown{
		Status: view.Execution.Status, Reason: view.Execution.Reason, Public: public, Mutated: view.Execution.LastMutationAt,
	}}, nil
}

// lookCommand reads everything that is shown of an execution's waits.
type lookCommand struct {
	C  engine.Caller
	ID base.GivenID
}

func (c lookCommand) op() string { return "look at waits" }

func (c lookCommand) onModel(m *reference) (any, error) {
	r, err := m.find(c.C, c.ID)
	if err != nil {
		return nil, err
	}
	later, _ := m.settled(r)
	x, d := later.x, &later.d
	o, err := x.Observe(d)
	if err != nil {
		return nil, err
	}
	all := []string{observed(o)}
	history, err := x.Suspensions(d)
	if err != nil {
		return nil, err
	}
	for i := range history {
		all = append(all, fmt.Sprintf("%d %s", history[i].Seq, history[i].Cause))
	}
	signals, err := d.SignalViews(base.UUID{})
	if err != nil {
		return nil, err
	}
	for i := range signals {
		all = append(all, signalLine(&signals[i]))
	}
	points, err := x.WaitpointViews(d, true)
	if err != nil {
		return nil, err
	}
	for i := range points {
		all = append(all, waitpointLine(&points[i]))
		for _, link := range d.LinkViews(r.now(m.now()), points[i].ID) {
			all = append(all, linkLine(&link))
		}
	}
	return all, nil
}

func waitpointLine(v *core.WaitpointView) string {
	return fmt.Sprintf("%s %s %s %s %d %d %s %d", v.Encode(), v.State, v.CloseReason, v.ClosedAt, v.SignalCount, v.MatchedSignals, v.LastSignalAt, v.LinkCount)
}

func linkLine(v *core.LinkView) string {
	line := string(v.Encode()) + " " + v.State
	if v.End != nil {
		line += " " + string(v.End.Encode())
	}
	return line
}

func (c lookCommand) onEngine(ctx context.Context, on *subject) (any, error) {
	o, err := on.e.Observe(ctx, c.C, c.ID)
	if err != nil {
		return nil, err
	}
	all := []string{observed(o)}
	history, err := on.e.Suspensions(ctx, c.C, c.ID, "", nil)
	if err != nil {
		return nil, err
	}
	for i := range history.Items {
		all = append(all, fmt.Sprintf("%d %s", history.Items[i].Seq, history.Items[i].Cause))
	}
	signals, err := on.e.Signals(ctx, c.C, c.ID, engine.SignalQuery{})
	if err != nil {
		return nil, err
	}
	for i := range signals.Items {
		all = append(all, signalLine(&signals.Items[i]))
	}
	points, err := on.e.Waitpoints(ctx, c.C, engine.WaitpointQuery{Execution: &c.ID, State: "all"})
	if err != nil {
		return nil, err
	}
	for i := range points.Items {
		all = append(all, waitpointLine(&points.Items[i]))
		links, err := on.e.Links(ctx, c.C, points.Items[i].ID)
		if err != nil {
			return nil, err
		}
		for j := range links {
			all = append(all, linkLine(&links[j]))
		}
	}
	return all, nil
}
