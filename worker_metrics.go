package flowfabric

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/metrics"
)

// Metrics serves the metrics of this worker as Prometheus text: its tasks, the time of its handlers, lost leases, and calls that
// failed to reach the engine. It works before, during and after Run. The metrics are described in docs/metrics.md.
func (w *Worker) Metrics() http.Handler { return metrics.Compressed(metrics.Registry{w.meter}) }

// workerMeter measures the process of a worker (U211). The instruments of a handler are looked up when it is registered, so that
// a task costs two readings of the clock and no lookup.
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

// meter creates the instruments of a handler.
func (h *handler) meter(m *workerMeter) {
	h.label = m.kinds.Value(h.kind)
	h.took = map[string]*metrics.Observer{}
	for _, outcome := range metrics.HandlerOutcomes {
		h.took[outcome] = m.seconds.With(h.label, outcome)
	}
}

// handled records how long a handler took and the outcome of the task.
func (t *Task) handled(took int64, outcome string) {
	t.handler.took[outcome].Observe(time.Duration(took).Seconds())
}

// outcomeOf returns the outcome of a task whose ending is sent.
func outcomeOf(op api.Op) string {
	switch op {
	case api.OpComplete:
		return metrics.HandlerSucceeded
	case api.OpFail:
		return metrics.HandlerFailed
	default:
		return metrics.HandlerHandedBack
	}
}

// outcomeWithout returns the outcome of a task for which nothing is sent any more.
func outcomeWithout(gone error) string {
	if errors.Is(gone, ErrParked) {
		return metrics.HandlerHandedBack
	}
	return metrics.HandlerLost
}

// leaseLost counts a lease that was lost before its task was ended.
func (m *workerMeter) leaseLost(cause error) { m.lost.With(lossOf(cause)).Inc() }

// lossOf returns the cause of a lost lease as a label.
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

// called counts a call that was not answered, unless the worker itself cancelled it, and returns its error.
func (m *workerMeter) called(ctx context.Context, err error) error {
	if err != nil && ctx.Err() == nil && errors.Is(err, ErrUnavailable) {
		m.transport.With().Inc()
	}
	return err
}

// Collect returns the metrics.
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
