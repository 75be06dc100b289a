// Package httptransport does operations at a server: it sends them, repeats those whose outcome is unknown under one key, and lets the
// commands of many callers travel together.
package httptransport

import (
	"bytes"
	"context"
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

// Config sets up a transport. Addresses and credentials were checked by whoever made it.
type Config struct {
	Server    string // its address, without the slash at its end
	APIKey    string
	Namespace string          // that calls are about; "": the one that the key is for
	HTTP      *http.Client    // nil: one of the transport's own, which follows no redirects
	Tracer    api.Tracer      // nil: no spans
	Retry     api.RetryPolicy // how calls are repeated that the server could not serve
	Clock     clock.Clock
}

// Transport does operations at a server. Make it with New.
type Transport struct {
	cfg    Config
	clock  clock.Clock
	http   *http.Client
	batch  *batcher[api.WorkAnswer]
	submit *batcher[api.SubmitResult]
	kept   kept

	buffers sync.Pool // *bytes.Buffer, for answers
	items   sync.Pool // *wire.WorkItem, to be written

	mu      sync.Mutex
	closed  bool
	calls   sync.WaitGroup
	waiting context.Context //nolint:containedctx // ends when Close begins: calls that wait end at once
	stop    context.CancelFunc
	life    context.Context //nolint:containedctx // ends when Close gives up waiting for the others
	end     context.CancelFunc
}

// New makes the transport to a server. No request is made yet.
func New(cfg Config) *Transport {
	t := &Transport{cfg: cfg, clock: cfg.Clock, http: cfg.HTTP}
	t.buffers.New = func() any { return new(bytes.Buffer) }
	t.items.New = func() any { return new(wire.WorkItem) }
	if t.http == nil {
		t.http = newHTTP()
	}
	t.life, t.end = context.WithCancel(context.Background())
	t.waiting, t.stop = context.WithCancel(t.life)
	t.batch = &batcher[api.WorkAnswer]{send: t.sendWork, bytes: maxBatchBytes, most: maxWorkFlights, failure: func(err error) api.WorkAnswer { return api.WorkAnswer{Err: err} }}
	t.submit = &batcher[api.SubmitResult]{send: t.sendSubmits, bytes: maxSubmitBytes, most: maxSubmitFlights, failure: func(err error) api.SubmitResult { return api.SubmitResult{Err: err} }}
	return t
}

// Connection is the transport with what a client takes from it.
func (t *Transport) Connection() transport.Connection {
	return transport.Connection{Transport: t, Clock: t.clock, Close: t.Close, Tracer: t.cfg.Tracer, Brief: true}
}

// Namespace is the one that calls are about unless they name another; "": the one that the key is for.
func (t *Transport) Namespace() string { return t.cfg.Namespace }

// kept is a value that lives as long as the transport.
type kept struct {
	once  sync.Once
	value any
}

// Keep returns the value that make made when Keep was first called. The packages of the stores keep here what they know of the server.
func (t *Transport) Keep(make func() any) any {
	t.kept.once.Do(func() { t.kept.value = make() })
	return t.kept.value
}

// How connections are kept by the transport's own http.Client.
const (
	idleConnections = 64
	idleTime        = 90 * time.Second
)

// newHTTP makes an http.Client that keeps connections and takes a redirect for an answer: it would lose the body of a command.
func newHTTP() *http.Client {
	own := &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true,
		MaxIdleConns: idleConnections, MaxIdleConnsPerHost: idleConnections, IdleConnTimeout: idleTime,
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

// rest follows a call that was to wait and found nothing. A server that stops answers those early, and must not be asked again in a
// hurry.
func (t *Transport) rest(ctx context.Context, asked time.Time, wait time.Duration) {
	if left := wait - t.clock.Now().Sub(asked); left > wait/2 {
		backoff.Pause(ctx, t.clock, min(left, backoff.Delay(restTry)))
	}
}

// Close lets calls that are under way end, and ends those that wait. When ctx ends first, all of them end.
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
	if t.cfg.HTTP == nil {
		t.http.CloseIdleConnections()
	}
	return nil
}
