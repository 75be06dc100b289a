package flowfabric

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/calls"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/metrics"
	"github.com/flowfabric/flowfabric/internal/transport"
)

// HandlerConfig configures one handler.
type HandlerConfig struct {
	// Concurrency bounds the concurrent tasks of this kind; 0: only the bound of the worker applies.
	Concurrency int
	// Timeout bounds one call: the context then ends with context.DeadlineExceeded, and the error that the handler returns fails
	// the attempt with class timeout. 0: only the timeout of the attempt applies.
	Timeout time.Duration
	// Retry says how failed attempts of this kind are retried if the submission does not; nil: WorkerConfig.Retry.
	Retry *RetryPolicy
}

// HandlerFunc is an untyped handler. The zero Payload means no result.
type HandlerFunc func(ctx context.Context, t *Task) (Payload, error)

// Middleware wraps a handler. It can inspect the task, change the context, and observe or change the outcome of the handler.
type Middleware func(next HandlerFunc) HandlerFunc

// handler is a registered handler with the number of its running tasks.
type handler struct {
	kind      string
	do        HandlerFunc
	call      HandlerFunc // the handler, wrapped in the middleware
	cfg       HandlerConfig
	running   atomic.Int64
	byDefault *api.DefaultPolicy // sent with every failure; nil: there is none

	label string                       // of the kind in metrics
	took  map[string]*metrics.Observer // by outcome
}

// Handle registers the handler of a kind. Call it before Run, which reports errors of registration: a kind registered twice, more
// than one option struct, a negative bound.
//
// An input that cannot be decoded into In fails the attempt permanently, with category decode, without a call of do.
func Handle[In, Out any](w *Worker, kind Kind[In, Out], do func(ctx context.Context, t *Task, in In) (Out, error), cfg ...HandlerConfig) {
	w.handle(string(kind), cfg, func(ctx context.Context, t *Task) (Payload, error) {
		in, err := decode[In](t.Input())
		if err != nil {
			return Payload{}, Category(categoryDecode, Permanent(err))
		}
		out, err := do(ctx, t, in)
		if err != nil {
			return Payload{}, err
		}
		return encodeResult(out)
	})
}

func encodeResult(out any) (Payload, error) {
	result := encode(out)
	if err := result.Problem("result"); err != nil {
		return Payload{}, Category(categoryEncode, Permanent(err))
	}
	return result, nil
}

func (w *Worker) handle(kind string, cfgs []HandlerConfig, do HandlerFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	cfg, err := transport.Single(cfgs)
	switch {
	case err != nil:
		w.problems = append(w.problems, err)
	case w.runner != nil:
		w.cfg.Logger.Error("flowfabric: handler registered after Run, and ignored", "kind", kind)
		return
	case cfg.Concurrency < 0 || cfg.Timeout < 0:
		w.problems = append(w.problems, calls.Refuse(base.CodeInvalidArgument, "the bounds of handler %q are negative", kind).At("handlers", "0 means no bound"))
	case w.handlerOf(kind) != nil:
		w.problems = append(w.problems, calls.Refuse(base.CodeInvalidArgument, "kind %q has two handlers", kind).At("handlers", "register one"))
	}
	h := &handler{kind: kind, do: do, cfg: cfg}
	if retry := cmp.Or(cfg.Retry, w.cfg.Retry); retry != nil {
		h.byDefault = &api.DefaultPolicy{Retry: retry}
		if err := retry.Check(); err != nil {
			w.problems = append(w.problems, err)
		}
	}
	h.meter(w.meter)
	w.handlers = append(w.handlers, h)
}

func (w *Worker) handlerOf(kind string) *handler {
	for _, h := range w.handlers {
		if h.kind == kind {
			return h
		}
	}
	return nil
}

// room returns how many more tasks of the kind may run.
func (h *handler) room() int { return h.cfg.Concurrency - int(h.running.Load()) }
