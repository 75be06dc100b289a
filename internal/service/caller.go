package service

import (
	"cmp"
	"errors"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core/base"
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
	// Owner says that the caller is the program that opened the store, and administers all of it.
	Owner bool
	// Chosen is the namespace that an operation names in place of the caller's own; "": it names none.
	Chosen string
	// Again says that the caller has done the operation before, under Key, and does not know its outcome.
	Again bool

	repeats int        // how often this command was done before, without a known outcome
	random  [40]byte   // of an operation that makes a secret: the same in all tries, so that a repeat finds what the first one made
	minted  *mintedIDs // of a batch of submissions: likewise
}

// Owner is the program that opened the store, by a name, in a namespace.
func Owner(name, namespace string) Caller {
	return Caller{
		Principal: principal.Principal{Name: name, Namespace: namespace, Namespaces: []string{namespace}, Operator: true}, Owner: true,
	}
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
		RequestKey: c.RequestKey, Repeated: c.Repeated, OwnWork: c.OwnWork, OwnInstances: c.OwnInstances,
	}
	if c.Feed != nil {
		who.Feed = &engine.Feed{Lanes: c.Feed.Lanes}
	}
	return who
}

func (c *Caller) client() engine.Caller { return c.as(actorClient) }

// worker is who acts by the right of a lease, in the lanes that it is bound to.
func (c *Caller) worker() engine.Caller {
	who := c.as(actorWorker)
	who.WorkLanes = c.Lanes
	return who
}

// operator is who acts on executions, lanes and workers. A caller that is none acts as a client.
func (c *Caller) operator() engine.Caller {
	if c.Operator {
		return c.as(actorOperator)
	}
	return c.as(actorClient)
}

// admin is who administers the store: its owner everywhere, others where they may act.
func (c *Caller) admin() engine.Caller {
	who := c.operator()
	if c.Owner {
		who.Namespaces = nil
	}
	return who
}

// home is the namespace that new work goes to; namespace_required when a caller of several has not chosen one (U121).
func (c *Caller) home() (string, error) {
	switch {
	case c.Namespace != "" && c.Namespaces != nil && !slices.Contains(c.Namespaces, c.Namespace):
		return "", base.Errorf(base.CodeNamespaceForbidden, "the caller has no namespace %q", c.Namespace)
	case c.Namespace != "":
		return c.Namespace, nil
	case len(c.Namespaces) == 1:
		return c.Namespaces[0], nil
	default:
		return "", base.Errorf(base.CodeNamespaceRequired, "the caller has several namespaces").
			WithField("header.FlowFabric-Namespace").WithHint("name one of them")
	}
}

// first reports whether the command is done for the first time. What a repeat finds done may be its own doing.
func (c *Caller) first() bool { return c.repeats == 0 && !c.Again }

// once names what a command makes that brings no name of its own, so that a repeat of the command makes it once.
func (c *Caller) once() string { return cmp.Or(c.OnceKey(), c.Key) }

// ofRequestKey names the request's key in the refusal of a name that it stood in for, because the request gives none (U11).
func ofRequestKey(err error, field, given string) error {
	var refusal *base.Error
	if given != "" || !errors.As(err, &refusal) || refusal.Field != field {
		return err
	}
	named := *refusal
	return named.WithField("request_key")
}
