package flowfabric

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/service"
	"github.com/flowfabric/flowfabric/internal/store"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// embedded is the Client whose engine runs in this process.
type embedded struct {
	engine  *engine.Engine
	service *service.Service
	store   store.Store
	clock   clock.Clock
	tracer  Tracer // nil: no spans
	file    string // of the store; "": it has none
	cfg     OpenConfig

	// For whom calls are made whose context names no principal.
	principal  string
	namespace  string
	namespaces []string

	closing  sync.Once
	closed   atomic.Bool // Close has begun
	closeErr error
}

func newEmbedded(e *engine.Engine, st store.Store, host clock.Clock, cfg OpenConfig) *embedded {
	client := &embedded{
		engine: e, store: st, clock: host, tracer: cfg.Tracer, cfg: cfg, principal: cfg.Principal, namespace: cfg.Namespace, namespaces: []string{cfg.Namespace},
	}
	_, canCopy := st.(store.Backuper)
	_, canJoin := st.(store.TxSubmitter)
	client.service = service.New(e, host, service.Config{
		KeyGrace: cfg.keyGrace(), Settings: settingsOf(cfg, e), Features: map[string]bool{"backup": canCopy, "transactional_submit": canJoin}, Checks: client.checkFiles, Closed: client.closed.Load,
		PublicURL: cfg.PublicURL, Trace: client.traceOf,
	})
	return client
}

func (e *embedded) Executions() Executions { return Executions{e} }
func (e *embedded) Flows() Flows           { return Flows{e, e.clock} }
func (e *embedded) Operate() Operate       { return Operate{e} }
func (e *embedded) Waitpoints() Waitpoints { return Waitpoints{e} }
func (e *embedded) Events() Events         { return Events{e, e.clock} }
func (e *embedded) Quotas() Quotas         { return Quotas{e} }
func (e *embedded) Lanes() Lanes           { return Lanes{e} }
func (e *embedded) Workers() Workers       { return Workers{e} }
func (e *embedded) Budgets() Budgets       { return Budgets{e} }
func (e *embedded) Work() Work             { return Work{e} }
func (e *embedded) Admin() Admin           { return Admin{e} }
func (e *embedded) seam() seam {
	return seam{clock: e.clock, tracer: e.tracer, claims: flowingClaims, submitTx: e.submitTx}
}

func (e *embedded) Submit(ctx context.Context, s Submission) (SubmitResult, error) {
	result, _, err := e.submit(ctx, s, e.engine.Submit)
	return result, err
}

// SubmitAndShow submits and shows what was created, as Get would do just after; nil when it was there before. It serves the API, which
// answers with the execution.
func (e *embedded) SubmitAndShow(ctx context.Context, s Submission) (SubmitResult, *Execution, error) {
	result, view, err := e.submit(ctx, s, e.engine.SubmitAndShow)
	if err != nil || view == nil {
		return result, nil, err
	}
	created := service.FullExecutionOf(*view)
	if created.Input.Size() > service.InlinePayload {
		created.Input = api.Unloaded(created.Input.ContentType, created.Input.Size())
	}
	return result, created, nil
}

// submit submits in one of the engine's ways, and shows what was created if that way does.
func (e *embedded) submit(
	ctx context.Context, s Submission, by func(context.Context, engine.Caller, core.Submission) (engine.SubmitAnswer, error),
) (SubmitResult, *engine.View, error) {
	home, err := e.home(ctx)
	if err != nil {
		return SubmitResult{}, nil, err
	}
	minted, derived := s.ID == "", false
	if minted {
		if s.ID, derived, err = e.submitID(ctx, home, 0); err != nil {
			return SubmitResult{}, nil, err
		}
	}
	sub, err := s.core(home)
	if err != nil {
		return SubmitResult{}, nil, err
	}
	sub.Trace = e.traceOf(ctx)
	tries := 0
	answer, err := untilKnown(ctx, e.clock, func() (engine.SubmitAnswer, error) {
		tries++
		return by(ctx, e.submitter(ctx, derived, tries), sub)
	})
	if err != nil {
		return SubmitResult{}, nil, sameRequest(s.asGiven(err), derived)
	}
	result := submitResultOf(answer)
	if minted && (tries > 1 || derived) && answer.ID.UUID == sub.ID.UUID {
		if derived && result.Duplicate && tries == 1 {
			e.asClient(ctx).Again()
		}
		result.Duplicate = false // a try whose answer was lost had created it
	}
	return result, answer.Created, nil
}

func (e *embedded) SubmitMany(ctx context.Context, all []Submission, o ...SubmitManyOptions) ([]SubmitResult, error) {
	options, err := single(o)
	if err != nil {
		return nil, err
	}
	results := make([]SubmitResult, len(all))
	subs := make([]core.Submission, 0, len(all))
	places := make([]int, 0, len(all)) // of subs in all
	minted := make(map[core.UUID]bool, len(all))
	home, err := e.home(ctx)
	if err != nil {
		return nil, err
	}
	derived, trace := false, e.traceOf(ctx)
	for i, s := range all {
		mint := s.ID == ""
		if mint {
			if s.ID, derived, err = e.submitID(ctx, home, i); err != nil {
				return nil, err
			}
		}
		sub, err := s.core(home)
		if err != nil && options.Atomic {
			return nil, atIndex(err, i)
		}
		if err != nil {
			results[i].Err = err
			continue
		}
		if mint {
			minted[sub.ID.UUID] = true
		}
		sub.Trace = trace
		subs, places = append(subs, sub), append(places, i)
	}
	if len(subs) == 0 {
		return results, nil
	}
	tries := 0
	items, err := untilKnown(ctx, e.clock, func() ([]engine.SubmitItem, error) {
		tries++
		return e.submitOnce(ctx, e.submitter(ctx, derived, tries), subs, options.Atomic)
	})
	if err != nil {
		return nil, sameRequest(asGivenOf(err, all, places), derived && refusedUnnamed(err, all, places))
	}
	fresh := 0
	for i, item := range items {
		result := submitResultOf(item.SubmitAnswer)
		if item.Err != nil || !result.Duplicate || !derived || !minted[item.ID.UUID] {
			fresh++
		}
		if result.Err = sameRequest(all[places[i]].asGiven(publicError(item.Err)), derived && all[places[i]].ID == ""); item.Err != nil {
			result.ID = all[places[i]].ID
		} else if (tries > 1 || derived) && minted[item.ID.UUID] {
			result.Duplicate = false
		}
		results[places[i]] = result
	}
	if fresh == 0 && tries == 1 {
		e.asClient(ctx).Again()
	}
	return results, nil
}

