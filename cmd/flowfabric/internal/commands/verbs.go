package commands

import (
	"context"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
)

// verb is an operator's command on named executions, or as a bulk job on those that --where selects (U171).
type verb struct {
	name, short, example string
	bulk                 string // action of a bulk job; "": none
	destructive          bool   // asks before acting on several
	flags                func(fs *pflag.FlagSet, f *verbFlags)
	check                func(f *verbFlags) error // nil: nothing to check
	act                  func(ctx context.Context, c *flowfabric.Client, id flowfabric.ID, f *verbFlags) (outcome, error)
	fill                 func(r *ops.BulkRequest, f *verbFlags)                                                // nil: nothing to add
	complete             func(*session, *cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) // nil: completes all executions
}

// verbFlags are the flags of all verbs; each verb uses some.
type verbFlags struct {
	reason, where, until, deadline string
	expect                         ops.Expect
	all, dryRun, yes, noWait       bool
	maxAffected, rate              int

	keepSteps, hold, end, force bool
	ignoreDependencies          bool
	cascade                     string
	to                          int
	set, unset                  []string
	workerID, instanceID        string
	leaseTTL, grantTTL          time.Duration

	given               func(flag string) bool
	untilAt, deadlineAt time.Time
	changes             map[string]*string
}

func (f *verbFlags) action() ops.Action {
	return ops.Action{Reason: f.reason, Expect: f.expect}
}

