package commands

import (
	"context"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
)

// waitpoints lists waitpoints of one execution or of all (U173).
func (s *session) waitpoints() *cobra.Command {
	all, limit := false, 100
	var query ops.WaitpointQuery
	cmd := s.command("waitpoints [ID]", "List the waitpoints of an execution, or all", `
flowfabric waitpoints
flowfabric waitpoints 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --all
flowfabric waitpoints --state pending --waitpoint-key payment --json
`, cobra.MaximumNArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		asked, err := ids(args)
		if err != nil {
			return err
		}
		q := query
		if len(asked) == 1 {
			q.ExecutionID = asked[0]
		}
		if all && q.State != "" {
			return show.Invalid("--all", "give one of them", "--all and --state cannot be combined")
		}
		if all {
			q.State = "all"
		}
		q.Limit = min(limit, 1000)
		return show.First(s.printer, s.waitpointView(), c.Waitpoints().List(ctx, q), limit)
	})
	cmd.Flags().BoolVar(&all, "all", false, "also closed ones")
	cmd.Flags().StringVar(&query.State, "state", "", "pending, active, closed or all; pending and active if absent")
	cmd.Flags().StringVar(&query.Key, "waitpoint-key", "", "only those with this key")
	cmd.Flags().IntVar(&limit, "limit", 100, "maximum number; 0: all")
	_ = cmd.RegisterFlagCompletionFunc("state", cobra.FixedCompletions([]string{"pending", "active", "closed", "all"}, cobra.ShellCompDirectiveNoFileComp))
	cmd.ValidArgsFunction = s.completeSuspended
	cmd.Args = orBelow(cobra.MaximumNArgs(1))
	cmd.AddCommand(s.waitpointGet(), s.waitpointClose())
	return cmd
}

func (s *session) waitpointGet() *cobra.Command {
	cmd := s.command("get WAITPOINT", "Show a waitpoint, without its token", `
flowfabric waitpoints get 0190b5a2-8d10-7c55-8f31-2b7e9d604c11
flowfabric waitpoints get 0190b5a2-8d10-7c55-8f31-2b7e9d604c11 --json
flowfabric waitpoints get 0190b5a2-8d10-7c55-8f31-2b7e9d604c11 --template '{{.execution_id}}'
`, cobra.ExactArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		waitpoint, err := c.Waitpoints().Get(ctx, args[0])
		if err != nil {
			return err
		}
		return show.One(s.printer, s.waitpointView(), *waitpoint)
	})
	cmd.ValidArgsFunction = s.completeWaitpoints
	return cmd
}

func (s *session) waitpointClose() *cobra.Command {
	reason := ""
	cmd := s.command("close WAITPOINT", "Close a waitpoint that no suspension uses", `
flowfabric waitpoints close 0190b5a2-8d10-7c55-8f31-2b7e9d604c11
flowfabric waitpoints close 0190b5a2-8d10-7c55-8f31-2b7e9d604c11 --reason 'no answer expected'
flowfabric waitpoints close 0190b5a2-8d10-7c55-8f31-2b7e9d604c11 --json
`, cobra.ExactArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		closed, err := c.Waitpoints().Close(ctx, args[0], ops.CloseOptions{Reason: reason})
		if err != nil {
			return err
		}
		type x = api.CloseResult
		id := func(x) string { return args[0] }
		return show.One(s.printer, show.View[x]{ID: id, Columns: []show.Column[x]{
			{Name: "WAITPOINT", Text: id},
			{Name: "OUTCOME", Text: func(r x) string { return r.Outcome }},
		}}, closed)
	})
	cmd.Flags().StringVar(&reason, "reason", "", "reason, recorded in the event")
	cmd.ValidArgsFunction = s.completeWaitpoints
	return cmd
}

// waitpointToken shows the token of a waitpoint, or issues a new one (U173). Token or address is printed alone on its line.
func (s *session) waitpointToken() *cobra.Command {
	reissue, url, reason := false, false, ""
	cmd := s.command("token WAITPOINT", "Print the token of a waitpoint, or its callback address; this is recorded in the audit log", `
flowfabric token 0190b5a2-8d10-7c55-8f31-2b7e9d604c11
flowfabric token 0190b5a2-8d10-7c55-8f31-2b7e9d604c11 --url
flowfabric token 0190b5a2-8d10-7c55-8f31-2b7e9d604c11 --reissue --reason 'it was in a chat'
`, cobra.ExactArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		waitpoint, err := readToken(ctx, c, args[0], reissue, reason)
		if err != nil {
			return err
		}
		err = show.One(s.bare(), show.View[api.IssuedWaitpoint]{ID: func(w api.IssuedWaitpoint) string {
			if url {
				return w.CallbackURL
			}
			return w.Token
		}}, waitpoint.Issued())
		if err == nil && reissue {
			s.printer.Note("all earlier tokens and links of the waitpoint are invalid now")
		}
		return err
	})
	cmd.Flags().BoolVar(&reissue, "reissue", false, "issue a new token; all earlier tokens and links become invalid immediately")
	cmd.Flags().BoolVar(&url, "url", false, "print the callback address, for senders that accept only a URL")
	cmd.Flags().StringVar(&reason, "reason", "", "reason for a new token, recorded in the event")
	cmd.ValidArgsFunction = s.completeWaitpoints
	return cmd
}

// readToken reads the token, which the API serves below the execution, or issues a new one.
func readToken(ctx context.Context, c *flowfabric.Client, id string, reissue bool, reason string) (*flowfabric.Waitpoint, error) {
	if reissue {
		return c.Waitpoints().Reissue(ctx, id, ops.Action{Reason: reason})
	}
	waitpoint, err := c.Waitpoints().Get(ctx, id)
	if err != nil {
		return nil, err
	}
	return c.Waitpoints().Token(ctx, waitpoint.ExecutionID, id)
}
