package ops

import (
	"context"
	"iter"
	"time"

	"github.com/flowfabric/flowfabric/internal/calls"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/transport"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// Webhooks are endpoints that events of a namespace are posted to, signed as the Standard Webhooks specification says. Each event is
// delivered at least once, or given up after ten attempts in about three days; receivers recognise repeats by the header webhook-id.
// Requests for the events of one endpoint begin in the order of the log, but they overtake each other.
type Webhooks struct{ via transport.Transport }

// Webhooks are the endpoints that get events.
func (a Admin) Webhooks() Webhooks { return Webhooks(a) }

// RotateWebhookOptions are the options of Webhooks.Rotate.
type RotateWebhookOptions struct {
	AdminAction
	Secret  string         // the new secret, "whsec_…"; "": one is made
	Overlap *time.Duration // how long the old secret signs, too, up to seven days; nil: one day; 0: no former secret signs any more
}

// DeliveryQuery filters a list of deliveries. The zero value: all of them.
type DeliveryQuery struct {
	State string // pending, delivered, dead, cancelled
	api.PageOptions
}

// List iterates over the webhooks by id, the oldest first. Codes: invalid_cursor.
func (w Webhooks) List(ctx context.Context) iter.Seq2[*api.Webhook, error] {
	return calls.Walk(nil, "", func(cursor string) (api.Page[*api.Webhook], error) {
		return w.Page(ctx, api.PageOptions{Cursor: cursor})
	})
}

// Page returns one page of them. Codes: invalid_cursor.
func (w Webhooks) Page(ctx context.Context, o ...api.PageOptions) (api.Page[*api.Webhook], error) {
	options, err := transport.Single(o)
	if err != nil {
		return api.Page[*api.Webhook]{}, err
	}
	request := &wire.ListWebhooksRequest{PageFields: calls.PageFields(options.Limit, options.Cursor)}
	return calls.Value(transport.Call(ctx, w.via, wire.ListWebhooks, request, transport.Options{}))
}

// Get returns a webhook. Codes: webhook_not_found, invalid_id.
func (w Webhooks) Get(ctx context.Context, id string) (*api.Webhook, error) {
	return transport.Call(ctx, w.via, wire.GetWebhook, &wire.ByWebhook{ID: id}, transport.Options{})
}

// Create makes a webhook in the client's namespace and returns its secret, which cannot be read again. It gets the events that are
// committed from then on. A call that repeats a request key returns the webhook without the secret, unless the call brought it.
//
// Codes: invalid_webhook_url, invalid_secret, invalid_filter, invalid_argument, namespace_limit_exceeded, namespace_required.
func (w Webhooks) Create(ctx context.Context, endpoint api.NewWebhook, o ...AdminAction) (*api.SecretWebhook, error) {
	options, err := transport.Single(o)
	if err != nil {
		return nil, err
	}
	request := &wire.CreateWebhookRequest{}
	request.Body.NewWebhook, request.Body.AdminFields = endpoint, options.wire()
	return transport.Call(ctx, w.via, wire.CreateWebhook, request, transport.Options{Key: options.RequestKey})
}

// Change changes what is given. A webhook that becomes active again continues where it stopped, as with Enable.
//
// Codes: webhook_not_found, invalid_webhook_url, invalid_filter, invalid_argument, precondition_failed.
func (w Webhooks) Change(ctx context.Context, id string, c api.WebhookChange, o ...AdminAction) (*api.Webhook, error) {
	options, err := transport.Single(o)
	if err != nil {
		return nil, err
	}
	request := &wire.UpdateWebhookRequest{ByWebhook: wire.ByWebhook{ID: id}, IfMatch: (*wire.Revision)(options.Revision)}
	request.Body.WebhookChange, request.Body.AdminFields = c, options.wire()
	return transport.Call(ctx, w.via, wire.UpdateWebhook, request, transport.Options{Key: options.RequestKey})
}

// changeWebhook is the request of the calls that need nothing but the webhook.
func changeWebhook(id string, options *AdminAction) *wire.ChangeWebhookRequest {
	return &wire.ChangeWebhookRequest{ByWebhook: wire.ByWebhook{ID: id}, IfMatch: (*wire.Revision)(options.Revision), Body: options.wire()}
}

// Delete removes a webhook with its deliveries. Codes: webhook_not_found, precondition_failed.
func (w Webhooks) Delete(ctx context.Context, id string, o ...AdminAction) error {
	options, err := transport.Single(o)
	if err != nil {
		return err
	}
	_, err = transport.Call(ctx, w.via, wire.DeleteWebhook, changeWebhook(id, &options), transport.Options{Key: options.RequestKey})
	return err
}

// Rotate gives a webhook a new secret and returns it; it cannot be read again. Until the overlap ends requests have signatures of
// both.
//
// Codes: webhook_not_found, invalid_secret, invalid_argument, precondition_failed.
func (w Webhooks) Rotate(ctx context.Context, id string, o ...RotateWebhookOptions) (*api.SecretWebhook, error) {
	options, err := transport.Single(o)
	if err != nil {
		return nil, err
	}
	request := &wire.RotateWebhookRequest{ByWebhook: wire.ByWebhook{ID: id}, IfMatch: (*wire.Revision)(options.Revision)}
	request.Body.AdminFields, request.Body.Secret, request.Body.OverlapMS = options.wire(), options.Secret, givenMillis(options.Overlap)
	return transport.Call(ctx, w.via, wire.RotateWebhook, request, transport.Options{Key: options.RequestKey})
}

// Test sends an event of the kind webhook.test, as any other event is sent; to a disabled webhook once it is enabled. The delivery
// shows what became of it.
//
// Codes: webhook_not_found, namespace_limit_exceeded.
func (w Webhooks) Test(ctx context.Context, id string, o ...AdminAction) (*api.Delivery, error) {
	options, err := transport.Single(o)
	if err != nil {
		return nil, err
	}
	return transport.Call(ctx, w.via, wire.TestWebhook, changeWebhook(id, &options), transport.Options{Key: options.RequestKey})
}

// Enable starts a webhook again: with the first event after the one where it stopped, or with the oldest that is retained, which the
// note of the answer then says.
//
// Codes: webhook_not_found, precondition_failed.
func (w Webhooks) Enable(ctx context.Context, id string, o ...AdminAction) (*api.EnabledWebhook, error) {
	options, err := transport.Single(o)
	if err != nil {
		return nil, err
	}
	return transport.Call(ctx, w.via, wire.EnableWebhook, changeWebhook(id, &options), transport.Options{Key: options.RequestKey})
}

// Replay sends events of the log again: those behind the cursor after (or "start"), up to the cursor until ("": the newest now), that
// the filter of the webhook keeps.
//
// Codes: webhook_not_found, invalid_cursor, cursor_too_old, namespace_limit_exceeded.
func (w Webhooks) Replay(ctx context.Context, id, after, until string, o ...AdminAction) (*api.Webhook, error) {
	options, err := transport.Single(o)
	if err != nil {
		return nil, err
	}
	request := &wire.ReplayWebhookRequest{ByWebhook: wire.ByWebhook{ID: id}, IfMatch: (*wire.Revision)(options.Revision)}
	request.Body.AdminFields, request.Body.After, request.Body.Until = options.wire(), after, until
	return transport.Call(ctx, w.via, wire.ReplayWebhook, request, transport.Options{Key: options.RequestKey})
}

// Deliveries iterates over deliveries of a webhook: cancelled, delivered, pending and dead ones, each in the order in which they were
// made. All that are pending are there; of the others the newest: 1,000 delivered ones, 10,000 dead and 10,000 cancelled ones.
//
// Codes: webhook_not_found, invalid_argument, invalid_cursor.
func (w Webhooks) Deliveries(ctx context.Context, id string, q ...DeliveryQuery) iter.Seq2[*api.Delivery, error] {
	query, err := transport.Single(q)
	return calls.Walk(err, query.Cursor, func(cursor string) (api.Page[*api.Delivery], error) {
		query.Cursor = cursor
		return w.DeliveriesPage(ctx, id, query)
	})
}

// DeliveriesPage returns one page of them. Codes: webhook_not_found, invalid_argument, invalid_cursor.
func (w Webhooks) DeliveriesPage(ctx context.Context, id string, q ...DeliveryQuery) (api.Page[*api.Delivery], error) {
	query, err := transport.Single(q)
	if err != nil {
		return api.Page[*api.Delivery]{}, err
	}
	request := &wire.ListDeliveriesRequest{ByWebhook: wire.ByWebhook{ID: id}, PageFields: calls.PageFields(query.Limit, query.Cursor), State: query.State}
	return calls.Value(transport.Call(ctx, w.via, wire.ListDeliveries, request, transport.Options{}))
}

// Redeliver sends a delivery again, whatever became of it: at once, and then as often as any other.
//
// Codes: webhook_not_found, delivery_not_found, namespace_limit_exceeded.
func (w Webhooks) Redeliver(ctx context.Context, id, delivery string, o ...AdminAction) (*api.Delivery, error) {
	options, err := transport.Single(o)
	if err != nil {
		return nil, err
	}
	request := &wire.RedeliverRequest{
		ByWebhook: wire.ByWebhook{ID: id}, Delivery: delivery, IfMatch: (*wire.Revision)(options.Revision), Body: options.wire(),
	}
	return transport.Call(ctx, w.via, wire.RedeliverWebhook, request, transport.Options{Key: options.RequestKey})
}
