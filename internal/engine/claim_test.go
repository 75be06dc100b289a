package engine_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

func TestS15_kinds_and_namespaces_of_a_claim_are_checked_at_the_door(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		for _, known := range []bool{false, true} {
			for field, change := range map[string]func(r *engine.ClaimRequest){
				"kinds[1]":      func(r *engine.ClaimRequest) { r.Kinds = []string{"k", "not a kind"} },
				"kinds":         func(r *engine.ClaimRequest) { r.Kinds = make([]string, 1001) },
				"namespaces[0]": func(r *engine.ClaimRequest) { r.Namespaces = []string{"-"} },
			} {
				r := ask()
				change(&r)
				_, err := w.e.Claim(w.ctx(), client, r)
				same(t, fmt.Sprint("field, of a known instance: ", known), refused(t, err, base.CodeInvalidArgument).Field, field)
			}
			w.nothing()
		}
		w.submit(core.Submission{})
		r := ask()
		r.Kinds, r.Namespaces = []string{}, []string{}
		same(t, "empty lists are all", len(w.take(r)), 1)
	})
}

func TestS15_the_arguments_of_a_claim_have_bounds(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		many := make([]string, 65)
		for i := range many {
			many[i] = fmt.Sprint("l", i)
		}
		for name, c := range map[string]struct {
			change func(r *engine.ClaimRequest)
			code   base.Code
		}{
			"worker":       {func(r *engine.ClaimRequest) { r.WorkerID = "" }, base.CodeInvalidArgument},
			"instance":     {func(r *engine.ClaimRequest) { r.InstanceID = "a b" }, base.CodeInvalidArgument},
			"no lanes":     {func(r *engine.ClaimRequest) { r.Lanes = nil }, base.CodeInvalidArgument},
			"65 lanes":     {func(r *engine.ClaimRequest) { r.Lanes = many }, base.CodeInvalidArgument},
			"lane":         {func(r *engine.ClaimRequest) { r.Lanes = []string{"a b"} }, base.CodeInvalidArgument},
			"max":          {func(r *engine.ClaimRequest) { r.Max = 1001 }, base.CodeInvalidArgument},
			"negative max": {func(r *engine.ClaimRequest) { r.Max = -1 }, base.CodeInvalidArgument},
			"wait":         {func(r *engine.ClaimRequest) { r.Wait = 60*time.Second + 1 }, base.CodeInvalidArgument},
			"order":        {func(r *engine.ClaimRequest) { r.LaneOrder = "random" }, base.CodeInvalidArgument},
			"ttl":          {func(r *engine.ClaimRequest) { r.TTL = 499 }, base.CodeInvalidArgument},
			"request key":  {func(r *engine.ClaimRequest) { r.RequestKey = "a b" }, base.CodeInvalidArgument},
			"capabilities": {func(r *engine.ClaimRequest) { r.Capabilities = []string{"a,b"} }, base.CodeInvalidCapabilities},
		} {
			r := ask()
			c.change(&r)
			_, err := w.e.Claim(w.ctx(), client, r)
			if base.CodeOf(err) != c.code {
				t.Errorf("%s: %v", name, err)
			}
		}
		workers, _, err := w.e.Workers(w.ctx(), client, engine.WorkerQuery{State: "all"})
		ok(t, err)
		same(t, "a refused claim registers no instance", len(workers), 0)
		r := ask()
		r.Lanes, r.Max, r.TTL = many[:64], 1000, 500
		same(t, "at the bounds", len(w.take(r)), 0)
	})
}

func TestSC4_a_claim_of_a_thousand(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.submitMany(1200, core.Submission{Input: core.Payload{Data: []byte("x")}})
		r := ask()
		r.Max = 1000
		first := w.take(r)
		same(t, "first", len(first), 1000)
		same(t, "second", len(w.take(r)), 200)
		same(t, "third", len(w.take(r)), 0)
		seen := map[base.ID]bool{}
		for _, task := range first {
			seen[task.Execution.ID] = true
		}
		same(t, "each once", len(seen), 1000)
		same(t, "input", string(first[999].Execution.Input.Data), "x")
	})
}

