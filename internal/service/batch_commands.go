package service

import (
	"context"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// fencedBy names the execution of a command and its lease.
func fencedBy(i *api.WorkItem) wire.FencedByID {
	if i.Override {
		return wire.FencedByID{ByID: wire.ByID{ID: string(i.ID)}}
	}
	return wire.FencedByID{ByID: wire.ByID{ID: string(i.ID)}, LeaseHeader: wire.FenceOf(&i.Lease)}
}

// command performs one item of a batch as the call for the single command does.
func (s *Service) command(ctx context.Context, c Caller, item *api.WorkItem) (api.WorkAnswer, error) {
	if item.Override && item.Op != api.OpComplete && item.Op != api.OpFail {
		return api.WorkAnswer{}, base.Errorf(base.CodeInvalidArgument, "%q cannot be done without a lease", item.Op).WithField("override").WithHint("complete and fail can")
	}
	switch item.Op {
	case api.OpRenew:
		return s.renewItem(ctx, c, item)
	case api.OpProgress:
		return s.progressItem(ctx, c, item)
	case api.OpComplete:
		return s.completeItem(ctx, c, item)
	case api.OpFail:
		return s.failItem(ctx, c, item)
	case api.OpRelease:
		return s.releaseItem(ctx, c, item)
	case api.OpDelay:
		return s.delayItem(ctx, c, item)
	case api.OpFrames:
		return s.framesItem(ctx, c, item)
	case api.OpUsage:
		return s.usageItem(ctx, c, item)
	case api.OpStep:
		return s.stepItem(ctx, c, item)
	case api.OpSuspend:
		return s.suspendItem(ctx, c, item)
	case api.OpWaitpoint:
		return s.waitpointItem(ctx, c, item)
	case api.OpSpawn:
		return s.spawnItem(ctx, c, item)
	case api.OpWaitChildren:
		return s.waitChildrenItem(ctx, c, item)
	case api.OpCancel:
		view, err := s.cancelLeased(ctx, c, fencedBy(item), wire.LeaseField{}, item.Reason)
		if err != nil {
			return api.WorkAnswer{}, err
		}
		return api.WorkAnswer{Status: api.Status(view.Execution.Status.String())}, nil
	default:
		return api.WorkAnswer{}, wire.NoCommand(item.Op)
	}
}

func (s *Service) renewItem(ctx context.Context, c Caller, item *api.WorkItem) (api.WorkAnswer, error) {
	r := wire.RenewRequest{FencedByID: fencedBy(item)}
	r.Body.TTLMS = millis(item.TTL)
	a, err := s.renew(ctx, c, &r)
	return api.WorkAnswer{Renewal: a.Lease}, err
}

func (s *Service) progressItem(ctx context.Context, c Caller, item *api.WorkItem) (api.WorkAnswer, error) {
	r := wire.ProgressRequest{FencedByID: fencedBy(item)}
	r.Body.Percent, r.Body.Message = item.Percent, wire.Given(item.Message)
	_, err := s.progress(ctx, c, &r)
	return api.WorkAnswer{}, err
}

func (s *Service) completeItem(ctx context.Context, c Caller, item *api.WorkItem) (api.WorkAnswer, error) {
	if err := item.Result.Problem("result"); err != nil {
		return api.WorkAnswer{}, err
	}
	r := wire.CompleteRequest{FencedByID: fencedBy(item)}
	r.Body.Result, r.Body.Usage = item.Result, item.Usage.Amounts
	r.Body.OverrideFields = overrideOf(item)
	a, err := s.complete(ctx, c, &r)
	return api.WorkAnswer{Status: api.Status(a.Status), Late: a.Late}, err
}

func completed(a core.CompleteAnswer) api.WorkAnswer {
	return api.WorkAnswer{Status: api.Status(a.Status.String()), Late: a.Late}
}

// overrideOf takes the reason only of an override: each command uses only its own fields.
func overrideOf(item *api.WorkItem) wire.OverrideFields {
	if !item.Override {
		return wire.OverrideFields{}
	}
	return wire.OverrideFields{Override: true, Reason: item.Reason}
}

func (s *Service) failItem(ctx context.Context, c Caller, item *api.WorkItem) (api.WorkAnswer, error) {
	if err := item.Detail.Problem("detail"); err != nil {
		return api.WorkAnswer{}, err
	}
	r := wire.FailRequest{FencedByID: fencedBy(item)}
	b := &r.Body
	b.Class, b.Category, b.Message, b.Detail = item.Class, item.Category, item.Message, item.Detail
	b.RetryAfterMS, b.DefaultPolicy, b.Usage = wire.Span(item.RetryAfter), item.Default, item.Usage.Amounts
	b.OverrideFields = overrideOf(item)
	a, err := s.fail(ctx, c, &r)
	return api.WorkAnswer{Outcome: a.Outcome, RetryAt: a.RetryAt.Time, Reason: a.Reason, Late: a.Late}, err
}

func (s *Service) releaseItem(ctx context.Context, c Caller, item *api.WorkItem) (api.WorkAnswer, error) {
	r := wire.ReleaseRequest{FencedByID: fencedBy(item)}
	r.Body.Reason = item.Reason
	return gaveBack(s.release(ctx, c, &r))
}

func (s *Service) delayItem(ctx context.Context, c Caller, item *api.WorkItem) (api.WorkAnswer, error) {
	r := wire.DelayRequest{FencedByID: fencedBy(item)}
	r.Body.Usage = item.Usage.Amounts
	if err := r.Body.DelayFields.Set(item); err != nil {
		return api.WorkAnswer{}, err
	}
	return gaveBack(s.delay(ctx, c, &r))
}

func gaveBack(a wire.Left, err error) (api.WorkAnswer, error) {
	return api.WorkAnswer{Status: api.Status(a.Status), Reason: a.Reason, Late: a.Late}, err
}

func (s *Service) usageItem(ctx context.Context, c Caller, item *api.WorkItem) (api.WorkAnswer, error) {
	r := wire.ReportUsageRequest{FencedByID: fencedBy(item)}
	r.Body.Usage = item.Usage
	receipt, err := s.reportUsage(ctx, c, &r)
	return api.WorkAnswer{Usage: &receipt}, err
}

func (s *Service) framesItem(ctx context.Context, c Caller, item *api.WorkItem) (api.WorkAnswer, error) {
	r := wire.AppendFramesRequest{FencedByID: fencedBy(item)}
	r.Body.Frames, r.Body.ClientSeq = item.Frames, item.ClientSeq
	receipt, err := s.appendFrames(ctx, c, &r)
	return api.WorkAnswer{Frames: &receipt}, err
}

func (s *Service) stepItem(ctx context.Context, c Caller, item *api.WorkItem) (api.WorkAnswer, error) {
	if err := item.Result.Problem("result"); err != nil {
		return api.WorkAnswer{}, err
	}
	r := wire.PutStepRequest{FencedByID: fencedBy(item), Name: item.Step}
	r.Body.Result = item.Result
	a, err := s.putStep(ctx, c, &r)
	return api.WorkAnswer{Outcome: a.Outcome, Step: &a.StepRecord}, err
}

func (s *Service) suspendItem(ctx context.Context, c Caller, item *api.WorkItem) (api.WorkAnswer, error) {
	wait := item.Suspension
	if wait == nil {
		return api.WorkAnswer{}, wire.NoSuspensionGiven()
	}
	if err := wait.Continuation.Problem("continuation"); err != nil {
		return api.WorkAnswer{}, err
	}
	r := wire.SuspendRequest{FencedByID: fencedBy(item)}
	b := &r.Body
	b.ResumeCondition, b.SuspendFields, b.IdempotencyKey, b.Usage = wait.Until, wire.SuspendFieldsOf(wait), wait.Key, item.Usage.Amounts
	return s.suspendNow(ctx, c, &r)
}

func (s *Service) waitpointItem(ctx context.Context, c Caller, item *api.WorkItem) (api.WorkAnswer, error) {
	fresh := item.Waitpoint
	if fresh == nil {
		return api.WorkAnswer{}, wire.NoWaitpointGiven()
	}
	r := wire.CreateWaitpointRequest{FencedByID: fencedBy(item)}
	r.Body.WaitpointKey, r.Body.ExpiryFields, r.Body.IdempotencyKey = fresh.Key, wire.ExpiryFieldsOf(fresh), fresh.IdempotencyKey
	made, err := s.createWaitpoint(ctx, c, &r)
	return api.WorkAnswer{Waitpoints: []api.Waitpoint{made.Concealed()}}, err
}

func (s *Service) spawnItem(ctx context.Context, c Caller, item *api.WorkItem) (api.WorkAnswer, error) {
	if item.Spawn == nil {
		return api.WorkAnswer{}, wire.NothingToSpawn()
	}
	r := wire.SpawnRequest{FencedByID: fencedBy(item)}
	r.Body.Children, r.Body.SpawnFields = item.Spawn.Children, wire.SpawnFieldsOf(item)
	spawned, err := s.spawn(ctx, c, &r)
	if err != nil {
		return api.WorkAnswer{}, err
	}
	return waiting(api.WorkAnswer{Spawned: &spawned}, spawned.Wait), nil
}

func (s *Service) waitChildrenItem(ctx context.Context, c Caller, item *api.WorkItem) (api.WorkAnswer, error) {
	r := wire.WaitChildrenRequest{FencedByID: fencedBy(item)}
	r.Body.ChildrenWait = wire.ChildrenWaitOf(item)
	waited, err := s.waitForChildren(ctx, c, &r)
	return waiting(api.WorkAnswer{}, &waited), err
}

// waiting adds the state of a wait for children, if there is one.
func waiting(a api.WorkAnswer, w *api.ChildrenWaited) api.WorkAnswer {
	if w == nil {
		return a
	}
	if a.Outcome = w.Outcome; w.Outcome == api.ChildrenReady {
		a.Waited = w
	}
	return a
}
