package examples

import (
	"bufio"
	"bytes"
	"context"
	"log/slog"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/embedded"
	"github.com/flowfabric/flowfabric/flowfabrichttp"
	"github.com/flowfabric/flowfabric/internal/aptget"
	"github.com/flowfabric/flowfabric/ops"
)

// pythonWorker is examples/python-worker while it runs.
type pythonWorker struct {
	*flowfabric.Client
	lines chan string // that it prints; closed at its end
}

func startPython(t *testing.T, store string) *pythonWorker {
	t.Helper()
	if err := aptget.Need(t.Context(), "python3"); err != nil {
		t.Fatal(err)
	}
	ctx := careless(context.WithoutCancel(t.Context()))
	client, err := embedded.Open(ctx, store, embedded.Config{EngineConfig: flowfabric.EngineConfig{Logger: slog.New(slog.DiscardHandler)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	handler, err := flowfabrichttp.New(client, flowfabrichttp.Config{Open: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	w := &pythonWorker{Client: client, lines: make(chan string, 100)}
	program := exec.CommandContext(ctx, "python3", "../../examples/python-worker/worker.py")
	program.Env = append(program.Environ(), "FF_SERVER="+server.URL)
	out, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	program.Stderr = t.Output()
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for scan := bufio.NewScanner(out); scan.Scan(); {
			w.lines <- scan.Text()
		}
		close(w.lines)
		if err := program.Wait(); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() {
		_ = program.Process.Kill() // it has ended, unless the test failed
		<-ended
	})
	return w
}

// says waits until the worker prints a line that begins so.
func (w *pythonWorker) says(t *testing.T, want string) {
	t.Helper()
	for line := range w.lines {
		if strings.HasPrefix(line, want) {
			return
		}
	}
	t.Fatalf("the worker ended without %q", want)
}

func (w *pythonWorker) order(t *testing.T, input string) api.ID {
	t.Helper()
	done, err := w.Submit(t.Context(), flowfabric.Submission{Kind: "order", Input: flowfabric.Payload{Data: []byte(input), ContentType: "application/json"}})
	if err != nil {
		t.Fatal(err)
	}
	return done.ID
}

// bare is an id as the HTTP API shows it.
func bare(id api.ID) string { return string(id)[strings.LastIndex(string(id), ":")+1:] }

// ended returns an execution at its end.
func (w *pythonWorker) ended(t *testing.T, id api.ID) *flowfabric.Execution {
	t.Helper()
	x, err := w.Wait(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func TestU245_a_worker_of_the_python_standard_library_claims_renews_waits_cancels_and_drains(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../examples/python-worker/worker.py")
	if lines := bytes.Count(text, []byte("\n")); err != nil || lines > 100 {
		t.Errorf("the worker has %d lines: the page promises 100 at most (%v)", lines, err)
	}
	for name, store := range map[string]string{"sqlite": sqliteStore(t), "postgres": cluster.Database(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := startPython(t, store)
			plain, bad := w.order(t, `{"amount":5}`), w.order(t, `{"amount":6,"bad":true}`)
			if x := w.ended(t, plain); x.Status != "succeeded" || !strings.Contains(string(x.Result.Data), `"paid": 5`) {
				t.Errorf("%s %s", x.Status, x.Result.Data)
			}
			if x := w.ended(t, bad); x.Status != "failed" || x.Failure.Category != "bad_order" {
				t.Errorf("%+v", x)
			}
			w.says(t, bare(w.order(t, `{"count":5}`))+" fail") // an error of the handler is reported, and the worker goes on
			pythonWaits(t, w)
			pythonStops(t, w)
		})
	}
}

// pythonWaits has the worker wait for a callback; the step before the wait is not run again.
func pythonWaits(t *testing.T, w *pythonWorker) {
	t.Helper()
	id := w.order(t, `{"amount":7,"ask":true}`)
	w.says(t, bare(id)+" suspend")
	for listed, err := range w.Waitpoints().List(t.Context(), ops.WaitpointQuery{ExecutionID: id}) {
		if err != nil {
			t.Fatal(err)
		}
		waitpoint, err := w.Waitpoints().Token(t.Context(), id, listed.ID)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Signal(t.Context(), flowfabric.Signal{WaitpointID: listed.ID, Token: waitpoint.Token, Name: "shipped"}); err != nil {
			t.Fatal(err)
		}
	}
	x := w.ended(t, id)
	if x.Status != "succeeded" || !strings.Contains(string(x.Result.Data), `"signals": 1`) {
		t.Errorf("%s %s", x.Status, x.Result.Data)
	}
	if steps, err := w.Executions().Steps(t.Context(), id); err != nil || len(steps) != 1 {
		t.Errorf("%+v %v", steps, err)
	}
}

// pythonStops cancels work that runs, and then has the worker drain.
func pythonStops(t *testing.T, w *pythonWorker) {
	t.Helper()
	id := w.order(t, `{"amount":8,"seconds":600}`)
	watch, err := w.Get(t.Context(), id)
	for err == nil && watch.Status != "running" {
		watch, err = w.Get(t.Context(), id)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Cancel(t.Context(), id, "not wanted"); err != nil {
		t.Fatal(err)
	}
	w.says(t, bare(id)+" given up: 409") // by a renewal, or by its step if the cancel came before that
	for worker, err := range w.Workers().List(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Workers().Drain(t.Context(), ops.WorkerTarget{InstanceID: worker.InstanceID}); err != nil {
			t.Fatal(err)
		}
	}
	w.says(t, "drained")
}
