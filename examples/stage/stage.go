// Package stage is what the examples have in common: their flags, the place where a story plays, and how it is printed. It knows no
// story.
package stage

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/embedded"
)

// Story is an example.
type Story struct {
	Name string // as in go run ./examples/NAME
	Tell func(ctx context.Context, s *Stage) error
}

// Stage is the place where a story plays. Play fills in what is zero.
type Stage struct {
	Store  string // address as for embedded.Open: a temporary file unless it or a server is given
	Server string // address as for flowfabric.Connect; "": the engine runs in this process
	Key    string // API key for the server

	Out  io.Writer    // where the story is printed; default standard output
	Log  *slog.Logger // of engine and workers; default: errors, on standard error
	Self []string     // the command that tells this story, to start it once more; default this program

	// Name is that of this telling, such as crash-k3x9qa. Whatever the story makes has the name in it, so that the story can be told
	// again in the same place.
	Name string

	// Part is true in a process that Again has started: it does not tell the story, it plays the worker of it.
	Part bool

	points int
}

// PartVariable is set for a process that Again starts: to the name of the telling.
const PartVariable = "FLOWFABRIC_STORY_PART"

// Play tells a story, or in a process that Again has started the part of it.
func Play(ctx context.Context, story Story, s Stage) error {
	if s.Out == nil {
		s.Out = os.Stdout
	}
	if s.Log == nil {
		s.Log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	}
	if part := os.Getenv(PartVariable); part != "" {
		s.Name, s.Part = part, true
		return story.Tell(ctx, &s)
	}
	if s.Name == "" {
		s.Name = story.Name + "-" + strings.ToLower(rand.Text()[:6])
	}
	if len(s.Self) == 0 {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		s.Self = []string{self}
	}
	if s.Store == "" && s.Server == "" {
		dir, err := os.MkdirTemp("", "flowfabric-"+story.Name)
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		s.Store = "sqlite:" + filepath.Join(dir, "app.db")
	}
	return story.Tell(ctx, &s)
}

// Open is the client of the story: an engine in this process, or that of the server.
func (s *Stage) Open(ctx context.Context) (*flowfabric.Client, error) {
	if s.Server != "" {
		return flowfabric.Connect(s.Server, flowfabric.ConnectConfig{APIKey: s.Key})
	}
	return embedded.Open(ctx, s.Store, embedded.Config{EngineConfig: flowfabric.EngineConfig{
		Logger: s.Log, Webhooks: api.WebhookTargets{AllowLoopback: true}, // stories receive on this host
	}})
}

// AgainOn is Again with another server: one that the story itself is.
func (s *Stage) AgainOn(ctx context.Context, server string) *exec.Cmd {
	there := *s
	there.Store, there.Server = "", server
	return there.Again(ctx)
}

// Again is this program once more, on the same stage, to play the part of the story.
func (s *Stage) Again(ctx context.Context) *exec.Cmd {
	args := slices.Clone(s.Self[1:])
	if s.Store != "" {
		args = append(args, "--store="+s.Store)
	}
	if s.Server != "" {
		args = append(args, "--server="+s.Server)
	}
	again := exec.CommandContext(ctx, s.Self[0], args...)
	again.Env = append(os.Environ(), PartVariable+"="+s.Name, keyVariable+"="+s.Key)
	again.Stderr = os.Stderr
	return again
}

// Say tells the next point of the story.
func (s *Stage) Say(format string, args ...any) {
	s.points++
	fmt.Fprintf(s.Out, "%d. %s\n", s.points, fmt.Sprintf(format, args...))
}

// Show tells a detail of the point.
func (s *Stage) Show(format string, args ...any) {
	fmt.Fprintf(s.Out, "   %s\n", fmt.Sprintf(format, args...))
}

// ShowEvents tells what happened to an execution, from a position in the log on, and answers the position after it.
func (s *Stage) ShowEvents(ctx context.Context, c *flowfabric.Client, id flowfabric.ID, after string) (next string, err error) {
	page, err := c.Events().Read(ctx, ops.ReadOptions{After: after, EventFilter: ops.EventFilter{ExecutionID: id}})
	if err != nil {
		return "", err
	}
	for _, event := range page.Events {
		s.Show("%s %s", event.At.Format("15:04:05.000"), event.Kind)
	}
	return page.Next, nil
}

// Await waits until an event of that kind has happened to an execution.
func Await(ctx context.Context, c *flowfabric.Client, id flowfabric.ID, kind string) error {
	options := ops.ReadOptions{After: api.FromStart, Wait: awaitPiece, EventFilter: ops.EventFilter{ExecutionID: id, Kinds: []string{kind}}}
	for {
		page, err := c.Events().Read(ctx, options)
		if err != nil || len(page.Events) > 0 {
			return err
		}
		options.After = page.Next
	}
}

// awaitPiece is how long one read of Await waits.
const awaitPiece = 10 * time.Second

// Start runs a worker until stop is called, which lets it finish what it has.
func Start(ctx context.Context, w *flowfabric.Worker) (stop func() error) {
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	return func() error {
		if err := w.Drain(context.WithoutCancel(ctx)); err != nil {
			return err
		}
		return <-ended
	}
}
