package commands

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
	"github.com/flowfabric/flowfabric/ops"
)

// webhooks returns the commands for endpoints that events are posted to (U108).
func (s *session) webhooks() *cobra.Command {
	list := s.command("list", "List webhooks", `
flowfabric webhooks list
flowfabric webhooks list --wide
flowfabric webhooks list --json
`, cobra.NoArgs, func(ctx context.Context, c *flowfabric.Client, _ []string) error {
		return show.List(s.printer, s.webhookView(), c.Admin().Webhooks().List(ctx))
	})
	get := s.command("get WEBHOOK", "Show a webhook", `
flowfabric webhooks get 0190c4d1-2b6e-7f10-8c3a-5d4e6f708192
flowfabric webhooks get 0190c4d1-2b6e-7f10-8c3a-5d4e6f708192 --json
flowfabric webhooks get 0190c4d1-2b6e-7f10-8c3a-5d4e6f708192 --template '{{.state}}'
`, cobra.ExactArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		return s.printWebhook(c.Admin().Webhooks().Get(ctx, args[0]))
	})
	get.ValidArgsFunction = s.completeWebhooks
	return group("webhooks", "Endpoints that events are posted to, signed",
		list, get, s.webhookCreate(), s.webhookSet(), s.webhookDelete(), s.webhookRotate(), s.webhookEnable(), s.webhookDisable(),
		s.webhookTest(), s.webhookDeliveries(), s.webhookRedeliver(), s.webhookReplay())
}

// webhookFlags are the settings of a webhook.
type webhookFlags struct {
	events, tags                                         []string
	execution, flow, lane, outcome, worker, actor, since string
	inFlight                                             int
}

func (f *webhookFlags) register(fs *pflag.FlagSet) {
	fs.StringSliceVar(&f.events, "event", nil, "only these types of events, or prefixes that end with a dot: execution.")
	fs.StringVar(&f.execution, "execution", "", "only events of this execution")
	fs.StringVar(&f.flow, "flow", "", "only events of this flow and its members")
	fs.StringVar(&f.lane, "lane", "", "only events of this lane")
	fs.StringVar(&f.outcome, "outcome", "", "only ends with this outcome: success, failed, cancelled, expired, skipped")
	fs.StringVar(&f.worker, "worker-instance-id", "", "only events of this worker instance")
	fs.StringArrayVar(&f.tags, "tag", nil, "only events with this key=value; may be repeated")
	fs.StringVar(&f.actor, "actor", "", "only events by client, worker, operator, approver or engine")
	fs.StringVar(&f.since, "since", "", "only events since then: RFC 3339, a date, or how long ago: 2h")
	fs.IntVar(&f.inFlight, "max-in-flight", 0, "requests at a time, up to 64; default 8")
}

// filter applies the flags that were given to a filter; an empty value removes its condition.
func (f *webhookFlags) filter(fs *pflag.FlagSet, now *api.WebhookFilter) (*api.WebhookFilter, error) {
	next, given := api.WebhookFilter{}, false
	if now != nil {
		next = *now
	}
	execution, flow := string(next.ExecutionID), string(next.FlowID)
	for flag, to := range map[string][2]*string{
		"execution": {&execution, &f.execution}, "flow": {&flow, &f.flow}, "lane": {&next.Lane, &f.lane}, "outcome": {&next.Outcome, &f.outcome},
		"worker-instance-id": {&next.InstanceID, &f.worker}, "actor": {&next.ActorType, &f.actor},
	} {
		if fs.Changed(flag) {
			*to[0], given = *to[1], true
		}
	}
	next.ExecutionID, next.FlowID = flowfabric.ID(execution), flowfabric.ID(flow)
	if fs.Changed("event") {
		next.Kinds, given = f.events, true
	}
	if err := f.filterMore(fs, &next, &given); err != nil || !given {
		return nil, err
	}
	return &next, nil
}

// filterMore applies the flags that are parsed.
func (f *webhookFlags) filterMore(fs *pflag.FlagSet, next *api.WebhookFilter, given *bool) (err error) {
	if fs.Changed("tag") {
		*given = true
		if next.Tags = nil; len(f.tags) != 1 || f.tags[0] != "" {
			next.Tags, err = pairs("--tag", f.tags)
		}
	}
	if fs.Changed("since") && err == nil {
		*given = true
		if next.Since = (time.Time{}); f.since != "" {
			next.Since, err = moment("--since", f.since, ago)
		}
	}
	return err
}

