package flowfabric_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/jackc/pgx/v5"
	_ "modernc.org/sqlite" // the driver of the user's own transaction

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/embedded"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/postgres"
)

const echo flowfabric.Kind[flowfabric.Payload, flowfabric.Payload] = "echo"

func TestU132_two_option_structs_are_refused(t *testing.T) {
	t.Parallel()
	w := openSQLite(t, engine.Hooks{})
	ctx := inTime(t)
	_, openErr := embedded.Open(ctx, "sqlite:"+filepath.Join(t.TempDir(), "x.db"), embedded.Config{}, embedded.Config{})
	_, pageErr := w.Executions().Page(ctx, ops.ListOptions{}, ops.ListOptions{})
	_, holdErr := w.Operate().Hold(ctx, "x", ops.Action{}, ops.Action{})
	for name, err := range map[string]error{"Open": openErr, "Page": pageErr, "Hold": holdErr} {
		if flowfabric.CodeOf(err) != "invalid_argument" {
			t.Errorf("%s with two option structs: %v, want invalid_argument", name, err)
		}
	}
}

func TestU132_option_structs_of_a_submit_are_merged_and_the_later_ones_win(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		usual := echo.With(flowfabric.SubmitOptions{
			Lane: "mail", Priority: 3, Tags: map[string]string{"a": "1", "b": "1"},
			Policy: &flowfabric.Policy{Retry: &flowfabric.RetryPolicy{MaxRetries: 7}, LeaseGrace: time.Second},
		})
		other := flowfabric.SubmitOptions{Priority: 5, Tags: map[string]string{"b": "2"}, Policy: &flowfabric.Policy{LeaseGrace: 2 * time.Second}}
		for name, submit := range map[string]func() (flowfabric.ID, error){
			"defaults of the kind": func() (flowfabric.ID, error) {
				run, err := usual.Submit(ctx, w.Client, flowfabric.Payload{}, other)
				if err != nil {
					return "", err
				}
				return run.ID(), nil
			},
			"several": func() (flowfabric.ID, error) {
				result, err := w.Submit(ctx, usual.Kind().Submission(flowfabric.Payload{}, usual.Submission(flowfabric.Payload{}).SubmitOptions, other))
				return result.ID, err
			},
		} {
			id, err := submit()
			if err != nil {
				t.Fatal(err)
			}
			x := must[*flowfabric.Execution](t)(w.Get(ctx, id))
			var policy flowfabric.Policy
			if err := json.Unmarshal(x.Policy, &policy); err != nil {
				t.Fatal(err)
			}
			if x.Lane != "mail" || x.Priority != 5 || x.Tags["a"] != "1" || x.Tags["b"] != "2" || policy.Retry.MaxRetries != 7 || policy.LeaseGrace != 2*time.Second || x.RetryOrigin != "submission" {
				t.Errorf("%s: %+v with policy %s", name, x, x.Policy)
			}
		}
	})
}

func TestU132_an_address_that_is_no_store_is_refused_with_a_hint(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"", "app.db", "mysql://x", "sqlite:"} {
		_, err := embedded.Open(inTime(t), address)
		var refusal *flowfabric.Error
		if !errors.As(err, &refusal) || refusal.Code != "invalid_argument" || refusal.Field != "store" {
			t.Errorf("Open(%q) = %v, want invalid_argument of store", address, err)
		}
	}
}

func TestU133_a_second_open_of_a_file_is_store_locked(t *testing.T) {
	t.Parallel()
	w := openSQLite(t, engine.Hooks{})
	_, err := embedded.Open(inTime(t), w.url)
	if flowfabric.CodeOf(err) != "store_locked" || !errors.Is(err, flowfabric.ErrConflict) {
		t.Fatalf("second Open = %v, want store_locked", err)
	}
}

