package server_test

import (
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flowfabric/flowfabric/internal/server"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// What clients of HTTP/2 send that tests write by hand.
const (
	preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

	dataFrame, headersFrame, priorityFrame, settingsFrame, pingFrame, windowFrame, continuationFrame = 0, 1, 2, 4, 6, 8, 9
	resetFrame                                                                                       = 3
	endStream, endHeaders                                                                            = 1, 4
	frameSize                                                                                        = 16 << 10
)

// slowSecurely serves a world again over HTTP/2, with other bounds of time.
func (w *world) slowSecurely(t *testing.T, impatient func(*http.Server)) *world {
	t.Helper()
	return w.servedSecurely(t, &metered{}, impatient)
}

// servedSecurely is slowSecurely with a count of what the server reads.
func (w *world) servedSecurely(t *testing.T, meter *metered, impatient func(*http.Server)) *world {
	t.Helper()
	listener := httptest.NewUnstartedServer(nil)
	meter.Listener = listener.Listener
	listener.Config, listener.Listener, listener.EnableHTTP2 = w.server.HTTPServer(), w.server.Listener(meter), true
	impatient(listener.Config)
	listener.StartTLS()
	t.Cleanup(listener.Close)
	return &world{Client: w.Client, server: w.server, url: listener.URL, http: w.http, log: w.log}
}

// dialSecurely opens a connection on which frames of HTTP/2 come next.
func (w *world) dialSecurely(t *testing.T) net.Conn {
	t.Helper()
	conn := tls.Client((&world{url: "http://" + w.secureHost()}).dial(t), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err := conn.HandshakeContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	return conn
}

func (w *world) secureHost() string { return strings.TrimPrefix(w.url, "https://") }

// headBlock is the head of a request, in HPACK without compression.
func (w *world) headBlock(method, path string, fields ...string) []byte {
	block := []byte{0x87} // https
	fields = append([]string{":method", method, ":path", path, ":authority", w.secureHost()}, fields...)
	for i, text := range fields {
		if i%2 == 0 {
			block = append(block, 0) // a name and a value follow
		}
		if len(text) < 127 {
			block = append(block, byte(len(text)))
		} else {
			block = binary.AppendUvarint(append(block, 127), uint64(len(text)-127))
		}
		block = append(block, text...)
	}
	return block
}

// opened is how a connection of HTTP/2 begins; the answers to its requests have room for as many bytes.
func opened(window uint32) []byte {
	return frame([]byte(preface), settingsFrame, 0, 0, binary.BigEndian.AppendUint32([]byte{0, 4}, window))
}

// A client that begins a head, or a connection, and does not come to its end must not keep the connection, whatever else it sends (U20).
func TestU20_a_head_of_http2_that_does_not_end_ends_its_connection(t *testing.T) {
	t.Parallel()
	begun := frame(opened(1<<16), settingsFrame, 1, 0, nil)
	for name, c := range map[string]struct {
		sent  []byte
		again []byte // sent on and on
	}{
		"half of the preface":       {sent: []byte(preface[:10])},
		"no settings":               {sent: []byte(preface)},
		"half of a frame":           {sent: append(begun, 0, 0x40, 0, headersFrame, 0, 0, 0, 0, 1, 'x')},
		"bytes of a frame":          {sent: append(begun, 0, 0x40, 0, headersFrame, 0, 0, 0, 0, 1), again: []byte{0x40}},
		"a head without an end":     {sent: frame(begun, headersFrame, endStream, 1, nil)},
		"a head that goes on":       {sent: frame(begun, headersFrame, endStream, 1, nil), again: frame(nil, continuationFrame, 0, 1, nil)},
		"a head that grows":         {sent: frame(begun, headersFrame, endStream, 1, nil), again: frame(nil, continuationFrame, 0, 1, []byte{0, 1, 'x', 0})},
		"no head":                   {sent: begun},
		"no head but pings":         {sent: begun, again: frame(nil, pingFrame, 0, 0, make([]byte, 8))},
		"no head but settings":      {sent: begun, again: frame(nil, settingsFrame, 0, 0, nil)},
		"no head but priorities":    {sent: begun, again: frame(nil, priorityFrame, 0, 1, make([]byte, 5))},
		"no head but more room":     {sent: begun, again: frame(nil, windowFrame, 0, 0, []byte{0, 0, 0, 1})},
		"no head but what is new":   {sent: begun, again: frame(nil, 0x77, 0, 0, nil)},
		"no head after an exchange": {sent: nil, again: nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := keyedWorld(t, server.Config{}).slowSecurely(t, func(s *http.Server) { s.IdleTimeout = 200 * time.Millisecond })
			conn := w.dialSecurely(t)
			if name == "no head after an exchange" {
				c.sent = frame(begun, headersFrame, endStream|endHeaders, 1, w.headBlock("GET", "/healthz"))
			}
			if _, err := conn.Write(c.sent); err != nil {
				t.Fatal(err)
			}
			if c.again != nil {
				go func() {
					for {
						if _, err := conn.Write(c.again); err != nil {
							return
						}
					}
				}()
			}
			ends(t, conn)
		})
	}
}

// metered counts what a server reads.
type metered struct {
	net.Listener
	bytes atomic.Int64
}

type meteredConn struct {
	net.Conn
	of *metered
}

func (m *metered) Accept() (net.Conn, error) {
	conn, err := m.Listener.Accept()
	return meteredConn{conn, m}, err
}

func (c meteredConn) Read(into []byte) (int, error) {
	n, err := c.Conn.Read(into)
	c.of.bytes.Add(int64(n))
	return n, err
}

// A head that goes on and on ends by its size too, long before its time is over: memory that a connection holds has a bound (U20).
func TestU20_a_head_of_http2_that_grows_ends_its_connection_by_its_size(t *testing.T) {
	t.Parallel()
	const most = 1 << 20 // bytes that the server reads; a head has at most 64 KiB
	long := strings.Repeat("x", frameSize-8)
	for name, field := range map[string]string{
		"of short fields": "\x00\x01x\x00",
		"of long fields":  "\x00\x01x\x7f" + string(binary.AppendUvarint(nil, uint64(len(long)-127))) + long,
		"of one field":    long, // behind the announcement of its length
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			meter := &metered{}
			w := keyedWorld(t, server.Config{}).servedSecurely(t, meter, func(s *http.Server) { s.IdleTimeout = time.Hour })
			conn := w.dialSecurely(t)
			first := []byte(nil)
			if name == "of one field" {
				first = binary.AppendUvarint([]byte{0, 1, 'x', 0x7f}, 1<<30)
			}
			text := frame(frame(opened(1<<16), settingsFrame, 1, 0, nil), headersFrame, endStream, 1, first)
			if _, err := conn.Write(text); err != nil {
				t.Fatal(err)
			}
			go func() {
				more := frame(nil, continuationFrame, 0, 1, []byte(field))
				for {
					if _, err := conn.Write(more); err != nil {
						return
					}
				}
			}()
			ends(t, conn)
			if read := meter.bytes.Load(); read > most {
				t.Errorf("the server has read %d bytes of a head", read)
			}
		})
	}
}

