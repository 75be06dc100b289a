package webhooks

import (
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/eventdata"
	"github.com/flowfabric/flowfabric/internal/core/webhook"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
)

// The events of webhooks (E29).
const (
	kindPrefix   = "webhook."
	kindCreated  = "webhook.created"
	kindUpdated  = "webhook.updated"
	kindDisabled = "webhook.disabled"
	kindDeleted  = "webhook.deleted"
	kindFailed   = "webhook.delivery_failed"

	fieldEndpoint = "endpoint_id"
)

// event adds an event about an endpoint. It names the endpoint and never where that leads (EI12).
func event(u *txn.Tx, c txn.Caller, kind string, e *webhook.Endpoint, add func(*eventdata.Builder)) {
	var o eventdata.Builder
	o.Str(eventdata.FieldEndpointID, e.ID.String())
	if add != nil {
		add(&o)
	}
	fx := u.Effects(c)
	u.Changes.Events = append(u.Changes.Events, core.Event{
		Kind: kind, At: u.Now, Namespace: e.Namespace, AttemptIndex: -1, Actor: fx.Actor, RequestID: fx.RequestID, Data: o.Done(),
	})
}

// failedEvent tells of a delivery that is dead.
func failedEvent(u *txn.Tx, e *webhook.Endpoint, d *webhook.Delivery) {
	event(u, txn.EngineCaller, kindFailed, e, func(o *eventdata.Builder) {
		o.Str(eventdata.FieldEventID, d.EventID.String())
		if d.Last != nil && d.Last.Status != 0 {
			o.Num(eventdata.FieldLastStatus, int64(d.Last.Status))
		}
	})
}

// stopFeed has an endpoint get no events from now on, and records where it stopped.
func stopFeed(u *txn.Tx, id base.UUID, q *webhook.Queue, now *feed) {
	q.Stop(now.At)
	now.Active--
	now.changed(id)
	u.PutOrAdd(encode(feedRef, now))
}

// disable stops an endpoint because of what its receiver answered.
func disable(u *txn.Tx, e *webhook.Endpoint, q *webhook.Queue, now *feed, reason string, by txn.Caller) {
	if !e.Disable(u.Now, reason) {
		return
	}
	stopFeed(u, e.ID, q, now)
	u.PutDoc(encode(endpointRef(e.ID), e))
	disabledEvent(u, by, e)
}

func disabledEvent(u *txn.Tx, by txn.Caller, e *webhook.Endpoint) {
	event(u, by, kindDisabled, e, func(o *eventdata.Builder) { o.Str(eventdata.FieldReason, e.Reason) })
}
