package flowfabric

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/principal"
)

// The actors of E24 that a client may be.
const (
	actorClient = "client"
	actorWorker = "worker"
)

// caller is for whom a call is made: the principal of the context, else the one that the client was opened for (W5).
func (e *embedded) caller(ctx context.Context, actor string) engine.Caller {
	p, ok := principal.From(ctx)
	if !ok {
		return engine.Caller{Principal: e.principal, Actor: actor, Namespaces: e.namespaces}
	}
	c := engine.Caller{
		Principal: p.Name, KeyID: p.KeyID, Actor: actor, Namespaces: p.Namespaces, RequestID: p.RequestID, Address: p.Address,
		RequestKey: p.RequestKey, Repeated: p.Repeated, OwnInstances: p.OwnInstances,
	}
	if p.Feed != nil {
		c.Feed = &engine.Feed{Lanes: p.Feed.Lanes}
	}
	return c
}

func (e *embedded) asClient(ctx context.Context) engine.Caller { return e.caller(ctx, actorClient) }

// asWorker is who works on executions, in the lanes that the principal is bound to.
func (e *embedded) asWorker(ctx context.Context) engine.Caller {
	c := e.caller(ctx, actorWorker)
	if p, ok := principal.From(ctx); ok {
		c.WorkLanes = p.Lanes
	}
	return c
}