// verbTable lists the verbs.
var verbTable = []verb{
	{
		name: "cancel", short: "Cancel executions", bulk: api.BulkCancel, destructive: true,
		example: "flowfabric cancel 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --reason 'wrong input'\n" +
			"flowfabric cancel --where lane=mail,status=ready --dry-run\nflowfabric cancel --where lane=mail,status=ready --yes",
		act: func(ctx context.Context, c *flowfabric.Client, id flowfabric.ID, f *verbFlags) (outcome, error) {
			return ended(c.Cancel(ctx, id, f.reason, flowfabric.CancelOptions{Expect: f.expect}))
		},
	},
	{
		name: "replay", short: "Run finished executions again", bulk: api.BulkReplay,
		example: "flowfabric replay 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50\n" +
			"flowfabric replay 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --keep-steps\nflowfabric replay --where status=failed,kind=mail --dry-run",
		flags: func(fs *pflag.FlagSet, f *verbFlags) {
			fs.BoolVar(&f.keepSteps, "keep-steps", false, "skip the steps that the last run completed")
			fs.StringVar(&f.cascade, "cascade", "", "for a member of a flow: which of its dependents run again: none (default), skipped or all")
			fs.BoolVar(&f.ignoreDependencies, "ignore-dependencies", false, "run a skipped member although its dependencies ended otherwise")
			fs.StringVar(&f.deadline, "deadline", "", "new deadline: a time, or a duration from now")
		},
		act: func(ctx context.Context, c *flowfabric.Client, id flowfabric.ID, f *verbFlags) (outcome, error) {
			return ended(c.Operate().Replay(ctx, id, ops.ReplayOptions{
				Action: f.action(), KeepSteps: f.keepSteps, Deadline: f.deadlineAt, Cascade: ops.Cascade(f.cascade), IgnoreDependencies: f.ignoreDependencies,
			}))
		},
		fill: func(r *ops.BulkRequest, f *verbFlags) {
			r.KeepSteps, r.Deadline, r.Cascade, r.IgnoreDependencies = f.keepSteps, f.deadlineAt, ops.Cascade(f.cascade), f.ignoreDependencies
		},
	},
	{
		name: "hold", short: "Keep executions from starting", bulk: api.BulkHold,
		example: "flowfabric hold 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --reason 'database moves'\n" +
			"flowfabric hold --where kind=mail --dry-run\nflowfabric hold --where kind=mail --yes",
		act: func(ctx context.Context, c *flowfabric.Client, id flowfabric.ID, f *verbFlags) (outcome, error) {
			return ended(c.Operate().Hold(ctx, id, f.action()))
		},
	},
	{
		name: "release-hold", short: "End holds", bulk: api.BulkReleaseHold,
		example: "flowfabric release-hold 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50\n" +
			"flowfabric release-hold --where kind=mail --dry-run\nflowfabric release-hold --where kind=mail --yes",
		act: func(ctx context.Context, c *flowfabric.Client, id flowfabric.ID, f *verbFlags) (outcome, error) {
			return ended(c.Operate().ReleaseHold(ctx, id, f.action()))
		},
	},
	{
		name: "priority", short: "Change the priority of executions", bulk: api.BulkPriority,
		example: "flowfabric priority 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --to 100\n" +
			"flowfabric priority --where tag.customer=acme --to 500 --dry-run\nflowfabric priority --where tag.customer=acme --to 500 --yes",
		flags: func(fs *pflag.FlagSet, f *verbFlags) { fs.IntVar(&f.to, "to", 0, "new priority, 0 to 9000") },
		check: func(f *verbFlags) error {
			if !f.given("to") {
				return show.Invalid("--to", "give --to with a number, 0 to 9000", "the new priority is missing")
			}
			return nil
		},
		act: func(ctx context.Context, c *flowfabric.Client, id flowfabric.ID, f *verbFlags) (outcome, error) {
			return ended(c.Operate().SetPriority(ctx, id, f.to, f.action()))
		},
		fill: func(r *ops.BulkRequest, f *verbFlags) { r.Priority = f.to },
	},
	{
		name: "revoke", short: "Revoke leases of workers", destructive: true,
		example: "flowfabric revoke 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50\n" +
			"flowfabric revoke 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --hold\nflowfabric revoke 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --reason 'stuck'",
		flags: func(fs *pflag.FlagSet, f *verbFlags) {
			fs.BoolVar(&f.hold, "hold", false, "hold in the same step, so that no other worker takes over")
			fs.StringVar(&f.instanceID, "hand-to", "", "grant it to this worker instance in the same step, and print the grant key")
			fs.DurationVar(&f.grantTTL, "grant-ttl", 0, "validity of the grant, at most 60s; default 5s")
		},
		act: revoke,
	},
	{
		name: "claim", short: "Lease executions to yourself, to end them by hand",
		example: "flowfabric claim 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --lease-ttl 10m\n" +
			"flowfabric claim 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --force\nflowfabric claim 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --json",
		flags: func(fs *pflag.FlagSet, f *verbFlags) {
			fs.StringVar(&f.workerID, "worker-id", "", "worker id; default operator")
			fs.StringVar(&f.instanceID, "worker-instance-id", "", "worker instance; default operator")
			fs.DurationVar(&f.leaseTTL, "lease-ttl", 0, "duration of the lease; default 30s")
			fs.BoolVar(&f.force, "force", false, "even if the lane is paused or disabled, or budgets and quotas have no capacity")
		},
		act: func(ctx context.Context, c *flowfabric.Client, id flowfabric.ID, f *verbFlags) (outcome, error) {
			task, err := c.Operate().Claim(ctx, id, ops.OperatorClaim{
				Action: f.action(), WorkerID: f.workerID, InstanceID: f.instanceID, LeaseTTL: f.leaseTTL, Force: f.force,
			})
			if err != nil {
				return outcome{}, err
			}
			return outcome{task.ID, "lease " + task.Lease.Fence(), task}, nil
		},
	},
	{
		name: "tag", short: "Change the tags of executions", bulk: api.BulkTag,
		example: "flowfabric tag 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --set team=blue\n" +
			"flowfabric tag 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --unset team\nflowfabric tag --where kind=mail --set team=blue --dry-run",
		flags: func(fs *pflag.FlagSet, f *verbFlags) {
			fs.StringArrayVar(&f.set, "set", nil, "key=value; may be repeated")
			fs.StringArrayVar(&f.unset, "unset", nil, "key to delete; may be repeated")
		},
		check: func(f *verbFlags) error {
			if len(f.changes) == 0 {
				return show.Invalid("--set", "give --set key=value or --unset key", "no change is given")
			}
			return nil
		},
		act: func(ctx context.Context, c *flowfabric.Client, id flowfabric.ID, f *verbFlags) (outcome, error) {
			tags, err := c.Executions().SetTags(ctx, id, f.changes, f.action())
			return outcome{id, tagText(tags), map[string]any{"tags": tags}}, err
		},
		fill: func(r *ops.BulkRequest, f *verbFlags) { r.Tags = f.changes },
	},
	{
		name: "retain", short: "Exclude executions from retention and deletion", bulk: api.BulkRetain,
		example: "flowfabric retain 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --reason 'case 17'\n" +
			"flowfabric retain 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --until 2030-01-01 --reason 'case 17'\nflowfabric retain 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --end",
		flags: func(fs *pflag.FlagSet, f *verbFlags) {
			fs.StringVar(&f.until, "until", "", "until this time, or for this duration; default: forever")
			fs.BoolVar(&f.end, "end", false, "end the retention")
		},
		check: func(f *verbFlags) error {
			if f.end && (f.where != "" || f.all) {
				return show.Invalid("--end", "name the executions by id", "a bulk job cannot end a retention")
			}
			return nil
		},
		act: func(ctx context.Context, c *flowfabric.Client, id flowfabric.ID, f *verbFlags) (outcome, error) {
			if f.end {
				return ended(c.Operate().Unretain(ctx, id, f.action()))
			}
			return ended(c.Operate().Retain(ctx, id, ops.RetainOptions{Action: f.action(), Until: f.untilAt}))
		},
		fill: func(r *ops.BulkRequest, f *verbFlags) { r.Until = f.untilAt },
	},
	{
		name: "delete", short: "Delete finished executions with all their data", bulk: api.BulkDelete, destructive: true,
		example: "flowfabric delete 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50\n" +
			"flowfabric delete --where status=succeeded,completed_to=720h --dry-run\nflowfabric delete --where status=succeeded,completed_to=720h --yes",
		act: func(ctx context.Context, c *flowfabric.Client, id flowfabric.ID, f *verbFlags) (outcome, error) {
			err := c.Operate().Delete(ctx, id, f.action())
			return outcome{id, "deleted", map[string]any{"execution_id": id, "deleted": true}}, err
		},
	},
}

