package flowfabric

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/transport"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// embeddedWork sends commands under leases to the engine in this process.
type embeddedWork struct{ client *embedded }

// do sends one command until its outcome is known.
func (e embeddedWork) do(ctx context.Context, item *WorkItem) WorkAnswer {
	answer, err := e.command(ctx, item)
	answer.Err = err
	return answer
}

// ask does a command under a lease. All of them recognise their repeats by the fence (L117), so that they need no key.
func ask[Req, Ans any](ctx context.Context, e embeddedWork, call wire.Call[Req, Ans], request *Req, how transport.Options) (Ans, error) {
	var answer Ans
	err := e.client.service.Do(ctx, e.client.callerWith(ctx, how), call.Operation, request, &answer)
	return answer, publicError(err)
}

// fencedBy names the execution of a command and its lease.
func (i *WorkItem) fencedBy() wire.FencedByID {
	return wire.FencedByID{ByID: wire.ByID{ID: string(i.ID)}, LeaseHeader: refOf(i.Lease)}
}

func (e embeddedWork) command(ctx context.Context, item *WorkItem) (WorkAnswer, error) {
	if item.Override && item.Op != OpComplete && item.Op != OpFail {
		return WorkAnswer{}, newError(core.CodeInvalidArgument, "%q cannot be done without a lease", item.Op).At("override", "complete and fail can")
	}
	switch item.Op {
	case OpRenew:
		request := &wire.RenewRequest{FencedByID: item.fencedBy()}
		request.Body.TTLMS = millis(item.TTL)
		a, err := ask(ctx, e, wire.RenewLease, request, transport.Options{})
		return WorkAnswer{Renewal: a.Lease}, err
	case OpProgress:
		request := &wire.ProgressRequest{FencedByID: item.fencedBy()}
		request.Body.Percent, request.Body.Message = item.Percent, given(item.Message)
		_, err := ask(ctx, e, wire.ReportProgress, request, transport.Options{})
		return WorkAnswer{}, err
	case OpComplete:
		return e.complete(ctx, item)
	case OpFail:
		return e.fail(ctx, item)
	case OpRelease:
		request := &wire.ReleaseRequest{FencedByID: item.fencedBy()}
		request.Body.Reason = item.Reason
		return left(ask(ctx, e, wire.ReleaseExecution, request, transport.Options{}))
	case OpDelay:
		return e.delay(ctx, item)
	case OpUsage:
		return e.usage(ctx, item)
	case OpStep:
		return e.step(ctx, item)
	case OpSuspend:
		return e.suspend(ctx, item)
	case OpWaitpoint:
		return e.newWaitpoint(ctx, item)
	case OpCancel, OpSpawn, OpWaitChildren:
		return untilKnown(ctx, e.client.clock, func() (WorkAnswer, error) { return e.send(ctx, item) })
	default:
		return WorkAnswer{}, newError(core.CodeInvalidArgument, "%q is not a command", item.Op).At("op", "use one of the Op constants")
	}
}

// overridden is how an operator's command without a lease is done: under a key, as there is no fence to recognise it by (L37).
func (e embeddedWork) overridden(item *WorkItem) transport.Options {
	if item.Override && item.RequestKey == "" {
		return transport.Options{Key: e.client.mintKey()}
	}
	return transport.Options{Key: item.RequestKey}
}

func (e embeddedWork) complete(ctx context.Context, item *WorkItem) (WorkAnswer, error) {
	if err := item.Result.Problem("result"); err != nil {
		return WorkAnswer{}, err
	}
	request := &wire.CompleteRequest{FencedByID: item.fencedBy()}
	request.Body.Result, request.Body.Usage = item.Result, item.Usage.Amounts
	request.Body.Override, request.Body.Reason = item.Override, item.Reason
	a, err := ask(ctx, e, wire.CompleteExecution, request, e.overridden(item))
	return WorkAnswer{Status: Status(a.Status), Late: a.Late}, err
}

func (e embeddedWork) fail(ctx context.Context, item *WorkItem) (WorkAnswer, error) {
	if err := item.Detail.Problem("detail"); err != nil {
		return WorkAnswer{}, err
	}
	request := &wire.FailRequest{FencedByID: item.fencedBy()}
	body := &request.Body
	body.Class, body.Category, body.Message, body.Detail = item.Class, item.Category, item.Message, item.Detail
	body.RetryAfterMS, body.Usage = item.retryAfter(), item.Usage.Amounts
	body.Override, body.OverrideFields.Reason = item.Override, item.Reason
	a, err := ask(ctx, e, wire.FailExecution, request, e.overridden(item))
	return WorkAnswer{Outcome: a.Outcome, RetryAt: a.RetryAt.Time, Reason: a.Reason, Late: a.Late}, err
}

func (e embeddedWork) delay(ctx context.Context, item *WorkItem) (WorkAnswer, error) {
	if !item.Until.IsZero() && item.Delay != 0 {
		return WorkAnswer{}, newError(core.CodeInvalidArgument, "both until and delay are given").At("until", "set Until or Delay")
	}
	request := &wire.DelayRequest{FencedByID: item.fencedBy()}
	request.Body.Usage = item.Usage.Amounts
	var err error
	if request.Body.DelayFields, err = item.delay(); err != nil {
		return WorkAnswer{}, err
	}
	return left(ask(ctx, e, wire.DelayExecution, request, transport.Options{}))
}

func left(a wire.Left, err error) (WorkAnswer, error) {
	return WorkAnswer{Status: Status(a.Status), Reason: a.Reason, Late: a.Late}, err
}

func (e embeddedWork) usage(ctx context.Context, item *WorkItem) (WorkAnswer, error) {
	request := &wire.ReportUsageRequest{FencedByID: item.fencedBy()}
	request.Body.Usage = item.Usage
	var how transport.Options
	if item.Usage.DedupKey == "" {
		how.Key = e.client.mintKey()
	}
	receipt, err := ask(ctx, e, wire.ReportUsage, request, how)
	if err != nil {
		return WorkAnswer{}, err
	}
	return WorkAnswer{Usage: &receipt}, nil
}

func (e embeddedWork) step(ctx context.Context, item *WorkItem) (WorkAnswer, error) {
	if err := item.Result.Problem("result"); err != nil {
		return WorkAnswer{}, err
	}
	request := &wire.PutStepRequest{FencedByID: item.fencedBy(), Name: item.Step}
	request.Body.Result = item.Result
	a, err := ask(ctx, e, wire.PutStep, request, transport.Options{})
	if err != nil {
		return WorkAnswer{}, err
	}
	return WorkAnswer{Outcome: a.Outcome, Step: &a.StepRecord}, nil
}

// send sends a command whose values transports do not carry yet.
func (e embeddedWork) send(ctx context.Context, item *WorkItem) (WorkAnswer, error) {
	id, err := parseID(item.ID)
	if err != nil {
		return WorkAnswer{}, err
	}
	fence, err := fenceOf(item.Lease)
	if err != nil {
		return WorkAnswer{}, err
	}
	switch item.Op {
	case OpSpawn:
		return e.spawn(ctx, id, fence, item)
	case OpWaitChildren:
		return e.waitChildren(ctx, id, fence, item)
	default: // cancel
		view, err := e.client.engine.Cancel(ctx, e.client.asWorker(ctx), id, &fence, "worker", engine.Operator{Reason: item.Reason})
		if err != nil {
			return WorkAnswer{}, err
		}
		return WorkAnswer{Status: Status(view.Execution.Status.String())}, nil
	}
}

// given tells a text that was given from one that was not.
func given(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