func TestU133_lists_fetch_pages_as_the_loop_goes(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		all := make([]flowfabric.Submission, 25)
		for i := range all {
			all[i] = echo.Submission(flowfabric.Text("x"), flowfabric.SubmitOptions{Tags: map[string]string{"half": fmt.Sprint(i % 2)}})
		}
		results := must[[]flowfabric.SubmitResult](t)(w.SubmitMany(ctx, all))
		seen := map[flowfabric.ID]int{}
		for x, err := range w.Executions().List(ctx, ops.ListOptions{Limit: 4}) {
			if err != nil {
				t.Fatal(err)
			}
			seen[x.ID]++
		}
		for _, r := range results {
			if r.Err != nil || seen[r.ID] != 1 {
				t.Errorf("%s was listed %d times (%v), want once", r.ID, seen[r.ID], r.Err)
			}
		}
		half := ops.ListOptions{Filter: ops.Filter{Tags: map[string]string{"half": "1"}}, Limit: 5, Order: ops.CreatedAsc}
		page := must[flowfabric.Page[*flowfabric.Execution]](t)(w.Executions().Page(ctx, half))
		if len(page.Items) != 5 || page.NextCursor == "" {
			t.Errorf("a page of 5 has %d items, cursor %q", len(page.Items), page.NextCursor)
		}
		if n := must[api.Count](t)(w.Executions().Count(ctx, half.Filter)); n.Total != 12 || n.AtLeast {
			t.Errorf("Count = %+v, want 12", n)
		}
		for _, err := range w.Executions().List(ctx, ops.ListOptions{Filter: ops.Filter{Status: []flowfabric.Status{"odd"}}}) {
			if flowfabric.CodeOf(err) != "invalid_filter" {
				t.Errorf("a filter that selects nothing known: %v, want invalid_filter", err)
			}
		}
	})
}

func TestU133_follow_gives_every_event_in_order_and_ends_with_its_context(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx, cancel := context.WithCancel(inTime(t))
		defer cancel()
		run := must[*flowfabric.Run[flowfabric.Payload]](t)(echo.Submit(ctx, w.Client, flowfabric.Text("x")))
		must[*flowfabric.Execution](t)(w.Cancel(ctx, run.ID(), "enough"))
		var kinds []string
		for event, err := range w.Events().Follow(ctx, ops.ReadOptions{After: api.FromStart, EventFilter: ops.EventFilter{ExecutionID: run.ID()}}) {
			if err != nil {
				t.Fatal(err)
			}
			kinds = append(kinds, event.Kind)
			if event.Kind == "execution.completed" {
				cancel()
			}
		}
		if want := []string{"execution.submitted", "execution.cancel_requested", "execution.completed"}; !slices.Equal(kinds, want) {
			t.Errorf("events %q, want %q", kinds, want)
		}
	})
}

func TestU134_an_id_is_checked_and_both_forms_name_the_execution(t *testing.T) {
	t.Parallel()
	w := openSQLite(t, engine.Hooks{})
	ctx := inTime(t)
	run := must[*flowfabric.Run[flowfabric.Payload]](t)(echo.Submit(ctx, w.Client, flowfabric.Text("x")))
	bare := string(run.ID())
	x := must[*flowfabric.Execution](t)(w.Get(ctx, run.ID()))
	full := flowfabric.ID(fmt.Sprintf("{fp:%d}:%s", x.Partition, bare))
	if y := must[*flowfabric.Execution](t)(w.Get(ctx, full)); x.ID != run.ID() || y.ID != run.ID() {
		t.Errorf("%s and %s name %s and %s", run.ID(), full, x.ID, y.ID)
	}
	for _, text := range []string{"", "x", strings.ToUpper(bare), "{fp:256}:" + bare, "{fp:01}:" + bare} {
		if _, err := flowfabric.ParseID(text); flowfabric.CodeOf(err) != "invalid_id" {
			t.Errorf("ParseID(%q) = %v, want invalid_id", text, err)
		}
		if _, err := w.Get(ctx, flowfabric.ID(text)); flowfabric.CodeOf(err) != "invalid_id" {
			t.Errorf("Get(%q) = %v, want invalid_id", text, err)
		}
	}
}

