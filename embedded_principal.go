package flowfabric

import (
	"context"
	"errors"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/principal"
)

// actorClient is the actor of E24 that a client is.
const actorClient = "client"

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

// home is the namespace that new work goes to; namespace_required when a principal of several has not chosen one (U121).
func (e *embedded) home(ctx context.Context) (string, error) {
	p, ok := principal.From(ctx)
	switch {
	case !ok:
		return e.namespace, nil
	case p.Namespace != "" && p.Namespaces != nil && !slices.Contains(p.Namespaces, p.Namespace):
		return "", newError(core.CodeNamespaceForbidden, "the caller has no namespace %q", p.Namespace)
	case p.Namespace != "":
		return p.Namespace, nil
	case len(p.Namespaces) == 1:
		return p.Namespaces[0], nil
	default:
		return "", newError(core.CodeNamespaceRequired, "the caller has several namespaces").At("header.FlowFabric-Namespace", "name one of them")
	}
}

// submitID is the id of a submission that brings none, made before the first try (L86). That of a request with a key is derived
// from it, so that the same request again finds what it made (U13). index tells the submissions of one request apart.
func (e *embedded) submitID(ctx context.Context, home string, index int) (id ID, derived bool, err error) {
	p, ok := principal.From(ctx)
	d := engine.Derivation{Namespace: home, RequestKey: p.RequestKey, Index: index}
	switch {
	case !ok || p.RequestKey == "" && p.LineKey == "":
		return e.mintID(), false, nil
	case p.RequestKey == "":
		d.RequestKey, d.Index, d.Line = p.LineKey, p.Lines[index], true
	}
	uuid, err := e.engine.DerivedID(ctx, e.asClient(ctx), d)
	if err != nil {
		return "", false, publicError(err)
	}
	return ID(core.IDOf(uuid).String()), !d.Line, nil
}

// submitter is who submits. The request's key counts only where ids were derived from it: a submission that brings its id is known
// by that (L117), and its caller pays for no record. A further try of our own repeats nothing.
func (e *embedded) submitter(ctx context.Context, derived bool, try int) engine.Caller {
	c := e.asClient(ctx)
	if !derived {
		c.RequestKey = ""
	}
	if try > 1 {
		c.Repeated = nil
	}
	return c
}

// sameRequest turns the conflict of an id that was derived from the request's key, or of what is recorded under it, into that of the
// key (U13).
func sameRequest(err error, derived bool) error {
	var refusal *Error
	if derived && errors.As(err, &refusal) && (refusal.Code == string(core.CodeIDConflict) || refusal.Field == "request_key") {
		conflict := newError(core.CodeIdempotencyConflict, "the key was used for another request").At("header.Idempotency-Key", "use a new key for new work")
		if index, ok := refusal.Current["index"]; ok {
			conflict.Current = map[string]any{"index": index}
		}
		return conflict
	}
	return err
}
