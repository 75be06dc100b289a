package commands

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric"
)

// completionLimit bounds what a completion may ask of the server (U160).
const completionLimit = 100 * time.Millisecond

// completeIDs offers the newest executions.
func (s *session) completeIDs(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return s.offer(cmd, func(ctx context.Context, c flowfabric.Client) ([]string, error) {
		page, err := c.Executions().Page(ctx, flowfabric.ListOptions{Limit: 50})
		var found []string
		for _, x := range page.Items {
			found = append(found, bareID(x.ID)+"\t"+x.Kind+" "+string(x.Status))
		}
		return found, err
	})
}

// completeLanes offers the lanes.
func (s *session) completeLanes(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return s.offer(cmd, func(ctx context.Context, c flowfabric.Client) ([]string, error) {
		page, err := c.Lanes().Page(ctx)
		var found []string
		for _, lane := range page.Items {
			found = append(found, lane.Name)
		}
		return found, err
	})
}

// offer asks the server; one that does not answer in time offers nothing.
func (s *session) offer(cmd *cobra.Command, ask func(ctx context.Context, c flowfabric.Client) ([]string, error)) ([]string, cobra.ShellCompDirective) {
	var found []string
	_ = s.prepare(cmd)
	_ = s.withClient(cmd, func(ctx context.Context, c flowfabric.Client) error { // a completion has no place for an error
		ctx, cancel := context.WithTimeout(ctx, completionLimit)
		defer cancel()
		answer, err := ask(ctx, c)
		found = answer
		return err
	})
	return found, cobra.ShellCompDirectiveNoFileComp
}
