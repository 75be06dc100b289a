package engine_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

func (w *world) step(task engine.Task, name, result string) engine.StepAnswer {
	w.t.Helper()
	return must(w.e.PutStep(w.ctx(), client, given(task), fence(task), name, core.Payload{Data: []byte(result)}))(w.t)
}

// steps lists the steps that a run sees, as name=result.
func (w *world) steps(id base.GivenID, run *int) []string {
	w.t.Helper()
	got := []string{}
	for _, record := range must(w.e.Steps(w.ctx(), client, id, engine.StepsRequest{Run: run}))(w.t).Records {
		got = append(got, record.Name+"="+string(record.Result))
	}
	return got
}

func TestL149_L151_the_first_write_of_a_step_wins_and_changes_nothing_else(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		id := given(task)
		before, story := w.get(id), w.story(id)
		stored := w.step(task, "b", "one")
		same(t, "stored", [2]string{stored.Outcome, string(stored.Record.Result)}, [2]string{"stored", "one"})
		w.turn(5)
		again := w.step(task, "b", "two")
		same(t, "exists", [2]string{again.Outcome, string(again.Record.Result)}, [2]string{"exists", "one"})
		same(t, "its record", again.Record.CreatedAt, stored.Record.CreatedAt)
		w.step(task, "a", "")
		same(t, "in order of writing", w.steps(id, nil), []string{"b=one", "a="})
		same(t, "no change of the record (L151)", w.get(id), before)
		same(t, "no event (L151)", w.story(id), story)
		w.complete(task)
		w.untouched(id, func() error {
			_, err := w.e.PutStep(w.ctx(), client, id, fence(task), "c", core.Payload{})
			return err
		}, base.CodeExecutionNotActive)
	})
}

func TestL150_LC25_steps_survive_retry_reclaim_and_resume_and_start_anew_with_a_replay(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		id := w.submit(policy(`{"retry_policy":{"backoff":{"strategy":"fixed","delay_ms":0}}}`))
		task := w.claim()
		w.step(task, "a", "1")
		w.fail(task, "")
		task = w.claim()
		same(t, "after a retry", w.step(task, "a", "x").Outcome, "exists")
		record := w.step(task, "b", "2").Record
		same(t, "attempt and epoch", [2]any{record.AttemptIndex, record.LeaseEpoch}, [2]any{1, int64(2)})
		w.turn(30_000)
		late := w.step(task, "late", "3") // it was not taken over
		same(t, "late", late.Outcome, "stored")
		task = w.claim()
		w.release(task)
		task = w.claim()
		same(t, "after reclaim and resume", w.step(task, "late", "x").Outcome, "exists")
		w.complete(task)

		w.replay(id)
		same(t, "a replay begins without any", w.steps(id, nil), []string{})
		task = w.claim()
		same(t, "anew", w.step(task, "a", "new").Outcome, "stored")
		w.complete(task)
		same(t, "the first run", w.steps(id, ptr(0)), []string{"a=1", "b=2", "late=3"})

		must(w.e.Replay(w.ctx(), operator, id, engine.ReplayRequest{KeepSteps: true}, engine.Operator{}))(t)
		same(t, "keep_steps", w.steps(id, nil), []string{"a=new"})
		task = w.claim()
		same(t, "seen by the new run", string(w.step(task, "a", "x").Record.Result), "new")
		w.step(task, "c", "4")
		w.complete(task)
		must(w.e.Replay(w.ctx(), operator, id, engine.ReplayRequest{KeepSteps: true}, engine.Operator{}))(t)
		same(t, "also what that saw", w.steps(id, nil), []string{"a=new", "c=4"})
		same(t, "first run unchanged", w.steps(id, ptr(0)), []string{"a=1", "b=2", "late=3"})
	})
}