func TestSC4_many_callers_share_the_work_and_no_two_get_the_same(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.submitMany(100, core.Submission{})
		engines := []*engine.Engine{w.e}
		if w.url != "" {
			engines = append(engines, w.another())
		}
		var mu sync.Mutex
		seen := map[base.ID]int{}
		var wg sync.WaitGroup
		for i := range 60 {
			wg.Go(func() {
				r := ask()
				r.InstanceID, r.Max = fmt.Sprint("w", i), 3
				answer, err := engines[i%len(engines)].Claim(w.ctx(), client, r)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				for _, task := range answer.Tasks {
					seen[task.Execution.ID]++
				}
			})
		}
		wg.Wait()
		for len(w.take(ask())) > 0 { // two engines may pass over rows that the other is taking
			seen[base.ID{N: 1, UUID: base.UUID{byte(len(seen)), 1}}]++
		}
		same(t, "claimed", len(seen), 100)
		for id, n := range seen {
			same(t, id.String(), n, 1)
		}
	})
}

func TestSC4_kinds_and_namespaces_filter(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		a := w.submit(core.Submission{Kind: "a", Namespace: "n1"})
		b := w.submit(core.Submission{Kind: "b", Namespace: "n2"})
		c := w.submit(core.Submission{Kind: "c", Namespace: "n2"})
		r := ask()
		r.Kinds, r.Max = []string{"b", "z"}, 10
		tasks := w.take(r)
		same(t, "by kind", len(tasks), 1)
		same(t, "by kind", given(tasks[0]), b)
		r = ask()
		r.Namespaces, r.Max = []string{"n1"}, 10
		tasks = w.take(r)
		same(t, "by namespace", given(tasks[0]), a)
		r = ask()
		r.Namespaces = []string{"n2"}
		stranger := engine.Caller{Principal: "p", Actor: "worker", Namespaces: []string{"n1"}}
		of := r
		of.InstanceID = "p1"
		_, err := w.e.Claim(w.ctx(), stranger, of)
		refused(t, err, base.CodeNamespaceForbidden)
		of.Namespaces = []string{"n1", "n2"}
		same(t, "never more than the principal's", len(must(w.e.Claim(w.ctx(), stranger, of))(t).Tasks), 0)
		r.Namespaces = of.Namespaces
		same(t, "the rest", given(w.take(r)[0]), c)
	})
}

func TestS18_lanes_rotate_or_are_served_as_listed(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		for _, lane := range []string{"a", "b", "c"} {
			w.submitMany(4, core.Submission{Lane: lane})
		}
		r := ask()
		r.Lanes, r.LaneOrder, r.Max = []string{"b", "a", "c"}, "listed", 5
		same(t, "listed", lanesOf(w.take(r)), []string{"b", "b", "b", "b", "a"})
		r.LaneOrder, r.Max = "rotate", 6
		lanes := map[string]int{}
		for _, lane := range lanesOf(w.take(r)) {
			lanes[lane]++
		}
		same(t, "rotate takes turns", lanes, map[string]int{"a": 3, "c": 3})
	})
}

func lanesOf(tasks []engine.Task) []string {
	lanes := []string{}
	for _, task := range tasks {
		lanes = append(lanes, task.Execution.Class.Lane)
	}
	return lanes
}

func TestS18_single_claims_rotate_too(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		for _, lane := range []string{"a", "b"} {
			w.submitMany(3, core.Submission{Lane: lane})
		}
		r := ask()
		r.Lanes = []string{"a", "b"}
		lanes := []string{}
		for range 6 {
			lanes = append(lanes, lanesOf(w.take(r))...)
		}
		same(t, "turns", lanes, []string{"a", "b", "a", "b", "a", "b"})
	})
}

func TestS17_a_candidate_is_settled_before_it_is_taken(t *testing.T) {
	t.Parallel()
	// Without timers only the claim itself can notice the deadline.
	onStoresWith(t, engine.Config{NoTimers: true, PollInterval: time.Hour}, func(t *testing.T, w *world) {
		w.unaudited = true
		over := w.submit(core.Submission{DeadlineAt: w.now() + 100, Priority: 5})
		next := w.submit(core.Submission{})
		w.turn(100)
		r := ask()
		r.Max = 2
		tasks := w.take(r)
		same(t, "tasks", len(tasks), 1)
		same(t, "the one behind it", given(tasks[0]), next)
		w.is(over, core.Expired, core.ExecutionDeadline)
	})
}

