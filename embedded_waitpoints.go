package flowfabric

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine"
)

type embeddedWaitpoints struct {
	waitpointReads
	client *embedded
}

func (embeddedWaitpoints) sealed() {}

func (e *embedded) Waitpoints() Waitpoints { return embeddedWaitpoints{waitpointReads{e}, e} }

func (e embeddedWaitpoints) Token(ctx context.Context, id ID, waitpointID string) (*Waitpoint, error) {
	given, err := parseID(id)
	if err != nil {
		return nil, err
	}
	waitpoint, err := uuidGiven("waitpoint_id", waitpointID)
	if err != nil {
		return nil, err
	}
	return e.show(ctx, func() (engine.Issued, error) {
		return e.client.engine.ReadToken(ctx, e.client.asOperator(ctx), given, waitpoint)
	})
}

func (e embeddedWaitpoints) Reissue(ctx context.Context, waitpointID string, o ...Action) (*Waitpoint, error) {
	options, err := single(o)
	if err != nil {
		return nil, err
	}
	waitpoint, err := uuidGiven("waitpoint_id", waitpointID)
	if err != nil {
		return nil, err
	}
	op, err := e.client.operatorOf(ctx, options)
	if err != nil {
		return nil, err
	}
	return e.show(ctx, func() (engine.Issued, error) {
		return e.client.engine.ReissueToken(ctx, e.client.asOperator(ctx), waitpoint, op)
	})
}

// show makes a call that tells the token of a waitpoint.
func (e embeddedWaitpoints) show(ctx context.Context, call func() (engine.Issued, error)) (*Waitpoint, error) {
	answer, err := untilKnown(ctx, e.client.clock, call)
	if err != nil {
		return nil, err
	}
	shown := e.client.issued(&answer.Waitpoint, answer.Standing, answer.Token)
	return &shown, nil
}

// operatorOf is what an operator's command carries that names no execution.
func (e *embedded) operatorOf(ctx context.Context, a Action) (engine.Operator, error) {
	expect, err := a.Expect.core()
	if err != nil {
		return engine.Operator{}, err
	}
	op := engine.Operator{Reason: a.Reason, RequestKey: a.RequestKey, Expect: expect}
	if op.RequestKey == "" {
		op.RequestKey = e.requestKey(ctx)
	}
	return op, nil
}

// holder is who closes or makes something: the worker that has the lease, or without one an operator.
func (e *embedded) holder(ctx context.Context, lease *Lease) (engine.Caller, *core.Fence, error) {
	if lease == nil {
		return e.asOperator(ctx), nil, nil
	}
	fence, err := fenceOf(*lease)
	return e.asWorker(ctx), &fence, err
}

func (e embeddedWaitpoints) Close(ctx context.Context, waitpointID string, o ...CloseOptions) (CloseResult, error) {
	options, err := single(o)
	if err != nil {
		return CloseResult{}, err
	}
	waitpoint, err := uuidGiven("waitpoint_id", waitpointID)
	if err != nil {
		return CloseResult{}, err
	}
	caller, fence, err := e.client.holder(ctx, options.Lease)
	if err != nil {
		return CloseResult{}, err
	}
	op, err := e.client.operatorOf(ctx, Action{Reason: options.Reason, RequestKey: options.RequestKey})
	if err != nil {
		return CloseResult{}, err
	}
	already, err := untilKnown(ctx, e.client.clock, func() (bool, error) {
		return e.client.engine.CloseWaitpoint(ctx, caller, waitpoint, fence, op)
	})
	switch {
	case err != nil:
		return CloseResult{}, err
	case already:
		return CloseResult{Outcome: outcomeAlreadyClosed}, nil
	default:
		return CloseResult{Outcome: outcomeClosed}, nil
	}
}

func (e embeddedWaitpoints) NewLink(ctx context.Context, waitpointID string, l LinkOptions) (ApprovalLink, error) {
	waitpoint, err := uuidGiven("waitpoint_id", waitpointID)
	if err != nil {
		return ApprovalLink{}, err
	}
	cmd := l.core(waitpoint)
	caller, fence, err := e.client.holder(ctx, l.Lease)
	if err != nil {
		return ApprovalLink{}, err
	}
	cmd.Fence = fence
	op, err := e.client.operatorOf(ctx, Action{RequestKey: l.RequestKey})
	if err != nil {
		return ApprovalLink{}, err
	}
	answer, err := untilKnown(ctx, e.client.clock, func() (engine.IssuedLink, error) { return e.client.engine.CreateLink(ctx, caller, cmd, op) })
	if err != nil {
		return ApprovalLink{}, err
	}
	return e.client.issuedLink(answer), nil
}

func (e embeddedWaitpoints) LinkURL(ctx context.Context, linkID string) (ApprovalLink, error) {
	link, err := uuidGiven("link_id", linkID)
	if err != nil {
		return ApprovalLink{}, err
	}
	found, err := untilKnown(ctx, e.client.clock, func() (engine.IssuedLink, error) {
		return e.client.engine.ReadLink(ctx, e.client.asOperator(ctx), link)
	})
	if err != nil {
		return ApprovalLink{}, err
	}
	return e.client.issuedLink(found), nil
}

func (e embeddedWaitpoints) RevokeLink(ctx context.Context, linkID string, o ...CloseOptions) error {
	options, err := single(o)
	if err != nil {
		return err
	}
	link, err := uuidGiven("link_id", linkID)
	if err != nil {
		return err
	}
	caller, fence, err := e.client.holder(ctx, options.Lease)
	if err != nil {
		return err
	}
	op, err := e.client.operatorOf(ctx, Action{Reason: options.Reason, RequestKey: options.RequestKey})
	if err != nil {
		return err
	}
	_, err = untilKnown(ctx, e.client.clock, func() (None, error) { return None{}, e.client.engine.RevokeLink(ctx, caller, link, fence, op) })
	return err
}

func (e embeddedWaitpoints) OpenLink(ctx context.Context, linkID string, token Token) (*LinkPage, error) {
	found, err := e.client.engine.OpenLink(ctx, e.client.asClient(ctx), linkNamed(linkID), token.Token)
	if err != nil {
		return nil, publicError(err)
	}
	return linkPageOf(found), nil
}

// linkNamed is the link of an address. One that is no id is that of no link, so that it is answered like every other (W69).
func linkNamed(linkID string) core.UUID {
	id, _ := core.ParseUUID(linkID)
	return id
}

func (e embeddedWaitpoints) Decide(ctx context.Context, linkID string, token Token, d LinkDecision) (LinkOutcome, error) {
	cmd := core.DecideCommand{LinkID: linkNamed(linkID), Decision: d.Decision, Comment: d.Comment}
	tries := 0
	answer, err := untilKnown(ctx, e.client.clock, func() (core.DecideAnswer, error) {
		tries++
		return e.client.engine.Decide(ctx, e.client.asClient(ctx), token.Token, cmd)
	})
	if err != nil {
		return LinkOutcome{}, err
	}
	outcome := LinkOutcome{Outcome: outcomeDecided, Decision: answer.End.Decision, DecidedAt: answer.End.At.Std(), Effect: string(answer.Signal.Effect)}
	ours := tries > 1 && answer.End.Decision == d.Decision && answer.End.Comment == d.Comment // a try whose answer was lost decided it
	if answer.Already && !ours {
		outcome.Outcome = outcomeAlreadyDecided
	}
	return outcome, nil
}
