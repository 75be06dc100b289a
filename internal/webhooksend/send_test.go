package webhooksend

import (
	"bytes"
	"crypto/tls"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flowfabric/flowfabric/internal/core/webhook"
)

func quietLog() *log.Logger { return log.New(io.Discard, "", 0) }

// at is the origin of a receiver.
func at(t *testing.T, server *httptest.Server) string {
	t.Helper()
	return "https://" + strings.Replace(server.Listener.Addr().String(), "127.0.0.1", host, 1)
}

func TestE40_a_request_has_the_headers_of_the_standard_and_its_body_is_sent_as_it_was_signed(t *testing.T) {
	t.Parallel()
	type seen struct {
		Method, Path, Body string
		Header             http.Header
	}
	got := make(chan seen, 1)
	server, cfg := receiver(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- seen{r.Method, r.RequestURI, string(body), r.Header}
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, "thanks")
	})
	r := request(at(t, server))
	r.Secrets = append(r.Secrets, webhook.NewSecret(bytes.Repeat([]byte{7}, 32)))
	a := opened(t, cfg).Send(t.Context(), r)
	if a.Status != http.StatusAccepted || a.Err != "" || string(a.Body) != "thanks" || a.Duration <= 0 || webhook.Judge(a).Outcome != webhook.Delivered {
		t.Fatalf("got %+v", a)
	}
	want := seen{"POST", "/sesame?token=sesame", string(r.Body), http.Header{
		"Content-Type": {"application/json"}, "Content-Length": {"30"}, "User-Agent": {"FlowFabric-Webhooks"},
		"Webhook-Id": {r.ID}, "Webhook-Timestamp": {"1767225600"}, "Webhook-Signature": {webhook.Sign(r.Secrets, r.ID, r.At, r.Body)},
	}}
	if diff := cmp.Diff(want, <-got); diff != "" {
		t.Error(diff)
	}
}

func TestE43_answers_are_passed_on_with_status_retry_after_and_the_first_1024_bytes(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", webhook.MaxAnswer+500)
	for _, c := range []struct {
		status int
		header string
		want   time.Duration
	}{
		{204, "", 0}, {400, "", 0}, {410, "", 0}, {429, "90", 90 * time.Second}, {503, "Wed, 31 Dec 9999 23:59:59 GMT", 24 * time.Hour}, {502, "x", 0},
	} {
		server, cfg := receiver(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", c.header)
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, long)
		})
		a := opened(t, cfg).Send(t.Context(), request(at(t, server)))
		body := long[:webhook.MaxAnswer]
		if c.status == 204 {
			body = ""
		}
		if a.Status != c.status || a.RetryAfter != c.want || string(a.Body) != body || a.Err != "" {
			t.Errorf("%d: got %d, %s, %d bytes, %q", c.status, a.Status, a.RetryAfter, len(a.Body), a.Err)
		}
	}
}

func TestE43_redirects_are_not_followed(t *testing.T) {
	t.Parallel()
	inside, touched := canary(t)
	for _, status := range []int{300, 301, 302, 303, 307, 308} {
		server, cfg := receiver(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", inside.URL+"/admin")
			w.Header().Set("Refresh", "0; url="+inside.URL)
			w.WriteHeader(status)
		})
		a := opened(t, cfg).Send(t.Context(), request(at(t, server)))
		if a.Status != status || a.Err != "" || webhook.Judge(a).Outcome != webhook.Again {
			t.Errorf("%d: got %+v", status, a)
		}
	}
	if n := touched.Load(); n != 0 {
		t.Errorf("%d connections to where the redirects lead", n)
	}
}

