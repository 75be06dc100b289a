package webhooks

import (
	"bytes"
	"context"
	"crypto/rand"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/core/webhook"
	"github.com/flowfabric/flowfabric/internal/engine/admin"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// WebhookView is an endpoint as it is shown, with what is known of its deliveries.
type WebhookView struct {
	webhook.Endpoint
	Queue webhook.Queue
}

// made is what is recorded of a change: a repeat reads the endpoint again.
type made struct {
	ID   base.UUID `json:"endpoint_id"`
	Note string    `json:"note,omitempty"`
}

// CreateWebhook makes an endpoint with a secret (E39). own: the endpoint has that secret; the repeat of an earlier call brings another one.
// Codes: invalid_webhook_url, invalid_argument, invalid_filter, namespace_limit_exceeded.
func (w *Webhooks) CreateWebhook(
	ctx context.Context, c txn.Caller, namespace string, s webhook.Settings, secret webhook.Secret, how admin.AdminAction,
) (view WebhookView, own bool, err error) {
	if err := w.checkNew(c, namespace, &s); err != nil {
		return WebhookView{}, false, err
	}
	end, err := w.events.End(ctx)
	if err != nil {
		return WebhookView{}, false, err
	}
	id := w.Mint()
	sealed, err := w.seal(ctx, id, secret)
	if err != nil {
		return WebhookView{}, false, err
	}
	id, err = w.createAs(ctx, c, how, webhook.Endpoint{
		ID: id, Namespace: namespace, Settings: s, State: webhook.StateActive, Revision: 1, CreatedBy: c.Principal,
		Secrets: []webhook.SealedSecret{{Sealed: sealed}}, After: end,
	})
	if err != nil {
		return WebhookView{}, false, err
	}
	return w.withSecret(ctx, c, id, secret)
}

// withSecret shows an endpoint, and reports whether a secret is its current one.
func (w *Webhooks) withSecret(ctx context.Context, c txn.Caller, id base.UUID, secret webhook.Secret) (WebhookView, bool, error) {
	view, err := w.Webhook(ctx, c, id)
	if err != nil {
		return WebhookView{}, false, err
	}
	own, err := w.has(ctx, &view.Endpoint, secret)
	return view, own, err
}

// createAs stores an endpoint. It returns the id of the one that is there: a repeat finds the one that the first call made.
func (w *Webhooks) createAs(ctx context.Context, c txn.Caller, how admin.AdminAction, e webhook.Endpoint) (base.UUID, error) {
	answer, id, namespace := made{}, e.ID, e.Namespace
	cmd := &admin.AdminCommand{
		Op: "create_webhook", Caller: c, How: how, Ref: endpointRef(id), Beside: []store.DocRef{queueRef(id), tenantRef(namespace), feedRef}, Answer: &answer,
		Where: func(*store.Doc) ([]string, error) { return []string{namespace}, nil },
		Act: func(u *txn.Tx, _ *store.Doc) (admin.AdminChange, error) {
			e.CreatedAt = u.Now
			answer = made{ID: id}
			return w.create(u, c, &e)
		},
	}
	if err := w.Administer(ctx, cmd, namespace, e.Settings); err != nil {
		return base.UUID{}, err
	}
	return answer.ID, nil
}

func (w *Webhooks) checkNew(c txn.Caller, namespace string, s *webhook.Settings) error {
	if err := base.CheckNamespace(namespace); err != nil {
		return err
	}
	if !c.Sees(namespace) {
		return admin.NoSuchNamespace(namespace)
	}
	if err := s.Normalize(w.setup.Load().Addresses); err != nil {
		return err
	}
	_, err := filterOf(&s.Filter)
	return err
}

// create writes a new endpoint beside its record: its queue, its place in the namespace, and that the feed is to take events for it.
func (w *Webhooks) create(u *txn.Tx, c txn.Caller, e *webhook.Endpoint) (admin.AdminChange, error) {
	space, err := tenantOf(u.Doc(tenantRef(e.Namespace)))
	if err != nil {
		return admin.AdminChange{}, err
	}
	if n := len(space.Endpoints); n >= webhook.MaxEndpoints {
		return admin.AdminChange{}, base.Errorf(base.CodeNamespaceLimitExceeded, "the namespace has %d webhooks, and may have %d", n, webhook.MaxEndpoints).
			WithHint("delete one that is not needed, or send the events of several filters to one")
	}
	now, err := feedOf(u.Doc(feedRef))
	if err != nil {
		return admin.AdminChange{}, err
	}
	at, found := slices.BinarySearchFunc(space.Endpoints, e.ID, compareIDs)
	if !found {
		space.Endpoints = slices.Insert(space.Endpoints, at, e.ID)
	}
	if begin := (webhook.Place{Seq: e.After + 1}); now.Active == 0 && now.At.Before(begin) {
		now.At = begin // no endpoint takes what came before
	}
	now.Active++
	now.changed(e.ID)
	u.PutOrAdd(encode(tenantRef(e.Namespace), space))
	u.PutOrAdd(encode(feedRef, now))
	u.AddDoc(encode(queueRef(e.ID), webhook.Queue{}))
	event(u, c, kindCreated, e, nil)
	change := changeOf(nil, e)
	change.Made = true
	return change, nil
}

func compareIDs(a, b base.UUID) int { return bytes.Compare(a[:], b[:]) }

// changeOf is what is written of a change of an endpoint, and what the audit row shows of it.
func changeOf(before, after *webhook.Endpoint) admin.AdminChange {
	var change admin.AdminChange
	if before != nil {
		change.Chain, change.Entity, change.ID, change.Before = before.Namespace, "webhook", before.ID.String(), audited(before)
	}
	if after != nil {
		change.Chain, change.Entity, change.ID, change.After = after.Namespace, "webhook", after.ID.String(), audited(after)
		change.Body = encode(endpointRef(after.ID), after).Body
	}
	return change
}

// auditedEndpoint is an endpoint in an audit row.
type auditedEndpoint struct {
	webhook.Settings
	State    string `json:"state"`
	Reason   string `json:"reason,omitempty"`
	Revision int64  `json:"revision"`
}

func audited(e *webhook.Endpoint) auditedEndpoint {
	return auditedEndpoint{Settings: e.Settings, State: e.State, Reason: e.Reason, Revision: e.Revision}
}

// seal returns a secret as it is stored.
func (w *Webhooks) seal(ctx context.Context, id base.UUID, secret webhook.Secret) (string, error) {
	key, err := w.DataKey(ctx)
	if err != nil {
		return "", err
	}
	how := keyring.Sealing{Master: key}
	rand.Read(how.Nonce[:]) // never fails
	return keyring.Seal(how, id.String(), secret.Bytes()).Stored(), nil
}

// has reports whether a secret is the endpoint's current one.
func (w *Webhooks) has(ctx context.Context, e *webhook.Endpoint, secret webhook.Secret) (bool, error) {
	key, err := w.DataKey(ctx)
	if err != nil || len(e.Secrets) == 0 {
		return false, err
	}
	opened, err := openSecrets(key, e.ID, e.Secrets[:1])
	return err == nil && bytes.Equal(opened[0].Bytes(), secret.Bytes()), err
}

// Webhook shows an endpoint. Codes: webhook_not_found.
func (w *Webhooks) Webhook(ctx context.Context, c txn.Caller, id base.UUID) (WebhookView, error) {
	views, err := w.views(ctx, c, []base.UUID{id})
	if err != nil {
		return WebhookView{}, err
	}
	if len(views) == 0 {
		return WebhookView{}, noSuchWebhook(id.String())
	}
	return views[0], nil
}

// views reads endpoints, those that the caller sees.
func (w *Webhooks) views(ctx context.Context, c txn.Caller, ids []base.UUID) ([]WebhookView, error) {
	refs := make([]store.DocRef, 0, 2*len(ids))
	for _, id := range ids {
		refs = append(refs, endpointRef(id), queueRef(id))
	}
	docs, err := w.ReadDocs(ctx, refs...)
	if err != nil {
		return nil, txn.PublicFault(err)
	}
	views := make([]WebhookView, 0, len(ids))
	for _, id := range ids {
		doc, found := docs[endpointRef(id)]
		if !found {
			continue
		}
		e, err := decodeEndpoint(&doc)
		if err != nil {
			return nil, err
		}
		if !c.Sees(e.Namespace) {
			continue
		}
		view := WebhookView{Endpoint: *e}
		if doc, found := docs[queueRef(id)]; found {
			q, err := decodeQueue(&doc)
			if err != nil {
				return nil, err
			}
			view.Queue = *q
		}
		views = append(views, view)
	}
	return views, nil
}

// Webhooks lists endpoints by id. Codes: invalid_cursor.
func (w *Webhooks) Webhooks(ctx context.Context, c txn.Caller, cursor string, limit *int) ([]WebhookView, string, error) {
	n, err := core.PageLimit(limit)
	if err != nil {
		return nil, "", err
	}
	after := ""
	if cursor != "" {
		key, err := core.DecodeCursor("webhooks", cursor)
		if err != nil {
			return nil, "", err
		}
		after = string(key)
	}
	ids, err := w.listed(ctx, c, after, n+1)
	if err != nil || n == 0 {
		return nil, "", err
	}
	next := ""
	if len(ids) > n {
		ids = ids[:n]
		next = core.EncodeCursor("webhooks", []byte(ids[n-1].String()))
	}
	views, err := w.views(ctx, c, ids)
	return views, next, err
}

// listed returns ids of endpoints behind a text. For a caller of some namespaces it reads what these have, whatever others have.
func (w *Webhooks) listed(ctx context.Context, c txn.Caller, after string, limit int) (ids []base.UUID, err error) {
	if c.Namespaces == nil {
		loaded, err := w.Store.Read(ctx, store.Want{Scans: []store.Scan{{Kind: docEndpoint, After: after, Limit: limit}}})
		if err != nil {
			return nil, txn.PublicFault(err)
		}
		for i := range loaded.Scanned[0] {
			if id, ok := base.ParseUUID(loaded.Scanned[0][i].Key); ok {
				ids = append(ids, id)
			}
		}
		return ids, nil
	}
	refs := make([]store.DocRef, len(c.Namespaces))
	for i, name := range c.Namespaces {
		refs[i] = tenantRef(name)
	}
	docs, err := w.ReadDocs(ctx, refs...)
	if err != nil {
		return nil, txn.PublicFault(err)
	}
	for _, doc := range docs {
		space, err := tenantOf(&doc)
		if err != nil {
			return nil, err
		}
		for _, id := range space.Endpoints {
			if id.String() > after {
				ids = append(ids, id)
			}
		}
	}
	slices.SortFunc(ids, compareIDs)
	return ids[:min(len(ids), limit)], nil
}
