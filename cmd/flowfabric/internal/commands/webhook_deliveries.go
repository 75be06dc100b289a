package commands

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
	"github.com/flowfabric/flowfabric/ops"
)

func (s *session) webhookTest() *cobra.Command {
	return s.webhookCommand("test WEBHOOK", "Send an event of the type webhook.test to a webhook", `
flowfabric webhooks test 0190c4d1-2b6e-7f10-8c3a-5d4e6f708192
flowfabric webhooks test 0190c4d1-2b6e-7f10-8c3a-5d4e6f708192 --quiet
flowfabric webhooks test 0190c4d1-2b6e-7f10-8c3a-5d4e6f708192 --json
`, func(ctx context.Context, w ops.Webhooks, id string, how ops.AdminAction) error {
		delivery, err := w.Test(ctx, id, how)
		if err := s.printDelivery(delivery, err); err != nil {
			return err
		}
		s.printer.Note("flowfabric webhooks deliveries %s shows what becomes of it", id)
		return nil
	})
}

func (s *session) webhookDeliveries() *cobra.Command {
	state, limit := "", 100
	cmd := s.command("deliveries WEBHOOK", "List deliveries of a webhook with their last attempt: cancelled, delivered, pending and dead ones", `
flowfabric webhooks deliveries 0190c4d1-2b6e-7f10-8c3a-5d4e6f708192
flowfabric webhooks deliveries 0190c4d1-2b6e-7f10-8c3a-5d4e6f708192 --state dead --wide
flowfabric webhooks deliveries 0190c4d1-2b6e-7f10-8c3a-5d4e6f708192 --state pending --limit 10 --json
`, cobra.ExactArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		return show.First(s.printer, s.deliveryView(), c.Admin().Webhooks().Deliveries(ctx, args[0], ops.DeliveryQuery{State: state}), limit)
	})
	cmd.Flags().StringVar(&state, "state", "", "only these: pending, delivered, dead or cancelled")
	cmd.Flags().IntVar(&limit, "limit", limit, "maximum number; 0: all")
	cmd.ValidArgsFunction = s.completeWebhooks
	_ = cmd.RegisterFlagCompletionFunc("state", cobra.FixedCompletions( // fails only if the flag is missing
		[]string{api.DeliveryPending, api.DeliveryDelivered, api.DeliveryDead, api.DeliveryCancelled}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (s *session) webhookRedeliver() *cobra.Command {
	reason := ""
	cmd := s.command("redeliver WEBHOOK DELIVERY", "Send a delivery again, whatever became of it", `
flowfabric webhooks redeliver 0190c4d1-2b6e-7f10-8c3a-5d4e6f708192 0190c4d1-3c7f-7a21-9d4b-6e5f708192a3
flowfabric webhooks redeliver 0190c4d1-2b6e-7f10-8c3a-5d4e6f708192 0190c4d1-3c7f-7a21-9d4b-6e5f708192a3 --reason 'the receiver lost it'
flowfabric webhooks redeliver 0190c4d1-2b6e-7f10-8c3a-5d4e6f708192 0190c4d1-3c7f-7a21-9d4b-6e5f708192a3 --json
`, cobra.ExactArgs(2), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		return s.printDelivery(c.Admin().Webhooks().Redeliver(ctx, args[0], args[1], ops.AdminAction{Reason: reason}))
	})
	auditReason(cmd, &reason)
	cmd.ValidArgsFunction = s.completeDeliveries
	return cmd
}

func (s *session) webhookReplay() *cobra.Command {
	after, until, reason := "", "", ""
	cmd := s.command("replay WEBHOOK", "Send past events to a webhook again, those that its filter keeps", `
flowfabric webhooks replay 0190c4d1-2b6e-7f10-8c3a-5d4e6f708192
flowfabric webhooks replay 0190c4d1-2b6e-7f10-8c3a-5d4e6f708192 --after start
flowfabric webhooks replay 0190c4d1-2b6e-7f10-8c3a-5d4e6f708192 --reason 'the receiver lost its database'
`, cobra.ExactArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		return s.printWebhook(c.Admin().Webhooks().Replay(ctx, args[0], after, until, ops.AdminAction{Reason: reason}))
	})
	cmd.Flags().StringVar(&after, "after", api.FromStart, "cursor of an event, or start: later events are sent")
	cmd.Flags().StringVar(&until, "until", "", "cursor of the last event that is sent; default: the newest")
	auditReason(cmd, &reason)
	cmd.ValidArgsFunction = s.completeWebhooks
	return cmd
}

func (s *session) printWebhook(w *api.Webhook, err error) error {
	if err != nil {
		return err
	}
	return show.One(s.printer, s.webhookView(), w)
}

func (s *session) printDelivery(d *api.Delivery, err error) error {
	if err != nil {
		return err
	}
	return show.One(s.printer, s.deliveryView(), d)
}

