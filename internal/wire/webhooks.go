package wire

import (
	"net/http"

	"github.com/flowfabric/flowfabric/api"
)

// webhookCalls are the outgoing webhooks of section 2.7.
var webhookCalls = []*Operation{
	row(ListWebhooks), row(CreateWebhook), row(GetWebhook), row(UpdateWebhook), row(DeleteWebhook), row(RotateWebhook), row(TestWebhook), row(EnableWebhook),
	row(ReplayWebhook), row(ListDeliveries), row(RedeliverWebhook),
}

// The calls on webhooks. Their addresses are secrets: many receivers are known by nothing else.
var (
	ListWebhooks = Call[ListWebhooksRequest, api.Page[*api.Webhook]]{&Operation{
		ID: "list_webhooks", Rule: "U108", Method: http.MethodGet, Path: "/v1/webhooks", Roles: Operate,
		Go: "Admin.Webhooks.List", Command: "webhooks list", Summary: "List webhooks", Status: []int{http.StatusOK}, Secret: true,
	}}
	CreateWebhook = Call[CreateWebhookRequest, api.SecretWebhook]{&Operation{
		ID: "create_webhook", Rule: "U108", Method: http.MethodPost, Path: "/v1/webhooks", Roles: Operate,
		Go: "Admin.Webhooks.Create", Command: "webhooks create", Summary: "Create a webhook, which gets events from now on; its secret is shown this once",
		Status: []int{http.StatusCreated}, Secret: true,
	}}
	GetWebhook = Call[ByWebhook, api.Webhook]{&Operation{
		ID: "get_webhook", Rule: "U108", Method: http.MethodGet, Path: "/v1/webhooks/{id}", Roles: Operate,
		Go: "Admin.Webhooks.Get", Command: "webhooks get", Summary: "Show a webhook", Status: []int{http.StatusOK}, Secret: true,
	}}
	UpdateWebhook = Call[UpdateWebhookRequest, api.Webhook]{&Operation{
		ID: "update_webhook", Rule: "U108", Method: http.MethodPatch, Path: "/v1/webhooks/{id}", Roles: Operate,
		Go: "Admin.Webhooks.Change", Command: "webhooks set", Summary: "Change a webhook", Status: []int{http.StatusOK}, Secret: true,
	}}
	DeleteWebhook = Call[ChangeWebhookRequest, None]{&Operation{
		ID: "delete_webhook", Rule: "U108", Method: http.MethodDelete, Path: "/v1/webhooks/{id}", Roles: Operate,
		Go: "Admin.Webhooks.Delete", Command: "webhooks delete", Summary: "Delete a webhook with its deliveries", Status: []int{http.StatusNoContent},
	}}
	RotateWebhook = Call[RotateWebhookRequest, api.SecretWebhook]{&Operation{
		ID: "rotate_webhook", Rule: "U108", Method: http.MethodPost, Path: "/v1/webhooks/{id}/rotate", Roles: Operate,
		Go: "Admin.Webhooks.Rotate", Command: "webhooks rotate", Summary: "Replace the secret of a webhook; the old one signs, too, for a while",
		Status: []int{http.StatusCreated}, Secret: true,
	}}
	TestWebhook = Call[ChangeWebhookRequest, api.Delivery]{&Operation{
		ID: "test_webhook", Rule: "U108", Method: http.MethodPost, Path: "/v1/webhooks/{id}/test", Roles: Operate,
		Go: "Admin.Webhooks.Test", Command: "webhooks test", Summary: "Send a webhook.test event to a webhook", Status: []int{http.StatusOK},
	}}
	EnableWebhook = Call[ChangeWebhookRequest, api.EnabledWebhook]{&Operation{
		ID: "enable_webhook", Rule: "U108", Method: http.MethodPost, Path: "/v1/webhooks/{id}/enable", Roles: Operate,
		Go: "Admin.Webhooks.Enable", Command: "webhooks enable", Summary: "Enable a webhook again, where it stopped", Status: []int{http.StatusOK}, Secret: true,
	}}
	ReplayWebhook = Call[ReplayWebhookRequest, api.Webhook]{&Operation{
		ID: "replay_webhook", Rule: "U108", Method: http.MethodPost, Path: "/v1/webhooks/{id}/replay", Roles: Operate,
		Go: "Admin.Webhooks.Replay", Command: "webhooks replay", Summary: "Send past events to a webhook again", Status: []int{http.StatusOK}, Secret: true,
	}}
	ListDeliveries = Call[ListDeliveriesRequest, api.Page[*api.Delivery]]{&Operation{
		ID: "list_deliveries", Rule: "U108", Method: http.MethodGet, Path: "/v1/webhooks/{id}/deliveries", Roles: Operate,
		Go: "Admin.Webhooks.Deliveries", Command: "webhooks deliveries", Summary: "List deliveries of a webhook", Status: []int{http.StatusOK},
	}}
	RedeliverWebhook = Call[RedeliverRequest, api.Delivery]{&Operation{
		ID: "redeliver_webhook", Rule: "U108", Method: http.MethodPost, Path: "/v1/webhooks/{id}/deliveries/{delivery}/redeliver", Roles: Operate,
		Go: "Admin.Webhooks.Redeliver", Command: "webhooks redeliver", Summary: "Send a delivery again", Status: []int{http.StatusOK},
	}}
)

