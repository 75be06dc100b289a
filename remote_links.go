package flowfabric

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/wire"
)

func (r remoteWaitpoints) NewLink(ctx context.Context, waitpointID string, l LinkOptions) (ApprovalLink, error) {
	path, err := byWaitpoint(waitpointID)
	if err != nil {
		return ApprovalLink{}, err
	}
	lease, err := holderLease(l.Lease)
	if err != nil {
		return ApprovalLink{}, err
	}
	request := &wire.CreateLinkRequest{ByWaitpoint: path}
	request.Body.LeaseField = lease
	request.Body.LinkFields = wire.LinkFields{
		Approver: l.Approver, Decisions: l.Decisions, ExpiresInMS: span(l.ExpiresIn), Title: l.Title,
		Message: l.Message, CommentRequired: l.CommentRequired,
	}
	answer, err := call(ctx, r.client, wire.CreateLink, request, sending{key: l.RequestKey})
	if err != nil {
		return ApprovalLink{}, err
	}
	return answer.Concealed(), nil
}

func (r remoteWaitpoints) LinkURL(ctx context.Context, linkID string) (ApprovalLink, error) {
	path, err := byLink(linkID)
	if err != nil {
		return ApprovalLink{}, err
	}
	answer, err := call(ctx, r.client, wire.ReadLinkURL, &path, sending{})
	if err != nil {
		return ApprovalLink{}, err
	}
	return answer.Concealed(), nil
}

func (r remoteWaitpoints) RevokeLink(ctx context.Context, linkID string, o ...CloseOptions) error {
	options, err := single(o)
	if err != nil {
		return err
	}
	path, err := byLink(linkID)
	if err != nil {
		return err
	}
	lease, err := holderLease(options.Lease)
	if err != nil {
		return err
	}
	request := &wire.RevokeLinkRequest{ByLink: path, Body: wire.HolderFields{LeaseField: lease, Reason: options.Reason}}
	_, err = call(ctx, r.client, wire.RevokeLink, request, sending{key: options.RequestKey})
	return err
}
