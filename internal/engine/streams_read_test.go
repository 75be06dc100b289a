package engine_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"weak"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/stream"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/metrics"
	"github.com/flowfabric/flowfabric/internal/store"
)

func TestE15_E16_EI2_pages_concatenate_to_one_read(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.leased(base.Hour, core.Submission{})
		id := given(task)
		for i := range 60 {
			var drafts []stream.Draft
			for j := range i%5 + 1 {
				mode := stream.Mode(0)
				if (i+j)%7 == 0 {
					mode = stream.BestEffort
				}
				drafts = append(drafts, stream.Draft{Mode: mode, Type: []string{"data", "log"}[j%2], Payload: fmt.Appendf(nil, "%d.%d", i, j)})
			}
			w.says(task, drafts)
		}
		for _, kept := range []engine.KeptFrames{{}, {Types: []string{"log"}}, {Modes: stream.SetOf(stream.BestEffort)}, {Types: []string{"data"}, Modes: stream.SetOf(stream.Durable)}} {
			whole := w.frames(id, engine.FramesRequest{Attempt: 0, Limit: ptr(1000), Kept: kept})
			for _, limit := range []int{1, 7, 50} {
				var got []stream.Frame
				after := ""
				for more := true; more; {
					page := w.frames(id, engine.FramesRequest{Attempt: 0, Limit: ptr(limit), After: after, Kept: kept})
					got, more, after = append(got, page.Frames...), page.More, page.Next.String()
				}
				same(t, fmt.Sprint(kept, limit), got, whole.Frames)
			}
		}
		same(t, "from", texts(w.frames(id, engine.FramesRequest{Attempt: 0, From: "0-2", To: "0-3"}).Frames), []string{"1.0", "1.1"})
		same(t, "a bare number", texts(w.frames(id, engine.FramesRequest{Attempt: 0, After: "2", To: "3"}).Frames), []string{"1.1"})
		_, err := w.e.ReadFrames(w.ctx(), client, id, engine.FramesRequest{Attempt: 0, From: "1-2"})
		refused(t, err, base.CodeInvalidCursor)
		w.restart()
		same(t, "after a restart", len(w.frames(id, engine.FramesRequest{Attempt: 0, Limit: ptr(1000)}).Frames), 180)
	})
}

func TestEI6_any_bytes_come_back_as_they_were(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		random := rand.New(rand.NewPCG(1, 2))
		var want [][]byte
		for _, n := range []int{0, 1, 2, 255, 4096, stream.MaxPayload} {
			payload := make([]byte, n)
			for i := range payload {
				payload[i] = byte(random.Uint32())
			}
			want = append(want, payload)
			w.says(task, []stream.Draft{{Payload: payload}})
		}
		page := w.frames(given(task), newest())
		for i := range want {
			if !bytes.Equal(page.Frames[i].Payload, want[i]) {
				t.Fatalf("payload %d of %d bytes came back as %d others", i, len(want[i]), len(page.Frames[i].Payload))
			}
		}
	})
}

func TestE13_E17_a_tail_is_woken_by_appends_and_by_the_close_in_every_process(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		id := given(task)
		for name, e := range map[string]*engine.Engine{"here": w.e, "elsewhere": w.other()} {
			tail := func(after string) <-chan engine.FramesPage {
				came := make(chan engine.FramesPage, 1)
				go func() {
					defer close(came)
					if page, err := e.ReadFrames(w.ctx(), client, id, engine.FramesRequest{Attempt: engine.NewestAttempt, After: after, Wait: patience}); err == nil {
						came <- page
					}
				}()
				eventually(t, "it waits", func() bool { return gauge(t, e, metrics.StreamReaders) == 1 })
				return came
			}
			end := w.frames(id, newest()).Next.String()
			came := tail(end)
			w.says(task, spoken(name))
			page := <-came
			same(t, "woken by the append "+name, texts(page.Frames), []string{name})
		}
		empty := w.frames(id, engine.FramesRequest{Attempt: 0, After: "0-2", Wait: time.Millisecond})
		same(t, "empty and open when the time is over", []any{len(empty.Frames), empty.Closed.Reason, empty.Next.String()}, []any{0, stream.Reason(0), "0-2"})
		_, err := w.e.ReadFrames(w.ctx(), client, id, engine.FramesRequest{Attempt: 0, Wait: 31 * time.Second})
		refused(t, err, base.CodeInvalidArgument)
		engines := []*engine.Engine{w.e}
		if other := w.other(); other != w.e {
			engines = append(engines, other)
		}
		closes := make(chan stream.Reason, len(engines))
		for _, e := range engines {
			go func() {
				page, err := e.ReadFrames(w.ctx(), client, id, engine.FramesRequest{Attempt: 0, After: "0-2", Wait: patience})
				if err != nil {
					t.Error(err)
				}
				closes <- page.Closed.Reason
			}()
			eventually(t, "it waits", func() bool { return gauge(t, e, metrics.StreamReaders) == 1 })
		}
		w.complete(task)
		for range engines {
			same(t, "close", <-closes, stream.AttemptSuccess)
		}
	})
}