// The answers of HTTP/2 need room that the client gives: one that gives none must not keep a stream, whatever it asks for.
func TestU20_a_client_of_http2_that_gives_no_room_for_answers_loses_its_streams_on_every_route(t *testing.T) {
	t.Parallel()
	for caller, made := range credentials {
		t.Run(caller, func(t *testing.T) {
			t.Parallel()
			inner, key := made(t)
			inner.server.SetStreamStallLimit(50 * time.Millisecond)                                // the connection must last, however long this client is kept from reading
			w := inner.slowSecurely(t, func(s *http.Server) { s.WriteTimeout = 10 * time.Second }) // the time for what net/http answers itself
			var fields []string
			if key != "" {
				fields = []string{"authorization", "Bearer " + key}
			}
			names := []string{"too many headers", "a forbidden head", "no such route"}
			heads := [][]byte{
				w.headBlock("GET", "/healthz", slices.Repeat([]string{"x", ""}, 2200)...), // refused by net/http itself, as is the next
				w.headBlock("GET", "/healthz", "connection", "close"),
				w.headBlock("GET", "/nowhere", fields...),
			}
			for _, o := range wire.Operations() {
				if o.ID != wire.DrainServer.ID { // the others are served on
					names = append(names, o.ID)
					heads = append(heads, w.headBlock(o.Method, somePath(o, "0198f0a0-0000-7000-8000-000000000000"), append([]string{"content-type", "application/json"}, fields...)...))
				}
			}
			conn := w.dialSecurely(t)
			text := frame(opened(0), settingsFrame, 1, 0, nil)
			open := map[uint32]string{} // streams
			for i, head := range heads {
				stream := uint32(2*i + 1)
				open[stream] = names[i]
				kind, flags := byte(headersFrame), byte(0)
				for ; len(head) > frameSize; head, kind = head[frameSize:], continuationFrame {
					text = frame(text, kind, flags, stream, head[:frameSize])
				}
				text = frame(frame(text, kind, endHeaders, stream, head), dataFrame, endStream, stream, []byte("{}"))
			}
			go func() { _, _ = conn.Write(text) }() // what does not come is seen below
			for len(open) > 0 {
				kind, flags, stream, err := readFrame(conn)
				if err != nil {
					t.Fatalf("%v; the server keeps the streams of %v", err, open)
				}
				if kind == resetFrame || kind <= headersFrame && flags&endStream != 0 {
					delete(open, stream)
				}
			}
		})
	}
}

