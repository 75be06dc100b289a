package commands

import (
	"context"
	"iter"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
)

// eventFlags are the flags of events (U106).
type eventFlags struct {
	follow                     bool
	from, lane, outcome, actor string
	instance, since, flow      string
	kinds, tags                []string
	limit                      int
}

func (f *eventFlags) register(fs *pflag.FlagSet) {
	fs.BoolVarP(&f.follow, "follow", "f", false, "print events as they happen, until interrupted")
	fs.StringVar(&f.from, "from", "", "cursor, start or end; default start, or end with --follow and without ID and --flow")
	fs.StringSliceVar(&f.kinds, "event", nil, "event types, or prefixes that end with a dot: execution.")
	fs.StringVar(&f.lane, "lane", "", "only of this lane")
	fs.StringVar(&f.flow, "flow", "", "only of this flow and its members")
	fs.StringVar(&f.outcome, "outcome", "", "only of executions with this outcome: success, failed, cancelled, expired, skipped")
	fs.StringVar(&f.instance, "worker-instance-id", "", "only of this worker instance")
	fs.StringArrayVar(&f.tags, "tag", nil, "key=value; may be repeated")
	fs.StringVar(&f.actor, "actor", "", "only by client, worker, operator or engine")
	fs.StringVar(&f.since, "since", "", "RFC 3339, a date, or how long ago: 2h")
	fs.IntVar(&f.limit, "limit", 0, "maximum number; 0: all")
}

func (f *eventFlags) options(id string) (o ops.ReadOptions, err error) {
	o = ops.ReadOptions{After: f.from, EventFilter: ops.EventFilter{
		Kinds: f.kinds, ExecutionID: flowfabric.ID(id), FlowID: flowfabric.ID(f.flow), Lane: f.lane, Outcome: f.outcome, InstanceID: f.instance, ActorType: f.actor,
	}}
	if o.After == "" && (!f.follow || id != "" || f.flow != "") {
		o.After = api.FromStart
	}
	if o.Tags, err = pairs("--tag", f.tags); err != nil {
		return o, err
	}
	if f.since != "" {
		o.Since, err = moment("--since", f.since, ago)
	}
	return o, err
}

func (s *session) events() *cobra.Command {
	var flags eventFlags
	cmd := s.command("events [ID]", "Print or follow the event log", `
flowfabric events 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50
flowfabric events --since 1h --event execution.completed --json
flowfabric events --follow --limit 1 --timeout 1s
`, cobra.MaximumNArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		id := ""
		if len(args) == 1 {
			id = args[0]
		}
		options, err := flags.options(id)
		if err != nil {
			return err
		}
		if !flags.follow {
			return show.First(s.printer, s.eventView(), pastEvents(ctx, c, options), flags.limit)
		}
		if err := show.First(s.live(), s.eventView(), c.Events().Follow(ctx, options), flags.limit); err != nil {
			return err
		}
		return context.Cause(ctx)
	})
	flags.register(cmd.Flags())
	cmd.ValidArgsFunction = s.completeIDs
	return cmd
}

// live returns a printer that writes each row immediately.
func (s *session) live() *show.Printer {
	p := *s.printer
	p.Terminal = false
	return &p
}

// pastEvents reads the log to its end.
func pastEvents(ctx context.Context, c *flowfabric.Client, o ops.ReadOptions) iter.Seq2[flowfabric.Event, error] {
	return func(yield func(flowfabric.Event, error) bool) {
		o.Limit = 1000
		for {
			page, err := c.Events().Read(ctx, o)
			if err != nil {
				yield(flowfabric.Event{}, err)
				return
			}
			for _, event := range page.Events {
				if !yield(event, nil) {
					return
				}
			}
			if page.AtEnd {
				return
			}
			o.After = page.Next
		}
	}
}

// followToEnd prints the events of an execution until it has ended.
func (s *session) followToEnd(ctx context.Context, c *flowfabric.Client, id flowfabric.ID) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events := c.Events().Follow(ctx, ops.ReadOptions{After: api.FromStart, EventFilter: ops.EventFilter{ExecutionID: id}})
	p := s.live()
	p.Out = s.Err // standard output gets only the result
	return show.List(p, s.eventView(), func(yield func(flowfabric.Event, error) bool) {
		for event, err := range events {
			if !yield(event, err) || event.Kind == "execution.completed" {
				return
			}
		}
	})
}