// ListWebhooksRequest lists webhooks.
type ListWebhooksRequest struct{ PageFields }

// ByWebhook identifies a webhook in the path.
type ByWebhook struct {
	ID string `path:"id" argument:"endpoint_id" doc:"Id of the webhook."`
}

// CreateWebhookRequest creates a webhook.
type CreateWebhookRequest struct {
	Body struct {
		api.NewWebhook
		AdminFields
	}
}

// UpdateWebhookRequest changes a webhook; absent fields are not changed.
type UpdateWebhookRequest struct {
	ByWebhook
	IfMatch *Revision `header:"If-Match" argument:"revision" doc:"Refuse if the revision differs."`
	Body    struct {
		api.WebhookChange
		AdminFields
	}
}

// ChangeWebhookRequest deletes, enables or tests a webhook.
type ChangeWebhookRequest struct {
	ByWebhook
	IfMatch *Revision `header:"If-Match" argument:"revision" doc:"Refuse if the revision differs."`
	Body    AdminFields
}

// RotateWebhookRequest replaces the secret of a webhook.
type RotateWebhookRequest struct {
	ByWebhook
	IfMatch *Revision `header:"If-Match" argument:"revision" doc:"Refuse if the revision differs."`
	Body    struct {
		AdminFields
		Secret    string `json:"secret,omitempty" maxLength:"256" doc:"whsec_ and the base64 of 24 to 64 bytes; a new one is made if absent."`
		OverlapMS *int64 `json:"overlap_ms,omitempty" minimum:"0" maximum:"604800000" doc:"How long the old secret signs, too; default 86400000. 0: no former secret signs any more."`
	}
}

// ReplayWebhookRequest sends past events again.
type ReplayWebhookRequest struct {
	ByWebhook
	IfMatch *Revision `header:"If-Match" argument:"revision" doc:"Refuse if the revision differs."`
	Body    struct {
		AdminFields
		ReplayedEvents
	}
}

// ReplayedEvents are a part of the event log.
type ReplayedEvents struct {
	After string `json:"after" required:"true" doc:"A cursor of the event log, or start: events behind it are sent."`
	Until string `json:"until,omitempty" doc:"A cursor of the event log: the last event that is sent. Default: the newest now."`
}

// ListDeliveriesRequest lists deliveries of a webhook.
type ListDeliveriesRequest struct {
	ByWebhook
	PageFields
	State string `query:"state" enum:"pending,delivered,dead,cancelled" doc:"Deliveries in this state."`
}

// RedeliverRequest sends a delivery again.
type RedeliverRequest struct {
	ByWebhook
	Delivery string    `path:"delivery" argument:"delivery_id" doc:"Id of the delivery."`
	IfMatch  *Revision `header:"If-Match" argument:"revision" doc:"Refuse if the revision differs."`
	Body     AdminFields
}
