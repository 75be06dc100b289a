package service

import (
	"context"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func (s *Service) namespaces() {
	on(s, wire.ListNamespaces, s.listNamespaces)
	on(s, wire.GetNamespace, s.getNamespace)
	on(s, wire.PutNamespace, s.putNamespace)
	on(s, wire.DeleteNamespace, s.deleteNamespace)
}

// listNamespaces lists the namespaces by name (U101).
func (s *Service) listNamespaces(ctx context.Context, c Caller, r *wire.ListNamespacesRequest) (api.Page[*api.Namespace], error) {
	return page(r.PageFields, namespaceOf, func(cursor string, limit *int) ([]core.Namespace, string, error) {
		return s.engine.Namespaces(ctx, c.admin(), cursor, limit)
	})
}

// getNamespace returns a namespace (U101).
func (s *Service) getNamespace(ctx context.Context, c Caller, r *wire.ByNamespace) (api.Namespace, error) {
	return namespaceShown(s.engine.Namespace(ctx, c.admin(), r.Name))
}

// putNamespace sets all settings of a namespace (U101).
func (s *Service) putNamespace(ctx context.Context, c Caller, r *wire.PutNamespaceRequest) (api.Namespace, error) {
	b := &r.Body
	settings := core.NamespaceSettings{
		Description: b.Description, MaxSubmitPerSecond: b.MaxSubmitPerSecond, MaxPayloadBytes: b.MaxPayloadBytes,
		DefaultQuotas: some(b.DefaultQuotas, func(u api.QuotaUse) core.QuotaUse { return core.QuotaUse(u) }),
		MaxLanes:      b.MaxLanes, MaxClasses: b.MaxClasses, MaxReady: b.MaxReady, MaxPriority: b.MaxPriority,
		MaxRequestsPerSecond: b.MaxRequestsPerSecond, MaxReaders: b.MaxReaders, MaxAuditRowsPerMinute: b.MaxAuditRowsPerMinute,
		MaxWorkers: b.MaxWorkers,
	}
	return namespaceShown(s.engine.PutNamespace(ctx, c.admin(), r.Name, settings, c.action(b.AdminFields, r.IfMatch)))
}

// deleteNamespace removes an empty namespace (U101).
func (s *Service) deleteNamespace(ctx context.Context, c Caller, r *wire.DeleteNamespaceRequest) (wire.None, error) {
	return wire.None{}, s.engine.DeleteNamespace(ctx, c.admin(), r.Name, c.action(r.Body, r.IfMatch))
}

func namespaceShown(n core.Namespace, err error) (api.Namespace, error) {
	if err != nil {
		return api.Namespace{}, err
	}
	return *namespaceOf(n), nil
}

func namespaceOf(n core.Namespace) *api.Namespace {
	s := n.NamespaceSettings
	return &api.Namespace{Name: n.Name, Revision: n.Revision, CreatedAt: n.CreatedAt.Std(), NamespaceSettings: api.NamespaceSettings{
		Description: s.Description, MaxSubmitPerSecond: s.MaxSubmitPerSecond, MaxPayloadBytes: s.MaxPayloadBytes,
		DefaultQuotas: some(s.DefaultQuotas, func(u core.QuotaUse) api.QuotaUse { return api.QuotaUse(u) }),
		MaxLanes:      s.MaxLanes, MaxClasses: s.MaxClasses, MaxReady: s.MaxReady, MaxPriority: s.MaxPriority,
		MaxRequestsPerSecond: s.MaxRequestsPerSecond, MaxReaders: s.MaxReaders, MaxAuditRowsPerMinute: s.MaxAuditRowsPerMinute,
		MaxWorkers: s.MaxWorkers,
	}}
}
