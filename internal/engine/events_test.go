package engine_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

func TestLC23_exactly_one_completion_for_each_path_into_each_terminal_status(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		retry := policy(`{"retry_policy":{"max_retries":0},"timeout_policy":{"attempt_timeout_ms":1000}}`)
		for name, c := range map[string]struct {
			s       core.Submission
			end     func(task engine.Task)
			outcome string
			reason  string
		}{
			"complete":      {core.Submission{}, func(task engine.Task) { w.complete(task) }, "success", "completed"},
			"late complete": {core.Submission{}, func(task engine.Task) { w.turn(30_000); w.complete(task) }, "success", "completed"},
			"override": {core.Submission{}, func(task engine.Task) {
				must(w.e.CompleteOverride(w.ctx(), operator, given(task), nil, engine.Operator{}))(t)
			}, "success", "completed"},
			"permanent": {core.Submission{}, func(task engine.Task) { w.fail(task, "permanent") }, "failed", "permanent"},
			"exhausted": {retry, func(task engine.Task) { w.fail(task, "") }, "failed", "retries_exhausted"},
			"timeout":   {retry, func(task engine.Task) { w.turn(1000) }, "failed", "attempt_timeout"},
			"reclaims":  {policy(`{"max_reclaim_count":0}`), func(task engine.Task) { w.turn(30_000) }, "failed", "reclaims_exhausted"},
			"cancel":    {core.Submission{}, func(task engine.Task) { w.cancel(given(task)) }, "cancelled", "cancelled"},
			"own cancel": {core.Submission{}, func(task engine.Task) {
				must(w.e.Cancel(w.ctx(), client, given(task), ptr(fence(task)), "", engine.Operator{}))(t)
			}, "cancelled", "cancelled"},
			"cancel in the queue": {core.Submission{}, func(task engine.Task) { w.hold(given(task)); w.release(task); w.cancel(given(task)) }, "cancelled", "cancelled"},
			"deadline":            {policy(`{"timeout_policy":{"execution_deadline_ms":1000}}`), func(task engine.Task) { w.turn(1000) }, "expired", "execution_deadline"},
			"deadline while delayed": {policy(`{"timeout_policy":{"execution_deadline_ms":1000}}`), func(task engine.Task) {
				w.delay(task, w.now()+5000)
				w.turn(1000)
			}, "expired", "execution_deadline"},
		} {
			task := w.started(c.s)
			c.end(task)
			id := given(task)
			eventually(t, name, func() bool { return w.get(id).Status.Terminal() })
			events := w.events(engine.EventFilter{ExecutionID: &id, Kinds: []string{"execution.completed"}})
			same(t, name, len(events), 1)
			fields := data(t, events[0])
			same(t, name, [2]any{fields["outcome"], fields["reason"]}, [2]any{c.outcome, c.reason})
			same(t, name+": filter by outcome", len(w.events(engine.EventFilter{ExecutionID: &id, Outcome: c.outcome})), 1)
		}
	})
}

func TestL147_each_change_of_status_is_told_once(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		id := w.submit(core.Submission{DelayMS: ptr(int64(100)), PolicyJSON: []byte(`{"retry_policy":{"backoff":{"strategy":"fixed","delay_ms":100}}}`)})
		w.turn(100)
		w.fail(w.claim(), "")
		w.hold(id)
		w.turn(100)
		w.becomes(id, core.Blocked)
		w.releaseHold(id)
		task := w.claim()
		w.hold(id)
		w.delay(task, w.now()+100)
		w.turn(100)
		w.becomes(id, core.Blocked)
		w.releaseHold(id)
		w.revoke(given(w.claim()))
		w.complete(w.claim())
		w.replay(id)
		w.cancel(id)
		same(t, "story", w.story(id), []string{
			"execution.submitted", "execution.ready", "lease.acquired", "attempt.ended", "execution.held", "execution.blocked",
			"execution.hold_released", "execution.ready", "lease.acquired", "execution.held", "lease.released", "execution.blocked",
			"execution.hold_released", "execution.ready", "lease.acquired", "lease.revoked", "attempt.ended", "lease.acquired",
			"execution.completed", "execution.replayed", "execution.cancel_requested", "execution.completed",
		})
	})
}

