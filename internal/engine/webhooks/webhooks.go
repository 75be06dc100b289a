// Package webhooks sends events of the log to endpoints over HTTP. The rules are in internal/core/webhook; here they meet the log, the store and the
// processes that share the work.
//
// How an event gets to an endpoint:
//
//   - The feeder of each process (feed.go) reads the log once for all endpoints, in memory. Where endpoints take an event, one transaction writes a
//     delivery for each of them, with a copy of the event, and moves the position of the feed (pick.go). Of several processes the first one does so; for
//     the others nothing is left. While no endpoint takes anything, nothing is written, and without an endpoint nothing is read.
//   - The transaction also leases the queue of each endpoint to the process, unless another one works on it. A runner (run.go) sends the deliveries of one
//     endpoint, some at a time, and records what became of them, many in a transaction (settle.go). Once nothing is left to send it releases the queue.
//   - Timers (timers.go) find queues whose deliveries are due for another attempt, and those whose process is gone.
//
// The record of the queue is the lock of everything that belongs to its endpoint but its definition. Whoever changes deliveries holds it, and the process
// that sends proves with each transaction that its lease was not given to another one.
package webhooks

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/webhook"
	"github.com/flowfabric/flowfabric/internal/engine/admin"
	"github.com/flowfabric/flowfabric/internal/engine/eventlog"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/metrics"
)

// Webhooks keeps endpoints and sends them events.
type Webhooks struct {
	*admin.Admin
	events  *eventlog.Reader
	process string // names this process in leases
	setup   atomic.Pointer[Setup]
	feeder  *feeder
	runners *runners
	counted *metrics.Counters // attempts and ends of deliveries, by outcome
}

// Setup is what the room needs of its surroundings. The zero value permits public addresses and sends nothing.
type Setup struct {
	Addresses webhook.Addresses
	// Send makes one attempt and returns what became of it. nil: this process takes no events and sends none.
	Send func(ctx context.Context, r webhook.Request) webhook.Answer
	// Envelope encodes an event as readers of the log get it.
	Envelope func(ev eventlog.Event) ([]byte, error)
}

// New makes the room of webhooks and registers it with the kernel.
func New(a *admin.Admin, events *eventlog.Reader) *Webhooks {
	w := &Webhooks{Admin: a, events: events, process: a.Mint().String(), counted: a.NewCounter(metrics.WebhookDeliveries)}
	w.setup.Store(&Setup{})
	w.feeder, w.runners = newFeeder(w), newRunners(w)
	a.OnLog(w.feeder.heard)
	a.OnReborn(w.feeder.wake)
	a.OnTimer(timerQueues, txn.TimerRule{Label: "webhook", Do: w.sweepQueues, Together: true})
	txn.OnTask(a.Engine, taskCancel, w.cancelPending)
	txn.OnTask(a.Engine, taskErase, w.eraseDeliveries)
	a.CountRemoved(docDelivery, "webhook_delivery")
	a.OnReading("webhooks", w.readPending)
	a.OnLoop(w.feeder.run)
	a.OnLoop(w.runners.run)
	a.OnClose(w.runners.close)
	return w
}

// SetUpWebhooks sets how this process sends, and which addresses endpoints may have. Before it is called nothing is sent.
func (w *Webhooks) SetUpWebhooks(s Setup) {
	w.setup.Store(&s)
	w.feeder.wake()
}

// sends reports whether this process sends deliveries.
func (w *Webhooks) sends() bool { return w.setup.Load().Send != nil && !w.Cfg.NoTimers }

// hostNow is the host's clock, for what only this process goes by.
func (w *Webhooks) hostNow() time.Time { return w.Cfg.Clock.Now() }

// noSuchWebhook is the refusal of an endpoint that does not exist, or that the caller does not see.
func noSuchWebhook(id string) error {
	return base.Errorf(base.CodeWebhookNotFound, "no webhook %q", id)
}