func (s *session) webhookCreate() *cobra.Command {
	var f webhookFlags
	var cmd *cobra.Command
	secret, reason := "", ""
	cmd = s.command("create URL", "Create a webhook, which gets events from now on; its secret is printed only this once", `
flowfabric webhooks create https://example.com/hooks
flowfabric webhooks create https://example.com/hooks --event execution.completed --outcome failed
flowfabric webhooks create https://example.com/hooks --event approval_link. --secret @hook.secret
`, cobra.ExactArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		filter, err := f.filter(cmd.Flags(), nil)
		if err != nil {
			return err
		}
		endpoint := api.NewWebhook{URL: args[0], Filter: filter, MaxInFlight: f.inFlight}
		if endpoint.Secret, err = s.webhookSecret(secret); err != nil {
			return err
		}
		return s.printWebhookSecret(c.Admin().Webhooks().Create(ctx, endpoint, ops.AdminAction{Reason: reason}))
	})
	f.register(cmd.Flags())
	cmd.Flags().StringVar(&secret, "secret", "", webhookSecretUsage)
	auditReason(cmd, &reason)
	return cmd
}

const webhookSecretUsage = "its secret, whsec_ and base64 of 24 to 64 bytes: @FILE, or - for standard input; random if absent" //nolint:gosec // G101: it is a help text

func (s *session) webhookSecret(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	data, err := s.content("--secret", text)
	return strings.TrimSpace(string(data)), err
}

// printWebhookSecret prints the secret alone on its line, so that it can be redirected into a file.
func (s *session) printWebhookSecret(w *api.SecretWebhook, err error) error {
	if err != nil {
		return err
	}
	type x = *api.SecretWebhook
	if err := show.One(s.bare(), show.View[x]{ID: func(w x) string { return w.Secret }}, w); err != nil {
		return err
	}
	s.printer.Note("webhook %s: store the secret, it is not shown again; receivers verify webhook-signature with it", w.ID)
	return nil
}

// webhookSet changes only the given settings.
func (s *session) webhookSet() *cobra.Command {
	var f webhookFlags
	var fs *pflag.FlagSet
	url, reason := "", ""
	cmd := s.command("set WEBHOOK", "Change a webhook; other settings stay, an empty value removes a condition", `
flowfabric webhooks set 0190c4d1-2b6e-7f10-8c3a-5d4e6f708192 --url https://example.com/v2/hooks
flowfabric webhooks set 0190c4d1-2b6e-7f10-8c3a-5d4e6f708192 --event execution. --event flow. --lane ''
flowfabric webhooks set 0190c4d1-2b6e-7f10-8c3a-5d4e6f708192 --max-in-flight 32 --reason 'it is fast enough now'
`, cobra.ExactArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		now, err := c.Admin().Webhooks().Get(ctx, args[0])
		if err != nil {
			return err
		}
		filter, err := f.filter(fs, now.Filter)
		if err != nil {
			return err
		}
		change := api.WebhookChange{URL: changed(fs, "url", url), Filter: filter, MaxInFlight: changed(fs, "max-in-flight", f.inFlight)}
		return s.printWebhook(c.Admin().Webhooks().Change(ctx, args[0], change, ops.AdminAction{Reason: reason, Revision: &now.Revision}))
	})
	fs = cmd.Flags()
	fs.StringVar(&url, "url", "", "where events are posted to")
	f.register(fs)
	auditReason(cmd, &reason)
	cmd.ValidArgsFunction = s.completeWebhooks
	return cmd
}

// webhookCommand is a command on one webhook that only needs its id.
func (s *session) webhookCommand(use, short, example string, do func(ctx context.Context, w ops.Webhooks, id string, how ops.AdminAction) error) *cobra.Command {
	reason := ""
	cmd := s.command(use, short, example, cobra.ExactArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		return do(ctx, c.Admin().Webhooks(), args[0], ops.AdminAction{Reason: reason})
	})
	auditReason(cmd, &reason)
	cmd.ValidArgsFunction = s.completeWebhooks
	return cmd
}

