package server

import (
	"context"
	"errors"
	"slices"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// lanes are those that the caller is bound to (U122); nil: to none. An operator is not bound.
func (x *exchange) lanes() []string {
	if x.caller.key == nil || len(x.caller.key.Lanes) == 0 || x.caller.roles&(wire.Operate|wire.Admin) != 0 {
		return nil
	}
	return x.caller.key.Lanes
}

// mayWorkOn reports whether the key of the caller is for these lanes (U122).
func (x *exchange) mayWorkOn(lanes ...string) error {
	own := x.lanes()
	if own == nil {
		return nil
	}
	for _, lane := range lanes {
		if !slices.Contains(own, lane) {
			return refuse("role_required", "the key may not work on this lane").current("lanes", own).hint("name only lanes of the key")
		}
	}
	return nil
}

// mayTake refuses a key that is bound to lanes of which the execution's is none.
func (s *Server) mayTake(ctx context.Context, x *exchange, id api.ID) error {
	if x.lanes() == nil {
		return nil
	}
	execution, err := s.outline(ctx, x.by, id)
	if err != nil {
		return err
	}
	return x.mayWorkOn(execution.Lane)
}

// inLanes reports whether a worker of certain lanes may read the execution: the execution is in one of them, or is a child of one
// that is, whose result its parent reads.
func (s *Server) inLanes(ctx context.Context, x *exchange, id api.ID) (bool, error) {
	execution, err := s.outline(ctx, x.by, id)
	if err != nil {
		return false, err
	}
	if x.mayWorkOn(execution.Lane) == nil {
		return true, nil
	}
	if execution.ParentID == "" {
		return false, nil
	}
	parent, err := s.outline(ctx, x.by, execution.ParentID)
	if errors.Is(err, api.ErrNotFound) {
		return false, nil // it was removed before its child
	}
	return err == nil && x.mayWorkOn(parent.Lane) == nil, err
}

// leasedInLanes reports whether a worker of certain lanes charges for what it works on: the execution is in one of them, and an instance that
// the caller's key registered holds its lease.
func (s *Server) leasedInLanes(ctx context.Context, x *exchange, r any) (bool, error) {
	var id api.ID
	switch r := r.(type) {
	case *wire.ChargeBudgetRequest:
		id = r.Body.ExecutionID
	case *wire.ReleaseBudgetRequest:
		id = r.Body.ExecutionID
	}
	if id == "" {
		return false, nil
	}
	execution, err := s.outline(ctx, x.by, id)
	if err != nil || execution.Lease == nil || x.mayWorkOn(execution.Lane) != nil {
		return false, err
	}
	own, err := s.owns(ctx, x, execution.Lease.InstanceID)
	if errors.Is(err, api.ErrNotFound) {
		return false, nil // the record of its instance is gone
	}
	return own, err
}
