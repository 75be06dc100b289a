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

// maxResult is the largest result that a server may be set to take.
const maxResult = 64 << 20

// workFlags are the flags of work (U175).
type workFlags struct {
	kinds, lanes, capabilities []string
	concurrency, tasks         int
	name, contentType          string
	leaseTTL                   time.Duration
}

func (s *session) work() *cobra.Command {
	var f workFlags
	cmd := s.command("work --kind KIND -- COMMAND [ARGUMENT…]", "Work with any program: input on its standard input, result from its standard output", `
flowfabric work --kind upper --tasks 1 -- tr a-z A-Z
flowfabric work --kind resize --lane images --concurrency 4 -- ./resize.sh
flowfabric work --kind mail --capability smtp -- python3 mail.py
`, cobra.MinimumNArgs(1), nil)
	cmd.Long = "Every piece of work runs the command once. Exit 0 completes it, 75 asks for a retry, anything else fails it for good. The command\n" +
		"finds FF_EXECUTION_ID, FF_ATTEMPT, FF_EFFECT_KEY, FF_LEASE and FF_SERVER in its environment, and TRACEPARENT, TRACESTATE and BAGGAGE if\n" +
		"the work was submitted in a trace. It gets SIGTERM when the lease is lost, and is killed 10 seconds later. Ctrl-C lets what runs end; a\n" +
		"second one hands the work back at once, a third one kills the commands that have not ended."
	fs := cmd.Flags()
	fs.StringSliceVar(&f.kinds, "kind", nil, "kinds of work to take; required")
	fs.StringSliceVar(&f.lanes, "lane", []string{"default"}, "lanes to take from")
	fs.StringSliceVar(&f.capabilities, "capability", nil, "what work may require")
	fs.IntVar(&f.concurrency, "concurrency", 1, "how many at a time")
	fs.IntVar(&f.tasks, "tasks", 0, "leave after so many; 0: never")
	fs.StringVar(&f.name, "name", "", "name of the worker; the command's if absent")
	fs.StringVar(&f.contentType, "content-type", "", "content type of results; absent: by what they are")
	fs.DurationVar(&f.leaseTTL, "lease-ttl", 0, "lease of a task; 30s if absent")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		values, err := s.clientSettings(cmd)
		if err != nil {
			return err
		}
		if len(f.kinds) == 0 {
			return show.Invalid("--kind", "flowfabric work --kind KIND -- COMMAND", "no kind of work is named")
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

// runWorker works until the user interrupts, which is a good end, or until enough tasks are done.
func (s *session) runWorker(ctx context.Context, c *flowfabric.Client, f workFlags, server string, command []string) error {
	ctx, enough := context.WithCancel(ctx)
	defer enough()
	name := f.name
	if name == "" {
		name = filepath.Base(command[0])
	}
	w := flowfabric.NewWorker(c, flowfabric.WorkerConfig{
		ID: name, Lanes: f.lanes, Capabilities: f.capabilities, Concurrency: f.concurrency, LeaseTTL: f.leaseTTL, Version: s.Version,
		Logger: slog.New(slog.NewTextHandler(s.Err, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	p := &program.Program{
		Command: command, Environ: s.Environ, Hidden: confidential, Server: server, ContentType: f.contentType, Stderr: &oneAtATime{w: s.Err}, MaxResult: maxResult,
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
		s.printer.Note("the work is handed back; waiting for %d that still run", n)
	}
	p.Finish(signals)
	if err == nil && errors.Is(context.Cause(ctx), show.ErrTimeout) {
		return show.ErrTimeout
	}
	return err
}

// confidential reports whether a line of the environment holds a secret that this program reads from there.
func confidential(line string) bool {
	return settings.Confidential(line) || strings.HasPrefix(line, tokenVariable+"=")
}

// hurry makes the worker hand everything back at the second signal, however early that comes. The first one ends the context of the
// command. No signal ends this process before its programs have ended.
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
	_ = w.Drain(now) // its error is that it was in a hurry
}

// narrate tells how every task went, and counts them.
func (s *session) narrate(count *tally) flowfabric.Middleware {
	return func(next flowfabric.HandlerFunc) flowfabric.HandlerFunc {
		return func(ctx context.Context, t *flowfabric.Task) (flowfabric.Payload, error) {
			began := time.Now()
			result, err := next(ctx, t)
			if err != nil {
				s.printer.Note("%s %s attempt %d: %s", t.Kind(), bareID(t.ID()), t.Attempt().Index, err)
			} else {
				s.printer.Note("%s %s attempt %d: done in %s", t.Kind(), bareID(t.ID()), t.Attempt().Index, show.Span(time.Since(began)))
			}
			count.add()
			return result, err
		}
	}
}

// tally counts tasks and tells when there were enough.
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

// oneAtATime keeps the lines of programs that run at once apart from each other.
type oneAtATime struct {
	mu sync.Mutex
	w  io.Writer
}

func (o *oneAtATime) Write(data []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return fmt.Fprintf(o.w, "%s", data)
}
