package server

import (
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/flowfabric/flowfabric/internal/wire"
)

// checkOrigin keeps pages of other sites, and requests from other machines, from a server that requires no credentials (U123):
// Host must be right, no proxy may have passed the request on, and an Origin must be the server's own.
func (s *Server) checkOrigin(x *exchange) error {
	if err := s.checkHost(x.r); err != nil {
		return err
	}
	if err := checkForwarded(x.r); err != nil {
		return err
	}
	origin := x.r.Header.Get("Origin")
	if origin != "" && slices.Contains(s.cfg.CORSOrigins, origin) {
		return nil
	}
	if err := checkFetchSite(x); err != nil || origin == "" {
		return err
	}
	if s.exposed() {
		return s.checkExposed(x.r)
	}
	scheme := "http://"
	if x.r.TLS != nil {
		scheme = "https://"
	}
	if origin != scheme+x.r.Host && origin != s.own {
		return foreignPage("Origin")
	}
	return nil
}

func foreignPage(header string) error {
	return refuse("origin_forbidden", "a page of another origin may not call this server").at("header." + header)
}

// checkForwarded refuses what a proxy has passed on: on this machine it makes others look as if they were here.
func checkForwarded(r *http.Request) error {
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		if name == "Forwarded" || strings.HasPrefix(name, "X-Forwarded-") {
			return refuse("origin_forbidden", "without API keys the server answers nothing that a proxy has passed on").at("header." + name).
				hint("create an admin key: flowfabric api-keys create --role admin --name me")
		}
	}
	return nil
}

// checkFetchSite refuses what a browser says comes from a page of another origin, another port of this machine too; reads as well: they
// may wait, and cost. Routes that are open to all may be linked to from anywhere.
func checkFetchSite(x *exchange) error {
	switch x.r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return nil
	}
	if x.route.Roles&wire.Open != 0 {
		return nil
	}
	return foreignPage("Sec-Fetch-Site")
}

// checkHost requires a name of this machine with the right port. A listener on another address was configured explicitly; but
// requests to its public name, which is for holders of tokens, are refused without one.
func (s *Server) checkHost(r *http.Request) error {
	switch {
	case s.cfg.LoopbackOnly && !onLoopback(r):
		return refuse("origin_forbidden", "without credentials the server answers only what comes in over loopback").
			hint("listen on 127.0.0.1, or let callers have API keys or a login")
	case s.exposed() && s.atPublicHost(r):
		return refuse("origin_forbidden", "without API keys the server does not answer at its public URL").at("header.Host").
			hint("create an admin key: flowfabric api-keys create --role admin --name me")
	case !s.exposed() && !namesThisMachine(r):
		return refuse("origin_forbidden", "without API keys the server answers only to names of this machine").at("header.Host").
			hint("use localhost, 127.0.0.1 or [::1] with the port")
	default:
		return nil
	}
}

// atPublicHost reports whether a request was sent to the name of the public URL. An IP address is not a name: one that was not
// configured is that of the listener.
func (s *Server) atPublicHost(r *http.Request) bool {
	public := strings.TrimPrefix(strings.TrimPrefix(s.own, "https://"), "http://")
	if public == "" || public != r.Host {
		return false
	}
	_, err := netip.ParseAddr((&url.URL{Host: public}).Hostname())
	return err != nil
}

// namesThisMachine reports whether Host is a name of this machine with the port of the listener. On an address that is not loopback
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

// onLoopback reports whether a request came in over an address that other machines cannot reach.
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
	if len(r.Header.Values("X-Forwarded-For")) > 0 && !s.trusts(address) {
		s.untrusted.Do(func() {
			s.log.Warn("X-Forwarded-For is ignored: it comes from an address that trusted-proxies does not name. All callers behind it count as one address",
				"address", address.String())
		})
	}
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

// cors lets pages of listed origins call, and reports whether the request only asked for that (U127). Signals come from pages of any
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
