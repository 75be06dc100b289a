package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/stream"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/metrics"
	"github.com/flowfabric/flowfabric/internal/store"
)

// spoken are durable frames with these payloads.
func spoken(texts ...string) []stream.Draft {
	drafts := make([]stream.Draft, len(texts))
	for i, text := range texts {
		drafts[i] = stream.Draft{Payload: []byte(text)}
	}
	return drafts
}

// patched are summary frames.
func patched(patches ...string) []stream.Draft {
	drafts := spoken(patches...)
	for i := range drafts {
		drafts[i].Mode = stream.Summary
	}
	return drafts
}

// fleeting are best-effort frames.
func fleeting(texts ...string) []stream.Draft {
	drafts := spoken(texts...)
	for i := range drafts {
		drafts[i].Mode = stream.BestEffort
	}
	return drafts
}

func (w *world) appending(task engine.Task, drafts []stream.Draft, seq *int64) (engine.AppendAnswer, error) {
	return w.e.AppendFrames(w.ctx(), client, given(task), fence(task), engine.AppendRequest{Drafts: drafts, ClientSeq: seq})
}

func (w *world) says(task engine.Task, drafts []stream.Draft) engine.AppendAnswer {
	w.t.Helper()
	return must(w.appending(task, drafts, nil))(w.t)
}

func (w *world) frames(id base.GivenID, r engine.FramesRequest) engine.FramesPage {
	w.t.Helper()
	return must(w.e.ReadFrames(w.ctx(), client, id, r))(w.t)
}

// newest asks for all that the newest attempt has said.
func newest() engine.FramesRequest { return engine.FramesRequest{Attempt: engine.NewestAttempt} }

// texts are the payloads of frames.
func texts(frames []stream.Frame) []string {
	list := []string{}
	for i := range frames {
		list = append(list, string(frames[i].Payload))
	}
	return list
}

func TestE1_E4_an_append_is_one_whole_in_order_and_changes_nothing_of_the_execution(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		id := given(task)
		before, story := w.get(id), w.story(id)
		first := w.says(task, spoken("a", "b"))
		w.turn(7)
		second := w.says(task, append(spoken("c"), stream.Draft{Type: "log", ContentType: "text/plain", CorrelationID: "req 7", Payload: []byte("d")}))
		same(t, "ids (E1)", []int64{first.FirstSeq, first.LastSeq, second.FirstSeq, second.LastSeq, second.FrameCount()}, []int64{1, 2, 3, 4, 4})
		page := w.frames(id, newest())
		same(t, "frames", texts(page.Frames), []string{"a", "b", "c", "d"})
		same(t, "a frame", page.Frames[3], stream.Frame{
			Seq: 4, At: w.now(), Type: "log", Payload: []byte("d"), ContentType: "text/plain", CorrelationID: "req 7",
		})
		same(t, "no change of the record (E4)", w.get(id), before)
		same(t, "no event (E4)", w.story(id), story)
		// All frames or none: the last of these is not allowed.
		for what, refusal := range map[base.Code][]stream.Draft{
			base.CodeInvalidFrame:  append(spoken("x"), stream.Draft{Type: "NOT"}),
			base.CodeReservedName:  append(spoken("x"), stream.Draft{Type: stream.TypeClosed}),
			base.CodeFrameTooLarge: append(spoken("x"), stream.Draft{Payload: make([]byte, stream.MaxPayload+1)}),
			base.CodeBatchTooLarge: spoken(make([]string, stream.MaxCallFrames+1)...),
			base.CodeInvalidPatch:  append(spoken("x"), patched("[]")...),
		} {
			w.untouched(id, func() error { _, err := w.appending(task, refusal, nil); return err }, what)
		}
		same(t, "after refusals", len(w.frames(id, newest()).Frames), 4)
	})
}

