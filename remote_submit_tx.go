package flowfabric

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/service"
	"github.com/flowfabric/flowfabric/internal/store"
	"github.com/flowfabric/flowfabric/internal/store/postgres"
	"github.com/flowfabric/flowfabric/internal/store/sqlite"
)

// actorClient is the actor of E24 that a client is.
const actorClient = "client"

// guests keeps what transactional submits must know of the server: its store, its limits, and who this client is there.
type guests struct {
	mu      sync.Mutex
	known   *guest
	askedAt time.Time
}

type guest struct {
	store     store.Guest
	limits    base.Limits
	caller    engine.Caller
	namespace string
}

// guestAge is how long the server is believed: keys and stores change seldom.
const guestAge = time.Minute

// submitTx leaves the submission in the caller's transaction on the store's own database. The server is asked who this client is and
// which database that is, but knows nothing of the submission until it is committed.
func (r *remote) submitTx(ctx context.Context, tx any, s Submission) (*Execution, error) {
	if s.ID == "" {
		s.ID = mintID(r.clock)
	}
	g, err := r.guest(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.Check(); err != nil {
		return nil, err
	}
	sub, err := service.CoreSubmission(&s, g.namespace)
	if err != nil {
		return nil, publicError(err)
	}
	answer, filed, err := engine.SubmitAsGuest(ctx, g.store, g.caller, g.limits, tx, sub)
	switch {
	case err != nil:
		if base.CodeOf(err) == base.CodeWrongDatabase {
			r.guests.forget() // the server may have moved
		}
		return nil, publicError(service.SubmissionAsGiven(err, &s))
	case filed:
		return r.filed(ctx, g, answer, sub)
	}
	return service.TxExecution(answer, &sub), nil
}

// filed shows the execution that has the key or the id already, as the server knows it.
func (r *remote) filed(ctx context.Context, g *guest, answer engine.TxAnswer, sub core.Submission) (*Execution, error) {
	x, err := r.Get(ctx, idOf(answer.ID))
	switch {
	case errors.Is(err, ErrNotFound):
		return service.TxExecution(answer, &sub), nil
	case err != nil:
		return nil, err
	case sub.ID.UUID != answer.ID.UUID: // found by its key, and the fingerprint was compared
		return x, nil
	}
	input := x.Input
	if input.Omitted() {
		if input, err = r.Executions().Input(ctx, x.ID); err != nil {
			return nil, err
		}
	}
	known := core.Submission{Namespace: x.Namespace, Kind: x.Kind, Lane: x.Lane, Input: service.CorePayload(input), PolicyJSON: x.Policy}
	if sub.ID.Full && int(sub.ID.N) != x.Partition || x.Namespace != sub.Namespace || !engine.SameWork(known, sub) {
		return nil, newError(base.CodeIDConflict, "the id belongs to other work").At("execution_id", "leave it out: the client mints one")
	}
	return x, nil
}

// guest asks the server once in a while.
func (r *remote) guest(ctx context.Context) (*guest, error) {
	r.guests.mu.Lock()
	defer r.guests.mu.Unlock()
	if r.guests.known != nil && r.clock.Now().Sub(r.guests.askedAt) < guestAge {
		return r.guests.known, nil
	}
	info, err := r.Admin().Info(ctx)
	if err != nil {
		return nil, err
	}
	who, err := r.Admin().Whoami(ctx)
	if err != nil {
		return nil, err
	}
	g := &guest{limits: base.DefaultLimits()}
	if g.namespace, err = r.homeOf(who); err != nil {
		return nil, err
	}
	if most, ok := info.Limits["max_payload_bytes"]; ok {
		g.limits.MaxPayload = int(most)
	}
	g.caller = engine.Caller{Principal: who.Principal, Actor: actorClient, Namespaces: []string{g.namespace}}
	if g.store, err = guestOf(info.Store); err != nil {
		return nil, err
	}
	r.guests.known, r.guests.askedAt = g, r.clock.Now()
	return g, nil
}

func (g *guests) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.known = nil
}

// guestOf is the way into a store of that kind.
func guestOf(s StoreInfo) (store.Guest, error) {
	installation, named := base.ParseUUID(s.InstallationID)
	log, _ := base.ParseUUID(s.LogID)
	info := store.Info{Kind: s.Kind, Installation: installation, LogID: log}
	switch {
	case !named:
	case s.Kind == "postgres":
		return postgres.NewGuest(info)
	case s.Kind == "sqlite":
		return sqlite.NewGuest(info)
	}
	return nil, newError(base.CodeNotImplemented, "the server's store takes no part in other transactions")
}

// homeOf is the namespace that new work goes to; role_required, namespace_forbidden, namespace_required.
func (r *remote) homeOf(who Identity) (string, error) {
	everywhere := slices.Contains(who.Namespaces, keyring.Everywhere)
	switch home := r.cfg.Namespace; {
	case !slices.Contains(who.Roles, "submit") && !slices.Contains(who.Roles, "admin"):
		return "", newError(base.CodeRoleRequired, "the key may not submit").At("", "use a key with the role submit")
	case home != "" && (everywhere || slices.Contains(who.Namespaces, home)):
		return home, nil
	case home != "":
		return "", newError(base.CodeNamespaceForbidden, "the key has no namespace %q", home)
	case len(who.Namespaces) == 1 && !everywhere:
		return who.Namespaces[0], nil
	default:
		return "", newError(base.CodeNamespaceRequired, "the key is for several namespaces").At("namespace", "set ConnectConfig.Namespace")
	}
}
