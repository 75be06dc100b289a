package flowfabric_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/server"
)

// outage is a server that can go down and come back.
type outage struct {
	*httptest.Server
	down   atomic.Bool
	missed chan struct{} // requests that came while it was down
}

func newOutage(t testing.TB, client *flowfabric.Client) *outage {
	t.Helper()
	s, err := server.New(backend(client), server.Config{Open: true, Logger: silent()})
	if err != nil {
		t.Fatal(err)
	}
	o, handler := &outage{missed: make(chan struct{})}, s.Handler()
	o.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if o.down.Load() {
			select {
			case o.missed <- struct{}{}:
			default:
			}
			panic(http.ErrAbortHandler)
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		s.Drain()
		o.Close()
	})
	return o
}

// fall goes down, with every connection, and returns when somebody has missed it so often.
func (o *outage) fall(t testing.TB, often int) {
	t.Helper()
	o.down.Store(true)
	o.CloseClientConnections()
	for range often {
		receive(t, o.missed)
	}
}

func TestU145_a_worker_bridges_the_outage_of_its_server(t *testing.T) {
	t.Parallel()
	w := openWorld(t, stores["sqlite"](t), engine.Hooks{})
	o := newOutage(t, w.Client)
	remote := &world{Client: connect(t, o.URL, flowfabric.ConnectConfig{})}
	entered, gate := make(chan struct{}), make(chan struct{})
	var calls atomic.Int64
	remote.work(t, flowfabric.WorkerConfig{Concurrency: 2}, func(worker *flowfabric.Worker) {
		flowfabric.Handle(worker, double, func(_ context.Context, _ *flowfabric.Task, in int) (int, error) {
			if calls.Add(1) == 1 {
				entered <- struct{}{}
				<-gate
			}
			return 2 * in, nil
		})
	})
	ctx := inTime(t)
	first := must[*flowfabric.Run[int]](t)(double.Submit(ctx, w.Client, 1))
	receive(t, entered)
	o.fall(t, 3)
	close(gate) // its ending finds no server
	second := must[*flowfabric.Run[int]](t)(double.Submit(ctx, w.Client, 2))
	o.fall(t, 3)
	o.down.Store(false)
	for in, run := range map[int]*flowfabric.Run[int]{1: first, 2: second} {
		if got := must[int](t)(run.Result(ctx)); got != 2*in {
			t.Errorf("double %d = %d", in, got)
		}
	}
	if calls.Load() != 2 {
		t.Errorf("%d calls of the handler for two tasks", calls.Load())
	}
}

func TestU145_a_worker_that_drains_leaves_no_lease_behind(t *testing.T) {
	t.Parallel()
	w := openWorld(t, stores["sqlite"](t), engine.Hooks{})
	remote := w.overHTTP(t)
	ctx := inTime(t)
	var all []flowfabric.Submission
	for range 2000 {
		all = append(all, double.Submission(1))
	}
	must[[]flowfabric.SubmitResult](t)(w.SubmitMany(ctx, all))
	began := make(chan struct{}, len(all))
	_, stop := remote.work(t, flowfabric.WorkerConfig{Concurrency: 16}, func(worker *flowfabric.Worker) {
		flowfabric.Handle(worker, double, func(_ context.Context, _ *flowfabric.Task, in int) (int, error) {
			began <- struct{}{}
			return 2 * in, nil
		})
	})
	for range 100 {
		receive(t, began)
	}
	stop()
	running := ops.Filter{Status: []flowfabric.Status{flowfabric.StatusRunning}}
	if n := must[api.Count](t)(w.Executions().Count(ctx, running)).Total; n != 0 {
		t.Errorf("%d executions are leased to a worker that is gone", n)
	}
}

// deafServer does not notice that a caller has gone: its cancel takes a while to come.
func deafServer(t testing.TB, client *flowfabric.Client) string {
	t.Helper()
	s, err := server.New(backend(client), server.Config{Open: true, Logger: silent()})
	if err != nil {
		t.Fatal(err)
	}
	handler := s.Handler()
	deaf := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(w, r.WithContext(context.WithoutCancel(r.Context())))
	}))
	t.Cleanup(func() {
		s.Drain()
		deaf.Close()
	})
	return deaf.URL
}

func TestU145_a_worker_that_stops_does_not_take_what_it_hands_back(t *testing.T) {
	t.Parallel()
	for name, openStore := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := openWorld(t, openStore(t), engine.Hooks{})
			remote := &world{Client: connect(t, deafServer(t, w.Client), flowfabric.ConnectConfig{})}
			ctx := inTime(t)
			handler := newBlocked()
			cfg := flowfabric.WorkerConfig{Instance: "w-1", Concurrency: 4, DrainTimeout: time.Millisecond}
			_, stop := remote.work(t, cfg, func(worker *flowfabric.Worker) {
				flowfabric.Handle(worker, double, handler.handle)
			})
			run := must[*flowfabric.Run[int]](t)(double.Submit(ctx, w.Client, 21))
			receive(t, handler.started)
			awaitClaims(t, w, 1)
			stop()
			if x := must[*flowfabric.Execution](t)(w.Get(ctx, run.ID())); x.Status != flowfabric.StatusReady || x.PublicState != "resumable" {
				t.Fatalf("after the worker stopped: %s %s", x.Status, x.PublicState)
			}
			remote.work(t, cfg, func(worker *flowfabric.Worker) {
				flowfabric.Handle(worker, double, func(_ context.Context, _ *flowfabric.Task, in int) (int, error) { return 2 * in, nil })
			})
			if got := must[int](t)(run.Result(ctx)); got != 42 {
				t.Errorf("Result = %d", got)
			}
		})
	}
}
