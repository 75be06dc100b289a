package flowfabric

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/wire"
)

type remoteFlows struct{ client *remote }

func (remoteFlows) sealed() {}

func (r *remote) Flows() Flows { return remoteFlows{r} }

func (r remoteFlows) Submit(ctx context.Context, f Flow) (*FlowRun, error) {
	return r.make(ctx, f, false)
}

func (r remoteFlows) Create(ctx context.Context, f Flow) (*FlowRun, error) {
	if err := f.bare("", "flow_id", "kind", "tags"); err != nil {
		return nil, err
	}
	return r.make(ctx, f, true)
}

// make makes a flow under an id that is known before the first try.
func (r remoteFlows) make(ctx context.Context, f Flow, empty bool) (*FlowRun, error) {
	minted := f.ID == ""
	if minted {
		f.ID = mintID(r.client.clock)
	}
	request, err := f.request(empty)
	if err != nil {
		return nil, err
	}
	answer, err := call(ctx, r.client, wire.SubmitFlow, request, sending{})
	if err != nil {
		return nil, err
	}
	run := flowRunFrom(answer)
	if minted && sameID(run.ID, f.ID) {
		run.Created = true // nobody else can have used the id: a try whose answer was lost had made it
	}
	return run, nil
}

func (f *Flow) request(empty bool) (*wire.SubmitFlowRequest, error) {
	if _, err := parseID(f.ID); err != nil {
		return nil, err
	}
	w, err := f.wire()
	if err != nil {
		return nil, err
	}
	request := &wire.SubmitFlowRequest{Empty: empty}
	request.Body.FlowSubmission = w
	return request, nil
}

func (r remoteFlows) Check(ctx context.Context, f Flow) ([]string, error) {
	if f.ID == "" {
		f.ID = mintID(r.client.clock)
	}
	request, err := f.request(false)
	if err != nil {
		return nil, err
	}
	request.Body.DryRun = true
	message, err := wire.Encode(wire.SubmitFlow, request)
	if err != nil {
		return nil, api.FaultsError(err)
	}
	answer, err := r.client.send(ctx, wire.SubmitFlow.Operation, message, sending{})
	if err != nil {
		return nil, err
	}
	checked, err := readAnswer[wire.FlowChecked](answer.body)
	r.client.release(answer)
	if err != nil {
		return nil, garbled(err)
	}
	return checked.Order, nil
}

// byFlow puts the id of a flow into a path; invalid_id.
func byFlow(id ID) (wire.ByFlow, error) {
	if _, err := parseID(id); err != nil {
		return wire.ByFlow{}, err
	}
	return wire.ByFlow{ID: string(id)}, nil
}

// onFlow makes a call on a flow.
func onFlow[Req, Ans any](ctx context.Context, r *remote, id ID, c wire.Call[Req, Ans], how sending, fill func(wire.ByFlow) *Req) (*Ans, error) {
	path, err := byFlow(id)
	if err != nil {
		return nil, err
	}
	answer, err := call(ctx, r, c, fill(path), how)
	return answer, err
}

func (r remoteFlows) Extend(ctx context.Context, id ID, x FlowExtension) (*FlowRun, error) {
	if _, err := x.core(id); err != nil { // what only the client can refuse
		return nil, err
	}
	body, err := x.wire()
	if err != nil {
		return nil, err
	}
	answer, err := onFlow(ctx, r.client, id, wire.ExtendFlow, sending{key: x.RequestKey}, func(path wire.ByFlow) *wire.ExtendFlowRequest {
		return &wire.ExtendFlowRequest{ByFlow: path, IfMatch: (*wire.Revision)(x.Revision), Body: body}
	})
	if err != nil {
		return nil, err
	}
	return flowRunFrom(answer), nil
}

func (r remoteFlows) Seal(ctx context.Context, id ID, o ...SealOptions) (*FlowRun, error) {
	options, err := single(o)
	if err != nil {
		return nil, err
	}
	answer, err := onFlow(ctx, r.client, id, wire.SealFlow, sending{key: options.RequestKey}, func(path wire.ByFlow) *wire.SealFlowRequest {
		return &wire.SealFlowRequest{ByFlow: path, IfMatch: (*wire.Revision)(options.Revision)}
	})
	if err != nil {
		return nil, err
	}
	return flowRunFrom(answer), nil
}

func (r remoteFlows) Delete(ctx context.Context, id ID, o ...FlowDeletion) error {
	options, err := single(o)
	if err != nil {
		return err
	}
	_, err = onFlow(ctx, r.client, id, wire.DeleteFlow, sending{key: options.RequestKey}, func(path wire.ByFlow) *wire.DeleteFlowRequest {
		request := &wire.DeleteFlowRequest{ByFlow: path, IfMatch: (*wire.Revision)(options.Revision)}
		request.Body.Reason = options.Reason
		return request
	})
	return err
}

func (r remoteFlows) Get(ctx context.Context, id ID) (*FlowView, error) { return r.get(ctx, id, 0) }

