package commands

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
)

func (s *session) wait() *cobra.Command {
	result := false
	cmd := s.command("wait ID…", "Wait until executions have ended; exit 8 unless all succeeded", `
flowfabric wait 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50
flowfabric wait 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --result --timeout 1m
flowfabric wait 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --json
`, cobra.MinimumNArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		all, err := ids(args)
		if err != nil {
			return err
		}
		var failed error
		for _, id := range all {
			switch err := s.waitFor(ctx, c, id, result); {
			case err == nil:
			case show.ExitCode(err) == show.ExitUnsuccess:
				failed = err
			default:
				return err
			}
		}
		return failed
	})
	cmd.Flags().BoolVar(&result, "result", false, "print the result instead of the status")
	cmd.ValidArgsFunction = s.completeIDs
	return cmd
}

// waitFor waits for the end and prints the result, or how it ended. Without success the exit code is 8.
func (s *session) waitFor(ctx context.Context, c *flowfabric.Client, id flowfabric.ID, result bool) error {
	x, err := c.Wait(ctx, id)
	if err != nil {
		return err
	}
	succeeded := x.Status == flowfabric.StatusSucceeded
	switch plain := !s.printer.JSON && s.printer.Template == nil && !s.printer.Quiet; {
	case plain && succeeded && result:
		payload, err := c.Executions().Result(ctx, id)
		if err != nil {
			return err
		}
		if err := s.printer.Raw(payload.Data); err != nil {
			return err
		}
	case plain && result:
		s.printer.Note("%s %s: %s", bareID(x.ID), x.Status, endText(x))
	case plain:
		if _, err := fmt.Fprintf(s.Out, "%s %s\n", bareID(x.ID), x.Status); err != nil {
			return err
		}
	default:
		if err := show.One(s.printer, s.execution(), x); err != nil {
			return err
		}
	}
	if !succeeded {
		return show.Exit(show.ExitUnsuccess)
	}
	return nil
}

// endText says why an execution did not succeed.
func endText(x *flowfabric.Execution) string {
	if x.Failure != nil {
		return failureText(x.Failure)
	}
	return x.Reason
}
