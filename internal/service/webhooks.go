package service

import (
	"cmp"
	"context"
	"strings"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/webhook"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func (s *Service) webhooks() {
	on(s, wire.ListWebhooks, s.listWebhooks)
	on(s, wire.CreateWebhook, s.createWebhook)
	on(s, wire.GetWebhook, s.getWebhook)
	on(s, wire.UpdateWebhook, s.updateWebhook)
	on(s, wire.DeleteWebhook, s.deleteWebhook)
	on(s, wire.RotateWebhook, s.rotateWebhook)
	on(s, wire.TestWebhook, s.testWebhook)
	on(s, wire.EnableWebhook, s.enableWebhook)
	on(s, wire.ReplayWebhook, s.replayWebhook)
	on(s, wire.ListDeliveries, s.listDeliveries)
	on(s, wire.RedeliverWebhook, s.redeliverWebhook)
}

// webhookID reads the id of a webhook. Codes: invalid_id.
func webhookID(field, text string) (base.UUID, error) {
	id, ok := base.ParseUUID(text)
	if !ok {
		return id, base.Errorf(base.CodeInvalidID, "not a UUID in lower case").WithField(field)
	}
	return id, nil
}

// secretOf returns the given secret, or one that is made of the random bytes of the call.
func (c *Caller) secretOf(given string) (webhook.Secret, error) {
	if given != "" {
		return webhook.ParseSecret(given)
	}
	return webhook.NewSecret(append([]byte(nil), c.random[:webhook.NewSize]...)), nil
}

// listWebhooks lists webhooks by id (U108).
func (s *Service) listWebhooks(ctx context.Context, c Caller, r *wire.ListWebhooksRequest) (api.Page[*api.Webhook], error) {
	return page(r.PageFields, webhookOf, func(cursor string, limit *int) ([]engine.WebhookView, string, error) {
		return s.engine.Webhooks.Webhooks(ctx, c.operator(), cursor, limit)
	})
}

// createWebhook makes a webhook and returns its secret (U108).
func (s *Service) createWebhook(ctx context.Context, c Caller, r *wire.CreateWebhookRequest) (api.SecretWebhook, error) {
	home, err := c.home()
	if err != nil {
		return api.SecretWebhook{}, err
	}
	secret, err := c.secretOf(r.Body.Secret)
	if err != nil {
		return api.SecretWebhook{}, err
	}
	settings := webhook.Settings{URL: r.Body.URL, MaxInFlight: r.Body.MaxInFlight}
	if r.Body.Filter != nil {
		settings.Filter = webhookFilter(r.Body.Filter)
	}
	view, own, err := s.engine.CreateWebhook(ctx, c.operator(), home, settings, secret, c.action(r.Body.AdminFields, nil))
	return secretWebhook(view, own, secret, underFilter(err))
}

// underFilter names the fields of a filter as they stand in a body.
func underFilter(err error) error {
	refusal, ok := err.(*base.Error) //nolint:errorlint // rules return it bare
	if !ok || refusal.Code != base.CodeInvalidFilter && refusal.Code != base.CodeInvalidID || strings.HasPrefix(refusal.Field, "filter") {
		return err
	}
	named := *refusal
	return named.WithField(strings.TrimSuffix("filter."+named.Field, "."))
}

func secretWebhook(view engine.WebhookView, own bool, secret webhook.Secret, err error) (api.SecretWebhook, error) {
	if err != nil {
		return api.SecretWebhook{}, err
	}
	shown := api.SecretWebhook{Webhook: *webhookOf(view)}
	if own {
		shown.Secret = secret.Text()
	}
	return shown, nil
}

// getWebhook returns a webhook (U108).
func (s *Service) getWebhook(ctx context.Context, c Caller, r *wire.ByWebhook) (api.Webhook, error) {
	id, err := webhookID("endpoint_id", r.ID)
	if err != nil {
		return api.Webhook{}, err
	}
	return webhookShown(s.engine.Webhook(ctx, c.operator(), id))
}