// get shows a flow, if wait is not 0 when it has ended or the wait is over.
func (r remoteFlows) get(ctx context.Context, id ID, wait time.Duration) (*FlowView, error) {
	answer, err := onFlow(ctx, r.client, id, wire.GetFlow, sending{wait: wait}, func(path wire.ByFlow) *wire.GetFlowRequest {
		return &wire.GetFlowRequest{ByFlow: path, WaitFields: prefer(wait)}
	})
	if err != nil {
		return nil, err
	}
	view := flowViewFrom(answer)
	return &view, nil
}

func (r remoteFlows) Wait(ctx context.Context, id ID) (*FlowView, error) {
	view, err := untilDone(ctx, r.client, func() (*FlowView, error) { return r.get(ctx, id, longPoll) }, func(v *FlowView) bool { return v.State.Terminal() })
	if err != nil && ctx.Err() != nil {
		return nil, fmt.Errorf("flowfabric: waiting for %s: %w", id, context.Cause(ctx))
	}
	return view, err
}

// Bounds of a cancel that waits (F53).
const (
	longestCancel = 300 * time.Second
	cancelLook    = time.Second // how often one that tells of its progress asks
)

func (r remoteFlows) Cancel(ctx context.Context, id ID, c FlowCancel) (FlowCancelProgress, error) {
	if c.Wait < 0 || c.Wait > longestCancel {
		return FlowCancelProgress{}, newError(core.CodeInvalidArgument, "a wait of %s", c.Wait).At("wait_ms", "give 0 to 5 minutes")
	}
	until := r.client.clock.Now().Add(c.Wait)
	for key := c.RequestKey; ; key = "" { // the later calls are further ones: they show how far it is (F52)
		left := max(until.Sub(r.client.clock.Now()), 0)
		piece := left
		if c.Progress != nil {
			piece = min(left, cancelLook)
		}
		asked := r.client.clock.Now()
		progress, err := r.cancel(ctx, id, c, key, piece)
		if err != nil || progress.Remaining == 0 || left <= piece {
			return progress, err
		}
		if c.Progress != nil {
			c.Progress(progress)
		}
		r.client.rest(ctx, asked, piece)
	}
}

func (r remoteFlows) cancel(ctx context.Context, id ID, c FlowCancel, key string, wait time.Duration) (FlowCancelProgress, error) {
	answer, err := onFlow(ctx, r.client, id, wire.CancelFlow, sending{key: key, wait: wait}, func(path wire.ByFlow) *wire.CancelFlowRequest {
		request := &wire.CancelFlowRequest{ByFlow: path}
		request.Body.Policy, request.Body.Reason = string(c.Policy), c.Reason
		if wait > 0 {
			ms := millis(wait)
			request.WaitMS = &ms
		}
		return request
	})
	if err != nil {
		return FlowCancelProgress{}, err
	}
	return cancelProgressFrom(answer), nil
}

func (r remoteFlows) SetTags(ctx context.Context, id ID, changes map[string]*string, o ...FlowAction) (map[string]string, error) {
	options, err := single(o)
	if err != nil {
		return nil, err
	}
	answer, err := onFlow(ctx, r.client, id, wire.PatchFlowTags, sending{key: options.RequestKey}, func(path wire.ByFlow) *wire.PatchFlowTagsRequest {
		return &wire.PatchFlowTagsRequest{ByFlow: path, Body: changes}
	})
	return tagsFrom(answer, err)
}

func (r remoteFlows) ReplaceTags(ctx context.Context, id ID, tags map[string]string, o ...FlowAction) (map[string]string, error) {
	options, err := single(o)
	if err != nil {
		return nil, err
	}
	answer, err := onFlow(ctx, r.client, id, wire.PutFlowTags, sending{key: options.RequestKey}, func(path wire.ByFlow) *wire.PutFlowTagsRequest {
		return &wire.PutFlowTagsRequest{ByFlow: path, Body: tags}
	})
	return tagsFrom(answer, err)
}

func tagsFrom(answer *wire.Tags, err error) (map[string]string, error) {
	if err != nil {
		return nil, err
	}
	return maps.Clone(answer.Tags), nil
}

func (r remoteFlows) SetJoin(ctx context.Context, id ID, member string, j Join) (*JoinView, error) {
	if _, err := joinSpec(j); err != nil {
		return nil, err
	}
	answer, err := onFlow(ctx, r.client, id, wire.SetJoin, sending{}, func(path wire.ByFlow) *wire.SetJoinRequest {
		request := &wire.SetJoinRequest{ByMember: wire.ByMember{ByFlow: path, Name: member}}
		spec := joinWire(j)
		request.Body.Policy, request.Body.K, request.Body.OnSatisfied = spec.Policy, spec.K, spec.OnSatisfied
		if spec.Policy == "" {
			request.Body.Policy = string(JoinAll)
		}
		return request
	})
	if err != nil {
		return nil, err
	}
	return answer, nil
}

func (r remoteFlows) List(ctx context.Context, q ...FlowQuery) iter.Seq2[*FlowView, error] {
	query, err := single(q)
	return walk(err, query.Cursor, func(cursor string) (Page[*FlowView], error) {
		query.Cursor = cursor
		return r.Page(ctx, query)
	})
}
