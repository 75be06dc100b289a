package flowfabric

import (
	"context"
	"iter"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func (r remoteOperate) Resume(ctx context.Context, id ID, o ...ResumeOptions) (*Execution, error) {
	options, path, err := target(id, o)
	if err != nil {
		return nil, err
	}
	request := &wire.ResumeRequest{ByID: path}
	request.Body.ActionFields = options.wire()
	request.Body.ResumeFields = wire.ResumeFields{DelayMS: millis(options.Delay), ExpectedSuspensionID: options.ExpectedSuspensionID}
	return oneExecution(ctx, r.client, wire.ResumeExecution, request, options.RequestKey)
}

func (r remoteOperate) Approve(ctx context.Context, id ID, a Approve) (SignalReceipt, error) {
	path, err := byID(id)
	if err != nil {
		return SignalReceipt{}, err
	}
	if err := a.Payload.Problem("payload"); err != nil {
		return SignalReceipt{}, err
	}
	request := &wire.ApproveRequest{ByID: path}
	request.Body.ActionFields = a.Action.wire()
	request.Body.ApproveFields = wire.ApproveFields{
		WaitpointID: a.WaitpointID, Name: a.Name, Suffix: a.Suffix, Lane: a.Lane, Comment: a.Comment,
		PayloadFields: wire.PayloadOf(wirePayload(a.Payload)),
	}
	if a.Name == "" {
		request.Body.Name = signalApproved
	}
	answer, err := call(ctx, r.client, wire.ApproveExecution, request, sending{key: a.RequestKey})
	if err != nil {
		return SignalReceipt{}, err
	}
	return *answer, nil
}

func (r remoteExecutions) Suspension(ctx context.Context, id ID) (*SuspensionRecord, error) {
	path, err := byID(id)
	if err != nil {
		return nil, err
	}
	request := &wire.GetSuspensionRequest{ByID: path, Inline: true, Encoding: wire.EncodingBytes}
	answer, err := call(ctx, r.client, wire.GetSuspension, request, sending{})
	if err != nil || answer.ID == "" {
		return nil, err
	}
	return answer, nil
}

func (r remoteExecutions) Suspensions(ctx context.Context, id ID) iter.Seq2[SuspensionRecord, error] {
	return walk(nil, "", func(cursor string) (Page[SuspensionRecord], error) {
		return r.SuspensionsPage(ctx, id, PageOptions{Cursor: cursor})
	})
}

func (r remoteExecutions) SuspensionsPage(ctx context.Context, id ID, o ...PageOptions) (Page[SuspensionRecord], error) {
	options, path, err := target(id, o)
	if err != nil {
		return Page[SuspensionRecord]{}, err
	}
	request := &wire.PageByID{ByID: path, PageFields: pageFields(options.Limit, options.Cursor)}
	return value(call(ctx, r.client, wire.ListSuspensions, request, sending{}))
}

func (r remoteExecutions) Signals(ctx context.Context, id ID, q ...SignalQuery) iter.Seq2[SignalRecord, error] {
	query, err := single(q)
	return walk(err, query.Cursor, func(cursor string) (Page[SignalRecord], error) {
		query.Cursor = cursor
		return r.SignalsPage(ctx, id, query)
	})
}

func (r remoteExecutions) SignalsPage(ctx context.Context, id ID, q ...SignalQuery) (Page[SignalRecord], error) {
	query, path, err := target(id, q)
	if err != nil {
		return Page[SignalRecord]{}, err
	}
	request := &wire.ListSignalsRequest{
		PageByID: wire.PageByID{ByID: path, PageFields: pageFields(query.Limit, query.Cursor)}, Suspension: query.SuspensionID,
		Inline: true, Encoding: wire.EncodingBytes,
	}
	return value(call(ctx, r.client, wire.ListExecutionSignals, request, sending{}))
}

type remoteWaitpoints struct{ client *remote }

func (remoteWaitpoints) sealed() {}

func (r *remote) Waitpoints() Waitpoints { return remoteWaitpoints{r} }

func (r remoteWaitpoints) List(ctx context.Context, q ...WaitpointQuery) iter.Seq2[Waitpoint, error] {
	query, err := single(q)
	return walk(err, query.Cursor, func(cursor string) (Page[Waitpoint], error) {
		query.Cursor = cursor
		return r.Page(ctx, query)
	})
}

func (r remoteWaitpoints) Page(ctx context.Context, q ...WaitpointQuery) (Page[Waitpoint], error) {
	query, err := single(q)
	if err != nil {
		return Page[Waitpoint]{}, err
	}
	request := &wire.ListWaitpointsRequest{
		PageFields: pageFields(query.Limit, query.Cursor), State: query.State, WaitpointKey: query.Key, ExecutionID: string(query.ExecutionID),
	}
	return value(call(ctx, r.client, wire.ListWaitpoints, request, sending{}))
}

func (r remoteWaitpoints) Get(ctx context.Context, waitpointID string) (*Waitpoint, error) {
	path, err := byWaitpoint(waitpointID)
	if err != nil {
		return nil, err
	}
	return call(ctx, r.client, wire.GetWaitpoint, &path, sending{})
}

func (r remoteWaitpoints) Token(ctx context.Context, id ID, waitpointID string) (*Waitpoint, error) {
	execution, err := byID(id)
	if err != nil {
		return nil, err
	}
	waitpoint, err := byWaitpoint(waitpointID)
	if err != nil {
		return nil, err
	}
	request := &wire.WaitpointTokenRequest{ByID: execution, ByWaitpoint: waitpoint}
	return oneIssued(ctx, r.client, wire.ReadWaitpointToken, request, "")
}

func (r remoteWaitpoints) Reissue(ctx context.Context, waitpointID string, o ...Action) (*Waitpoint, error) {
	options, err := single(o)
	if err != nil {
		return nil, err
	}
	path, err := byWaitpoint(waitpointID)
	if err != nil {
		return nil, err
	}
	request := &wire.ReissueRequest{ByWaitpoint: path}
	request.Body.ActionFields = options.wire()
	return oneIssued(ctx, r.client, wire.ReissueToken, request, options.RequestKey)
}

// oneIssued makes a call that answers a waitpoint with its token.
func oneIssued[Req any](ctx context.Context, r *remote, c wire.Call[Req, api.IssuedWaitpoint], request *Req, key string) (*Waitpoint, error) {
	answer, err := call(ctx, r, c, request, sending{key: key})
	if err != nil {
		return nil, err
	}
	shown := answer.Concealed()
	return &shown, nil
}

// byWaitpoint puts the id of a waitpoint into a path; invalid_id.
func byWaitpoint(waitpointID string) (wire.ByWaitpoint, error) {
	_, err := uuidGiven("waitpoint_id", waitpointID)
	return wire.ByWaitpoint{Waitpoint: waitpointID}, err
}

// byLink puts the id of a link into a path; invalid_id.
func byLink(linkID string) (wire.ByLink, error) {
	_, err := uuidGiven("link_id", linkID)
	return wire.ByLink{Link: linkID}, err
}

// holderLease is the lease of a worker in the form of requests; zero for an operator.
func holderLease(lease *Lease) (wire.LeaseField, error) {
	if lease == nil {
		return wire.LeaseField{}, nil
	}
	fence, err := fenceOf(*lease)
	if err == nil && fence == (core.Fence{}) {
		err = newError(core.CodeFenceRequired, "the lease is empty").At("lease", "give the lease of the task, or none as an operator")
	}
	return wire.LeaseField{Lease: wire.LeaseRef{LeaseID: lease.ID, Epoch: lease.Epoch, AttemptID: lease.AttemptID}}, err
}

func (r remoteWaitpoints) Close(ctx context.Context, waitpointID string, o ...CloseOptions) (CloseResult, error) {
	options, err := single(o)
	if err != nil {
		return CloseResult{}, err
	}
	path, err := byWaitpoint(waitpointID)
	if err != nil {
		return CloseResult{}, err
	}
	lease, err := holderLease(options.Lease)
	if err != nil {
		return CloseResult{}, err
	}
	request := &wire.CloseWaitpointRequest{ByWaitpoint: path, Body: wire.HolderFields{LeaseField: lease, Reason: options.Reason}}
	answer, err := call(ctx, r.client, wire.CloseWaitpoint, request, sending{key: options.RequestKey})
	if err != nil {
		return CloseResult{}, err
	}
	return *answer, nil
}