func (s *session) webhookDelete() *cobra.Command {
	return s.webhookCommand("delete WEBHOOK", "Delete a webhook with its deliveries", `
flowfabric webhooks delete 0190c4d1-2b6e-7f10-8c3a-5d4e6f708192
flowfabric webhooks delete 0190c4d1-2b6e-7f10-8c3a-5d4e6f708192 --reason 'the receiver is gone'
flowfabric webhooks delete 0190c4d1-2b6e-7f10-8c3a-5d4e6f708192 --timeout 5s
`, func(ctx context.Context, w ops.Webhooks, id string, how ops.AdminAction) error {
		if err := w.Delete(ctx, id, how); err != nil {
			return err
		}
		s.printer.Note("deleted: %s", id)
		return nil
	})
}

func (s *session) webhookEnable() *cobra.Command {
	return s.webhookCommand("enable WEBHOOK", "Enable a webhook again; it gets the events since it was disabled", `
flowfabric webhooks enable 0190c4d1-2b6e-7f10-8c3a-5d4e6f708192
flowfabric webhooks enable 0190c4d1-2b6e-7f10-8c3a-5d4e6f708192 --reason 'the receiver is back'
flowfabric webhooks enable 0190c4d1-2b6e-7f10-8c3a-5d4e6f708192 --json
`, func(ctx context.Context, w ops.Webhooks, id string, how ops.AdminAction) error {
		enabled, err := w.Enable(ctx, id, how)
		if err != nil {
			return err
		}
		if s.printer.JSON || s.printer.Template != nil {
			return show.One(s.printer, show.View[*api.EnabledWebhook]{ID: func(w *api.EnabledWebhook) string { return w.ID }}, enabled)
		}
		if enabled.Note != "" {
			s.printer.Note("%s", enabled.Note)
		}
		return s.printWebhook(&enabled.Webhook, nil)
	})
}

func (s *session) webhookDisable() *cobra.Command {
	return s.webhookCommand("disable WEBHOOK", "Disable a webhook: it gets no events until it is enabled again", `
flowfabric webhooks disable 0190c4d1-2b6e-7f10-8c3a-5d4e6f708192
flowfabric webhooks disable 0190c4d1-2b6e-7f10-8c3a-5d4e6f708192 --reason 'maintenance of the receiver'
flowfabric webhooks disable 0190c4d1-2b6e-7f10-8c3a-5d4e6f708192 --json
`, func(ctx context.Context, w ops.Webhooks, id string, how ops.AdminAction) error {
		state := api.WebhookDisabled
		return s.printWebhook(w.Change(ctx, id, api.WebhookChange{State: &state}, how))
	})
}

func (s *session) webhookRotate() *cobra.Command {
	var overlap time.Duration
	secret, reason := "", ""
	var cmd *cobra.Command
	cmd = s.command("rotate WEBHOOK", "Replace the secret of a webhook, printed only this once; the old one signs too for a while", `
flowfabric webhooks rotate 0190c4d1-2b6e-7f10-8c3a-5d4e6f708192
flowfabric webhooks rotate 0190c4d1-2b6e-7f10-8c3a-5d4e6f708192 --overlap 1h
flowfabric webhooks rotate 0190c4d1-2b6e-7f10-8c3a-5d4e6f708192 --overlap 0s --reason 'it was in a log'
`, cobra.ExactArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) (err error) {
		how := ops.RotateWebhookOptions{AdminAction: ops.AdminAction{Reason: reason}, Overlap: changed(cmd.Flags(), "overlap", overlap)}
		if how.Secret, err = s.webhookSecret(secret); err != nil {
			return err
		}
		return s.printWebhookSecret(c.Admin().Webhooks().Rotate(ctx, args[0], how))
	})
	cmd.Flags().DurationVar(&overlap, "overlap", 24*time.Hour, "how long the old secret signs too, up to 168h; 0s: it no longer signs")
	cmd.Flags().StringVar(&secret, "secret", "", webhookSecretUsage)
	auditReason(cmd, &reason)
	cmd.ValidArgsFunction = s.completeWebhooks
	return cmd
}