// verbs creates the commands of the table.
func (s *session) verbs() []*cobra.Command {
	all := make([]*cobra.Command, len(verbTable))
	for i, v := range verbTable {
		all[i] = s.verb(v)
	}
	return all
}

func (s *session) verb(v verb) *cobra.Command {
	f := &verbFlags{}
	cmd := s.command(v.name+" ID…", v.short, v.example, cobra.ArbitraryArgs, func(ctx context.Context, c *flowfabric.Client, args []string) error {
		if err := f.read(v); err != nil {
			return err
		}
		if f.where != "" || f.all {
			return s.bulkVerb(ctx, c, v, f, args)
		}
		return s.eachVerb(ctx, c, v, f, args)
	})
	fs := cmd.Flags()
	f.given = fs.Changed
	fs.StringVar(&f.reason, "reason", "", "reason, recorded in the events")
	fs.StringVar((*string)(&f.expect.Status), "expect-status", "", "refuse unless the execution has this status")
	fs.StringVar(&f.expect.LeaseID, "expect-lease-id", "", "refuse unless it is leased under this id")
	fs.Int64Var(&f.expect.LeaseEpoch, "expect-lease-epoch", 0, "refuse unless it has this lease epoch; 0: any")
	if v.bulk != "" {
		fs.StringVar(&f.where, "where", "", "select executions instead of ids: status=failed,lane=x (filter names of list)")
		fs.BoolVar(&f.all, "all", false, "all executions")
		fs.BoolVar(&f.dryRun, "dry-run", false, "count and show a sample, change nothing")
		fs.BoolVar(&f.noWait, "no-wait", false, "return once the job has started")
		fs.IntVar(&f.maxAffected, "max-affected", 0, "refuse if more match; 0: any number")
		fs.IntVar(&f.rate, "rate", 0, "executions per second; 0: no limit")
	}
	if v.bulk != "" || v.destructive {
		fs.BoolVar(&f.yes, "yes", false, "do not ask")
	}
	if v.flags != nil {
		v.flags(fs, f)
	}
	cmd.ValidArgsFunction = s.completeIDs
	if v.complete != nil {
		cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			return v.complete(s, cmd, args, begun)
		}
	}
	return cmd
}

// read parses flags.
func (f *verbFlags) read(v verb) (err error) {
	if f.until != "" {
		if f.untilAt, err = moment("--until", f.until, ahead); err != nil {
			return err
		}
	}
	if f.deadline != "" {
		if f.deadlineAt, err = moment("--deadline", f.deadline, ahead); err != nil {
			return err
		}
	}
	set, err := pairs("--set", f.set)
	if err != nil {
		return err
	}
	f.changes = map[string]*string{}
	for key, value := range set {
		f.changes[key] = &value
	}
	for _, key := range f.unset {
		f.changes[key] = nil
	}
	if v.check != nil {
		return v.check(f)
	}
	return nil
}
