// Package httptransport performs operations at a server: it sends them, repeats those of unknown outcome under one key, and
// combines the commands of many callers into batches.
package httptransport

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/backoff"
	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/transport"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// Config configures a transport. The caller has checked addresses and credentials.
type Config struct {
	Servers   []string // their addresses, without the slash at the end; at least one
	APIKey    string
	Namespace string          // of the calls; "": the one of the API key
	HTTP      *http.Client    // nil: one of the transport's own, which follows no redirects
	RootCAs   *x509.CertPool  // of the transport's own http.Client; nil: those of the system
	Tracer    api.Tracer      // nil: no spans
	Retry     api.RetryPolicy // how calls are repeated that the server could not serve
	Clock     clock.Clock
}

// Transport performs operations at a server. Make it with New.
type Transport struct {
	cfg    Config
	clock  clock.Clock
	http   *http.Client
	hosts  *hosts
	batch  *batcher[api.WorkAnswer]
	submit *batcher[api.SubmitResult]
	kept   kept

	buffers sync.Pool // *bytes.Buffer, for answers
	items   sync.Pool // *wire.WorkItem, to be written

	mu      sync.Mutex
	closed  bool
	calls   sync.WaitGroup
	watches sync.WaitGroup  // of hosts
	waiting context.Context //nolint:containedctx // ends when Close begins: calls that wait end at once
	stop    context.CancelFunc
	life    context.Context //nolint:containedctx // ends when Close gives up waiting for the others
	end     context.CancelFunc
}

// New returns a transport to one server, or to several of one installation. It makes no request.
func New(cfg Config) *Transport {
	t := &Transport{cfg: cfg, clock: cfg.Clock, http: cfg.HTTP, hosts: newHosts(cfg.Servers)}
	t.buffers.New = func() any { return new(bytes.Buffer) }
	t.items.New = func() any { return new(wire.WorkItem) }
	if t.http == nil {
		t.http = newHTTP(cfg.RootCAs)
	}
	t.life, t.end = context.WithCancel(context.Background())
	t.waiting, t.stop = context.WithCancel(t.life)
	t.batch = &batcher[api.WorkAnswer]{send: t.sendWork, bytes: maxBatchBytes, most: maxWorkFlights, failure: func(err error) api.WorkAnswer { return api.WorkAnswer{Err: err} }}
	t.submit = &batcher[api.SubmitResult]{send: t.sendSubmits, bytes: maxSubmitBytes, most: maxSubmitFlights, failure: func(err error) api.SubmitResult { return api.SubmitResult{Err: err} }}
	return t
}

// Connection returns the transport with what a client needs besides it.
func (t *Transport) Connection() transport.Connection {
	return transport.Connection{Transport: t, Clock: t.clock, Close: t.Close, Tracer: t.cfg.Tracer, Brief: true}
}

// Namespace returns the namespace of calls that do not name another; "": the one of the API key.
func (t *Transport) Namespace() string { return t.cfg.Namespace }

// kept is a value that exists as long as the transport.
type kept struct {
	once  sync.Once
	value any
}

// Keep returns the value that make returned when Keep was first called. The packages of the stores keep their state about the
// server here.
func (t *Transport) Keep(make func() any) any {
	t.kept.once.Do(func() { t.kept.value = make() })
	return t.kept.value
}

// Bounds of the connections of the transport's own http.Client.
const (
	idleConnections = 64
	idleTime        = 90 * time.Second
)

// newHTTP returns an http.Client that keeps connections and returns a redirect as the answer: following it would lose the body of
// a command.
func newHTTP(roots *x509.CertPool) *http.Client {
	own := &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true,
		MaxIdleConns: idleConnections, MaxIdleConnsPerHost: idleConnections, IdleConnTimeout: idleTime,
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
	}
	return &http.Client{
		Transport:     own,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// refuse makes an error of that code; %w keeps the cause.
func refuse(code base.Code, format string, args ...any) *api.Error {
	return api.Errorf(string(code), format, args...)
}

// restTry sets how long rest pauses: half a second or less.
const restTry = 2

// rest pauses after a call that was to wait and found nothing. A server that shuts down answers such calls early, and must not be
// called again at once.
func (t *Transport) rest(ctx context.Context, asked time.Time, wait time.Duration) {
	if left := wait - t.clock.Now().Sub(asked); left > wait/2 {
		backoff.Pause(ctx, t.clock, min(left, backoff.Delay(restTry)))
	}
}

// Close waits for calls in progress, and ends those that wait. If ctx ends first, it ends all of them.
func (t *Transport) Close(ctx context.Context) error {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.stop()
	idle := make(chan struct{})
	go func() {
		t.calls.Wait()
		close(idle)
	}()
	select {
	case <-idle:
	case <-ctx.Done():
	}
	t.end()
	<-idle
	t.watches.Wait()
	if t.cfg.HTTP == nil {
		t.http.CloseIdleConnections()
	}
	return nil
}
