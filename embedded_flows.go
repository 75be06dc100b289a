package flowfabric

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/service"
)

type embeddedFlows struct{ client *embedded }

func (embeddedFlows) sealed() {}

func (e *embedded) Flows() Flows { return embeddedFlows{e} }

func (e embeddedFlows) Submit(ctx context.Context, f Flow) (*FlowRun, error) {
	return e.make(ctx, f, e.client.engine.SubmitFlow)
}

func (e embeddedFlows) Create(ctx context.Context, f Flow) (*FlowRun, error) {
	if err := f.bare("", "flow_id", "kind", "tags"); err != nil {
		return nil, err
	}
	return e.make(ctx, f, e.client.engine.CreateFlow)
}

// flowIndex tells the id that is derived for a flow from those of executions, see submitID.
const flowIndex = -1

// make makes a flow under an id that is known before the first try.
func (e embeddedFlows) make(
	ctx context.Context, f Flow, by func(context.Context, engine.Caller, core.FlowSubmission) (engine.FlowAnswer, error),
) (*FlowRun, error) {
	home, err := e.client.home(ctx)
	if err != nil {
		return nil, err
	}
	minted, derived := f.ID == "", false
	if minted {
		if f.ID, derived, err = e.client.submitID(ctx, home, flowIndex); err != nil {
			return nil, err
		}
	}
	sub, err := f.core(home)
	if err != nil {
		return nil, err
	}
	sub.Trace = e.client.traceOf(ctx)
	tries := 0
	answer, err := untilKnown(ctx, e.client.clock, func() (engine.FlowAnswer, error) {
		tries++
		return by(ctx, e.client.submitter(ctx, derived, tries), sub)
	})
	if err != nil {
		return nil, sameFlow(f.graph().asGiven(err), derived)
	}
	run := flowRunOf(answer)
	if minted && (tries > 1 || derived) && answer.Flow.ID.UUID == sub.ID.UUID {
		if derived && !run.Created && tries == 1 {
			e.client.asClient(ctx).Again()
		}
		run.Created = true // a try whose answer was lost had made it
	}
	return run, nil
}

// sameFlow turns the conflict of an id that was derived from the request's key into that of the key (U13).
func sameFlow(err error, derived bool) error {
	var refusal *Error
	if derived && errors.As(err, &refusal) && refusal.Code == string(core.CodeFlowAlreadyExists) {
		return newError(core.CodeIdempotencyConflict, "the key was used for another request").At("header.Idempotency-Key", "use a new key for new work")
	}
	return sameRequest(err, derived)
}

func (e embeddedFlows) Check(ctx context.Context, f Flow) ([]string, error) {
	home, err := e.client.home(ctx)
	if err != nil {
		return nil, err
	}
	if f.ID == "" {
		f.ID = e.client.mintID()
	}
	sub, err := f.core(home)
	if err != nil {
		return nil, err
	}
	order, err := e.client.engine.CheckFlow(ctx, e.client.asClient(ctx), sub)
	return order, f.graph().asGiven(publicError(err))
}

// changing is who changes a flow, under a key by which a repeat is known.
func changing(c engine.Caller, key string, try int) engine.Caller {
	if c.RequestKey = key; try > 1 {
		c.Repeated = nil // a further try of our own repeats nothing
	}
	return c
}

// change makes a change of a flow until its outcome is known.
func changeFlow[T any](ctx context.Context, e *embedded, c engine.Caller, key string, do func(engine.Caller) (T, error)) (T, error) {
	key = cmp.Or(key, e.requestKey(ctx))
	tries := 0
	return untilKnown(ctx, e.clock, func() (T, error) {
		tries++
		return do(changing(c, key, tries))
	})
}

func (e embeddedFlows) Extend(ctx context.Context, id ID, x FlowExtension) (*FlowRun, error) {
	more, err := x.core(id)
	if err != nil {
		return nil, err
	}
	more.Trace = e.client.traceOf(ctx)
	answer, err := changeFlow(ctx, e.client, e.client.asClient(ctx), x.RequestKey, func(c engine.Caller) (engine.FlowAnswer, error) {
		return e.client.engine.ExtendFlow(ctx, c, more)
	})
	if err != nil {
		return nil, x.graph().asGiven(err)
	}
	return flowRunOf(answer), nil
}

func (e embeddedFlows) Seal(ctx context.Context, id ID, o ...SealOptions) (*FlowRun, error) {
	options, err := single(o)
	if err != nil {
		return nil, err
	}
	return e.Extend(ctx, id, FlowExtension{Revision: options.Revision, Seal: true, RequestKey: options.RequestKey})
}

