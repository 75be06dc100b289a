package api

import (
	"time"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// States of a webhook.
const (
	WebhookActive   = "active"
	WebhookDisabled = "disabled"
)

// States of a delivery.
const (
	DeliveryPending   = "pending"
	DeliveryDelivered = "delivered"
	DeliveryDead      = "dead"
	DeliveryCancelled = "cancelled"
)

// WebhookFilter selects events: all given parts must hold. The zero value selects all events of the namespace.
type WebhookFilter struct {
	Kinds       []string          `json:"kinds,omitempty" maxItems:"100" doc:"Kinds of events, or their beginnings up to a dot, of which one must hold."`
	ExecutionID ID                `json:"execution_id,omitempty" doc:"Events of this execution."`
	FlowID      ID                `json:"flow_id,omitempty" doc:"Events of this flow."`
	Lane        string            `json:"lane,omitempty" maxLength:"64" doc:"Events in this lane."`
	Outcome     string            `json:"outcome,omitempty" maxLength:"64" doc:"Endings with this outcome."`
	InstanceID  string            `json:"worker_instance_id,omitempty" maxLength:"256" doc:"Events of this worker instance."`
	Tags        map[string]string `json:"tags,omitempty" doc:"Events with all these tags."`
	ActorType   string            `json:"actor,omitempty" enum:"client,worker,operator,approver,engine" doc:"Events by this type of actor."`
	Since       time.Time         `json:"since,omitzero" doc:"Events at or after this time."`
}

// NewWebhook is an endpoint that is to get events.
type NewWebhook struct {
	URL         string         `json:"url" required:"true" maxLength:"2048" doc:"Where events are posted to: https, without user name and fragment."`
	Filter      *WebhookFilter `json:"filter,omitempty" doc:"Which events it gets; all of the namespace if absent."`
	MaxInFlight int            `json:"max_in_flight,omitempty" minimum:"0" maximum:"64" doc:"Requests at a time; 0: 8."`
	// Secret signs the requests; "": a new one is made.
	Secret string `json:"secret,omitempty" maxLength:"256" doc:"whsec_ and the base64 of 24 to 64 bytes; a new one is made if absent."`
}

// WebhookChange changes an endpoint; nil fields are not changed.
type WebhookChange struct {
	URL         *string        `json:"url,omitempty" maxLength:"2048" doc:"Where events are posted to."`
	Filter      *WebhookFilter `json:"filter,omitempty" doc:"Which events it gets; {}: all of the namespace."`
	MaxInFlight *int           `json:"max_in_flight,omitempty" minimum:"1" maximum:"64" doc:"Requests at a time."`
	State       *string        `json:"state,omitempty" enum:"active,disabled" doc:"disabled: it gets no events until it is active again, then those between, too."`
}

// Webhook is an endpoint that gets events, without its secrets.
type Webhook struct {
	ID          string         `json:"endpoint_id" doc:"Id of the webhook."`
	Namespace   string         `json:"namespace" doc:"Its namespace."`
	URL         string         `json:"url" doc:"Where events are posted to."`
	Filter      *WebhookFilter `json:"filter,omitempty" doc:"Which events it gets; all of the namespace if absent."`
	MaxInFlight int            `json:"max_in_flight" doc:"Requests at a time."`
	State       string         `json:"state" enum:"active,disabled" doc:"Whether it gets events."`
	Reason      string         `json:"reason,omitempty" enum:"operator,gone,failing" doc:"Why it is disabled: an operator asked for it, the receiver answered 410, or it failed for five days."`
	DisabledAt  time.Time      `json:"disabled_at,omitzero" doc:"When it was disabled."`
	Revision    int64          `json:"revision" doc:"Counts the changes of the webhook."`
	CreatedAt   time.Time      `json:"created_at,omitzero" doc:"When it was created."`
	CreatedBy   string         `json:"created_by,omitempty" doc:"Who created it."`
	// OverlapUntil is when the last replaced secret stops signing; zero: the current secret alone signs.
	OverlapUntil time.Time `json:"overlap_until,omitzero" doc:"When the last replaced secret stops signing; absent: the current one alone signs."`
	Pending      int       `json:"pending" doc:"Deliveries that are not finished."`
	Dead         int       `json:"dead" doc:"Recorded deliveries that were given up after ten attempts."`
	FailingSince time.Time `json:"failing_since,omitzero" doc:"When attempts began to fail; absent: the last one succeeded."`
	CatchingUp   bool      `json:"catching_up,omitempty" doc:"Events of the past are still to be taken from the log."`
}

// SecretWebhook is a webhook with its new secret.
type SecretWebhook struct {
	Webhook
	// Secret is the new secret; "" if it was shown before.
	Secret string `json:"secret,omitempty" doc:"The secret that signs; shown only this once."`
}

// EnabledWebhook is a webhook that was enabled.
type EnabledWebhook struct {
	Webhook
	Note string `json:"note,omitempty" doc:"Which events cannot be sent any more, if some cannot."`
}

// DeliveryAttempt is one request to an endpoint and what became of it.
type DeliveryAttempt struct {
	At       time.Time `json:"at,omitzero" doc:"When it began."`
	Status   int       `json:"status,omitempty" doc:"HTTP status; absent without an answer."`
	Duration int64     `json:"duration_ms" doc:"How long it took in milliseconds."`
	Error    string    `json:"error,omitempty" doc:"Why there was no complete answer."`
	Answer   string    `json:"answer,omitempty" doc:"The first 1024 bytes of the answer, as text."`
}

// Delivery is one event on its way to one endpoint.
type Delivery struct {
	ID            string           `json:"delivery_id" doc:"Id of the delivery."`
	EventID       string           `json:"event_id" doc:"Id of the event: the header webhook-id."`
	Kind          string           `json:"kind" doc:"Kind of the event."`
	EventAt       time.Time        `json:"event_at,omitzero" doc:"When the event happened."`
	State         string           `json:"state" enum:"pending,delivered,dead,cancelled" doc:"State of the delivery."`
	CreatedAt     time.Time        `json:"created_at,omitzero" doc:"When it was made."`
	Attempts      int              `json:"attempts" doc:"Requests so far."`
	NextAttemptAt time.Time        `json:"next_attempt_at,omitzero" doc:"When it is tried again, after a failure."`
	FinishedAt    time.Time        `json:"finished_at,omitzero" doc:"When it was delivered, given up or cancelled."`
	LastAttempt   *DeliveryAttempt `json:"last_attempt,omitempty" doc:"The last request."`
}

// MarshalJSON writes the filter as the HTTP API accepts it.
func (f WebhookFilter) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&f) }