func TestE35_every_filter_equals_the_filtered_log(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{Tags: base.Tags{"tenant": "7"}, Lane: "l2"})
		w.turn(1000)
		w.complete(task)
		w.cancel(w.submit(core.Submission{Namespace: "n2"}))
		w.lane("l3", core.LaneSettings{MaxConcurrent: 1})
		eventually(t, "the count of the lane", func() bool { return !must(w.e.GetLane(w.ctx(), client, "l3"))(t).Lane.Counting })
		all := w.events(engine.EventFilter{})
		for name, c := range map[string]struct {
			f    engine.EventFilter
			want func(ev engine.LoggedEvent) bool
		}{
			"kind":        {engine.EventFilter{Kinds: []string{"lease.acquired"}}, func(ev engine.LoggedEvent) bool { return ev.Kind == "lease.acquired" }},
			"prefix":      {engine.EventFilter{Kinds: []string{"execution."}}, func(ev engine.LoggedEvent) bool { return ev.Kind[:5] == "execu" }},
			"bare prefix": {engine.EventFilter{Kinds: []string{"execution", "lane"}}, func(ev engine.LoggedEvent) bool { return ev.Kind[:5] == "execu" || ev.Kind == "lane.changed" }},
			"no boundary": {engine.EventFilter{Kinds: []string{"execut"}}, func(engine.LoggedEvent) bool { return false }},
			"execution":   {engine.EventFilter{ExecutionID: ptr(given(task))}, func(ev engine.LoggedEvent) bool { return ev.ExecutionID == task.Execution.ID }},
			"lane":        {engine.EventFilter{Lane: "l2"}, func(ev engine.LoggedEvent) bool { return ev.Class != nil && ev.Class.Lane == "l2" }},
			"outcome":     {engine.EventFilter{Outcome: "cancelled"}, func(ev engine.LoggedEvent) bool { return ev.Kind == "execution.completed" && ev.Namespace == "n2" }},
			"instance":    {engine.EventFilter{InstanceID: "w1"}, func(ev engine.LoggedEvent) bool { return ev.InstanceID == "w1" }},
			"tag":         {engine.EventFilter{Tags: map[string]string{"tenant": "7"}}, func(ev engine.LoggedEvent) bool { return ev.Tags["tenant"] == "7" }},
			"actor":       {engine.EventFilter{ActorType: "operator"}, func(ev engine.LoggedEvent) bool { return ev.Actor.Type == "operator" }},
			"since":       {engine.EventFilter{Since: w.now()}, func(ev engine.LoggedEvent) bool { return ev.At >= w.now() }},
		} {
			want := []string{}
			for _, ev := range all {
				if c.want(ev) {
					want = append(want, ev.Cursor)
				}
			}
			got := []string{}
			for _, ev := range w.events(c.f) {
				got = append(got, ev.Cursor)
			}
			same(t, name, got, want)
			if len(want) == 0 && name != "no boundary" {
				t.Errorf("%s matches nothing: the test proves nothing", name)
			}
		}
		own := engine.Caller{Principal: "p", Actor: "client", Namespaces: []string{"n2"}}
		page := must(w.e.ReadEvents(w.ctx(), own, engine.EventsRequest{After: "start", Filter: engine.EventFilter{Kinds: []string{"execution."}}}))(t)
		for _, ev := range page.Events {
			same(t, "namespace", ev.Namespace, "n2")
		}
		for _, bad := range []engine.EventFilter{{Kinds: []string{""}}, {Kinds: []string{".x"}}, {ActorType: "robot"}} {
			_, err := w.e.ReadEvents(w.ctx(), client, engine.EventsRequest{After: "start", Filter: bad})
			refused(t, err, base.CodeInvalidFilter)
		}
	})
}

func TestE34_a_reader_resumes_exclusively_from_every_event(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.submitMany(20, core.Submission{}) // one transaction, many events
		for range 5 {
			w.complete(w.claim())
		}
		all := w.events(engine.EventFilter{})
		for i, ev := range all {
			page := must(w.e.ReadEvents(w.ctx(), client, engine.EventsRequest{After: ev.Cursor, Limit: 3}))(t)
			for j, next := range page.Events {
				same(t, "event", [2]any{next.Cursor, next.ID}, [2]any{all[i+1+j].Cursor, all[i+1+j].ID})
			}
			same(t, "number", len(page.Events), min(3, len(all)-i-1))
		}
		last := must(w.e.ReadEvents(w.ctx(), client, engine.EventsRequest{}))(t)
		same(t, "the end", [2]any{len(last.Events), last.AtEnd}, [2]any{0, true})
		w.submit(core.Submission{})
		page := must(w.e.ReadEvents(w.ctx(), client, engine.EventsRequest{After: last.Next, Wait: patience}))(t)
		same(t, "from the end on", page.Events[0].Kind, "execution.submitted")
		_, err := w.e.ReadEvents(w.ctx(), client, engine.EventsRequest{Wait: 30*time.Second + 1})
		refused(t, err, base.CodeInvalidArgument)
	})
}

