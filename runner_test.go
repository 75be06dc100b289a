package flowfabric

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/calls"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/quiescence"
	"github.com/flowfabric/flowfabric/internal/quiet"
	"github.com/flowfabric/flowfabric/internal/transport"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// scripted is a client whose answers a test writes.
type scripted struct {
	clock  clock.Clock
	work   scriptedWork
	claims int
	brief  bool
	events transport.Transport // nil: nothing happens
	family *quiescence.Family
	sent   func(op *wire.Operation) // is called with every operation; nil: not called
}

func (s *scripted) client() *Client {
	c := NewClient(transport.Connection{Transport: s, Clock: s.clock, Brief: s.brief})
	c.claims = s.claims
	return c
}

// Do hands the operation to the part of the script that knows it.
func (s *scripted) Do(ctx context.Context, op *wire.Operation, request, answer any, how transport.Options) error {
	if s.sent != nil {
		s.sent(op)
	}
	var by transport.Transport = &s.work
	switch op {
	case wire.DrainWorker.Operation, wire.MarkWorkerDead.Operation:
		by = instantWorkers{}
	case wire.ListEvents.Operation:
		if by = s.events; by == nil {
			by = instantEvents{}
		}
	}
	return by.Do(ctx, op, request, answer, how)
}

// failingEvents is the way to an event log whose reads end in an error, or do not end by themselves.
type failingEvents struct{ err error }

func (f failingEvents) Do(ctx context.Context, _ *wire.Operation, _, _ any, _ transport.Options) error {
	if f.err == nil {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return f.err
}

func TestU145_a_worker_does_not_stand_still_because_its_feed_cannot_be_read(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err error
		by  time.Duration
	}{
		"refused":       {calls.Refuse(base.CodeRoleRequired, "no"), 0},
		"of a dead key": {calls.Refuse(base.CodeInvalidCredentials, "no"), 0},
		"unavailable":   {unavailable(), 10 * time.Second},
		"unregistered":  {calls.Refuse(base.CodeWorkerNotRegistered, "no"), 10 * time.Second},
		"internal":      {calls.Refuse(base.CodeInternal, "broken"), 10 * time.Second},
		"silent":        {nil, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begin := time.Unix(1_000_000, 0)
			host := clock.NewManual(begin)
			s := &scripted{clock: host, events: failingEvents{err: c.err}}
			s.work.tasks = claimedTasks(1)
			did := make(chan struct{})
			stop := s.start(t, WorkerConfig{Concurrency: 1}, func(context.Context, *Task, []byte) ([]byte, error) {
				close(did)
				return nil, nil
			})
			for {
				s.rest(t)
				select {
				case <-did:
					stop()
					return
				default:
				}
				at, armed := host.Next()
				if !armed || at.After(begin.Add(c.by)) {
					t.Fatalf("the worker did not begin within %s", c.by)
				}
				host.TurnTo(at)
			}
		})
	}
}

type scriptedWork struct {
	tasks []*api.Claimed
	beat  func(leases []api.Lease) (api.Heartbeat, error)
	do    func(item api.WorkItem) error
	lose  func(r api.ClaimRequest) bool                          // the answer to the claim is lost; the same claim again gets it
	hold  func(ctx context.Context, nth int, r api.ClaimRequest) // returns when the claim may be served
	stops bool                                                   // claims for which there is nothing are answered at once

	mu     sync.Mutex
	lost   map[string][]*api.Claimed // by request key
	claims []api.ClaimRequest
	sent   []api.WorkItem
}

func (w *scriptedWork) Do(ctx context.Context, _ *wire.Operation, request, answer any, how transport.Options) (err error) {
	switch r := request.(type) {
	case *wire.HeartbeatRequest:
		*answer.(*api.Heartbeat), err = w.heartbeat(r)
	case *wire.ClaimRequest:
		claim := r.Body.ClaimRequest
		claim.RequestKey, claim.Repeat = how.Key, how.Again
		*answer.(*api.ClaimAnswer), err = w.claim(ctx, claim)
	case *wire.WorkBatch:
		*answer.(*[]api.WorkAnswer) = w.send(r.Items)
	}
	return err
}

func (w *scriptedWork) heartbeat(r *wire.HeartbeatRequest) (api.Heartbeat, error) {
	leases := calls.Each(r.Body.Leases, func(h wire.HeldLease) api.Lease {
		return api.Lease{ExecutionID: ID(h.ExecutionID), ID: h.LeaseID, Epoch: h.Epoch, AttemptID: h.AttemptID}
	})
	if w.beat == nil {
		return api.Heartbeat{Registered: true, Leases: make([]api.Renewal, len(leases))}, nil
	}
	return w.beat(leases)
}

