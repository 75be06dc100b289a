// Package webhooksend sends the requests of outgoing webhooks. It connects to checked addresses alone: it resolves names itself, checks every address
// with the rules of core/webhook and connects to one of those. It follows no redirect, uses no proxy, keeps no cookie and verifies certificates. It
// knows neither endpoints nor deliveries, and decides nothing about a failed attempt.
package webhooksend

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/core/webhook"
)

// Bounds of an attempt and of what is kept between attempts.
const (
	Timeout = 15 * time.Second // of all steps: resolve, connect, send, headers, body

	maxBody     = 64 << 10 // bytes of an answer that are read
	maxHeader   = 64 << 10 // bytes of the headers of an answer
	maxIdle     = 512      // idle connections
	maxIdleHost = 64       // idle connections to one host: as many as an endpoint may have requests at a time
	idleTimeout = 30 * time.Second
	maxSessions = 256 // of TLS that can be resumed
)

// Config has the settings of a Sender. The zero value permits https to public addresses on port 443.
type Config struct {
	Addresses webhook.Addresses
	UserAgent string         // "": FlowFabric-Webhooks
	Resolver  Resolver       // nil: the system's
	Dial      Dial           // connects to a checked address; nil: by TCP
	Roots     *x509.CertPool // who may sign certificates; nil: the system's
	Clock     clock.Clock    // measures attempts; nil: the system's
}

// Resolver finds the addresses of a name. *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Dial connects to an address with a port, which is never a name.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Sender sends requests and reads answers. Its methods may be called at the same time.
type Sender struct {
	cfg       Config
	transport *http.Transport
	life      context.Context //nolint:containedctx // of all requests; ends with Close
	end       context.CancelFunc

	mu      sync.Mutex
	closed  bool
	sending sync.WaitGroup
}

// New returns a Sender, which the caller closes.
func New(cfg Config) *Sender {
	if cfg.UserAgent == "" {
		cfg.UserAgent = "FlowFabric-Webhooks"
	}
	if cfg.Resolver == nil {
		cfg.Resolver = net.DefaultResolver
	}
	if cfg.Dial == nil {
		cfg.Dial = (&net.Dialer{}).DialContext
	}
	if cfg.Clock == nil {
		cfg.Clock = clock.System()
	}
	s := &Sender{cfg: cfg}
	s.life, s.end = context.WithCancel(context.Background())
	s.transport = s.newTransport()
	return s
}

// newTransport bounds everything that a receiver could make large or slow. Proxy stays nil: a proxy would resolve names itself.
func (s *Sender) newTransport() *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	return &http.Transport{
		DialContext:            s.dial,
		Protocols:              protocols,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: Timeout, PingTimeout: Timeout},
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: s.cfg.Roots, ClientSessionCache: tls.NewLRUClientSessionCache(maxSessions)},
		TLSHandshakeTimeout:    Timeout,
		ResponseHeaderTimeout:  Timeout,
		MaxResponseHeaderBytes: maxHeader,
		DisableCompression:     true, // a small answer could become a large one
		MaxIdleConns:           maxIdle,
		MaxIdleConnsPerHost:    maxIdleHost,
		IdleConnTimeout:        idleTimeout,
	}
}

// Close ends all attempts, waits for them, and closes all connections. Attempts that are made later end at once with webhook.ErrInterrupted.
func (s *Sender) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.end()
	s.sending.Wait()
	s.transport.CloseIdleConnections()
}

func (s *Sender) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.sending.Add(1)
	}
	return !s.closed
}

// Send makes one attempt, which takes at most Timeout. It always returns an answer; Err says why there is no whole one, without the URL and what was
// sent to it. An attempt that the deadline of ctx ends counts as one that took too long; one that is cancelled, by ctx or by Close, as interrupted.
func (s *Sender) Send(ctx context.Context, r webhook.Request) webhook.Answer {
	if !s.begin() {
		return webhook.Answer{Err: webhook.ErrInterrupted}
	}
	defer s.sending.Done()
	began := s.cfg.Clock.Now()
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	a, err := s.attempt(ctx, r)
	if err != nil {
		a.Err = cause(ctx, err)
	}
	a.Duration = s.cfg.Clock.Now().Sub(began)
	return a
}

// attempt checks the URL once more: the settings may have changed since it was registered.
func (s *Sender) attempt(ctx context.Context, r webhook.Request) (webhook.Answer, error) {
	target, err := webhook.ParseURL(r.URL)
	if err == nil && target.Addr.IsValid() && !s.cfg.Addresses.Permits(target.Host, target.Addr) {
		return webhook.Answer{}, errRefused
	}
	if err == nil {
		err = s.cfg.Addresses.CheckTarget(target)
	}
	if err != nil {
		return webhook.Answer{}, errURL
	}
	request, err := s.request(ctx, r)
	if err != nil {
		return webhook.Answer{}, err
	}
	response, err := s.transport.RoundTrip(request) //nolint:bodyclose // answer closes it. Not http.Client, which follows redirects
	if err != nil {
		return webhook.Answer{}, err
	}
	return s.answer(response)
}

func (s *Sender) request(ctx context.Context, r webhook.Request) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.URL, bytes.NewReader(r.Body))
	if err != nil {
		return nil, errURL
	}
	h := request.Header
	h.Set("Content-Type", "application/json")
	h.Set("User-Agent", s.cfg.UserAgent)
	h.Set(webhook.HeaderID, r.ID)
	h.Set(webhook.HeaderTimestamp, webhook.Timestamp(r.At))
	h.Set(webhook.HeaderSignature, webhook.Sign(r.Secrets, r.ID, r.At, r.Body))
	return request, nil
}

// answer reads the beginning of an answer. After 101 the body is the connection, which no deadline ends: it is not read.
func (s *Sender) answer(response *http.Response) (webhook.Answer, error) {
	defer func() { _ = response.Body.Close() }()
	a := webhook.Answer{
		Status:     response.StatusCode,
		RetryAfter: webhook.ParseRetryAfter(response.Header.Get("Retry-After"), s.cfg.Clock.Now()),
	}
	if a.Status == http.StatusSwitchingProtocols {
		return a, nil
	}
	var err error
	if a.Body, err = io.ReadAll(io.LimitReader(response.Body, webhook.MaxAnswer)); err != nil {
		return a, err
	}
	_, err = io.CopyN(io.Discard, response.Body, maxBody-int64(len(a.Body)))
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return a, err
}
