package commands

import (
	"context"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
)

// suspendedFlags are the filter of suspended and approvals (U85).
type suspendedFlags struct {
	lane, reasonCode, flow, approver string
	tags                             []string
	limit                            int
}

func (f *suspendedFlags) register(fs *pflag.FlagSet) {
	fs.StringVar(&f.lane, "lane", "", "only of this lane")
	fs.StringVar(&f.flow, "flow-id", "", "only of this flow")
	fs.StringArrayVar(&f.tags, "tag", nil, "key=value; may be repeated")
	fs.IntVar(&f.limit, "limit", 100, "maximum number; 0: all")
}

func (f *suspendedFlags) query() (q ops.SuspendedQuery, err error) {
	q = ops.SuspendedQuery{Lane: f.lane, ReasonCode: f.reasonCode, FlowID: flowfabric.ID(f.flow), Approver: f.approver}
	q.Limit = min(f.limit, 1000)
	q.Tags, err = pairs("--tag", f.tags)
	return q, err
}

// suspended lists suspended executions.
func (s *session) suspended() *cobra.Command {
	var flags suspendedFlags
	cmd := s.command("suspended", "List suspended executions, oldest first", `
flowfabric suspended
flowfabric suspended --reason-code waiting_for_callback --lane mail
flowfabric suspended --tag customer=acme --json
`, cobra.NoArgs, func(ctx context.Context, c *flowfabric.Client, _ []string) error {
		query, err := flags.query()
		if err != nil {
			return err
		}
		return show.First(s.printer, s.suspendedView(), c.Waitpoints().Suspended(ctx, query), flags.limit)
	})
	flags.register(cmd.Flags())
	cmd.Flags().StringVar(&flags.reasonCode, "reason-code", "", "only those suspended for this reason, such as waiting_for_signal")
	_ = cmd.RegisterFlagCompletionFunc("reason-code", cobra.FixedCompletions(reasonCodes, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// reasonCodes are the reasons of suspensions.
var reasonCodes = []string{
	flowfabric.WaitingForSignal, flowfabric.WaitingForApproval, flowfabric.WaitingForCallback, flowfabric.WaitingForToolResult,
	flowfabric.WaitingForOperatorReview, flowfabric.PausedByPolicy, flowfabric.PausedByBudget, flowfabric.StepBoundary, flowfabric.ManualPause,
}

// approvals lists executions that wait for an approval.
func (s *session) approvals() *cobra.Command {
	var flags suspendedFlags
	watch := false
	cmd := s.command("approvals", "List executions that wait for an approval, oldest first", `
flowfabric approvals
flowfabric approvals --approver ana@example.com
flowfabric approvals --watch
`, cobra.NoArgs, func(ctx context.Context, c *flowfabric.Client, _ []string) error {
		query, err := flags.query()
		if err != nil {
			return err
		}
		list := func(p *show.Printer) error {
			return show.First(p, s.approvalView(), c.Waitpoints().Inbox(ctx, query), flags.limit)
		}
		if watch {
			return s.watch(ctx, list)
		}
		return list(s.printer)
	})
	flags.register(cmd.Flags())
	cmd.Flags().StringVar(&flags.approver, "approver", "", "only those with a link for this person")
	cmd.Flags().BoolVar(&watch, "watch", false, "print the list again on every change, until interrupted")
	return cmd
}
