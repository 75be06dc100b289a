package txn

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
	"github.com/flowfabric/flowfabric/internal/store/sqlite"
)

// poison is a command with a fault: it changes something and then panics.
type poison struct{}

func (poison) Name() string           { return "poison" }
func (poison) Want(*store.Want, bool) {}
func (poison) Decide(u *Tx) error {
	u.Changes.Events = append(u.Changes.Events, core.Event{Kind: "poison.taken", AttemptIndex: -1})
	panic("a fault")
}

// remark is a command that does its work.
type remark struct{}

func (remark) Name() string           { return "remark" }
func (remark) Want(*store.Want, bool) {}
func (remark) Decide(u *Tx) error {
	u.Changes.Events = append(u.Changes.Events, core.Event{Kind: "remark.made", AttemptIndex: -1})
	return nil
}

func TestA_command_that_panics_fails_alone_and_changes_nothing(t *testing.T) {
	t.Parallel()
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "ff.db"), sqlite.Config{UnsafeDurability: true})
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	e, err := New(t.Context(), s, Config{Logger: slog.New(slog.NewTextHandler(&text, nil))})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	var batch []*Request
	add := func(c Command) *Request {
		r := &Request{Command: c, Done: make(chan struct{})}
		batch = append(batch, r)
		return r
	}
	var fine []*Request
	for range 5 {
		fine = append(fine, add(remark{}))
		if len(fine) == 2 {
			add(poison{})
		}
	}
	e.Process(batch)
	for i, r := range fine {
		if <-r.Done; r.Err != nil {
			t.Errorf("command %d: %v", i, r.Err)
		}
	}
	if <-batch[2].Done; base.CodeOf(batch[2].Err) != base.CodeInternal {
		t.Errorf("poison: %v", batch[2].Err)
	}
	commits, err := e.Log.Read(t.Context(), 0, LogRead)
	var events []core.Event
	for _, c := range commits {
		events = append(events, c.Events...)
	}
	if err != nil || len(events) < 5 {
		t.Errorf("%d events, %v", len(events), err)
	}
	for _, event := range events {
		if event.Kind == "poison.taken" {
			t.Error("what the command did before it panicked was written")
		}
	}
	if err := e.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if log := text.String(); strings.Count(log, "the engine panicked") != 1 || !strings.Contains(log, "poison_test.go") {
		t.Errorf("the log does not tell where it panicked:\n%s", log)
	}
}