// UnmarshalJSON reads a filter as strictly as the HTTP API does.
func (f *WebhookFilter) UnmarshalJSON(text []byte) error { return readRequest(text, f) }

// MarshalJSON writes the endpoint as the HTTP API accepts it.
func (w NewWebhook) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&w) }

// UnmarshalJSON reads an endpoint as strictly as the HTTP API does.
func (w *NewWebhook) UnmarshalJSON(text []byte) error { return readRequest(text, w) }

// MarshalJSON writes the change as the HTTP API accepts it.
func (c WebhookChange) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&c) }

// UnmarshalJSON reads a change as strictly as the HTTP API does.
func (c *WebhookChange) UnmarshalJSON(text []byte) error { return readRequest(text, c) }

// MarshalJSON writes the webhook as the HTTP API shows it.
func (w Webhook) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&w) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (w *Webhook) UnmarshalJSON(text []byte) error { return readAnswer(text, w) }

// MarshalJSON writes the webhook with its secret as the HTTP API shows it.
func (w SecretWebhook) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&w) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (w *SecretWebhook) UnmarshalJSON(text []byte) error { return readAnswer(text, w) }

// MarshalJSON writes the webhook as the HTTP API shows it.
func (w EnabledWebhook) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&w) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (w *EnabledWebhook) UnmarshalJSON(text []byte) error { return readAnswer(text, w) }

// MarshalJSON writes the delivery as the HTTP API shows it.
func (d Delivery) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&d) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (d *Delivery) UnmarshalJSON(text []byte) error { return readAnswer(text, d) }
