package server

import (
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric/internal/wire"
)

// Listener returns a listener on which net/http's own refusals are problems too (U11): input that net/http cannot parse as a
// request does not reach the handler, and is refused with a line of text. TLS is layered on top of it; refusals of net/http
// inside TLS stay text.
func (s *Server) Listener(inner net.Listener) net.Listener { return listener{inner, s} }

type listener struct {
	net.Listener
	s *Server
}

// Accept waits for the next connection of an address that may have one more.
func (l listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if leave, ok := l.s.admitConnection(conn); ok {
			return &connection{Conn: conn, s: l.s, leave: leave, head: &headMemory{of: l.s.memory, holder: l.s.holderOf(conn), reading: true}}, nil
		}
	}
}

// connection is the way to a client that net/http writes to.
type connection struct {
	net.Conn
	s     *Server
	leave func() // may be called again
	head  *headMemory
}

// Close closes the connection, which then counts no more.
func (c *connection) Close() error {
	defer c.leave()
	c.head.end()
	return c.Conn.Close()
}

// Read reads what the client sends. While that is the head of a request it needs memory, for which there is a bound.
func (c *connection) Read(into []byte) (int, error) {
	n, err := c.Conn.Read(into)
	if !c.head.grow(n) {
		c.s.metrics.rejected("overload")
		c.s.notes.Warn("a connection was closed: there is no memory for more heads of requests", "address", c.head.holder)
		return 0, errNoHeadMemory
	}
	return n, err
}

var errNoHeadMemory = errors.New("there is no memory for the head of the request")

// connState follows the requests of a connection: whether a head comes next, or what follows one. HTTP/2 frames do not mark the
// end of a head.
func connState(conn net.Conn, state http.ConnState) {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
		if secure.ConnectionState().NegotiatedProtocol == "h2" {
			state = http.StateActive
		}
	}
	c, ok := conn.(*connection)
	switch {
	case !ok:
	case state == http.StateIdle:
		c.head.begin()
	case state != http.StateNew:
		c.head.end()
	}
}

// CloseWrite closes the sending side and still reads: a client that is refused while it sends must be able to read the reason.
func (c *connection) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Write sends what is written, and replaces a refusal of net/http by our own. A client that reads nothing for long loses its
// connection: what net/http writes after the handler has returned, such as the answers to pipelined requests, has no other bound,
// and neither have the frames of HTTP/2.
func (c *connection) Write(part []byte) (int, error) {
	defer stalled(c.s.writeLimit, c.Conn.SetWriteDeadline)()
	why := refusedByLibrary(part)
	switch {
	case why == nil:
	case c.head.refused():
		why = refuse("overloaded", "there is no memory for the heads of more requests").after(time.Second).hint("send smaller heads, or try again later")
	}
	if why == nil {
		return c.Conn.Write(part)
	}
	if _, err := c.Conn.Write(c.s.bareProblem(why)); err != nil {
		return 0, err
	}
	return len(part), nil
}

// bareHead is how net/http continues after the first line of a refusal. No answer of the handler does.
const bareHead = "\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"

// refusedByLibrary recognises a refusal of net/http, which it writes at once; nil: it is none.
func refusedByLibrary(part []byte) *refusal {
	const version = "HTTP/1."
	if len(part) <= len(version)+2 || !bytes.HasPrefix(part, []byte(version)) || part[len(version)+2] != '4' && part[len(version)+2] != '5' {
		return nil
	}
	line, rest, _ := strings.Cut(string(part[:min(len(part), 1<<10)]), "\r\n")
	status := strings.Fields(line)[1]
	switch own := strings.HasPrefix("\r\n"+rest, bareHead); {
	case own && status == "431":
		return tooLargeHead()
	case own && status == "501":
		return refuse("not_implemented", "the server does not take this transfer encoding").at("header.Transfer-Encoding").hint("use chunked, or none")
	case own:
		return refuse("invalid_argument", "the request cannot be read as HTTP").hint("look at the first line and at the headers")
	case status == "417":
		return refuse("invalid_argument", "the server does not do what Expect asks for").at("header.Expect").hint("leave it out")
	case strings.Contains(rest, "HTTP request to an HTTPS server"):
		return refuse("invalid_argument", "this server speaks HTTPS").hint("write https:// in its address")
	default:
		return nil
	}
}

// bareProblem is a whole answer, for a request that was none.
func (s *Server) bareProblem(why *refusal) []byte {
	x := &exchange{id: rand.Text()}
	problem := s.problemOf(x, why)
	body, err := wire.Marshal(problem)
	if err != nil {
		body = []byte("{}")
	}
	return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: close\r\n"+
		"%s: %s\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nCross-Origin-Resource-Policy: same-origin\r\nCache-Control: no-cache\r\n\r\n%s",
		problem.Status, problem.Title, problemContent, len(body), wire.HeaderRequestID, x.id, body)
}
