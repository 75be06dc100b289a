package commands

import (
	"context"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
)

func (s *session) workers() *cobra.Command {
	get := s.command("get INSTANCE", "Show a worker instance", `
flowfabric workers get host-17-a1b2
flowfabric workers get host-17-a1b2 --json
flowfabric workers get host-17-a1b2 --template '{{.state}}'
`, cobra.ExactArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		worker, err := c.Workers().Get(ctx, args[0])
		if err != nil {
			return err
		}
		return show.One(s.printer, s.workerView(), worker)
	})
	leases := s.command("leases INSTANCE", "List the executions that an instance holds leases on", `
flowfabric workers leases host-17-a1b2
flowfabric workers leases host-17-a1b2 --wide
flowfabric workers leases host-17-a1b2 --json
`, cobra.ExactArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		all, err := c.Workers().Leases(ctx, args[0])
		if err != nil {
			return err
		}
		return show.All(s.printer, s.executions(), all)
	})
	get.ValidArgsFunction, leases.ValidArgsFunction = s.completeInstances, s.completeInstances
	return group("workers", "The fleet", s.workerList(), get, leases,
		s.workerDrain("drain", "Stop workers from claiming new work", ops.Workers.Drain),
		s.workerDrain("undrain", "End a drain", ops.Workers.Undrain), s.workerDead())
}

func (s *session) workerList() *cobra.Command {
	var filter ops.WorkerFilter
	cmd := s.command("list", "List worker instances", `
flowfabric workers list
flowfabric workers list --state all
flowfabric workers list --lane mail --json
`, cobra.NoArgs, func(ctx context.Context, c *flowfabric.Client, _ []string) error {
		return show.List(s.printer, s.workerView(), c.Workers().List(ctx, filter))
	})
	cmd.Flags().StringVar(&filter.Lane, "lane", "", "only those that claim from this lane")
	cmd.Flags().StringVar(&filter.Capability, "capability", "", "only those with this capability")
	cmd.Flags().StringVar(&filter.State, "state", "", "live (default), draining, dead or all")
	return cmd
}

func (s *session) workerDrain(name, short string, act func(ops.Workers, context.Context, ops.WorkerTarget) error) *cobra.Command {
	worker := ""
	cmd := s.command(name+" [INSTANCE]", short, `
flowfabric workers `+name+` host-17-a1b2
flowfabric workers `+name+` --worker mailer
flowfabric workers `+name+` --worker mailer --quiet
`, cobra.MaximumNArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		target := ops.WorkerTarget{WorkerID: worker}
		if len(args) == 1 {
			target.InstanceID = args[0]
		}
		if (target.WorkerID == "") == (target.InstanceID == "") {
			return show.Invalid("INSTANCE", "name an instance, or all of a worker: --worker NAME", "an instance or --worker is needed")
		}
		if err := act(c.Workers(), ctx, target); err != nil {
			return err
		}
		s.printer.Note("%s: %s", name, target.WorkerID+target.InstanceID)
		return nil
	})
	cmd.Flags().StringVar(&worker, "worker", "", "all instances of this worker")
	cmd.ValidArgsFunction = s.completeInstances
	return cmd
}

func (s *session) workerDead() *cobra.Command {
	var options ops.DeadOptions
	cmd := s.command("dead INSTANCE", "Declare an instance dead; its leases lapse at once", `
flowfabric workers dead host-17-a1b2 --reason 'host burned'
flowfabric workers dead host-17-a1b2 --reason 'host burned' --keep-leases
flowfabric workers dead host-17-a1b2 --reason 'host burned' --quiet
`, cobra.ExactArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		if err := c.Workers().MarkDead(ctx, args[0], options); err != nil {
			return err
		}
		s.printer.Note("dead: %s", args[0])
		return nil
	})
	cmd.Flags().StringVar(&options.Reason, "reason", "", "why; required")
	cmd.Flags().BoolVar(&options.KeepLeases, "keep-leases", false, "let its leases run until they lapse")
	cmd.ValidArgsFunction = s.completeInstances
	return cmd
}
