package flowfabric

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/flowfabric/flowfabric/internal/calls"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// WorkerConfig configures a Worker. The zero value is ready to use.
type WorkerConfig struct {
	ID           string        // logical name; default the program's
	Instance     string        // unique per process; default host-pid-random
	Lanes        []string      // {"default"}
	Capabilities []string      // offered to executions that require capabilities
	Concurrency  int           // maximum concurrent tasks; default 4 × GOMAXPROCS
	LeaseTTL     time.Duration // default 30 s; renewed after a third of it, given up 5 s early (a sixth if that is less) by this host's monotonic clock
	DrainTimeout time.Duration // default 30 s: how long handlers may continue once Run is stopped
	Version      string        // shown in the list of workers
	// Retry says how attempts that this worker fails are retried if the submission does not; nil: the default of the lane, else that of
	// the engine. It takes effect with the first attempt that fails here, and is shown by get and explain.
	Retry  *RetryPolicy
	Logger *slog.Logger // default slog.Default()
	// ExitOnDrain makes Run return nil after an operator has asked the instance to drain and its handlers have ended; otherwise it
	// waits until the drain is ended.
	ExitOnDrain bool
}

// Bounds and defaults of a WorkerConfig.
const (
	defaultLane         = "default"
	defaultLeaseTTL     = 30 * time.Second
	defaultDrainTimeout = 30 * time.Second
	minLeaseTTL         = 500 * time.Millisecond
	maxLeaseTTL         = 24 * time.Hour
	maxLanes            = 64
)

// Worker claims work and calls handlers. It runs once: make a new one to run again.
type Worker struct {
	client *Client
	cfg    WorkerConfig
	meter  *workerMeter

	mu         sync.Mutex
	handlers   []*handler
	middleware []Middleware
	problems   []error
	runner     *runner // nil before Run
}

// NewWorker returns a worker; it does nothing until Run, which also reports errors in cfg.
func NewWorker(c *Client, cfg WorkerConfig) *Worker {
	w := &Worker{client: c, cfg: cfg.withDefaults()}
	w.meter = newWorkerMeter(w.registered)
	return w
}

// registered returns the registered handlers.
func (w *Worker) registered() []*handler {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.handlers)
}

func (cfg WorkerConfig) withDefaults() WorkerConfig {
	if cfg.ID == "" {
		cfg.ID = nameOf(filepath.Base(os.Args[0]))
	}
	if cfg.Instance == "" {
		cfg.Instance = newInstance()
	}
	if len(cfg.Lanes) == 0 {
		cfg.Lanes = []string{defaultLane}
	}
	if cfg.Concurrency == 0 {
		cfg.Concurrency = 4 * runtime.GOMAXPROCS(0)
	}
	if cfg.LeaseTTL == 0 {
		cfg.LeaseTTL = defaultLeaseTTL
	}
	if cfg.DrainTimeout == 0 {
		cfg.DrainTimeout = defaultDrainTimeout
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	return cfg
}

// newInstance generates the name of this process.
func newInstance() string {
	host, err := os.Hostname()
	if err != nil {
		host = "host"
	}
	var random [4]byte
	rand.Read(random[:]) // never fails (crypto/rand)
	return fmt.Sprintf("%s-%d-%s", nameOf(host), os.Getpid(), hex.EncodeToString(random[:]))
}

// nameOf makes a text valid as the name of a worker: without white space and control characters.
func nameOf(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			return '_'
		}
		return r
	}, text)
}

// validate returns all errors in the configuration.
func (cfg WorkerConfig) validate() []error {
	var problems []error
	refuse := func(field, format string, args ...any) {
		err := calls.Refuse(base.CodeInvalidArgument, format, args...)
		err.Field = field
		problems = append(problems, err)
	}
	if cfg.Concurrency < 1 {
		refuse("Concurrency", "%d tasks at a time, want at least 1", cfg.Concurrency)
	}
	if cfg.LeaseTTL < minLeaseTTL || cfg.LeaseTTL > maxLeaseTTL {
		refuse("LeaseTTL", "%s, want %s..%s", cfg.LeaseTTL, minLeaseTTL, maxLeaseTTL)
	}
	if cfg.DrainTimeout < 0 {
		refuse("DrainTimeout", "%s is negative", cfg.DrainTimeout)
	}
	if len(cfg.Lanes) > maxLanes {
		refuse("Lanes", "%d lanes, at most %d", len(cfg.Lanes), maxLanes)
	}
	return problems
}

// Use wraps middleware around every handler, the first outermost. Call it before Run.
func (w *Worker) Use(m ...Middleware) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.middleware = append(w.middleware, m...)
}

// Run claims work and calls handlers until ctx ends. Then it claims nothing more and lets handlers end; after DrainTimeout the
// contexts of those that still run end with ErrShuttingDown, and their work is handed back without using up an attempt. A second
// interrupt or termination signal to the process in the meantime hands everything back at once.
//
// It keeps trying through trouble with the store, without a time limit. Run returns an error only if the configuration or the
// credentials are wrong: invalid_argument, invalid_capabilities, instance_id_taken, and the classes unauthenticated and
// forbidden.
func (w *Worker) Run(ctx context.Context) error {
	r, err := w.begin()
	if err != nil {
		return err
	}
	return r.run(ctx)
}

// begin checks the configuration and makes the one runner of this worker.
func (w *Worker) begin() (*runner, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.runner != nil {
		return nil, calls.Refuse(base.CodeInvalidArgument, "the worker has been run before").At("", "make a new worker to run again")
	}
	problems := slices.Concat(w.cfg.validate(), w.problems)
	if w.client == nil {
		problems = append(problems, calls.Refuse(base.CodeInvalidArgument, "there is no client").At("client", "hand one to NewWorker"))
	}
	if len(w.handlers) == 0 {
		problems = append(problems, calls.Refuse(base.CodeInvalidArgument, "there is no handler").At("handlers", "register one with Handle"))
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	for _, h := range w.handlers {
		h.call = h.do
		for _, m := range slices.Backward(w.middleware) {
			h.call = m(h.call)
		}
	}
	w.runner = newRunner(w)
	return w.runner, nil
}

// Drain stops claiming and waits for the running handlers, however long they take; Run then returns. If ctx ends first,
// everything is handed back at once and Drain returns its error. Before Run it does nothing.
func (w *Worker) Drain(ctx context.Context) error {
	w.mu.Lock()
	r := w.runner
	w.mu.Unlock()
	if r == nil {
		return nil
	}
	r.drain()
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
	}
	r.handBackNow()
	<-r.done
	return context.Cause(ctx)
}
