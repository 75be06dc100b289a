package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// How often the transport itself does something to a command: a request is sent twice, to both servers where there are two; an answer is
// thrown away after the command took effect.
const (
	twice       = 0.02
	lostAnswer  = 0.04
	otherServer = 0.10
	secondLimit = 10 * time.Second
)

// keyHeader is what makes a command repeatable.
const keyHeader = "Idempotency-Key"

// road leads requests to servers. It is the transport of clients and workers.
type road struct {
	via     *http.Transport
	targets []string // host and port of each way

	mu     sync.Mutex
	random *rand.Rand
	home   int // index of the usual target

	unknown    atomic.Int64 // commands that were sent and whose answer did not arrive
	duplicated atomic.Int64
	seconds    sync.WaitGroup
}

func newRoad(targets []string, home int, seed uint64) *road {
	return &road{
		via:     &http.Transport{MaxIdleConnsPerHost: 64, DialContext: (&net.Dialer{Timeout: 5 * time.Second}).DialContext},
		targets: targets, home: home, random: rand.New(rand.NewPCG(seed, uint64(home))),
	}
}

// drawn is what is done to one request.
type drawn struct {
	target, other int
	twice, lose   bool
}

func (r *road) draw() drawn {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := drawn{target: r.home, twice: r.random.Float64() < twice, lose: r.random.Float64() < lostAnswer}
	if r.random.Float64() < otherServer {
		d.target = r.random.IntN(len(r.targets))
	}
	d.other = r.random.IntN(len(r.targets))
	return d
}

// RoundTrip sends a request to one of the servers.
func (r *road) RoundTrip(request *http.Request) (*http.Response, error) {
	d := r.draw()
	command := request.Method != http.MethodGet && request.Header.Get(keyHeader) != ""
	var body []byte
	if request.Body != nil {
		var err error
		if body, err = io.ReadAll(request.Body); err != nil {
			return nil, err
		}
		_ = request.Body.Close()
	}
	if command && d.twice {
		r.duplicated.Add(1)
		r.seconds.Go(func() { r.second(request, body, d.other) })
	}
	response, err := r.via.RoundTrip(to(request.Context(), request, body, r.targets[d.target]))
	switch {
	case err != nil:
		if dial := (*net.OpError)(nil); command && !(errors.As(err, &dial) && dial.Op == "dial") {
			r.unknown.Add(1)
		}
		return nil, err
	case command && d.lose:
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		r.unknown.Add(1)
		return nil, io.ErrUnexpectedEOF
	case command:
		response.Body = &answer{ReadCloser: response.Body, road: r}
	}
	return response, nil
}

// second sends the same command once more, and ignores the answer.
func (r *road) second(request *http.Request, body []byte, target int) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(request.Context()), secondLimit)
	defer cancel()
	response, err := r.via.RoundTrip(to(ctx, request, body, r.targets[target]))
	if err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
}

// to is the request with another destination.
func to(ctx context.Context, request *http.Request, body []byte, target string) *http.Request {
	other := request.Clone(ctx)
	other.URL.Host, other.Host = target, target
	if body != nil {
		other.Body, other.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	return other
}

// answer counts answers to commands that broke off.
type answer struct {
	io.ReadCloser
	road  *road
	broke bool
}

// Read reads the answer.
func (a *answer) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) && !a.broke {
		a.broke = true
		a.road.unknown.Add(1)
	}
	return n, err
}

func (r *road) close() {
	r.seconds.Wait()
	r.via.CloseIdleConnections()
}