func TestU134_a_submission_keeps_all_its_options(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		start, deadline := time.Now().Add(time.Hour).Truncate(time.Millisecond), time.Now().Add(2*time.Hour).Truncate(time.Millisecond)
		id := flowfabric.ID("0190f0c2-1111-7aaa-8bbb-0123456789ab")
		run := must[*flowfabric.Run[flowfabric.Payload]](t)(echo.Submit(ctx, w.Client, flowfabric.Bytes([]byte{0, 255}, "x/y"), flowfabric.SubmitOptions{
			ID: id, Lane: "slow", IdempotencyKey: "key", Priority: 99999, StartAt: start, Deadline: deadline,
			Tags: map[string]string{"a": "b"}, Requires: []string{"gpu"},
		}))
		x := must[*flowfabric.Execution](t)(w.Get(ctx, run.ID()))
		if x.Status != flowfabric.StatusDelayed || x.Lane != "slow" || x.IdempotencyKey != "key" || x.Priority != 9000 || x.Tags["a"] != "b" ||
			!x.DelayUntil.Equal(start) || !x.DeadlineAt.Equal(deadline) || x.Creator != w.who || x.Namespace != "default" {
			t.Errorf("Get = %+v", x)
		}
		if !bytes.Equal(x.Input.Data, []byte{0, 255}) || x.Input.ContentType != "x/y" || x.Input.Size() != 2 {
			t.Errorf("input %+v of %d bytes", x.Input, x.Input.Size())
		}
		again := must[*flowfabric.Run[flowfabric.Payload]](t)(echo.Submit(ctx, w.Client, flowfabric.Bytes([]byte{0, 255}, "x/y"), flowfabric.SubmitOptions{
			Lane: "slow", IdempotencyKey: "key", Requires: []string{"gpu"},
		}))
		if again.ID() != run.ID() || !again.Duplicate() || run.Duplicate() {
			t.Errorf("the same key again: %s, duplicate %v", again.ID(), again.Duplicate())
		}
		_, err := echo.Submit(ctx, w.Client, flowfabric.Text("other"), flowfabric.SubmitOptions{IdempotencyKey: "key"})
		if flowfabric.CodeOf(err) != "idempotency_conflict" {
			t.Errorf("the same key for other work: %v, want idempotency_conflict", err)
		}
	})
}

func TestU134_an_encoding_error_is_reported_by_the_call_that_uses_the_payload(t *testing.T) {
	t.Parallel()
	w := openSQLite(t, engine.Hooks{})
	_, err := flowfabric.Kind[any, flowfabric.None]("odd").Submit(inTime(t), w.Client, func() {})
	var refusal *flowfabric.Error
	if !errors.As(err, &refusal) || refusal.Code != "invalid_argument" || refusal.Field != "input" {
		t.Errorf("a function as input: %v, want invalid_argument of input", err)
	}
}