func TestE1_the_order_of_checks_of_an_append(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.started(policy(`{"stream_policy":{"max_frames":2,"on_full":"refuse"}}`))
		id, stale := given(task), fence(task)
		stale.Epoch++
		must(w.appending(task, spoken("a", "b"), ptr(int64(7))))(t)
		bad := append(spoken("x"), stream.Draft{Type: "NOT"})
		do := func(f core.Fence, seq int64, drafts []stream.Draft) error {
			_, err := w.e.AppendFrames(w.ctx(), client, id, f, engine.AppendRequest{Drafts: drafts, ClientSeq: &seq})
			return err
		}
		refused(t, do(stale, 6, bad), base.CodeInvalidFrame)                                         // arguments
		refused(t, do(stale, 6, append(spoken("x"), patched("[]")...)), base.CodeStaleLease)         // fence
		refused(t, do(fence(task), 6, append(spoken("x"), patched("[]")...)), base.CodeStaleAppend)  // client_seq
		refused(t, do(fence(task), 8, append(spoken("x"), patched("[]")...)), base.CodeInvalidPatch) // patches
		refused(t, do(fence(task), 8, spoken("x")), base.CodeStreamFull)                             // room
		ok(t, do(fence(task), 8, patched(`{}`)))
	})
}

func TestE2_EI3_only_the_live_fence_of_an_attempt_that_has_not_ended_appends(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.leased(10_000, policy(`{"retry_policy":{"backoff":{"strategy":"fixed","delay_ms":0}}}`))
		id := given(task)
		w.says(task, spoken("a"))
		w.lapses(task)
		w.says(task, spoken("late")) // no other lease was given
		next := w.forced(id)
		same(t, "takes over", next.Execution.Attempt.Index, 1)
		w.untouched(id, func() error { _, err := w.appending(task, spoken("zombie"), nil); return err }, base.CodeStaleLease)
		w.says(next, spoken("b"))
		w.fail(next, "")
		w.untouched(id, func() error { _, err := w.appending(next, spoken("zombie"), nil); return err }, base.CodeExecutionNotActive)
		last := w.claim()
		w.untouched(id, func() error { _, err := w.appending(next, spoken("zombie"), nil); return err }, base.CodeStaleLease)
		suspended := w.suspend(last, atA)
		w.untouched(id, func() error { _, err := w.appending(last, spoken("asleep"), nil); return err }, base.CodeExecutionNotActive)
		w.signalled(suspended, "go")
		resumed := w.claim()
		w.says(resumed, spoken("c")) // the stream goes on
		w.untouched(id, func() error { _, err := w.appending(last, spoken("zombie"), nil); return err }, base.CodeStaleLease)
		w.complete(resumed)
		w.untouched(id, func() error { _, err := w.appending(resumed, spoken("zombie"), nil); return err }, base.CodeExecutionNotActive)
		for attempt, want := range [][]string{{"a", "late"}, {"b"}, {"c"}} {
			page := w.frames(id, engine.FramesRequest{Attempt: attempt})
			same(t, "frames of an attempt", texts(page.Frames), want)
		}
		_, err := w.e.ReadFrames(w.ctx(), client, id, engine.FramesRequest{Attempt: 3})
		refused(t, err, base.CodeAttemptNotFound)
	})
}

func TestE3_EI1_a_repeated_append_writes_once(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		first := must(w.appending(task, spoken("a", "b"), ptr(int64(1))))(t)
		same(t, "again", must(w.appending(task, spoken("other"), ptr(int64(1))))(t), first)
		must(w.appending(task, spoken("c"), ptr(int64(9))))(t)
		_, err := w.appending(task, spoken("x"), ptr(int64(8)))
		refused(t, err, base.CodeStaleAppend)
		w.says(task, spoken("d"))
		w.says(task, spoken("d"))
		same(t, "frames", texts(w.frames(given(task), newest()).Frames), []string{"a", "b", "c", "d", "d"})
		// Within one lease: the next one begins anew.
		w.release(task)
		task = w.claim()
		must(w.appending(task, spoken("e"), ptr(int64(1))))(t)
		same(t, "frames of the next lease", len(w.frames(given(task), newest()).Frames), 6)
	})
}

