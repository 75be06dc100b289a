package commands

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
)

// outcome is the result of a verb for one execution.
type outcome struct {
	id    flowfabric.ID
	text  string
	value any
}

// MarshalJSON writes the answer of the API.
func (o outcome) MarshalJSON() ([]byte, error) { return json.Marshal(o.value) }

// ended is the outcome of a verb that returns the execution.
func ended(x *flowfabric.Execution, err error) (outcome, error) {
	if err != nil {
		return outcome{}, err
	}
	return outcome{x.ID, string(x.Status), x}, nil
}

var outcomeView = show.View[outcome]{
	ID: func(o outcome) string { return bareID(o.id) },
	Columns: []show.Column[outcome]{
		{Name: "ID", Text: func(o outcome) string { return bareID(o.id) }},
		{Name: "STATUS", Text: func(o outcome) string { return o.text }},
	},
}

// eachVerb acts on the named executions in turn. A refusal does not stop the others; the exit code is that of the first refusal.
func (s *session) eachVerb(ctx context.Context, c *flowfabric.Client, v verb, f *verbFlags, args []string) error {
	all, err := ids(args)
	switch {
	case err != nil:
		return err
	case len(all) == 0 && v.bulk != "":
		return show.Invalid("ID", "name executions, or select them: --where status=failed", "no execution is named")
	case len(all) == 0:
		return show.Invalid("ID", "name executions", "no execution is named")
	case f.dryRun:
		return show.Invalid("--dry-run", "use it with --where", "executions are named")
	case v.destructive && len(all) > 1:
		if err := s.confirm(f.yes, fmt.Sprintf("%s %d executions?", v.name, len(all))); err != nil {
			return err
		}
	}
	var first error
	err = show.List(s.printer, outcomeView, func(yield func(outcome, error) bool) {
		for _, id := range all {
			done, err := v.act(ctx, c, id, f)
			if err == nil {
				if !yield(done, nil) {
					return
				}
				continue
			}
			if first == nil {
				first = err
			}
			if len(all) > 1 {
				s.printer.Note("%s:", bareID(id))
				show.Error(s.Err, err, s.flags.json, s.words)
			}
			if ctx.Err() != nil {
				return
			}
		}
	})
	if err == nil && first != nil && len(all) > 1 {
		return show.Exit(show.ExitCode(first))
	}
	if err == nil {
		return first
	}
	return err
}

// confirm asks on a terminal; without one --yes is required (U157).
func (s *session) confirm(yes bool, question string) error {
	if yes {
		return nil
	}
	if !isTerminal(s.In) || !isTerminal(s.Err) {
		return show.Invalid("--yes", "check with --dry-run where available, then pass --yes", "not confirmed: %s stdin is not a terminal", question)
	}
	fmt.Fprintf(s.Err, "%s [y/N] ", question)
	answer, _ := bufio.NewReader(s.In).ReadString('\n')
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return show.Invalid("", "answer y to continue", "nothing was done")
	}
	return nil
}

// bulkVerb acts on what --where selects with a durable job: it shows count and sample, asks, and follows the job.
func (s *session) bulkVerb(ctx context.Context, c *flowfabric.Client, v verb, f *verbFlags, args []string) error {
	if len(args) > 0 {
		return show.Invalid("--where", "give one of them", "executions are both named and selected")
	}
	if f.expect != (ops.Expect{}) {
		return show.Invalid("--expect-…", "put the expectation into --where", "it is for executions that are named")
	}
	request := ops.BulkRequest{Action: v.bulk, All: f.all, Reason: f.reason, RatePerSecond: f.rate}
	if f.where != "" {
		filter, err := where(f.where)
		if err != nil {
			return err
		}
		request.Filter, request.All = filter, false
	}
	if f.maxAffected > 0 {
		request.MaxAffected = &f.maxAffected
	}
	if v.fill != nil {
		v.fill(&request, f)
	}
	dry := request
	dry.DryRun, dry.MaxAffected = true, nil
	found, err := c.Operate().Bulk(ctx, dry)
	if err != nil {
		return err
	}
	s.sample(found)
	if f.dryRun {
		return show.One(s.printer, s.jobView(), found)
	}
	if err := s.confirm(f.yes, fmt.Sprintf("%s %s?", v.name, executionCount(found.Matched))); err != nil {
		return err
	}
	job, err := c.Operate().Bulk(ctx, request)
	if err != nil {
		return err
	}
	if f.noWait {
		return show.One(s.printer, s.jobView(), job)
	}
	return s.followJob(ctx, c, job)
}

// sample prints how many executions a job matches, and some of them.
func (s *session) sample(job *api.BulkJob) {
	match := "match"
	if job.Matched == 1 {
		match = "matches"
	}
	s.printer.Note("%s %s", executionCount(job.Matched), match)
	for _, id := range job.Sample {
		s.printer.Note("  %s", bareID(id))
	}
	if more := job.Matched - len(job.Sample); more > 0 && len(job.Sample) > 0 {
		s.printer.Note("  and %d more", more)
	}
}

// executionCount formats a number of executions.
func executionCount(n int) string {
	if n == 1 {
		return "1 execution"
	}
	return fmt.Sprintf("%d executions", n)
}

// revoke takes a lease away, and hands the execution to the instance of --hand-to.
func revoke(ctx context.Context, c *flowfabric.Client, id flowfabric.ID, f *verbFlags) (outcome, error) {
	to, err := f.handTo(ctx, c)
	if err != nil {
		return outcome{}, err
	}
	answer, err := c.Operate().Revoke(ctx, id, ops.RevokeOptions{Action: f.action(), Hold: f.hold, Handoff: to})
	if err != nil {
		return outcome{}, err
	}
	return revoked(id, answer), nil
}

// handTo returns the registered data of the instance that takes over; nil if none was named.
func (f *verbFlags) handTo(ctx context.Context, c *flowfabric.Client) (*api.Handoff, error) {
	if f.instanceID == "" {
		if f.given("grant-ttl") {
			return nil, show.Invalid("--grant-ttl", "name the instance with --hand-to", "a grant needs an instance")
		}
		return nil, nil
	}
	worker, err := c.Workers().Get(ctx, f.instanceID)
	if err != nil {
		return nil, err
	}
	return &api.Handoff{WorkerID: worker.WorkerID, InstanceID: worker.InstanceID, Capabilities: worker.Capabilities, GrantTTL: f.grantTTL}, nil
}

// revoked shows the answer with the grant key, which the caller must pass to the worker.
func revoked(id flowfabric.ID, answer api.Revocation) outcome {
	shown := answer.Revealed()
	text := answer.Outcome
	switch {
	case answer.HandToErr != nil:
		text += ", not handed over: " + answer.HandToErr.Error()
	case answer.Grant != nil:
		text += ", grant " + shown.Grant.GrantKey
	}
	return outcome{id, text, shown}
}