func (w *scriptedWork) claim(ctx context.Context, r api.ClaimRequest) (api.ClaimAnswer, error) {
	w.mu.Lock()
	w.claims = append(w.claims, r)
	if w.hold != nil {
		nth := len(w.claims)
		w.mu.Unlock()
		w.hold(ctx, nth, r)
		w.mu.Lock()
	}
	tasks := w.lost[r.RequestKey]
	if tasks == nil {
		tasks = w.tasks[:min(r.Max, len(w.tasks))]
		w.tasks = w.tasks[len(tasks):]
		if w.lose != nil && w.lose(r) {
			w.lost[r.RequestKey] = tasks
			w.mu.Unlock()
			return api.ClaimAnswer{}, calls.Refuse(base.CodeTimeout, "no answer")
		}
	}
	w.mu.Unlock()
	if len(tasks) == 0 && w.stops {
		return api.ClaimAnswer{}, nil
	}
	if len(tasks) == 0 {
		<-ctx.Done()
		return api.ClaimAnswer{}, context.Cause(ctx)
	}
	return api.ClaimAnswer{Tasks: tasks}, nil
}

func (w *scriptedWork) send(items []api.WorkItem) []api.WorkAnswer {
	w.mu.Lock()
	w.sent = append(w.sent, items...)
	w.mu.Unlock()
	answers := make([]api.WorkAnswer, len(items))
	if w.do != nil {
		answers[0].Err = w.do(items[0])
	}
	return answers
}

func (w *scriptedWork) ops() (ops []api.Op) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, item := range w.sent {
		ops = append(ops, item.Op)
	}
	return ops
}

const someID ID = "01890a5d-ac96-774b-bcce-b302099a8057"

// claimedTasks makes n tasks of kind "work".
func claimedTasks(n int) (tasks []*api.Claimed) {
	for range n {
		tasks = append(tasks, &api.Claimed{ID: someID, Kind: "work", Lease: api.Lease{ExecutionID: someID, ID: "l", Epoch: 1, AttemptID: "a", TTL: 30 * time.Second}})
	}
	return tasks
}

