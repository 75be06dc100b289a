package server

import (
	"context"
	"net/http"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func (s *Server) serveBulk() {
	handle(s, wire.StartBulk, s.startBulk)
	handle(s, wire.GetBulk, s.getBulk)
}

// startBulk starts a job, or returns what it would affect (U57).
func (s *Server) startBulk(ctx context.Context, x *exchange, r *wire.StartBulkRequest) (answer, error) {
	job, err := ask(ctx, s, x.by, wire.StartBulk, r)
	if err != nil {
		return answer{}, err
	}
	if job.DryRun {
		return answer{status: http.StatusOK, body: job}, nil
	}
	return shows(job).with("Location", "/v1/bulk/"+job.ID), nil
}

// getBulk returns a job, or waits for its end (U58).
func (s *Server) getBulk(ctx context.Context, x *exchange, r *wire.GetBulkRequest) (answer, error) {
	wait, err := waitOf(r.WaitFields, s.cfg.MaxWait)
	if err != nil {
		return answer{}, err
	}
	now := &wire.GetBulkRequest{BulkByID: r.BulkByID}
	job, err := ask(ctx, s, x.by, wire.GetBulk, now)
	if err != nil {
		return answer{}, err
	}
	if wait.atMost > 0 && job.EndedAt.IsZero() {
		ended, err := s.until(ctx, x, s.readers, wait.atMost, func(ctx context.Context) (err error) {
			waiting := &wire.GetBulkRequest{BulkByID: r.BulkByID, WaitFields: wire.WaitUpTo(longPoll)}
			job, err = awaited(ctx, func() (*api.BulkJob, error) { return ask(ctx, s, x.by, wire.GetBulk, waiting) },
				func(job *api.BulkJob) bool { return !job.EndedAt.IsZero() })
			return err
		})
		if ended {
			job, err = ask(ctx, s, x.by, wire.GetBulk, now)
		}
		if err != nil {
			return answer{}, err
		}
	}
	return wait.applied(shows(job)), nil
}