func TestE45_no_cookies_no_proxy_and_no_compression(t *testing.T) {
	t.Parallel()
	var requests, odd atomic.Int64
	server, cfg := receiver(t, func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		for _, name := range []string{"Cookie", "Accept-Encoding", "Referer", "Authorization"} {
			if r.Header.Get(name) != "" {
				odd.Add(1)
			}
		}
		http.SetCookie(w, &http.Cookie{Name: "session", Value: "1", Path: "/"})
	})
	s := opened(t, cfg)
	for range 2 {
		s.Send(t.Context(), request(at(t, server)))
	}
	if s.transport.Proxy != nil {
		t.Error("a proxy is asked for")
	}
	if requests.Load() != 2 || odd.Load() != 0 {
		t.Errorf("%d requests, %d headers of a browser", requests.Load(), odd.Load())
	}
}

func TestE45_certificates_are_verified(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	handle := func(http.ResponseWriter, *http.Request) { requests.Add(1) }
	server, good := receiver(t, handle)
	unknown := good
	unknown.Roots = nil
	old, forOld := receiver(t, handle, func(s *httptest.Server) {
		s.TLS = &tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}
	})
	other := good
	other.Resolver = &names{lists: map[string][][]string{"other.test": {{"127.0.0.1"}}}}
	for _, c := range []struct {
		why  string
		cfg  Config
		url  string
		want string
	}{
		{"an unknown issuer", unknown, at(t, server), webhook.ErrTLS + ": x509: "},
		{"another name", other, strings.Replace(at(t, server), host, "other.test", 1), webhook.ErrTLS + ": x509: "},
		{"TLS 1.1", forOld, at(t, old), webhook.ErrTLS},
	} {
		a := opened(t, c.cfg).Send(t.Context(), request(c.url))
		if !strings.HasPrefix(a.Err, c.want) || a.Status != 0 {
			t.Errorf("%s: got %+v", c.why, a)
		}
	}
	plain := httptest.NewServer(http.HandlerFunc(handle))
	t.Cleanup(plain.Close)
	cfg := good
	cfg.Addresses.Ports = append(cfg.Addresses.Ports, portOf(t, plain))
	if a := opened(t, cfg).Send(t.Context(), request(at(t, plain))); a.Err != webhook.ErrTLS {
		t.Errorf("no TLS: got %+v", a)
	}
	if n := requests.Load(); n != 0 {
		t.Errorf("%d requests were sent to receivers that were not authenticated", n)
	}
}

func TestE40_http2_is_spoken_with_receivers_that_do(t *testing.T) {
	t.Parallel()
	proto := make(chan string, 2)
	server, cfg := receiver(t, func(_ http.ResponseWriter, r *http.Request) { proto <- r.Proto }, func(s *httptest.Server) { s.EnableHTTP2 = true })
	s := opened(t, cfg)
	for range 2 {
		if a := s.Send(t.Context(), request(at(t, server))); a.Status != 200 || a.Err != "" {
			t.Fatalf("got %+v", a)
		}
		if got := <-proto; got != "HTTP/2.0" {
			t.Errorf("got %s", got)
		}
	}
}

func TestEI12_errors_show_neither_urls_nor_secrets_nor_addresses(t *testing.T) {
	t.Parallel()
	server, cfg := receiver(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	closed := cfg
	closed.Dial = (&wires{}).dial
	origin := at(t, server)
	for _, c := range []struct {
		cfg  Config
		url  string
		want string
	}{
		{cfg, origin, webhook.ErrAnswer},
		{closed, origin, webhook.ErrConnect},
		{cfg, strings.Replace(origin, host, "nowhere.test", 1), webhook.ErrNameNotFound},
		{cfg, "https://user:sesame@" + host, webhook.ErrURLRefused},
		{cfg, "http://" + host, webhook.ErrURLRefused},
		{cfg, "https://" + host + ":22", webhook.ErrURLRefused},
		{cfg, "https://10.1.2.3", webhook.ErrAddressRefused},
		{cfg, "https://2130706433", webhook.ErrURLRefused},
	} {
		if a := opened(t, c.cfg).Send(t.Context(), request(c.url)); a.Err != c.want {
			t.Errorf("%s: got %q, want %q", c.url, a.Err, c.want)
		}
	}
}