func (e embeddedFlows) Get(ctx context.Context, id ID) (*FlowView, error) {
	given, err := parseID(id)
	if err != nil {
		return nil, err
	}
	view, err := e.client.engine.Flow(ctx, e.client.asClient(ctx), given)
	if err != nil {
		return nil, publicError(err)
	}
	if err := checkSubmitter(ctx, view.Flow.Submitter()); err != nil {
		return nil, err
	}
	return flowViewOf(view), nil
}

func (e embeddedFlows) Wait(ctx context.Context, id ID) (*FlowView, error) {
	given, err := parseID(id)
	if err != nil {
		return nil, err
	}
	for {
		view, err := e.client.engine.WaitFlow(ctx, e.client.asClient(ctx), given, waitPiece)
		switch {
		case ctx.Err() != nil:
			return nil, fmt.Errorf("flowfabric: waiting for %s: %w", id, context.Cause(ctx))
		case err != nil:
			return nil, publicError(err)
		case view.State.Terminal():
			return flowViewOf(view), nil
		case e.client.closed.Load():
			return nil, e.client.shuttingDown()
		}
	}
}

func (e embeddedFlows) Cancel(ctx context.Context, id ID, c FlowCancel) (FlowCancelProgress, error) {
	given, err := parseID(id)
	if err != nil {
		return FlowCancelProgress{}, err
	}
	request := engine.CancelFlowRequest{Flow: given, Policy: core.CancelPolicy(c.Policy), Reason: c.Reason, Wait: c.Wait}
	if c.Progress != nil {
		request.Progress = func(a engine.CancelFlowAnswer) { c.Progress(cancelProgressOf(a)) }
	}
	answer, err := changeFlow(ctx, e.client, e.client.asOperator(ctx), c.RequestKey, func(who engine.Caller) (engine.CancelFlowAnswer, error) {
		return e.client.engine.CancelFlow(ctx, who, request)
	})
	return cancelProgressOf(answer), err
}

func (e embeddedFlows) Delete(ctx context.Context, id ID, o ...FlowDeletion) error {
	options, err := single(o)
	if err != nil {
		return err
	}
	given, err := parseID(id)
	if err != nil {
		return err
	}
	request := engine.DeleteFlowRequest{Flow: given, Reason: options.Reason, Expected: options.Revision}
	_, err = changeFlow(ctx, e.client, e.client.asOperator(ctx), options.RequestKey, func(who engine.Caller) (None, error) {
		return None{}, e.client.engine.DeleteFlow(ctx, who, request)
	})
	return err
}

func (e embeddedFlows) SetTags(ctx context.Context, id ID, changes map[string]*string, o ...FlowAction) (map[string]string, error) {
	return e.tag(ctx, id, changes, false, o)
}

func (e embeddedFlows) ReplaceTags(ctx context.Context, id ID, tags map[string]string, o ...FlowAction) (map[string]string, error) {
	whole := make(map[string]*string, len(tags))
	for key, value := range tags {
		whole[key] = &value
	}
	return e.tag(ctx, id, whole, true, o)
}

func (e embeddedFlows) tag(ctx context.Context, id ID, changes map[string]*string, whole bool, o []FlowAction) (map[string]string, error) {
	options, err := single(o)
	if err != nil {
		return nil, err
	}
	given, err := parseID(id)
	if err != nil {
		return nil, err
	}
	tags, err := changeFlow(ctx, e.client, e.client.asOperator(ctx), options.RequestKey, func(c engine.Caller) (core.Tags, error) {
		return e.client.engine.SetFlowTags(ctx, c, given, changes, whole)
	})
	return maps.Clone(tags), err
}

func (e embeddedFlows) SetJoin(ctx context.Context, id ID, member string, j Join) (*JoinView, error) {
	given, err := parseID(id)
	if err != nil {
		return nil, err
	}
	spec, err := joinSpec(j)
	if err != nil {
		return nil, err
	}
	var changed bool
	view, err := changeFlow(ctx, e.client, e.client.asClient(ctx), "", func(c engine.Caller) (view engine.JoinView, err error) {
		view, changed, err = e.client.engine.SetJoin(ctx, c, given, member, spec)
		return view, err
	})
	if err != nil {
		return nil, err
	}
	shown := service.JoinShown(view)
	shown.Changed = api.Changed(changed)
	return shown, nil
}

func (e embeddedFlows) List(ctx context.Context, q ...FlowQuery) iter.Seq2[*FlowView, error] {
	query, err := single(q)
	return walk(err, query.Cursor, func(cursor string) (Page[*FlowView], error) {
		query.Cursor = cursor
		return e.Page(ctx, query)
	})
}
