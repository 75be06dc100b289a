package commands

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/settings"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/top"
)

func (s *session) top() *cobra.Command {
	var options top.Options
	var once bool
	var every time.Duration
	cmd := &cobra.Command{
		Use: "top", Short: "Watch lanes, workers, running and stuck work; ? shows the keys", Args: counted(cobra.NoArgs),
		Long: "Watch lanes, workers, running and stuck work. Keys select an execution, show it, cancel it, replay it; ? lists them. Without a\n" +
			"terminal, and with --once, --json, --quiet or --template, the current state is printed once.",
		Example: examples("flowfabric top --once\nflowfabric top --lane mail --stuck-after 5m --once\nflowfabric top --json"),
	}
	fs := cmd.Flags()
	fs.StringVar(&options.Lane, "lane", "", "only this lane")
	fs.StringVar(&options.Kind, "kind", "", "only executions of this kind")
	fs.DurationVar(&options.StuckAfter, "stuck-after", time.Minute, "ready work that waits longer is shown as stuck")
	fs.DurationVar(&every, "every", time.Second, "refresh interval")
	fs.BoolVar(&once, "once", false, "print the current state and exit")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		live := !once && s.printer.Terminal && isTerminal(s.In) && !s.printer.JSON && !s.printer.Quiet && s.printer.Template == nil
		return s.withClient(cmd, func(ctx context.Context, c *flowfabric.Client) error {
			if live {
				return s.watchTop(ctx, cmd, c, options, every)
			}
			snap, err := top.Look(ctx, c, options)
			if err != nil {
				return err
			}
			return s.printTop(snap)
		})
	}
	return cmd
}

// watchTop shows the view until the user quits.
func (s *session) watchTop(ctx context.Context, cmd *cobra.Command, c *flowfabric.Client, options top.Options, every time.Duration) error {
	values, err := s.clientSettings(cmd)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx) // ends pending calls with the view
	defer cancel()
	model := top.New(ctx, top.Config{
		Client: c, Server: strings.Split(settings.Get[string](values, "server"), ",")[0], Options: options, Every: max(every, 100*time.Millisecond),
		Color: s.printer.Color, Now: time.Now,
	})
	_, err = tea.NewProgram(model, tea.WithContext(ctx), tea.WithInput(s.In), tea.WithOutput(s.Out), tea.WithEnvironment(s.Environ), tea.WithoutSignalHandler()).Run()
	if errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// printTop prints a snapshot: one document for programs, tables for people, with --quiet the ids of what is running or stuck.
func (s *session) printTop(snap *top.Snapshot) error {
	if s.printer.JSON || s.printer.Template != nil {
		return show.One(s.printer, show.View[*top.Snapshot]{}, snap)
	}
	type stuck = top.Stuck
	stuckView := show.View[stuck]{ID: func(x stuck) string { return bareID(x.Execution.ID) }, Columns: []show.Column[stuck]{
		{Name: "ID", Text: func(x stuck) string { return bareID(x.Execution.ID) }},
		{Name: "KIND", Text: func(x stuck) string { return x.Execution.Kind }},
		{Name: "LANE", Text: func(x stuck) string { return x.Execution.Lane }},
		{Name: "STATUS", Text: func(x stuck) string { return string(x.Execution.Status) }},
		{Name: "SINCE", Text: func(x stuck) string { return s.printer.Time(x.Execution.StatusSince) }},
		{Name: "WHY", Text: func(x stuck) string { return x.Why }},
	}}
	executions := func(all []*flowfabric.Execution) func() error {
		return func() error { return show.All(s.printer, s.executions(), all) }
	}
	sections := []struct {
		name  string
		count int
		print func() error
	}{
		{"lanes", len(snap.Lanes), func() error { return show.All(s.printer, s.laneView(), snap.Lanes) }},
		{"workers", len(snap.Workers), func() error { return show.All(s.printer, s.workerView(), snap.Workers) }},
		{"running", len(snap.Running), executions(snap.Running)},
		{"stuck", len(snap.Stuck), func() error { return show.All(s.printer, stuckView, snap.Stuck) }},
		{"failed", len(snap.Failed), executions(snap.Failed)},
	}
	if s.printer.Quiet {
		sections = sections[2:4]
	}
	for i, section := range sections {
		if !s.printer.Quiet {
			if i > 0 {
				fmt.Fprintln(s.Out)
			}
			fmt.Fprintf(s.Out, "%s: %d\n", section.name, section.count)
		}
		if section.count == 0 {
			continue
		}
		if err := section.print(); err != nil {
			return err
		}
	}
	if snap.More {
		s.printer.Note("some lists are truncated to 100 entries")
	}
	return nil
}
