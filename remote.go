package flowfabric

import (
	"bytes"
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric/internal/backoff"
	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// remote is the Client of a server: every method is one call of the wire table, sent by remote_send.go.
type remote struct {
	methods
	server string // without the slash at its end
	cfg    ConnectConfig
	http   *http.Client
	batch  *batcher[WorkAnswer]
	submit *batcher[SubmitResult]
	guests guests

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

func newRemote(server string, cfg ConnectConfig, host clock.Clock) *remote {
	r := &remote{server: server, cfg: cfg, http: cfg.HTTP}
	r.methods = methods{r, host}
	r.buffers.New = func() any { return new(bytes.Buffer) }
	r.items.New = func() any { return new(wire.WorkItem) }
	if r.http == nil {
		r.http = newHTTP()
	}
	r.life, r.end = context.WithCancel(context.Background())
	r.waiting, r.stop = context.WithCancel(r.life)
	r.batch = &batcher[WorkAnswer]{send: r.sendWork, bytes: maxBatchBytes, most: maxWorkFlights, failure: func(err error) WorkAnswer { return WorkAnswer{Err: err} }}
	r.submit = &batcher[SubmitResult]{send: r.sendSubmits, bytes: maxSubmitBytes, most: maxSubmitFlights, failure: func(err error) SubmitResult { return SubmitResult{Err: err} }}
	return r
}

func (r *remote) seam() seam {
	return seam{clock: r.clock, tracer: r.cfg.Tracer, claims: flowingClaims, brief: true, submitTx: r.submitTx}
}

// restTry sets how long rest pauses: half a second or less.
const restTry = 2

// rest follows a call that was to wait and found nothing. A server that stops answers those early, and must not be asked again in a
// hurry.
func (r *remote) rest(ctx context.Context, asked time.Time, wait time.Duration) {
	if left := wait - r.clock.Now().Sub(asked); left > wait/2 {
		backoff.Pause(ctx, r.clock, min(left, backoff.Delay(restTry)))
	}
}

// Close lets calls that are under way end, and ends those that wait. When ctx ends first, all of them end.
func (r *remote) Close(ctx context.Context) error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.stop()
	idle := make(chan struct{})
	go func() {
		r.calls.Wait()
		close(idle)
	}()
	select {
	case <-idle:
	case <-ctx.Done():
	}
	r.end()
	<-idle
	if r.cfg.HTTP == nil {
		r.http.CloseIdleConnections()
	}
	return nil
}
