package server

import (
	"context"
	"net/http"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func (s *Server) serveFenced() {
	pass(s, wire.RenewLease)
	pass(s, wire.ReportProgress)
	pass(s, wire.CompleteExecution)
	pass(s, wire.FailExecution)
	pass(s, wire.ReleaseExecution)
	pass(s, wire.DelayExecution)
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

func leaseOf(l wire.LeaseRef) flowfabric.Lease {
	return flowfabric.Lease{ID: l.LeaseID, Epoch: l.Epoch, AttemptID: l.AttemptID}
}

// putStep remembers the result of a step; the first write wins (U76).
func (s *Server) putStep(ctx context.Context, r *wire.PutStepRequest) (answer, error) {
	a, err := ask(ctx, s, wire.PutStep, r)
	if err != nil {
		return answer{}, err
	}
	if r.Encoding == wire.EncodingBytes {
		a.Result = a.Result.AsBytes()
	}
	status := http.StatusCreated
	if a.Outcome == "exists" {
		status = http.StatusOK
	}
	return answer{status: status, body: a}, nil
}
