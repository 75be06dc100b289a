package service

import (
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/principal"
)

// Caller is who an operation is done for.
type Caller struct {
	principal.Principal
	// Key is by which the repeat of a command is recognised, where the request itself was sent under none.
	Key string
	// AsWorker says that a worker of this process acts for itself, which is no operator's act.
	AsWorker bool

	repeats int // how often this command was done before, without a known outcome
}

// The actors of E24 that a caller may be.
const (
	actorClient   = "client"
	actorOperator = "operator"
	actorWorker   = "worker"
)

func (c *Caller) as(actor string) engine.Caller {
	who := engine.Caller{
		Principal: c.Name, KeyID: c.KeyID, Actor: actor, Namespaces: c.Namespaces, RequestID: c.RequestID, Address: c.Address,
		RequestKey: c.RequestKey, Repeated: c.Repeated, OwnInstances: c.OwnInstances,
	}
	if c.Feed != nil {
		who.Feed = &engine.Feed{Lanes: c.Feed.Lanes}
	}
	return who
}

func (c *Caller) client() engine.Caller { return c.as(actorClient) }

// operator is who acts on executions, lanes and workers. A caller that is none acts as a client.
func (c *Caller) operator() engine.Caller {
	if c.Operator {
		return c.as(actorOperator)
	}
	return c.as(actorClient)
}