func TestE5_EI1_order_and_ids_do_not_depend_on_the_clock(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.leased(base.Hour, core.Submission{})
		w.says(task, spoken("a"))
		w.back.Add(int64(20 * time.Minute))
		w.says(task, spoken("b"))
		w.back.Add(int64(20 * time.Minute))
		w.says(task, spoken("c"))
		page := w.frames(given(task), newest())
		same(t, "frames", texts(page.Frames), []string{"a", "b", "c"})
		same(t, "ids", []int64{page.Frames[0].Seq, page.Frames[1].Seq, page.Frames[2].Seq}, []int64{1, 2, 3})
		same(t, "behind the second", texts(w.frames(given(task), engine.FramesRequest{Attempt: 0, After: "0-2"}).Frames), []string{"c"})
	})
}

func TestE6_E7_EI5_each_mode_is_kept_by_itself_and_what_is_out_of_retention_is_deleted(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.started(policy(`{"stream_policy":{"max_frames":10}}`))
		id := given(task)
		for i := range 100 {
			w.says(task, append(spoken(fmt.Sprint("d", i)), patched(fmt.Sprintf(`{"n":%d}`, i))...))
		}
		page := w.frames(id, engine.FramesRequest{Attempt: 0, Limit: ptr(1000)})
		var durable, patches []string
		for i := range page.Frames {
			if page.Frames[i].Mode == stream.Durable {
				durable = append(durable, string(page.Frames[i].Payload))
			} else {
				patches = append(patches, string(page.Frames[i].Payload))
			}
		}
		same(t, "durable", []any{len(durable), durable[0]}, []any{10, "d90"})
		same(t, "patches", []any{len(patches), patches[0]}, []any{stream.MaxPatches, `{"n":36}`})
		same(t, "truncated", page.TruncatedBefore, int64(180)) // the last frame that was dropped is 179
		eventually(t, "chunks are deleted", func() bool { return w.recordsOf(id, chunks) == 10+stream.MaxPatches })
		after := w.frames(id, engine.FramesRequest{Attempt: 0, Limit: ptr(1000)})
		same(t, "the same after that", after, page)
		same(t, "document", string(must(w.e.ReadSummary(w.ctx(), client, id, engine.NewestAttempt, 0, 0))(t).Text), `{"n":99}`)
		w.complete(task)
		ok(t, w.delete(id))
		same(t, "goes with the execution", []int{w.recordsOf(id, chunks), w.recordsOf(id, heads), w.recordsOf(id, documents)}, []int{0, 0, 0})
	})
}

func TestU209_frames_are_counted_by_mode_and_bytes_when_they_are_stored(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		w.says(task, append(append(spoken("a", "bc"), patched("{}")...), fleeting("def")...))
		must(w.appending(task, spoken("g"), ptr(int64(1))))(t)
		must(w.appending(task, spoken("g"), ptr(int64(1))))(t) // a repeat writes nothing
		_, err := w.appending(task, patched("[]"), nil)
		refused(t, err, base.CodeInvalidPatch)
		got := map[string]float64{}
		for _, family := range w.e.Collector().Collect() {
			for _, sample := range family.Samples {
				if family.Name == metrics.Frames.Name || family.Name == metrics.FrameBytes.Name {
					got[strings.Join(append([]string{family.Name}, sample.Labels...), " ")] = sample.Value
				}
			}
		}
		same(t, "counters", got, map[string]float64{
			"ff_frames_total durable": 3, "ff_frames_total summary": 1, "ff_frames_total best_effort": 1, "ff_frame_bytes_total": 9,
		})
	})
}

// The kinds of the records of streams.
const (
	heads     = 45
	chunks    = 46
	documents = 47
)

// recordsOf counts the small records of a kind that an execution has.
func (w *world) recordsOf(id base.GivenID, kind store.DocKind) int {
	w.t.Helper()
	return len(must(w.store.Read(w.ctx(), store.Want{Scans: []store.Scan{{Kind: kind, Owner: id.UUID.String()}}}))(w.t).Scanned[0])
}

