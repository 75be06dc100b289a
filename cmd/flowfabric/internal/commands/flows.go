package commands

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
)

// flow returns the commands on flows (U174).
func (s *session) flow() *cobra.Command {
	return group("flow", "Graphs of executions", s.flowSubmit(), s.flowCreate(), s.flowExtend(), s.flowSeal(), s.flowGet(), s.flowGraph(), s.flowList(),
		s.flowWait(), s.flowCancel(), s.flowDelete(), s.flowJoin(), s.flowTags())
}

// document reads a file, or standard input, into a value that checks its own form.
func (s *session) document(path string, into any) error {
	if path != "-" {
		path = "@" + path
	}
	text, err := s.content("FILE", path)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

func (s *session) flowSubmit() *cobra.Command {
	dryRun, wait := false, false
	cmd := s.command("submit FILE", "Submit a flow from a JSON file, or from standard input with -", `
flowfabric flow submit release.json
flowfabric flow submit release.json --dry-run
flowfabric flow submit release.json --wait --timeout 1m
`, cobra.ExactArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		var f flowfabric.Flow
		if err := s.document(args[0], &f); err != nil {
			return err
		}
		if dryRun {
			return s.checkFlow(ctx, c, f)
		}
		run, err := c.Flows().Submit(ctx, f)
		if err != nil {
			return err
		}
		if !run.Created {
			s.printer.Note("it was submitted before")
		}
		if !wait {
			return show.One(s.bare(), flowRunView, run)
		}
		if err := s.waitForFlow(ctx, c, run.ID); ctx.Err() == nil {
			return err
		}
		s.printer.Note("it was submitted; wait for it with: flowfabric flow wait %s", bareID(run.ID))
		return context.Cause(ctx)
	})
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "check the flow and print an order in which it can run; write nothing")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until it has ended; exit 8 unless it completed")
	return cmd
}

// checked is the result of a dry run.
type checked struct {
	OK    bool     `json:"ok"`
	Order []string `json:"order"`
}

func (s *session) checkFlow(ctx context.Context, c *flowfabric.Client, f flowfabric.Flow) error {
	order, err := c.Flows().Check(ctx, f)
	if err != nil {
		return err
	}
	if p := s.printer; p.JSON || p.Template != nil {
		return show.One(p, show.View[checked]{}, checked{OK: true, Order: order})
	}
	s.printer.Note("valid")
	for _, name := range order {
		if _, err := fmt.Fprintln(s.Out, name); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) flowCreate() *cobra.Command {
	var tags []string
	cmd := s.command("create KIND", "Create an empty flow, to be extended and sealed", `
flowfabric flow create release
flowfabric flow create release --tag team=blue
flowfabric flow create release --json
`, cobra.ExactArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		given, err := pairs("--tag", tags)
		if err != nil {
			return err
		}
		run, err := c.Flows().Create(ctx, flowfabric.Flow{Kind: args[0], Tags: given})
		if err != nil {
			return err
		}
		return show.One(s.bare(), flowRunView, run)
	})
	cmd.Flags().StringArrayVar(&tags, "tag", nil, "key=value; may be repeated")
	return cmd
}

func (s *session) flowExtend() *cobra.Command {
	var revision *int64
	cmd := s.command("extend FLOW FILE", "Add members and edges from a JSON file, or from standard input with -", `
flowfabric flow extend 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 more.json
flowfabric flow extend 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 more.json --expect-revision 1
flowfabric flow extend 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 more.json --json
`, cobra.ExactArgs(2), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		var more flowfabric.FlowExtension
		if err := s.document(args[1], &more); err != nil {
			return err
		}
		more.Revision = revision
		run, err := c.Flows().Extend(ctx, flowfabric.ID(args[0]), more)
		return s.printRun(run, err)
	})
	expectRevision(cmd, &revision)
	cmd.ValidArgsFunction = s.completeFlows
	return cmd
}

func (s *session) flowSeal() *cobra.Command {
	var revision *int64
	cmd := s.command("seal FLOW", "Seal a flow: it can no longer be extended", `
flowfabric flow seal 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50
flowfabric flow seal 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --expect-revision 1
flowfabric flow seal 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --json
`, cobra.ExactArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		run, err := c.Flows().Seal(ctx, flowfabric.ID(args[0]), flowfabric.SealOptions{Revision: revision})
		return s.printRun(run, err)
	})
	expectRevision(cmd, &revision)
	cmd.ValidArgsFunction = s.completeFlows
	return cmd
}

