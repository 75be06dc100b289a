package server

import (
	"net/http"
	"net/url"

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

// MetricsHandler serves only /metrics, for an address of its own (U196). open: no key is required there.
func (s *Server) MetricsHandler(open bool) http.Handler {
	mux := http.NewServeMux()
	if open {
		mux.Handle(wire.GetMetrics.Method+" "+wire.GetMetrics.Path, s.metrics.registry)
	} else {
		mux.HandleFunc(wire.GetMetrics.Path, s.serveHTTP)
	}
	return mux
}
