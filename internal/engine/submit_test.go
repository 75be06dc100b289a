package engine_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/metrics"
	"github.com/flowfabric/flowfabric/internal/store"
)

// empty fails the test unless the store holds no execution and the log no event of one.
func (w *world) empty() {
	w.t.Helper()
	page := must(w.e.List(w.ctx(), client, engine.ListRequest{}))(w.t)
	same(w.t, "executions", len(page.Items), 0)
	same(w.t, "events", len(w.events(engine.EventFilter{Kinds: []string{"execution."}})), 0)
}

func TestLC4_limits_of_a_submission_at_the_bound_and_above(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		tags := func(n int) base.Tags {
			all := base.Tags{}
			for i := range n {
				all[fmt.Sprint("t", i)] = strings.Repeat("v", 256)
			}
			return all
		}
		long := strings.Repeat
		cases := map[string]struct {
			at, above core.Submission
			code      base.Code
		}{
			"namespace":       {core.Submission{Namespace: long("n", 128)}, core.Submission{Namespace: long("n", 129)}, base.CodeInvalidArgument},
			"lane":            {core.Submission{Lane: long("l", 64)}, core.Submission{Lane: long("l", 65)}, base.CodeInvalidArgument},
			"kind":            {core.Submission{Kind: long("k", 128)}, core.Submission{Kind: long("k", 129)}, base.CodeInvalidArgument},
			"idempotency key": {core.Submission{IdempotencyKey: long("i", 256)}, core.Submission{IdempotencyKey: long("i", 257)}, base.CodeInvalidArgument},
			"creator":         {core.Submission{Creator: long("c", 256)}, core.Submission{Creator: long("c", 257)}, base.CodeInvalidArgument},
			"content type":    {core.Submission{Input: core.Payload{ContentType: long("c", 128)}}, core.Submission{Input: core.Payload{ContentType: long("c", 129)}}, base.CodeInvalidArgument},
			"input":           {core.Submission{Input: core.Payload{Data: make([]byte, 4<<20)}}, core.Submission{Input: core.Payload{Data: make([]byte, 4<<20+1)}}, base.CodePayloadTooLarge},
			"tags":            {core.Submission{Tags: tags(64)}, core.Submission{Tags: tags(65)}, base.CodeInvalidArgument},
			"tag key":         {core.Submission{Tags: base.Tags{long("k", 64): ""}}, core.Submission{Tags: base.Tags{long("k", 65): ""}}, base.CodeInvalidTagKey},
			"tag value":       {core.Submission{Tags: base.Tags{"k": long("v", 256)}}, core.Submission{Tags: base.Tags{"k": long("v", 257)}}, base.CodeInvalidArgument},
			"reserved tag":    {core.Submission{Tags: base.Tags{"ffx": ""}}, core.Submission{Tags: base.Tags{"ff.x": ""}}, base.CodeInvalidTagKey},
			"delay":           {core.Submission{DelayUntil: w.now().Add(10 * base.Year)}, core.Submission{DelayUntil: w.now().Add(10*base.Year + 1)}, base.CodeInvalidArgument},
			"delay_ms":        {core.Submission{DelayMS: ptr(10 * base.Year)}, core.Submission{DelayMS: ptr(10*base.Year + 1)}, base.CodeInvalidArgument},
			"deadline":        {core.Submission{DeadlineAt: w.now().Add(10 * base.Year)}, core.Submission{DeadlineAt: w.now().Add(10*base.Year + 1)}, base.CodeInvalidArgument},
			"passed deadline": {core.Submission{DeadlineAt: w.now() + 1}, core.Submission{DeadlineAt: w.now()}, base.CodeInvalidArgument},
			"policy":          {policy(`{"max_reclaim_count":10000}`), policy(`{"max_reclaim_count":10001}`), base.CodeInvalidPolicy},
		}
		for name, c := range cases {
			if c.above.Kind == "" {
				c.above.Kind = "k"
			}
			if _, err := w.e.Submit(w.ctx(), client, c.above); base.CodeOf(err) != c.code {
				t.Errorf("%s above the bound: %v", name, err)
			}
		}
		w.empty()
		for name, c := range cases {
			if c.at.Kind == "" {
				c.at.Kind = "k"
			}
			if _, err := w.e.Submit(w.ctx(), client, c.at); err != nil {
				t.Errorf("%s at the bound: %v", name, err)
			}
		}
	})
}

