package server

import (
	"context"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func (s *Server) serveNamespaces() {
	handle(s, wire.ListNamespaces, s.listNamespaces)
	handle(s, wire.GetNamespace, s.getNamespace)
	handle(s, wire.PutNamespace, s.putNamespace)
	handle(s, wire.DeleteNamespace, s.deleteNamespace)
}

// listNamespaces lists the namespaces by name (U101).
func (s *Server) listNamespaces(ctx context.Context, r *wire.ListNamespacesRequest) (answer, error) {
	return pageBy(r.PageFields, func(o flowfabric.PageOptions) (flowfabric.Page[*flowfabric.Namespace], error) {
		return s.client.Admin().Namespaces().Page(ctx, o)
	})
}

// getNamespace shows a namespace (U101).
func (s *Server) getNamespace(ctx context.Context, r *wire.ByNamespace) (answer, error) {
	namespace, err := s.client.Admin().Namespaces().Get(ctx, r.Name)
	return shows(namespace), err
}

// putNamespace states all settings of a namespace (U101).
func (s *Server) putNamespace(ctx context.Context, r *wire.PutNamespaceRequest) (answer, error) {
	settings := flowfabric.NamespaceSettings{
		Description: r.Body.Description, MaxSubmitPerSecond: r.Body.MaxSubmitPerSecond, MaxPayloadBytes: int(r.Body.MaxPayloadBytes),
		DefaultQuotas: r.Body.DefaultQuotas, MaxLanes: r.Body.MaxLanes, MaxClasses: r.Body.MaxClasses, MaxReady: r.Body.MaxReady,
		MaxPriority: r.Body.MaxPriority, MaxRequestsPerSecond: r.Body.MaxRequestsPerSecond,
	}
	namespace, err := s.client.Admin().Namespaces().Put(ctx, r.Name, settings, adminAction(r.Body.AdminFields, r.IfMatch))
	return shows(namespace), err
}

// deleteNamespace forgets an empty namespace (U101).
func (s *Server) deleteNamespace(ctx context.Context, r *wire.DeleteNamespaceRequest) (answer, error) {
	return nothing(), s.client.Admin().Namespaces().Delete(ctx, r.Name, adminAction(r.Body, r.IfMatch))
}
