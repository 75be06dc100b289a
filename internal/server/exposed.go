package server

import (
	"net/http"
	"net/url"

	"github.com/flowfabric/flowfabric/internal/wire"
)

// exposedDetail is what is said of a server that anybody may use.
const exposedDetail = "anybody who reaches this server may do everything (--insecure-open)"

// checkExposed is checkOrigin of a server that was opened to other machines on purpose. They know it by names that it does not know
// itself: of a container, of a DNS zone, of another machine. To ask for localhost would lock out the very callers that it was opened for,
// so Host does not matter. Pages of other sites stay out: Origin must have the Host that was called, by http or, where something in front
// ends TLS, by https.
func (s *Server) checkExposed(r *http.Request) error {
	origin := r.Header.Get("Origin")
	if u, err := url.Parse(origin); origin != s.own && (err != nil || u.Host == "" || u.Host != r.Host) {
		return foreignPage("Origin")
	}
	return nil
}

// MetricsHandler serves /metrics and nothing else, for an address of its own (U196). open: nobody is asked for a key there.
func (s *Server) MetricsHandler(open bool) http.Handler {
	mux := http.NewServeMux()
	if open {
		mux.Handle(wire.GetMetrics.Method+" "+wire.GetMetrics.Path, s.metrics.registry)
	} else {
		mux.HandleFunc(wire.GetMetrics.Path, s.serveHTTP)
	}
	return mux
}
