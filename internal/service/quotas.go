package service

import (
	"context"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func (s *Service) quotas() {
	on(s, wire.ListQuotas, s.listQuotas)
	on(s, wire.GetQuota, s.getQuota)
	on(s, wire.PutQuota, s.putQuota)
	on(s, wire.DeleteQuota, s.deleteQuota)
}

// listQuotas lists the quotas by id (U99).
func (s *Service) listQuotas(ctx context.Context, c Caller, r *wire.ListQuotasRequest) (api.Page[*api.Quota], error) {
	return page(r.PageFields, quotaOf, func(cursor string, limit *int) ([]engine.QuotaView, string, error) {
		return s.engine.Quotas(ctx, c.client(), cursor, limit)
	})
}

// getQuota returns a quota and its use (U99).
func (s *Service) getQuota(ctx context.Context, c Caller, r *wire.ByQuota) (api.Quota, error) {
	return quotaShown(s.engine.Quota(ctx, c.client(), r.ID))
}

// putQuota sets all settings of a quota (U99).
func (s *Service) putQuota(ctx context.Context, c Caller, r *wire.PutQuotaRequest) (api.Quota, error) {
	b := &r.Body
	settings := core.QuotaSettings{RateLimit: b.RateLimit, WindowMS: millis(b.Window), ConcurrencyLimit: b.ConcurrencyLimit, PerKey: b.PerKey}
	return quotaShown(s.engine.PutQuota(ctx, c.operator(), r.ID, settings, c.action(b.AdminFields, r.IfMatch)))
}

// deleteQuota removes a quota (U99).
func (s *Service) deleteQuota(ctx context.Context, c Caller, r *wire.DeleteQuotaRequest) (wire.None, error) {
	return wire.None{}, s.engine.DeleteQuota(ctx, c.operator(), r.ID, r.Force, c.action(r.Body, r.IfMatch))
}

func quotaShown(v engine.QuotaView, err error) (api.Quota, error) {
	if err != nil {
		return api.Quota{}, err
	}
	return *quotaOf(v), nil
}

func quotaOf(v engine.QuotaView) *api.Quota {
	q, s := &v.Quota, v.Quota.Settings
	return &api.Quota{
		ID: q.ID, Revision: q.Revision, CreatedAt: q.CreatedAt.Std(), UpdatedAt: q.UpdatedAt.Std(), MoreKeys: v.MoreKeys,
		QuotaSettings: api.QuotaSettings{RateLimit: s.RateLimit, Window: duration(s.WindowMS), ConcurrencyLimit: s.ConcurrencyLimit, PerKey: s.PerKey},
		Keys: some(v.Keys, func(k engine.QuotaKeyView) api.QuotaKey {
			return api.QuotaKey{
				Key: k.Key, Slots: k.Held, Holders: some(k.Holders, idOf), Admissions: k.Admitted, NextFreeAt: k.NextFree.Std(), Blocked: k.Blocked, AtLeast: k.AtLeast,
			}
		}),
	}
}
