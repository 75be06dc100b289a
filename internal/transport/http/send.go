package httptransport

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/backoff"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/mint"
	"github.com/flowfabric/flowfabric/internal/transport"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// Bounds of one call.
const (
	tryLimit = time.Minute // for one try to be answered, in addition to its wait

	maxAnswer     = 256 << 20 // bytes of an answer
	maxProblem    = 1 << 20   // bytes of a problem
	maxRequestKey = 128
)

// sending says how a call is sent.
type sending struct {
	key  string        // the Idempotency-Key of the caller; minted when empty
	wait time.Duration // how long the server may wait before it answers
	// repeat means that the caller has sent the call before under its key.
	repeat bool
	// namespace replaces the client's own.
	namespace string
	links     []api.TraceContext // of a batch: the spans of the senders of its commands
	// entered means that the callers that wait for the answer are counted themselves and continue while Close waits.
	entered bool
}

// sent is an answer of the server.
type sent struct {
	status int
	header http.Header
	body   []byte
	tries  int

	buffer *bytes.Buffer // has the body
}

// maxKeptBuffer is the largest buffer that is kept for another answer.
const maxKeptBuffer = 1 << 20

// release returns the buffer of a body that is no longer read: decoded values keep no reference to the text.
func (t *Transport) release(s sent) {
	if s.buffer != nil && s.buffer.Cap() <= maxKeptBuffer {
		s.buffer.Reset()
		t.buffers.Put(s.buffer)
	}
}

// call sends a call and reads its answer.
func call[Req, Ans any](ctx context.Context, t *Transport, c wire.Call[Req, Ans], request *Req, how sending) (*Ans, error) {
	answer := new(Ans)
	return answer, t.exchange(ctx, c.Operation, request, answer, how)
}

// exchange sends a request and reads its answer, both by pointers, so that little code is compiled per type.
func (t *Transport) exchange(ctx context.Context, o *wire.Operation, request, into any, how sending) error {
	message, err := wire.EncodeRequest(o, request)
	if err != nil {
		return api.FaultsError(err)
	}
	answer, err := t.send(ctx, o, message, how)
	if err != nil || answer.status == http.StatusNoContent {
		return err
	}
	if raw, ok := into.(*wire.Raw); ok {
		t.takeRaw(answer, raw)
		return nil
	}
	defer t.release(answer)
	if err := wire.DecodeAnswer(answer.body, into); err != nil {
		return transport.Garbled(err)
	}
	return nil
}

// takeRaw takes over an answer that consists of bytes.
func (t *Transport) takeRaw(answer sent, into *wire.Raw) {
	into.Data, into.ContentType = answer.body, answer.header.Get("Content-Type")
	if answer.buffer.Cap() <= maxKeptBuffer { // else the buffer belongs to the caller
		into.Data = append([]byte{}, answer.body...)
		t.release(answer)
	}
}

// send is the only place that sends requests.
func (t *Transport) send(ctx context.Context, o *wire.Operation, m wire.Message, how sending) (sent, error) {
	ctx, span := t.startCall(ctx, o, m.Header, how.links)
	answer, err := t.deliver(ctx, o, m, how)
	span.endCall(answer, err)
	return answer, err
}

// deliver repeats a call that the server could not serve, under the same key, and one of unknown outcome until the outcome is
// known. An outcome that stays unknown is never reported as a failure (U15).
func (t *Transport) deliver(ctx context.Context, o *wire.Operation, m wire.Message, how sending) (sent, error) {
	switch {
	case !wire.HeaderText(how.namespace):
		return sent{}, refuse(base.CodeInvalidArgument, "%q is not a namespace", how.namespace).At("namespace", "name one")
	case len(how.key) > maxRequestKey || !wire.HeaderText(how.key):
		return sent{}, refuse(base.CodeInvalidArgument, "the request key has 1..%d characters of 0x21..0x7e", maxRequestKey).
			At("request_key", "leave it out: the client mints one")
	}
	ctx, done, err := t.begin(ctx, how.wait > 0, how.entered)
	if err != nil {
		return sent{}, err
	}
	defer done()
	t.putHead(o, m.Header, how)
	began, unknown, moves := t.clock.Now(), false, 0
	for try := 0; ; try++ {
		if o.Method != http.MethodGet && (how.repeat || try+moves > 0) {
			m.Header = m.Header.Clone() // the previous try may still be writing it
			m.Header.Set(wire.HeaderRepeat, "true")
		}
		answer, another, err := t.try(ctx, m, tryLimit+how.wait)
		if err == nil {
			answer.tries = try + moves + 1
			return answer, nil
		}
		unknown = unknown || api.CodeOf(err) == string(base.CodeTimeout) && o.Method != http.MethodGet
		if ctx.Err() == nil && !repeatable(err) {
			return sent{}, err
		}
		if another && moves < t.maxMoves() && backoff.Pause(ctx, t.clock, backoff.Spread(movePause)) {
			moves++
			try-- // a move to another server is not a repeat
			continue
		}
		wait := max(t.backoff(try), api.RetryDelay(err))
		if ctx.Err() == nil && try < t.maxRepeats() && t.inTime(began, wait) && backoff.Pause(ctx, t.clock, wait) {
			continue
		}
		return sent{}, t.givenUp(ctx, o, err, unknown)
	}
}

