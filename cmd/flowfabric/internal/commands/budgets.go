package commands

import (
	"context"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
)

func (s *session) budgets() *cobra.Command {
	get := s.command("get BUDGET", "Show a budget and its usage per dimension", `
flowfabric budgets get team-red
flowfabric budgets get team-red --json
flowfabric budgets get team-red --template '{{.dimensions.tokens.used}}'
`, cobra.ExactArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		return s.printBudget(c.Budgets().Get(ctx, args[0]))
	})
	get.ValidArgsFunction = s.completeBudgets
	return group("budgets", "Limits on usage",
		s.budgetList(), get, s.budgetCreate(), s.budgetSet(),
		s.budgetChange("close", "Stop a budget from admitting new work; running work can still book usage", ops.Budgets.Close),
		s.budgetChange("reopen", "Undo close", ops.Budgets.Reopen),
		s.budgetChange("reset", "Start a new epoch now, with nothing used", ops.Budgets.Reset),
		s.budgetDelete(), s.budgetCharge(), s.budgetRelease(), s.budgetSpend(), s.budgetEpochs())
}

func (s *session) budgetList() *cobra.Command {
	var query ops.BudgetQuery
	exhausted := false
	cmd := s.command("list", "List budgets and their usage", `
flowfabric budgets list
flowfabric budgets list --exhausted
flowfabric budgets list --scope lane:mail --json
`, cobra.NoArgs, func(ctx context.Context, c *flowfabric.Client, _ []string) error {
		if exhausted {
			query.Exhausted = &exhausted
		}
		return show.List(s.printer, s.budgetView(), c.Budgets().List(ctx, query))
	})
	fs := cmd.Flags()
	fs.StringVar(&query.Scope, "scope", "", "only of this scope type, or type:value: lane, lane:mail, tag:team=red")
	fs.StringVar(&query.State, "state", "", "only in this state: active or closed")
	fs.BoolVar(&exhausted, "exhausted", false, "only budgets that admit no more work")
	return cmd
}

// budgetFlags are the settings of a budget other than its limits.
type budgetFlags struct {
	id, scope, parent, every, anchor, unit, timezone, onHard, onLoss, timeout, onTimeout, name, reason string
	raise                                                                                              []string
	revision                                                                                           int64
}

func (f *budgetFlags) register(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&f.every, "reset-every", "", "reset after this time: 24h; never: off")
	fs.StringVar(&f.anchor, "reset-anchor", "", "start of the reset periods; default 1970")
	fs.StringVar(&f.unit, "reset-at", "", "reset at each hour, day, week or month, instead of --reset-every")
	fs.StringVar(&f.timezone, "timezone", "", "IANA time zone for --reset-at; default UTC")
	fs.StringVar(&f.onHard, "on-hard", "", "action at a hard limit: block_new (default), fail, suspend_for_approval or cancel_running")
	fs.StringVar(&f.onLoss, "on-lease-loss", "", "reservation of a lost lease: release (default) or forfeit")
	fs.StringVar(&f.timeout, "approval-timeout", "", "for suspend_for_approval: how long to wait; default 7 days")
	fs.StringVar(&f.onTimeout, "approval-on-timeout", "", "action when that time is over: fail (default), cancel, expire, escalate, auto_resume_with_timeout_signal")
	fs.StringArrayVar(&f.raise, "approval-raise", nil, "default raise of an approval: tokens=500; may be repeated")
	auditReason(cmd, &f.reason)
}

// reset reads when the budget resets; nil if no flag was given.
func (f *budgetFlags) reset() (*api.BudgetReset, error) {
	if f.every == "" && f.anchor == "" && f.unit == "" && f.timezone == "" {
		return nil, nil
	}
	reset := api.BudgetReset{Unit: f.unit, Timezone: f.timezone}
	if f.every == "off" {
		return &reset, nil
	}
	var err error
	if f.every != "" {
		if reset.Every, err = span(f.every); err != nil {
			return nil, show.Invalid("--reset-every", "write 24h, or off", "%q is not a duration", f.every)
		}
	}
	if f.anchor != "" {
		reset.AnchorAt, err = moment("--reset-anchor", f.anchor, ago)
	}
	return &reset, err
}

