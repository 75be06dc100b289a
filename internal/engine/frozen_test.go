//go:build unix

package engine_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store/postgres"
)

// variableFrozen tells this test binary that it was started to be frozen, and what it has to do.
const variableFrozen = "FF_TEST_FROZEN"

func init() { //nolint:gochecknoinits // it is there on Unix only, and TestMain everywhere
	if text := os.Getenv(variableFrozen); text != "" {
		startedFor = func() int { return freeze(text) }
	}
}

// frozenDeed is what a process does that freezes in its transaction.
type frozenDeed struct {
	URL   string
	ID    base.GivenID
	Fence core.Fence
}

// freeze completes an execution, and stops the whole process when it has locked everything and is about to commit.
func freeze(text string) int {
	var deed frozenDeed
	err := json.Unmarshal([]byte(text), &deed)
	if err == nil {
		err = deed.do(context.Background())
	}
	fmt.Println("done", err)
	return 0
}

func (d *frozenDeed) do(ctx context.Context) error {
	now := func() base.Time { return base.TimeOf(start) }
	s, err := postgres.Open(ctx, d.URL, postgres.Config{Now: now, PoolSize: 4, UnsafeDurability: true})
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	e, err := engine.Open(ctx, s, engine.Config{NoTimers: true, Probe: &freezer{}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	_, err = e.Complete(ctx, client, d.ID, d.Fence, nil)
	return err
}

// freezer stops the process before its first commit of a completion.
type freezer struct{ frozen bool }

func (f *freezer) BeforeCommit(commands []string) error {
	if f.frozen || !slices.Contains(commands, "complete") {
		return nil
	}
	f.frozen = true
	woken := make(chan os.Signal, 1)
	signal.Notify(woken, syscall.SIGCONT)
	fmt.Println("inside")
	if err := syscall.Kill(os.Getpid(), syscall.SIGSTOP); err != nil {
		return err
	}
	<-woken
	return nil
}

func (f *freezer) AfterCommit([]string) error { return nil }

// freezes starts a process that completes the task and is frozen in its transaction. thaw lets it go on, and returns its last words.
func (w *world) freezes(task engine.Task) (thaw func() string) {
	w.t.Helper()
	text := must(json.Marshal(frozenDeed{w.url, given(task), fence(task)}))(w.t)
	cmd := exec.CommandContext(w.t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), variableFrozen+"="+string(text))
	out := must(cmd.StdoutPipe())(w.t)
	ok(w.t, cmd.Start())
	w.t.Cleanup(func() { _ = cmd.Process.Kill() })
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "inside" {
		w.t.Fatalf("the process that is to be frozen says %q", lines.Text())
	}
	return func() string {
		ok(w.t, cmd.Process.Signal(syscall.SIGCONT))
		lines.Scan()
		said := lines.Text()
		ok(w.t, cmd.Wait())
		return said
	}
}

func TestS73_a_process_that_is_frozen_in_its_transaction_holds_others_up_for_a_moment_only(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{}, func(t *testing.T, w *world) {
		flow, tasks := w.claimedMembers(4)
		w.unrelated(w.e, -1)
		thaw := w.freezes(tasks[0])
		answers := make(chan error, 2)
		for _, task := range tasks[1:3] {
			go func() { answers <- insisting(func() error { return succeeds(w.e, w, task) }) }()
		}
		for round := range 5 {
			w.unrelated(w.e, round)
		}
		for range 2 { // that process is frozen still
			ok(t, <-answers)
		}
		w.is(given(tasks[0]), core.Running, core.ReasonNone)
		if said := thaw(); !strings.HasPrefix(said, "done <nil>") {
			t.Fatalf("back from its sleep it says %q", said)
		}
		w.complete(tasks[3])
		w.flowBecomes(flow, core.FlowCompleted)
		w.consistent(flow)
	})
}