// updateWebhook changes a webhook (U108).
func (s *Service) updateWebhook(ctx context.Context, c Caller, r *wire.UpdateWebhookRequest) (api.Webhook, error) {
	id, err := webhookID("endpoint_id", r.ID)
	if err != nil {
		return api.Webhook{}, err
	}
	patch := webhook.Patch{URL: r.Body.URL, MaxInFlight: r.Body.MaxInFlight}
	if r.Body.Filter != nil {
		filter := webhookFilter(r.Body.Filter)
		patch.Filter = &filter
	}
	view, err := s.engine.ChangeWebhook(ctx, c.operator(), id, patch, r.Body.State, c.action(r.Body.AdminFields, r.IfMatch))
	return webhookShown(view, underFilter(err))
}

// deleteWebhook removes a webhook (U108).
func (s *Service) deleteWebhook(ctx context.Context, c Caller, r *wire.ChangeWebhookRequest) (wire.None, error) {
	id, err := webhookID("endpoint_id", r.ID)
	if err != nil {
		return wire.None{}, err
	}
	return wire.None{}, s.engine.DeleteWebhook(ctx, c.operator(), id, c.action(r.Body, r.IfMatch))
}

// rotateWebhook gives a webhook a new secret and returns it (U108).
func (s *Service) rotateWebhook(ctx context.Context, c Caller, r *wire.RotateWebhookRequest) (api.SecretWebhook, error) {
	id, err := webhookID("endpoint_id", r.ID)
	if err != nil {
		return api.SecretWebhook{}, err
	}
	secret, err := c.secretOf(r.Body.Secret)
	if err != nil {
		return api.SecretWebhook{}, err
	}
	overlap := webhook.DefaultOverlap
	if r.Body.OverlapMS != nil {
		overlap = *r.Body.OverlapMS
	}
	view, own, err := s.engine.RotateWebhook(ctx, c.operator(), id, secret, overlap, c.action(r.Body.AdminFields, r.IfMatch))
	return secretWebhook(view, own, secret, err)
}

// testWebhook sends a test to a webhook (U108).
func (s *Service) testWebhook(ctx context.Context, c Caller, r *wire.ChangeWebhookRequest) (api.Delivery, error) {
	id, err := webhookID("endpoint_id", r.ID)
	if err != nil {
		return api.Delivery{}, err
	}
	return deliveryShown(s.engine.TestWebhook(ctx, c.operator(), id, c.action(r.Body, r.IfMatch)))
}

// enableWebhook starts a webhook again (U108).
func (s *Service) enableWebhook(ctx context.Context, c Caller, r *wire.ChangeWebhookRequest) (api.EnabledWebhook, error) {
	id, err := webhookID("endpoint_id", r.ID)
	if err != nil {
		return api.EnabledWebhook{}, err
	}
	view, note, err := s.engine.EnableWebhook(ctx, c.operator(), id, c.action(r.Body, r.IfMatch))
	if err != nil {
		return api.EnabledWebhook{}, err
	}
	return api.EnabledWebhook{Webhook: *webhookOf(view), Note: note}, nil
}

// replayWebhook sends past events again (U108).
func (s *Service) replayWebhook(ctx context.Context, c Caller, r *wire.ReplayWebhookRequest) (api.Webhook, error) {
	id, err := webhookID("endpoint_id", r.ID)
	if err != nil {
		return api.Webhook{}, err
	}
	until := cmp.Or(r.Body.Until, api.FromEnd)
	if err := s.engine.ReplayWebhook(ctx, c.operator(), id, r.Body.After, until, c.action(r.Body.AdminFields, r.IfMatch)); err != nil {
		return api.Webhook{}, err
	}
	return webhookShown(s.engine.Webhook(ctx, c.operator(), id))
}

