package service

import (
	"cmp"
	"errors"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/principal"
)

// Caller is the principal that an operation is performed for.
type Caller struct {
	principal.Principal
	// Key identifies the repeat of a command if the request itself has no key.
	Key string
	// AsWorker means that a worker of this process acts on its own behalf, which is not an operator's action.
	AsWorker bool
	// Owner means that the caller is the program that opened the store, and administers all of it.
	Owner bool
	// Chosen is the namespace that an operation names instead of the caller's own; "": none.
	Chosen string
	// Again means that the caller has performed the operation before, under Key, with an unknown outcome.
	Again bool

	repeats int        // number of earlier tries of this command of unknown outcome
	random  [40]byte   // of an operation that makes a secret: the same in all tries, so that a repeat finds what the first one made
	minted  *mintedIDs // of a batch of submissions: likewise
}

// Owner returns the program that opened the store as a caller, by a name, in a namespace.
func Owner(name, namespace string) Caller {
	return Caller{
		Principal: principal.Principal{Name: name, Namespace: namespace, Namespaces: []string{namespace}, Operator: true}, Owner: true,
	}
}

// The actor types of a caller (E24).
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

// worker returns the caller as the holder of a lease, in the lanes that it is bound to.
func (c *Caller) worker() engine.Caller {
	who := c.as(actorWorker)
	who.WorkLanes = c.Lanes
	return who
}

// operator returns the caller as one that acts on executions, lanes and workers. A caller without the role acts as a client.
func (c *Caller) operator() engine.Caller {
	if c.Operator {
		return c.as(actorOperator)
	}
	return c.as(actorClient)
}

// admin returns the caller as an administrator of the store: its owner everywhere, others where they may act.
func (c *Caller) admin() engine.Caller {
	who := c.operator()
	if c.Owner {
		who.Namespaces = nil
	}
	return who
}

// home returns the namespace for new work; namespace_required if a caller of several has not chosen one (U121).
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

// first reports whether the command is performed for the first time. If not, an earlier try may have made what it finds.
func (c *Caller) first() bool { return c.repeats == 0 && !c.Again }

// once returns a name for something that a command makes without a name of its own, so that a repeat of the command makes it
// once.
func (c *Caller) once() string { return cmp.Or(c.OnceKey(), c.Key) }

// ofRequestKey names the request's key as the field of a refusal about a missing name that the key replaced (U11).
func ofRequestKey(err error, field, given string) error {
	var refusal *base.Error
	if given != "" || !errors.As(err, &refusal) || refusal.Field != field {
		return err
	}
	named := *refusal
	return named.WithField("request_key")
}
