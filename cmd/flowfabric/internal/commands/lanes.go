package commands

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
)

func (s *session) lanes() *cobra.Command {
	list := s.command("list", "List lanes", `
flowfabric lanes list
flowfabric lanes list --wide
flowfabric lanes list --json
`, cobra.NoArgs, func(ctx context.Context, c *flowfabric.Client, _ []string) error {
		return show.List(s.printer, s.laneView(), c.Lanes().List(ctx))
	})
	get := s.command("get LANE", "Show a lane", `
flowfabric lanes get default
flowfabric lanes get default --json
flowfabric lanes get default --template '{{.lane}}'
`, cobra.ExactArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		return s.printLane(c.Lanes().Get(ctx, args[0]))
	})
	get.ValidArgsFunction = s.completeLanes
	cmd := group("lanes", "Named queues", list, get, s.laneSet())
	for _, a := range []struct {
		name, short string
		act         func(ops.Lanes, context.Context, string, ...ops.LaneAction) (*api.Lane, error)
	}{
		{"pause", "Accept submits to a lane, but start nothing", ops.Lanes.Pause},
		{"resume", "Resume a lane", ops.Lanes.Resume},
		{"drain", "Refuse submits to a lane, but finish its work", ops.Lanes.Drain},
		{"disable", "Refuse submits to a lane, and start nothing", ops.Lanes.Disable},
	} {
		cmd.AddCommand(s.laneAction(a.name, a.short, a.act))
	}
	return cmd
}

func (s *session) laneAction(name, short string, act func(ops.Lanes, context.Context, string, ...ops.LaneAction) (*api.Lane, error)) *cobra.Command {
	reason := ""
	cmd := s.command(name+" LANE", short, `
flowfabric lanes `+name+` default
flowfabric lanes `+name+` default --reason 'the mail server moves'
flowfabric lanes `+name+` default --json
`, cobra.ExactArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		return s.printLane(act(c.Lanes(), ctx, args[0], ops.LaneAction{Reason: reason}))
	})
	cmd.Flags().StringVar(&reason, "reason", "", "reason, recorded in the event")
	cmd.ValidArgsFunction = s.completeLanes
	return cmd
}

func (s *session) printLane(lane *api.Lane, err error) error {
	if err != nil {
		return err
	}
	return show.One(s.printer, s.laneView(), lane)
}

// laneSet changes only the given settings.
func (s *session) laneSet() *cobra.Command {
	var state, fairness, reason, policy string
	var most, retries int
	var ageing time.Duration
	var weights []string
	var fs *pflag.FlagSet
	cmd := s.command("set LANE", "Change settings of a lane, creating it if necessary; other settings stay", `
flowfabric lanes set mail --max-concurrent 20
flowfabric lanes set mail --fairness key --weight acme=3
flowfabric lanes set mail --retries 5
`, cobra.ExactArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		settings, revision, err := laneNow(ctx, c, args[0])
		if err != nil {
			return err
		}
		if fs.Changed("state") {
			settings.State = api.LaneState(state)
		}
		if fs.Changed("fairness") {
			settings.Fairness = fairness
		}
		if fs.Changed("max-concurrent") {
			settings.MaxConcurrent = most
		}
		if fs.Changed("ageing") {
			settings.Ageing = ageing
		}
		if fs.Changed("weight") {
			if settings.FairnessWeights, err = shares(weights); err != nil {
				return err
			}
		}
		if err := s.laneRetries(fs, &settings, retries, policy); err != nil {
			return err
		}
		return s.printLane(c.Lanes().Put(ctx, args[0], settings, ops.LaneAction{Reason: reason, Revision: revision}))
	})
	fs = cmd.Flags()
	fs.StringVar(&state, "state", "", "active, paused, draining or disabled")
	fs.IntVar(&most, "max-concurrent", 0, "maximum concurrent executions; 0: no limit")
	fs.DurationVar(&ageing, "ageing", 0, "waiting time that is worth one point of priority; 0: priority always wins")
	fs.StringVar(&fairness, "fairness", "", "auto: namespaces take turns; off: only priority and age; namespace or key: take turns by these")
	fs.StringArrayVar(&weights, "weight", nil, "share of a key: key=3; may be repeated, replaces all")
	fs.IntVar(&retries, "retries", -1, "retries of later submits whose policy does not state them; 0: none, -1: the default again")
	fs.StringVar(&policy, "default-policy", "", "the same as JSON, a policy with a retry_policy: the value, @file or -; {} ends it")
	fs.StringVar(&reason, "reason", "", "reason, recorded in the event")
	cmd.ValidArgsFunction = s.completeLanes
	return cmd
}

// laneRetries sets the default policy of a lane from its flags.
func (s *session) laneRetries(fs *pflag.FlagSet, settings *api.LaneSettings, retries int, policy string) error {
	switch byCount, byPolicy := fs.Changed("retries"), fs.Changed("default-policy"); {
	case byCount && byPolicy:
		return show.Invalid("--retries", "give one of them", "--default-policy is also given")
	case byCount && retries < 0:
		settings.DefaultPolicy = nil
	case byCount && retries == 0:
		settings.DefaultPolicy = &api.DefaultPolicy{Retry: flowfabric.NoRetry()}
	case byCount:
		settings.DefaultPolicy = &api.DefaultPolicy{Retry: &flowfabric.RetryPolicy{MaxRetries: retries}}
	case byPolicy:
		text, err := s.content("--default-policy", policy)
		if err != nil {
			return err
		}
		if !json.Valid(text) {
			return show.Invalid("--default-policy", "", "the policy is not JSON")
		}
		settings.DefaultPolicy = new(api.DefaultPolicy)
		return settings.DefaultPolicy.UnmarshalJSON(text)
	}
	return nil
}

// laneNow reads the current settings and their revision, so that a concurrent change is detected.
func laneNow(ctx context.Context, c *flowfabric.Client, name string) (api.LaneSettings, *int64, error) {
	lane, err := c.Lanes().Get(ctx, name)
	switch {
	case flowfabric.CodeOf(err) == "lane_not_found":
		return api.LaneSettings{}, nil, nil
	case err != nil:
		return api.LaneSettings{}, nil, err
	default:
		return lane.LaneSettings, &lane.Revision, nil
	}
}

func shares(texts []string) (map[string]int, error) {
	given, err := pairs("--weight", texts)
	if err != nil {
		return nil, err
	}
	all := map[string]int{}
	for _, key := range slices.Sorted(maps.Keys(given)) {
		text := given[key]
		n, err := strconv.Atoi(text)
		if err != nil {
			return nil, show.Invalid("--weight", "write key=3", "%q is not a whole number", text)
		}
		all[key] = n
	}
	return all, nil
}