// approval reads how approvals are requested; nil if no flag was given.
func (f *budgetFlags) approval() (*api.BudgetApproval, error) {
	raise, err := amounts("--approval-raise", f.raise)
	if err != nil || f.timeout == "" && f.onTimeout == "" && raise == nil {
		return nil, err
	}
	approval := api.BudgetApproval{OnTimeout: flowfabric.TimeoutBehavior(f.onTimeout), DefaultRaise: raise}
	if f.timeout != "" {
		if approval.Timeout, err = span(f.timeout); err != nil {
			return nil, show.Invalid("--approval-timeout", "write 48h", "%q is not a duration", f.timeout)
		}
	}
	return &approval, nil
}

func (s *session) budgetCreate() *cobra.Command {
	var f budgetFlags
	cmd := s.command("create NAME LIMIT...", "Create a budget: tokens.hard=1200 tokens.soft=800 tokens.reserve=100, or only a dimension to count it", `
flowfabric budgets create team-blue tokens.hard=1200 tokens.soft=800
flowfabric budgets create nightly cost_micros.hard=5000000 --scope lane:night --reset-at day --timezone Europe/Berlin
flowfabric budgets create careful tokens.hard=1000 --on-hard suspend_for_approval --approval-raise tokens=500
`, cobra.MinimumNArgs(2), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		b := api.Budget{
			ID: f.id, Name: args[0], Scope: scopeOf(f.scope), Parent: f.parent, Dimensions: map[string]api.BudgetLimits{},
			OnHard: api.HardAction(f.onHard), OnLeaseLoss: api.LossAction(f.onLoss),
		}
		for _, text := range args[1:] {
			if err := setLimit(b.Dimensions, text); err != nil {
				return err
			}
		}
		reset, err := f.reset()
		if err != nil {
			return err
		}
		approval, err := f.approval()
		if err != nil {
			return err
		}
		if reset != nil {
			b.Reset = *reset
		}
		if approval != nil {
			b.Approval = *approval
		}
		made, err := c.Budgets().Create(ctx, b, ops.AdminAction{Reason: f.reason})
		if err != nil {
			return err
		}
		return s.printBudget(&made.BudgetStatus, nil)
	})
	f.register(cmd)
	cmd.Flags().StringVar(&f.id, "id", "", "id of the budget; generated if absent")
	cmd.Flags().StringVar(&f.scope, "scope", "", "what it covers: namespace, lane:mail, tag:team=red, flow:ID, execution:ID; absent: work that names it")
	cmd.Flags().StringVar(&f.parent, "parent", "", "parent budget, by id or name")
	return cmd
}

// budgetSet changes only the given settings.
func (s *session) budgetSet() *cobra.Command {
	var f budgetFlags
	cmd := s.command("set BUDGET [LIMIT]...", "Change a budget: tokens.hard=2000, tokens.soft=off, tokens=off; other settings stay", `
flowfabric budgets set team-red tokens.hard=2000
flowfabric budgets set team-red tokens.soft=off tokens.reserve=50 --reason 'they asked'
flowfabric budgets set team-red --on-hard fail --reset-at month
`, cobra.MinimumNArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		u, err := f.update(args[1:])
		if err != nil {
			return err
		}
		how := ops.AdminAction{Reason: f.reason}
		if f.revision != 0 {
			how.Revision = &f.revision
		}
		return s.printBudget(c.Budgets().Update(ctx, args[0], u, how))
	})
	f.register(cmd)
	cmd.Flags().StringVar(&f.name, "name", "", "another name")
	cmd.Flags().Int64Var(&f.revision, "expect-revision", 0, "refuse unless the budget has this revision; 0: any")
	cmd.ValidArgsFunction = s.completeBudgets
	return cmd
}