// listDeliveries lists deliveries of a webhook (U108).
func (s *Service) listDeliveries(ctx context.Context, c Caller, r *wire.ListDeliveriesRequest) (api.Page[*api.Delivery], error) {
	id, err := webhookID("endpoint_id", r.ID)
	if err != nil {
		return api.Page[*api.Delivery]{}, err
	}
	return page(r.PageFields, deliveryOf, func(cursor string, limit *int) ([]webhook.Delivery, string, error) {
		return s.engine.Deliveries(ctx, c.operator(), id, r.State, cursor, limit)
	})
}

// redeliverWebhook sends a delivery again (U108).
func (s *Service) redeliverWebhook(ctx context.Context, c Caller, r *wire.RedeliverRequest) (api.Delivery, error) {
	id, err := webhookID("endpoint_id", r.ID)
	if err != nil {
		return api.Delivery{}, err
	}
	delivery, err := webhookID("delivery_id", r.Delivery)
	if err != nil {
		return api.Delivery{}, err
	}
	return deliveryShown(s.engine.Redeliver(ctx, c.operator(), id, delivery, c.action(r.Body, r.IfMatch)))
}

func webhookFilter(f *api.WebhookFilter) webhook.Filter {
	return webhook.Filter{
		Kinds: f.Kinds, ExecutionID: string(f.ExecutionID), FlowID: string(f.FlowID), Lane: f.Lane, Outcome: f.Outcome, InstanceID: f.InstanceID,
		Tags: f.Tags, ActorType: f.ActorType, Since: base.TimeOf(f.Since),
	}
}

func webhookShown(view engine.WebhookView, err error) (api.Webhook, error) {
	if err != nil {
		return api.Webhook{}, err
	}
	return *webhookOf(view), nil
}

func webhookOf(v engine.WebhookView) *api.Webhook {
	shown := &api.Webhook{
		ID: v.ID.String(), Namespace: v.Namespace, URL: v.URL, MaxInFlight: v.MaxInFlight, State: v.State, Reason: v.Reason, DisabledAt: v.DisabledAt.Std(),
		Revision: v.Revision, CreatedAt: v.CreatedAt.Std(), CreatedBy: v.CreatedBy, Pending: v.Queue.Pending(), Dead: v.Queue.Dead,
		FailingSince: v.Queue.FailingSince.Std(), CatchingUp: len(v.Queue.Ranges) > 0 || v.Active() && v.Queue.Stopped != nil,
	}
	if f := &v.Filter; !f.Empty() {
		shown.Filter = &api.WebhookFilter{
			Kinds: f.Kinds, ExecutionID: api.ID(f.ExecutionID), FlowID: api.ID(f.FlowID), Lane: f.Lane, Outcome: f.Outcome, InstanceID: f.InstanceID,
			Tags: f.Tags, ActorType: f.ActorType, Since: f.Since.Std(),
		}
	}
	var until base.Time
	for _, s := range v.Secrets {
		until = base.Later(until, s.Until)
	}
	shown.OverlapUntil = until.Std()
	return shown
}

func deliveryShown(d webhook.Delivery, err error) (api.Delivery, error) {
	if err != nil {
		return api.Delivery{}, err
	}
	return *deliveryOf(d), nil
}

func deliveryOf(d webhook.Delivery) *api.Delivery {
	shown := &api.Delivery{
		ID: d.ID.String(), EventID: d.EventID.String(), Kind: d.Kind, EventAt: d.EventAt.Std(), State: d.State, CreatedAt: d.CreatedAt.Std(),
		Attempts: d.Attempts, NextAttemptAt: d.DueAt.Std(), FinishedAt: d.FinishedAt.Std(),
	}
	if l := d.Last; l != nil {
		shown.LastAttempt = &api.DeliveryAttempt{
			At: l.At.Std(), Status: l.Status, Duration: l.DurationMS, Error: l.Error, Answer: strings.ToValidUTF8(string(l.Answer), "\uFFFD"),
		}
	}
	return shown
}

// Envelope encodes an event as readers of the log get it, for webhooks.
func Envelope(ev engine.LoggedEvent) ([]byte, error) { return eventOf(ev).MarshalJSON() }
