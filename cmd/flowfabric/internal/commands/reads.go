package commands

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
)

func (s *session) get() *cobra.Command {
	input, children := false, false
	cmd := s.command("get ID", "Show an execution", `
flowfabric get 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50
flowfabric get 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --json
flowfabric get 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --input
`, cobra.ExactArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		switch {
		case input && children:
			return show.Invalid("--children", "give one of --input and --children", "input and children are both requested")
		case input:
			return s.printInput(ctx, c, flowfabric.ID(args[0]), "")
		case children:
			return show.List(s.printer, s.memberView(), c.Executions().Children(ctx, flowfabric.ID(args[0])))
		}
		x, err := c.Get(ctx, flowfabric.ID(args[0]))
		if err != nil {
			return err
		}
		view := s.execution()
		if err := s.waitsFor(ctx, c, x, &view); err != nil {
			return err
		}
		if err := s.hasUsed(ctx, c, x, &view); err != nil {
			return err
		}
		return show.One(s.printer, view, x)
	})
	cmd.Flags().BoolVar(&input, "input", false, "print the input, byte for byte")
	cmd.Flags().BoolVar(&children, "children", false, "list the children of its current run")
	cmd.ValidArgsFunction = s.completeIDs
	return cmd
}

func (s *session) input() *cobra.Command {
	name := ""
	cmd := s.command("input ID", "Print the input of an execution, byte for byte", `
flowfabric input 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50
flowfabric input 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 > input.json
flowfabric get 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --input
`, cobra.ExactArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		return s.printInput(ctx, c, flowfabric.ID(args[0]), name)
	})
	cmd.Flags().StringVar(&name, "name", "", "print the named input that it received from another member of its flow")
	cmd.ValidArgsFunction = s.completeIDs
	return cmd
}

// printInput prints the input, or the named one.
func (s *session) printInput(ctx context.Context, c *flowfabric.Client, id flowfabric.ID, name string) (err error) {
	var p flowfabric.Payload
	if name == "" {
		p, err = c.Executions().Input(ctx, id)
	} else {
		p, err = c.Executions().NamedInput(ctx, id, name)
	}
	if err != nil {
		return err
	}
	return s.printer.Raw(p.Data)
}

func (s *session) result() *cobra.Command {
	wait := false
	cmd := s.command("result ID", "Print the result of an execution, byte for byte", `
flowfabric result 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50
flowfabric result 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --wait
flowfabric result 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 > result.json
`, cobra.ExactArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		if wait {
			if _, err := c.Wait(ctx, flowfabric.ID(args[0])); err != nil {
				return err
			}
		}
		p, err := c.Executions().Result(ctx, flowfabric.ID(args[0]))
		if err != nil {
			return err
		}
		return s.printer.Raw(p.Data)
	})
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until it has ended")
	cmd.ValidArgsFunction = s.completeIDs
	return cmd
}

func (s *session) list() *cobra.Command {
	var filter *filterFlags
	var order string
	var limit int
	var watch bool
	cmd := s.command("list", "List and search executions", `
flowfabric list --status failed,expired --created-from 24h
flowfabric list --lane mail --tag customer=acme --json
flowfabric list --status running --watch
`, cobra.NoArgs, func(ctx context.Context, c *flowfabric.Client, _ []string) error {
		f, err := filter.filter()
		if err != nil {
			return err
		}
		options := ops.ListOptions{Filter: f, Order: ops.Order(order), Limit: min(limit, 1000)}
		list := func(p *show.Printer) error {
			return show.First(p, s.executions(), c.Executions().List(ctx, options), limit)
		}
		if watch {
			return s.watch(ctx, list)
		}
		return list(s.printer)
	})
	filter = newFilterFlags(cmd.Flags())
	cmd.Flags().StringVar(&order, "order", "", "created_desc (default), created_asc, completed_desc or id_asc")
	cmd.Flags().IntVar(&limit, "limit", 100, "maximum number; 0: all")
	cmd.Flags().BoolVar(&watch, "watch", false, "print the list again on every change, until interrupted")
	return cmd
}

