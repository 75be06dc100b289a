package server

import (
	"context"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func (s *Server) serveQuotas() {
	handle(s, wire.ListQuotas, s.listQuotas)
	handle(s, wire.GetQuota, s.getQuota)
	handle(s, wire.PutQuota, s.putQuota)
	handle(s, wire.DeleteQuota, s.deleteQuota)
}

// listQuotas lists the quotas by id (U99).
func (s *Server) listQuotas(ctx context.Context, r *wire.ListQuotasRequest) (answer, error) {
	return pageBy(r.PageFields, func(o flowfabric.PageOptions) (flowfabric.Page[*flowfabric.Quota], error) {
		return s.client.Quotas().Page(ctx, o)
	})
}

// getQuota shows a quota and its use (U99).
func (s *Server) getQuota(ctx context.Context, r *wire.ByQuota) (answer, error) {
	quota, err := s.client.Quotas().Get(ctx, r.ID)
	return shows(quota), err
}

// putQuota states all settings of a quota (U99).
func (s *Server) putQuota(ctx context.Context, r *wire.PutQuotaRequest) (answer, error) {
	b := r.Body
	settings := flowfabric.QuotaSettings{
		RateLimit: b.RateLimit, Window: millis(b.WindowMS), ConcurrencyLimit: b.ConcurrencyLimit, PerKey: b.PerKey,
	}
	quota, err := s.client.Quotas().Put(ctx, r.ID, settings, adminAction(b.AdminFields, r.IfMatch))
	return shows(quota), err
}

// deleteQuota forgets a quota (U99).
func (s *Server) deleteQuota(ctx context.Context, r *wire.DeleteQuotaRequest) (answer, error) {
	how := flowfabric.DeleteQuotaOptions{AdminAction: adminAction(r.Body, r.IfMatch), Force: r.Force}
	return nothing(), s.client.Quotas().Delete(ctx, r.ID, how)
}

// quotaUses are the quotas that executions are attached to.
func quotaUses(all []wire.QuotaUse) (uses []flowfabric.QuotaUse) {
	for _, use := range all {
		uses = append(uses, flowfabric.QuotaUse(use))
	}
	return uses
}
