package service

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// Caller is the principal that an operation is performed for: the owner of the store, or the sender of a request to a server.
type Caller struct {
	Name       string   // of the API key, or of the login that replaces it
	KeyID      string   // "" without an API key
	Namespace  string   // where new work goes; "": none was chosen
	Namespaces []string // that it may see and change; nil: all
	Operator   bool     // it has the role operate or admin: its changes are an operator's
	Admin      bool     // it has the role admin
	RequestID  string   // X-Request-Id (U12)
	RequestKey string   // Idempotency-Key (U13)
	Address    string   // for the audit log

	// LineKey is the Idempotency-Key of a request whose lines are submitted in batches, and Lines are the indexes of those of this
	// batch. Each line has an id of its own by them, and RequestKey is "".
	LineKey string
	Lines   []int

	// Feed restricts what it reads of the event log to the feeds of the instances that it registered (U106); nil: no restriction.
	Feed *Feed
	// OwnWork restricts what it reads, and what it adds to flows, to executions and flows that it submitted itself (U122): others
	// are refused with role_required, and left out of lists of flows.
	OwnWork bool
	// Lanes restricts what it works on to executions in these (U122); nil: no restriction.
	Lanes []string
	// OwnInstances restricts its commands on workers to the instances that its key registered (U103).
	OwnInstances bool
	// Bounded counts its rows of the audit log against the limit of the namespace (U101).
	Bounded bool
	// Repeated is set if the request repeats one that was answered before (U13); may be nil.
	Repeated *atomic.Bool

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

// Feed is what a worker may read of the event log.
type Feed struct {
	Lanes []string // only what happens in these; none: in all
}

// Owner returns the program that opened the store as a caller, by a name, in a namespace.
func Owner(name, namespace string) Caller {
	return Caller{Name: name, Namespace: namespace, Namespaces: []string{namespace}, Operator: true, Admin: true, Owner: true}
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
		Bounded: c.Bounded, HidesShared: !c.Operator, HidesKeys: !c.Admin,
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
			WithField("header.FlowFabric-Namespace").WithHint("name one with `FlowFabric-Namespace`")
	}
}

// first reports whether the command is performed for the first time. If not, an earlier try may have made what it finds.
func (c *Caller) first() bool { return c.repeats == 0 && !c.Again }

// once returns a name for something that a command makes without a name of its own, so that a repeat of the command makes it
// once.
func (c *Caller) once() string { return cmp.Or(c.requestOnce(), c.Key) }

// requestOnce is such a name made of the key of the request: a repeat of the request makes the thing once, another request under
// the same key is a conflict (U13). "" without a key.
func (c *Caller) requestOnce() string {
	if c.RequestKey == "" {
		return ""
	}
	sum := sha256.Sum256([]byte("request\x00" + c.Name + "\x00" + c.KeyID + "\x00" + c.RequestKey))
	return hex.EncodeToString(sum[:])
}

// ofRequestKey names the request's key as the field of a refusal about a missing name that the key replaced (U11).
func ofRequestKey(err error, field, given string) error {
	var refusal *base.Error
	if given != "" || !errors.As(err, &refusal) || refusal.Field != field {
		return err
	}
	named := *refusal
	return named.WithField("request_key")
}