func (f *budgetFlags) update(limits []string) (u api.BudgetUpdate, err error) {
	for _, text := range limits {
		if err := changeLimit(&u, text); err != nil {
			return u, err
		}
	}
	if f.name != "" {
		u.Name = &f.name
	}
	if f.onHard != "" {
		u.OnHard = (*api.HardAction)(&f.onHard)
	}
	if f.onLoss != "" {
		u.OnLeaseLoss = (*api.LossAction)(&f.onLoss)
	}
	if u.Reset, err = f.reset(); err != nil {
		return u, err
	}
	u.Approval, err = f.approval()
	return u, err
}

// budgetChange returns a command that changes the state of a budget.
func (s *session) budgetChange(
	verb, short string, change func(ops.Budgets, context.Context, string, ...ops.AdminAction) (*api.BudgetStatus, error),
) *cobra.Command {
	reason := ""
	cmd := s.command(verb+" BUDGET", short, "flowfabric budgets "+verb+" team-red\nflowfabric budgets "+verb+" team-red --reason 'new month'\n"+
		"flowfabric budgets "+verb+" team-red --json", cobra.ExactArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		return s.printBudget(change(c.Budgets(), ctx, args[0], ops.AdminAction{Reason: reason}))
	})
	auditReason(cmd, &reason)
	cmd.ValidArgsFunction = s.completeBudgets
	return cmd
}

func (s *session) budgetDelete() *cobra.Command {
	reason := ""
	cmd := s.command("delete BUDGET", "Delete a budget that no work depends on", `
flowfabric budgets delete team-red
flowfabric budgets delete team-red --reason 'they are gone'
flowfabric budgets delete team-red --quiet
`, cobra.ExactArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		if err := c.Budgets().Delete(ctx, args[0], ops.AdminAction{Reason: reason}); err != nil {
			return err
		}
		s.printer.Note("deleted: %s", args[0])
		return nil
	})
	auditReason(cmd, &reason)
	cmd.ValidArgsFunction = s.completeBudgets
	return cmd
}

func (s *session) budgetCharge() *cobra.Command {
	var charge api.Charge
	execution := ""
	cmd := s.command("charge BUDGET AMOUNT...", "Book usage without a lease: tokens=40", `
flowfabric budgets charge team-red tokens=40
flowfabric budgets charge team-red tokens=40 --already-spent --dedup-key invoice-17
flowfabric budgets charge team-red tokens=40 --execution 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50
`, cobra.MinimumNArgs(2), func(ctx context.Context, c *flowfabric.Client, args []string) (err error) {
		if charge.Amounts, err = amounts("AMOUNT", args[1:]); err != nil {
			return err
		}
		charge.ExecutionID = flowfabric.ID(execution)
		receipt, err := c.Budgets().Charge(ctx, args[0], charge)
		if err != nil {
			return err
		}
		return show.One(s.printer, receiptView(), receipt)
	})
	cmd.Flags().StringVar(&charge.DedupKey, "dedup-key", "", "key that makes the charge idempotent")
	cmd.Flags().BoolVar(&charge.AlreadySpent, "already-spent", false, "book it even beyond the limits")
	cmd.Flags().StringVar(&execution, "execution", "", "execution that used it; its own usage grows too")
	cmd.ValidArgsFunction = s.completeBudgets
	return cmd
}

func (s *session) budgetRelease() *cobra.Command {
	reason := ""
	cmd := s.command("release BUDGET ID", "Refund what an execution has used of a budget in this epoch", `
flowfabric budgets release team-red 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50
flowfabric budgets release team-red 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --reason 'it was a test'
flowfabric budgets release team-red 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --json
`, cobra.ExactArgs(2), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		released, err := c.Budgets().Refund(ctx, args[0], flowfabric.ID(args[1]), ops.AdminAction{Reason: reason})
		if err != nil {
			return err
		}
		return show.One(s.printer, releasedView(args[1]), releasedSpend{released})
	})
	auditReason(cmd, &reason)
	cmd.ValidArgsFunction = s.completeBudgets
	return cmd
}

