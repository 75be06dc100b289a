package webhooks

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/webhook"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// decode reads a record; nil if there is none.
func decode[T any](doc *store.Doc, what string) (*T, error) {
	if doc == nil {
		return nil, nil
	}
	record := new(T)
	if err := json.Unmarshal(doc.Body, record); err != nil {
		return nil, txn.Corrupt(what, err)
	}
	return record, nil
}

func encode(ref store.DocRef, record any) store.Doc {
	body, _ := json.Marshal(record)
	return store.Doc{DocRef: ref, Body: body}
}

func decodeEndpoint(doc *store.Doc) (*webhook.Endpoint, error) {
	return decode[webhook.Endpoint](doc, "webhook endpoint")
}

func decodeQueue(doc *store.Doc) (*webhook.Queue, error) {
	return decode[webhook.Queue](doc, "webhook queue")
}

func decodeDelivery(doc *store.Doc) (*webhook.Delivery, error) {
	return decode[webhook.Delivery](doc, "webhook delivery")
}

// deliveryDoc is the record of a delivery, with the envelope of its event.
func deliveryDoc(endpoint base.UUID, place string, d *webhook.Delivery, envelope []byte) store.Doc {
	doc := encode(deliveryRef(endpoint, place, d.ID), d)
	doc.Data = envelope
	return doc
}

// feed is up to where the log was read for all endpoints. A change of an endpoint changes its revision, so that nothing is written that was matched
// with what endpoints were before.
type feed struct {
	At       webhook.Place `json:"at"`
	Revision int64         `json:"revision"`
	Active   int           `json:"active"`           // endpoints
	By       string        `json:"by,omitempty"`     // the process that wrote it last
	Recent   []base.UUID   `json:"recent,omitempty"` // the endpoints of the last revisions, the newest last
}

// mostRecent is how many revisions back a process finds out which endpoints have changed.
const mostRecent = 64

// changed records that an endpoint is different.
func (f *feed) changed(id base.UUID) {
	f.Revision++
	f.Recent = append(f.Recent, id)
	f.Recent = f.Recent[max(0, len(f.Recent)-mostRecent):]
}

// changedSince returns the endpoints that have changed since a revision; not known: all may have.
func (f *feed) changedSince(revision int64) (ids []base.UUID, known bool) {
	n := f.Revision - revision
	if n < 0 || n > int64(len(f.Recent)) {
		return nil, false
	}
	return f.Recent[len(f.Recent)-int(n):], true
}

func feedOf(doc *store.Doc) (*feed, error) {
	f, err := decode[feed](doc, "webhook feed")
	if f == nil && err == nil {
		f = &feed{}
	}
	return f, err
}

// tenant is which endpoints a namespace has, in order of their ids.
type tenant struct {
	Endpoints []base.UUID `json:"endpoints"`
}

func tenantOf(doc *store.Doc) (*tenant, error) {
	t, err := decode[tenant](doc, "webhooks of a namespace")
	if t == nil && err == nil {
		t = &tenant{}
	}
	return t, err
}

// parseDue reads the key of an entry of the due list.
func parseDue(endpoint base.UUID, key string) (at base.Time, id base.UUID, ok bool) {
	moment, text, found := strings.Cut(strings.TrimPrefix(key, duePrefix(endpoint)), "/")
	ms, err := strconv.ParseInt(moment, 16, 64)
	id, known := base.ParseUUID(text)
	return base.Time(ms), id, found && err == nil && known
}
