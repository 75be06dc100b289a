package server

import "github.com/flowfabric/flowfabric/internal/wire"

func (s *Server) serveQuotas() {
	pass(s, wire.ListQuotas)
	pass(s, wire.GetQuota)
	pass(s, wire.PutQuota)
	pass(s, wire.DeleteQuota)
}