func TestS21_the_answer_carries_what_the_worker_needs(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.submit(core.Submission{
			Kind: "mail", Input: core.Payload{Data: []byte{1, 2}, ContentType: "x/y"}, Tags: base.Tags{"t": "1"}, DeadlineAt: w.now() + 9000,
			PolicyJSON: []byte(`{"timeout_policy":{"attempt_timeout_ms":4000},"max_reclaim_count":3}`),
		})
		r := ask()
		r.TTL = 1234
		answer := must(w.e.Claim(w.ctx(), client, r))(t)
		same(t, "now", answer.Now, w.now())
		x := answer.Tasks[0].Execution
		same(t, "input", x.Input, core.Payload{Data: []byte{1, 2}, ContentType: "x/y", Size: 2})
		same(t, "lease", [2]any{x.Lease.TTL, x.Lease.ExpiresAt}, [2]any{int64(1234), w.now() + 1234})
		same(t, "rest", [5]any{x.Class.Kind, x.Tags["t"], x.DeadlineAt, x.AttemptDeadline, x.Policy.MaxReclaims},
			[5]any{"mail", "1", w.now() + 9000, w.now() + 4000, 3})
	})
}

func TestS22_a_caller_who_has_gone_claims_nothing(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		ctx, cancel := context.WithCancel(w.ctx())
		done := make(chan error, 1)
		go func() {
			r := ask()
			r.Wait = patience
			_, err := w.e.Claim(ctx, client, r)
			done <- err
		}()
		w.seen("w1")
		cancel()
		refused(t, <-done, base.CodeTimeout)
		id := w.submit(core.Submission{})
		w.is(id, core.Ready, core.WaitingForWorker)
		same(t, "somebody else", given(w.claimAs(engine.ClaimRequest{WorkerID: "w", InstanceID: "w2", Lanes: []string{"default"}})), id)
	})
}

// seen waits until the instance's claim has been to the store.
func (w *world) seen(instance string) {
	w.t.Helper()
	eventually(w.t, "instance "+instance, func() bool {
		_, err := w.e.Worker(w.ctx(), client, instance)
		return err == nil
	})
}

func TestS23_waiting_claims_are_bounded(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{MaxWaitingClaims: 2}, func(t *testing.T, w *world) {
		done := make(chan int, 2)
		for i := range 2 {
			go func() {
				r := ask()
				r.InstanceID, r.Wait = fmt.Sprint("i", i), patience
				answer, _ := w.e.Claim(w.ctx(), client, r)
				done <- len(answer.Tasks)
			}()
		}
		w.seen("i0")
		w.seen("i1")
		_, err := w.e.Claim(w.ctx(), client, ask())
		refusal := refused(t, err, base.CodeOverloaded)
		if refusal.RetryAfterMS == 0 {
			t.Fatal("no retry_after_ms")
		}
		w.submitMany(2, core.Submission{})
		same(t, "those who waited", [2]int{<-done, <-done}, [2]int{1, 1})
	})
}

func TestS21_an_empty_answer_after_the_wait_is_no_error(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		r := ask()
		r.Wait = 30 * time.Millisecond
		answer := must(w.e.Claim(w.ctx(), client, r))(t)
		same(t, "tasks", len(answer.Tasks), 0)
		r.Lanes = []string{"unknown-lane"}
		same(t, "unknown lane", len(w.take(r)), 0)
	})
}

func TestS72_a_stopping_engine_ends_waits_and_refuses_commands(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.unaudited = true
		id := w.submit(core.Submission{Lane: "other"})
		claimed, waited := make(chan error, 1), make(chan error, 1)
		go func() {
			r := ask()
			r.Wait = patience
			_, err := w.e.Claim(w.ctx(), client, r)
			claimed <- err
		}()
		go func() {
			view, err := w.e.Wait(w.ctx(), client, id, patience)
			if err == nil && view.Execution.Status != core.Ready {
				err = fmt.Errorf("status %s", view.Execution.Status)
			}
			waited <- err
		}()
		w.seen("w1")
		closeEngine(t, w.e)
		refused(t, <-claimed, base.CodeShuttingDown)
		ok(t, <-waited)
		_, err := w.e.Submit(w.ctx(), client, core.Submission{Kind: "k"})
		refused(t, err, base.CodeShuttingDown)
		_, err = w.e.SubmitMany(w.ctx(), client, []core.Submission{{Kind: "k"}}, false)
		refused(t, err, base.CodeShuttingDown)
		_, err = w.e.Claim(w.ctx(), client, ask())
		refused(t, err, base.CodeShuttingDown)
		_, err = w.e.Cancel(w.ctx(), operator, id, nil, "", engine.Operator{})
		refused(t, err, base.CodeShuttingDown)
		w.e = w.openEngine(w.store)
		w.is(id, core.Ready, core.WaitingForWorker)
	})
}
