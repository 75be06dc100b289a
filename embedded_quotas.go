package flowfabric

import (
	"context"
	"iter"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine"
)

type embeddedQuotas struct{ client *embedded }

func (embeddedQuotas) sealed() {}

func (e embeddedQuotas) List(ctx context.Context) iter.Seq2[*Quota, error] {
	return walk(nil, "", func(cursor string) (Page[*Quota], error) { return e.Page(ctx, PageOptions{Cursor: cursor}) })
}

func (e embeddedQuotas) Page(ctx context.Context, o ...PageOptions) (Page[*Quota], error) {
	options, err := single(o)
	if err != nil {
		return Page[*Quota]{}, err
	}
	quotas, next, err := e.client.engine.Quotas(ctx, e.client.asClient(ctx), options.Cursor, options.limit())
	if err != nil {
		return Page[*Quota]{}, publicError(err)
	}
	return pageOf(quotas, quotaOf, next), nil
}

func (e embeddedQuotas) Get(ctx context.Context, id string) (*Quota, error) {
	view, err := e.client.engine.Quota(ctx, e.client.asClient(ctx), id)
	if err != nil {
		return nil, publicError(err)
	}
	return quotaOf(view), nil
}

func (e embeddedQuotas) Put(ctx context.Context, id string, s QuotaSettings, o ...AdminAction) (*Quota, error) {
	options, err := single(o)
	if err != nil {
		return nil, err
	}
	how := e.client.action(ctx, options)
	settings := core.QuotaSettings{RateLimit: s.RateLimit, WindowMS: millis(s.Window), ConcurrencyLimit: s.ConcurrencyLimit, PerKey: s.PerKey}
	view, err := untilKnown(ctx, e.client.clock, func() (engine.QuotaView, error) {
		return e.client.engine.PutQuota(ctx, e.client.asOperator(ctx), id, settings, how)
	})
	if err != nil {
		return nil, err
	}
	return quotaOf(view), nil
}

func (e embeddedQuotas) Delete(ctx context.Context, id string, o ...DeleteQuotaOptions) error {
	options, err := single(o)
	if err != nil {
		return err
	}
	how := e.client.action(ctx, options.AdminAction)
	_, err = untilKnown(ctx, e.client.clock, func() (None, error) {
		return None{}, e.client.engine.DeleteQuota(ctx, e.client.asOperator(ctx), id, options.Force, how)
	})
	return err
}

func quotaOf(v engine.QuotaView) *Quota {
	q, s := &v.Quota, v.Quota.Settings
	quota := &Quota{
		ID: q.ID, Revision: q.Revision, CreatedAt: q.CreatedAt.Std(), UpdatedAt: q.UpdatedAt.Std(), MoreKeys: v.MoreKeys,
		Settings: QuotaSettings{RateLimit: s.RateLimit, Window: duration(s.WindowMS), ConcurrencyLimit: s.ConcurrencyLimit, PerKey: s.PerKey},
	}
	for i := range v.Keys {
		key := &v.Keys[i]
		shown := QuotaKey{
			Key: key.Key, Slots: key.Held, Admissions: key.Admitted, NextFreeAt: key.NextFree.Std(), Blocked: key.Blocked, AtLeast: key.AtLeast,
		}
		for _, id := range key.Holders {
			shown.Holders = append(shown.Holders, ID(id.String()))
		}
		quota.Keys = append(quota.Keys, shown)
	}
	return quota
}

// quotaUses are the quotas that executions are attached to, for the engine; quotaUsesOf those of the engine.
func quotaUses(uses []QuotaUse) []core.QuotaUse {
	return some(uses, func(u QuotaUse) core.QuotaUse { return core.QuotaUse(u) })
}

func quotaUsesOf(uses []core.QuotaUse) []QuotaUse {
	return some(uses, func(u core.QuotaUse) QuotaUse { return QuotaUse(u) })
}
