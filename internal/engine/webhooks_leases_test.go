package engine_test

import (
	"context"
	"slices"
	"testing"

	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/webhook"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// slowReceivers are receivers of one engine. The one at hereURL answers when the test says so; others take everything at once.
type slowReceivers struct {
	*receivers
	w       *world
	answers chan webhook.Answer
}

// slowly has the engine of this world send to slow receivers.
func (w *world) slowly() *slowReceivers {
	r := &slowReceivers{receivers: w.listening(nil, w.e), w: w, answers: make(chan webhook.Answer)}
	w.t.Cleanup(func() { close(r.answers) })
	r.receivers.answers(func(_ context.Context, q webhook.Request) webhook.Answer {
		if q.URL != hereURL {
			return webhook.Answer{Status: 204}
		}
		return <-r.answers // whatever becomes of the sender: it may hang
	})
	return r
}

// answer answers one of the requests at hereURL.
func (r *slowReceivers) answer(status int) {
	r.w.t.Helper()
	select {
	case r.answers <- webhook.Answer{Status: status}:
	case <-r.w.ctx().Done():
		r.w.t.Fatalf("no request waits for an answer")
	}
}

// heldEndpoint is an endpoint with a delivery that a process sends, and that process, whose own clock stands still. The lease was extended once, so that
// its first end is a moment at which others look at it while it is good.
type heldEndpoint struct {
	w        *world
	id       base.UUID
	by       *engine.Engine
	receiver *slowReceivers
	queue    webhook.Queue    // under the lease
	delivery webhook.Delivery // under way
}

func (w *world) heldEndpoint() *heldEndpoint {
	w.t.Helper()
	w.inFlight = 2
	h := &heldEndpoint{w: w, by: w.e, receiver: w.slowly(), id: w.hooked("acme", hereURL, submittedOnly).ID}
	w.submitMany(2, core.Submission{Namespace: "acme"})
	eventually(w.t, "both are under way", func() bool { return len(h.receiver.requests(hereURL)) == 2 })
	w.turn(10 * base.Second)
	h.receiver.answer(204)
	eventually(w.t, "one is recorded", func() bool { return w.hook(h.id).Queue.Done == 1 })
	h.queue, h.delivery = w.hook(h.id).Queue, w.deliveries(h.id, webhook.Pending)[0]
	same(w.t, "the lease, and when others look at it", []base.Time{h.queue.Until, h.queue.TimerAt},
		[]base.Time{w.now().Add(webhook.LeaseMS), w.now().Add(webhook.LeaseMS - 10*base.Second)})
	return h
}

// isHeld fails the test at once if another process has got the lease, or has sent something to the endpoint.
func (h *heldEndpoint) isHeld(when string, by *slowReceivers) {
	h.w.t.Helper()
	if q := h.w.hook(h.id).Queue; q.Owner != h.queue.Owner || q.Epoch != h.queue.Epoch {
		h.w.t.Fatalf("%s: the lease was given to another process", when)
	}
	if n := len(by.requests(hereURL)); n != 0 {
		h.w.t.Fatalf("%s: another process has sent %d requests", when, n)
	}
}

func TestE42_a_process_sends_nothing_of_an_endpoint_while_the_lease_of_another_one_is_good(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{Clock: clock.NewManual(start)}, func(t *testing.T, w *world) {
		h := w.heldEndpoint()
		commits := &namedCommits{all: make(chan string, 1000)}
		w.cfg.Clock, w.cfg.Probe = nil, commits
		w.e = w.another()
		second := w.slowly()
		must(w.e.TestWebhook(w.ctx(), operator, h.id, engine.AdminAction{}))(t)
		h.isHeld("another delivery was added", second)
		w.turnTo(h.queue.TimerAt)
		eventually(t, "its timer was handled", func() bool { return w.hook(h.id).Queue.TimerAt > w.now() })
		h.isHeld("the first end of the lease is over", second)
		w.turnTo(h.queue.Until.Add(-1))
		must(w.e.TestWebhook(w.ctx(), operator, h.id, engine.AdminAction{}))(t)
		must(w.e.Redeliver(w.ctx(), operator, h.id, h.delivery.ID, engine.AdminAction{}))(t)
		h.isHeld("just before the end", second)
		free := w.hooked("acme", thereURL, submittedOnly)
		must(w.e.TestWebhook(w.ctx(), operator, free.ID, engine.AdminAction{}))(t)
		w.settledHook(free.ID, 1)
		h.isHeld("the process sends to an endpoint without a lease", second)
		names := make([]string, len(commits.all))
		for i := range names {
			names[i] = <-commits.all
		}
		visits := len(slices.DeleteFunc(names, func(name string) bool { return name != "visit_deliveries" }))
		if visits > 2 { // one, if the other process was not faster and the store has not had it repeated
			t.Errorf("%d transactions have looked at a queue whose lease had one timer", visits)
		}
		same(t, "when it is looked at again", w.hook(h.id).Queue.TimerAt, h.queue.Until)
	})
}

func TestE42_a_process_whose_lease_has_ended_records_nothing_of_what_another_one_sends(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{Clock: clock.NewManual(start)}, func(t *testing.T, w *world) {
		h := w.heldEndpoint()
		w.cfg.Clock = nil
		w.e = w.another()
		second := w.slowly()
		w.turnTo(h.queue.Until)
		w.turning(base.Second, "the other sends it", func() bool { return slices.Contains(idsOf(second.requests(hereURL)), h.delivery.EventID.String()) })
		taken := w.hook(h.id).Queue
		if taken.Owner == h.queue.Owner || taken.Epoch != h.queue.Epoch+1 {
			t.Errorf("the lease is %+v", taken)
		}
		h.receiver.answer(500)
		closeEngine(t, h.by) // which waits until it has tried to record that
		same(t, "the queue", w.hook(h.id).Queue, taken)
		same(t, "the delivery", w.deliveries(h.id, webhook.Pending), []webhook.Delivery{h.delivery})
		second.answer(204)
		w.settledHook(h.id, 2)
		for _, d := range w.deliveries(h.id, webhook.Done) {
			same(t, "attempts and the last answer", []int{d.Attempts, d.Last.Status}, []int{1, 204})
		}
		same(t, "requests of each", []int{len(h.receiver.requests(hereURL)), len(second.requests(hereURL))}, []int{2, 1})
	})
}