// start runs a worker on the script until the test ends.
func (s *scripted) start(t *testing.T, cfg WorkerConfig, do func(ctx context.Context, t *Task, in []byte) ([]byte, error)) (stop func()) {
	t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	w := NewWorker(s.client(), cfg)
	Handle(w, Kind[[]byte, []byte]("work"), do)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	s.family = quiescence.New()
	s.family.Go(func() { done <- w.Run(ctx) })
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func unavailable() error { return calls.Refuse(base.CodeStoreUnavailable, "down") }

func TestU138_a_lease_that_cannot_be_renewed_is_given_up_before_it_can_have_run_out(t *testing.T) {
	t.Parallel()
	begin := time.Unix(1_000_000, 0)
	host := clock.NewManual(begin)
	s := &scripted{clock: host}
	s.work.tasks = claimedTasks(1)
	s.work.beat = func([]api.Lease) (api.Heartbeat, error) { return api.Heartbeat{}, unavailable() }
	started, ended := make(chan context.Context, 1), make(chan error, 1)
	stop := s.start(t, WorkerConfig{Concurrency: 1}, func(ctx context.Context, _ *Task, _ []byte) ([]byte, error) {
		started <- ctx
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return nil, ctx.Err()
	})
	ctx := <-started
	host.TurnTo(begin.Add(25*time.Second - time.Millisecond))
	if ctx.Err() != nil {
		t.Fatalf("given up early: %v", context.Cause(ctx))
	}
	host.TurnTo(begin.Add(25 * time.Second))
	if cause := <-ended; !errors.Is(cause, ErrLeaseLost) {
		t.Errorf("the context ended with %v, want ErrLeaseLost", cause)
	}
	stop()
	if ops := s.work.ops(); len(ops) > 0 {
		t.Errorf("sent %q for a lease that is lost", ops)
	}
}

func TestU145_all_leases_are_renewed_in_one_heartbeat_at_a_third_of_their_time(t *testing.T) {
	t.Parallel()
	begin := time.Unix(1_000_000, 0)
	host := clock.NewManual(begin)
	s := &scripted{clock: host}
	s.work.tasks = claimedTasks(5)
	beats := make(chan int, 16)
	s.work.beat = func(leases []api.Lease) (api.Heartbeat, error) {
		beats <- len(leases)
		return api.Heartbeat{Registered: true, Leases: make([]api.Renewal, len(leases))}, nil
	}
	started, gate := make(chan context.Context, 5), make(chan struct{})
	s.start(t, WorkerConfig{Concurrency: 5}, func(ctx context.Context, _ *Task, _ []byte) ([]byte, error) {
		started <- ctx
		<-gate
		return nil, nil
	})
	var last context.Context
	for range 5 {
		last = <-started
	}
	for i := 1; i <= 6; i++ { // a minute: without renewals the leases would have been given up twice over
		s.rest(t)
		host.TurnTo(begin.Add(time.Duration(i) * 10 * time.Second))
		if n := <-beats; n != 5 {
			t.Errorf("heartbeat %d renewed %d leases, want 5", i, n)
		}
	}
	if last.Err() != nil {
		t.Errorf("a renewed lease was given up: %v", context.Cause(last))
	}
	close(gate)
}

func TestU143_a_renewal_tells_the_handler_what_the_feed_did_not(t *testing.T) {
	t.Parallel()
	status := func(status, reason string) error {
		err := calls.Refuse(base.CodeExecutionNotActive, "no")
		err.Current = map[string]any{"status": status, "reason": reason}
		return err
	}
	for name, c := range map[string]struct{ refusal, cause error }{
		"revoked":         {calls.Refuse(base.CodeLeaseRevoked, "no"), ErrLeaseRevoked},
		"taken over":      {calls.Refuse(base.CodeStaleLease, "no"), ErrLeaseLost},
		"lapsed":          {calls.Refuse(base.CodeLeaseExpired, "no"), ErrLeaseLost},
		"deleted":         {calls.Refuse(base.CodeExecutionNotFound, "no"), ErrLeaseLost},
		"cancelled":       {status("cancelled", "cancelled"), ErrCancelled},
		"expired":         {status("expired", "execution_deadline"), ErrDeadline},
		"attempt timeout": {status("failed", "attempt_timeout"), ErrAttemptTimeout},
		"completed":       {status("succeeded", "completed"), ErrLeaseLost},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begin := time.Unix(1_000_000, 0)
			host := clock.NewManual(begin)
			s := &scripted{clock: host}
			s.work.tasks = claimedTasks(1)
			s.work.beat = func([]api.Lease) (api.Heartbeat, error) {
				return api.Heartbeat{Registered: true, Leases: []api.Renewal{{Err: c.refusal}}}, nil
			}
			started, ended := make(chan struct{}), make(chan error, 1)
			stop := s.start(t, WorkerConfig{Concurrency: 1}, func(ctx context.Context, _ *Task, _ []byte) ([]byte, error) {
				close(started)
				<-ctx.Done()
				ended <- context.Cause(ctx)
				return nil, nil
			})
			<-started
			s.rest(t)
			host.TurnTo(begin.Add(10 * time.Second))
			if cause := <-ended; !errors.Is(cause, c.cause) {
				t.Errorf("the context ended with %v, want %v", cause, c.cause)
			}
			stop()
			if ops := s.work.ops(); len(ops) > 0 {
				t.Errorf("sent %q for a lease that is lost", ops)
			}
		})
	}
}