func TestL80_a_refused_submission_leaves_nothing(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		for field, s := range map[string]core.Submission{
			"kind":                   {},
			"lane":                   {Kind: "k", Lane: "a b"},
			"namespace":              {Kind: "k", Namespace: "-x"},
			"delay_ms":               {Kind: "k", DelayUntil: w.now() + 1, DelayMS: ptr(int64(1))},
			"retry_policy.surprise":  {Kind: "k", PolicyJSON: []byte(`{"retry_policy":{"surprise":1}}`)},
			"quotas[0].quota":        {Kind: "k", PolicyJSON: []byte(`{"quotas":[{"quota":"q"}]}`)},
			"budget_ids[0]":          {Kind: "k", PolicyJSON: []byte(`{"budget_ids":["b"]}`)},
			"execution_id":           {Kind: "k", ID: &base.GivenID{}},
			"timeout_policy.unknown": {Kind: "k", PolicyJSON: []byte(`{"timeout_policy":{"unknown":1}}`)},
		} {
			_, err := w.e.Submit(w.ctx(), client, s)
			if err == nil {
				t.Fatalf("%s was accepted", field)
			}
			same(t, "field", refused(t, err, base.CodeOf(err)).Field, field)
		}
		w.empty()
		lanes, _, err := w.e.Lanes(w.ctx(), client, "", nil)
		ok(t, err)
		same(t, "lanes", len(lanes), 0)
	})
}

func TestL79_the_answer_shows_state_and_clamped_priority(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		answer := must(w.e.Submit(w.ctx(), client, core.Submission{Kind: "k", Priority: 12_345}))(t)
		same(t, "ready", [2]any{answer.PublicState, answer.Priority}, [2]any{"waiting", 9000})
		answer = must(w.e.Submit(w.ctx(), client, core.Submission{Kind: "k", Priority: -5, DelayMS: ptr(int64(5))}))(t)
		same(t, "delayed", [2]any{answer.PublicState, answer.Priority}, [2]any{"delayed", 0})
		same(t, "minted N (L3)", answer.ID.N, base.PartitionOf(answer.ID.UUID))
		x := w.get(answer.ID.Given())
		same(t, "defaults", [5]string{x.Class.Namespace, x.Class.Lane, x.Creator, x.Input.ContentType, string(x.GivenPolicy().Encode())},
			[5]string{"default", "default", "me", "application/octet-stream", ""})
	})
}

func TestL3_a_caller_may_bring_its_own_id(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		bare := base.GivenID{UUID: base.UUID{0: 9, 6: 0x40, 15: 3}} // any version
		same(t, "computed N", w.submit(core.Submission{ID: &bare}).N, base.PartitionOf(bare.UUID))
		full := base.GivenID{UUID: base.UUID{0: 9, 15: 4}, N: 200, Full: true}
		same(t, "stated N", w.submit(core.Submission{ID: &full}).N, 200)
		wrong := base.GivenID{UUID: full.UUID, N: 201, Full: true}
		_, err := w.e.Submit(w.ctx(), client, core.Submission{Kind: "k", ID: &wrong})
		refused(t, err, base.CodeIDConflict)
	})
}

func TestLC5_one_key_one_execution_whatever_lane_kind_or_id(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		s := core.Submission{Kind: "k", IdempotencyKey: "key", Input: core.Payload{Data: []byte("a")}}
		id := w.submit(s)
		for name, change := range map[string]func(s *core.Submission){
			"lane":    func(s *core.Submission) { s.Lane = "other" },
			"kind":    func(s *core.Submission) { s.Kind = "other" },
			"input":   func(s *core.Submission) { s.Input.Data = []byte("b") },
			"content": func(s *core.Submission) { s.Input.ContentType = "x/y" },
			"policy":  func(s *core.Submission) { s.PolicyJSON = []byte(`{"max_reclaim_count":1}`) },
		} {
			other := s
			change(&other)
			_, err := w.e.Submit(w.ctx(), client, other)
			refusal := refused(t, err, base.CodeIdempotencyConflict)
			if refusal.Details["execution_id"] != id.ID().String() {
				t.Fatalf("%s: details %v", name, refusal.Details)
			}
		}
		for _, change := range []func(s *core.Submission){
			func(s *core.Submission) { s.Priority = 5 },
			func(s *core.Submission) { s.DelayMS = ptr(int64(10)) },
			func(s *core.Submission) { s.DeadlineAt = w.now() + 10 },
			func(s *core.Submission) { s.Tags = base.Tags{"a": "b"} },
			func(s *core.Submission) { s.Creator = "you" },
			func(s *core.Submission) { s.ID = &base.GivenID{UUID: base.UUID{1}} },
			func(s *core.Submission) { s.PolicyJSON = []byte(`{"max_reclaim_count":10}`) }, // the default written out
		} {
			other := s
			change(&other)
			answer := must(w.e.Submit(w.ctx(), client, other))(t)
			same(t, "answer", [2]any{answer.Outcome, answer.ID}, [2]any{"duplicate", id.ID()})
		}
		s.Namespace = "elsewhere"
		if w.submit(s) == id {
			t.Fatal("the key of another namespace")
		}
		same(t, "executions", len(must(w.e.List(w.ctx(), client, engine.ListRequest{}))(t).Items), 2)
	})
}

