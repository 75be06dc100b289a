package server

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/wire"
)

// serveReserved answers 501 for what has a place in the table and is not built (U109).
func (s *Server) serveReserved() {
	for _, o := range wire.Operations() {
		if o.Reserved {
			s.add(o.ID, func(context.Context, *exchange) (answer, error) {
				return answer{}, refuse("not_implemented", "this route is reserved").hint("schedules are not built yet")
			})
		}
	}
}