func TestU134_every_field_of_a_policy_reaches_the_rules(t *testing.T) {
	t.Parallel()
	w := openSQLite(t, engine.Hooks{})
	ctx := inTime(t)
	refused := map[string]flowfabric.Policy{
		"retry_policy.max_retries":             {Retry: &flowfabric.RetryPolicy{MaxRetries: 10_001}},
		"retry_policy.backoff.strategy":        {Retry: &flowfabric.RetryPolicy{Backoff: flowfabric.Backoff{Strategy: "odd"}}},
		"retry_policy.backoff.initial_ms":      {Retry: &flowfabric.RetryPolicy{Backoff: flowfabric.Backoff{Initial: 8 * 24 * time.Hour}}},
		"retry_policy.backoff.max_ms":          {Retry: &flowfabric.RetryPolicy{Backoff: flowfabric.Backoff{Max: 31 * 24 * time.Hour}}},
		"retry_policy.backoff.multiplier":      {Retry: &flowfabric.RetryPolicy{Backoff: flowfabric.Backoff{Multiplier: 0.5}}},
		"retry_policy.backoff.delay_ms":        {Retry: &flowfabric.RetryPolicy{Backoff: flowfabric.Backoff{Strategy: "fixed", Delay: -1 * time.Second}}},
		"retry_policy.backoff.jitter":          {Retry: &flowfabric.RetryPolicy{Backoff: flowfabric.Backoff{Jitter: 2}}},
		"retry_policy.retryable_categories[0]": {Retry: &flowfabric.RetryPolicy{Categories: []string{"NO"}}},
		"retry_policy.max_elapsed_ms":          {Retry: &flowfabric.RetryPolicy{MaxElapsed: -time.Second}},
		"timeout_policy.attempt_timeout_ms":    {AttemptTimeout: -time.Second},
		"timeout_policy.execution_deadline_ms": {Deadline: -time.Second},
		"lease_grace_ms":                       {LeaseGrace: time.Hour},
		"max_reclaim_count":                    {MaxReclaims: 10_001},
		"max_replay_count":                     {MaxReplays: 1001},
		"fairness_key":                         {FairnessKey: strings.Repeat("x", 129)},
		"dedup_window_ms":                      {DedupWindow: time.Millisecond},
		"retention_ms.failed":                  {Retention: flowfabric.Retention{Failed: 20 * 365 * 24 * time.Hour}},
	}
	for field, policy := range refused {
		_, err := echo.Submit(ctx, w.Client, flowfabric.Payload{}, flowfabric.SubmitOptions{Policy: &policy})
		var refusal *flowfabric.Error
		if !errors.As(err, &refusal) || refusal.Code != "invalid_policy" || refusal.Field != "policy."+field {
			t.Errorf("%s out of range: %v", field, err)
		}
	}
	_, err := echo.Submit(ctx, w.Client, flowfabric.Payload{}, flowfabric.SubmitOptions{
		Requires: []string{"a"}, Policy: &flowfabric.Policy{Capabilities: []string{"b"}},
	})
	if flowfabric.CodeOf(err) != "invalid_argument" {
		t.Errorf("capabilities given twice: %v, want invalid_argument", err)
	}
	full := &flowfabric.Policy{
		Retry:          &flowfabric.RetryPolicy{MaxRetries: -1, Backoff: flowfabric.Backoff{Strategy: "fixed"}, Categories: []string{"x"}, MaxElapsed: time.Hour},
		AttemptTimeout: time.Minute, Deadline: time.Hour, LeaseGrace: time.Second, MaxReclaims: -1, MaxReplays: 5,
		Capabilities: []string{"gpu"}, FairnessKey: "k", DedupWindow: time.Hour, Retention: flowfabric.Retention{Succeeded: flowfabric.KeepForever},
	}
	if _, err := echo.Submit(ctx, w.Client, flowfabric.Payload{}, flowfabric.SubmitOptions{Policy: full}); err != nil {
		t.Errorf("a full policy: %v", err)
	}
}

func TestU135_values_travel_as_their_types_say(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		type both struct{ A, B string }
		raw := flowfabric.Kind[[]byte, []byte]("raw")
		text := flowfabric.Kind[string, string]("text")
		object := flowfabric.Kind[both, both]("object")
		nothing := flowfabric.Kind[flowfabric.None, flowfabric.None]("nothing")
		w.work(t, flowfabric.WorkerConfig{}, func(worker *flowfabric.Worker) {
			flowfabric.Handle(worker, raw, func(_ context.Context, _ *flowfabric.Task, in []byte) ([]byte, error) { return in, nil })
			flowfabric.Handle(worker, text, func(_ context.Context, _ *flowfabric.Task, in string) (string, error) { return in, nil })
			flowfabric.Handle(worker, object, func(_ context.Context, _ *flowfabric.Task, in both) (both, error) { return in, nil })
			flowfabric.Handle(worker, nothing, func(context.Context, *flowfabric.Task, flowfabric.None) (flowfabric.None, error) {
				return flowfabric.None{}, nil
			})
			flowfabric.Handle(worker, echo, func(_ context.Context, _ *flowfabric.Task, in flowfabric.Payload) (flowfabric.Payload, error) {
				return in, nil
			})
		})
		every := make([]byte, 256)
		for i := range every {
			every[i] = byte(i)
		}
		roundTrip(t, w, raw, every, contentOf(t, "application/octet-stream"))
		roundTrip(t, w, raw, []byte{}, contentOf(t, "application/octet-stream"))
		roundTrip(t, w, text, "grüße", contentOf(t, "text/plain; charset=utf-8"))
		roundTrip(t, w, object, both{"x", "y"}, contentOf(t, "application/json"))
		roundTrip(t, w, echo, flowfabric.Bytes(every, "image/x"), contentOf(t, "image/x"))
		roundTrip(t, w, echo, flowfabric.Bytes(make([]byte, 100<<10), "large/x"), contentOf(t, "large/x"))
		roundTrip(t, w, nothing, flowfabric.None{}, func(x *flowfabric.Execution) {
			if x.HasResult {
				t.Errorf("None as result: %+v, want no result", x.Result)
			}
		})
	})
}

