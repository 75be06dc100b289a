// Package story is the shell-worker example: everything that a worker does is HTTP and JSON, so curl and jq make one. And any program
// that reads and writes is one under flowfabric work.
package story

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/examples/stage"
	"github.com/flowfabric/flowfabric/flowfabrichttp"
)

// script is the worker.
//
//go:embed worker.sh
var script []byte

// Picture is the input of the script's work.
type Picture struct {
	Name  string `json:"name"`
	Width int    `json:"width"`
}

// Thumbnail is its result.
type Thumbnail struct {
	Thumbnail string `json:"thumbnail"`
}

// The kinds of work: of the script, and of tr.
const (
	MakeThumbnail flowfabric.Kind[Picture, Thumbnail] = "thumbnail"
	Upper         flowfabric.Kind[string, string]     = "upper"
)

// Tell tells the story. program is the flowfabric program; "": it is built from the tree that the process runs in.
func Tell(ctx context.Context, s *stage.Stage, program string) error {
	for _, tool := range []string{"sh", "curl", "jq", "tr"} {
		if _, err := exec.LookPath(tool); err != nil {
			return &stage.Misuse{Text: "the story needs " + tool + ", which is not installed"}
		}
	}
	dir, err := os.MkdirTemp("", "flowfabric-shell-worker")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	client, err := s.Open(ctx)
	if err != nil {
		return err
	}
	defer client.Close(ctx)
	address, stop, err := s.Served(ctx, client, flowfabrichttp.Config{Open: true})
	if err != nil {
		return err
	}
	t := teller{s, client, address, dir}
	if err = t.byScript(ctx); err == nil {
		err = t.byProgram(ctx, program)
	}
	return errors.Join(err, stop())
}

// teller tells the story on a server.
type teller struct {
	*stage.Stage
	client  *flowfabric.Client
	address string
	dir     string // for files
}

// byScript lets the script do four pieces of work, one of which waits for a signal on the way.
func (t teller) byScript(ctx context.Context) error {
	t.Say("A worker of curl and jq takes work from %s.", t.address)
	policy := flowfabric.Policy{Retry: &flowfabric.RetryPolicy{Backoff: flowfabric.Backoff{Strategy: "fixed"}}}
	var runs []*flowfabric.Run[Thumbnail]
	for _, picture := range []Picture{{"alps", 120}, {"blurred", 64}, {"nothing", 0}, {"poster", 4000}} {
		run, err := MakeThumbnail.Submit(ctx, t.client, picture, flowfabric.SubmitOptions{Lane: t.Name, Policy: &policy})
		if err != nil {
			return err
		}
		runs = append(runs, run)
	}
	wait, err := t.startScript(ctx)
	if err != nil {
		return err
	}
	for _, run := range runs {
		if _, err := run.Wait(ctx); err != nil {
			return errors.Join(err, wait())
		}
	}
	// An operator tells the worker to finish what it has and leave. It hears it with its next claim.
	err = t.client.Workers().Drain(ctx, ops.WorkerTarget{InstanceID: t.Name})
	if err := errors.Join(err, wait()); err != nil {
		return err
	}
	t.Say("How it ended:")
	for _, run := range runs {
		x, err := t.client.Get(ctx, run.ID())
		if err != nil {
			return err
		}
		t.Show("%s %s, attempts: %d, %s", x.ID, x.Status, x.TotalAttempts, outcome(x))
	}
	return nil
}

func outcome(x *flowfabric.Execution) string {
	if x.Failure != nil && x.Status == flowfabric.StatusFailed {
		return x.Failure.Message
	}
	return string(x.Result.Data)
}

// startScript starts the worker. wait returns when it has left, and all its output was printed.
func (t teller) startScript(ctx context.Context) (wait func() error, err error) {
	file := filepath.Join(t.dir, "worker.sh")
	if err := os.WriteFile(file, script, 0o600); err != nil {
		return nil, err
	}
	worker := exec.CommandContext(ctx, "sh", file)
	worker.Env = append(os.Environ(), "FF_SERVER="+t.address, "FF_API_KEY="+t.Key, "LANE="+t.Name, "INSTANCE="+t.Name)
	worker.Stderr = os.Stderr
	out, err := worker.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := worker.Start(); err != nil {
		return nil, err
	}
	told := make(chan struct{})
	go func() {
		defer close(told)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			t.Show("worker.sh: %s", lines.Text())
		}
	}()
	return func() error {
		<-told
		if err := worker.Wait(); err != nil {
			return fmt.Errorf("worker.sh: %w", err)
		}
		return nil
	}, nil
}

// byProgram lets tr do a piece of work.
func (t teller) byProgram(ctx context.Context, program string) error {
	if program == "" {
		program = filepath.Join(t.dir, "flowfabric")
		build := exec.CommandContext(ctx, "go", "build", "-o", program, "github.com/flowfabric/flowfabric/cmd/flowfabric")
		if out, err := build.CombinedOutput(); err != nil {
			return &stage.Misuse{Text: fmt.Sprintf("the flowfabric program cannot be built here (%s): give it with -flowfabric PATH\n%s", err, out)}
		}
	}
	t.Say("With flowfabric work any program is a worker, here tr.")
	run, err := Upper.Submit(ctx, t.client, "hello from tr", flowfabric.SubmitOptions{Lane: t.Name})
	if err != nil {
		return err
	}
	worker := exec.CommandContext(ctx, program, "work", "--server", t.address, "--kind", string(Upper), "--lane", t.Name, "--tasks", "1", "--", "tr", "a-z", "A-Z")
	worker.Env = append(os.Environ(), "FF_API_KEY="+t.Key)
	if out, err := worker.CombinedOutput(); err != nil {
		return fmt.Errorf("flowfabric work: %w\n%s", err, out)
	}
	result, err := run.Result(ctx)
	t.Show("%s: %s", run.ID(), result)
	return err
}