func TestE8_best_effort_frames_go_when_their_time_is_over(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.leased(base.Hour, policy(`{"stream_policy":{"best_effort":{"ttl_ms":1000,"floor":4,"ceiling":8}}}`))
		id := given(task)
		for i := range 20 {
			w.says(task, append(fleeting(fmt.Sprint("f", i)), spoken(fmt.Sprint("d", i))...))
		}
		page := w.frames(id, engine.FramesRequest{Attempt: 0, Kept: engine.KeptFrames{Modes: stream.SetOf(stream.BestEffort)}})
		if n := len(page.Frames); n < 4 || n > 8 || string(page.Frames[n-1].Payload) != "f19" {
			t.Fatalf("%v best-effort frames are kept, want the newest 4 to 8", texts(page.Frames))
		}
		w.pass(2100)
		eventually(t, "chunks are deleted", func() bool { return w.recordsOf(id, chunks) == 20 })
		same(t, "the durable ones stay", len(w.frames(id, newest()).Frames), 20)
		w.says(task, fleeting("later"))
		same(t, "and go on", texts(w.frames(id, engine.FramesRequest{Attempt: 0, After: "0-40"}).Frames), []string{"later"})
		w.pass(2100)
		eventually(t, "chunks are deleted again", func() bool { return w.recordsOf(id, chunks) == 20 })
	})
}

func TestE11_a_summary_is_read_and_waited_for_by_version(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		id := given(task)
		read := func(above int64, wait time.Duration) (engine.StreamSummary, error) {
			return w.e.ReadSummary(w.ctx(), client, id, engine.NewestAttempt, above, wait)
		}
		_, err := read(0, 0)
		refused(t, err, base.CodeSummaryNotFound)
		first := w.now()
		same(t, "version", w.says(task, patched(`{"a":1,"b":{"c":1.50}}`, `{"a":null}`)).SummaryVersion, int64(2))
		w.turn(5)
		came := make(chan engine.StreamSummary, 1)
		go func() {
			found, err := read(2, patience)
			if err == nil {
				came <- found
			}
			close(came)
		}()
		w.tailing(1)
		w.says(task, patched(`{"d":[null]}`))
		found := <-came
		same(t, "document", []any{string(found.Text), found.Version, found.FirstAt, found.LastAt}, []any{`{"b":{"c":1.50},"d":[null]}`, int64(3), first, w.now()})
		w.untouched(id, func() error {
			_, err := w.appending(task, patched(`{"a":`+strings.Repeat(`{"a":`, 17)+`1`+strings.Repeat(`}`, 18)), nil)
			return err
		}, base.CodePatchTooDeep)
		w.complete(task)
		same(t, "nothing to wait for once it is closed", must(read(3, patience))(t).Version, int64(3))
	})
}

func TestE11_a_reader_of_the_newest_summary_is_told_of_that_of_a_newer_attempt(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.started(policy(`{"retry_policy":{"backoff":{"strategy":"fixed","delay_ms":0}}}`))
		id := given(task)
		w.says(task, patched(`{"a":1}`, `{"a":2}`))
		read := func(above int64, answer chan engine.StreamSummary) {
			found, err := w.e.ReadSummary(w.ctx(), client, id, engine.NewestAttempt, above, patience)
			if err != nil {
				t.Error(err)
			}
			answer <- found
		}
		come := make(chan engine.StreamSummary, 3)
		go read(2, come) // it waits while the attempts change
		w.tailing(1)
		w.fail(task, "")
		next := w.claim()
		go read(2, come) // it comes when the newer attempt has no document yet
		w.tailing(2)
		w.says(next, patched(`{"b":1}`))
		for range 2 {
			found := <-come
			same(t, "the newer one", []any{found.Attempt, found.Version, string(found.Text)}, []any{1, int64(1), `{"b":1}`})
		}
		go read(2, come)
		found := <-come
		same(t, "it comes later", []any{found.Attempt, found.Version}, []any{1, int64(1)})
		w.complete(next)
	})
}

// tailing waits until so many readers wait at the end of a stream.
func (w *world) tailing(n int) {
	w.t.Helper()
	eventually(w.t, "readers wait", func() bool { return gauge(w.t, w.e, metrics.StreamReaders) == float64(n) })
}