func (s *session) webhookView() show.View[*api.Webhook] {
	p := s.printer
	type x = *api.Webhook
	return show.View[x]{ID: func(w x) string { return w.ID }, None: "no webhooks", Columns: []show.Column[x]{
		{Name: "WEBHOOK", Text: func(w x) string { return w.ID }},
		{Name: "URL", Text: func(w x) string { return w.URL }},
		{Name: "STATE", Text: func(w x) string { return strings.TrimSpace(w.State + " " + w.Reason) }},
		{Name: "EVENTS", Text: func(w x) string { return filterText(w.Filter) }},
		{Name: "PENDING", Text: func(w x) string { return strconv.Itoa(w.Pending) }},
		{Name: "DEAD", Text: func(w x) string { return strconv.Itoa(w.Dead) }},
		{Name: "FAILING SINCE", Text: func(w x) string { return p.Time(w.FailingSince) }},
		{Name: "IN FLIGHT", Text: func(w x) string { return strconv.Itoa(w.MaxInFlight) }, Wide: true},
		{Name: "CATCHING UP", Text: func(w x) string { return yesText(w.CatchingUp) }, Wide: true},
		{Name: "OLD SECRET UNTIL", Text: func(w x) string { return p.Time(w.OverlapUntil) }, Wide: true},
		{Name: "DISABLED", Text: func(w x) string { return p.Time(w.DisabledAt) }, Wide: true},
		{Name: "NAMESPACE", Text: func(w x) string { return w.Namespace }, Wide: true},
		{Name: "CREATED", Text: func(w x) string { return p.Time(w.CreatedAt) }, Wide: true},
		{Name: "BY", Text: func(w x) string { return w.CreatedBy }, Wide: true},
		{Name: "REVISION", Text: func(w x) string { return strconv.FormatInt(w.Revision, 10) }, Wide: true},
	}}
}

// filterText writes the conditions of a filter as the flags that set them.
func filterText(f *api.WebhookFilter) string {
	if f == nil {
		return "all"
	}
	var parts []string
	for _, part := range [][2]string{
		{"", strings.Join(f.Kinds, ",")},
		{"execution=", bareID(f.ExecutionID)},
		{"flow=", bareID(f.FlowID)},
		{"lane=", f.Lane},
		{"outcome=", f.Outcome},
		{"worker=", f.InstanceID},
		{"actor=", f.ActorType},
	} {
		if part[1] != "" {
			parts = append(parts, part[0]+part[1])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(f.Tags)) {
		parts = append(parts, "tag."+key+"="+f.Tags[key])
	}
	if !f.Since.IsZero() {
		parts = append(parts, "since="+f.Since.UTC().Format(time.RFC3339))
	}
	return cmp.Or(strings.Join(parts, " "), "all")
}

func (s *session) deliveryView() show.View[*api.Delivery] {
	p := s.printer
	type x = *api.Delivery
	last := func(text func(*api.DeliveryAttempt) string) func(x) string {
		return func(d x) string {
			if d.LastAttempt == nil {
				return ""
			}
			return text(d.LastAttempt)
		}
	}
	return show.View[x]{ID: func(d x) string { return d.ID }, None: "no deliveries", Columns: []show.Column[x]{
		{Name: "DELIVERY", Text: func(d x) string { return d.ID }},
		{Name: "EVENT", Text: func(d x) string { return d.Kind }},
		{Name: "STATE", Text: func(d x) string { return d.State }},
		{Name: "ATTEMPTS", Text: func(d x) string { return strconv.Itoa(d.Attempts) }},
		{Name: "ANSWER", Text: last(func(a *api.DeliveryAttempt) string {
			if a.Status == 0 {
				return a.Error
			}
			return strings.TrimSpace(strconv.Itoa(a.Status) + " " + a.Error)
		})},
		{Name: "TOOK", Text: last(func(a *api.DeliveryAttempt) string { return show.Span(time.Duration(a.Duration) * time.Millisecond) })},
		{Name: "NEXT", Text: func(d x) string { return p.Time(d.NextAttemptAt) }},
		{Name: "AT", Text: func(d x) string { return p.Time(d.EventAt) }},
		{Name: "WEBHOOK-ID", Text: func(d x) string { return d.EventID }, Wide: true},
		{Name: "FINISHED", Text: func(d x) string { return p.Time(d.FinishedAt) }, Wide: true},
		{Name: "BODY", Text: last(func(a *api.DeliveryAttempt) string { return a.Answer }), Wide: true},
	}}
}

// completeWebhooks completes webhooks.
func (s *session) completeWebhooks(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return s.offer(cmd, func(ctx context.Context, c *flowfabric.Client) ([]string, error) {
		page, err := c.Admin().Webhooks().Page(ctx)
		var found []string
		for _, w := range page.Items {
			found = append(found, w.ID+"\t"+w.URL+" "+w.State)
		}
		return found, err
	})
}

// completeDeliveries completes a webhook, then deliveries of it that were given up.
func (s *session) completeDeliveries(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) != 1 {
		return s.completeWebhooks(cmd, args, typed)
	}
	return s.offer(cmd, func(ctx context.Context, c *flowfabric.Client) ([]string, error) {
		query := ops.DeliveryQuery{State: api.DeliveryDead, PageOptions: flowfabric.PageOptions{Limit: 50}}
		page, err := c.Admin().Webhooks().DeliveriesPage(ctx, args[0], query)
		var found []string
		for _, d := range page.Items {
			found = append(found, d.ID+"\t"+d.Kind)
		}
		return found, err
	})
}
