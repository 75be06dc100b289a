package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func (s *Service) bulk() {
	on(s, wire.StartBulk, s.startBulk)
	on(s, wire.ListBulk, s.listBulk)
	on(s, wire.GetBulk, s.getBulk)
	on(s, wire.ListBulkItems, s.listBulkItems)
	on(s, wire.StopBulk, s.stopBulk)
}

// startBulk starts a job, or returns what it would affect (U57).
func (s *Service) startBulk(ctx context.Context, c Caller, r *wire.StartBulkRequest) (api.BulkJob, error) {
	b := &r.Body
	args, err := bulkArgsOf(b.Action, &b.Args)
	if err != nil {
		return api.BulkJob{}, err
	}
	request := engine.BulkRequest{
		Action: b.Action, All: b.All, DryRun: b.DryRun, MaxAffected: b.MaxAffected, RequestKey: cmp.Or(c.RequestKey, c.Key), Reason: b.Reason,
		RatePerSecond: b.RatePerSecond, Args: args,
	}
	if b.Filter != nil {
		request.Filter = filterOf(b.Filter.Fields())
	}
	for i, id := range b.IDs {
		given, err := base.ParseID(id)
		if err != nil {
			var refusal *base.Error
			if errors.As(err, &refusal) {
				err = refusal.WithField(fmt.Sprintf("ids[%d]", i))
			}
			return api.BulkJob{}, err
		}
		request.IDs = append(request.IDs, given)
	}
	return jobShown(s.engine.Bulk(ctx, c.operator(), request))
}

// bulkArgsOf converts the arguments of an action; missing_field, and unknown_field for arguments of other actions.
func bulkArgsOf(action string, a *wire.BulkArgs) (engine.BulkArgs, error) {
	if name := a.Foreign(action); name != "" {
		return engine.BulkArgs{}, base.Errorf(base.CodeUnknownField, "this action has no such argument").WithField("args." + name)
	}
	args := engine.BulkArgs{Tags: a.Tags, Until: base.TimeOf(a.Until.Time), DelayMS: a.DelayMS, ReplayRequest: replayOf(a.ReplayFields)}
	switch {
	case a.Priority != nil:
		args.Priority = *a.Priority
	case action == api.BulkPriority:
		return args, base.Errorf(base.CodeMissingField, "this action needs a priority").WithField("args.priority")
	}
	switch {
	case action != api.BulkSignal:
		return args, nil
	case a.Name == "":
		return args, base.Errorf(base.CodeMissingField, "this action needs the name of a signal").WithField("args.name")
	}
	args.Signal = &engine.BulkSignal{Name: a.Name, Suffix: a.Suffix, Lane: a.Lane, Comment: a.Comment}
	args.Signal.Payload = payloadGiven(a.Payload)
	return args, nil
}

// listBulk lists the jobs, newest first (U58).
func (s *Service) listBulk(ctx context.Context, c Caller, r *wire.ListBulkRequest) (api.Page[*api.BulkJob], error) {
	return page(r.PageFields, jobOf, func(cursor string, limit *int) ([]engine.BulkView, string, error) {
		return s.engine.BulkJobsPage(ctx, c.operator(), cursor, limit)
	})
}

// getBulk returns a job; if it is to wait, once the job has ended or the wait is over (U58).
func (s *Service) getBulk(ctx context.Context, c Caller, r *wire.GetBulkRequest) (api.BulkJob, error) {
	id, err := jobID(r.BulkByID)
	if err != nil {
		return api.BulkJob{}, err
	}
	wait, _, err := r.Wait()
	switch {
	case err != nil:
		return api.BulkJob{}, base.Invalid("wait_ms", "a wait is not negative")
	case wait == 0:
		return jobShown(s.engine.BulkStatus(ctx, c.operator(), id))
	}
	job, err := jobShown(s.engine.WaitBulk(ctx, c.operator(), id, wait))
	if err == nil && job.EndedAt.IsZero() {
		err = s.cfg.closed()
	}
	return job, err
}

// listBulkItems lists the results of a job, in the order in which they occurred (U58).
func (s *Service) listBulkItems(ctx context.Context, c Caller, r *wire.ListBulkItemsRequest) (api.Page[api.BulkItem], error) {
	id, err := jobID(r.BulkByID)
	if err != nil {
		return api.Page[api.BulkItem]{}, err
	}
	return page(r.PageFields, bulkItemOf, func(cursor string, limit *int) ([]engine.BulkItem, string, error) {
		return s.engine.BulkItems(ctx, c.operator(), id, engine.BulkItemsRequest{OK: r.OK, Limit: limit, Cursor: cursor})
	})
}

// stopBulk stops a job; its changes so far are kept (U58).
func (s *Service) stopBulk(ctx context.Context, c Caller, r *wire.StopBulkRequest) (api.BulkJob, error) {
	id, err := jobID(r.BulkByID)
	if err != nil {
		return api.BulkJob{}, err
	}
	return jobShown(s.engine.StopBulk(ctx, c.operator(), id, r.Body.Reason))
}

// jobID parses the id of a job; invalid_id.
func jobID(r wire.BulkByID) (base.UUID, error) {
	id, ok := base.ParseUUID(r.ID)
	if !ok {
		return id, base.Errorf(base.CodeInvalidID, "%s is not a job id", base.QuoteID(r.ID)).WithField("job_id").WithHint("give it as the job shows it")
	}
	return id, nil
}

func bulkItemOf(i engine.BulkItem) api.BulkItem {
	item := api.BulkItem{ID: idOf(i.ID), OK: i.Err == nil}
	if i.Err != nil {
		item.Err = api.AsError(i.Err)
	}
	return item
}

func jobShown(v engine.BulkView, err error) (api.BulkJob, error) {
	if err != nil {
		return api.BulkJob{}, err
	}
	return *jobOf(v), nil
}

func jobOf(v engine.BulkView) *api.BulkJob {
	job := &api.BulkJob{
		Action: v.Action, State: v.State, Total: v.Total, Done: v.Done, Failed: v.Failed, StartedAt: v.StartedAt.Std(), EndedAt: v.EndedAt.Std(),
		DryRun: v.DryRun, RatePerSecond: v.RatePerSecond, Sample: some(v.Sample, idOf),
	}
	if v.DryRun {
		job.Total, job.Matched = 0, v.Total
	}
	if !v.JobID.IsZero() {
		job.ID = v.JobID.String()
	}
	if len(v.Refused) > 0 {
		job.Refused = make(map[string]int, len(v.Refused))
		for code, n := range v.Refused {
			job.Refused[string(code)] = n
		}
	}
	return job
}
