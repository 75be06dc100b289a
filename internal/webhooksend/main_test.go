package webhooksend

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/flowfabric/flowfabric/internal/core/webhook"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// names answers for each name with the next of its lists of addresses; the last one stays.
type names struct {
	mu    sync.Mutex
	lists map[string][][]string
	asked int
}

func (n *names) LookupNetIP(_ context.Context, _, host string) (addrs []netip.Addr, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked++
	lists := n.lists[host]
	if len(lists) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: host, Server: "10.9.8.7:53", IsNotFound: true}
	}
	for _, text := range lists[0] {
		addrs = append(addrs, netip.MustParseAddr(text))
	}
	if len(lists) > 1 {
		n.lists[host] = lists[1:]
	}
	return addrs, nil
}

// wires records what is connected to. It refuses connections unless to is set.
type wires struct {
	mu   sync.Mutex
	seen []string
	to   func(ctx context.Context, address string) (net.Conn, error)
}

func (w *wires) dial(ctx context.Context, _, address string) (net.Conn, error) {
	w.mu.Lock()
	w.seen = append(w.seen, address)
	w.mu.Unlock()
	if w.to == nil {
		return nil, errors.New("dial tcp " + address + ": connection refused")
	}
	return w.to(ctx, address)
}

func (w *wires) connected() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen
}

// opened returns a Sender that the test closes.
func opened(t *testing.T, cfg Config) *Sender {
	t.Helper()
	s := New(cfg)
	t.Cleanup(s.Close)
	return s
}

// receiver is a server on this host, reached as hooks.example, with the Config that reaches it.
func receiver(t *testing.T, handle http.HandlerFunc, change ...func(*httptest.Server)) (*httptest.Server, Config) {
	t.Helper()
	server := httptest.NewUnstartedServer(handle)
	server.Config.ErrorLog = quietLog()
	for _, f := range change {
		f(server)
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	return server, Config{
		Addresses: webhook.Addresses{Ports: []int{portOf(t, server)}, AllowLoopback: true},
		Resolver:  &names{lists: map[string][][]string{host: {{"127.0.0.1"}}}},
		Roots:     roots,
	}
}

// host is a name in the certificate of httptest.
const host = "example.com"

func portOf(t *testing.T, server *httptest.Server) int {
	t.Helper()
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// canary is a server on this host that nothing may connect to.
func canary(t *testing.T) (server *httptest.Server, touched *atomic.Int64) {
	t.Helper()
	touched = new(atomic.Int64)
	server = httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			touched.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	return server, touched
}

// request is an attempt to a URL whose path and query are secret.
func request(origin string) webhook.Request {
	return webhook.Request{
		URL: origin + "/sesame?token=sesame", ID: "0190f0c2-4444-7aaa-8bbb-0123456789ab", Body: []byte(`{"type":"execution.completed"}`),
		Secrets: []webhook.Secret{webhook.NewSecret([]byte("sesame sesame sesame sesame 1234"))}, At: time.Unix(1767225600, 0),
	}
}
