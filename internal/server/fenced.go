package server

import (
	"context"
	"net/http"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func (s *Server) serveFenced() {
	handle(s, wire.RenewLease, s.renew)
	handle(s, wire.ReportProgress, s.progress)
	handle(s, wire.CompleteExecution, s.complete)
	handle(s, wire.FailExecution, s.fail)
	handle(s, wire.ReleaseExecution, s.release)
	handle(s, wire.DelayExecution, s.delay)
	handle(s, wire.PutStep, s.putStep)
}

// do sends one command under a lease.
func (s *Server) do(ctx context.Context, item flowfabric.WorkItem) (flowfabric.WorkAnswer, error) {
	answers, err := s.client.Work().Do(ctx, item)
	if err != nil {
		return flowfabric.WorkAnswer{}, err
	}
	return answers[0], answers[0].Err
}

// fenced is the beginning of a command: its execution and its lease (U27).
func fenced(op flowfabric.Op, r wire.FencedByID, body wire.LeaseField) (flowfabric.WorkItem, error) {
	lease, err := wire.PickLease(body.Lease, r.LeaseHeader)
	return flowfabric.WorkItem{Op: op, ID: flowfabric.ID(r.ID), Lease: leaseOf(lease)}, err
}

// renew renews a lease (U66).
func (s *Server) renew(ctx context.Context, r *wire.RenewRequest) (answer, error) {
	item, err := fenced(flowfabric.OpRenew, r.FencedByID, r.Body.LeaseField)
	if err != nil {
		return answer{}, err
	}
	item.TTL = millis(r.Body.TTLMS)
	a, err := s.do(ctx, item)
	return shows(wire.Renewed{
		Lease: wire.Renewal{ExpiresAt: wire.TimeOf(a.Renewal.ExpiresAt), TTLMS: a.Renewal.TTL.Milliseconds()}, Drain: a.Renewal.Drain,
	}), err
}

// progress reports how far the work is (U67).
func (s *Server) progress(ctx context.Context, r *wire.ProgressRequest) (answer, error) {
	item, err := fenced(flowfabric.OpProgress, r.FencedByID, r.Body.LeaseField)
	if err != nil {
		return answer{}, err
	}
	item.Percent = r.Body.Percent
	if r.Body.Message != nil {
		item.Message = *r.Body.Message
	}
	_, err = s.do(ctx, item)
	return shows(wire.Progressed{}), err
}

// complete ends an execution with success (U68).
func (s *Server) complete(ctx context.Context, r *wire.CompleteRequest) (answer, error) {
	item, err := fenced(flowfabric.OpComplete, r.FencedByID, r.Body.LeaseField)
	if err != nil {
		return answer{}, err
	}
	item.Result, item.Override, item.Reason = payloadOf(r.Result()), r.Body.Override, r.Body.Reason
	item.Usage.Amounts = r.Body.Usage
	a, err := s.do(ctx, item)
	return shows(wire.Completed{Status: string(a.Status), Late: a.Late}), err
}

// fail says that an attempt failed (U69).
func (s *Server) fail(ctx context.Context, r *wire.FailRequest) (answer, error) {
	item, err := fenced(flowfabric.OpFail, r.FencedByID, r.Body.LeaseField)
	if err != nil {
		return answer{}, err
	}
	b := r.Body
	item.Class, item.Category, item.Message, item.Detail = b.Class, b.Category, b.Message, payloadOf(b.DetailFields.Payload())
	item.RetryAfter, item.Override, item.Reason = durationOf(b.RetryAfterMS), b.Override, b.OverrideFields.Reason
	item.Usage.Amounts = b.Usage
	a, err := s.do(ctx, item)
	return shows(wire.Failed{Outcome: a.Outcome, RetryAt: wire.TimeOf(a.RetryAt), Reason: a.Reason, Late: a.Late}), err
}

func durationOf(ms *int64) *time.Duration {
	if ms == nil {
		return nil
	}
	d := millis(*ms)
	return &d
}

// release gives the work back (U70).
func (s *Server) release(ctx context.Context, r *wire.ReleaseRequest) (answer, error) {
	item, err := fenced(flowfabric.OpRelease, r.FencedByID, r.Body.LeaseField)
	if err != nil {
		return answer{}, err
	}
	item.Reason = r.Body.Reason
	return s.left(ctx, item)
}

// delay gives the work back until a moment (U70).
func (s *Server) delay(ctx context.Context, r *wire.DelayRequest) (answer, error) {
	item, err := fenced(flowfabric.OpDelay, r.FencedByID, r.Body.LeaseField)
	if err != nil {
		return answer{}, err
	}
	if r.Body.DelayMS == nil && r.Body.Until.IsZero() {
		return answer{}, refuse("missing_field", "say for how long").at("/until").hint("give delay_ms or until")
	}
	delayInto(&item, r.Body.DelayFields)
	item.Usage.Amounts = r.Body.Usage
	return s.left(ctx, item)
}

func delayInto(item *flowfabric.WorkItem, f wire.DelayFields) {
	item.Until = f.Until.Time
	if f.DelayMS != nil {
		item.Delay = millis(*f.DelayMS)
	}
}

func (s *Server) left(ctx context.Context, item flowfabric.WorkItem) (answer, error) {
	a, err := s.do(ctx, item)
	return shows(wire.Left{Status: string(a.Status), Reason: a.Reason, Late: a.Late}), err
}

// putStep remembers the result of a step; the first write wins (U76).
func (s *Server) putStep(ctx context.Context, r *wire.PutStepRequest) (answer, error) {
	item, err := fenced(flowfabric.OpStep, r.FencedByID, r.Body.LeaseField)
	if err != nil {
		return answer{}, err
	}
	item.Step, item.Result = r.Name, payloadOf(r.Result())
	a, err := s.do(ctx, item)
	if err != nil {
		return answer{}, err
	}
	if r.Encoding == wire.EncodingBytes {
		a.Step.Result = a.Step.Result.AsBytes()
	}
	status := http.StatusCreated
	if a.Outcome == "exists" {
		status = http.StatusOK
	}
	return answer{status: status, body: flat{outcomeOnly{a.Outcome}, a.Step}}, nil
}