func TestLI15_I8_LC5_concurrent_submits_with_one_key_make_one_execution(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		engines := []*engine.Engine{w.e}
		if w.url != "" {
			engines = append(engines, w.another())
		}
		var mu sync.Mutex
		ids, created := map[base.ID]bool{}, 0
		var wg sync.WaitGroup
		for i := range 40 {
			wg.Go(func() {
				answer, err := engines[i%len(engines)].Submit(w.ctx(), client, core.Submission{Kind: "k", IdempotencyKey: "one"})
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				ids[answer.ID] = true
				if answer.Outcome == "created" {
					created++
				}
			})
		}
		wg.Wait()
		same(t, "ids and creations", [2]int{len(ids), created}, [2]int{1, 1})
	})
}

func TestL84_the_key_holds_for_its_window_and_not_longer(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		s := core.Submission{Kind: "k", IdempotencyKey: "key", PolicyJSON: []byte(`{"dedup_window_ms":60000}`)}
		first := w.submit(s)
		w.turn(59_999)
		same(t, "before its end", must(w.e.Submit(w.ctx(), client, s))(t).Outcome, "duplicate")
		w.turn(1)
		second := w.submit(s) // even though the first still lives
		if first == second {
			t.Fatal("the same execution")
		}
		same(t, "the new window", must(w.e.Submit(w.ctx(), client, s))(t).ID, second.ID())
		w.turn(60_000)
		s.Kind = "other"
		w.submit(s)
	})
}

func TestL84_the_key_outlives_retention_and_leaves_no_row_behind(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		s := core.Submission{Kind: "k", IdempotencyKey: "key", PolicyJSON: []byte(`{"retention_ms":1000,"dedup_window_ms":600000}`)}
		id := w.submit(s)
		w.complete(w.claim())
		w.turn(2000)
		w.gone(id)
		answer := must(w.e.Submit(w.ctx(), client, s))(t)
		same(t, "answer", [2]any{answer.Outcome, answer.ID}, [2]any{"duplicate", id.ID()})
		w.turn(700_000)
		key := store.Key{Space: store.ExecutionKeys, Namespace: "default", Text: "key"}
		eventually(t, "the key is gone", func() bool {
			return len(must(w.store.Read(w.ctx(), store.Want{Keys: []store.Key{key}}))(t).Keys) == 0
		})
	})
}

// gone waits until an execution is removed.
func (w *world) gone(id base.GivenID) {
	w.t.Helper()
	eventually(w.t, "removal of "+id.ID().String(), func() bool {
		_, err := w.e.Describe(w.ctx(), client, id)
		return base.CodeOf(err) == base.CodeExecutionNotFound
	})
}

func TestL85_an_id_that_exists_is_a_duplicate_or_a_conflict(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		id := base.GivenID{UUID: base.UUID{0: 3, 15: 1}}
		s := core.Submission{Kind: "k", ID: &id, Input: core.Payload{Data: []byte("a")}}
		w.submit(s)
		same(t, "same", must(w.e.Submit(w.ctx(), client, s))(t).Outcome, "duplicate")
		for _, other := range []core.Submission{
			{Kind: "k", ID: &id, Input: core.Payload{Data: []byte("b")}},
			{Kind: "k", ID: &id, Input: core.Payload{Data: []byte("a")}, Namespace: "other"},
			{Kind: "k2", ID: &id, Input: core.Payload{Data: []byte("a")}},
		} {
			_, err := w.e.Submit(w.ctx(), client, other)
			refused(t, err, base.CodeIDConflict)
		}
		w.complete(w.claim())
		same(t, "when it is over", must(w.e.Submit(w.ctx(), client, s))(t).PublicState, "completed")
	})
}

