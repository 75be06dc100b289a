package server_test

import (
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/server"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// narrow are connections of which little is on its way before the other side must take something.
type narrow struct{ net.Listener }

func (n narrow) Accept() (net.Conn, error) {
	conn, err := n.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return conn, conn.(*net.TCPConn).SetWriteBuffer(1)
}

// closings are the connections that a server has closed, by the address of the client.
type closings struct {
	mu    sync.Mutex
	known map[string]chan struct{}
}

func (c *closings) of(address string) chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known[address] == nil {
		c.known[address] = make(chan struct{})
	}
	return c.known[address]
}

// noted notes the state of a connection. A client may have the address that another one had before.
func (c *closings) noted(conn net.Conn, state http.ConnState) {
	address := conn.RemoteAddr().String()
	switch closed := c.of(address); state {
	case http.StateClosed:
		close(closed)
	case http.StateNew:
		select {
		case <-closed:
			c.forget(address)
		default:
		}
	}
}

func (c *closings) forget(address string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.known, address)
}

// await waits until the server has closed the connection of a client.
func (c *closings) await(t *testing.T, conn net.Conn) {
	t.Helper()
	select {
	case <-c.of(conn.LocalAddr().String()):
	case <-time.After(patience):
		t.Fatal("the server keeps the connection of a client that takes nothing")
	}
}

// unheard serves a world again to clients that take little at a time; the server waits for them no longer than a moment.
func (w *world) unheard(t *testing.T, secure bool) (*world, *closings) {
	t.Helper()
	w.server.SetStallLimit(100 * time.Millisecond)
	closed := &closings{known: map[string]chan struct{}{}}
	listener := httptest.NewUnstartedServer(nil)
	listener.Config, listener.Listener, listener.EnableHTTP2 = w.server.HTTPServer(), w.server.Listener(narrow{listener.Listener}), secure
	inner := listener.Config.ConnState
	listener.Config.ConnState = func(conn net.Conn, state http.ConnState) {
		inner(conn, state)
		closed.noted(conn, state)
	}
	if secure {
		listener.StartTLS()
	} else {
		listener.Start()
	}
	t.Cleanup(listener.Close)
	return &world{Client: w.Client, server: w.server, url: listener.URL, http: w.http, log: w.log}, closed
}

// A client that sends one request behind another and takes no answer must not keep a connection, whatever it asks for, and with a key or without.
func TestU20_a_client_that_takes_no_answer_loses_its_connection_on_every_route(t *testing.T) {
	t.Parallel()
	for name, made := range credentials {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inner, key := made(t)
			w, closed := inner.unheard(t, false)
			for _, o := range wire.Operations() {
				if o.ID == wire.DrainServer.ID {
					continue // the other clients are served on
				}
				t.Run(o.ID, func(t *testing.T) {
					t.Parallel()
					conn := w.dial(t)
					if err := conn.(*net.TCPConn).SetReadBuffer(1); err != nil {
						t.Fatal(err)
					}
					head := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\n", o.Method, somePath(o, "0198f0a0-0000-7000-8000-000000000000"), w.host())
					if key != "" {
						head += "Authorization: Bearer " + key + "\r\n"
					}
					body := ""
					if o.Method != http.MethodGet {
						head, body = head+"Content-Type: application/json\r\nContent-Length: 2\r\n", "{}"
					}
					text := []byte(strings.Repeat(head+"\r\n"+body, 100))
					for {
						if _, err := conn.Write(text); err != nil {
							break
						}
					}
					closed.await(t, conn)
				})
			}
		})
	}
}

// Over HTTP/2 the answers to many requests share a connection: who takes nothing of it must not keep it.
func TestU20_a_client_of_http2_that_takes_nothing_loses_its_connection(t *testing.T) {
	t.Parallel()
	w, closed := keyedWorld(t, server.Config{}).unheard(t, true)
	address := strings.TrimPrefix(w.url, "https://")
	for name, path := range map[string]string{"large answers": "/openapi.json", "small ones": "/healthz", "refusals": "/v1/executions"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plain := (&world{url: "http://" + address}).dial(t)
			if err := plain.(*net.TCPConn).SetReadBuffer(1); err != nil {
				t.Fatal(err)
			}
			conn := tls.Client(plain, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
			if err := conn.HandshakeContext(t.Context()); err != nil {
				t.Fatal(err)
			}
			const settings, headers, windowUpdate = 4, 1, 8
			text := []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
			text = frame(text, settings, 0, 0, binary.BigEndian.AppendUint32([]byte{0, 4}, 1<<31-1)) // streams as wide as can be
			text = frame(text, windowUpdate, 0, 0, binary.BigEndian.AppendUint32(nil, 1<<31-1<<16))  // and the connection
			for stream := uint32(1); ; stream += 2 {
				block := append([]byte{0x82, 0x87, 0x04, byte(len(path))}, path...) // GET, https
				block = append(append(block, 0x01, byte(len(address))), address...)
				const endStream, endHeaders = 1, 4
				text = frame(text, headers, endStream|endHeaders, stream, block)
				if _, err := conn.Write(text); err != nil || stream > 20_000 {
					break // the server has closed it, or will
				}
				text = text[:0]
			}
			closed.await(t, plain)
		})
	}
}

// frame appends a frame of HTTP/2.
func frame(to []byte, kind, flags byte, stream uint32, content []byte) []byte {
	to = append(to, byte(len(content)>>16), byte(len(content)>>8), byte(len(content)), kind, flags)
	return append(binary.BigEndian.AppendUint32(to, stream), content...)
}