// expectRevision adds the flag --expect-revision. An empty flow has revision 0.
func expectRevision(cmd *cobra.Command, into **int64) {
	given := int64(0)
	cmd.Flags().Int64Var(&given, "expect-revision", 0, "refuse unless the graph has this revision; default: any")
	cmd.PreRun = func(cmd *cobra.Command, _ []string) {
		if cmd.Flags().Changed("expect-revision") {
			*into = &given
		}
	}
}

func (s *session) printRun(run *flowfabric.FlowRun, err error) error {
	if err != nil {
		return err
	}
	if !run.Created {
		s.printer.Note("no change")
	}
	return show.One(s.printer, s.flowRun(), run)
}

func (s *session) flowGet() *cobra.Command {
	members, edges, usage, state := false, false, false, ""
	cmd := s.command("get FLOW", "Show a flow and its progress, or its members, edges or usage", `
flowfabric flow get 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50
flowfabric flow get 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --members --state failed
flowfabric flow get 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --edges --json
`, cobra.ExactArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		id := flowfabric.ID(args[0])
		switch {
		case members && edges || members && usage || edges && usage:
			return show.Invalid("--members", "give one of --members, --edges and --usage", "more than one list is requested")
		case state != "" && !members:
			return show.Invalid("--state", "use it with --members", "only members have a state")
		case members:
			return show.List(s.printer, s.memberView(), c.Flows().Members(ctx, id, flowfabric.MemberQuery{State: state}))
		case edges:
			return show.List(s.printer, s.edgeView(), c.Flows().Edges(ctx, id))
		case usage:
			return s.printFlowUsage(ctx, c, id)
		}
		flow, err := c.Flows().Get(ctx, id)
		if err != nil {
			return err
		}
		return show.One(s.printer, s.flowDetails(), flow)
	})
	cmd.Flags().BoolVar(&members, "members", false, "list its members")
	cmd.Flags().BoolVar(&edges, "edges", false, "list its edges")
	cmd.Flags().BoolVar(&usage, "usage", false, "show the total usage of its members")
	cmd.Flags().StringVar(&state, "state", "", "with --members: only those in this public state")
	cmd.ValidArgsFunction = s.completeFlows
	return cmd
}

// flowUsage is the usage of a flow.
type flowUsage struct {
	FlowID flowfabric.ID    `json:"flow_id"`
	Usage  map[string]int64 `json:"usage"`
}

func (s *session) printFlowUsage(ctx context.Context, c *flowfabric.Client, id flowfabric.ID) error {
	usage, err := c.Flows().Usage(ctx, id)
	if err != nil {
		return err
	}
	return show.One(s.printer, show.View[flowUsage]{ID: func(u flowUsage) string { return bareID(u.FlowID) }, Columns: []show.Column[flowUsage]{
		{Name: "ID", Text: func(u flowUsage) string { return bareID(u.FlowID) }},
		{Name: "USAGE", Text: func(u flowUsage) string { return amountText(u.Usage) }},
	}}, flowUsage{id, usage})
}

func (s *session) flowList() *cobra.Command {
	var query flowfabric.FlowQuery
	var from, to, state string
	var tags []string
	limit, watch := 100, false
	cmd := s.command("list", "List flows, newest first", `
flowfabric flow list
flowfabric flow list --kind release --state open --json
flowfabric flow list --created-from 24h --tag team=blue
`, cobra.NoArgs, func(ctx context.Context, c *flowfabric.Client, _ []string) (err error) {
		query.State = flowfabric.FlowState(state)
		if query.Tags, err = pairs("--tag", tags); err != nil {
			return err
		}
		if from != "" {
			if query.CreatedFrom, err = moment("--created-from", from, ago); err != nil {
				return err
			}
		}
		if to != "" {
			if query.CreatedTo, err = moment("--created-to", to, ago); err != nil {
				return err
			}
		}
		list := func(p *show.Printer) error {
			return show.First(p, s.flowView(), c.Flows().List(ctx, query), limit)
		}
		if watch {
			return s.watch(ctx, list)
		}
		return list(s.printer)
	})
	fs := cmd.Flags()
	fs.StringVar(&query.Kind, "kind", "", "only of this kind")
	fs.StringVar(&state, "state", "", "only in this state: open, cancelling, completed, failed or cancelled")
	fs.StringVar(&query.Creator, "creator", "", "only created by this principal")
	fs.StringArrayVar(&tags, "tag", nil, "key=value; may be repeated")
	fs.StringVar(&from, "created-from", "", "created at or after: RFC 3339, a date, or how long ago: 2h")
	fs.StringVar(&to, "created-to", "", "made before")
	fs.IntVar(&limit, "limit", 100, "maximum number; 0: all")
	fs.BoolVar(&watch, "watch", false, "print the list again on every change, until interrupted")
	_ = cmd.RegisterFlagCompletionFunc("kind", s.completeFlowKinds) // fails only if the flag is missing or has one
	return cmd
}