func TestL85_a_repeat_that_shares_its_batch_with_a_command_on_its_execution_is_a_duplicate(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		id := base.GivenID{UUID: base.UUID{0: 3, 15: 1}}
		s := core.Submission{Kind: "k", ID: &id, IdempotencyKey: "key", Input: core.Payload{Data: []byte("a")}}
		w.submit(s)
		other := w.submit(core.Submission{})
		hold := newGate("hold")
		open := sync.OnceFunc(func() { close(hold.open) })
		defer open() // also when the test fails
		w.cfg.Probe = hold
		w.restart()
		var calls sync.WaitGroup
		call := func(f func() error) {
			calls.Go(func() {
				if err := f(); err != nil {
					t.Error(err)
				}
			})
		}
		call(func() error { _, err := w.e.Hold(w.ctx(), client, other, engine.Operator{}); return err })
		<-hold.reached
		call(func() error { _, err := w.e.SetPriority(w.ctx(), client, id, 5, engine.Operator{}); return err })
		var again engine.SubmitAnswer
		call(func() (err error) { again, err = w.e.Submit(w.ctx(), client, s); return err })
		eventually(t, "both wait", func() bool { return int(gauge(t, w.e, metrics.CommitQueueDepth)) == 2 })
		open()
		calls.Wait()
		same(t, "outcome", again.Outcome, "duplicate")
	})
}

func TestL80_a_duplicate_is_known_before_the_lane_is_asked(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		s := core.Submission{Kind: "k", IdempotencyKey: "key"}
		w.submit(s)
		w.lane("default", core.LaneSettings{State: core.LaneDisabled})
		same(t, "duplicate", must(w.e.Submit(w.ctx(), client, s))(t).Outcome, "duplicate")
		_, err := w.e.Submit(w.ctx(), client, core.Submission{Kind: "k"})
		refused(t, err, base.CodeLaneNotAccepting)
	})
}

func TestL136_LC6_a_bulk_submit_of_ten_thousand_is_counted_exactly_and_one_more_at_least(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.unaudited = true // ten thousand rows that were not touched
		all := make([]core.Submission, 10_000)
		for i := range all {
			all[i] = core.Submission{Kind: "k", Priority: i % 10}
		}
		for _, item := range must(w.e.SubmitMany(w.ctx(), client, all, false))(t) {
			ok(t, item.Err)
			same(t, "outcome", item.Outcome, "created")
		}
		counted := func() engine.CountAnswer { return must(w.e.Count(w.ctx(), client, core.Filter{}))(t) }
		eventually(t, "all are counted", func() bool { return counted().Total == 10_000 })
		same(t, "exact up to 10 000 (L136)", counted().AtLeast, false)
		w.submit(core.Submission{})
		eventually(t, "then at least", func() bool { return counted().AtLeast })
		_, err := w.e.SubmitMany(w.ctx(), client, make([]core.Submission, 10_001), false)
		refused(t, err, base.CodeBatchTooLarge)
		big := core.Submission{Kind: "k", Input: core.Payload{Data: make([]byte, 4<<20)}}
		large := make([]core.Submission, 17)
		for i := range large {
			large[i] = big
		}
		_, err = w.e.SubmitMany(w.ctx(), client, large, false)
		refused(t, err, base.CodeBatchTooLarge)
	})
}

func TestL87_LC6_mixed_errors_keep_their_order_and_duplicates_inside_a_call_are_found(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		own := base.GivenID{UUID: base.UUID{0: 5, 15: 5}}
		all := []core.Submission{
			{Kind: "k", IdempotencyKey: "a"},
			{},
			{Kind: "k", IdempotencyKey: "a"},
			{Kind: "other", IdempotencyKey: "a"},
			{Kind: "k", ID: &own},
			{Kind: "k", ID: &own},
			{Kind: "k2", ID: &own},
			{Kind: "k", PolicyJSON: []byte(`{"x":1}`)},
			{Kind: "k", DeadlineAt: w.now()},
			{Kind: "k"},
		}
		items := must(w.e.SubmitMany(w.ctx(), client, all, false))(t)
		got := []string{}
		for _, item := range items {
			got = append(got, item.Outcome+string(base.CodeOf(item.Err)))
		}
		same(t, "results", got, []string{
			"created", "invalid_argument", "duplicate", "idempotency_conflict", "created", "duplicate", "id_conflict", "invalid_policy", "invalid_argument", "created",
		})
		same(t, "the same id", items[2].ID, items[0].ID)
		same(t, "executions", len(must(w.e.List(w.ctx(), client, engine.ListRequest{}))(t).Items), 3)
	})
}

