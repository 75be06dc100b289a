// Package proxy forwards TCP connections and damages them on request: it refuses and cuts connections, keeps them open without forwarding
// anything, and delays or slows what passes. Its address stays the same while the address behind it changes. It knows nothing of the protocols
// that it carries.
package proxy

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// Mode is what happens to connections.
type Mode int

// The modes. Each of them applies to existing connections and to new ones.
const (
	Pass     Mode = iota // forward everything
	Refuse               // close new connections at once; Cut also closes the existing ones
	HalfOpen             // accept connections and bytes, and forward nothing: the peer seems to be there and does not answer
	Deaf                 // forward what clients send, and nothing of what is answered: commands take effect, their answers are lost
	Slow                 // forward with little bandwidth
	Delay                // forward everything late
)

// String returns the name of the mode.
func (m Mode) String() string {
	return [...]string{"pass", "refuse", "half-open", "deaf", "slow", "delay"}[m]
}

// Parameters of Slow and Delay.
const (
	slowBytes = 256
	slowPause = 20 * time.Millisecond
	latency   = 300 * time.Millisecond
	dialLimit = 5 * time.Second
)

// Proxy listens on a local address and forwards its connections.
type Proxy struct {
	listener net.Listener
	ending   context.Context //nolint:containedctx // it is the life of the proxy, not of a call
	end      context.CancelFunc
	served   sync.WaitGroup

	mu      sync.Mutex
	network string
	address string // "": there is nothing to forward to
	mode    Mode
	changed chan struct{} // closed when mode changes
	open    map[net.Conn]struct{}
	carried int64
}

// New starts a proxy on a free local port. It refuses connections until Forward sets an address.
func New() (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it ends with Close
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: listener, changed: make(chan struct{}), open: map[net.Conn]struct{}{}}
	p.ending, p.end = context.WithCancel(context.Background())
	p.served.Go(p.accept)
	return p, nil
}

// Address returns the host and port of the proxy.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Forward sets where new connections lead to: a network and an address of net.Dial. An empty address refuses them.
func (p *Proxy) Forward(network, address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.network, p.address = network, address
}

// Set changes the mode. Connections in transit continue in the new one; bytes held back by HalfOpen are then forwarded, those held back by
// Deaf are lost together with their connections, as after a timeout of the network.
func (p *Proxy) Set(m Mode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mode == Deaf && m != Deaf {
		p.cut()
	}
	p.mode = m
	close(p.changed)
	p.changed = make(chan struct{})
}

// Cut closes all connections and returns how many there were. Both sides are told by a reset.
func (p *Proxy) Cut() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cut()
}

func (p *Proxy) cut() int {
	n := 0
	for conn := range p.open {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
			n++
		}
		_ = conn.Close()
	}
	clear(p.open)
	return n
}

// Carried returns how many bytes have been forwarded in both directions.
func (p *Proxy) Carried() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.carried
}

// Close ends the proxy and its connections.
func (p *Proxy) Close() error {
	err := p.listener.Close()
	p.end()
	p.Cut()
	p.served.Wait()
	return err
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			if !p.pause(slowPause) {
				return
			}
			continue
		}
		p.served.Go(func() { p.serve(client) })
	}
}

// serve forwards one connection until one side ends it.
func (p *Proxy) serve(client net.Conn) {
	defer func() { _ = client.Close() }()
	p.mu.Lock()
	network, address, refuse := p.network, p.address, p.mode == Refuse
	p.mu.Unlock()
	if address == "" || refuse {
		if tcp, ok := client.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		return
	}
	dialer := net.Dialer{Timeout: dialLimit}
	server, err := dialer.DialContext(p.ending, network, address)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	p.mu.Lock()
	ended := p.ending.Err() != nil
	p.open[client], p.open[server] = struct{}{}, struct{}{}
	p.mu.Unlock()
	if ended {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { p.copy(server, client, false) })
	both.Go(func() { p.copy(client, server, true) })
	both.Wait()
	p.mu.Lock()
	delete(p.open, client)
	delete(p.open, server)
	p.mu.Unlock()
}

// copy forwards one direction. The end of a direction ends the connection: HTTP and Postgres do not use half-closed ones.
func (p *Proxy) copy(to, from net.Conn, answers bool) {
	defer func() {
		_ = to.Close()
		_ = from.Close()
	}()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 && !p.send(to, buffer[:n], answers) {
			return
		}
		if err != nil {
			return
		}
	}
}

// send forwards bytes in the manner of the mode. It returns false when the connection is over.
func (p *Proxy) send(to net.Conn, data []byte, answers bool) bool {
	if !p.await(answers) {
		return false
	}
	p.mu.Lock()
	mode := p.mode
	p.carried += int64(len(data))
	p.mu.Unlock()
	if mode == Delay && !p.pause(latency) {
		return false
	}
	for len(data) > 0 {
		n := len(data)
		if mode == Slow {
			n = min(n, slowBytes)
			if !p.pause(slowPause) {
				return false
			}
		}
		if _, err := to.Write(data[:n]); err != nil {
			return false
		}
		data = data[n:]
	}
	return true
}

// await returns once the mode lets bytes of a direction pass, and false if the proxy ends before.
func (p *Proxy) await(answers bool) bool {
	for {
		p.mu.Lock()
		held, changed := p.mode == HalfOpen || p.mode == Deaf && answers, p.changed
		p.mu.Unlock()
		if !held {
			return true
		}
		select {
		case <-changed:
		case <-p.ending.Done():
			return false
		}
	}
}

// pause waits, and returns false if the proxy ends before.
func (p *Proxy) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-p.ending.Done():
		return false
	}
}
