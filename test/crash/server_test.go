package crash_test

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/internal/binary"
)

// built is the directory of the program that these stories kill.
func built() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("flowfabric-crash-%d", os.Getpid()))
}

// tidy removes what the tests have built.
type tidy struct{ tests interface{ Run() int } }

// Run runs the tests.
func (t tidy) Run() int {
	defer func() { _ = os.RemoveAll(built()) }()
	return t.tests.Run()
}

// program is the flowfabric program, built once.
var program = sync.OnceValues(func() (string, error) { return binary.In(built()) })

// served is a server in a process of its own.
type served struct {
	cmd     *exec.Cmd
	address string // host and port
	ended   chan struct{}
}

var listensAt = regexp.MustCompile(`http://(127\.0\.0\.1:[0-9]+)`)

// serve runs the program as a server and waits until it says where it listens.
func serve(t *testing.T, store string) *served {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	s := &served{cmd: exec.Command(path, "serve", "--store", store, "--listen", "127.0.0.1:0", "--unsafe-durability", "--insecure-open"), ended: make(chan struct{})}
	s.cmd.Env = []string{"HOME=" + t.TempDir()}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.cmd.Stderr = s.cmd.Stdout
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.kill)
	address, said := make(chan string, 1), &strings.Builder{}
	go func() {
		defer close(s.ended)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			fmt.Fprintln(said, lines.Text())
			if found := listensAt.FindStringSubmatch(lines.Text()); found != nil && len(address) == 0 {
				address <- found[1]
			}
		}
	}()
	select {
	case s.address = <-address:
	case <-s.ended:
		t.Fatalf("the server ended: %s", said)
	case <-time.After(10 * time.Minute):
		t.Fatal("the server does not say where it listens")
	}
	return s
}

// kill ends the process without a warning, once.
func (s *served) kill() {
	_ = s.cmd.Process.Kill()
	<-s.ended
	_ = s.cmd.Wait()
}

// road leads requests to the server of the moment, at an address of its own: a port that is given up may be taken by anybody.
type road struct {
	http.RoundTripper
	to atomic.Pointer[served] // nil: nowhere
}

func (r *road) RoundTrip(request *http.Request) (*http.Response, error) {
	server := r.to.Load()
	if server == nil {
		return nil, syscall.ECONNREFUSED
	}
	request = request.Clone(request.Context())
	request.URL.Host, request.Host = server.address, server.address
	return r.RoundTripper.RoundTrip(request)
}

func TestI1_I11_a_wait_of_a_remote_worker_outlives_kill_9_of_its_server_on_sqlite(t *testing.T) {
	t.Parallel()
	waitOutlivesServer(t, "sqlite:"+filepath.Join(t.TempDir(), "app.db"))
}

func TestI1_I11_a_wait_of_a_remote_worker_outlives_kill_9_of_its_server_on_postgres(t *testing.T) {
	t.Parallel()
	waitOutlivesServer(t, cluster.Database(t))
}

// waitOutlivesServer suspends work of a worker that speaks HTTP, kills the server, starts it again and signals: the same worker goes on
// with the work, once.
func waitOutlivesServer(t *testing.T, store string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	server := serve(t, store)
	own := &http.Transport{}
	defer own.CloseIdleConnections()
	r := &road{RoundTripper: own}
	r.to.Store(server)
	client, err := flowfabric.Connect("http://server", flowfabric.ConnectConfig{HTTP: &http.Client{Transport: r}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close(context.WithoutCancel(ctx)) }()
	var began, resumed atomic.Int32
	token := make(chan flowfabric.Waitpoint, 2)
	worker := flowfabric.NewWorker(client, flowfabric.WorkerConfig{Concurrency: 2}) // nothing runs when the server dies: no lease has to lapse
	flowfabric.Handle(worker, asks, func(ctx context.Context, task *flowfabric.Task, in string) (string, error) {
		began.Add(1)
		answer, err := flowfabric.AwaitSignal[string](ctx, task, "go", flowfabric.WaitOptions{Notify: func(_ context.Context, w flowfabric.Waitpoint) error {
			token <- w
			return nil
		}})
		if err != nil {
			return "", err
		}
		resumed.Add(1)
		return in + " " + answer, nil
	})
	workCtx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(workCtx) }()
	run, err := asks.Submit(ctx, client, "w")
	if err != nil {
		t.Fatal(err)
	}
	waitpoint := <-token
	suspendedNow(ctx, t, client, run.ID())

	r.to.Store(nil) // what is sent meanwhile fails
	server.kill()
	r.to.Store(serve(t, store))
	if x, err := client.Get(ctx, run.ID()); err != nil || x.Status != flowfabric.StatusSuspended || began.Load() != 1 {
		t.Errorf("after the kill: %+v %v, begun %d times", x, err, began.Load())
	}
	if _, err := client.Signal(ctx, signalOf("w", waitpoint.ID, waitpoint.Token.Reveal())); err != nil {
		t.Fatal(err)
	}
	if x, err := client.Wait(ctx, run.ID()); err != nil || x.Status != flowfabric.StatusSucceeded || !strings.Contains(string(x.Result.Data), "w yes to w") {
		t.Errorf("%+v %v", x, err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if began.Load() != 2 || resumed.Load() != 1 || len(token) != 0 {
		t.Errorf("the handler began %d times and went on %d times; %d more waitpoints", began.Load(), resumed.Load(), len(token))
	}
	want := map[string]int{
		"execution.submitted": 1, "lease.acquired": 2, "waitpoint.created": 1, "execution.suspended": 1, "signal.accepted": 1, "waitpoint.closed": 1,
		"execution.resumed": 1, "execution.completed": 1,
	}
	if got := toldOf(ctx, t, client)[run.ID()]; !maps.Equal(got, want) {
		t.Errorf("told %v, want %v", got, want)
	}
}

// suspendedNow waits until an execution is suspended.
func suspendedNow(ctx context.Context, t *testing.T, client *flowfabric.Client, id flowfabric.ID) {
	t.Helper()
	for {
		x, err := client.Get(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		if x.Status == flowfabric.StatusSuspended {
			return
		}
		<-time.After(time.Millisecond)
	}
}
