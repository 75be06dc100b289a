package commands

import (
	"context"
	"encoding/json"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
)

// submission are the flags of submit (U168).
type submission struct {
	id, input, text, bytes, contentType, lane, at, deadline, key, policy, bulk string
	priority, retries                                                          int
	delay                                                                      time.Duration
	tags, requires, quotas, budgets, estimates                                 []string
	wait, follow                                                               bool
}

func (f *submission) register(fs *pflag.FlagSet) {
	fs.StringVar(&f.id, "id", "", "id of the execution; generated if absent")
	fs.StringVar(&f.input, "input", "", "input as JSON: the value, @file, or - for standard input")
	fs.StringVar(&f.text, "text", "", "input as text: the value, @file or -")
	fs.StringVar(&f.bytes, "bytes", "", "input as bytes: @file or -")
	fs.StringVar(&f.contentType, "content-type", "", "content type of the input")
	fs.StringVar(&f.lane, "lane", "", "lane; default \"default\"")
	fs.IntVar(&f.priority, "priority", 0, "0 to 9000, larger first")
	fs.DurationVar(&f.delay, "delay", 0, "do not start before this time has passed")
	fs.StringVar(&f.at, "at", "", "do not start before this time")
	fs.StringVar(&f.deadline, "deadline", "", "expire unless finished by this time, or within this duration")
	fs.StringVar(&f.key, "idempotency-key", "", "idempotency key: a second submit with it returns the first execution")
	fs.StringArrayVar(&f.tags, "tag", nil, "key=value; may be repeated")
	fs.StringSliceVar(&f.requires, "requires", nil, "capabilities that a worker must have")
	fs.StringArrayVar(&f.quotas, "quota", nil, "quota that limits it: mail, or mail:acme for one key; may be repeated")
	fs.StringSliceVar(&f.budgets, "budget", nil, "budgets that it uses, by id or name")
	fs.StringArrayVar(&f.estimates, "estimate", nil, "estimated usage: output_tokens=2000; may be repeated")
	fs.IntVar(&f.retries, "retries", -1, "retries after a failed attempt; -1: those of the worker or the lane, else "+api.RetrySummary())
	fs.StringVar(&f.policy, "policy", "", "policy as JSON: the value, @file or -")
	fs.StringVar(&f.bulk, "bulk", "", "file with one submission per line as JSON, or -")
	fs.BoolVar(&f.wait, "wait", false, "wait for the end, print the result; exit 8 unless it succeeded")
	fs.BoolVar(&f.follow, "follow", false, "print events until the end, then the result as with --wait")
}

func (s *session) submit() *cobra.Command {
	var flags submission
	cmd := s.command("submit KIND", "Submit an execution", `
flowfabric submit resize --input '{"width": 300}'
flowfabric submit mail --text @letter.txt --idempotency-key letter-17 --tag customer=acme
flowfabric submit --bulk work.ndjson
`, cobra.MaximumNArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		if flags.bulk != "" {
			return s.submitMany(ctx, c, flags, args)
		}
		if len(args) == 0 {
			return show.Invalid("KIND", "flowfabric submit KIND, or --bulk FILE", "the kind is missing")
		}
		return s.submitOne(ctx, c, flags, args[0])
	})
	flags.register(cmd.Flags())
	cmd.ValidArgsFunction = s.completeKinds
	return cmd
}

func (s *session) submitOne(ctx context.Context, c *flowfabric.Client, flags submission, kind string) error {
	sub, err := s.submissionOf(flags, kind)
	if err != nil {
		return err
	}
	result, err := c.Submit(ctx, sub)
	if err != nil {
		return err
	}
	if result.Duplicate {
		s.printer.Note("it was submitted before")
	}
	if !flags.wait && !flags.follow {
		return s.printSubmitted(result)
	}
	if flags.follow {
		err = s.followToEnd(ctx, c, result.ID)
	}
	if err == nil {
		err = s.waitFor(ctx, c, result.ID, true)
	}
	if ctx.Err() != nil { // the execution continues
		s.printer.Note("it was submitted; wait for it with: flowfabric wait %s", bareID(result.ID))
	}
	return err
}

// printSubmitted writes the id, or the full answer for programs.
func (s *session) printSubmitted(result flowfabric.SubmitResult) error {
	return show.One(s.bare(), show.View[flowfabric.SubmitResult]{ID: func(r flowfabric.SubmitResult) string { return bareID(r.ID) }}, result)
}

// submissionOf creates a submission from the flags.
func (s *session) submissionOf(f submission, kind string) (sub flowfabric.Submission, err error) {
	sub = flowfabric.Submission{Kind: kind, SubmitOptions: flowfabric.SubmitOptions{
		ID: flowfabric.ID(f.id), Lane: f.lane, IdempotencyKey: f.key, Priority: f.priority, Delay: f.delay, Requires: f.requires,
		BudgetIDs: f.budgets, Quotas: quotaUses(f.quotas),
	}}
	sub.Input, err = s.payload(f.contentType,
		payloadSource{"--input", f.input, jsonType}, payloadSource{"--text", f.text, textType}, payloadSource{"--bytes", f.bytes, bytesType})
	if err != nil {
		return sub, err
	}
	if sub.Tags, err = pairs("--tag", f.tags); err != nil {
		return sub, err
	}
	if sub.Estimate, err = amounts("--estimate", f.estimates); err != nil {
		return sub, err
	}
	if f.at != "" {
		if sub.StartAt, err = moment("--at", f.at, ahead); err != nil {
			return sub, err
		}
	}
	if f.deadline != "" {
		if sub.Deadline, err = moment("--deadline", f.deadline, ahead); err != nil {
			return sub, err
		}
	}
	return sub, s.policyOf(f, &sub)
}

// policyOf reads the policy in API form, then the flags for single fields of it.
func (s *session) policyOf(f submission, sub *flowfabric.Submission) error {
	if f.policy != "" {
		text, err := s.content("--policy", f.policy)
		if err != nil {
			return err
		}
		whole, err := json.Marshal(map[string]any{"kind": sub.Kind, "policy": json.RawMessage(text)})
		if err != nil {
			return show.Invalid("--policy", "", "the policy is not JSON: %s", err)
		}
		var read flowfabric.Submission
		if err := json.Unmarshal(whole, &read); err != nil {
			return err
		}
		sub.Policy = read.Policy
	}
	if f.retries < 0 {
		return nil
	}
	if sub.Policy == nil {
		sub.Policy = &flowfabric.Policy{}
	}
	if sub.Policy.Retry != nil {
		return show.Invalid("--retries", "give one of them", "--policy has a retry policy, and --retries is also given")
	}
	if sub.Policy.Retry = flowfabric.NoRetry(); f.retries > 0 {
		sub.Policy.Retry = &flowfabric.RetryPolicy{MaxRetries: f.retries}
	}
	return nil
}
