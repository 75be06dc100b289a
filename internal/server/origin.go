package server

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// checkOrigin keeps pages of other sites from a server that asks nobody for credentials (U123): Host must be right, and an Origin the
// server's own.
func (s *Server) checkOrigin(r *http.Request) error {
	if err := s.checkHost(r); err != nil {
		return err
	}
	if s.cfg.Exposed {
		return s.checkExposed(r)
	}
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	if origin := r.Header.Get("Origin"); origin != "" && origin != scheme+r.Host && origin != s.own && !slices.Contains(s.cfg.CORSOrigins, origin) {
		return refuse("origin_forbidden", "a page of another origin may not call this server").at("header.Origin")
	}
	return nil
}

// checkHost asks for a name of this machine with the right port, or for that of the public URL. Who listens on another address has said
// so.
func (s *Server) checkHost(r *http.Request) error {
	public := s.own != "" && strings.TrimPrefix(strings.TrimPrefix(s.own, "https://"), "http://") == r.Host
	switch {
	case s.cfg.LoopbackOnly && !onLoopback(r):
		return refuse("origin_forbidden", "without credentials the server answers only what comes in over loopback").
			hint("listen on 127.0.0.1, or let callers have API keys or a login")
	case !s.cfg.Exposed && !public && !namesThisMachine(r):
		return refuse("origin_forbidden", "without API keys the server answers only to names of this machine").at("header.Host").
			hint("use localhost, 127.0.0.1 or [::1] with the port")
	default:
		return nil
	}
}

// namesThisMachine tells whether Host is a name of this machine with the port of the listener. On an address that is not loopback
// the name does not matter.
func namesThisMachine(r *http.Request) bool {
	host, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		host, port = strings.Trim(r.Host, "[]"), ""
	}
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok {
		if !local.IP.IsLoopback() {
			return true
		}
		if port != strconv.Itoa(local.Port) && (port != "" || local.Port != 80 && local.Port != 443) {
			return false
		}
	}
	return slices.Contains([]string{"localhost", "127.0.0.1", "::1"}, host)
}

// onLoopback tells whether a request came in over an address that other machines cannot reach.
func onLoopback(r *http.Request) bool {
	switch local := r.Context().Value(http.LocalAddrContextKey).(type) {
	case *net.TCPAddr:
		return local.IP.IsLoopback()
	case *net.UnixAddr:
		return true
	default:
		return false
	}
}

// addressOf is where a request came from. X-Forwarded-For counts as far as trusted proxies have written it (U129).
func (s *Server) addressOf(r *http.Request) string {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	address := peer.Addr().Unmap()
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && s.trusts(address); i-- {
		hop, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break
		}
		address = hop.Unmap()
	}
	return address.String()
}

func (s *Server) trusts(address netip.Addr) bool {
	return slices.ContainsFunc(s.proxies, func(p netip.Prefix) bool { return p.Contains(address) })
}

// The headers of cross-origin calls.
const (
	corsMethods = "GET, HEAD, POST, PUT, PATCH, DELETE"
	corsRequest = "Authorization, Baggage, Content-Type, FlowFabric-Lease, FlowFabric-Namespace, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, Prefer, Traceparent, Tracestate, X-Request-Id"
	corsAnswer  = "ETag, Idempotency-Replayed, Location, Preference-Applied, Retry-After, X-Request-Id"
)

// cors lets pages of listed origins call, and tells whether the request only asked for that (U127). Signals come from pages of any
// origin; pages of links are read by no other page.
func (s *Server) cors(x *exchange) (preflight bool) {
	origin := x.r.Header.Get("Origin")
	switch {
	case takesAnyOrigin(x.r):
		return x.allowAnyOrigin()
	case len(s.cfg.CORSOrigins) == 0 || isApproval(x.r):
		return false
	}
	header := x.w.Header()
	header.Add("Vary", "Origin")
	if !slices.Contains(s.cfg.CORSOrigins, origin) {
		return false
	}
	header.Set("Access-Control-Allow-Origin", origin)
	header.Set("Access-Control-Expose-Headers", corsAnswer)
	if x.r.Method != http.MethodOptions || x.r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	header.Set("Access-Control-Allow-Methods", corsMethods)
	header.Set("Access-Control-Allow-Headers", corsRequest)
	header.Set("Access-Control-Max-Age", "600")
	return true
}
