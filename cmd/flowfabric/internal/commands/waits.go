package commands

import (
	"context"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// waitCommands are the commands about suspended work (U173).
func (s *session) waitCommands() []*cobra.Command {
	all := []*cobra.Command{
		s.signal(), s.signals(), s.waitpoints(), s.waitpointToken(), s.suspended(), s.suspension(), s.suspensions(), s.approvals(), s.link(), s.links(),
	}
	for _, v := range s.waitingVerbs() {
		all = append(all, s.verb(v))
	}
	return all
}

func (s *session) signals() *cobra.Command {
	var query ops.SignalQuery
	cmd := s.command("signals ID", "List the signals that were sent to an execution, in order", `
flowfabric signals 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50
flowfabric signals 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --wide
flowfabric signals 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --json
`, cobra.ExactArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		return show.List(s.printer, s.signalView(), c.Executions().Signals(ctx, flowfabric.ID(args[0]), query))
	})
	cmd.Flags().StringVar(&query.SuspensionID, "suspension", "", "only those of this suspension")
	cmd.ValidArgsFunction = s.completeIDs
	return cmd
}

func (s *session) suspensions() *cobra.Command {
	cmd := s.command("suspensions ID", "List the suspensions of an execution, oldest first", `
flowfabric suspensions 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50
flowfabric suspensions 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --wide
flowfabric suspensions 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --json
`, cobra.ExactArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		return show.List(s.printer, s.suspensionView(), c.Executions().Suspensions(ctx, flowfabric.ID(args[0])))
	})
	cmd.ValidArgsFunction = s.completeIDs
	return cmd
}

func (s *session) suspension() *cobra.Command {
	cmd := s.command("suspension ID", "Show the current or last suspension of an execution", `
flowfabric suspension 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50
flowfabric suspension 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --json
flowfabric suspension 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --template '{{.suspension_id}}'
`, cobra.ExactArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		wait, err := c.Executions().Suspension(ctx, flowfabric.ID(args[0]))
		if err != nil {
			return err
		}
		if wait == nil {
			return s.noSuspension()
		}
		return show.One(s.printer, s.suspensionView(), *wait)
	})
	cmd.ValidArgsFunction = s.completeSuspended
	return cmd
}

// noSuspension reports that there was no suspension: programs get the empty object of the API.
func (s *session) noSuspension() error {
	if s.printer.JSON || s.printer.Template != nil {
		return show.One(s.printer, show.View[wire.NoSuspension]{}, wire.NoSuspension{})
	}
	s.printer.Note("it was never suspended")
	return nil
}

// waitsFor adds the suspension to the view of a suspended execution.
func (s *session) waitsFor(ctx context.Context, c *flowfabric.Client, x *flowfabric.Execution, view *show.View[*flowfabric.Execution]) error {
	if x.Status != flowfabric.StatusSuspended || s.printer.JSON || s.printer.Quiet || s.printer.Template != nil {
		return nil
	}
	wait, err := c.Executions().Suspension(ctx, x.ID)
	if err != nil || wait == nil || wait.Cause != "" { // it was resumed in the meantime
		return err
	}
	view.Columns = append(view.Columns, show.Column[*flowfabric.Execution]{
		Name: "WAITS FOR", Text: func(*flowfabric.Execution) string { return waitText(s.printer, *wait) },
	})
	return nil
}