// contentOf checks that the result has this content type.
func contentOf(t *testing.T, contentType string) func(*flowfabric.Execution) {
	return func(x *flowfabric.Execution) {
		t.Helper()
		if !x.HasResult || x.Result.ContentType != contentType {
			t.Errorf("result %v of type %q, want %q", x.HasResult, x.Result.ContentType, contentType)
		}
	}
}

// roundTrip submits a value to a handler that gives it back.
func roundTrip[T any](t *testing.T, w *world, kind flowfabric.Kind[T, T], in T, check func(*flowfabric.Execution)) {
	t.Helper()
	ctx := inTime(t)
	run := must[*flowfabric.Run[T]](t)(kind.Submit(ctx, w.Client, in))
	out := must[T](t)(run.Result(ctx))
	if fmt.Sprint(in) != fmt.Sprint(out) {
		t.Errorf("%s came back as another value", kind)
	}
	check(must[*flowfabric.Execution](t)(w.Get(ctx, run.ID())))
}

func TestU136_an_execution_that_ended_otherwise_gives_an_execution_error(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		fails := flowfabric.Kind[int, int]("fails")
		w.work(t, flowfabric.WorkerConfig{}, func(worker *flowfabric.Worker) {
			flowfabric.Handle(worker, fails, func(context.Context, *flowfabric.Task, int) (int, error) { return 0, errors.New("no luck") })
		})
		failed := must[*flowfabric.Run[int]](t)(fails.Submit(ctx, w.Client, 1, flowfabric.SubmitOptions{Policy: &flowfabric.Policy{Retry: flowfabric.NoRetry()}}))
		_, err := failed.Result(ctx)
		var ended *flowfabric.ExecutionError
		if !errors.As(err, &ended) || !errors.Is(err, flowfabric.ErrExecutionFailed) || errors.Is(err, flowfabric.ErrExecutionCancelled) {
			t.Fatalf("Result = %v, want an ExecutionError that is ErrExecutionFailed", err)
		}
		if ended.ID != failed.ID() || ended.Reason != "retries_exhausted" || ended.Failure == nil || ended.Failure.Message != "no luck" {
			t.Errorf("ExecutionError = %+v", ended)
		}
		cancelled := must[*flowfabric.Run[int]](t)(fails.Submit(ctx, w.Client, 1, flowfabric.SubmitOptions{Delay: time.Hour}))
		if err := cancelled.Cancel(ctx, "not needed"); err != nil {
			t.Fatal(err)
		}
		if _, err := cancelled.Result(ctx); !errors.Is(err, flowfabric.ErrExecutionCancelled) {
			t.Errorf("Result of a cancelled one = %v", err)
		}
		expired := must[*flowfabric.Run[int]](t)(fails.Submit(ctx, w.Client, 1, flowfabric.SubmitOptions{
			Delay: time.Hour, Policy: &flowfabric.Policy{Deadline: 200 * time.Millisecond}, // from the submit on, however late that comes
		}))
		if _, err := flowfabric.Attach[int](w.Client, expired.ID()).Result(ctx); !errors.Is(err, flowfabric.ErrExecutionExpired) {
			t.Errorf("Result of an expired one = %v", err)
		}
	})
}