func TestE32_a_cursor_of_another_log_is_refused(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.submit(core.Submission{})
		for _, bad := range []string{"nonsense", "AAAAAAAAAAAAAAAAAAAAAAAAAAA", "!"} {
			_, err := w.e.ReadEvents(w.ctx(), client, engine.EventsRequest{After: bad})
			refused(t, err, base.CodeInvalidCursor)
		}
	})
}

func TestE33_EI9_readers_that_crash_miss_nothing_and_see_one_order_while_two_processes_write(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		engines := []*engine.Engine{w.e}
		if w.url != "" {
			engines = append(engines, w.another())
		}
		const writers, each, readers = 6, 15, 3
		var wg sync.WaitGroup
		for i := range writers {
			wg.Go(func() {
				for n := range each {
					s := core.Submission{Kind: "k", Lane: fmt.Sprint("l", i), Tags: base.Tags{"n": fmt.Sprint(n)}}
					if _, err := engines[i%len(engines)].Submit(w.ctx(), client, s); err != nil {
						t.Error(err)
					}
				}
			})
		}
		seed := testseed.Seed(t)
		seen := make([][]string, readers) // by each, in the order in which it saw them first
		for reader := range readers {
			wg.Go(func() {
				random := testseed.Stream(seed, fmt.Sprint(reader))
				for after := "start"; len(seen[reader]) < writers*each; {
					page, err := engines[reader%len(engines)].ReadEvents(w.ctx(), client, engine.EventsRequest{
						After: after, Limit: 1 + random.IntN(7), Wait: time.Second, Filter: engine.EventFilter{Kinds: []string{"execution.submitted"}},
					})
					if err != nil {
						t.Error(err)
						return
					}
					for _, ev := range page.Events {
						if !slices.Contains(seen[reader], ev.Cursor) {
							seen[reader] = append(seen[reader], ev.Cursor)
						}
					}
					if random.IntN(4) > 0 { // else it ends before it has stored where it is
						after = page.Next
					}
				}
			})
		}
		wg.Wait()
		for reader := range readers {
			same(t, "what was seen", seen[reader], cursors(w.events(engine.EventFilter{Kinds: []string{"execution.submitted"}}), func(engine.LoggedEvent) bool { return true }))
		}
	})
}

func TestE31_the_order_is_the_same_for_every_reader(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{}, func(t *testing.T, w *world) {
		other := w.another()
		for i := range 20 {
			must([]*engine.Engine{w.e, other}[i%2].Submit(w.ctx(), client, core.Submission{Kind: "k"}))(t)
		}
		mine := w.events(engine.EventFilter{})
		theirs := []engine.LoggedEvent{}
		eventually(t, "the other reader has all of it", func() bool {
			theirs = must(other.ReadEvents(w.ctx(), client, engine.EventsRequest{After: "start", Limit: 1000}))(t).Events
			return len(theirs) == len(mine)
		})
		for i := range mine {
			same(t, "event", [2]any{theirs[i].Cursor, theirs[i].ID}, [2]any{mine[i].Cursor, mine[i].ID})
		}
	})
}

func TestE37_a_cursor_before_the_oldest_retained_event_is_too_old(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{Clock: turned, EventRetention: 24 * time.Hour}, func(t *testing.T, w *world) {
		w.unaudited = true // its log has no beginning
		w.submit(core.Submission{})
		old := must(w.e.ReadEvents(w.ctx(), client, engine.EventsRequest{After: "start"}))(t).Events[0].Cursor
		w.submit(core.Submission{})
		w.restart() // a process that has none of it in memory
		for day := 0; ; day++ {
			w.turn(2 * base.Day) // the sweep maintains the store
			w.submit(core.Submission{})
			_, err := w.e.ReadEvents(w.ctx(), client, engine.EventsRequest{After: old})
			if err != nil {
				refusal := refused(t, err, base.CodeCursorTooOld)
				oldest, _ := refusal.Details["oldest"].(string)
				must(w.e.ReadEvents(w.ctx(), client, engine.EventsRequest{After: oldest}))(t)
				break
			}
			if day > 2000 {
				t.Fatal("the log never gets shorter")
			}
		}
	})
}