func TestL149_steps_have_bounds(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		put := func(name string, size int) error {
			_, err := w.e.PutStep(w.ctx(), client, given(task), fence(task), name, core.Payload{Data: make([]byte, size)})
			return err
		}
		long := fmt.Sprintf("%0128d", 0)
		refused(t, put("", 0), base.CodeInvalidArgument)
		refused(t, put("a b", 0), base.CodeInvalidArgument)
		refused(t, put(long+"x", 0), base.CodeInvalidArgument)
		refused(t, put("big", 1<<20+1), base.CodePayloadTooLarge)
		same(t, "nothing was stored", w.steps(given(task), nil), []string{})
		ok(t, put(long, 0))
		ok(t, put("big", 1<<20))
	})
}

func TestL149_ten_thousand_steps_and_no_more(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		var wg sync.WaitGroup
		for part := range 100 {
			wg.Go(func() {
				for i := range 100 {
					if _, err := w.e.PutStep(w.ctx(), client, given(task), fence(task), fmt.Sprint(part, "-", i), core.Payload{}); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		_, err := w.e.PutStep(w.ctx(), client, given(task), fence(task), "more", core.Payload{})
		refused(t, err, base.CodeStepLimitExceeded)
		same(t, "known ones still answer", w.step(task, "0-0", "x").Outcome, "exists")
	})
}

// weighed is a store that knows how many bytes of documents one read has returned at most.
type weighed struct {
	store.Store
	most atomic.Int64
}

func (s *weighed) Read(ctx context.Context, want store.Want) (*store.Loaded, error) {
	loaded, err := s.Store.Read(ctx, want)
	if err != nil {
		return nil, err
	}
	n := 0
	for _, docs := range loaded.Scanned {
		for i := range docs {
			n += len(docs[i].Data)
		}
	}
	for _, doc := range loaded.Docs {
		n += len(doc.Data)
	}
	s.most.Store(max(s.most.Load(), int64(n)))
	return loaded, nil
}

func TestL150_U16_pages_of_large_steps_are_read_some_at_a_time(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		weight := &weighed{Store: w.store}
		closeEngine(t, w.e)
		w.e = w.openEngine(weight)
		id := w.submit(core.Submission{})
		task := w.claim()
		var want []string
		put := func(name string, result string) {
			w.step(task, name, result)
			want = append(want, fmt.Sprintf("%s=%d%s", name, len(result), result[:2]))
		}
		for i := range 12 { // in another order than that of their names
			put(fmt.Sprintf("large-%02d", 5*i%12), fmt.Sprintf("%02d", i)+strings.Repeat("x", 1<<20-2))
			put(fmt.Sprintf("small-%02d", 5*i%12), fmt.Sprintf("%02d", i))
		}
		for name, r := range map[string]engine.StepsRequest{
			"one by one": {Limit: 1}, "by number": {Limit: 7}, "by size": {Limit: 100, Bytes: 5 << 20 / 2}, "all": {}, "without large ones": {Limit: 5, Above: 64 << 10},
		} {
			var got []string
			for more := true; more; {
				r.From = len(got)
				page := must(w.e.Steps(w.ctx(), client, id, r))(t)
				bytes := 0
				for i, record := range page.Records {
					bytes += len(record.Result)
					shown := string(record.Result[:min(2, len(record.Result))])
					if record.Size > 0 {
						shown = fmt.Sprintf("%02d", (r.From+i)/2)
					}
					got = append(got, fmt.Sprintf("%s=%d%s", record.Name, len(record.Result)+record.Size, shown))
				}
				if n := len(page.Records); n == 0 || r.Limit > 0 && n > r.Limit || r.Bytes > 0 && bytes > r.Bytes && n > 1 {
					t.Fatalf("%s: a page of %d steps with %d bytes", name, n, bytes)
				}
				if more = page.More; r.Above > 0 && bytes > 100 {
					t.Errorf("%s: %d bytes", name, bytes)
				}
			}
			same(t, name, got, want)
		}
		if n := weight.most.Load(); n < 1<<20 || n > 9<<20 {
			t.Errorf("one read returned %d bytes of steps", n)
		}
	})
}
