package commands

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
)

// completionLimit is the largest number of items that a completion requests (U160).
const completionLimit = 100 * time.Millisecond

// completeIDs completes the newest executions.
func (s *session) completeIDs(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return s.offer(cmd, func(ctx context.Context, c *flowfabric.Client) ([]string, error) {
		page, err := c.Executions().Page(ctx, ops.ListOptions{Limit: 50})
		var found []string
		for _, x := range page.Items {
			found = append(found, bareID(x.ID)+"\t"+x.Kind+" "+string(x.Status))
		}
		return found, err
	})
}

// completeLanes completes lanes.
func (s *session) completeLanes(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return s.offer(cmd, func(ctx context.Context, c *flowfabric.Client) ([]string, error) {
		page, err := c.Lanes().Page(ctx)
		var found []string
		for _, lane := range page.Items {
			found = append(found, lane.Name)
		}
		return found, err
	})
}

// completeQuotas completes quotas.
func (s *session) completeQuotas(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return s.offer(cmd, func(ctx context.Context, c *flowfabric.Client) ([]string, error) {
		page, err := c.Quotas().Page(ctx)
		var found []string
		for _, quota := range page.Items {
			found = append(found, quota.ID)
		}
		return found, err
	})
}

// completeKinds completes the kinds of the newest executions: the API has no list of kinds, and counting all can be slow.
func (s *session) completeKinds(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return s.offer(cmd, func(ctx context.Context, c *flowfabric.Client) ([]string, error) {
		page, err := c.Executions().Page(ctx, ops.ListOptions{Limit: 200})
		kinds := map[string]bool{}
		for _, x := range page.Items {
			kinds[x.Kind] = true
		}
		return slices.Sorted(maps.Keys(kinds)), err
	})
}

// completeInstances completes worker instances.
func (s *session) completeInstances(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return s.offer(cmd, func(ctx context.Context, c *flowfabric.Client) ([]string, error) {
		page, err := c.Workers().Page(ctx)
		var found []string
		for _, w := range page.Items {
			found = append(found, w.InstanceID+"\t"+w.WorkerID+" "+w.State)
		}
		return found, err
	})
}

// completeJobs completes the newest bulk jobs.
func (s *session) completeJobs(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return s.offer(cmd, func(ctx context.Context, c *flowfabric.Client) ([]string, error) {
		page, err := c.Operate().BulkJobsPage(ctx, flowfabric.PageOptions{Limit: 50})
		var found []string
		for _, job := range page.Items {
			found = append(found, job.ID+"\t"+job.Action+" "+job.State)
		}
		return found, err
	})
}

// completeWaitpoints completes open waitpoints.
func (s *session) completeWaitpoints(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return s.offer(cmd, func(ctx context.Context, c *flowfabric.Client) ([]string, error) {
		page, err := c.Waitpoints().Page(ctx, ops.WaitpointQuery{PageOptions: flowfabric.PageOptions{Limit: 50}})
		var found []string
		for _, w := range page.Items {
			found = append(found, w.ID+"\t"+w.Key+" "+w.State)
		}
		return found, err
	})
}

// completeSuspended completes suspended executions.
func (s *session) completeSuspended(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return s.offerSuspended(cmd, func(w api.Suspended) []string {
		return []string{bareID(w.Execution.ID) + "\t" + w.Execution.Kind + " " + w.ReasonCode}
	})
}

// completeLinks completes links of suspended executions.
func (s *session) completeLinks(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return s.offerSuspended(cmd, func(w api.Suspended) (found []string) {
		for _, link := range w.Links {
			found = append(found, link.ID+"\t"+link.Approver+" "+link.State)
		}
		return found
	})
}

func (s *session) offerSuspended(cmd *cobra.Command, of func(api.Suspended) []string) ([]string, cobra.ShellCompDirective) {
	return s.offer(cmd, func(ctx context.Context, c *flowfabric.Client) ([]string, error) {
		page, err := c.Waitpoints().SuspendedPage(ctx, ops.SuspendedQuery{PageOptions: flowfabric.PageOptions{Limit: 50}})
		var found []string
		for _, w := range page.Items {
			found = append(found, of(w)...)
		}
		return found, err
	})
}

// completeStatuses completes statuses of executions.
func completeStatuses(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var all []string
	for _, status := range []flowfabric.Status{
		flowfabric.StatusDelayed, flowfabric.StatusReady, flowfabric.StatusBlocked, flowfabric.StatusGranted, flowfabric.StatusRunning, flowfabric.StatusSuspended,
		flowfabric.StatusSucceeded, flowfabric.StatusFailed, flowfabric.StatusCancelled, flowfabric.StatusExpired, flowfabric.StatusSkipped,
	} {
		all = append(all, string(status))
	}
	return all, cobra.ShellCompDirectiveNoFileComp
}

// completeFlags registers completions for the flags whose values the server knows.
func (s *session) completeFlags(cmd *cobra.Command) {
	for name, complete := range map[string]cobra.CompletionFunc{
		"lane": s.completeLanes, "kind": s.completeKinds, "worker-instance-id": s.completeInstances, "status": completeStatuses,
		"waitpoint": s.completeWaitpoints, "budget": s.budgetNames, "parent": s.budgetNames, "flow": s.flowIDs,
	} {
		if cmd.Flags().Lookup(name) != nil {
			_ = cmd.RegisterFlagCompletionFunc(name, complete) // fails only if the flag is missing or has one
		}
	}
	for _, below := range cmd.Commands() {
		s.completeFlags(below)
	}
}

// offer requests completions from the server; if it does not answer in time, there are none.
func (s *session) offer(cmd *cobra.Command, ask func(ctx context.Context, c *flowfabric.Client) ([]string, error)) ([]string, cobra.ShellCompDirective) {
	var found []string
	_ = s.prepare(cmd)
	_ = s.withClient(cmd, func(ctx context.Context, c *flowfabric.Client) error { // completions cannot report errors
		ctx, cancel := context.WithTimeout(ctx, completionLimit)
		defer cancel()
		answer, err := ask(ctx, c)
		found = answer
		return err
	})
	return found, cobra.ShellCompDirectiveNoFileComp
}
