package server

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/clock"
	measures "github.com/flowfabric/flowfabric/internal/metrics"
	"github.com/flowfabric/flowfabric/internal/service"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func (s *Server) serveHealth() {
	handle(s, wire.GetHealth, s.health)
	handle(s, wire.GetReadiness, s.readiness)
	handle(s, wire.GetMetrics, s.getMetrics)
}

// health reports that the process is alive; it checks nothing else and needs no credentials (U114). A header names the installation, so that
// a client with several addresses knows which of them share a store.
func (s *Server) health(_ context.Context, x *exchange, _ *wire.None) (answer, error) {
	x.w.Header().Set(wire.HeaderInstallation, s.on.Installation())
	return shows(wire.Health{Status: "ok"}), nil
}

// The bounds of a server that is ready.
const (
	readyWithin = 5 * time.Second // the store answers
	maxSkew     = 5 * time.Second // between the clocks of store and host
)

// readiness reports whether the server can serve (U114). Only callers that may read get details of what is wrong.
func (s *Server) readiness(ctx context.Context, x *exchange, _ *wire.None) (answer, error) {
	checks := map[string]wire.ReadinessCheck{"stopping": {OK: !s.drains()}}
	s.checkStore(ctx, x.by, checks)
	if s.open.now() && (s.cfg.Exposed || s.cfg.OpenByFlag) {
		checks["open"] = wire.ReadinessCheck{OK: true, Detail: exposedDetail}
	}
	if s.drains() {
		checks["stopping"] = wire.ReadinessCheck{Detail: "the server is stopping"}
	}
	ready := wire.Readiness{Status: "ok", Checks: checks}
	status := http.StatusOK
	reads := x.caller.roles.Held()&wire.Read != 0
	for name, check := range checks {
		if !check.OK {
			ready.Status, status = "unavailable", http.StatusServiceUnavailable
		}
		if !reads {
			check.Detail = ""
			checks[name] = check
		}
	}
	return answer{status: status, body: ready}, nil
}

// checkStore checks the store and evaluates its status. A probe that closes its side of the connection early still gets the
// correct answer.
func (s *Server) checkStore(ctx context.Context, by service.Caller, checks map[string]wire.ReadinessCheck) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyWithin)
	defer cancel()
	watch := clock.Stopwatch()
	info, err := ask(ctx, s, by, wire.GetInfo, &wire.None{})
	took := float64(watch().Microseconds()) / 1000
	checks["store"] = wire.ReadinessCheck{OK: err == nil, MS: took, Detail: storeDetail(err)}
	checks["queue"] = wire.ReadinessCheck{OK: api.CodeOf(err) != "overloaded"}
	if err != nil {
		return
	}
	switch info.Store.State {
	case "store_full": // nothing can be written here
		checks["store"] = wire.ReadinessCheck{MS: took, Detail: info.Store.State}
	case "corruption": // what can be read is served
		checks["store"] = wire.ReadinessCheck{OK: true, MS: took, Detail: info.Store.State}
	}
	checks["schema"] = wire.ReadinessCheck{OK: info.Store.Schema > 0}
	skew := wire.ReadinessCheck{OK: info.ClockSkew.Abs() <= maxSkew}
	if !skew.OK {
		skew.Detail = "the clocks of host and store differ by " + info.ClockSkew.String()
	}
	checks["clock"] = skew
	checks["signing_key"] = s.checkSigningKey(ctx, by)
}

// checkSigningKey looks whether tokens can be signed (W22).
func (s *Server) checkSigningKey(ctx context.Context, by service.Caller) wire.ReadinessCheck {
	watch := clock.Stopwatch()
	list, err := ask(ctx, s, by, wire.ListSigningKeys, &wire.ListSigningKeysRequest{})
	check := wire.ReadinessCheck{OK: err == nil && list.CurrentKid != "", MS: float64(watch().Microseconds()) / 1000, Detail: storeDetail(err)}
	if err == nil && !check.OK {
		check.Detail = "no signing key is active"
	}
	return check
}

func storeDetail(err error) string {
	var public *api.Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &public):
		return public.Code
	default:
		return "the store does not answer"
	}
}

// getMetrics delivers the measurements (U115): to a caller who sees some namespaces alone what happens in those.
func (s *Server) getMetrics(ctx context.Context, x *exchange, _ *wire.None) (answer, error) {
	shown := s.metrics.registry
	if who := x.caller; !who.anonymous && !who.everywhere {
		shown = measures.Registry{s.on.NamespaceCollector(who.Namespaces)}
	}
	return answer{stream: func(_ context.Context, x *exchange) {
		page := &metricsPage{header: x.w.Header()}
		shown.ServeHTTP(page, x.r)
		if err := x.holdAnswer(int64(page.Len())); err != nil {
			s.metrics.rejected("overload")
			s.writeProblem(x, err)
			return
		}
		x.w.WriteHeader(page.status)
		_, _ = x.w.Write(page.Bytes()) // a client that went away needs no answer
	}}, nil
}

// metricsPage is a page of metrics before it is sent.
type metricsPage struct {
	bytes.Buffer
	header http.Header
	status int
}

func (p *metricsPage) Header() http.Header    { return p.header }
func (p *metricsPage) WriteHeader(status int) { p.status = status }

// storeLabels are kind and schema of the store as ff_build_info has them; "" while the store does not say.
func (s *Server) storeLabels() (kind, schema string) {
	ctx, cancel := context.WithTimeout(context.Background(), readyWithin)
	defer cancel()
	info, err := ask(ctx, s, service.Caller{}, wire.GetInfo, &wire.None{})
	if err != nil {
		return "", ""
	}
	return info.Store.Kind, strconv.Itoa(info.Store.Schema)
}
