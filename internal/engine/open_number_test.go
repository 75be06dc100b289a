package engine_test

import (
	"context"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

// openNumber is a store on which a transaction of another process has drawn a number of the log. It ends as soon as a call that is marked has read
// the end of the log.
type openNumber struct {
	store.Store
	w       *world
	release func() // nil: none is open
}

// draw opens a transaction and draws the next number in it. Later commits have higher numbers.
func (s *openNumber) draw() {
	s.w.t.Helper()
	s.release = s.w.holdRow("insert into log values (nextval('log_seq'), 1, '')")
}

func (s *openNumber) Poll(ctx context.Context, ask store.PollAsk) (store.PollAnswer, error) {
	answer, err := s.Store.Poll(ctx, ask)
	if ctx.Value(recounting{}) != nil {
		s.end()
	}
	return answer, err
}

// end ends the transaction, if it is open.
func (s *openNumber) end() {
	if s.release != nil {
		s.release()
		s.release = nil
	}
}

func TestU58_L131_what_must_miss_nothing_waits_for_commits_above_an_open_number(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{}, func(t *testing.T, w *world) {
		w.submit(core.Submission{})
		closeEngine(t, w.e)
		s := &openNumber{Store: w.store, w: w}
		w.e = w.openEngine(s)
		s.draw()
		w.submit(core.Submission{})
		ctx := context.WithValue(w.ctx(), recounting{}, true)
		preview := must(w.e.Bulk(ctx, operator, engine.BulkRequest{Action: "cancel", All: true, DryRun: true}))(t)
		same(t, "would be cancelled", preview.Total, 2)
	})
}

func TestU113_S42_a_recount_sees_that_it_was_disturbed_by_a_commit_above_an_open_number(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{}, func(t *testing.T, w *world) {
		w.capped("busy", 1)
		w.submitMany(10, core.Submission{Lane: "busy"})
		closeEngine(t, w.e)
		s := &openNumber{Store: w.store, w: w}
		astir := &astir{Store: s}
		w.e = w.openEngine(astir)
		var held []engine.Task
		astir.before = func() {
			for _, task := range held {
				w.complete(task)
			}
			held = nil
		}
		astir.after = func() {
			if len(held) == 0 {
				s.draw()
				r := ask()
				r.Lanes = []string{"busy"}
				held = append(held, w.claimAs(r))
			}
		}
		same(t, "in use", w.differences(), nil)
		same(t, "held", len(held), 1)
		s.end()
	})
}