func TestE17_a_reader_too_many_is_refused(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		id := given(task)
		ctx, cancel := context.WithCancel(w.ctx())
		left := make(chan struct{}, 4096)
		for range 4096 {
			go func() {
				_, _ = w.e.ReadFrames(ctx, client, id, engine.FramesRequest{Attempt: 0, Wait: patience})
				left <- struct{}{}
			}()
		}
		w.tailing(4096)
		_, err := w.e.ReadFrames(w.ctx(), client, id, engine.FramesRequest{Attempt: 0, Wait: patience})
		refused(t, err, base.CodeOverloaded)
		w.says(task, spoken("reads and appends go on"))
		cancel()
		for range 4096 {
			<-left
		}
		w.tailing(0)
	})
}

// followed is what a follower is sent until nothing follows now, as short texts.
func (w *world) follows(f *engine.Follow) (got []string) {
	w.t.Helper()
	for {
		page := must(f.Next(w.ctx(), ptr(3), 0))(w.t)
		for i := range page.Items {
			got = append(got, shortItem(&page.Items[i]))
		}
		if page.Done {
			return append(got, "done")
		}
		if len(page.Items) == 0 {
			return got
		}
	}
}

func shortItem(item *engine.StreamItem) string {
	if item.Frame != nil {
		return item.ID + " " + string(item.Frame.Payload)
	}
	switch step := item.Control; step.Kind {
	case stream.StepStarted:
		return fmt.Sprintf("%s started %s over %d", item.ID, step.Attempt.Type, step.Supersedes)
	case stream.StepAttemptClosed:
		return item.ID + " " + step.Attempt.Closed.Reason.String()
	case stream.StepGap:
		return fmt.Sprintf("gap before %d", step.Before)
	default:
		return item.ID + " " + step.End.Outcome
	}
}

func (w *world) follower(id base.GivenID, r engine.FollowRequest) *engine.Follow {
	w.t.Helper()
	return must(w.e.NewFollow(client, id, r))(w.t)
}