// refusedUnnamed reports whether the refusal of all is that of a submission that brought no id.
func refusedUnnamed(err error, all []Submission, places []int) bool {
	s := refusedOf(err, all, places)
	return s != nil && s.ID == ""
}

// asGivenOf is asGiven for the submission whose refusal is that of all.
func asGivenOf(err error, all []Submission, places []int) error {
	if s := refusedOf(err, all, places); s != nil {
		return s.asGiven(err)
	}
	return err
}

// refusedOf returns the submission whose refusal is that of all, nil if it is that of none.
func refusedOf(err error, all []Submission, places []int) *Submission {
	var refusal *Error
	if !errors.As(err, &refusal) {
		return nil
	}
	index, ok := refusal.Current["index"].(int)
	if !ok || index < 0 || index >= len(places) {
		return nil
	}
	return &all[places[index]]
}

// atIndex names the submission whose refusal is the answer to all (U22).
func atIndex(err error, index int) error {
	var refusal *Error
	if !errors.As(err, &refusal) {
		return err
	}
	named := *refusal
	named.Current = maps.Clone(refusal.Current)
	if named.Current == nil {
		named.Current = map[string]any{}
	}
	named.Current["index"] = index
	return &named
}

// submitOnce reports an item of unknown outcome as the outcome of the whole call, so that all of it is sent again: what was
// created is then a duplicate of itself (L86).
func (e *embedded) submitOnce(ctx context.Context, c engine.Caller, subs []core.Submission, atomic bool) ([]engine.SubmitItem, error) {
	items, err := e.engine.SubmitMany(ctx, c, subs, atomic)
	if err != nil {
		return nil, err
	}
	for _, item := range items {
		if core.CodeOf(item.Err) == core.CodeTimeout {
			return nil, item.Err
		}
	}
	return items, nil
}

func submitResultOf(a engine.SubmitAnswer) SubmitResult {
	return SubmitResult{ID: idOf(a.ID), Duplicate: a.Outcome == "duplicate", PublicState: a.PublicState, Priority: a.Priority}
}

func (e *embedded) Get(ctx context.Context, id ID) (*Execution, error) {
	return executionVia(ctx, e, id, wire.ViewFull, 0)
}

// Outline is Get without payloads, for servers that decide who may do what: it asks the store once.
func (e *embedded) Outline(ctx context.Context, id ID) (*Execution, error) {
	return executionVia(ctx, e, id, wire.ViewSummary, 0)
}

// waitPiece is how long one wait lies with the engine; the client asks again until its caller gives up.
const waitPiece = time.Minute

func (e *embedded) Wait(ctx context.Context, id ID) (*Execution, error) {
	for {
		x, err := executionVia(ctx, e, id, wire.ViewFull, waitPiece)
		switch {
		case ctx.Err() != nil:
			return nil, fmt.Errorf("flowfabric: waiting for %s: %w", id, context.Cause(ctx))
		case err != nil || x.Status.Terminal():
			return x, err
		case e.closed.Load():
			return nil, e.shuttingDown()
		}
	}
}

func (e *embedded) Cancel(ctx context.Context, id ID, reason string, o ...CancelOptions) (*Execution, error) {
	return cancelVia(ctx, e, id, reason, o)
}

func (e *embedded) Signal(ctx context.Context, s Signal) (SignalReceipt, error) {
	return signalVia(ctx, e, s)
}

func (e *embedded) Nudge(ctx context.Context, lanes ...string) error {
	return nudgeVia(ctx, e, lanes)
}

// Close stops the engine, then the store. Later calls answer as the first did.
func (e *embedded) Close(ctx context.Context) error {
	e.closing.Do(func() {
		e.closed.Store(true)
		if err := e.engine.Close(ctx); err != nil {
			e.closeErr = publicError(err)
		}
		if err := e.store.Close(); err != nil {
			e.closeErr = errors.Join(e.closeErr, publicError(err))
		}
	})
	return e.closeErr
}

// shuttingDown is the answer to calls that wait for what will not happen here any more.
func (e *embedded) shuttingDown() error {
	return newError(core.CodeShuttingDown, "the client is closed")
}

// mintID makes an id before the first try (L86).
func (e *embedded) mintID() ID { return ID(core.IDOf(mintUUID(e.clock)).String()) }

// mintKey makes a request key.
func (e *embedded) mintKey() string { return mintUUID(e.clock).String() }

func mintUUID(c clock.Clock) core.UUID {
	var random [10]byte
	rand.Read(random[:]) // never fails (crypto/rand)
	return new(core.Minter).Mint(c.Now(), random)
}