func (s *session) count() *cobra.Command {
	var filter *filterFlags
	by := ""
	cmd := s.command("count", "Count executions", `
flowfabric count
flowfabric count --status failed --created-from 1h
flowfabric count --by lane
`, cobra.NoArgs, func(ctx context.Context, c *flowfabric.Client, _ []string) error {
		f, err := filter.filter()
		if err != nil {
			return err
		}
		n, err := c.Executions().Count(ctx, f, ops.CountOptions{By: by})
		if err != nil {
			return err
		}
		return s.printCount(n, by)
	})
	filter = newFilterFlags(cmd.Flags())
	cmd.Flags().StringVar(&by, "by", "", "also count by status, public_state, kind, lane or tag.<key>")
	return cmd
}

func (s *session) printCount(n api.Count, by string) error {
	total := strconv.Itoa(n.Total)
	if n.AtLeast {
		total += " or more"
	}
	type c = api.Count
	view := show.View[c]{ID: func(c) string { return strconv.Itoa(n.Total) }}
	for _, value := range slices.Sorted(maps.Keys(n.Counts)) {
		view.Columns = append(view.Columns, show.Column[c]{Name: value, Text: func(c) string { return strconv.Itoa(n.Counts[value]) }})
	}
	if by == "" && !s.printer.JSON && s.printer.Template == nil && !s.printer.Quiet {
		_, err := fmt.Fprintln(s.Out, total)
		return err
	}
	view.Columns = append(view.Columns, show.Column[c]{Name: "TOTAL", Text: func(c) string { return total }})
	return show.One(s.printer, view, n)
}

func (s *session) attempts() *cobra.Command {
	leases, steps := false, false
	cmd := s.command("attempts ID [INDEX]", "List the attempts of an execution, or show one", `
flowfabric attempts 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50
flowfabric attempts 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 latest
flowfabric attempts 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 0 --json
`, cobra.RangeArgs(1, 2), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		id := flowfabric.ID(args[0])
		switch {
		case len(args) == 2:
			return s.oneAttempt(ctx, c, id, args[1])
		case leases:
			return s.printLeases(ctx, c, id)
		case steps:
			return s.printSteps(ctx, c, id, ops.StepsOptions{})
		}
		all, err := c.Executions().Attempts(ctx, id)
		if err != nil {
			return err
		}
		return show.All(s.printer, s.attemptView(), all)
	})
	cmd.Flags().BoolVar(&leases, "leases", false, "list the leases instead")
	cmd.Flags().BoolVar(&steps, "steps", false, "list the steps instead")
	cmd.ValidArgsFunction = s.completeIDs
	return cmd
}

func (s *session) oneAttempt(ctx context.Context, c *flowfabric.Client, id flowfabric.ID, which string) error {
	index := ops.LatestAttempt
	if which != latestAttempt {
		n, err := number("INDEX", which)
		if err != nil {
			return err
		}
		index = n
	}
	attempt, err := c.Executions().Attempt(ctx, id, index)
	if err != nil {
		return err
	}
	return show.One(s.printer, s.attemptView(), *attempt)
}

func (s *session) leases() *cobra.Command {
	cmd := s.command("leases ID", "List the leases of an execution", `
flowfabric leases 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50
flowfabric leases 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --wide
flowfabric leases 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --json
`, cobra.ExactArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		return s.printLeases(ctx, c, flowfabric.ID(args[0]))
	})
	cmd.ValidArgsFunction = s.completeIDs
	return cmd
}

func (s *session) steps() *cobra.Command {
	run := -1
	cmd := s.command("steps ID", "List the stored steps of an execution", `
flowfabric steps 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50
flowfabric steps 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --run 0
flowfabric steps 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --json
`, cobra.ExactArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		var options ops.StepsOptions
		if run >= 0 {
			options.Run = &run
		}
		return s.printSteps(ctx, c, flowfabric.ID(args[0]), options)
	})
	cmd.Flags().IntVar(&run, "run", -1, "of this run; -1: the current one")
	cmd.ValidArgsFunction = s.completeIDs
	return cmd
}

func (s *session) printLeases(ctx context.Context, c *flowfabric.Client, id flowfabric.ID) error {
	return show.List(s.printer, s.leaseView(), c.Executions().Leases(ctx, id))
}

func (s *session) printSteps(ctx context.Context, c *flowfabric.Client, id flowfabric.ID, o ops.StepsOptions) error {
	all, err := c.Executions().Steps(ctx, id, o)
	if err != nil {
		return err
	}
	return show.All(s.printer, s.stepView(), all)
}