// givenUp returns the error of a call that was not answered.
func (t *Transport) givenUp(ctx context.Context, o *wire.Operation, err error, unknown bool) error {
	switch {
	case unknown && ctx.Err() != nil:
		return refuse(base.CodeTimeout, "whether %s happened is not known: %w", o.ID, context.Cause(ctx))
	case unknown && api.CodeOf(err) != string(base.CodeTimeout):
		return refuse(base.CodeTimeout, "whether %s happened is not known: %w", o.ID, err)
	case ctx.Err() == nil:
		return err
	case t.isClosed():
		return closedError()
	default:
		return fmt.Errorf("flowfabric: %s: %w", o.ID, context.Cause(ctx))
	}
}

// begin counts a call, and gives it a context that ends with the client too.
func (t *Transport) begin(ctx context.Context, waits, entered bool) (context.Context, func(), error) {
	if !entered {
		if err := t.enter(); err != nil {
			return nil, nil, err
		}
	}
	life := t.life
	if waits {
		life = t.waiting
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(life, func() { cancel(closedError()) })
	return ctx, func() {
		stop()
		cancel(nil)
		if !entered {
			t.calls.Done()
		}
	}, nil
}

// enter counts a call: Close waits for it.
func (t *Transport) enter() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return closedError()
	}
	t.calls.Add(1)
	return nil
}

func (t *Transport) isClosed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.closed
}

// closedError is the error of calls on a closed client. It wraps an error of the engine, by which isClosed distinguishes it from
// that of a server.
func closedError() error {
	return api.AsError(base.Errorf(base.CodeShuttingDown, "the client is closed"))
}

// putHead adds the headers common to all requests.
func (t *Transport) putHead(o *wire.Operation, head http.Header, how sending) {
	head.Set("Accept", wire.ContentJSON+", application/problem+json, */*;q=0.1")
	head.Set("User-Agent", "flowfabric-go")
	head.Set(wire.HeaderRequestID, mint.Key(t.clock))
	if o.Method != http.MethodGet {
		if how.key == "" {
			how.key = mint.Key(t.clock)
		}
		head.Set(wire.HeaderIdempotencyKey, how.key)
	}
	if t.cfg.APIKey != "" {
		head.Set("Authorization", "Bearer "+t.cfg.APIKey)
	}
	if namespace := cmp.Or(how.namespace, t.cfg.Namespace); namespace != "" {
		head.Set(wire.HeaderNamespace, namespace)
	}
	if !strings.HasPrefix(o.ID, "list_") {
		head.Set("Accept-Encoding", "identity") // compression is worthwhile for lists only
	}
}

// once sends the request once. Its error is timeout when the server may have got it and no answer came.
func (t *Transport) once(ctx context.Context, o *host, m wire.Message, limit time.Duration) (sent, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var reached atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { reached.Store(true) }})
	request, err := t.request(ctx, o, m)
	if err != nil {
		return sent{}, err
	}
	response, err := t.http.Do(request)
	if err != nil {
		return sent{}, unanswered(err, reached.Load())
	}
	defer response.Body.Close()
	if response.StatusCode >= http.StatusMultipleChoices {
		return sent{}, problemFrom(response)
	}
	answer := sent{status: response.StatusCode, header: response.Header, buffer: t.buffers.Get().(*bytes.Buffer)}
	if answer.body, err = readAll(answer.buffer, response, maxAnswer); err != nil {
		return sent{}, unanswered(err, true)
	}
	if len(answer.body) > maxAnswer {
		return sent{}, transport.Garbled(fmt.Errorf("the answer has more than %d bytes", maxAnswer))
	}
	return answer, nil
}

// request converts the message to an HTTP request.
func (t *Transport) request(ctx context.Context, o *host, m wire.Message) (*http.Request, error) {
	address := o.address + m.Path
	if m.Query != "" {
		address += "?" + m.Query
	}
	request, err := http.NewRequestWithContext(ctx, m.Method, address, bytes.NewReader(m.Body))
	if err != nil {
		return nil, refuse(base.CodeInvalidArgument, "the request cannot be written: %w", withoutPath(err))
	}
	request.Header = m.Header.Clone()
	if installation := t.hosts.expected(); installation != "" {
		request.Header.Set(wire.HeaderInstallation, installation)
	}
	return request, nil
}

// unanswered returns the error of a request without an answer; if the server may have received it, its outcome is unknown.
func unanswered(err error, reached bool) error {
	err = withoutPath(err)
	if reached {
		return refuse(base.CodeTimeout, "the connection was lost before the answer came: %w", &lostError{err})
	}
	return refuse(base.CodeStoreUnavailable, "the server cannot be reached: %w", &lostError{err})
}

