package tracing

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// one is a batch of one span.
func one() []sdktrace.ReadOnlySpan { return tracetest.SpanStubs{{Name: "one"}}.Snapshots() }

// sending is a sender to a collector that answers by a function.
func sending(t *testing.T, variables map[string]string, answer http.HandlerFunc) *sender {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return sendingTo(t, server.URL, variables)
}

func sendingTo(t *testing.T, url string, variables map[string]string) *sender {
	t.Helper()
	environment := in(variables)
	how := environment.read()
	if len(environment.problems) > 0 {
		t.Fatal(environment.problems)
	}
	s := newSender(url+"/v1/traces", "v9", how)
	t.Cleanup(func() { _ = s.Shutdown(context.Background()) })
	return s
}

// fails wants an error that says so.
func fails(t *testing.T, err error, with string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), with) {
		t.Errorf("the error is %v, not %s", err, with)
	}
}

func TestU216_headers_go_with_the_spans(t *testing.T) {
	t.Parallel()
	var got http.Header
	variables := map[string]string{"HEADERS": "authorization=Bearer%20x,content-type=text/plain"}
	s := sending(t, variables, func(_ http.ResponseWriter, r *http.Request) { got = r.Header })
	if err := s.ExportSpans(t.Context(), one()); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"Authorization": "Bearer x", "Content-Type": "application/x-protobuf", "User-Agent": "flowfabric/v9", "Content-Encoding": ""}
	for name, value := range want {
		if got.Get(name) != value {
			t.Errorf("%s is %q", name, got.Get(name))
		}
	}
}

func TestU216_spans_are_compressed_if_that_is_wanted(t *testing.T) {
	t.Parallel()
	var name string
	s := sending(t, map[string]string{"COMPRESSION": "gzip"}, func(_ http.ResponseWriter, r *http.Request) {
		packed, err := gzip.NewReader(r.Body)
		if err != nil || r.Header.Get("Content-Encoding") != "gzip" {
			t.Error(err, r.Header)
			return
		}
		body, err := io.ReadAll(packed)
		var data otlp.TracesData
		if err := errors.Join(err, proto.Unmarshal(body, &data)); err != nil {
			t.Error(err)
			return
		}
		name = data.GetResourceSpans()[0].GetScopeSpans()[0].GetSpans()[0].GetName()
	})
	if err := s.ExportSpans(t.Context(), one()); err != nil || name != "one" {
		t.Errorf("%q: %v", name, err)
	}
}

func TestU216_nothing_is_no_request(t *testing.T) {
	t.Parallel()
	s := sending(t, nil, func(http.ResponseWriter, *http.Request) { t.Error("a request") })
	if err := s.ExportSpans(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

func TestU216_what_a_collector_answers(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		status     int
		kind, body string
		want       string // "": no error
	}{
		"took all":                 {200, protobuf, "", ""},
		"took all, in other words": {200, "application/json", "{}", ""},
		"took all, with advice":    {200, protobuf, "\x0a\x06\x12\x04slow", ""},
		"took some":                {200, protobuf, "\x0a\x08\x08\x01\x12\x04full", "the collector rejected 1 of 1 spans: full"},
		"took some, and more":      {202, protobuf + "; v=1", "\x19abcdefgh\x0a\x08\x12\x04full\x08\x01", "rejected 1 of 1 spans: full"},
		"no protobuf":              {200, protobuf, "\x0a\xff", "the collector's answer cannot be read"},
		"no protobuf within":       {200, protobuf, "\x0a\x01\x08", "the collector's answer cannot be read"},
		"too much":                 {200, protobuf, strings.Repeat("x", maxAnswer+1), "the collector's answer is longer than 4194304 bytes"},
		"refused":                  {400, "text/plain", " no spans\n", "the collector answered 400 Bad Request: no spans"},
		"refused without a word":   {401, "text/plain", "", "the collector answered 401 Unauthorized"},
		"refused at length":        {413, "text/plain", strings.Repeat("é", maxAnswer), "413 Request Entity Too Large: é"},
		"refused by a status":      {400, protobuf, "\x08\x03\x12\x08no trace", "the collector answered 400 Bad Request: no trace"},
		"broken":                   {500, "text/plain", "", "the collector answered 500 Internal Server Error"},
	}
	for name, c := range cases {
		tries := 0
		s := sending(t, nil, func(w http.ResponseWriter, _ *http.Request) {
			tries++
			w.Header().Set("Content-Type", c.kind)
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.body)
		})
		err := s.ExportSpans(t.Context(), one())
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 2*maxReason) {
			t.Errorf("%s: %v", name, err)
		}
		if tries != 1 {
			t.Errorf("%s: %d tries", name, tries)
		}
	}
}

