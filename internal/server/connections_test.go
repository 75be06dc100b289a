package server_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/server"
)

// hello asks for something on a connection and stays.
func hello(t *testing.T, conn net.Conn) *http.Response {
	t.Helper()
	go func() { _, _ = io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n") }() // the server may have closed it
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

func TestU20_one_address_has_a_bound_of_connections(t *testing.T) {
	t.Parallel()
	w := keyedWorld(t, server.Config{MaxConnectionsPerAddress: 3})
	var open []net.Conn
	for range 3 {
		conn := w.dial(t)
		if status := hello(t, conn).StatusCode; status != 200 {
			t.Fatalf("status %d", status)
		}
		open = append(open, conn)
	}
	refused := w.dial(t)
	answer, _ := io.ReadAll(refused) // what is sent meanwhile may cut it off
	if text := string(answer); !strings.HasPrefix(text, "HTTP/1.1 503 ") || !strings.Contains(text, `"code":"overloaded"`) || !strings.Contains(text, "Connection: close") {
		t.Errorf("%q", text)
	}
	if !strings.Contains(w.log.String(), "max-connections-per-address") {
		t.Errorf("nothing is logged: %s", w.log)
	}
	if err := open[0].Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the place of a connection that was closed is free", func() bool {
		conn := w.dial(t)
		defer conn.Close()
		go func() { _, _ = io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n") }()
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		return err == nil && response.StatusCode == http.StatusOK && response.Body.Close() == nil
	})
}

func TestU20_U196_connections_for_metrics_count_and_end_as_all_others(t *testing.T) {
	t.Parallel()
	inner := keyedWorld(t, server.Config{MaxConnectionsPerAddress: 3})
	for _, open := range []bool{true, false} {
		served := inner.server.MetricsServer(open)
		served.ReadHeaderTimeout, served.IdleTimeout = 50*time.Millisecond, 50*time.Millisecond
		listener := httptest.NewUnstartedServer(nil)
		listener.Config, listener.Listener = served, inner.server.Listener(listener.Listener)
		listener.Start()
		t.Cleanup(listener.Close)
		w := &world{Client: inner.Client, server: inner.server, url: listener.URL, http: inner.http, log: inner.log}
		var held []net.Conn
		for range 3 {
			held = append(held, inner.dial(t))
			hello(t, held[len(held)-1])
		}
		if answer, _ := io.ReadAll(w.dial(t)); !strings.HasPrefix(string(answer), "HTTP/1.1 503 ") {
			t.Errorf("%q", answer)
		}
		for _, conn := range held {
			_ = conn.Close()
		}
		eventually(t, "the places are free", func() bool {
			conn := w.dial(t)
			defer conn.Close()
			go func() { _, _ = io.WriteString(conn, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n") }()
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			return err == nil && response.StatusCode != http.StatusServiceUnavailable && response.Body.Close() == nil
		})
		silent := w.dial(t)
		if _, err := io.WriteString(silent, "GET /metrics HTTP/1.1\r\nHost: localhost\r\nX-Lo"); err != nil {
			t.Fatal(err)
		}
		ends(t, silent)
	}
}

func TestU20_trusted_proxies_have_any_number_of_connections(t *testing.T) {
	t.Parallel()
	w := keyedWorld(t, server.Config{MaxConnectionsPerAddress: 1, TrustedProxies: []string{"127.0.0.0/8", "::1/128"}})
	for range 5 {
		if status := hello(t, w.dial(t)).StatusCode; status != 200 {
			t.Fatalf("status %d", status)
		}
	}
}
