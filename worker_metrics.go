package flowfabric

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/flowfabric/flowfabric/internal/metrics"
)

// Metrics serves, as Prometheus text, what this worker measures of itself: its tasks, the time of its handlers, leases that it lost, and
// calls that did not reach the engine. It works before, during and after Run. What the metrics mean is told in docs/metrics.md.
func (w *Worker) Metrics() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(w.meter)
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}

// workerMeter measures the process of a worker (U211). The instruments of a handler are found when it is registered, so that a task
// costs two readings of the clock and no search.
type workerMeter struct {
	seconds   *prometheus.HistogramVec
	lost      *prometheus.CounterVec
	transport *prometheus.CounterVec
	tasks     *prometheus.Desc
	kinds     metrics.Bounded
	handlers  func() []*handler
}

func newWorkerMeter(handlers func() []*handler) *workerMeter {
	return &workerMeter{
		seconds: metrics.WorkerHandlerSeconds.New(), lost: metrics.WorkerLeaseLost.New(), transport: metrics.WorkerTransportErrors.New(),
		tasks: metrics.WorkerTasks.Desc(), handlers: handlers,
	}
}

// meter gives a handler its instruments.
func (h *handler) meter(m *workerMeter) {
	h.label = m.kinds.Value(h.kind)
	h.took = map[string]prometheus.Observer{}
	for _, outcome := range metrics.HandlerOutcomes {
		h.took[outcome] = m.seconds.WithLabelValues(h.label, outcome)
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
func (m *workerMeter) leaseLost(cause error) { m.lost.WithLabelValues(lossOf(cause)).Inc() }

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
		m.transport.WithLabelValues().Inc()
	}
	return err
}

// Describe tells the names.
func (m *workerMeter) Describe(to chan<- *prometheus.Desc) {
	m.seconds.Describe(to)
	m.lost.Describe(to)
	m.transport.Describe(to)
	to <- m.tasks
}

// Collect tells what was measured.
func (m *workerMeter) Collect(to chan<- prometheus.Metric) {
	m.seconds.Collect(to)
	m.lost.Collect(to)
	m.transport.Collect(to)
	running := map[string]int64{}
	for _, h := range m.handlers() {
		running[h.label] += h.running.Load()
	}
	for label, n := range running {
		to <- metrics.WorkerTasks.Sample(m.tasks, float64(n), label)
	}
}
