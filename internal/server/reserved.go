package server

import (
	"context"
	"strings"

	"github.com/flowfabric/flowfabric/internal/wire"
)

// reservedRoutes are routes whose place is kept for a feature that is not built.
type reservedRoutes struct {
	feature string    // as /v1/info calls it
	roles   wire.Role // Any: every valid credential. Open: the routes take a token instead of one
	routes  []string  // method and path
}

// unbuilt are the routes of the features that /v1/info reports as false, except those that the table of operations has (U112).
var unbuilt = []reservedRoutes{
	{"console", wire.Open, []string{"POST /v1/session", "DELETE /v1/session"}},
}

// serveReserved answers 501 for routes that are reserved and not implemented (U109, U112). Only the table of operations is part
// of the contract and of the document: for the others neither fields nor answers are promised yet.
func (s *Server) serveReserved() {
	for _, o := range wire.Operations() {
		if o.Reserved {
			s.add(o, notBuilt("schedules"))
		}
	}
	for _, reserved := range unbuilt {
		for _, pattern := range reserved.routes {
			method, path, _ := strings.Cut(pattern, " ")
			o := &wire.Operation{ID: reserved.feature, Method: method, Path: path, Roles: reserved.roles, Reserved: true}
			s.put(&route{Operation: o, serve: notBuilt(reserved.feature)})
		}
	}
}

func notBuilt(feature string) func(context.Context, *exchange) (answer, error) {
	return func(context.Context, *exchange) (answer, error) {
		return answer{}, refuse("not_implemented", "this route is reserved").hint(feature + ": not built yet; features of /v1/info tells what is")
	}
}
