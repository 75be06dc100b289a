package server

import (
	"net/http"
	"runtime"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	measures "github.com/flowfabric/flowfabric/internal/metrics"
)

// The groups of requests in flight (U200).
const (
	groupCall = "call"
	groupPoll = "poll"
	groupSSE  = "sse"
)

// metrics are the measurements of the server (U200, U214), in a registry of their own with those of an engine in this process.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	inFlight *prometheus.GaugeVec
	refused  *prometheus.CounterVec
	auth     *prometheus.CounterVec
}

func newMetrics(s *Server) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: measures.HTTPRequests.New(),
		seconds:  measures.HTTPRequestSeconds.New(),
		inFlight: measures.HTTPInFlight.New(),
		refused:  measures.HTTPRejected.New(),
		auth:     measures.AuthFailures.New(),
	}
	m.registry.MustRegister(
		m.requests, m.seconds, m.inFlight, m.refused, m.auth, newBuildInfo(s),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	if engine, here := s.client.(measures.Source); here {
		m.registry.MustRegister(engine.Collector())
	}
	return m
}

// observe counts an answer.
func (m *metrics) observe(x *exchange, took time.Duration) {
	status := x.w.status
	if status == 0 {
		status = http.StatusOK
	}
	method := x.r.Method
	if !knownMethod(method) {
		method = measures.Other
	}
	m.requests.WithLabelValues(x.routeName(), method, strconv.Itoa(status)).Inc()
	if x.group != groupSSE {
		m.seconds.WithLabelValues(x.routeName(), method).Observe(took.Seconds())
	}
}

// knownMethod bounds the values of the label: callers may send any word as method.
func knownMethod(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return true
	default:
		return false
	}
}

// enter moves a request into another group; call what it returns to move it back.
func (m *metrics) enter(x *exchange, group string) (leave func()) {
	was := x.group
	x.group = group
	m.inFlight.WithLabelValues(was).Dec()
	m.inFlight.WithLabelValues(group).Inc()
	return func() {
		m.inFlight.WithLabelValues(group).Dec()
		m.inFlight.WithLabelValues(was).Inc()
	}
}

// rejected counts a request that was refused before the rules saw it.
func (m *metrics) rejected(reason string) { m.refused.WithLabelValues(reason).Inc() }

// authFailed counts wrong credentials by code.
func (m *metrics) authFailed(code string) { m.auth.WithLabelValues(code).Inc() }

// handler delivers everything that was measured.
func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{DisableCompression: true})
}

// buildInfo is ff_build_info. What the store is it asks when it is first collected: at start the store may be away.
type buildInfo struct {
	server *Server
	desc   *prometheus.Desc
}

func newBuildInfo(s *Server) *buildInfo {
	return &buildInfo{s, measures.BuildInfo.Desc()}
}

// Describe tells the name.
func (b *buildInfo) Describe(to chan<- *prometheus.Desc) { to <- b.desc }

// Collect tells the labels.
func (b *buildInfo) Collect(to chan<- prometheus.Metric) {
	kind, schema := b.server.storeLabels()
	to <- measures.BuildInfo.Sample(b.desc, 1, b.server.cfg.Version, b.server.cfg.Commit, runtime.Version(), kind, schema)
}