func TestE18_E19_E21_EI7_a_follower_is_sent_the_newest_attempt_with_its_marks(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		id := w.submit(policy(`{"retry_policy":{"backoff":{"strategy":"fixed","delay_ms":0}}}`))
		f := w.follower(id, engine.FollowRequest{})
		same(t, "nothing yet", w.follows(f), nil)
		task := w.claim()
		w.says(task, spoken("a", "b"))
		same(t, "the first attempt", w.follows(f), []string{"0-0 started initial over -1", "0-1 a", "0-2 b"})
		suspended := w.suspend(task, atA)
		w.signalled(suspended, "go")
		task = w.claim()
		w.says(task, spoken("c"))
		same(t, "goes on after a suspension", w.follows(f), []string{"0-3 c"})
		w.says(task, spoken("d"))
		w.fail(task, "")
		next := w.claim()
		w.says(next, spoken("e"))
		same(t, "resumed with a cursor of the older attempt (E19)", w.follows(w.follower(id, engine.FollowRequest{After: "0-3"})), []string{"1-0 started retry over 0", "1-1 e"})
		same(t, "with that of its last frame (E18)", w.follows(w.follower(id, engine.FollowRequest{After: "0-4"})),
			[]string{"0-4-end attempt_failure", "1-0 started retry over 0", "1-1 e"})
		w.complete(next)
		all := []string{
			"0-0 started initial over -1", "0-1 a", "0-2 b", "0-3 c", "0-4 d", "0-4-end attempt_failure",
			"1-0 started retry over 0", "1-1 e", "1-1-end attempt_success", "closed success", "done",
		}
		same(t, "the newest alone", w.follows(w.follower(id, engine.FollowRequest{})), all[6:])
		same(t, "every attempt", w.follows(w.follower(id, engine.FollowRequest{What: stream.Every})), all)
		for i := range all[:10] {
			after, _, _ := strings.Cut(all[i], " ")
			same(t, "every attempt after "+after, w.follows(w.follower(id, engine.FollowRequest{What: stream.Every, After: after})), all[i+1:])
		}
		same(t, "one attempt", w.follows(w.follower(id, engine.FollowRequest{What: stream.OnlyThis, Attempt: 0})), append(slices.Clone(all[1:6]), "done"))
		same(t, "the last id again (E21)", w.follows(w.follower(id, engine.FollowRequest{After: "closed"})), []string{"done"})
		w.replay(id)
		f = w.follower(id, engine.FollowRequest{After: "closed"})
		same(t, "replayed since, not claimed yet", w.follows(f), nil)
		again := w.claim()
		w.says(again, spoken("f"))
		w.complete(again)
		same(t, "replayed since (E21)", w.follows(f), []string{"2-0 started replay over 1", "2-1 f", "2-1-end attempt_success", "closed success", "done"})
	})
}

func TestE22_a_reader_whose_frames_were_dropped_is_told_so(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.started(policy(`{"stream_policy":{"max_frames":2}}`))
		f := w.follower(given(task), engine.FollowRequest{})
		w.says(task, spoken("a"))
		same(t, "in time", w.follows(f), []string{"0-0 started initial over -1", "0-1 a"})
		w.says(task, spoken("b", "c", "d", "e"))
		same(t, "late", w.follows(f), []string{"gap before 4", "0-4 d", "0-5 e"})

		// A gap comes in addition to the frames of a page (E15).
		f = w.follower(given(task), engine.FollowRequest{After: "0-1"})
		for i, want := range []int{2, 1, 0} {
			page := must(f.Next(w.ctx(), ptr(1), 0))(t)
			frames := 0
			for j := range page.Items {
				if page.Items[j].Frame != nil {
					frames++
				}
			}
			same(t, "a page of one frame", [2]int{len(page.Items), frames}, [2]int{want, min(want, 1)})
			same(t, "the end", page.AtEnd, i == 2)
		}
	})
}

func TestE1_EI2_appends_of_many_attempts_and_readers_together(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		const writers, calls = 20, 15
		tasks := w.claimedMany(writers, core.Submission{})
		read := make(chan []string, writers)
		for i := range tasks {
			go func() {
				var got []string
				f := must(w.e.NewFollow(client, given(tasks[i]), engine.FollowRequest{}))(t)
				for {
					page, err := f.Next(w.ctx(), nil, patience)
					if err != nil {
						break
					}
					for j := range page.Items {
						if page.Items[j].Frame != nil {
							got = append(got, string(page.Items[j].Frame.Payload))
						}
					}
					if page.Done {
						break
					}
				}
				read <- got
			}()
		}
		ended := make(chan error, writers)
		for i := range tasks {
			go func() {
				for call := range calls {
					if _, err := w.appending(tasks[i], spoken(fmt.Sprint(call, "a"), fmt.Sprint(call, "b")), ptr(int64(call))); err != nil {
						ended <- err
						return
					}
				}
				ended <- w.completing(tasks[i])
			}()
		}
		for range tasks {
			ok(t, <-ended)
		}
		var want []string
		for call := range calls {
			want = append(want, fmt.Sprint(call, "a"), fmt.Sprint(call, "b"))
		}
		for range tasks {
			same(t, "what a reader got", <-read, want)
		}
	})
}

// scanning is a store that notes how much the scans of reads return.
type scanning struct {
	store.Store
	rows, most atomic.Int64 // rows of all scans, and the most bytes of one read
	heavy      bool         // it notes how many rows are still in memory, too

	mu   sync.Mutex
	seen []weak.Pointer[byte] // the rows of all scans that are still in memory
	kept int                  // the most of them at the begin of a read
}

