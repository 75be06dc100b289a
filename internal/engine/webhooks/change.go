package webhooks

import (
	"context"
	"slices"
	"time"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/webhook"
	"github.com/flowfabric/flowfabric/internal/engine/admin"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// open is an endpoint inside the transaction that changes it.
type opened struct {
	u        *txn.Tx
	endpoint *webhook.Endpoint
	queue    *webhook.Queue
	feed     *feed
	note     string
}

// endpointChange is a change of an endpoint on its way.
type endpointChange struct {
	op     string
	caller txn.Caller
	how    admin.AdminAction
	id     base.UUID
	args   any // what a repeat is recognised by
	beside []store.DocRef
	// act changes what is open, and reports whether there is something to write. It writes what is not the endpoint's own record.
	act func(o *opened) (changed bool, err error)
	// gone: the endpoint does not exist afterwards.
	gone bool
}

// run changes an endpoint under its lock. It returns the note of the change.
func (w *Webhooks) run(ctx context.Context, ch endpointChange) (note string, err error) {
	find := func(doc *store.Doc) (*webhook.Endpoint, error) {
		e, err := decodeEndpoint(doc)
		if err == nil && (e == nil || !ch.caller.Sees(e.Namespace)) {
			err = noSuchWebhook(ch.id.String())
		}
		return e, err
	}
	answer := made{}
	err = w.Administer(ctx, &admin.AdminCommand{
		Op: ch.op, Caller: ch.caller, How: ch.how, Ref: endpointRef(ch.id), Beside: append([]store.DocRef{queueRef(ch.id), feedRef}, ch.beside...), Answer: &answer,
		Where: func(doc *store.Doc) ([]string, error) {
			e, err := find(doc)
			if err != nil {
				return nil, err
			}
			return []string{e.Namespace}, nil
		},
		Act: func(u *txn.Tx, doc *store.Doc) (admin.AdminChange, error) {
			e, err := find(doc)
			if err != nil {
				return admin.AdminChange{}, err
			}
			if err := base.CheckRevision(ch.how.Revision, e.Revision); err != nil {
				return admin.AdminChange{}, err
			}
			change, o, err := ch.apply(u, e)
			answer = made{ID: ch.id, Note: o.note}
			return change, err
		},
	}, ch.id.String(), ch.args)
	if err != nil {
		return "", err
	}
	return answer.Note, nil
}

// apply runs the change on the records that the transaction has locked.
func (ch *endpointChange) apply(u *txn.Tx, e *webhook.Endpoint) (admin.AdminChange, opened, error) {
	o := opened{u: u, endpoint: e}
	var err error
	if o.queue, err = decodeQueue(u.Doc(queueRef(ch.id))); err != nil {
		return admin.AdminChange{}, o, err
	}
	if o.queue == nil {
		return admin.AdminChange{}, o, base.Errorf(base.CodeCorruption, "the queue of webhook %s is missing", ch.id)
	}
	if o.feed, err = feedOf(u.Doc(feedRef)); err != nil {
		return admin.AdminChange{}, o, err
	}
	before := *e
	before.Secrets = slices.Clone(e.Secrets)
	changed, err := ch.act(&o)
	if err != nil || !changed {
		return admin.AdminChange{}, o, err
	}
	if ch.gone {
		return changeOf(&before, nil), o, nil
	}
	return changeOf(&before, e), o, nil
}

// updated tells the feed and the log of a change.
func (o *opened) updated(c txn.Caller) {
	o.feed.changed(o.endpoint.ID)
	o.u.PutOrAdd(encode(feedRef, o.feed))
	event(o.u, c, kindUpdated, o.endpoint, nil)
}

// ChangeWebhook changes settings and the state of an endpoint. Codes: webhook_not_found, invalid_webhook_url, invalid_filter, invalid_argument,
// precondition_failed.
func (w *Webhooks) ChangeWebhook(ctx context.Context, c txn.Caller, id base.UUID, p webhook.Patch, state *string, how admin.AdminAction) (WebhookView, error) {
	if p.Filter != nil {
		if _, err := filterOf(p.Filter); err != nil {
			return WebhookView{}, err
		}
	}
	start, err := w.startIf(ctx, state)
	if err != nil {
		return WebhookView{}, err
	}
	_, err = w.run(ctx, endpointChange{op: "update_webhook", caller: c, how: how, id: id, args: []any{p, state}, act: func(o *opened) (bool, error) {
		changed, err := o.endpoint.Change(p, w.setup.Load().Addresses)
		if err != nil {
			return false, err
		}
		if changed {
			o.updated(c)
		}
		moved := false
		if state != nil {
			moved = w.turn(o, c, *state, start)
		}
		return changed || moved, nil
	}})
	if err != nil {
		return WebhookView{}, err
	}
	return w.Webhook(ctx, c, id)
}

// startIf checks a state that is asked for, and returns the start of the log, which is needed to enable an endpoint.
func (w *Webhooks) startIf(ctx context.Context, state *string) (int64, error) {
	switch {
	case state == nil || *state == webhook.StateDisabled:
		return 0, nil
	case *state != webhook.StateActive:
		return 0, base.Invalid("state", "must be active or disabled")
	}
	return w.events.Start(ctx)
}

// turn enables or disables an endpoint, and reports whether it did.
func (w *Webhooks) turn(o *opened, c txn.Caller, state string, start int64) bool {
	if state == webhook.StateDisabled {
		if !o.endpoint.Disable(o.u.Now, webhook.ReasonOperator) {
			return false
		}
		stopFeed(o.u, o.endpoint.ID, o.queue, o.feed)
		o.u.PutDoc(encode(queueRef(o.endpoint.ID), o.queue))
		disabledEvent(o.u, c, o.endpoint)
		return true
	}
	return w.enable(o, c, start)
}

// enable starts an endpoint where it stopped, or with the oldest event that is retained.
func (w *Webhooks) enable(o *opened, c txn.Caller, start int64) bool {
	if !o.endpoint.Enable() {
		return false
	}
	q := o.queue
	if q.Stopped != nil && q.Stopped.Seq <= start {
		o.note = "events between the stop and the oldest retained one are lost"
		q.Stopped = &webhook.Place{Seq: start + 1}
	}
	q.Resume(o.feed.At)
	q.Succeeded() // it begins anew: what failed before says nothing about now
	o.feed.Active++
	o.updated(c)
	w.attend(o.u, o.endpoint.ID, q, true)
	o.u.PutDoc(encode(queueRef(o.endpoint.ID), q))
	return true
}

// EnableWebhook starts an endpoint again where it stopped (E46). The note says what is lost. Codes: webhook_not_found.
func (w *Webhooks) EnableWebhook(ctx context.Context, c txn.Caller, id base.UUID, how admin.AdminAction) (view WebhookView, note string, err error) {
	state := webhook.StateActive
	start, err := w.startIf(ctx, &state)
	if err != nil {
		return view, "", err
	}
	note, err = w.run(ctx, endpointChange{op: "enable_webhook", caller: c, how: how, id: id, act: func(o *opened) (bool, error) {
		return w.enable(o, c, start), nil
	}})
	if err != nil {
		return view, "", err
	}
	view, err = w.Webhook(ctx, c, id)
	return view, note, err
}

// RotateWebhook gives an endpoint another secret; the former one signs, too, for overlap (E41). own: the secret is the endpoint's current one.
// Codes: webhook_not_found, invalid_argument, precondition_failed.
func (w *Webhooks) RotateWebhook(
	ctx context.Context, c txn.Caller, id base.UUID, secret webhook.Secret, overlap base.Millis, how admin.AdminAction,
) (view WebhookView, own bool, err error) {
	sealed, err := w.seal(ctx, id, secret)
	if err != nil {
		return WebhookView{}, false, err
	}
	_, err = w.run(ctx, endpointChange{op: "rotate_webhook", caller: c, how: how, id: id, args: overlap, act: func(o *opened) (bool, error) {
		if err := o.endpoint.Rotate(o.u.Now, sealed, overlap); err != nil {
			return false, err
		}
		event(o.u, c, kindUpdated, o.endpoint, nil)
		return true, nil
	}})
	if err != nil {
		return WebhookView{}, false, err
	}
	return w.withSecret(ctx, c, id, secret)
}

// DeleteWebhook removes an endpoint. Its deliveries follow. Codes: webhook_not_found, precondition_failed.
func (w *Webhooks) DeleteWebhook(ctx context.Context, c txn.Caller, id base.UUID, how admin.AdminAction) error {
	view, err := w.Webhook(ctx, c, id)
	if err != nil && base.CodeOf(err) != base.CodeWebhookNotFound { // a repeat finds it no more, and is recognised all the same
		return err
	}
	beside := []store.DocRef{tenantRef(view.Namespace)}
	_, err = w.run(ctx, endpointChange{op: "delete_webhook", caller: c, how: how, id: id, beside: beside, gone: true, act: func(o *opened) (bool, error) {
		space, err := tenantOf(o.u.Doc(tenantRef(view.Namespace)))
		if err != nil {
			return false, err
		}
		space.Endpoints = slices.DeleteFunc(space.Endpoints, func(other base.UUID) bool { return other == id })
		if len(space.Endpoints) == 0 {
			o.u.DropDoc(tenantRef(view.Namespace))
		} else {
			o.u.PutDoc(encode(tenantRef(view.Namespace), space))
		}
		if o.endpoint.Active() {
			o.feed.Active--
		}
		o.feed.changed(id)
		o.u.PutOrAdd(encode(feedRef, o.feed))
		o.u.DropDoc(queueRef(id))
		o.u.AddTask(taskErase, eraseArgs{id})
		event(o.u, c, kindDeleted, o.endpoint, nil)
		return true, nil
	}})
	return err
}

func milliseconds(ms base.Millis) time.Duration { return time.Duration(ms) * time.Millisecond }
