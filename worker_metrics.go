package flowfabric

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/flowfabric/flowfabric/internal/metrics"
)

// Metrics serves, as Prometheus text, what this worker measures of itself: its tasks, the time of its handlers, leases that it lost, and
// calls that did not reach the engine. It works before, during and after Run. What the metrics mean is told in docs/metrics.md.
func (w *Worker) Metrics() http.Handler { return metrics.Compressed(metrics.Registry{w.meter}) }

// workerMeter measures the process of a worker (U211). The instruments of a handler are found when it is registered, so that a task
// costs two readings of the clock and no search.
type workerMeter struct {
	seconds   *metrics.Histograms
	lost      *metrics.Counters
	transport *metrics.Counters
	kinds     metrics.Bounded
	handlers  func() []*handler
}

func newWorkerMeter(handlers func() []*handler) *workerMeter {
	return &workerMeter{
		seconds: metrics.WorkerHandlerSeconds.New(), lost: metrics.WorkerLeaseLost.New(), transport: metrics.WorkerTransportErrors.New(),
		handlers: handlers,
	}
}

// meter gives a handler its instruments.
func (h *handler) meter(m *workerMeter) {
	h.label = m.kinds.Value(h.kind)
	h.took = map[string]*metrics.Observer{}
	for _, outcome := range metrics.HandlerOutcomes {
		h.took[outcome] = m.seconds.With(h.label, outcome)
	}
}

// handled notes how long a handler took and what became of the task.
func (t *Task) handled(took int64, outcome string) {
	t.handler.took[outcome].Observe(time.Duration(took).Seconds())
}

// outcomeOf is what an ending that is sent means for the task.
func outcomeOf(op Op) string {
	switch op {
	case OpComplete:
		return metrics.HandlerSucceeded
	case OpFail:
		return metrics.HandlerFailed
	default:
		return metrics.HandlerHandedBack
	}
}

// outcomeWithout is what became of a task for which nothing is sent any more.
func outcomeWithout(gone error) string {
	if errors.Is(gone, ErrParked) {
		return metrics.HandlerHandedBack
	}
	return metrics.HandlerLost
}

// leaseLost counts a lease that was lost before its task was ended.
func (m *workerMeter) leaseLost(cause error) { m.lost.With(lossOf(cause)).Inc() }

// lossOf names the cause of a lost lease.
func lossOf(cause error) string {
	switch {
	case errors.Is(cause, ErrLeaseRevoked):
		return metrics.LossRevoked
	case errors.Is(cause, ErrCancelled):
		return metrics.LossCancelled
	case errors.Is(cause, ErrDeadline):
		return metrics.LossDeadline
	case errors.Is(cause, ErrAttemptTimeout):
		return metrics.LossAttemptTimeout
	case errors.Is(cause, ErrBudgetExceeded):
		return metrics.LossBudget
	default:
		return metrics.LossLapsed
	}
}

// called counts a call that nobody answered, unless the worker itself broke it off, and gives its error back.
func (m *workerMeter) called(ctx context.Context, err error) error {
	if err != nil && ctx.Err() == nil && errors.Is(err, ErrUnavailable) {
		m.transport.With().Inc()
	}
	return err
}

// Collect tells what was measured.
func (m *workerMeter) Collect() []metrics.Family {
	running := map[string]int64{}
	for _, h := range m.handlers() {
		running[h.label] += h.running.Load()
	}
	tasks := metrics.WorkerTasks.Family()
	for label, n := range running {
		tasks.Add(float64(n), label)
	}
	return append(metrics.Registry{m.seconds, m.lost, m.transport}.Collect(), tasks)
}
