package service

import (
	"context"
	"encoding/hex"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func (s *Service) audit() {
	on(s, wire.ListAudit, s.listAudit)
	on(s, wire.VerifyAudit, s.verifyAudit)
}

// listAudit reads the audit log (U110).
func (s *Service) listAudit(ctx context.Context, c Caller, r *wire.AuditRequest) (api.Page[api.AuditRow], error) {
	return page(r.PageFields, auditRowOf, func(cursor string, limit *int) ([]core.AuditRow, string, error) {
		return s.engine.AuditPage(ctx, c.admin(), engine.AuditRequest{
			Filter: core.AuditFilter{
				Namespace: c.Chosen, Principal: r.Principal, Action: r.Action, Entity: r.Entity, EntityID: r.EntityID,
				From: base.TimeOf(r.From.Time), To: base.TimeOf(r.To.Time),
			},
			Limit: limit, Cursor: cursor,
		})
	})
}

// verifyAudit recomputes a chain of the audit log (U131).
func (s *Service) verifyAudit(ctx context.Context, c Caller, r *wire.VerifyAuditRequest) (api.AuditCheck, error) {
	namespace := c.Chosen
	switch {
	case r.Shared:
		namespace = keyring.Everywhere
	case namespace == "":
		home, err := c.home()
		if err != nil {
			return api.AuditCheck{}, err
		}
		namespace = home
	}
	check, err := s.engine.VerifyAudit(ctx, c.admin(), namespace)
	if err != nil {
		return api.AuditCheck{}, err
	}
	return api.AuditCheck{
		Namespace: check.Namespace, OK: check.Problem == "", Keyed: check.Keyed != 0, FirstKeyed: check.Keyed, First: check.First, Last: check.Last,
		Rows: check.Rows, Broken: check.Broken, Problem: check.Problem, Removed: check.Removed, Hash: hex.EncodeToString(check.Hash),
	}, nil
}

func auditRowOf(r core.AuditRow) api.AuditRow {
	return api.AuditRow{
		ID: r.ID.String(), At: r.At.Std(), Namespace: r.Namespace, Principal: r.Principal, Action: r.Action, Entity: r.Entity, EntityID: base.BareID(r.EntityID),
		Reason: r.Reason, RequestID: r.RequestID, Address: r.Address, Before: r.Before, After: base.BareFilter(r.After), Outcome: r.Outcome,
		PrevHash: hex.EncodeToString(r.PrevHash), Hash: hex.EncodeToString(r.Hash),
	}
}
