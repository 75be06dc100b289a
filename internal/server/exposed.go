package server

import (
	"net/http"
	"net/url"
	"time"

	"github.com/flowfabric/flowfabric/internal/wire"
)

// exposedDetail describes a server without access control.
const exposedDetail = "anybody who reaches this server may do everything (--insecure-open)"

// checkExposed is checkOrigin of a server that was opened to other machines on purpose. They address it by names that it cannot
// know itself: of a container, of a DNS zone, of another machine. Requiring localhost would lock out the callers that it was
// opened for, so Host is not checked. Pages of other sites are refused: Origin must have the Host of the request, with http or,
// if TLS is terminated in front, https.
func (s *Server) checkExposed(r *http.Request) error {
	origin := r.Header.Get("Origin")
	if u, err := url.Parse(origin); origin != s.own && (err != nil || u.Host == "" || u.Host != r.Host) {
		return foreignPage("Origin")
	}
	return nil
}

// scrapeTimeout limits a request for metrics.
const scrapeTimeout = 30 * time.Second

// MetricsServer is an http.Server for /metrics alone, on an address of its own (U196). open: no key is required there. Serve it on a
// Listener: its connections count with the others of their address.
func (s *Server) MetricsServer(open bool) *http.Server {
	served := s.HTTPServer()
	served.Handler, served.ReadTimeout, served.WriteTimeout = s.metricsHandler(open), scrapeTimeout, scrapeTimeout
	return served
}

func (s *Server) metricsHandler(open bool) http.Handler {
	mux := http.NewServeMux()
	if open {
		mux.Handle(wire.GetMetrics.Method+" "+wire.GetMetrics.Path, s.metrics.registry)
	} else {
		mux.HandleFunc(wire.GetMetrics.Path, s.serveHTTP)
	}
	return mux
}
