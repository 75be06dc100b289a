package commands

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/spf13/pflag"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
)

// waitingVerbs are the verbs on suspended executions.
func (s *session) waitingVerbs() []verb {
	return []verb{
		resumeVerb(),
		s.decisionVerb("approve", "Approve suspended executions", "approved", "flowfabric approve 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50\n"+
			"flowfabric approve 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --comment 'looks good'\n"+
			"flowfabric approve 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --waitpoint 0190b5a2-8d10-7c55-8f31-2b7e9d604c11 --raise tokens=500"),
		s.decisionVerb("reject", "Reject suspended executions", "rejected", "flowfabric reject 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50\n"+
			"flowfabric reject 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --comment 'not this week'\n"+
			"flowfabric reject 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --waitpoint 0190b5a2-8d10-7c55-8f31-2b7e9d604c11 --json"),
	}
}

// resumeVerb ends suspensions by an operator's decision.
func resumeVerb() verb {
	var options ops.ResumeOptions
	return verb{
		name: "resume", short: "Resume suspended executions, whatever they wait for", bulk: api.BulkResume,
		example: "flowfabric resume 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --reason 'they called'\n" +
			"flowfabric resume 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --delay 10m\nflowfabric resume --where kind=deploy --dry-run",
		flags: func(fs *pflag.FlagSet, _ *verbFlags) {
			fs.DurationVar(&options.Delay, "delay", 0, "resume after this delay")
			fs.StringVar(&options.ExpectedSuspensionID, "expected-suspension", "", "refuse unless this is the open suspension; if it was resumed before, succeed")
		},
		check: func(f *verbFlags) error {
			if options.ExpectedSuspensionID != "" && (f.where != "" || f.all) {
				return show.Invalid("--expected-suspension", "name the execution by id", "a suspension belongs to one execution")
			}
			return nil
		},
		act: func(ctx context.Context, c *flowfabric.Client, id flowfabric.ID, f *verbFlags) (outcome, error) {
			how := options
			how.Action = f.action()
			return ended(c.Operate().Resume(ctx, id, how))
		},
		fill:     func(r *ops.BulkRequest, _ *verbFlags) { r.Delay = options.Delay },
		complete: (*session).completeSuspended,
	}
}

// decisionVerb sends an operator's signal to suspended executions (U173).
func (s *session) decisionVerb(verbName, short, signal, example string) verb {
	var say ops.Approve
	payload := ""
	var raise []string
	return verb{
		name: verbName, short: short, example: example,
		flags: func(fs *pflag.FlagSet, _ *verbFlags) {
			say.Name = signal
			if verbName == "approve" {
				fs.StringVar(&say.Name, "name", signal, "signal name, if the condition expects another one")
				fs.StringArrayVar(&raise, "raise", nil, "for a budget's request: by how much to raise its limit: tokens=500; may be repeated")
			}
			fs.StringVar(&say.WaitpointID, "waitpoint", "", "waitpoint; default: the active one")
			fs.StringVar(&say.Comment, "comment", "", "comment, stored with the decision")
			fs.StringVar(&payload, "payload", "", "payload as JSON: the value, @file, or - for standard input")
			fs.StringVar(&say.Suffix, "suffix", "", "key that distinguishes several decisions of one person")
			fs.StringVar(&say.Lane, "lane", "", "refuse unless the execution is in this lane")
		},
		check: func(*verbFlags) (err error) {
			if len(raise) > 0 {
				say.Payload, err = raisePayload(raise, payload)
				return err
			}
			say.Payload, err = s.payload("", payloadSource{"--payload", payload, jsonType})
			return err
		},
		act: func(ctx context.Context, c *flowfabric.Client, id flowfabric.ID, f *verbFlags) (outcome, error) {
			what := say
			what.Action = f.action()
			if err := forBudget(ctx, c, id, signal, &what); err != nil {
				return outcome{}, err
			}
			receipt, err := c.Operate().Approve(ctx, id, what)
			if err != nil {
				return outcome{}, whichWaitpoint(err, id)
			}
			s.noteEffect(receipt)
			return outcome{id, receipt.Outcome + ", " + receipt.Effect, receipt}, nil
		},
		complete: (*session).completeSuspended,
	}
}

// raisePayload is the payload that raises a budget.
func raisePayload(raise []string, payload string) (flowfabric.Payload, error) {
	if payload != "" {
		return flowfabric.Payload{}, show.Invalid("--raise", "give one of --raise, --payload", "--raise and --payload cannot be combined")
	}
	by, err := amounts("--raise", raise)
	if err != nil {
		return flowfabric.Payload{}, err
	}
	text, err := json.Marshal(map[string]any{"raise": by})
	return flowfabric.Bytes(text, jsonType), err
}

// forBudget uses the signal that a budget's request expects, unless another one is given.
func forBudget(ctx context.Context, c *flowfabric.Client, id flowfabric.ID, signal string, say *ops.Approve) error {
	if say.Name != signal {
		return nil
	}
	x, err := c.Get(ctx, id)
	if err != nil {
		return err
	}
	if x.Suspension != nil && x.Suspension.ReasonCode == flowfabric.PausedByBudget {
		say.Name = map[string]string{"approved": "budget_approved", "rejected": "budget_denied"}[signal]
	}
	return nil
}

// whichWaitpoint adds the command that lists the waitpoints if one must be named. If none is active, the refusal already says
// what became of the execution.
func whichWaitpoint(err error, id flowfabric.ID) error {
	var refusal *flowfabric.Error
	if !errors.As(err, &refusal) || refusal.Code != "waitpoint_ambiguous" || fmt.Sprint(refusal.Current["active"]) == "0" {
		return err
	}
	hinted := *refusal
	hinted.Hint = "flowfabric waitpoints " + bareID(id) + " lists them; name one with --waitpoint"
	return &hinted
}