// rest waits until all loops of the worker wait for something: a clock that is turned before that misses the timers of some.
func (s *scripted) rest(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if err := s.family.Await(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestU145_an_ending_is_sent_again_until_it_is_answered(t *testing.T) {
	t.Parallel()
	s := &scripted{clock: clock.System()}
	s.work.tasks = claimedTasks(1)
	answered := make(chan struct{})
	tries := 0
	s.work.do = func(api.WorkItem) error {
		if tries++; tries < 3 {
			return calls.Refuse(base.CodeTimeout, "no answer")
		}
		close(answered)
		return nil
	}
	stop := s.start(t, WorkerConfig{Concurrency: 1}, func(context.Context, *Task, []byte) ([]byte, error) { return []byte("y"), nil })
	<-answered
	stop()
	if len(s.work.sent) != 3 {
		t.Fatalf("sent %d times, want 3", len(s.work.sent))
	}
	for _, item := range s.work.sent {
		if item.Op != api.OpComplete || item.Lease.Epoch != 1 || string(item.Result.Data) != "y" {
			t.Errorf("sent %+v", item)
		}
	}
}

func TestU145_claims_ask_for_free_slots_and_not_one_by_one_under_load(t *testing.T) {
	t.Parallel()
	s := &scripted{clock: clock.System()}
	const n = 400
	s.work.tasks = claimedTasks(n)
	var all sync.WaitGroup
	all.Add(n)
	stop := s.start(t, WorkerConfig{Concurrency: 64}, func(context.Context, *Task, []byte) ([]byte, error) {
		all.Done()
		return nil, nil
	})
	all.Wait()
	stop()
	keys := map[string]bool{}
	for i, claim := range s.work.claims {
		if claim.Max < 1 || claim.Max > 64 || i == 0 && claim.Max != 64 || keys[claim.RequestKey] || claim.Wait != 10*time.Second {
			t.Errorf("claim %d asks for %d, waits %s, under key %q", i, claim.Max, claim.Wait, claim.RequestKey)
		}
		keys[claim.RequestKey] = true
	}
	if len(s.work.claims) > 2*n/8 {
		t.Errorf("%d claims for %d tasks", len(s.work.claims), n)
	}
}

func TestU145_claims_side_by_side_never_ask_for_more_than_the_free_slots(t *testing.T) {
	t.Parallel()
	s := &scripted{clock: clock.System(), claims: 2}
	const n, slots = 400, 9
	s.work.tasks, s.work.lost = claimedTasks(n), map[string][]*api.Claimed{}
	asked := 0
	s.work.lose = func(r api.ClaimRequest) bool { // every third claim must be made again, which brings what the first one took
		asked++
		return asked%3 == 0
	}
	var all sync.WaitGroup
	all.Add(n)
	var running, most atomic.Int64
	stop := s.start(t, WorkerConfig{Concurrency: slots}, func(context.Context, *Task, []byte) ([]byte, error) {
		defer all.Done()
		defer running.Add(-1)
		if now := running.Add(1); now > most.Load() {
			most.Store(now)
		}
		return nil, nil
	})
	all.Wait()
	stop()
	if most.Load() > slots {
		t.Errorf("%d tasks at a time, want at most %d", most.Load(), slots)
	}
	largest := 0
	for _, claim := range s.work.claims {
		largest = max(largest, claim.Max)
	}
	if largest != 5 {
		t.Errorf("the largest claim asks for %d, want 5: its half of %d", largest, slots)
	}
}

func TestU145_trouble_that_lasts_is_logged_once_a_minute(t *testing.T) {
	t.Parallel()
	begin := time.Unix(1_000_000, 0)
	host := clock.NewManual(begin)
	var text bytes.Buffer
	r := &runner{quiet: quiet.New(slog.New(slog.NewTextHandler(&text, nil)), host)}
	for second := range 120 {
		host.TurnTo(begin.Add(time.Duration(second) * time.Second))
		r.complain("claim", errors.New("down"))
		r.complain("heartbeat", errors.New("down"))
	}
	if n := strings.Count(text.String(), "\n"); n != 4 {
		t.Errorf("%d lines in two minutes for two calls, want 4", n)
	}
	if n := strings.Count(text.String(), " count=60\n"); n != 2 {
		t.Errorf("%d lines tell how often it happened, want 2:\n%s", n, text.String())
	}
}

func TestU211_every_call_without_an_answer_is_counted_once(t *testing.T) {
	t.Parallel()
	s := &scripted{clock: clock.System()}
	s.work.tasks = claimedTasks(1)
	answered, tries := make(chan struct{}), 0
	s.work.do = func(api.WorkItem) error {
		if tries++; tries < 3 {
			return unavailable()
		}
		close(answered)
		return nil
	}
	w := NewWorker(s.client(), WorkerConfig{Concurrency: 1, Logger: slog.New(slog.DiscardHandler)})
	Handle(w, Kind[[]byte, []byte]("work"), func(context.Context, *Task, []byte) ([]byte, error) { return nil, nil })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	<-answered
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	shown := httptest.NewRecorder()
	w.Metrics().ServeHTTP(shown, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if !strings.Contains(shown.Body.String(), "\nff_worker_transport_errors_total 2\n") {
		t.Errorf("%s", shown.Body)
	}
}

func TestU211_a_task_costs_no_memory_for_its_metrics(t *testing.T) {
	w := NewWorker(nil, WorkerConfig{})
	Handle(w, Kind[[]byte, []byte]("work"), func(context.Context, *Task, []byte) ([]byte, error) { return nil, nil })
	task, ctx := &Task{handler: w.handlers[0]}, t.Context()
	if n := testing.AllocsPerRun(100, func() {
		task.handled(1000, outcomeOf(api.OpComplete))
		_ = w.meter.called(ctx, nil)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
