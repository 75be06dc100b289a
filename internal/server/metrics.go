package server

import (
	"errors"
	"net/http"
	"runtime"
	"strconv"
	"time"

	"github.com/flowfabric/flowfabric/api"
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
	registry measures.Registry
	requests *measures.Counters
	seconds  *measures.Histograms
	inFlight *measures.Gauges
	refused  *measures.Counters
	auth     *measures.Counters
}

func newMetrics(s *Server) *metrics {
	m := &metrics{
		requests: measures.HTTPRequests.New(),
		seconds:  measures.HTTPRequestSeconds.New(),
		inFlight: measures.HTTPInFlight.New(),
		refused:  measures.HTTPRejected.New(),
		auth:     measures.AuthFailures.New(),
	}
	m.registry = measures.Registry{
		m.requests, m.seconds, m.inFlight, m.refused, m.auth, buildInfo{s}, measures.Runtime(), measures.Process(),
	}
	for _, info := range api.Codes() {
		if errors.Is(&api.Error{Code: info.Code, Class: info.Class}, api.ErrUnauthenticated) {
			m.auth.With(info.Code) // a series that exists from the start lets rate() see its first increase
		}
	}
	m.registry = append(m.registry, s.on.Collector())
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
	m.requests.With(x.routeName(), method, strconv.Itoa(status)).Inc()
	if x.group != groupSSE {
		m.seconds.With(x.routeName(), method).Observe(took.Seconds())
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
	m.inFlight.With(was).Dec()
	m.inFlight.With(group).Inc()
	return func() {
		m.inFlight.With(group).Dec()
		m.inFlight.With(was).Inc()
	}
}

// rejected counts a request that was refused before the rules saw it.
func (m *metrics) rejected(reason string) { m.refused.With(reason).Inc() }

// authFailed counts wrong credentials by code.
func (m *metrics) authFailed(code string) { m.auth.With(code).Inc() }

// buildInfo is ff_build_info. What the store is it asks when it is collected: at start the store may be away.
type buildInfo struct{ server *Server }

// Collect returns the labels.
func (b buildInfo) Collect() []measures.Family {
	kind, schema := b.server.storeLabels()
	return []measures.Family{measures.BuildInfo.Reading(1, b.server.cfg.Version, b.server.cfg.Commit, runtime.Version(), kind, schema)}
}
