package server_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// dial opens a bare connection to the server of a world.
func (w *world) dial(t *testing.T) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{Timeout: patience}).DialContext(t.Context(), "tcp", strings.TrimPrefix(w.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return conn
}

func TestU114_a_probe_that_ends_its_side_of_the_connection_is_told_the_truth(t *testing.T) {
	t.Parallel()
	w := openWorld(t)
	for range 50 { // now and then the end is seen before the store is asked
		conn := w.dial(t)
		if _, err := io.WriteString(conn, "GET /readyz HTTP/1.1\r\nHost: "+conn.RemoteAddr().String()+"\r\nConnection: close\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if status, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(status, " 200 ") {
			t.Fatalf("%q, %v", status, err)
		}
	}
}

func TestU11_what_is_no_request_is_refused_by_a_problem(t *testing.T) {
	t.Parallel()
	w := openWorld(t)
	for name, c := range map[string]struct {
		sent   string
		status int
		code   string
	}{
		"no HTTP at all":          {"hello\r\n\r\n", 400, "invalid_argument"},
		"a version of the future": {"GET /healthz HTTP/9.9\r\nHost: localhost\r\n\r\n", 400, "invalid_argument"},
		"no host":                 {"GET /healthz HTTP/1.1\r\n\r\n", 400, "invalid_argument"},
		"two hosts":               {"GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400, "invalid_argument"},
		"a host with blanks":      {"GET /healthz HTTP/1.1\r\nHost: a b\r\n\r\n", 400, "invalid_argument"},
		"a header without a name": {"GET /healthz HTTP/1.1\r\nHost: localhost\r\n: x\r\n\r\n", 400, "invalid_argument"},
		"no route but the server": {"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n", 404, "route_not_found"},
		"a strange encoding":      {"POST /v1/executions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: rot13\r\n\r\n", 501, "not_implemented"},
		"a strange expectation":   {"POST /v1/executions HTTP/1.1\r\nHost: localhost\r\nExpect: miracles\r\nContent-Length: 0\r\n\r\n", 400, "invalid_argument"},
		"a head without end":      {"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Large: " + strings.Repeat("x", 200<<10), 413, "payload_too_large"},
		"chunks that are none": {
			"POST /v1/executions HTTP/1.1\r\nHost: localhost:" + w.url[strings.LastIndex(w.url, ":")+1:] +
				"\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n", 400, "invalid_json",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w.sendText(t, c.sent).refuses(t, c.status, c.code)
		})
	}
}

// sendText sends what may be no request, and reads the answer.
func (w *world) sendText(t *testing.T, text string) reply {
	t.Helper()
	conn := w.dial(t)
	go func() { _, _ = io.WriteString(conn, text) }() // the server may stop reading before it has all
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	answer := reply{response.StatusCode, response.Header, body}
	conforms(t, "GET", "/healthz", answer)
	return answer
}

func TestU11_plain_http_to_a_listener_with_tls_is_refused_by_a_problem(t *testing.T) {
	t.Parallel()
	w := openWorld(t)
	listener := httptest.NewUnstartedServer(nil)
	listener.Config, listener.Listener = w.server.HTTPServer(), w.server.Listener(listener.Listener)
	listener.StartTLS()
	t.Cleanup(listener.Close)
	plain := &world{url: strings.Replace(listener.URL, "https:", "http:", 1)}
	answer := plain.sendText(t, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").refuses(t, 400, "invalid_argument")
	if !strings.Contains(answer.text(t, "hint"), "https://") {
		t.Errorf("%s", answer.body)
	}
}

// slowWorld is a world whose server has no patience.
func slowWorld(t *testing.T, impatient func(*http.Server)) *world {
	t.Helper()
	return openWorld(t).slow(t, impatient)
}

// slow serves a world again, without patience.
func (w *world) slow(t *testing.T, impatient func(*http.Server)) *world {
	t.Helper()
	config := w.server.HTTPServer()
	if config.ReadHeaderTimeout <= 0 || config.ReadTimeout <= 0 || config.IdleTimeout <= 0 || config.MaxHeaderBytes <= 0 {
		t.Errorf("a bound is missing: %+v", config)
	}
	impatient(config)
	listener := httptest.NewUnstartedServer(config.Handler)
	listener.Config, listener.Listener = config, w.server.Listener(listener.Listener)
	listener.Start()
	t.Cleanup(listener.Close)
	return &world{Client: w.Client, server: w.server, url: listener.URL, http: w.http, log: w.log}
}

// ends waits until the server has closed the connection.
func ends(t *testing.T, conn net.Conn) string {
	t.Helper()
	rest, err := io.ReadAll(conn)
	var late net.Error
	if errors.As(err, &late) && late.Timeout() {
		t.Fatal("the server keeps the connection")
	}
	return string(rest)
}

func TestU20_clients_that_are_too_slow_lose_their_connection(t *testing.T) {
	t.Parallel()
	const soon = 50 * time.Millisecond
	const head = "POST /v1/executions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n"
	for name, c := range map[string]struct {
		impatient func(*http.Server)
		sent      string
	}{
		"in the middle of a head": {func(s *http.Server) { s.ReadHeaderTimeout = soon }, head},
		"in the middle of a body": {func(s *http.Server) { s.ReadTimeout = soon }, head + "\r\n{"},
		"between two requests":    {func(s *http.Server) { s.IdleTimeout = soon }, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := slowWorld(t, c.impatient).dial(t)
			if _, err := io.WriteString(conn, c.sent); err != nil {
				t.Fatal(err)
			}
			ends(t, conn)
		})
	}
}
