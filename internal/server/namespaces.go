package server

import "github.com/flowfabric/flowfabric/internal/wire"

func (s *Server) serveNamespaces() {
	pass(s, wire.ListNamespaces)
	pass(s, wire.GetNamespace)
	pass(s, wire.PutNamespace)
	pass(s, wire.DeleteNamespace)
}