// withoutPath removes the path from the text of a failure: for some calls it contains a token (W27).
func withoutPath(err error) error {
	var failed *url.Error
	if !errors.As(err, &failed) {
		return err
	}
	host := "the server"
	if address, err := url.Parse(failed.URL); err == nil {
		host = address.Scheme + "://" + address.Host
	}
	return &url.Error{Op: failed.Op, URL: host, Err: failed.Err}
}

// readAll reads into an empty buffer, one byte more than the limit allows, at most.
func readAll(text *bytes.Buffer, response *http.Response, limit int64) ([]byte, error) {
	if n := response.ContentLength; n > 0 && n <= limit {
		text.Grow(int(n) + bytes.MinRead)
	}
	if _, err := text.ReadFrom(io.LimitReader(response.Body, limit+1)); err != nil {
		return nil, err
	}
	if text.Len() == 0 {
		return []byte{}, nil
	}
	return text.Bytes(), nil
}

// problemFrom reads why the server refused. An intermediary may have answered instead, in another format.
func problemFrom(response *http.Response) error {
	text, _ := readAll(new(bytes.Buffer), response, maxProblem)
	problem, err := readAnswer[wire.Problem](text)
	if err != nil || problem.Code == "" {
		return foreign(response)
	}
	e := problem.Err()
	if e.RequestID == "" {
		e.RequestID = response.Header.Get(wire.HeaderRequestID)
	}
	e.RetryAfter = max(e.RetryAfter, retryAfterOf(response))
	return e
}

// foreignCodes map answers that do not come from the server itself. After a bad gateway the server may have carried out the call.
var foreignCodes = map[int]base.Code{
	http.StatusUnauthorized:          base.CodeInvalidCredentials,
	http.StatusForbidden:             base.CodeRoleRequired,
	http.StatusNotFound:              base.CodeRouteNotFound,
	http.StatusMethodNotAllowed:      base.CodeMethodNotAllowed,
	http.StatusRequestEntityTooLarge: base.CodePayloadTooLarge,
	http.StatusTooManyRequests:       base.CodeRateLimited,
	http.StatusBadGateway:            base.CodeTimeout,
	http.StatusServiceUnavailable:    base.CodeOverloaded,
	http.StatusGatewayTimeout:        base.CodeTimeout,
}

func foreign(response *http.Response) error {
	code, known := foreignCodes[response.StatusCode]
	if !known {
		code = base.CodeInternal
	}
	e := refuse(code, "%s answered with status %d, and not in the form of the API", response.Request.URL.Host, response.StatusCode)
	e.Hint, e.RetryAfter = "check the address of the server", retryAfterOf(response)
	if cutOff(response.StatusCode) {
		return &lostError{e}
	}
	return e
}

// retryAfterOf is the header Retry-After in seconds; 0 when there is none.
func retryAfterOf(response *http.Response) time.Duration {
	seconds, err := strconv.ParseUint(response.Header.Get("Retry-After"), 10, 31)
	if err != nil {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// repeatable reports whether the client itself repeats a call. Refusals that last until the state of an execution or a lane
// changes are left to the caller.
func repeatable(err error) bool {
	if !api.Retryable(err) {
		return false
	}
	switch base.Code(api.CodeOf(err)) {
	case base.CodeOverloaded, base.CodeStoreUnavailable, base.CodeStoreFull, base.CodeShuttingDown, base.CodeStarting, base.CodeTimeout,
		base.CodeRateLimited, base.CodeIdempotencyInProgress:
		return true
	default:
		return false
	}
}

// maxRepeats is how often a call is repeated.
func (t *Transport) maxRepeats() int {
	if n := t.cfg.Retry.MaxRetries; n != 0 {
		return max(n, 0)
	}
	return backoff.Repeats
}

// maxMoves is how often a call is repeated at another server without a pause.
func (t *Transport) maxMoves() int {
	if t.maxRepeats() == 0 {
		return 0
	}
	return 2 * len(t.hosts.all)
}

// inTime reports whether a repeat after a pause is within the time that the policy permits.
func (t *Transport) inTime(began time.Time, wait time.Duration) bool {
	most := t.cfg.Retry.MaxElapsed
	return most == 0 || t.clock.Now().Add(wait).Sub(began) <= most
}

// backoff is a random pause before repeat number try+1.
func (t *Transport) backoff(try int) time.Duration {
	b := t.cfg.Retry.Backoff
	if b.Strategy == base.BackoffFixed {
		return backoff.Spread(b.Delay)
	}
	first, longest, growth := cmp.Or(b.Initial, backoff.First), cmp.Or(b.Max, backoff.Longest), cmp.Or(b.Multiplier, 2)
	limit := min(float64(longest), float64(first)*math.Pow(growth, float64(try)))
	return backoff.Spread(time.Duration(limit))
}

// readAnswer reads the JSON of an answer; fields that are not known are ignored (U4).
func readAnswer[W any](text []byte) (*W, error) {
	answer := new(W)
	if err := wire.Unmarshal(text, answer); err != nil {
		return answer, refuse(base.CodeInvalidJSON, "this is not the JSON of the API: %w", err)
	}
	return answer, nil
}