func TestU136_a_wait_ends_with_its_context_and_with_the_client(t *testing.T) {
	t.Parallel()
	client := must[*flowfabric.Client](t)(embedded.Open(inTime(t), "sqlite:"+filepath.Join(t.TempDir(), "app.db")))
	run := must[*flowfabric.Run[flowfabric.Payload]](t)(echo.Submit(t.Context(), client, flowfabric.Text("x")))
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("bored"))
	if _, err := run.Wait(ctx); err == nil || !strings.Contains(err.Error(), "bored") {
		t.Errorf("Wait with an ended context = %v", err)
	}
	ended := make(chan error)
	go func() {
		_, err := run.Wait(t.Context())
		ended <- err
	}()
	if err := client.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := receive(t, ended); !errors.Is(err, flowfabric.ErrUnavailable) {
		t.Errorf("Wait on a closed client = %v, want unavailable", err)
	}
	if _, err := client.Submit(t.Context(), echo.Submission(flowfabric.Payload{})); flowfabric.CodeOf(err) != "shutting_down" {
		t.Errorf("Submit on a closed client = %v, want shutting_down", err)
	}
}

// ownTx begins a transaction of the user on the store's database, and hands out how to submit in it and how to end it.
func ownTx(t *testing.T, w *world) (submit func(flowfabric.Submission) (*flowfabric.Execution, error), commit, rollback func() error) {
	t.Helper()
	ctx := inTime(t)
	if path, found := strings.CutPrefix(w.url, "sqlite:"); found {
		db := must[*sql.DB](t)(sql.Open("sqlite", path+"?_txlock=immediate&_pragma=busy_timeout(5000)"))
		t.Cleanup(func() { _ = db.Close() })
		tx := must[*sql.Tx](t)(db.BeginTx(ctx, nil))
		return func(s flowfabric.Submission) (*flowfabric.Execution, error) {
			return embedded.SubmitSQLTx(ctx, w.Client, tx, s)
		}, tx.Commit, tx.Rollback
	}
	conn := must[*pgx.Conn](t)(pgx.Connect(ctx, w.url))
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(ctx)) })
	tx := must[pgx.Tx](t)(conn.Begin(ctx))
	return func(s flowfabric.Submission) (*flowfabric.Execution, error) {
			return postgres.SubmitTx(ctx, w.Client, tx, s)
		},
		func() error { return tx.Commit(ctx) }, func() error { return tx.Rollback(ctx) }
}

func TestU137_a_transactional_submit_exists_iff_its_transaction_commits(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		w.work(t, flowfabric.WorkerConfig{}, func(worker *flowfabric.Worker) {
			flowfabric.Handle(worker, double, func(_ context.Context, _ *flowfabric.Task, in int) (int, error) { return 2 * in, nil })
		})
		submit, commit, _ := ownTx(t, w)
		if _, err := submit(double.Submission(1, flowfabric.SubmitOptions{Lane: "no lane"})); flowfabric.CodeOf(err) != "invalid_argument" {
			t.Errorf("a bad lane = %v, want invalid_argument", err)
		}
		kept := must[*flowfabric.Execution](t)(submit(double.Submission(21, flowfabric.SubmitOptions{IdempotencyKey: "k"})))
		if err := commit(); err != nil {
			t.Fatal(err)
		}
		if err := w.Nudge(ctx, kept.Lane); err != nil {
			t.Fatal(err)
		}
		if got, err := flowfabric.Attach[int](w.Client, kept.ID).Result(ctx); err != nil || got != 42 {
			t.Errorf("Result = %d, %v", got, err)
		}
		submit, _, rollback := ownTx(t, w)
		lost := must[*flowfabric.Execution](t)(submit(double.Submission(1)))
		if err := rollback(); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Get(ctx, lost.ID); flowfabric.CodeOf(err) != "execution_not_found" {
			t.Errorf("after rollback: %v, want execution_not_found", err)
		}
	})
}

