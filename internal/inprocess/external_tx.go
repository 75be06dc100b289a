package inprocess

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/mint"
	"github.com/flowfabric/flowfabric/internal/service"
	"github.com/flowfabric/flowfabric/internal/store"
	"github.com/flowfabric/flowfabric/internal/transport"
)

// The actor types of clients (E24).
const (
	actorClient = "client"
	actorWorker = "worker"
)

// ExternalTxs give access to stores that are open in another process, by the kind of the store.
type ExternalTxs map[string]func(store.Info) (store.ExternalTx, error)

// SubmitTx writes a submission to the store in the caller's own transaction: the store of the engine in this process, or that of
// the client's server.
func SubmitTx(ctx context.Context, c *flowfabric.Client, tx any, s flowfabric.Submission, into ExternalTxs) (*flowfabric.Execution, error) {
	if here, ok := Of(c); ok {
		return here.SubmitTx(ctx, tx, s)
	}
	v, err := newVisit(c, into)
	if err != nil {
		return nil, err
	}
	return v.submit(ctx, tx, s)
}

// LeaveTx returns what leaves commands of workers in the caller's own transaction, on the store of the engine in this process or that
// of the client's server.
func LeaveTx(tx any, into ExternalTxs) transport.LeaveTx {
	return func(ctx context.Context, via transport.Connection, item api.WorkItem, look bool) (api.WorkAnswer, error) {
		c := flowfabric.NewClient(via)
		if here, ok := Of(c); ok {
			return here.leaveTx(ctx, tx, &item, look)
		}
		v, err := newVisit(c, into)
		if err != nil {
			return api.WorkAnswer{}, err
		}
		return v.leave(ctx, tx, &item, look)
	}
}

func newVisit(c *flowfabric.Client, into ExternalTxs) (*visit, error) {
	at, ok := c.Connection().Transport.(server)
	if !ok {
		return nil, refuse(base.CodeNotImplemented, "the client takes no part in other transactions")
	}
	known := at.Keep(func() any { return new(serverStores) }).(*serverStores)
	return &visit{client: c, at: at, known: known, into: into, clock: c.Connection().Clock}, nil
}

// server is the transport of a client that Connect made.
type server interface {
	Namespace() string // that it was set up with
	Keep(make func() any) any
}

// visit is a call inside a transaction, by a client of a server.
type visit struct {
	client *flowfabric.Client
	at     server
	known  *serverStores
	into   ExternalTxs
	clock  clock.Clock
}

// refuse makes an error of that code; %w keeps the cause.
func refuse(code base.Code, format string, args ...any) *api.Error {
	return api.Errorf(string(code), format, args...)
}

// serverStores caches what transactional submits need to know about the server: its store, its limits, and the identity of this client.
type serverStores struct {
	mu      sync.Mutex
	known   *serverStore
	askedAt time.Time
}

type serverStore struct {
	store     store.ExternalTx
	limits    base.Limits
	caller    engine.Caller // of submits
	holder    engine.Caller // of commands under leases
	namespace string
	homeless  error // why it has no namespace for submits; nil: it has
}

// serverStoreAge is how long answers of the server are cached: keys and stores change rarely.
const serverStoreAge = time.Minute

// submit writes the submission in the caller's transaction on the store's own database. The server returns the identity of this
// client and the identity of the database, but does not see the submission until it is committed.
func (v *visit) submit(ctx context.Context, tx any, s flowfabric.Submission) (*flowfabric.Execution, error) {
	if s.ID == "" {
		s.ID = mint.ID(v.clock)
	}
	g, err := v.serverStore(ctx)
	if err != nil {
		return nil, err
	}
	if g.homeless != nil {
		v.known.forget() // the key may get what it lacks
		return nil, g.homeless
	}
	if err := s.Check(); err != nil {
		return nil, err
	}
	sub, err := service.CoreSubmission(&s, g.namespace)
	if err != nil {
		return nil, api.AsError(err)
	}
	answer, filed, err := engine.SubmitInTx(ctx, g.store, g.caller, g.limits, tx, sub)
	switch {
	case err != nil:
		if base.CodeOf(err) == base.CodeWrongDatabase {
			v.known.forget() // the server may have moved
		}
		return nil, api.AsError(service.SubmissionAsGiven(err, &s))
	case filed:
		return v.filed(ctx, g, answer, sub)
	}
	return service.TxExecution(answer, &sub), nil
}