// readFrame reads a frame of HTTP/2.
func readFrame(from io.Reader) (kind, flags byte, stream uint32, err error) {
	var head [9]byte
	if _, err := io.ReadFull(from, head[:]); err != nil {
		return 0, 0, 0, err
	}
	_, err = io.CopyN(io.Discard, from, int64(head[0])<<16|int64(head[1])<<8|int64(head[2]))
	return head[3], head[4], binary.BigEndian.Uint32(head[5:]), err
}

// timed is a way to a client that notes its deadlines.
type timed struct {
	*httptest.ResponseRecorder
	set []time.Time
}

func (w *timed) SetWriteDeadline(at time.Time) error {
	w.set = append(w.set, at)
	return nil
}

// The time for what net/http answers itself is not that of a call: it may wait. What is left of its answer when it has returned has a bound.
func TestU18_U20_a_call_has_no_deadline_until_it_has_returned(t *testing.T) {
	t.Parallel()
	w := openWorld(t)
	for version, want := range map[int]int{1: 1, 2: 2} {
		r := httptest.NewRequest(http.MethodGet, "/healthz", nil)
		r.ProtoMajor = version
		answer := &timed{ResponseRecorder: httptest.NewRecorder()}
		config := w.server.HTTPServer()
		config.Handler.ServeHTTP(answer, r)
		if config.WriteTimeout <= 0 || len(answer.set) != want || !answer.set[0].IsZero() || answer.set[want-1].IsZero() != (version == 1) {
			t.Errorf("HTTP/%d: %v, then %v", version, config.WriteTimeout, answer.set)
		}
	}
}

// A stream of HTTP/2 has no deadlines any more when its handler has returned: setting one then ends the process.
func TestU20_a_clock_that_has_ended_sets_no_deadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(*testing.T) {
		for range 1000 {
			returned := false
			moved := server.Stalled(time.Second, func(time.Time) error {
				if returned {
					t.Error("a deadline is set after the handler has returned")
				}
				return nil
			})
			time.Sleep(time.Second) // the clock goes off together with this
			moved()
			returned = true
			synctest.Wait()
		}
	})
}
