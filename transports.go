package flowfabric

import (
	"context"
	"net/http"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/principal"
	"github.com/flowfabric/flowfabric/internal/service"
	"github.com/flowfabric/flowfabric/internal/transport"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// Do does an operation on the engine in this process, for the principal of the context, else for the one that the client was opened for.
func (e *embedded) Do(ctx context.Context, op *wire.Operation, request, answer any, how transport.Options) error {
	return publicError(e.service.Do(ctx, e.serviceCaller(ctx, op, how), op, request, answer))
}

// serviceCaller is for whom an operation is done. A command that brings no key gets one, for its repeats; commands under leases have their
// own.
func (e *embedded) serviceCaller(ctx context.Context, op *wire.Operation, how transport.Options) service.Caller {
	if how.Key == "" && op.Method != http.MethodGet && op != wire.DoWork.Operation {
		how.Key = e.mintKey()
	}
	return e.callerWith(ctx, how)
}

// callerWith is for whom an operation is done that needs no key but the one that it brings.
func (e *embedded) callerWith(ctx context.Context, how transport.Options) service.Caller {
	c := service.Caller{Key: how.Key, AsWorker: how.AsWorker, Chosen: how.Namespace, Again: how.Again}
	if p, ok := principal.From(ctx); ok {
		c.Principal = p
		return c
	}
	c.Principal = principal.Principal{Name: e.principal, Namespace: e.namespace, Namespaces: e.namespaces, Operator: true}
	c.Owner = true
	return c
}

// Do does an operation at the server. What only the process can do that has the store is not_implemented.
func (r *remote) Do(ctx context.Context, op *wire.Operation, request, answer any, how transport.Options) error {
	if op.Local != "" {
		return newError(base.CodeNotImplemented, "%s is not part of the HTTP API", op.Local).At("", "use a client of Open on the store")
	}
	if into, ok := answer.(*wire.Sink); ok {
		return r.stream(ctx, op, request, into)
	}
	if commands, ok := request.(*wire.WorkBatch); ok {
		*answer.(*[]WorkAnswer) = r.doWork(ctx, commands.Items)
		return nil
	}
	if result, ok := answer.(*api.SubmitResult); ok && op == wire.SubmitExecution.Operation {
		return r.submitOne(ctx, request.(*wire.SubmitRequest), result, how)
	}
	if exact, ok := request.(interface{ AskForBytes() }); ok {
		exact.AskForBytes()
	}
	asked, during := r.clock.Now(), ctx
	if op == wire.ClaimWork.Operation || op == wire.GrantWork.Operation {
		staying, leave := r.stay(ctx)
		defer leave()
		during = staying
	}
	err := r.exchange(during, op, request, answer, sending{key: how.Key, wait: how.Wait, namespace: how.Namespace, repeat: how.Again})
	if err == nil && waitsOn(answer) {
		r.rest(ctx, asked, how.Wait)
	}
	return err
}

// waitsOn reports whether an answer says that what a call was to wait for has not happened.
func waitsOn(answer any) bool {
	switch a := answer.(type) {
	case *api.EventPage:
		return len(a.Events) == 0
	case *api.ClaimAnswer:
		return len(a.Tasks) == 0 && !a.Drain
	case *wire.Grants:
		return len(a.Grants) == 0
	case *api.Execution:
		return !a.Status.Terminal()
	case *api.BulkJob:
		return a.State == jobRuns
	case *api.FlowView:
		return !a.State.Terminal()
	case *api.FlowCancelProgress:
		return a.Remaining > 0
	default:
		return false
	}
}

// value is the answer of a call by value; zero with an error.
func value[T any](answer *T, err error) (T, error) {
	if err != nil {
		var none T
		return none, err
	}
	return *answer, nil
}
