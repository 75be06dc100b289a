package ops

import (
	"context"
	"iter"

	"github.com/flowfabric/flowfabric/internal/calls"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/transport"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// Quotas limit how often work starts and how much of it runs at a time. They are shared by all namespaces; an execution is
// attached to them by its policy. Work without room waits as blocked and starts automatically when there is room.
type Quotas struct{ via transport.Transport }

// DeleteQuotaOptions are the options of Quotas.Delete.
type DeleteQuotaOptions struct {
	AdminAction
	Force bool // also while it is in use: it no longer limits anything, and work that waited for it starts
}

// List iterates over the quotas by id.
func (q Quotas) List(ctx context.Context) iter.Seq2[*api.Quota, error] {
	return calls.Walk(nil, "", func(cursor string) (api.Page[*api.Quota], error) { return q.Page(ctx, api.PageOptions{Cursor: cursor}) })
}

// Page returns one page of the quotas. Codes: invalid_cursor.
func (q Quotas) Page(ctx context.Context, o ...api.PageOptions) (api.Page[*api.Quota], error) {
	options, err := transport.Single(o)
	if err != nil {
		return api.Page[*api.Quota]{}, err
	}
	return calls.Value(transport.Call(ctx, q.via, wire.ListQuotas, &wire.ListQuotasRequest{PageFields: calls.PageFields(options.Limit, options.Cursor)}, transport.Options{}))
}

// Get returns a quota and its use. Codes: quota_not_found.
func (q Quotas) Get(ctx context.Context, id string) (*api.Quota, error) {
	return transport.Call(ctx, q.via, wire.GetQuota, &wire.ByQuota{ID: id}, transport.Options{})
}

// Put sets all settings of a quota and creates it if it does not exist. They apply at once; lowering a limit does not affect
// running executions. Codes: invalid_argument, precondition_failed, quota_not_found if a Revision is given and the quota does not
// exist.
func (q Quotas) Put(ctx context.Context, id string, s api.QuotaSettings, o ...AdminAction) (*api.Quota, error) {
	options, err := transport.Single(o)
	if err != nil {
		return nil, err
	}
	request := &wire.PutQuotaRequest{ByQuota: wire.ByQuota{ID: id}, IfMatch: (*wire.Revision)(options.Revision)}
	request.Body.QuotaSettings, request.Body.AdminFields = s, options.wire()
	return transport.Call(ctx, q.via, wire.PutQuota, request, transport.Options{Key: options.RequestKey})
}

// Delete removes a quota. Codes: quota_not_found, precondition_failed, quota_in_use while unfinished work is attached to it or a
// namespace attaches it to its submits.
func (q Quotas) Delete(ctx context.Context, id string, o ...DeleteQuotaOptions) error {
	options, err := transport.Single(o)
	if err != nil {
		return err
	}
	request := &wire.DeleteQuotaRequest{
		ByQuota: wire.ByQuota{ID: id}, Force: options.Force, IfMatch: (*wire.Revision)(options.Revision), Body: options.wire(),
	}
	_, err = transport.Call(ctx, q.via, wire.DeleteQuota, request, transport.Options{Key: options.RequestKey})
	return err
}
