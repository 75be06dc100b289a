package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/program"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/settings"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
)

// maxResult is the largest result that a server can be configured to accept.
const maxResult = 64 << 20

// workFlags are the flags of work (U175).
type workFlags struct {
	kinds, lanes, capabilities []string
	concurrency, tasks         int
	name, contentType          string
	leaseTTL                   time.Duration
	exitOnDrain                bool
}

func (s *session) work() *cobra.Command {
	var f workFlags
	cmd := s.command("work --kind KIND -- COMMAND [ARGUMENT…]", "Run a program as a worker: it reads the input from stdin and writes the result to stdout", `
flowfabric work --kind upper --tasks 1 -- tr a-z A-Z
flowfabric work --kind resize --lane images --concurrency 4 -- ./resize.sh
flowfabric work --kind mail --capability smtp -- python3 mail.py
`, cobra.MinimumNArgs(1), nil)
	cmd.Long = "The command runs once per execution. Exit code 0 completes it, 75 requests a retry, any other code fails it permanently. What it writes\n" +
		"to stderr goes to the stream of the attempt, which flowfabric tail prints, and to stderr of the worker. The command\n" +
		"has FF_EXECUTION_ID, FF_ATTEMPT, FF_EFFECT_KEY, FF_LEASE and FF_SERVER in its environment, and TRACEPARENT, TRACESTATE and BAGGAGE if\n" +
		"the work was submitted in a trace. It gets SIGTERM when the lease is lost, and is killed 10 seconds later. Ctrl-C waits for running\n" +
		"commands; a second one gives the work back at once, a third one kills commands that are still running."
	fs := cmd.Flags()
	fs.StringSliceVar(&f.kinds, "kind", nil, "kinds of work to claim; required")
	fs.StringSliceVar(&f.lanes, "lane", []string{"default"}, "lanes to claim from")
	fs.StringSliceVar(&f.capabilities, "capability", nil, "capabilities of this worker")
	fs.IntVar(&f.concurrency, "concurrency", 1, "concurrent tasks")
	fs.IntVar(&f.tasks, "tasks", 0, "exit after this many tasks; 0: never")
	fs.StringVar(&f.name, "name", "", "name of the worker; default: the command's")
	fs.StringVar(&f.contentType, "content-type", "", "content type of results; default: detected")
	fs.BoolVar(&f.exitOnDrain, "exit-on-drain", false, "exit when an operator has asked this worker to drain and its tasks are done")
	fs.DurationVar(&f.leaseTTL, "lease-ttl", 0, "duration of a task's lease; default 30s")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		values, err := s.clientSettings(cmd)
		if err != nil {
			return err
		}
		if len(f.kinds) == 0 {
			return show.Invalid("--kind", "flowfabric work --kind KIND -- COMMAND", "the kind is missing")
		}
		if _, err := exec.LookPath(args[0]); err != nil {
			return show.Invalid("COMMAND", "", "%s", err)
		}
		return s.withClient(cmd, func(ctx context.Context, c *flowfabric.Client) error {
			return s.runWorker(ctx, c, f, settings.Get[string](values, "server"), args)
		})
	}
	return cmd
}

// runWorker works until the user interrupts, which is a success, or until enough tasks are done.
func (s *session) runWorker(ctx context.Context, c *flowfabric.Client, f workFlags, server string, command []string) error {
	ctx, enough := context.WithCancel(ctx)
	defer enough()
	name := f.name
	if name == "" {
		name = filepath.Base(command[0])
	}
	w := flowfabric.NewWorker(c, flowfabric.WorkerConfig{
		ID: name, Lanes: f.lanes, Capabilities: f.capabilities, Concurrency: f.concurrency, LeaseTTL: f.leaseTTL, Version: s.Version, ExitOnDrain: f.exitOnDrain,
		Logger: slog.New(slog.NewTextHandler(s.Err, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	p := &program.Program{
		Command: command, Environ: s.Environ, Hidden: confidential, Server: server, ContentType: f.contentType, Stderr: &oneAtATime{w: s.Err}, MaxResult: maxResult,
		Do: c.Work().Do,
	}
	count := &tally{limit: f.tasks, reached: enough}
	w.Use(s.narrate(count))
	for _, kind := range f.kinds {
		flowfabric.Handle(w, flowfabric.Kind[flowfabric.Payload, flowfabric.Payload](kind), p.Handle)
	}
	signals := make(chan os.Signal, 3)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	stopped := make(chan struct{})
	go hurry(w, signals, stopped) //nolint:gosec // G118: it is to outlast the context that Ctrl-C ends
	s.printer.Note("working on %v in lanes %v with %v; Ctrl-C ends", f.kinds, f.lanes, command)
	err := w.Run(ctx)
	close(stopped)
	if n := p.Running(); n > 0 {
		s.printer.Note("the work was given back; waiting for %d running commands", n)
	}
	p.Finish(signals)
	if err == nil && errors.Is(context.Cause(ctx), show.ErrTimeout) {
		return show.ErrTimeout
	}
	return err
}

// confidential reports whether a line of the environment contains a secret that this program reads from it.
func confidential(line string) bool {
	return settings.Confidential(line) || strings.HasPrefix(line, tokenVariable+"=")
}

// hurry makes the worker give everything back at the second signal, however early it comes. The first signal ends the context of
// the command. No signal ends this process before its programs have ended.
func hurry(w *flowfabric.Worker, signals <-chan os.Signal, stopped <-chan struct{}) {
	for range 2 {
		select {
		case <-signals:
		case <-stopped:
			return
		}
	}
	now, cancel := context.WithCancel(context.Background())
	cancel()
	_ = w.Drain(now) // its error is that it was interrupted
}

// narrate prints the outcome of every task, and counts them.
func (s *session) narrate(count *tally) flowfabric.Middleware {
	return func(next flowfabric.HandlerFunc) flowfabric.HandlerFunc {
		return func(ctx context.Context, t *flowfabric.Task) (flowfabric.Payload, error) {
			began := time.Now()
			result, err := next(ctx, t)
			if err == nil { // the worker logs failed attempts
				s.printer.Note("%s %s attempt %d: done in %s", t.Kind(), bareID(t.ID()), t.Attempt().Index, show.Span(time.Since(began)))
			}
			count.add()
			return result, err
		}
	}
}

// tally counts tasks and reports when the limit is reached.
type tally struct {
	mu      sync.Mutex
	n       int
	limit   int // 0: none
	reached func()
}

func (t *tally) add() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n++; t.n == t.limit {
		t.reached()
	}
}

// oneAtATime keeps lines of concurrent programs apart.
type oneAtATime struct {
	mu sync.Mutex
	w  io.Writer
}

func (o *oneAtATime) Write(data []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return fmt.Fprintf(o.w, "%s", data)
}