func (s *session) budgetSpend() *cobra.Command {
	var query ops.SpendQuery
	epoch, limit, execution := int64(-1), 100, ""
	cmd := s.command("spend BUDGET", "List usage of a budget per execution, largest first", `
flowfabric budgets spend team-red
flowfabric budgets spend team-red --epoch 1 --json
flowfabric budgets spend team-red --execution 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50
`, cobra.ExactArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		if epoch >= 0 {
			query.Epoch = &epoch
		}
		query.ExecutionID = flowfabric.ID(execution)
		return show.First(s.printer, spendView(), c.Budgets().Spend(ctx, args[0], query), limit)
	})
	cmd.Flags().Int64Var(&epoch, "epoch", -1, "in this epoch; default: the current one")
	cmd.Flags().StringVar(&execution, "execution", "", "by this execution")
	cmd.Flags().IntVar(&limit, "limit", 100, "maximum number; 0: all")
	cmd.ValidArgsFunction = s.completeBudgets
	return cmd
}

func (s *session) budgetEpochs() *cobra.Command {
	limit := 100
	cmd := s.command("epochs BUDGET", "List past epochs of a budget, newest first", `
flowfabric budgets epochs team-red
flowfabric budgets epochs team-red --limit 12
flowfabric budgets epochs team-red --json
`, cobra.ExactArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		return show.First(s.printer, s.epochView(), c.Budgets().Epochs(ctx, args[0]), limit)
	})
	cmd.Flags().IntVar(&limit, "limit", 100, "maximum number; 0: all")
	cmd.ValidArgsFunction = s.completeBudgets
	return cmd
}

// usage shows what an execution has used, and the budgets that apply to it.
func (s *session) usage() *cobra.Command {
	attempt, budgets := -1, false
	cmd := s.command("usage ID", "Show what an execution has used, or the budgets that apply to it", `
flowfabric usage 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50
flowfabric usage 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --json
flowfabric usage 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --budgets
`, cobra.ExactArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		id := flowfabric.ID(args[0])
		if budgets {
			return s.printApplicable(ctx, c, id)
		}
		var options ops.UsageOptions
		if attempt >= 0 {
			options.Attempt = &attempt
		}
		usage, err := c.Executions().Usage(ctx, id, options)
		if err != nil {
			return err
		}
		return show.One(s.printer, usageView(), usage)
	})
	cmd.Flags().IntVar(&attempt, "attempt", -1, "only of the attempt with this index")
	cmd.Flags().BoolVar(&budgets, "budgets", false, "show the budgets that decide whether it may start")
	cmd.ValidArgsFunction = s.completeIDs
	return cmd
}

// hasUsed adds the total usage to the view of an execution.
func (s *session) hasUsed(ctx context.Context, c *flowfabric.Client, x *flowfabric.Execution, view *show.View[*flowfabric.Execution]) error {
	if p := s.printer; p.JSON || p.Quiet || p.Template != nil || x.Attempt == nil {
		return nil
	}
	usage, err := c.Executions().Usage(ctx, x.ID)
	if err != nil {
		return err
	}
	view.Columns = append(view.Columns, show.Column[*flowfabric.Execution]{
		Name: "USAGE", Text: func(*flowfabric.Execution) string { return amountText(usage.Amounts) },
	})
	return nil
}

func (s *session) printApplicable(ctx context.Context, c *flowfabric.Client, id flowfabric.ID) error {
	found, err := c.Executions().Budgets(ctx, id)
	if err != nil {
		return err
	}
	p := s.printer
	if p.JSON || p.Template != nil {
		return show.One(p, show.View[api.ApplicableBudgets]{}, found)
	}
	if err := show.All(p, s.budgetView(), found.Budgets); err != nil {
		return err
	}
	if found.Refusal != nil {
		p.Note("it may not start: no capacity under %s %s", found.Refusal.BlockedOn, found.Refusal.Detail)
	}
	return nil
}

// completeBudgets completes the names of budgets.
func (s *session) completeBudgets(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return s.budgetNames(cmd, args, "")
}

func (s *session) budgetNames(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return s.offer(cmd, func(ctx context.Context, c *flowfabric.Client) ([]string, error) {
		page, err := c.Budgets().Page(ctx)
		var found []string
		for _, budget := range page.Items {
			found = append(found, budget.Name)
		}
		return found, err
	})
}