func TestU216_a_collector_that_is_not_there_is_not_tried_again(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(nil)
	gone.Close()
	fails(t, sendingTo(t, gone.URL, nil).ExportSpans(t.Context(), one()), "refused")
}

func TestU216_redirects_go_to_the_same_host_only(t *testing.T) {
	t.Parallel()
	got := make(chan string, 8)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { got <- "elsewhere" }))
	t.Cleanup(elsewhere.Close)
	cases := map[string]struct {
		status int
		to     string
		want   string // "": followed
	}{
		"moved here":            {http.StatusPermanentRedirect, "/moved", ""},
		"moved away":            {http.StatusTemporaryRedirect, strings.Replace(elsewhere.URL, "127.0.0.1", "localhost", 1), "307 Temporary Redirect"},
		"a GET would be empty":  {http.StatusFound, "/moved", "302 Found"},
		"round and round again": {http.StatusTemporaryRedirect, "/v1/traces", "307 Temporary Redirect"},
	}
	for name, c := range cases {
		s := sending(t, nil, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v1/traces" {
				http.Redirect(w, r, c.to, c.status)
				return
			}
			body, err := io.ReadAll(r.Body)
			got <- r.Method
			if err := errors.Join(err, proto.Unmarshal(body, &otlp.TracesData{})); err != nil || len(body) == 0 {
				t.Error(name, len(body), err)
			}
		})
		err := s.ExportSpans(t.Context(), one())
		if c.want != "" {
			fails(t, err, c.want)
			continue
		}
		if method := <-got; err != nil || method != http.MethodPost {
			t.Error(name, method, err)
		}
	}
	if len(got) > 0 {
		t.Error("followed to", <-got)
	}
	secure, open := httptest.NewRequest(http.MethodPost, "https://a/", nil), httptest.NewRequest(http.MethodPost, "http://a/", nil)
	if err := mayFollow(open, []*http.Request{secure}); !errors.Is(err, http.ErrUseLastResponse) {
		t.Error("out of TLS:", err)
	}
	if err := mayFollow(secure, []*http.Request{open}); err != nil {
		t.Error("into TLS:", err)
	}
}

func TestU216_certificates_of_both_sides(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.TLS.PeerCertificates) > 0 {
			w.Header().Set("Content-Type", protobuf)
			_, _ = io.WriteString(w, "\x0a\x09\x08\x01\x12\x05known")
		}
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.StartTLS()
	t.Cleanup(server.Close)
	authority := filepath.Join(t.TempDir(), "ca.pem")
	writePEM(t, authority, "CERTIFICATE", server.Certificate().Raw)
	cert, key := pair(t)

	fails(t, sendingTo(t, server.URL, nil).ExportSpans(t.Context(), one()), "certificate")
	if err := sendingTo(t, server.URL, map[string]string{"CERTIFICATE": authority}).ExportSpans(t.Context(), one()); err != nil {
		t.Error(err)
	}
	both := map[string]string{"CERTIFICATE": "missing", "TRACES_CERTIFICATE": authority, "CLIENT_CERTIFICATE": cert, "CLIENT_KEY": key}
	fails(t, sendingTo(t, server.URL, both).ExportSpans(t.Context(), one()), "known")

	var log bytes.Buffer
	e, err := Start(t.Context(), Config{
		Endpoint: "http://collector", Lookup: in(map[string]string{"CERTIFICATE": authority}).lookup, Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if e != nil || err != nil || !strings.Contains(log.String(), "certificates are set, and the collector is not an https:// URL") {
		t.Errorf("%v, %v: %s", e, err, log.String())
	}
}

// pair is a certificate with its key.
func pair(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	writePEM(t, cert, "CERTIFICATE", signed)
	writePEM(t, key, "PRIVATE KEY", secret)
	return cert, key
}

func writePEM(t *testing.T, path, kind string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), 0o600); err != nil {
		t.Fatal(err)
	}
}
