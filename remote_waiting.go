package flowfabric

import (
	"context"

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

type remoteWaitpoints struct {
	waitpointReads
	client *remote
}

func (remoteWaitpoints) sealed() {}

func (r *remote) Waitpoints() Waitpoints { return remoteWaitpoints{waitpointReads{r}, r} }

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
