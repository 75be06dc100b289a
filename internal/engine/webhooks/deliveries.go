package webhooks

import (
	"context"
	"errors"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/webhook"
	"github.com/flowfabric/flowfabric/internal/engine/admin"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// placesOf are where the deliveries of a state are; "": all.
func placesOf(state string) ([]string, error) {
	switch state {
	case "":
		return allPlaces, nil
	case webhook.Pending:
		return []string{inQueue, inRetry}, nil
	case webhook.Done:
		return []string{inDone}, nil
	case webhook.Dead:
		return []string{inDead}, nil
	case webhook.Cancelled:
		return []string{inCancelled}, nil
	}
	return nil, base.Invalid("state", "must be pending, delivered, dead or cancelled")
}

// Deliveries lists deliveries of an endpoint: by what they wait for or how they ended, and then in the order in which they were made.
// Codes: webhook_not_found, invalid_argument, invalid_cursor.
func (w *Webhooks) Deliveries(ctx context.Context, c txn.Caller, id base.UUID, state, cursor string, limit *int) ([]webhook.Delivery, string, error) {
	places, err := placesOf(state)
	if err != nil {
		return nil, "", err
	}
	n, err := core.PageLimit(limit)
	if err != nil {
		return nil, "", err
	}
	if _, err := w.Webhook(ctx, c, id); err != nil {
		return nil, "", err
	}
	scope, after := "deliveries/"+id.String()+"/"+state, ""
	if cursor != "" {
		key, err := core.DecodeCursor(scope, cursor)
		if err != nil {
			return nil, "", err
		}
		after = string(key)
	}
	if n == 0 {
		return nil, "", nil
	}
	docs, err := w.deliveryDocs(ctx, id, places, after, n+1)
	if err != nil {
		return nil, "", err
	}
	next := ""
	if len(docs) > n {
		docs = docs[:n]
		next = core.EncodeCursor(scope, []byte(docs[n-1].Key))
	}
	list := make([]webhook.Delivery, len(docs))
	for i := range docs {
		d, err := decodeDelivery(&docs[i])
		if err != nil {
			return nil, "", err
		}
		list[i] = *d
	}
	return list, next, nil
}

// deliveryDocs reads records behind a key, place by place in the order of their names. It is one read, so that a delivery which moves is seen once.
func (w *Webhooks) deliveryDocs(ctx context.Context, id base.UUID, places []string, after string, limit int) (docs []store.Doc, err error) {
	var want store.Want
	for _, place := range slices.Sorted(slices.Values(places)) {
		if prefix := deliveryPrefix(id, place); after < prefix+"~" {
			want.Scans = append(want.Scans, store.Scan{Kind: docDelivery, Prefix: prefix, After: after, Limit: limit})
		}
	}
	if len(want.Scans) == 0 {
		return nil, nil
	}
	loaded, err := w.Store.Read(ctx, want)
	if err != nil {
		return nil, txn.PublicFault(err)
	}
	for _, found := range loaded.Scanned {
		docs = append(docs, found...)
	}
	return docs[:min(len(docs), limit)], nil
}

// Redeliver sends a delivery again, whatever became of it: at once, and then as often as any other. Codes: webhook_not_found, delivery_not_found,
// namespace_limit_exceeded, overloaded.
func (w *Webhooks) Redeliver(ctx context.Context, c txn.Caller, id, delivery base.UUID, how admin.AdminAction) (webhook.Delivery, error) {
	var again webhook.Delivery
	_, err := w.run(ctx, endpointChange{op: "redeliver_webhook", caller: c, how: how, id: id, args: delivery, act: func(o *opened) (bool, error) {
		place, doc, err := findDelivery(o.u, id, delivery)
		if err != nil {
			return false, err
		}
		d, err := decodeDelivery(doc)
		if err != nil {
			return false, err
		}
		if err := mayAdd(o.queue, place == inQueue || place == inRetry); err != nil {
			return false, err
		}
		if cancelled(o.queue, delivery) {
			return false, base.Errorf(base.CodeOverloaded, "deliveries of the webhook are being cancelled").WithRetryAfter(1000)
		}
		again = d.Again()
		if place != inQueue {
			leave(o.u, id, o.queue, place, d)
			o.u.DropDoc(deliveryRef(id, place, delivery))
			enter(o.u, id, o.queue, inQueue, &again)
			o.u.PutDoc(deliveryDoc(id, inQueue, &again, doc.Data))
		}
		w.attendIf(o)
		return true, nil
	}})
	if err != nil {
		return webhook.Delivery{}, err
	}
	if again.ID.IsZero() { // a repeat
		return w.delivery(ctx, id, delivery)
	}
	return again, nil
}

// attendIf writes the queue, and sees to it that it is sent, if the endpoint is active.
func (w *Webhooks) attendIf(o *opened) {
	if o.endpoint.Active() {
		w.attend(o.u, o.endpoint.ID, o.queue, true)
	}
	o.u.PutDoc(encode(queueRef(o.endpoint.ID), o.queue))
}

// mayAdd refuses another pending delivery of an endpoint that has as many as it may.
func mayAdd(q *webhook.Queue, counted bool) error {
	if counted || q.Pending() < webhook.MostPending {
		return nil
	}
	return base.Errorf(base.CodeNamespaceLimitExceeded, "the webhook has %d pending deliveries, and may have %d", q.Pending(), webhook.MostPending).
		WithHint("wait until its receiver has taken some of them")
}

// findDelivery reads a delivery, under the lock of its queue. The read comes after the lock: a read that waits for the lock may miss a delivery that the
// transaction before has moved, because it finds neither the record that is gone nor the one that is new.
func findDelivery(u *txn.Tx, id, delivery base.UUID) (place string, doc *store.Doc, err error) {
	ctx, cancel := u.Engine.Bounded()
	defer cancel()
	if err := u.Load(ctx, store.Want{Docs: recordsOf(id, delivery)}); err != nil {
		return "", nil, err
	}
	for _, place := range allPlaces {
		if doc := u.Doc(deliveryRef(id, place, delivery)); doc != nil {
			return place, doc, nil
		}
	}
	return "", nil, noSuchDelivery(delivery)
}

// recordsOf names the records of which one is that of a delivery.
func recordsOf(id, delivery base.UUID) []store.DocRef {
	refs := make([]store.DocRef, len(allPlaces))
	for i, place := range allPlaces {
		refs[i] = deliveryRef(id, place, delivery)
	}
	return refs
}

func noSuchDelivery(id base.UUID) error {
	return base.Errorf(base.CodeDeliveryNotFound, "no delivery %s", id)
}

// delivery reads a delivery.
func (w *Webhooks) delivery(ctx context.Context, id, delivery base.UUID) (webhook.Delivery, error) {
	docs, err := w.ReadDocs(ctx, recordsOf(id, delivery)...)
	if err != nil {
		return webhook.Delivery{}, txn.PublicFault(err)
	}
	for _, doc := range docs {
		d, err := decodeDelivery(&doc)
		if err != nil {
			return webhook.Delivery{}, err
		}
		return *d, nil
	}
	return webhook.Delivery{}, noSuchDelivery(delivery)
}

// TestWebhook sends an event of the kind webhook.test to an endpoint, as any other is sent (E46). Codes: webhook_not_found, namespace_limit_exceeded.
func (w *Webhooks) TestWebhook(ctx context.Context, c txn.Caller, id base.UUID, how admin.AdminAction) (webhook.Delivery, error) {
	var made webhook.Delivery
	note, err := w.run(ctx, endpointChange{op: "test_webhook", caller: c, how: how, id: id, act: func(o *opened) (bool, error) {
		if err := mayAdd(o.queue, false); err != nil {
			return false, err
		}
		eventID := w.Mint()
		one := picked{endpoint: id, envelope: testEnvelope(eventID, o, c), delivery: webhook.Delivery{
			EventID: eventID, Kind: webhook.KindTest, EventAt: o.u.Now, State: webhook.Pending,
		}}
		queues := openQueues{w: w, u: o.u}
		made = one.delivery
		made.ID, made.CreatedAt = queues.add(&one, o.queue), o.u.Now
		o.note = made.ID.String()
		w.attendIf(o)
		return true, nil
	}})
	if err != nil {
		return webhook.Delivery{}, err
	}
	if made.ID.IsZero() { // a repeat
		delivery, _ := base.ParseUUID(note)
		return w.delivery(ctx, id, delivery)
	}
	return made, nil
}

// testEnvelope is the event of a test. It is in no log and has no cursor.
func testEnvelope(eventID base.UUID, o *opened, c txn.Caller) []byte {
	body := base.NewObject(256)
	body.Str("id", eventID.String())
	body.Str("kind", webhook.KindTest)
	body.Num("v", 1)
	body.Moment("at", o.u.Now)
	body.Str("namespace", o.endpoint.Namespace)
	body.Open("actor")
	body.Str("type", c.Actor)
	body.StrIf("id", c.Principal)
	body.Shut()
	body.StrIf("request_id", c.RequestID)
	body.Open("data")
	body.Str(fieldEndpoint, o.endpoint.ID.String())
	body.Shut()
	return body.Done()
}

// cancelled reports whether a pending delivery is not to be sent any more.
func cancelled(q *webhook.Queue, id base.UUID) bool { return compareIDs(id, q.CancelledTo) <= 0 }

func asRefusal(err error) (*base.Error, bool) {
	var refusal *base.Error
	if !errors.As(err, &refusal) {
		return nil, false
	}
	copied := *refusal
	return &copied, true
}
