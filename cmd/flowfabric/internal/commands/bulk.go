package commands

import (
	"context"
	"errors"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
)

// jobEvery is the polling interval of a followed job.
const jobEvery = 500 * time.Millisecond

// followJob shows the progress of a job until it ends. An interrupt leaves the job running (U159).
func (s *session) followJob(ctx context.Context, c *flowfabric.Client, job *api.BulkJob) error {
	progress := s.printer.NewProgress(job.Action, isTerminal(s.Err))
	defer progress.End()
	for job.State == "running" {
		progress.At(job.Done+job.Failed, job.Total)
		look, cancel := context.WithTimeout(ctx, jobEvery)
		now, err := c.Operate().WaitBulk(look, job.ID)
		cancel()
		if err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
			now, err = c.Operate().BulkStatus(ctx, job.ID)
		}
		if err != nil {
			progress.End()
			s.printer.Note("the job continues; follow it: flowfabric bulk get %s --watch", job.ID)
			return err
		}
		job = now
	}
	progress.End()
	return show.One(s.printer, s.jobView(), job)
}

func (s *session) bulk() *cobra.Command {
	watch := false
	get := s.command("get JOB", "Show a bulk job", `
flowfabric bulk get 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50
flowfabric bulk get 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --watch
flowfabric bulk get 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --json
`, cobra.ExactArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		job, err := c.Operate().BulkStatus(ctx, args[0])
		if err != nil {
			return err
		}
		if watch {
			return s.followJob(ctx, c, job)
		}
		return show.One(s.printer, s.jobView(), job)
	})
	get.Flags().BoolVar(&watch, "watch", false, "follow it until it ends")
	get.ValidArgsFunction = s.completeJobs
	return group("bulk", "Jobs over many executions", get, s.bulkList(), s.bulkItems(), s.bulkStop())
}

func (s *session) bulkList() *cobra.Command {
	limit := 100
	cmd := s.command("list", "List bulk jobs, newest first", `
flowfabric bulk list
flowfabric bulk list --limit 5
flowfabric bulk list --json
`, cobra.NoArgs, func(ctx context.Context, c *flowfabric.Client, _ []string) error {
		return show.First(s.printer, s.jobView(), c.Operate().BulkJobs(ctx), limit)
	})
	cmd.Flags().IntVar(&limit, "limit", 100, "maximum number; 0: all")
	return cmd
}

func (s *session) bulkItems() *cobra.Command {
	refused, done := false, false
	cmd := s.command("items JOB", "List the items of a bulk job with their outcomes", `
flowfabric bulk items 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50
flowfabric bulk items 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --refused
flowfabric bulk items 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --json
`, cobra.ExactArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		var options ops.BulkItemOptions
		if refused != done {
			options.OK = &done
		}
		type x = api.BulkItem
		view := show.View[x]{ID: func(i x) string { return bareID(i.ID) }, Columns: []show.Column[x]{
			{Name: "ID", Text: func(i x) string { return bareID(i.ID) }},
			{Name: "STATE", Text: func(i x) string {
				if i.OK {
					return "done"
				}
				return flowfabric.CodeOf(i.Err)
			}},
		}}
		return show.List(s.printer, view, c.Operate().BulkItems(ctx, args[0], options))
	})
	cmd.Flags().BoolVar(&refused, "refused", false, "only refused items")
	cmd.Flags().BoolVar(&done, "done", false, "only applied items")
	cmd.ValidArgsFunction = s.completeJobs
	return cmd
}

func (s *session) bulkStop() *cobra.Command {
	reason := ""
	cmd := s.command("stop JOB", "Stop a bulk job; changes made so far stay", `
flowfabric bulk stop 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50
flowfabric bulk stop 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --reason 'wrong filter'
flowfabric bulk stop 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --json
`, cobra.ExactArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		job, err := c.Operate().StopBulk(ctx, args[0], ops.StopOptions{Reason: reason})
		if err != nil {
			return err
		}
		return show.One(s.printer, s.jobView(), job)
	})
	cmd.Flags().StringVar(&reason, "reason", "", "reason, recorded in the event")
	cmd.ValidArgsFunction = s.completeJobs
	return cmd
}
