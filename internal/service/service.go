// Package service implements each operation of the table once, on the engine: for a client in the same process and for the
// server. It is the only place that converts between the values of package api and those of core.
package service

import (
	"context"
	"crypto/rand"
	"net/http"
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/backoff"
	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/mint"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// Service performs operations. It is safe for concurrent use.
type Service struct {
	engine   *engine.Engine
	clock    clock.Clock
	cfg      Config
	handlers map[*wire.Operation]handler
}

// Config is what a service needs from the process around the engine.
type Config struct {
	// KeyGrace is how long a replaced secret stays valid unless the call sets it.
	KeyGrace time.Duration
	// Settings are those in force.
	Settings []api.Setting
	// Features are the optional features of the store: backup, transactional_submit.
	Features map[string]bool
	// Checks returns checks of the doctor in addition to those of the engine; may be nil.
	Checks func() []api.Check
	// Closed reports whether the client was closed, which ends waiting calls with an error; nil: it never is.
	Closed func() bool
	// PublicURL prefixes the addresses for people and outside services, without a trailing slash; "": they are paths.
	PublicURL string
	// Trace returns the trace of work that is submitted in a context; nil: none.
	Trace func(ctx context.Context) *base.Trace
}

func (c *Config) trace(ctx context.Context) *base.Trace {
	if c.Trace == nil {
		return nil
	}
	return c.Trace(ctx)
}

// closed returns the error for waits that end because the client was closed; nil while it is open.
func (c *Config) closed() error {
	if c.Closed == nil || !c.Closed() {
		return nil
	}
	return base.Errorf(base.CodeShuttingDown, "the client is closed")
}

// handler performs one operation: it reads a request of the operation's type and fills in an answer of its type.
type handler func(ctx context.Context, c Caller, request, answer any) error

// New returns the service of an engine. host is the clock for pauses before it repeats a command.
func New(e *engine.Engine, host clock.Clock, cfg Config) *Service {
	s := &Service{engine: e, clock: host, cfg: cfg, handlers: map[*wire.Operation]handler{}}
	s.quotas()
	s.lanes()
	s.workers()
	s.budgets()
	s.apiKeys()
	s.namespaces()
	s.signingKeys()
	s.audit()
	s.installation()
	s.events()
	s.streams()
	s.webhooks()
	s.executions()
	s.submissions()
	s.flows()
	s.waits()
	s.waitCommands()
	s.suspends()
	s.operate()
	s.bulk()
	s.work()
	s.workCommands()
	s.children()
	on(s, wire.DoWork, s.doWork)
	s.grants()
	return s
}

// on registers the handler of a call. Only this much is compiled for each of them.
func on[Req, Ans any](s *Service, call wire.Call[Req, Ans], do func(ctx context.Context, c Caller, r *Req) (Ans, error)) {
	s.handlers[call.Operation] = func(ctx context.Context, c Caller, request, answer any) (err error) {
		*answer.(*Ans), err = do(ctx, c, request.(*Req))
		return err
	}
}

// Do performs an operation for a caller. request and answer point to the operation's types. A command of unknown outcome is
// repeated, under the same key, so that its earlier effect is recognised: a command without a key gets one, commands under leases
// have their own. The errors are those of package api.
func (s *Service) Do(ctx context.Context, c Caller, op *wire.Operation, request, answer any) error {
	if c.Key == "" && op.Method != http.MethodGet && op != wire.DoWork.Operation {
		c.Key = mint.Key(s.clock)
	}
	return api.AsError(s.do(ctx, c, op, request, answer))
}

func (s *Service) do(ctx context.Context, c Caller, op *wire.Operation, request, answer any) error {
	do, ok := s.handlers[op]
	if !ok {
		return base.Errorf(base.CodeInternal, "no handler does %s", op.ID)
	}
	if op.Secret {
		rand.Read(c.random[:]) // never fails (crypto/rand)
	}
	if op == wire.SubmitExecutions.Operation {
		c.minted = &mintedIDs{}
	}
	for {
		err := do(ctx, c, request, answer)
		if !s.again(ctx, &c, err) {
			return err
		}
	}
}

// again reports whether a command is to be repeated because its outcome is unknown, and pauses before that.
func (s *Service) again(ctx context.Context, c *Caller, err error) bool {
	if err == nil || base.CodeOf(err) != base.CodeTimeout || c.repeats == backoff.Repeats || !backoff.Pause(ctx, s.clock, backoff.Delay(c.repeats)) {
		return false
	}
	c.repeats++
	return true
}
