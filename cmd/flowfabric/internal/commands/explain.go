package commands

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
)

func (s *session) explain() *cobra.Command {
	wait := time.Duration(0)
	cmd := s.command("explain ID", "Show why an execution is not running, and what to do about it", `
flowfabric explain 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50
flowfabric explain 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --wait 30s
flowfabric explain 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --json
`, cobra.ExactArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		all, err := ids(args)
		if err != nil {
			return err
		}
		shown, err := c.Executions().Explain(ctx, all[0], ops.ExplainOptions{Wait: wait})
		if err != nil {
			return err
		}
		return s.printExplanation(shown)
	})
	cmd.Flags().DurationVar(&wait, "wait", 0, "wait up to this time for a change")
	cmd.ValidArgsFunction = s.completeIDs
	return cmd
}

// printExplanation prints one line per cause, then advice.
func (s *session) printExplanation(e *api.Explanation) error {
	if s.printer.JSON || s.printer.Template != nil || s.printer.Quiet {
		return show.One(s.printer, show.View[*api.Explanation]{ID: firstCode}, e)
	}
	if len(e.Blockers) == 0 {
		_, err := fmt.Fprintln(s.Out, show.Visible(e.Summary+afterAll(e)))
		return err
	}
	for _, b := range e.Blockers {
		if _, err := fmt.Fprintf(s.Out, "%s: %s\n", b.Code, show.Visible(b.Message)); err != nil {
			return err
		}
	}
	if !e.NextEligibleAt.IsZero() {
		if _, err := fmt.Fprintf(s.Out, "It can be claimed from %s on, if nothing else changes.\n", s.printer.Time(e.NextEligibleAt)); err != nil {
			return err
		}
	}
	_, err := fmt.Fprint(s.Out, show.Visible(helpText(e)))
	return err
}

// afterAll advises on executions that ended without success.
func afterAll(e *api.Explanation) string {
	switch id := bareID(e.ExecutionID); e.Status {
	case flowfabric.StatusFailed, flowfabric.StatusExpired:
		return "\nFor details: flowfabric attempts " + id + "; to run it again: flowfabric replay " + id
	case flowfabric.StatusCancelled, flowfabric.StatusSkipped:
		return "\nTo run it again: flowfabric replay " + id
	default:
		return ""
	}
}

// firstCode returns the first cause, or the status if there is none, for scripts.
func firstCode(e *api.Explanation) string {
	if len(e.Blockers) == 0 {
		return string(e.Status)
	}
	return e.Blockers[0].Code
}

// helpText lists advice for each cause, without repetitions.
func helpText(e *api.Explanation) string {
	var lines []string
	for _, b := range e.Blockers {
		if help := helpAgainst(e, b); help != "" {
			lines = append(lines, "  "+help+"\n")
		}
	}
	if len(lines) == 0 {
		return ""
	}
	return "What to do:\n" + strings.Join(lines, "")
}

// helpData are the facts of a cause that name what to change.
type helpData struct {
	Lane       string          `json:"lane"`
	Quota      string          `json:"quota"`
	Name       string          `json:"name"`
	State      string          `json:"state"`
	ReasonCode string          `json:"reason_code"`
	Missing    []string        `json:"missing_capabilities"`
	Dimension  string          `json:"dimension"`
	Need       int64           `json:"need"`
	Used       int64           `json:"used"`
	Reserved   int64           `json:"reserved"`
	ResetsAt   string          `json:"resets_at"`
	Holders    []flowfabric.ID `json:"holders"`
}

// helpAgainst returns advice for a cause.
func helpAgainst(e *api.Explanation, b api.Blocker) string {
	var d helpData
	_ = json.Unmarshal(b.Data, &d) // unknown facts are ignored
	id := bareID(e.ExecutionID)
	switch b.Code {
	case "suspended":
		if d.ReasonCode == flowfabric.PausedByBudget {
			return "flowfabric approve " + id + " --raise DIMENSION=N, or: flowfabric reject " + id
		}
		return "send the signal it waits for, see: flowfabric suspension " + id + "; or: flowfabric resume " + id
	case "delay":
		return "the delay ends automatically"
	case "grant":
		return "the grant ends automatically: its worker claims it, or it becomes available again"
	case "operator_hold":
		return "flowfabric release-hold " + id
	case "lane_state":
		return "flowfabric lanes resume " + d.Lane
	case "lane_cap":
		return "wait for running work to end, or raise the limit: flowfabric lanes set " + d.Lane + " --max-concurrent N"
	case "no_live_worker":
		return "start a worker for lane " + d.Lane
	case "no_capable_worker":
		return "start a worker for such work" + withCapabilities(d.Missing)
	case "budget":
		return budgetHelp(d)
	case "rate":
		return "wait, or raise the limit: flowfabric quotas set " + d.Quota + " rate=N"
	case "concurrency":
		return "wait until " + oneOf(d.Holders) + " ends, or raise the limit: flowfabric quotas set " + d.Quota + " concurrency=N"
	case "workers_busy":
		return "start more workers, or raise their concurrency"
	case "in_line":
		return "wait for its turn, or: flowfabric priority " + id + " --to 9000"
	default:
		return ""
	}
}

func withCapabilities(missing []string) string {
	if len(missing) == 0 {
		return ""
	}
	return " and has " + strings.Join(missing, ", ")
}

// budgetHelp advises how to get capacity: the reset, the end of executions that hold reservations, or the smallest sufficient
// limit.
func budgetHelp(d helpData) string {
	if d.State == "closed" {
		return "flowfabric budgets reopen " + d.Name
	}
	var ways []string
	if d.Reserved > 0 {
		ways = append(ways, "wait until "+oneOf(d.Holders)+" ends")
	}
	if d.ResetsAt != "" {
		ways = append(ways, "wait for its reset")
	}
	return strings.Join(append(ways, fmt.Sprintf("raise the limit: flowfabric budgets set %s %s.hard=%d", d.Name, d.Dimension, d.Used+d.Reserved+d.Need)), ", or ")
}

// oneOf lists the executions of which one has to end, at most three.
func oneOf(holders []flowfabric.ID) string {
	var names []string
	for _, id := range holders[:min(3, len(holders))] {
		names = append(names, bareID(id))
	}
	switch {
	case len(names) == 0:
		return "another"
	case len(holders) > len(names):
		names = append(names, "another")
	}
	return strings.Join(names, " or ")
}