func (s *session) flowJoin() *cobra.Command {
	var j flowfabric.Join
	policy := ""
	cmd := s.command("join FLOW MEMBER", "Show the join of a member, or set it before any edge leads to the member", `
flowfabric flow join 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 deploy
flowfabric flow join 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 deploy --json
flowfabric flow join 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 build --policy any_of --cancel-remaining
`, cobra.ExactArgs(2), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		id, member := flowfabric.ID(args[0]), args[1]
		j.Policy = flowfabric.JoinPolicy(policy)
		var join *api.JoinView
		var err error
		if j == (flowfabric.Join{}) {
			join, err = c.Flows().Join(ctx, id, member)
		} else {
			join, err = c.Flows().SetJoin(ctx, id, member, j)
		}
		if err != nil {
			return err
		}
		return show.One(s.printer, s.joinView(member), join)
	})
	cmd.Flags().StringVar(&policy, "policy", "", "how many edges it needs: all_of, any_of or quorum")
	cmd.Flags().IntVar(&j.K, "k", 0, "number of edges of a quorum")
	cmd.Flags().BoolVar((*bool)(&j.CancelRemaining), "cancel-remaining", false, "cancel members that are no longer needed")
	cmd.ValidArgsFunction = s.completeFlows
	return cmd
}

func (s *session) flowTags() *cobra.Command {
	var set, unset []string
	replace := false
	cmd := s.command("tags FLOW", "Show or change the tags of a flow", `
flowfabric flow tags 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50
flowfabric flow tags 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --set team=blue --unset draft
flowfabric flow tags 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --replace --set team=blue
`, cobra.ExactArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		tags, err := s.changeFlowTags(ctx, c, flowfabric.ID(args[0]), set, unset, replace)
		if err != nil {
			return err
		}
		return show.One(s.printer, outcomeView, outcome{flowfabric.ID(args[0]), tagText(tags), map[string]any{"tags": tags}})
	})
	cmd.Flags().StringArrayVar(&set, "set", nil, "key=value; may be repeated")
	cmd.Flags().StringArrayVar(&unset, "unset", nil, "key to delete; may be repeated")
	cmd.Flags().BoolVar(&replace, "replace", false, "replace all tags by those of --set")
	cmd.ValidArgsFunction = s.completeFlows
	return cmd
}

func (s *session) changeFlowTags(ctx context.Context, c *flowfabric.Client, id flowfabric.ID, set, unset []string, replace bool) (map[string]string, error) {
	given, err := pairs("--set", set)
	if err != nil {
		return nil, err
	}
	switch {
	case replace && len(unset) > 0:
		return nil, show.Invalid("--unset", "omit it: tags that are not set are removed", "all tags are replaced")
	case replace:
		return c.Flows().ReplaceTags(ctx, id, given)
	case len(set)+len(unset) == 0:
		flow, err := c.Flows().Get(ctx, id)
		if err != nil {
			return nil, err
		}
		return flow.Tags, nil
	}
	changes := map[string]*string{}
	for key, value := range given {
		changes[key] = &value
	}
	for _, key := range unset {
		changes[key] = nil
	}
	return c.Flows().SetTags(ctx, id, changes)
}

// completeFlows completes the newest flows as the first argument; later arguments may be files.
func (s *session) completeFlows(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return s.flowIDs(cmd, args, begun)
}

// completeFlowKinds completes the kinds of the newest flows.
func (s *session) completeFlowKinds(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return s.offer(cmd, func(ctx context.Context, c *flowfabric.Client) ([]string, error) {
		page, err := c.Flows().Page(ctx, flowfabric.FlowQuery{PageOptions: flowfabric.PageOptions{Limit: 200}})
		kinds := map[string]bool{}
		for _, flow := range page.Items {
			kinds[flow.Kind] = true
		}
		return slices.Sorted(maps.Keys(kinds)), err
	})
}

// flowIDs returns the newest flows.
func (s *session) flowIDs(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return s.offer(cmd, func(ctx context.Context, c *flowfabric.Client) ([]string, error) {
		page, err := c.Flows().Page(ctx, flowfabric.FlowQuery{PageOptions: flowfabric.PageOptions{Limit: 50}})
		var found []string
		for _, flow := range page.Items {
			found = append(found, bareID(flow.ID)+"\t"+flow.Kind+" "+string(flow.State))
		}
		return found, err
	})
}