func TestE12_a_stream_is_closed_once_for_the_reason_that_its_attempt_ended(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		retried := policy(`{"retry_policy":{"backoff":{"strategy":"fixed","delay_ms":0}}}`)
		for reason, story := range map[stream.Reason]func() base.GivenID{
			stream.AttemptSuccess: func() base.GivenID { task := w.speaker(core.Submission{}); w.complete(task); return given(task) },
			stream.AttemptFailure: func() base.GivenID {
				task := w.speaker(core.Submission{})
				w.fail(task, "permanent")
				return given(task)
			},
			stream.AttemptTimeout: func() base.GivenID {
				task := w.speaker(policy(`{"timeout_policy":{"attempt_timeout_ms":1000}}`))
				w.pass(1000)
				eventually(t, "the attempt ends", func() bool { return w.attempts(given(task))[0].State.Final() })
				return given(task)
			},
			stream.AttemptCancelled: func() base.GivenID { task := w.speaker(core.Submission{}); w.cancel(given(task)); return given(task) },
			stream.ExecutionDeadline: func() base.GivenID {
				task := w.speaker(core.Submission{DeadlineAt: w.now().Add(1000)})
				w.pass(1000)
				w.becomes(given(task), core.Expired)
				return given(task)
			},
			stream.BudgetExceeded: func() base.GivenID {
				w.create(tokens("purse", 5, onHard("fail")))
				task := w.speaker(costing(1, "purse"))
				w.report(task, 10)
				w.is(given(task), core.Failed, core.BudgetExceeded)
				return given(task)
			},
			stream.Reclaimed: func() base.GivenID {
				task := w.speaker(core.Submission{})
				w.lapses(task)
				w.forced(given(task))
				return given(task)
			},
			stream.ReclaimsExhausted: func() base.GivenID {
				task := w.speaker(policy(`{"max_reclaim_count":0}`))
				w.turn(base.Hour)
				w.becomes(given(task), core.Failed)
				return given(task)
			},
		} {
			id := story()
			page := w.frames(id, engine.FramesRequest{Attempt: 0})
			same(t, "frames", texts(page.Frames), []string{"hello"})
			same(t, "reason", page.Closed.Reason.String(), reason.String())
			same(t, "end", page.Next.String(), "0-1-end")
			if !w.get(id).Status.Terminal() {
				w.cancel(id) // no later story claims it
			}
		}
		// A retry closes the first attempt and opens another.
		task := w.speaker(retried)
		w.fail(task, "")
		next := w.claim()
		same(t, "retried", w.frames(given(task), engine.FramesRequest{Attempt: 0}).Closed.Reason, stream.AttemptFailure)
		same(t, "the next one is open", w.frames(given(task), newest()).Closed.Reason, stream.Reason(0))
		w.complete(next)
	})
}

func TestE12_an_attempt_that_waits_is_closed_by_what_ends_the_execution(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		for reason, end := range map[stream.Reason]func(base.GivenID){
			stream.AttemptCancelled:  w.cancel,
			stream.ExecutionDeadline: func(id base.GivenID) { w.pass(2000); w.becomes(id, core.Expired) },
		} {
			task := w.speaker(core.Submission{DeadlineAt: w.now().Add(2000)})
			w.suspend(task, atA)
			end(given(task))
			same(t, "while it waited", w.frames(given(task), newest()).Closed.Reason.String(), reason.String())
		}
		// What ends a suspended execution closes it, and says so after a replay too.
		for behavior, status := range map[string]core.Status{"fail": core.Failed, "cancel": core.Cancelled, "expire": core.Expired} {
			task := w.speaker(core.Submission{})
			w.rests(task, waitFor(task, atA, timingOut(1000, behavior)))
			same(t, "open while it is suspended", w.frames(given(task), newest()).Closed.Reason, stream.Reason(0))
			w.pass(1000)
			w.becomes(given(task), status)
			for range 2 {
				same(t, behavior, w.frames(given(task), engine.FramesRequest{Attempt: 0}).Closed.Reason, stream.SuspensionTimeout)
				if w.get(given(task)).ReplayCount == 0 {
					w.replay(given(task))
				}
			}
			w.cancel(given(task))
		}
	})
}

// speaker is a task that has said something.
func (w *world) speaker(s core.Submission) engine.Task {
	w.t.Helper()
	task := w.started(s)
	w.says(task, spoken("hello"))
	return task
}
