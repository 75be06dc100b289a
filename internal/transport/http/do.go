package httptransport

import (
	"context"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/transport"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// Do performs an operation at the server. Operations that require the process with the store are not_implemented.
func (t *Transport) Do(ctx context.Context, op *wire.Operation, request, answer any, how transport.Options) error {
	if op.Local != "" {
		return refuse(base.CodeNotImplemented, "%s is not part of the HTTP API", op.Local).At("", "use a client of sqlite.Open or postgres.Open on the store")
	}
	if into, ok := answer.(*wire.Sink); ok {
		return t.stream(ctx, op, request, into)
	}
	if commands, ok := request.(*wire.WorkBatch); ok {
		*answer.(*[]api.WorkAnswer) = t.doWork(ctx, commands.Items)
		return nil
	}
	if result, ok := answer.(*api.SubmitResult); ok && op == wire.SubmitExecution.Operation {
		return t.submitOne(ctx, request.(*wire.SubmitRequest), result, how)
	}
	if exact, ok := request.(interface{ AskForBytes() }); ok {
		exact.AskForBytes()
	}
	asked, during := t.clock.Now(), ctx
	if op == wire.ClaimWork.Operation || op == wire.GrantWork.Operation {
		staying, leave := t.stay(ctx)
		defer leave()
		during = staying
	}
	err := t.exchange(during, op, request, answer, sending{key: how.Key, wait: how.Wait, namespace: how.Namespace, repeat: how.Again})
	if err == nil && waitsOn(answer) {
		t.rest(ctx, asked, how.Wait)
	}
	return err
}

// waitsOn reports whether an answer means that the awaited event has not happened.
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

// jobRuns is the state of a bulk job that has not ended.
const jobRuns = "running"
