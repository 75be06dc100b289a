package server

import (
	"context"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/service"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// authorize finds under which conditions the caller may make the call; those that concern the caller alone are decided here (U122).
func (s *Server) authorize(x *exchange) ([]wire.Condition, error) {
	if x.caller.anonymous {
		return []wire.Condition{wire.Always}, nil
	}
	under := wire.Allows(x.route.Operation, x.caller.roles)
	under = slices.DeleteFunc(under, func(c wire.Condition) bool { return c == wire.AllNamespaces && !x.caller.everywhere })
	if x.lanes() == nil && slices.ContainsFunc(under, ofLanes) {
		return []wire.Condition{wire.Always}, nil
	}
	if len(under) == 0 {
		s.metrics.rejected("role")
		return nil, roleRequired(x)
	}
	return under, nil
}

// ofLanes reports whether a condition bounds only keys that list lanes.
func ofLanes(c wire.Condition) bool { return c == wire.OwnLanes || c == wire.LeasedInLanes }

// roleRequired is the refusal of a caller that lacks a role, or a condition under which its role would do.
func roleRequired(x *exchange) *refusal {
	return refuse("role_required", "the caller may not do this").current("roles", (x.route.Roles | wire.Admin).Names()).
		hint("use a key with one of the roles " + strings.Join(x.route.Roles.Names(), ", ") + bounds(x.route.Operation))
}

// bounds says what the table bounds the roles to.
func bounds(o *wire.Operation) string {
	var texts []string
	for role := wire.Read; role <= wire.Admin; role <<= 1 {
		if text := conditionTexts[o.Only[role]]; text != "" {
			texts = append(texts, role.String()+" "+text)
		}
	}
	if len(texts) == 0 {
		return ""
	}
	return " (" + strings.Join(texts, "; ") + ")"
}

var conditionTexts = map[wire.Condition]string{
	wire.OwnWork:       "for what the key submitted itself",
	wire.OwnListed:     "for what the key submitted itself",
	wire.OwnEvents:     "with the execution_id or flow_id of what the key submitted itself",
	wire.OwnFeed:       "with the worker_instance_id of an instance that the key registered itself",
	wire.OwnLanes:      "in the lanes of the key, if it lists some",
	wire.LeasedInLanes: "if the key lists lanes, with the execution_id of one in these that its worker holds",
	wire.WithLease:     "with the lease of the execution",
	wire.OwnInstance:   "for an instance that the key registered itself",
	wire.WithOverride:  `with "override": true`,
	wire.NoRemoval:     "for actions that remove or retain nothing",
	wire.AllNamespaces: "for all namespaces",
	wire.SharedThings:  "for all namespaces, or for the only one there is",
}

// checkConditions evaluates the conditions that concern the request. One that is satisfied is enough. A lease makes a request one of the worker that
// holds it, of which the audit log has no row: it takes a key of a worker, whatever else the key may do.
func (s *Server) checkConditions(ctx context.Context, x *exchange, r any) error {
	if showsLease(r) && x.caller.roles&(wire.Work|wire.Admin) == 0 {
		s.metrics.rejected("role")
		return refuse("role_required", "only workers act under a lease").current("roles", (wire.Work | wire.Admin).Names()).
			hint("leave the lease out, or use a key with role work")
	}
	for _, c := range x.conditions {
		holds, err := s.holds(ctx, x, c, r)
		if err != nil || holds {
			x.under = c
			return err
		}
	}
	s.metrics.rejected("role")
	return roleRequired(x)
}

func (s *Server) holds(ctx context.Context, x *exchange, c wire.Condition, r any) (bool, error) {
	switch c {
	case wire.OwnWork:
		return s.ownWork(ctx, x)
	case wire.OwnEvents:
		return s.ownEvents(ctx, x, r)
	case wire.OwnFeed:
		return s.ownFeed(ctx, x, r)
	case wire.OwnLanes:
		return s.inLanes(ctx, x, api.ID(x.r.PathValue("id")))
	case wire.LeasedInLanes:
		return s.leasedInLanes(ctx, x, r)
	case wire.WithLease:
		return s.withLease(ctx, x, r)
	case wire.OwnInstance:
		return s.ownInstance(ctx, x)
	case wire.WithOverride:
		return overrides(r), nil
	case wire.NoRemoval:
		bulk, ok := r.(*wire.StartBulkRequest)
		return ok && bulk.Body.Action != api.BulkRetain && bulk.Body.Action != api.BulkDelete, nil
	case wire.SharedThings:
		return s.sharesNothing(ctx, x)
	default: // Always, OwnListed, which the list itself sees to, and AllNamespaces, which authorize has decided
		return true, nil
	}
}

// ownWork reports whether the key itself submitted the execution or flow in the path.
func (s *Server) ownWork(ctx context.Context, x *exchange) (bool, error) {
	id := api.ID(x.r.PathValue("id"))
	if strings.HasPrefix(x.route.Path, wire.ListFlows.Path+"/") {
		return s.ownFlow(ctx, x, id)
	}
	return s.ownExecution(ctx, x, id)
}

func (s *Server) ownFlow(ctx context.Context, x *exchange, id api.ID) (bool, error) {
	_, err := s.flow(ctx, x.asSubmitter(), id, 0)
	return submittedBy(err)
}

func (s *Server) ownExecution(ctx context.Context, x *exchange, id api.ID) (bool, error) {
	_, err := s.outline(ctx, x.asSubmitter(), id)
	return submittedBy(err)
}

// outline is an execution for decisions about who may do what: without payloads.
func (s *Server) outline(ctx context.Context, by service.Caller, id api.ID) (*api.Execution, error) {
	return ask(ctx, s, by, wire.GetExecution, &wire.GetExecutionRequest{ByID: wire.ByID{ID: string(id)}, View: wire.ViewSummary})
}

// submittedBy reads from the answer to asSubmitter whether the caller submitted what was asked for.
func submittedBy(err error) (bool, error) {
	if api.CodeOf(err) == "role_required" {
		return false, nil
	}
	return err == nil, err
}

// asSubmitter returns the caller for reads of what it submitted itself.
func (x *exchange) asSubmitter() service.Caller {
	by := x.acting()
	by.OwnWork = true
	return by
}

// withLease reports whether a worker sends a lease. The engine checks whether it is the right one; where it does not, it is
// looked up.
func (s *Server) withLease(ctx context.Context, x *exchange, r any) (bool, error) {
	if r, ok := r.(*wire.ListLinksRequest); ok {
		return s.holdsLease(ctx, x, r.LeaseHeader, r.Waitpoint)
	}
	return showsLease(r), nil
}

// showsLease reports whether a request that others than workers may send too is sent under a lease.
func showsLease(r any) bool {
	switch r := r.(type) {
	case *wire.CancelRequest:
		return !r.Body.Lease.IsZero() || !r.LeaseHeader.IsZero()
	case *wire.CloseWaitpointRequest:
		return !r.Body.Lease.IsZero() || !r.LeaseHeader.IsZero()
	case *wire.CreateLinkRequest:
		return !r.Body.Lease.IsZero() || !r.LeaseHeader.IsZero()
	case *wire.RevokeLinkRequest:
		return !r.Body.Lease.IsZero() || !r.LeaseHeader.IsZero()
	default:
		return false
	}
}

func overrides(r any) bool {
	switch r := r.(type) {
	case *wire.CompleteRequest:
		return r.Body.Override
	case *wire.FailRequest:
		return r.Body.Override
	default:
		return false
	}
}

// sharesNothing reports whether a change of something shared by all namespaces affects only the caller: its key is for all of
// them, or for the only one.
func (s *Server) sharesNothing(ctx context.Context, x *exchange) (bool, error) {
	if x.caller.everywhere {
		return true, nil
	}
	if len(x.caller.Namespaces) != 1 {
		return false, nil
	}
	return s.on.OnlyNamespace(ctx, x.caller.Namespaces[0])
}