func TestL87_LC6_an_atomic_bulk_submit_is_refused_as_a_whole(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		for _, c := range []struct {
			all   []core.Submission
			code  base.Code
			index int
		}{
			{[]core.Submission{{Kind: "k"}, {Kind: "k"}, {}}, base.CodeInvalidArgument, 2},
			{[]core.Submission{{Kind: "k", IdempotencyKey: "a"}, {Kind: "b", IdempotencyKey: "a"}}, base.CodeIdempotencyConflict, 1},
			{[]core.Submission{{Kind: "k"}, {Kind: "k", DeadlineAt: w.now()}, {Kind: "k"}}, base.CodeInvalidArgument, 1},
		} {
			_, err := w.e.SubmitMany(w.ctx(), client, c.all, true)
			same(t, "index", refused(t, err, c.code).Details["index"], any(c.index))
			w.empty()
		}
		all := []core.Submission{{Kind: "k", IdempotencyKey: "a"}, {Kind: "k", IdempotencyKey: "a"}, {Kind: "k"}}
		items := must(w.e.SubmitMany(w.ctx(), client, all, true))(t)
		same(t, "outcomes", [3]string{items[0].Outcome, items[1].Outcome, items[2].Outcome}, [3]string{"created", "duplicate", "created"})
	})
}

func TestLI16_LC24_bytes_come_back_bit_for_bit(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		every := make([]byte, 256)
		for i := range every {
			every[i] = byte(i)
		}
		for _, bytes := range [][]byte{every, {}, make([]byte, 4<<20)} {
			task := w.started(core.Submission{Input: core.Payload{Data: bytes, ContentType: "x/y"}})
			same(t, "input of the task", string(task.Execution.Input.Data), string(bytes))
			same(t, "input", string(must(w.e.Input(w.ctx(), client, given(task)))(t).Data), string(bytes))
			must(w.e.Complete(w.ctx(), client, given(task), fence(task), &core.Payload{Data: bytes}))(t)
			result := must(w.e.Result(w.ctx(), client, given(task)))(t)
			if result == nil || string(result.Data) != string(bytes) {
				t.Fatalf("result of %d bytes: %v", len(bytes), result)
			}
		}
		task := w.started(core.Submission{})
		_, err := w.e.Complete(w.ctx(), client, given(task), fence(task), &core.Payload{Data: make([]byte, 4<<20+1)})
		refused(t, err, base.CodePayloadTooLarge)
		w.is(given(task), core.Running, core.ReasonNone) // the lease stays as it was (L89)
		must(w.e.Fail(w.ctx(), client, given(task), core.FailCommand{Fence: fence(task), Class: "permanent", Message: "a\xffb" + strings.Repeat("é", 10_000), Detail: append(every, make([]byte, 64<<10)...)}))(t)
		failure := w.get(given(task)).Failure
		if !strings.HasPrefix(failure.Message, "a\ufffdbé") || len(failure.Message) > 16<<10 || len(failure.Message) < 16<<10-1 {
			t.Fatalf("message of %d bytes", len(failure.Message))
		}
		same(t, "detail", string(failure.Detail), string(append(every, make([]byte, 64<<10-256)...)))
	})
}

func TestL82_a_key_held_by_an_open_transaction_is_waited_for_aside(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{}, func(t *testing.T, w *world) {
		own := w.beginOwn()
		must(w.e.SubmitTx(w.ctx(), client, own.tx, core.Submission{Kind: "k", IdempotencyKey: "held"}))(t)
		blocked := make(chan error, 1)
		go func() {
			_, err := w.e.Submit(w.ctx(), client, core.Submission{Kind: "k", IdempotencyKey: "held"})
			blocked <- err
		}()
		for range 20 { // its siblings do not wait
			w.submit(core.Submission{})
		}
		refused(t, <-blocked, base.CodeIdempotencyInProgress)
		ok(t, own.commit())
		same(t, "afterwards", must(w.e.Submit(w.ctx(), client, core.Submission{Kind: "k", IdempotencyKey: "held"}))(t).Outcome, "duplicate")
	})
}

func TestL82_an_atomic_bulk_submit_is_told_that_its_key_is_in_progress(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{}, func(t *testing.T, w *world) {
		held := core.Submission{Kind: "k", IdempotencyKey: "held"}
		own := w.beginOwn()
		must(w.e.SubmitTx(w.ctx(), client, own.tx, held))(t)
		_, err := w.e.SubmitMany(w.ctx(), client, []core.Submission{{Kind: "k", IdempotencyKey: "free"}, held}, true)
		refused(t, err, base.CodeIdempotencyInProgress)
		ok(t, own.rollback())
		for _, item := range must(w.e.SubmitMany(w.ctx(), client, []core.Submission{{Kind: "k", IdempotencyKey: "free"}, held}, true))(t) {
			same(t, "afterwards", item.Outcome, "created")
		}
	})
}
