package server

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric/internal/clock"
)

// connections counts open connections by address, so that one address cannot take all that the process may have.
type connections struct {
	most int

	mu   sync.Mutex
	open map[string]int // by address; none is 0
}

func newConnections(most int) *connections { return &connections{most: most, open: map[string]int{}} }

// enter counts a connection, or reports that there are too many. Call leave when it is closed.
func (c *connections) enter(address string) (leave func(), ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[address] >= c.most {
		return nil, false
	}
	c.open[address]++
	return sync.OnceFunc(func() { c.leave(address) }), true
}

func (c *connections) leave(address string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[address]--; c.open[address] == 0 {
		delete(c.open, address)
	}
}

// refusalTimeout bounds the time for writing to a connection that is refused. It is new: the refusal fits into its buffer.
const refusalTimeout = time.Second

// admitConnection counts a connection, or closes it: with a problem unless TLS comes first. Trusted proxies are not limited,
// because each serves many clients.
func (s *Server) admitConnection(conn net.Conn) (leave func(), ok bool) {
	peer, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil || s.trusts(peer.Addr().Unmap()) {
		return func() {}, true
	}
	address := oneHost(peer.Addr().Unmap())
	if leave, ok = s.connections.enter(address); ok {
		return leave, true
	}
	s.metrics.rejected("overload")
	s.notes.Warn("a connection was closed: its address has as many as it may (max-connections-per-address)", "address", address, "count", s.connections.most)
	if !s.cfg.TLS {
		_ = conn.SetWriteDeadline(clock.System().Now().Add(refusalTimeout)) // if it does not hold, the write fails by itself
		_, _ = conn.Write(s.bareProblem(refuse("overloaded", "this address has too many connections open").after(time.Second).
			current("limit", s.connections.most).hint("keep connections open and use them again; a proxy belongs into trusted-proxies")))
	}
	_ = conn.Close() // no further answer is sent
	return nil, false
}

// oneHost is what counts as one host: of IPv6 the network, which one host has to itself.
func oneHost(address netip.Addr) string {
	if address.Is6() {
		if prefix, err := address.Prefix(64); err == nil {
			return prefix.String()
		}
	}
	return address.String()
}
