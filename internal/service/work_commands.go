package service

import (
	"cmp"
	"context"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// workCommands are the commands under leases. Their repeats are recognised by the fence (L117).
func (s *Service) workCommands() {
	on(s, wire.RenewLease, s.renew)
	on(s, wire.ReportProgress, s.progress)
	on(s, wire.CompleteExecution, s.complete)
	on(s, wire.FailExecution, s.fail)
	on(s, wire.ReleaseExecution, s.release)
	on(s, wire.DelayExecution, s.delay)
	on(s, wire.PutStep, s.putStep)
	on(s, wire.ReportUsage, s.reportUsage)
}

// renew renews a lease (U66).
func (s *Service) renew(ctx context.Context, c Caller, r *wire.RenewRequest) (wire.Renewed, error) {
	id, fence, err := fenced(r.FencedByID, r.Body.LeaseField)
	if err != nil {
		return wire.Renewed{}, err
	}
	items, err := s.engine.Renew(ctx, c.worker(), []engine.LeaseRef{{ID: id, Fence: fence, TTL: r.Body.TTLMS}})
	if err != nil {
		return wire.Renewed{}, err
	}
	if err := items[0].Err; err != nil {
		return wire.Renewed{}, err
	}
	renewal := renewalOf(items[0])
	return wire.Renewed{Lease: renewal, Drain: renewal.Drain}, nil
}

// progress reports the progress of the work (U67). An empty message leaves the stored one unchanged.
func (s *Service) progress(ctx context.Context, c Caller, r *wire.ProgressRequest) (wire.Progressed, error) {
	id, fence, err := fenced(r.FencedByID, r.Body.LeaseField)
	if err != nil {
		return wire.Progressed{}, err
	}
	message := r.Body.Message
	if message != nil && *message == "" {
		message = nil
	}
	return wire.Progressed{}, s.engine.Progress(ctx, c.worker(), id, fence, r.Body.Percent, message)
}

// complete ends an execution with success (U68).
func (s *Service) complete(ctx context.Context, c Caller, r *wire.CompleteRequest) (wire.Completed, error) {
	if r.Body.Override {
		return s.completeOverride(ctx, c, r)
	}
	if err := checkNoOverride(r.Body.OverrideFields); err != nil {
		return wire.Completed{}, err
	}
	id, fence, err := fenced(r.FencedByID, r.Body.LeaseField)
	if err != nil {
		return wire.Completed{}, err
	}
	a, err := s.engine.CompleteWith(ctx, c.worker(), id, core.Completion{Fence: fence, Result: payloadGiven(r.Result()), Usage: r.Body.Usage})
	return completedOf(a), err
}

func completedOf(a core.CompleteAnswer) wire.Completed {
	return wire.Completed{Status: a.Status.String(), Late: a.Late}
}

// completeOverride is an operator's complete (L37).
func (s *Service) completeOverride(ctx context.Context, c Caller, r *wire.CompleteRequest) (wire.Completed, error) {
	id, op, err := c.override(r.FencedByID, r.Body.LeaseField, r.Body.OverrideFields, r.Body.Usage)
	if err != nil {
		return wire.Completed{}, err
	}
	a, err := s.engine.CompleteOverride(ctx, c.operator(), id, payloadGiven(r.Result()), op)
	return wire.Completed{Status: a.Status.String()}, err
}

// checkNoOverride refuses fields that only an override has.
func checkNoOverride(f wire.OverrideFields) error {
	if f.Reason != "" {
		return base.Errorf(base.CodeUnknownField, "this field goes with override").WithField("reason")
	}
	return nil
}

// override converts what is common to operators' commands without a lease (L37). An override has no fence that identifies a
// repeat, so it needs a request key. A lease would be ignored, and so would usage, which only the worker can report.
func (c *Caller) override(r wire.FencedByID, body wire.LeaseField, f wire.OverrideFields, usage map[string]int64) (base.GivenID, engine.Operator, error) {
	if _, err := wire.PickLease(body.Lease, r.LeaseHeader); err != nil {
		return base.GivenID{}, engine.Operator{}, api.FaultsError(err)
	}
	id, err := base.ParseID(r.ID)
	switch {
	case err != nil:
	case !c.Operator:
		err = base.Errorf(base.CodeRoleRequired, "only an operator ends the work of others").
			WithField("override").WithHint("use a key with the role operate, or send the lease of the execution")
	case !body.Lease.IsZero():
		err = base.Invalid("lease", "override is given too")
	case !r.LeaseHeader.IsZero():
		err = base.Invalid("header.FlowFabric-Lease", "override is given too")
	case len(usage) > 0:
		err = base.Errorf(base.CodeInvalidArgument, "override is given too").WithField("usage").WithHint("charge the budget")
	}
	if err != nil {
		return id, engine.Operator{}, err
	}
	return id, engine.Operator{Reason: f.Reason, RequestKey: cmp.Or(c.RequestKey, c.Key)}, nil
}

// fail reports that an attempt failed (U69).
func (s *Service) fail(ctx context.Context, c Caller, r *wire.FailRequest) (wire.Failed, error) {
	b := &r.Body
	if b.Override {
		id, op, err := c.override(r.FencedByID, b.LeaseField, b.OverrideFields, b.Usage)
		if err != nil {
			return wire.Failed{}, err
		}
		if b.DefaultPolicy != nil {
			return wire.Failed{}, base.Invalid("default_policy", "it is that of a worker, and an override has none")
		}
		a, err := s.engine.FailOverride(ctx, c.operator(), id, failureGiven(core.Fence{}, r), op)
		return failedOf(a), err
	}
	if err := checkNoOverride(b.OverrideFields); err != nil {
		return wire.Failed{}, err
	}
	id, fence, err := fenced(r.FencedByID, b.LeaseField)
	if err != nil {
		return wire.Failed{}, err
	}
	cmd := failureGiven(fence, r)
	if cmd.Default, err = defaultRetryOf(b.DefaultPolicy); err != nil {
		return wire.Failed{}, err
	}
	a, err := s.engine.Fail(ctx, c.worker(), id, cmd)
	return failedOf(a), err
}

func failureGiven(fence core.Fence, r *wire.FailRequest) core.FailCommand {
	b := &r.Body
	cmd := core.FailCommand{
		Fence: fence, Class: b.Class, Category: b.Category, Message: b.Message, Detail: b.Detail.Data, DetailType: b.Detail.ContentType,
		RetryAfter: b.RetryAfterMS, Usage: b.Usage,
	}
	if cmd.Detail == nil && cmd.DetailType != "" { // empty is not the same as absent
		cmd.Detail = []byte{}
	}
	return cmd
}

func failedOf(a core.FailAnswer) wire.Failed {
	return wire.Failed{Outcome: a.Outcome, RetryAt: wire.TimeOf(a.RetryAt.Std()), Reason: ReasonText(a.Reason), Late: a.Late}
}

// release hands the work back (U70).
func (s *Service) release(ctx context.Context, c Caller, r *wire.ReleaseRequest) (wire.Left, error) {
	id, fence, err := fenced(r.FencedByID, r.Body.LeaseField)
	if err != nil {
		return wire.Left{}, err
	}
	a, err := s.engine.Release(ctx, c.worker(), id, fence, r.Body.Reason)
	return leftOf(a), err
}

// delay hands the work back until a given time (U70).
func (s *Service) delay(ctx context.Context, c Caller, r *wire.DelayRequest) (wire.Left, error) {
	b := &r.Body
	id, fence, err := fenced(r.FencedByID, b.LeaseField)
	switch {
	case err != nil:
		return wire.Left{}, err
	case b.DelayMS == nil && b.Until.IsZero():
		return wire.Left{}, base.Errorf(base.CodeMissingField, "say for how long").WithField("until").WithHint("set `delay_ms` or `until`")
	}
	a, err := s.engine.DelayWith(ctx, c.worker(), id, core.DelayCommand{Fence: fence, Until: base.TimeOf(b.Until.Time), Usage: b.Usage}, b.DelayMS)
	return leftOf(a), err
}

func leftOf(a core.LeaveAnswer) wire.Left {
	return wire.Left{Status: a.Status.String(), Reason: ReasonText(a.Reason), Late: a.Late}
}

// putStep stores the result of a step; the first write wins (U76).
func (s *Service) putStep(ctx context.Context, c Caller, r *wire.PutStepRequest) (wire.StepAnswer, error) {
	id, fence, err := fenced(r.FencedByID, r.Body.LeaseField)
	if err != nil {
		return wire.StepAnswer{}, err
	}
	a, err := s.engine.PutStep(ctx, c.worker(), id, fence, r.Name, CorePayload(r.Result()))
	if err != nil {
		return wire.StepAnswer{}, err
	}
	return wire.StepAnswer{Outcome: a.Outcome, StepRecord: StepOf(a.Record)}, nil
}

// reportUsage reports usage (U74). A report without a key of its own is identified by that of its request, and its repeat returns
// the first answer (U13).
func (s *Service) reportUsage(ctx context.Context, c Caller, r *wire.ReportUsageRequest) (api.UsageReceipt, error) {
	id, fence, err := fenced(r.FencedByID, r.Body.LeaseField)
	if err != nil {
		return api.UsageReceipt{}, err
	}
	u := &r.Body.Usage
	outcome, err := s.engine.ReportUsage(ctx, c.worker(), id, engine.UsageRequest{
		Fence: fence, Usage: u.Amounts, DedupKey: cmp.Or(u.DedupKey, c.once()), AlreadySpent: u.AlreadySpent,
	})
	if err != nil {
		return api.UsageReceipt{}, ofRequestKey(err, "dedup_key", u.DedupKey)
	}
	receipt := UsageReceipt(outcome)
	if u.DedupKey == "" {
		receipt = receipt.First()
	}
	return receipt, nil
}
