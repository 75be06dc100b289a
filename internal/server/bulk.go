package server

import (
	"context"
	"net/http"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func (s *Server) serveBulk() {
	handle(s, wire.StartBulk, s.startBulk)
	handle(s, wire.ListBulk, s.listBulk)
	handle(s, wire.GetBulk, s.getBulk)
	handle(s, wire.ListBulkItems, s.listBulkItems)
	handle(s, wire.StopBulk, s.stopBulk)
}

// startBulk starts a job, or shows what it would meet (U57).
func (s *Server) startBulk(ctx context.Context, r *wire.StartBulkRequest) (answer, error) {
	b := r.Body
	request := flowfabric.BulkRequest{
		Action: b.Action, IDs: texts[flowfabric.ID](b.IDs), All: b.All, DryRun: b.DryRun, MaxAffected: b.MaxAffected,
		RatePerSecond: b.RatePerSecond, Reason: b.Reason, Tags: b.Args.Tags, Until: b.Args.Until.Time,
		Delay: millis(b.Args.DelayMS), Deadline: b.Args.DeadlineAt.Time, KeepSteps: b.Args.KeepSteps,
		Cascade: flowfabric.Cascade(b.Args.Cascade), IgnoreDependencies: b.Args.IgnoreDependencies,
	}
	if b.Filter != nil {
		request.Filter = filterOf(*b.Filter)
	}
	switch {
	case b.Args.Priority != nil:
		request.Priority = *b.Args.Priority
	case b.Action == flowfabric.BulkPriority:
		return answer{}, refuse("missing_field", "this action needs a priority").at("/args/priority")
	}
	if b.Action == flowfabric.BulkSignal {
		if b.Args.Name == "" {
			return answer{}, refuse("missing_field", "this action needs the name of a signal").at("/args/name")
		}
		request.Signal = &flowfabric.Approve{
			Name: b.Args.Name, Suffix: b.Args.Suffix, Lane: b.Args.Lane, Comment: b.Args.Comment, Payload: payloadOf(b.Args.PayloadFields.Payload()),
		}
	}
	job, err := s.client.Operate().Bulk(ctx, request)
	if err != nil {
		return answer{}, err
	}
	if job.DryRun {
		return answer{status: http.StatusOK, body: job}, nil
	}
	return shows(job).with("Location", "/v1/bulk/"+job.ID), nil
}

// listBulk lists the jobs (U58).
func (s *Server) listBulk(ctx context.Context, r *wire.ListBulkRequest) (answer, error) {
	return pageBy(r.PageFields, func(o flowfabric.PageOptions) (flowfabric.Page[*flowfabric.BulkJob], error) {
		return s.client.Operate().BulkJobsPage(ctx, o)
	})
}

// getBulk shows a job, or waits for its end (U58).
func (s *Server) getBulk(ctx context.Context, r *wire.GetBulkRequest) (answer, error) {
	wait, err := waitOf(r.WaitFields, s.cfg.MaxWait)
	if err != nil {
		return answer{}, err
	}
	job, err := s.client.Operate().BulkStatus(ctx, r.ID)
	if err != nil {
		return answer{}, err
	}
	if wait.atMost > 0 && job.EndedAt.IsZero() {
		ended, err := s.until(ctx, s.readers, wait.atMost, func(ctx context.Context) (err error) {
			job, err = s.client.Operate().WaitBulk(ctx, r.ID)
			return err
		})
		if ended {
			job, err = s.client.Operate().BulkStatus(ctx, r.ID)
		}
		if err != nil {
			return answer{}, err
		}
	}
	return wait.told(shows(job)), nil
}

// listBulkItems lists what a job did (U58).
func (s *Server) listBulkItems(ctx context.Context, r *wire.ListBulkItemsRequest) (answer, error) {
	return pageBy(r.PageFields, func(o flowfabric.PageOptions) (flowfabric.Page[flowfabric.BulkItem], error) {
		return s.client.Operate().BulkItemsPage(ctx, r.ID, flowfabric.BulkItemOptions{OK: r.OK, Limit: o.Limit, Cursor: o.Cursor})
	})
}

// stopBulk stops a job (U58).
func (s *Server) stopBulk(ctx context.Context, r *wire.StopBulkRequest) (answer, error) {
	job, err := s.client.Operate().StopBulk(ctx, r.ID, flowfabric.StopOptions{Reason: r.Body.Reason})
	return shows(job), err
}
