package commands

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
)

func (s *session) flowWait() *cobra.Command {
	cmd := s.command("wait FLOW…", "Wait until flows have ended; exit 8 unless all completed", `
flowfabric flow wait 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50
flowfabric flow wait 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --timeout 1m
flowfabric flow wait 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --json
`, cobra.MinimumNArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		all, err := ids(args)
		if err != nil {
			return err
		}
		var failed error
		for _, id := range all {
			switch err := s.waitForFlow(ctx, c, id); {
			case err == nil:
			case show.ExitCode(err) == show.ExitUnsuccess:
				failed = err
			default:
				return err
			}
		}
		return failed
	})
	cmd.ValidArgsFunction = s.flowIDs
	return cmd
}

// waitForFlow waits for the end and prints the outcome. A flow that did not complete is exit 8.
func (s *session) waitForFlow(ctx context.Context, c *flowfabric.Client, id flowfabric.ID) error {
	flow, err := c.Flows().Wait(ctx, id)
	if err != nil {
		return err
	}
	if s.printer.JSON || s.printer.Template != nil || s.printer.Quiet {
		err = show.One(s.printer, s.flowDetails(), flow)
	} else {
		_, err = fmt.Fprintf(s.Out, "%s %s\n", bareID(flow.ID), flow.State)
	}
	if err == nil && flow.State != flowfabric.FlowCompleted {
		return show.Exit(show.ExitUnsuccess)
	}
	return err
}

// cancelPiece is how long one call waits while a cancel is followed to its end.
const cancelPiece = 5 * time.Minute

func (s *session) flowCancel() *cobra.Command {
	var f flowfabric.FlowCancel
	policy, wait := "", false
	cmd := s.command("cancel FLOW", "Cancel a flow and, by policy, its members", `
flowfabric flow cancel 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --reason 'wrong version'
flowfabric flow cancel 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --reason 'no more' --policy cancel_pending
flowfabric flow cancel 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --reason 'wrong version' --wait
`, cobra.ExactArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		f.Policy = flowfabric.CancelPolicy(policy)
		progress, err := s.cancelFlow(ctx, c, flowfabric.ID(args[0]), f, wait)
		if err != nil {
			return err
		}
		if progress.AlreadyTerminal {
			s.printer.Note("it had already ended")
		}
		return show.One(s.printer, cancelView(args[0]), progress)
	})
	cmd.Flags().StringVar(&policy, "policy", "", "members to cancel: cancel_all (default), cancel_pending (those that have not started) or flow_only")
	cmd.Flags().StringVar(&f.Reason, "reason", "", "reason, recorded in the events")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until all members have ended")
	cmd.ValidArgsFunction = s.completeFlows
	return cmd
}

func (s *session) flowDelete() *cobra.Command {
	var how flowfabric.FlowDeletion
	yes := false
	cmd := s.command("delete FLOW", "Delete a finished flow with its members and all their data", `
flowfabric flow delete 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --yes
flowfabric flow delete 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --yes --json
flowfabric flow delete 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --yes --reason 'asked to be forgotten'
`, cobra.ExactArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		if err := s.confirm(yes, "delete the flow with all its members?"); err != nil {
			return err
		}
		if err := c.Flows().Delete(ctx, flowfabric.ID(args[0]), how); err != nil {
			return err
		}
		return show.One(s.printer, deletedView, deletedFlow{FlowID: args[0], Deleted: true})
	})
	cmd.Flags().StringVar(&how.Reason, "reason", "", "reason, recorded in the event")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	cmd.ValidArgsFunction = s.completeFlows
	return cmd
}

// deletedFlow is the response to a deletion.
type deletedFlow struct {
	FlowID  string `json:"flow_id"`
	Deleted bool   `json:"deleted"`
}

var deletedView = show.View[deletedFlow]{
	ID: func(d deletedFlow) string { return bareID(flowfabric.ID(d.FlowID)) },
	Columns: []show.Column[deletedFlow]{
		{Name: "FLOW", Text: func(d deletedFlow) string { return bareID(flowfabric.ID(d.FlowID)) }},
		{Name: "DELETED", Text: func(d deletedFlow) string { return fmt.Sprint(d.Deleted) }},
	},
}

// cancelFlow cancels and, if requested, waits until all members have ended. An interrupt does not stop the cancel (U159).
func (s *session) cancelFlow(ctx context.Context, c *flowfabric.Client, id flowfabric.ID, f flowfabric.FlowCancel, wait bool) (api.FlowCancelProgress, error) {
	if !wait {
		return c.Flows().Cancel(ctx, id, f)
	}
	bar := s.printer.NewProgress("cancelled", isTerminal(s.Err))
	defer bar.End()
	f.Wait = cancelPiece
	f.Progress = func(p api.FlowCancelProgress) { bar.At(p.Cancelled, p.Cancelled+p.Remaining) }
	for {
		progress, err := c.Flows().Cancel(ctx, id, f)
		if err != nil && ctx.Err() != nil {
			bar.End()
			s.printer.Note("the cancel continues; follow it: flowfabric flow wait %s", bareID(id))
		}
		if err != nil || progress.Remaining == 0 {
			return progress, err
		}
	}
}

func cancelView(id string) show.View[api.FlowCancelProgress] {
	type x = api.FlowCancelProgress
	count := func(of func(x) int) func(x) string { return func(p x) string { return fmt.Sprint(of(p)) } }
	return show.View[x]{ID: func(x) string { return bareID(flowfabric.ID(id)) }, Columns: []show.Column[x]{
		{Name: "STATE", Text: func(p x) string { return string(p.State) }},
		{Name: "POLICY", Text: func(p x) string { return string(p.Policy) }},
		{Name: "REASON", Text: func(p x) string { return p.Reason }},
		{Name: "CANCELLED", Text: count(func(p x) int { return p.Cancelled })},
		{Name: "FINISHED BEFORE", Text: count(func(p x) int { return p.FinishedBefore })},
		{Name: "REMAINING", Text: count(func(p x) int { return p.Remaining })},
	}}
}
