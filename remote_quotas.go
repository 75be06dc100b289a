package flowfabric

import (
	"context"
	"iter"

	"github.com/flowfabric/flowfabric/internal/wire"
)

type remoteQuotas struct{ client *remote }

func (remoteQuotas) sealed() {}

func (r remoteQuotas) List(ctx context.Context) iter.Seq2[*Quota, error] {
	return walk(nil, "", func(cursor string) (Page[*Quota], error) { return r.Page(ctx, PageOptions{Cursor: cursor}) })
}

func (r remoteQuotas) Page(ctx context.Context, o ...PageOptions) (Page[*Quota], error) {
	options, err := single(o)
	if err != nil {
		return Page[*Quota]{}, err
	}
	request := &wire.ListQuotasRequest{PageFields: pageFields(options.Limit, options.Cursor)}
	return onePage(ctx, r.client, wire.ListQuotas, request, func(w wire.Quota) *Quota { return quotaFrom(&w) })
}

func (r remoteQuotas) Get(ctx context.Context, id string) (*Quota, error) {
	return oneQuota(ctx, r.client, wire.GetQuota, &wire.ByQuota{ID: id}, "")
}

func (r remoteQuotas) Put(ctx context.Context, id string, s QuotaSettings, o ...AdminAction) (*Quota, error) {
	options, err := single(o)
	if err != nil {
		return nil, err
	}
	request := &wire.PutQuotaRequest{ByQuota: wire.ByQuota{ID: id}, IfMatch: (*wire.Revision)(options.Revision)}
	request.Body.QuotaSettings, request.Body.AdminFields = s.wire(), options.wire()
	return oneQuota(ctx, r.client, wire.PutQuota, request, options.RequestKey)
}

func (r remoteQuotas) Delete(ctx context.Context, id string, o ...DeleteQuotaOptions) error {
	options, err := single(o)
	if err != nil {
		return err
	}
	request := &wire.DeleteQuotaRequest{
		ByQuota: wire.ByQuota{ID: id}, Force: options.Force, IfMatch: (*wire.Revision)(options.Revision), Body: options.wire(),
	}
	_, err = call(ctx, r.client, wire.DeleteQuota, request, sending{key: options.RequestKey})
	return err
}

// oneQuota makes a call that answers a quota.
func oneQuota[Req any](ctx context.Context, r *remote, c wire.Call[Req, wire.Quota], request *Req, key string) (*Quota, error) {
	answer, err := call(ctx, r, c, request, sending{key: key})
	if err != nil {
		return nil, err
	}
	return quotaFrom(answer), nil
}