// leave leaves a command of a worker in the caller's transaction. What it may do follows from the lease, which only its holder knows.
func (v *visit) leave(ctx context.Context, tx any, item *api.WorkItem, look bool) (api.WorkAnswer, error) {
	g, err := v.serverStore(ctx)
	if err != nil {
		return api.WorkAnswer{}, err
	}
	o, err := service.OutcomeOf(item, look)
	if err != nil {
		return api.WorkAnswer{}, api.AsError(err)
	}
	answer, err := engine.LeaveInTx(ctx, g.store, g.holder, g.limits, tx, o)
	if base.CodeOf(err) == base.CodeWrongDatabase {
		v.known.forget() // the server may have moved
	}
	return service.OutcomeAnswer(answer), api.AsError(err)
}

// filed returns the execution that has the key or the id already, read from the server.
func (v *visit) filed(ctx context.Context, g *serverStore, answer engine.TxAnswer, sub core.Submission) (*flowfabric.Execution, error) {
	x, err := v.client.Get(ctx, flowfabric.ID(answer.ID.String()))
	switch {
	case errors.Is(err, flowfabric.ErrNotFound):
		return service.TxExecution(answer, &sub), nil
	case err != nil:
		return nil, err
	case sub.ID.UUID != answer.ID.UUID: // found by its key, and the fingerprint was compared
		return x, nil
	}
	input := x.Input
	if input.Omitted() {
		if input, err = v.client.Executions().Input(ctx, x.ID); err != nil {
			return nil, err
		}
	}
	known := core.Submission{Namespace: x.Namespace, Kind: x.Kind, Lane: x.Lane, Input: service.CorePayload(input), PolicyJSON: x.Policy}
	if sub.ID.Full && int(sub.ID.N) != x.Partition || x.Namespace != sub.Namespace || !engine.SameWorkAs(known, x.RetryOrigin, sub) {
		return nil, refuse(base.CodeIDConflict, "the id belongs to other work").At("execution_id", "leave it out: the client mints one")
	}
	return x, nil
}

// serverStore returns the cached answers of the server, or asks it again.
func (v *visit) serverStore(ctx context.Context) (*serverStore, error) {
	v.known.mu.Lock()
	defer v.known.mu.Unlock()
	if v.known.known != nil && v.clock.Now().Sub(v.known.askedAt) < serverStoreAge {
		return v.known.known, nil
	}
	info, err := v.client.Admin().Info(ctx)
	if err != nil {
		return nil, err
	}
	who, err := v.client.Admin().Whoami(ctx)
	if err != nil {
		return nil, err
	}
	g := &serverStore{limits: base.DefaultLimits()}
	g.namespace, g.homeless = v.homeOf(who)
	if most, ok := info.Limits["max_payload_bytes"]; ok {
		g.limits.MaxPayload = int(most)
	}
	g.caller = engine.Caller{Principal: who.Principal, Actor: actorClient, Namespaces: []string{g.namespace}}
	g.holder = engine.Caller{Principal: who.Principal, Actor: actorWorker, Namespaces: who.Namespaces}
	if slices.Contains(who.Namespaces, keyring.Everywhere) {
		g.holder.Namespaces = nil
	}
	if g.store, err = v.openStore(info.Store); err != nil {
		return nil, err
	}
	v.known.known, v.known.askedAt = g, v.clock.Now()
	return g, nil
}

func (g *serverStores) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.known = nil
}

// openStore returns the access to a store of that kind; wrong_database if the transaction is for another kind.
func (v *visit) openStore(s api.StoreInfo) (store.ExternalTx, error) {
	installation, named := base.ParseUUID(s.InstallationID)
	log, _ := base.ParseUUID(s.LogID)
	enter, may := v.into[s.Kind]
	switch {
	case !named:
		return nil, refuse(base.CodeNotImplemented, "the server's store takes no part in other transactions")
	case !may:
		return nil, refuse(base.CodeWrongDatabase, "the store of the server is of the kind %q, and the transaction is not", s.Kind).
			At("", "use the package of that store")
	}
	return enter(store.Info{Kind: s.Kind, Tables: s.SchemaName, Installation: installation, LogID: log})
}

// homeOf returns the namespace for new work; role_required, namespace_forbidden, namespace_required.
func (v *visit) homeOf(who api.Principal) (string, error) {
	everywhere := slices.Contains(who.Namespaces, keyring.Everywhere)
	switch home := v.at.Namespace(); {
	case !slices.Contains(who.Roles, "submit") && !slices.Contains(who.Roles, "admin"):
		return "", refuse(base.CodeRoleRequired, "the key may not submit").At("", "use a key with the role submit")
	case home != "" && (everywhere || slices.Contains(who.Namespaces, home)):
		return home, nil
	case home != "":
		return "", refuse(base.CodeNamespaceForbidden, "the key has no namespace %q", home)
	case len(who.Namespaces) == 1 && !everywhere:
		return who.Namespaces[0], nil
	default:
		return "", refuse(base.CodeNamespaceRequired, "the key is for several namespaces").At("namespace", "set ConnectConfig.Namespace")
	}
}
