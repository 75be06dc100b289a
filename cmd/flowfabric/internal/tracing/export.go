package tracing

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// protobuf is the only form in which spans are sent and answers are read.
const protobuf = "application/x-protobuf"

// The bounds of what is read of an answer: of one that may tell of rejected spans, and of one that only says why not.
const (
	maxAnswer = 4 << 20
	maxReason = 1 << 10
)

var errStopped = errors.New("sending has stopped")

// sender posts spans to a collector.
type sender struct {
	client *http.Client
	at     string // URL that takes spans
	header http.Header
	gzip   bool

	stop    chan struct{} // closed: requests end and none begins
	stopped sync.Once
}

// newSender makes a sender of spans to a URL. It fails when what is said about TLS would be of no effect.
func newSender(at, version string, d delivery) *sender {
	header := http.Header{"User-Agent": {"flowfabric/" + version}}
	for name, values := range d.headers {
		header[name] = values
	}
	header.Set("Content-Type", protobuf)
	if d.gzip {
		header.Set("Content-Encoding", "gzip")
	}
	return &sender{at: at, header: header, gzip: d.gzip, stop: make(chan struct{}), client: &http.Client{
		Timeout: d.timeout, CheckRedirect: mayFollow,
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, TLSClientConfig: d.tls, ForceAttemptHTTP2: true,
			TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: 90 * time.Second,
		},
	}}
}

// mayFollow follows a collector that has moved on its own host. Headers may hold secrets, so they go to no other host and do not
// leave TLS; and a redirect that makes a GET of the request would lose the spans.
func mayFollow(next *http.Request, before []*http.Request) error {
	first := before[0].URL
	safe := next.URL.Scheme == "https" || first.Scheme == "http"
	if len(before) > 5 || next.Method != http.MethodPost || next.URL.Hostname() != first.Hostname() || !safe {
		return http.ErrUseLastResponse
	}
	return nil
}

// ExportSpans sends spans. It comes back when they are taken, refused, or were tried for long enough.
func (s *sender) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	select {
	case <-s.stop:
		return errStopped
	default:
	}
	if len(spans) == 0 {
		return nil
	}
	body := s.body(spans)
	ctx, cancel := s.untilStopped(ctx)
	defer cancel(nil)
	return persist(ctx, func() error { return s.post(ctx, body, len(spans)) })
}

// Shutdown ends requests that are under way.
func (s *sender) Shutdown(context.Context) error {
	s.stopped.Do(func() { close(s.stop) })
	s.client.CloseIdleConnections()
	return nil
}

// untilStopped is ctx that ends with the sender too.
func (s *sender) untilStopped(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-s.stop:
			cancel(errStopped)
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

func (s *sender) body(spans []sdktrace.ReadOnlySpan) []byte {
	plain := encode(spans)
	if !s.gzip {
		return plain
	}
	var packed bytes.Buffer // takes whatever it is given
	w := gzip.NewWriter(&packed)
	_, _ = w.Write(plain)
	_ = w.Close()
	return packed.Bytes()
}

// post makes one request with so many spans. The error is *busy when another one may have better luck.
func (s *sender) post(ctx context.Context, body []byte, spans int) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.at, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header = s.header.Clone()
	answer, err := s.client.Do(request)
	if err != nil {
		return unanswered(err)
	}
	defer func() { _ = answer.Body.Close() }() // all that matters has been read
	if answer.StatusCode/100 == 2 {
		return rejected(answer, spans)
	}
	return refused(answer)
}

// unanswered tells a collector that is slow, or a host that lacks something for a moment, from one that cannot be reached.
func unanswered(err error) error {
	var failed *url.Error
	if errors.As(err, &failed) && failed.Temporary() {
		return &busy{cause: err}
	}
	return err
}

// rejected is the error of a collector that took the request and not all of its spans; nil if it took all.
func rejected(answer *http.Response, spans int) error {
	b, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1)) // to its end, so that the connection is used again
	if err != nil {
		return err
	}
	if len(b) > maxAnswer {
		return fmt.Errorf("the collector's answer is longer than %d bytes", maxAnswer)
	}
	if !isProtobuf(answer) {
		return nil
	}
	n, reason, err := partialSuccess(b)
	if err != nil {
		return fmt.Errorf("the collector's answer cannot be read: %w", err)
	}
	if n > 0 {
		return fmt.Errorf("the collector rejected %d of %d spans: %s", n, spans, reason)
	}
	return nil
}

// refused is the error of a collector that did not take the request.
func refused(answer *http.Response) error {
	b, _ := io.ReadAll(io.LimitReader(answer.Body, maxReason)) // the status says enough if the reason cannot be read
	reason := string(b)
	if isProtobuf(answer) {
		_, reason, _ = verdict(b)
	}
	err := fmt.Errorf("the collector answered %s", answer.Status)
	if reason = strings.TrimSpace(reason); reason != "" {
		err = fmt.Errorf("%w: %s", err, strings.ToValidUTF8(reason, "\uFFFD"))
	}
	switch answer.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return &busy{cause: err, after: retryAfter(answer.Header.Get("Retry-After"), time.Now())}
	}
	return err
}

func isProtobuf(answer *http.Response) bool {
	return strings.HasPrefix(answer.Header.Get("Content-Type"), protobuf)
}