func TestU137_a_duplicate_in_a_transaction_is_the_execution_as_it_is(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		once := double.Submission(21, flowfabric.SubmitOptions{IdempotencyKey: "once", Tags: map[string]string{"a": "b"}, Priority: 3})
		first := must[flowfabric.SubmitResult](t)(w.Submit(ctx, once))
		if _, err := w.Cancel(ctx, first.ID, "enough"); err != nil {
			t.Fatal(err)
		}
		submit, _, rollback := ownTx(t, w)
		again := must[*flowfabric.Execution](t)(submit(double.Submission(21, flowfabric.SubmitOptions{IdempotencyKey: "once"})))
		if again.ID != first.ID || again.Status != flowfabric.StatusCancelled || again.PublicState != "cancelled" || again.Priority != 3 ||
			again.Tags["a"] != "b" || string(again.Input.Data) != "21" {
			t.Errorf("the duplicate is shown as %+v", again)
		}
		if err := rollback(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestU146_errors_compare_by_code_or_by_class(t *testing.T) {
	t.Parallel()
	w := openSQLite(t, engine.Hooks{})
	_, err := w.Get(inTime(t), "0190f0c2-1111-7aaa-8bbb-0123456789ab")
	wrapped := fmt.Errorf("looking: %w", err)
	for target, want := range map[error]bool{
		flowfabric.ErrNotFound: true, &flowfabric.Error{Code: "execution_not_found"}: true,
		flowfabric.ErrConflict: false, &flowfabric.Error{Code: "lane_not_found"}: false, flowfabric.ErrOutcomeUnknown: false,
	} {
		if errors.Is(wrapped, target) != want {
			t.Errorf("errors.Is(%v, %v) = %v", wrapped, target, !want)
		}
	}
	if flowfabric.CodeOf(wrapped) != "execution_not_found" || flowfabric.Retryable(wrapped) || flowfabric.RetryDelay(wrapped) != 0 {
		t.Errorf("CodeOf, Retryable, RetryDelay of %v", wrapped)
	}
	busy := fmt.Errorf("x: %w", &flowfabric.Error{Code: "overloaded", Class: "unavailable", Retryable: true, RetryAfter: time.Second})
	if !flowfabric.Retryable(busy) || flowfabric.RetryDelay(busy) != time.Second || !errors.Is(busy, flowfabric.ErrUnavailable) {
		t.Errorf("a retryable error is not found in %v", busy)
	}
	if flowfabric.CodeOf(errors.New("x")) != "" || flowfabric.CodeOf(nil) != "" {
		t.Error("an error that is none of ours has a code")
	}
}

// forgetful takes away the answers to the first commits of these commands: they happened, and their callers do not know.
type forgetful struct {
	command string
	left    atomic.Int64
}

func (f *forgetful) BeforeCommit([]string) error { return nil }

func (f *forgetful) AfterCommit(commands []string) error {
	if slices.Contains(commands, f.command) && f.left.Add(-1) >= 0 {
		return errors.New("the answer is lost")
	}
	return nil
}

func TestU15_unknown_is_never_reported_as_failed(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"submit", "hold", "replay", "cancel", "register", "complete", "claim"} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			probe := &forgetful{command: command}
			probe.left.Store(2)
			w := openSQLite(t, engine.Hooks{Probe: probe})
			ctx := inTime(t)
			run := must[*flowfabric.Run[int]](t)(double.Submit(ctx, w.Client, 21))
			if run.Duplicate() {
				t.Error("a repeated submit says that it is a duplicate of itself")
			}
			must[*flowfabric.Execution](t)(w.Operate().Hold(ctx, run.ID()))
			must[*flowfabric.Execution](t)(w.Cancel(ctx, run.ID(), "first"))
			x := must[*flowfabric.Execution](t)(w.Operate().Replay(ctx, run.ID()))
			if x.ReplayCount != 1 {
				t.Errorf("replayed %d times, want once", x.ReplayCount)
			}
			w.work(t, flowfabric.WorkerConfig{Concurrency: 1}, func(worker *flowfabric.Worker) {
				flowfabric.Handle(worker, double, func(_ context.Context, _ *flowfabric.Task, in int) (int, error) { return 2 * in, nil })
			})
			if got, err := run.Result(ctx); err != nil || got != 42 {
				t.Errorf("Result = %d, %v", got, err)
			}
			if x := must[*flowfabric.Execution](t)(w.Get(ctx, run.ID())); x.TotalAttempts != 1 {
				t.Errorf("%d attempts, want 1", x.TotalAttempts)
			}
		})
	}
}

// openSQLite opens a client on a file of its own.
func openSQLite(t *testing.T, hooks engine.Hooks) *world {
	t.Helper()
	return openWorld(t, "sqlite:"+filepath.Join(t.TempDir(), "app.db"), hooks)
}
