package flowfabric

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric/internal/backoff"
	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/transport"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// remote is the Client of a server: every method is one call of the wire table, sent by remote_send.go.
type remote struct {
	server string // without the slash at its end
	cfg    ConnectConfig
	http   *http.Client
	clock  clock.Clock
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
	r := &remote{server: server, cfg: cfg, http: cfg.HTTP, clock: host}
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

func (r *remote) Executions() Executions { return Executions{r} }
func (r *remote) Flows() Flows           { return Flows{r, r.clock} }
func (r *remote) Operate() Operate       { return Operate{r} }
func (r *remote) Waitpoints() Waitpoints { return Waitpoints{r} }
func (r *remote) Events() Events         { return Events{r, r.clock} }
func (r *remote) Quotas() Quotas         { return Quotas{r} }
func (r *remote) Lanes() Lanes           { return Lanes{r} }
func (r *remote) Workers() Workers       { return Workers{r} }
func (r *remote) Budgets() Budgets       { return Budgets{r} }
func (r *remote) Work() Work             { return Work{r} }
func (r *remote) Admin() Admin           { return Admin{r} }
func (r *remote) seam() seam {
	return seam{clock: r.clock, tracer: r.cfg.Tracer, claims: flowingClaims, brief: true, submitTx: r.submitTx}
}

func (r *remote) Signal(ctx context.Context, s Signal) (SignalReceipt, error) {
	return signalVia(ctx, r, s)
}

func (r *remote) SubmitMany(ctx context.Context, all []Submission, o ...SubmitManyOptions) ([]SubmitResult, error) {
	options, err := single(o)
	if err != nil {
		return nil, err
	}
	results := make([]SubmitResult, len(all))
	var request wire.SubmitManyRequest
	request.Body.Atomic = options.Atomic
	places := make([]int, 0, len(all)) // of what is sent in all
	minted := make([]ID, len(all))
	for i, s := range all {
		if s.ID == "" {
			s.ID = mintID(r.clock)
			minted[i] = s.ID
		}
		item, err := s.wire()
		switch {
		case err == nil:
			request.Body.Items, places = append(request.Body.Items, item), append(places, i)
		case options.Atomic:
			return nil, atIndex(err, i)
		default:
			results[i].Err = err
		}
	}
	if len(places) == 0 {
		return results, nil
	}
	answer, err := call(ctx, r, wire.SubmitExecutions, &request, sending{})
	if err != nil {
		return nil, err
	}
	for _, item := range answer.Items {
		if item.Index < 0 || item.Index >= len(places) {
			return nil, garbled(fmt.Errorf("an answer about item %d of %d", item.Index, len(places)))
		}
		i := places[item.Index]
		results[i] = submitResultFrom(item.Value)
		if results[i].Err = refusalFrom(item.Error); item.Error != nil {
			results[i].ID = all[i].ID
		} else if minted[i] != "" {
			results[i] = firstOf(results[i], minted[i])
		}
	}
	return results, nil
}

func (r *remote) Get(ctx context.Context, id ID) (*Execution, error) {
	return executionVia(ctx, r, id, wire.ViewFull, 0)
}

// executionVia shows an execution, if wait is not 0 when it has ended or the wait is over.
func executionVia(ctx context.Context, via transport.Transport, id ID, view wire.View, wait time.Duration) (*Execution, error) {
	path, err := byID(id)
	if err != nil {
		return nil, err
	}
	request := &wire.GetExecutionRequest{ByID: path, WaitFields: prefer(wait), View: view}
	return transport.Call(ctx, via, wire.GetExecution, request, transport.Options{Wait: wait})
}

// longPoll is how long one call waits at the server; the client asks again until its caller gives up.
const longPoll = 30 * time.Second

func (r *remote) Wait(ctx context.Context, id ID) (*Execution, error) {
	x, err := untilDone(ctx, r, func() (*Execution, error) { return executionVia(ctx, r, id, wire.ViewFull, longPoll) }, func(x *Execution) bool { return x.Status.Terminal() })
	if err != nil && ctx.Err() != nil {
		return nil, fmt.Errorf("flowfabric: waiting for %s: %w", id, context.Cause(ctx))
	}
	return x, err
}

// untilDone asks until the answer says that it is done.
func untilDone[T any](ctx context.Context, r *remote, ask func() (T, error), done func(T) bool) (T, error) {
	for {
		asked := r.clock.Now()
		answer, err := ask()
		if err != nil || done(answer) {
			return answer, err
		}
		if r.rest(ctx, asked, longPoll); ctx.Err() != nil {
			return answer, context.Cause(ctx)
		}
	}
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

func (r *remote) Cancel(ctx context.Context, id ID, reason string, o ...CancelOptions) (*Execution, error) {
	return cancelVia(ctx, r, id, reason, o)
}

func (r *remote) Nudge(ctx context.Context, lanes ...string) error {
	return nudgeVia(ctx, r, lanes)
}

// nudgeVia makes the engine look for work now.
func nudgeVia(ctx context.Context, via transport.Transport, lanes []string) error {
	request := &wire.NudgeRequest{}
	request.Body.Lanes = lanes
	_, err := transport.Call(ctx, via, wire.Nudge, request, transport.Options{})
	return err
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

// target is where a call on one execution goes, and its options; invalid_argument, invalid_id.
func target[O any](id ID, o []O) (options O, path wire.ByID, err error) {
	if options, err = single(o); err == nil {
		path, err = byID(id)
	}
	return options, path, err
}

// byID puts an id into a path; invalid_id.
func byID(id ID) (wire.ByID, error) {
	if _, err := parseID(id); err != nil {
		return wire.ByID{}, err
	}
	return wire.ByID{ID: string(id)}, nil
}

// sameID reports whether two spellings name one execution.
func sameID(a, b ID) bool {
	first, errA := parseID(a)
	second, errB := parseID(b)
	return errA == nil && errB == nil && first.UUID == second.UUID
}

// mintID makes an id before the first try, so that a repeat is a duplicate (L86).
func mintID(c clock.Clock) ID { return ID(core.IDOf(mintUUID(c)).String()) }
