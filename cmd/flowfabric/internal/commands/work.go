package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"path/filepath"
	"sync"
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
		"finds FF_EXECUTION_ID, FF_ATTEMPT, FF_EFFECT_KEY, FF_LEASE and FF_SERVER in its environment, and gets SIGTERM when the lease is lost."
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
		return s.withClient(cmd, func(ctx context.Context, c flowfabric.Client) error {
			return s.runWorker(ctx, c, f, settings.Get[string](values, "server"), args)
		})
	}
	return cmd
}

// runWorker works until the user interrupts, which is a good end, or until enough tasks are done.
func (s *session) runWorker(ctx context.Context, c flowfabric.Client, f workFlags, server string, command []string) error {
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
		Command: command, Environ: s.Environ, Server: server, ContentType: f.contentType, Stderr: &oneAtATime{w: s.Err}, MaxResult: maxResult,
	}
	count := &tally{limit: f.tasks, reached: enough}
	w.Use(s.narrate(count))
	for _, kind := range f.kinds {
		flowfabric.Handle(w, flowfabric.Kind[flowfabric.Payload, flowfabric.Payload](kind), p.Handle)
	}
	s.printer.Note("working on %v in lanes %v with %v; Ctrl-C ends", f.kinds, f.lanes, command)
	err := w.Run(ctx)
	if err == nil && errors.Is(context.Cause(ctx), show.ErrTimeout) {
		return show.ErrTimeout
	}
	return err
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
