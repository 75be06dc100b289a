package webhooks

import (
	"fmt"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// The kinds of small records. Values are stored: never renumber them. The tests of the tree find a number that is given twice. Transactions lock these
// records in the order of their kinds.
const (
	docEndpoint store.DocKind = 50 // key: endpoint id
	docQueue    store.DocKind = 51 // key: endpoint id; what is known of its deliveries, and their lock
	docTenant   store.DocKind = 52 // key: namespace; which endpoints it has
	docFeed     store.DocKind = 53 // one record: up to where the log was read, for all endpoints together
	docDelivery store.DocKind = 54 // key: endpoint, state and delivery; data: the event
	docDue      store.DocKind = 55 // key: endpoint, moment and delivery; there while the delivery waits for that moment
)

// The kinds of timers. Values are stored: never renumber them.
const (
	timerQueues store.TimerKind = 16 // Texts: endpoints to look at
)

// Follow-up work. Values of timers are stored: never renumber them.
var (
	// taskCancel cancels the pending deliveries of an endpoint whose receiver is gone.
	taskCancel = txn.TaskKind{Name: "cancel_deliveries", Timer: 54}
	// taskErase removes the deliveries of an endpoint that was deleted.
	taskErase = txn.TaskKind{Name: "erase_webhook", Timer: 55}
)

var feedRef = store.DocRef{Kind: docFeed, Key: "feed"}

func endpointRef(id base.UUID) store.DocRef { return store.DocRef{Kind: docEndpoint, Key: id.String()} }

func queueRef(id base.UUID) store.DocRef { return store.DocRef{Kind: docQueue, Key: id.String()} }

func tenantRef(namespace string) store.DocRef { return store.DocRef{Kind: docTenant, Key: namespace} }

// Where the record of a delivery is: by its state, and a pending one by what it waits for.
const (
	inQueue     = "q" // for its turn
	inRetry     = "r" // for a moment after a failure
	inDone      = "d"
	inDead      = "x"
	inCancelled = "c"
)

// allPlaces are where a delivery may be.
var allPlaces = []string{inQueue, inRetry, inDone, inDead, inCancelled}

func deliveryPrefix(endpoint base.UUID, place string) string {
	return endpoint.String() + "/" + place + "/"
}

func deliveryRef(endpoint base.UUID, place string, id base.UUID) store.DocRef {
	return store.DocRef{Kind: docDelivery, Key: deliveryPrefix(endpoint, place) + id.String()}
}

func duePrefix(endpoint base.UUID) string { return endpoint.String() + "/" }

func dueRef(endpoint base.UUID, at base.Time, id base.UUID) store.DocRef {
	return store.DocRef{Kind: docDue, Key: fmt.Sprintf("%s%016x/%s", duePrefix(endpoint), int64(at), id)}
}
