package engine_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

// filling is a store whose disk may be full.
type filling struct {
	store.Store
	full atomic.Bool
}

func (s *filling) Begin(ctx context.Context, want store.Want) (store.Tx, *store.Loaded, error) {
	tx, loaded, err := s.Store.Begin(ctx, want)
	return fillingTx{tx, s}, loaded, err
}

type fillingTx struct {
	store.Tx
	s *filling
}

func (tx fillingTx) Commit(ctx context.Context, ch *store.Changes) error {
	if tx.s.full.Load() {
		tx.Rollback(ctx)
		return store.NoRoom(errors.New("no space left on device"))
	}
	return tx.Tx.Commit(ctx, ch)
}

func TestU114_U165_a_full_store_is_told_by_its_code_by_doctor_and_by_one_line_of_the_log(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{Clock: turned}, func(t *testing.T, w *world) {
		closeEngine(t, w.e)
		disk, log := &filling{Store: w.store}, &lines{}
		w.cfg.Logger = slog.New(slog.NewTextHandler(log, nil))
		w.e = w.openEngine(disk)
		same(t, "at first", w.e.StoreState(w.ctx()), engine.StoreOK)
		disk.full.Store(true)
		for range 20 {
			_, err := w.e.Submit(w.ctx(), client, core.Submission{Kind: "k"})
			same(t, "a submit", base.CodeOf(err), base.CodeStoreFull)
		}
		same(t, "while it is full", w.e.StoreState(w.ctx()), engine.StoreFull)
		same(t, "doctor", checkOf(w.e.Doctor(w.ctx(), engine.DefaultBounds()), "disk").State, engine.CheckFail)
		same(t, "lines", log.count("nothing can be written"), 1)

		disk.full.Store(false)
		w.turn(1000)
		same(t, "with room again", w.e.StoreState(w.ctx()), engine.StoreOK)
		same(t, "lines", [2]int{log.count("nothing can be written"), log.count("the store has room again")}, [2]int{1, 1})
		w.submit(core.Submission{})
	})
}

// Small changes may have room where large ones have none: the log is not filled with both in turn.
func TestU217_a_store_that_is_nearly_full_is_told_once(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{Clock: turned}, func(t *testing.T, w *world) {
		closeEngine(t, w.e)
		disk, log := &filling{Store: w.store}, &lines{}
		w.cfg.Logger = slog.New(slog.NewTextHandler(log, nil))
		w.e = w.openEngine(disk)
		for range 20 {
			disk.full.Store(true)
			_, err := w.e.Submit(w.ctx(), client, core.Submission{Kind: "k"})
			same(t, "a submit", base.CodeOf(err), base.CodeStoreFull)
			disk.full.Store(false)
			w.submit(core.Submission{})
		}
		same(t, "lines", [2]int{log.count("nothing can be written"), log.count("the store has room again")}, [2]int{1, 0})
		w.turn(5000)
		w.submit(core.Submission{})
		same(t, "a change that succeeds later tells", log.count("the store has room again"), 1)
	})
}

func checkOf(all []engine.Check, name string) engine.Check {
	for _, check := range all {
		if check.Name == name {
			return check
		}
	}
	return engine.Check{}
}

// lines is a log that is read while it is written.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(text)
}

func (l *lines) count(words string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), words)
}