// look forgets the rows that are no longer in memory, and returns how many are.
func (s *scanning) look() int {
	runtime.GC()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = slices.DeleteFunc(s.seen, func(row weak.Pointer[byte]) bool { return row.Value() == nil })
	return len(s.seen)
}

func (s *scanning) Read(ctx context.Context, want store.Want) (*store.Loaded, error) {
	if s.heavy && len(want.Scans) > 0 {
		s.kept = max(s.kept, s.look())
	}
	loaded, err := s.Store.Read(ctx, want)
	if err != nil {
		return loaded, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	size := 0
	for _, docs := range loaded.Scanned {
		s.rows.Add(int64(len(docs)))
		for i := range docs {
			size += len(docs[i].Data)
			s.seen = append(s.seen, weak.Make(&docs[i].Data[0]))
		}
	}
	s.most.Store(max(s.most.Load(), int64(size)))
	return loaded, nil
}

// scans opens the world's engine on a store that notes how much is scanned.
func (w *world) scans() *scanning {
	w.t.Helper()
	closeEngine(w.t, w.e)
	s := &scanning{Store: w.store}
	w.e = w.openEngine(s)
	return s
}

func TestE17_a_tail_that_waits_for_few_frames_does_not_read_the_others_again(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		s, task := w.scans(), w.started(core.Submission{})
		for range 50 {
			w.says(task, spoken("x"))
		}
		came := make(chan engine.FramesPage, 1)
		go func() {
			defer close(came)
			if page, err := w.e.ReadFrames(w.ctx(), client, given(task), engine.FramesRequest{Wait: patience, Kept: engine.KeptFrames{Types: []string{"z"}}}); err == nil {
				came <- page
			}
		}()
		eventually(t, "it has read and waits", func() bool { return s.rows.Load() >= 50 })
		w.tailing(1)
		w.says(task, spoken("x"))
		w.says(task, []stream.Draft{{Type: "z", Payload: []byte("z")}})
		page := <-came
		same(t, "frames", []any{texts(page.Frames), page.Next.String()}, []any{[]string{"z"}, "0-52"})
		if n := s.rows.Load(); n > 60 {
			t.Errorf("%d chunks of 52 were read", n)
		}
	})
}

func TestE17_a_tail_at_the_end_is_woken_by_what_comes_after_it(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		w.says(task, spoken("before"))
		came := make(chan engine.FramesPage, 1)
		go func() {
			defer close(came)
			if page, err := w.e.ReadFrames(w.ctx(), client, given(task), engine.FramesRequest{After: "end", Wait: patience}); err == nil {
				came <- page
			}
		}()
		w.tailing(1)
		eventually(t, "it is told", func() bool {
			w.says(task, spoken("after"))
			select {
			case page := <-came:
				if len(page.Frames) == 0 || string(page.Frames[0].Payload) != "after" {
					t.Errorf("frames: %q", texts(page.Frames))
				}
				return true
			default:
				return false
			}
		})
	})
}

func TestE15_a_read_takes_memory_for_a_few_chunks_however_small_those_before_were(t *testing.T) {
	t.Parallel()
	onAlone(t, engine.Config{}, func(t *testing.T, w *world) {
		s, task := w.scans(), w.started(policy(`{"stream_policy":{"max_bytes":1073741824}}`))
		for range 8 + 16 + 32 {
			w.says(task, spoken("x"))
		}
		large := strings.Repeat("y", stream.MaxPayload)
		for range 64 {
			w.says(task, append(spoken(slices.Repeat([]string{large}, 15)...), stream.Draft{Type: "z", Payload: []byte("z")}))
		}
		s.heavy = true
		page := w.frames(given(task), engine.FramesRequest{Limit: ptr(1000), Kept: engine.KeptFrames{Types: []string{"z"}}})
		same(t, "frames", len(page.Frames), 64)
		if most := s.most.Load(); most > 33<<20 {
			t.Errorf("one read took %d bytes", most)
		}
		if kept := s.look(); kept > 8 || s.kept > 40 {
			t.Errorf("the page of %d frames keeps %d chunks, and kept %d while it was read", len(page.Frames), kept, s.kept)
		}
		runtime.KeepAlive(page)
	})
}
