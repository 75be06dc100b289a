package flowfabric_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/ops"
)

const flaky flowfabric.Kind[string, string] = "flaky"

// firstFails is a handler that fails the first attempt of each execution, and is retried at once if it may be retried.
func firstFails(_ context.Context, task *flowfabric.Task, in string) (string, error) {
	if task.Attempt().Index == 0 {
		return "", flowfabric.RetryAfter(time.Millisecond, errors.New("no luck with "+in))
	}
	return in, nil
}

// retriesOf are the retry policy of an execution and where it comes from.
func retriesOf(t testing.TB, w *world, id flowfabric.ID) (*flowfabric.RetryPolicy, string) {
	t.Helper()
	x := must[*flowfabric.Execution](t)(w.Get(inTime(t), id))
	var policy flowfabric.Policy
	if err := json.Unmarshal(x.Policy, &policy); err != nil {
		t.Fatal(err)
	}
	return policy.Retry, x.RetryOrigin
}

func TestL92_a_failure_is_retried_without_any_policy(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		parent := flowfabric.Kind[string, string]("parent")
		w.work(t, flowfabric.WorkerConfig{}, func(worker *flowfabric.Worker) {
			flowfabric.Handle(worker, flaky, firstFails)
			flowfabric.Handle(worker, parent, func(ctx context.Context, task *flowfabric.Task, _ string) (string, error) {
				children, err := task.SpawnAndWait(ctx, flowfabric.Spawning{Children: []flowfabric.Node{flaky.Node("child", "a child")}})
				if err != nil {
					return "", err
				}
				return flowfabric.ChildResult[string](ctx, task, children[0])
			})
		})
		alone := must[*flowfabric.Run[string]](t)(flaky.Submit(ctx, w.Client, "a submit"))
		if got, err := alone.Result(ctx); got != "a submit" || err != nil {
			t.Errorf("a submit: %q, %v", got, err)
		}
		retry, from := retriesOf(t, w, alone.ID())
		if from != "default" || retry == nil || retry.MaxRetries != api.DefaultMaxRetries || retry.Backoff.Max != api.DefaultMaxBackoff {
			t.Errorf("%+v from %s", retry, from)
		}
		many := must[[]flowfabric.SubmitResult](t)(w.SubmitMany(ctx, []flowfabric.Submission{flaky.Submission("one of many")}))
		if got, err := flowfabric.Attach[string](w.Client, many[0].ID).Result(ctx); got != "one of many" || err != nil {
			t.Errorf("one of many: %q, %v", got, err)
		}
		if got, err := must[*flowfabric.Run[string]](t)(parent.Submit(ctx, w.Client, "")).Result(ctx); got != "a child" || err != nil {
			t.Errorf("a child: %q, %v", got, err)
		}
		run := must[*flowfabric.FlowRun](t)(w.Flows().Submit(ctx, flowfabric.Flow{Kind: "f", Nodes: []flowfabric.Node{
			flaky.Node("first", "a node"), flaky.Node("next", "after it").After("first"), flaky.Node("alarm", "it failed").AfterFailure("first").MayFail(),
		}}))
		must[*flowfabric.FlowView](t)(w.Flows().Wait(ctx, run.ID))
		for name, status := range map[string]flowfabric.Status{"first": flowfabric.StatusSucceeded, "next": flowfabric.StatusSucceeded, "alarm": flowfabric.StatusSkipped} {
			if x := must[*flowfabric.Execution](t)(w.Get(ctx, run.Members[name])); x.Status != status {
				t.Errorf("%s is %s, want %s: a member is retried before its edges are decided", name, x.Status, status)
			}
		}
	})
}

func TestL92_the_default_of_a_lane_applies_to_later_submits_that_say_nothing(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		before := must[*flowfabric.Run[string]](t)(flaky.Submit(ctx, w.Client, "before"))
		again := flowfabric.SubmitOptions{IdempotencyKey: "again"}
		first := must[*flowfabric.Run[string]](t)(flaky.Submit(ctx, w.Client, "again", again))
		lane := must[*api.Lane](t)(w.Lanes().Put(ctx, "default", api.LaneSettings{DefaultPolicy: &api.DefaultPolicy{Retry: flowfabric.NoRetry()}}))
		if lane.DefaultPolicy == nil || lane.DefaultPolicy.Retry.MaxRetries >= 0 {
			t.Fatalf("%+v", lane.DefaultPolicy)
		}
		if kept := must[*api.Lane](t)(w.Lanes().Pause(ctx, "default")); kept.DefaultPolicy == nil {
			t.Error("a pause changes the default policy")
		}
		must[*api.Lane](t)(w.Lanes().Resume(ctx, "default"))
		second := must[*flowfabric.Run[string]](t)(flaky.Submit(ctx, w.Client, "again", again))
		byID := must[flowfabric.SubmitResult](t)(w.Submit(ctx, flaky.Submission("before", flowfabric.SubmitOptions{ID: before.ID()})))
		if second.ID() != first.ID() || !second.Duplicate() || !byID.Duplicate {
			t.Error("another default makes another submission of a repeat")
		}
		silentOne := must[*flowfabric.Run[string]](t)(flaky.Submit(ctx, w.Client, "later"))
		explicit := must[*flowfabric.Run[string]](t)(flaky.Submit(ctx, w.Client, "explicit", flowfabric.SubmitOptions{Policy: &flowfabric.Policy{Retry: &flowfabric.RetryPolicy{}}}))
		w.work(t, flowfabric.WorkerConfig{}, func(worker *flowfabric.Worker) { flowfabric.Handle(worker, flaky, firstFails) })
		for _, c := range []struct {
			run    *flowfabric.Run[string]
			from   string
			status flowfabric.Status
		}{
			{before, "default", flowfabric.StatusSucceeded}, {silentOne, "lane", flowfabric.StatusFailed}, {explicit, "submission", flowfabric.StatusSucceeded},
		} {
			x := must[*flowfabric.Execution](t)(c.run.Wait(ctx))
			if _, from := retriesOf(t, w, x.ID); from != c.from || x.Status != c.status {
				t.Errorf("%s by the %s, want %s by the %s", x.Status, from, c.status, c.from)
			}
		}
	})
}

func TestS2_a_bad_default_policy_of_a_lane_is_refused_and_changes_nothing(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		for text, field := range map[string]string{
			`{"retry_policy":{"max_retries":-1}}`: "default_policy.retry_policy.max_retries",
			`{"retry_policy":{"retries":1}}`:      "default_policy.retry_policy.retries",
			`{"lease_grace_ms":1}`:                "default_policy",
		} {
			policy := new(api.DefaultPolicy)
			if err := json.Unmarshal([]byte(text), policy); err != nil {
				t.Fatal(err)
			}
			_, err := w.Lanes().Put(ctx, "new", api.LaneSettings{DefaultPolicy: policy})
			var refusal *flowfabric.Error
			if !errors.As(err, &refusal) || refusal.Code != "invalid_policy" {
				t.Errorf("%s: %v", text, err)
			} else if refusal.Field != field && refusal.Field != "/"+replaceDots(field) {
				t.Errorf("%s: field %q, want %q", text, refusal.Field, field)
			}
		}
		if _, err := w.Lanes().Get(ctx, "new"); flowfabric.CodeOf(err) != "lane_not_found" {
			t.Errorf("the lane after refused settings: %v", err)
		}
	})
}

func replaceDots(field string) string {
	text := []byte(field)
	for i, c := range text {
		if c == '.' {
			text[i] = '/'
		}
	}
	return string(text)
}

func TestL92_the_default_of_a_worker_or_a_handler_applies_where_the_submission_says_nothing(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		own := flowfabric.Kind[string, string]("own")
		w.work(t, flowfabric.WorkerConfig{Retry: flowfabric.NoRetry()}, func(worker *flowfabric.Worker) {
			flowfabric.Handle(worker, flaky, firstFails)
			flowfabric.Handle(worker, own, firstFails, flowfabric.HandlerConfig{Retry: &flowfabric.RetryPolicy{MaxRetries: 4}})
		})
		for _, c := range []struct {
			kind   flowfabric.Kind[string, string]
			policy *flowfabric.Policy
			from   string
			status flowfabric.Status
			most   int
		}{
			{flaky, nil, "worker", flowfabric.StatusFailed, -1},
			{own, nil, "worker", flowfabric.StatusSucceeded, 4},
			{flaky, &flowfabric.Policy{Retry: &flowfabric.RetryPolicy{MaxRetries: 2}}, "submission", flowfabric.StatusSucceeded, 2},
		} {
			run := must[*flowfabric.Run[string]](t)(c.kind.Submit(ctx, w.Client, "x", flowfabric.SubmitOptions{Policy: c.policy}))
			x := must[*flowfabric.Execution](t)(run.Wait(ctx))
			retry, from := retriesOf(t, w, x.ID)
			if x.Status != c.status || from != c.from || retry.MaxRetries != c.most {
				t.Errorf("%s: %s by the %s with %+v, want %s by the %s with %d", c.kind, x.Status, from, retry, c.status, c.from, c.most)
			}
		}
	})
}

func TestU138_a_bad_default_of_a_worker_is_found_before_it_runs(t *testing.T) {
	t.Parallel()
	w := openSQLite(t, engine.Hooks{})
	worker := flowfabric.NewWorker(w.Client, flowfabric.WorkerConfig{Retry: &flowfabric.RetryPolicy{Categories: []string{"Bank Error"}}})
	flowfabric.Handle(worker, flaky, firstFails)
	if err := worker.Run(inTime(t)); flowfabric.CodeOf(err) != "invalid_policy" {
		t.Errorf("Run: %v", err)
	}
}

func TestU217_a_failed_attempt_has_one_line_in_the_log_of_its_worker(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx, book := inTime(t), &logBook{}
		_, stop := w.work(t, flowfabric.WorkerConfig{Logger: book.logger(slog.LevelInfo)}, func(worker *flowfabric.Worker) {
			flowfabric.Handle(worker, flaky, func(_ context.Context, task *flowfabric.Task, in string) (string, error) {
				if task.Attempt().Index == 0 {
					return "", flowfabric.RetryAfter(time.Millisecond, flowfabric.Category("bank_down", errors.New("the bank does not answer")))
				}
				return "", flowfabric.Permanent(errors.New("the card is declined"))
			})
		})
		run := must[*flowfabric.Run[string]](t)(flaky.Submit(ctx, w.Client, "secret-input"))
		must[*flowfabric.Execution](t)(run.Wait(ctx))
		stop()
		lines := book.lines(t, "flowfabric: attempt failed")
		slices.SortFunc(lines, func(a, b map[string]any) int { return int(a["attempt"].(float64) - b["attempt"].(float64)) })
		want := []map[string]any{
			{"level": "WARN", "kind": "flaky", "execution_id": string(run.ID()), "attempt": 0.0, "class": "transient", "category": "bank_down", "error": "the bank does not answer"},
			{"level": "WARN", "kind": "flaky", "execution_id": string(run.ID()), "attempt": 1.0, "class": "permanent", "category": "handler_error", "error": "the card is declined", "reason": "permanent"},
		}
		if len(lines) != len(want) {
			t.Fatalf("%d lines, want %d:\n%s", len(lines), len(want), book)
		}
		for i := range want {
			for name, value := range want[i] {
				if lines[i][name] != value {
					t.Errorf("line %d: %s is %v, want %v", i, name, lines[i][name], value)
				}
			}
		}
		if next, _ := time.Parse(time.RFC3339Nano, lines[0]["retry_at"].(string)); next.IsZero() || lines[1]["retry_at"] != nil {
			t.Errorf("the next tries are %v and %v", lines[0]["retry_at"], lines[1]["retry_at"])
		}
	})
}

func TestU217_an_attempt_that_the_engine_fails_has_one_line_in_its_log(t *testing.T) {
	t.Parallel()
	for name, address := range everyStore() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, book := inTime(t), &logBook{}
			hand := clock.NewManual(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
			c := openLogged(t, address(t), book, slog.LevelInfo, engine.Hooks{Clock: hand})
			policy := &flowfabric.Policy{AttemptTimeout: time.Second, Retry: &flowfabric.RetryPolicy{MaxRetries: 1, Backoff: flowfabric.Backoff{Strategy: "fixed", Delay: time.Second}}}
			run := must[*flowfabric.Run[string]](t)(flaky.Submit(ctx, c, "x", flowfabric.SubmitOptions{Policy: policy}))
			for range 2 {
				answer := must[api.ClaimAnswer](t)(c.Work().Claim(ctx, api.ClaimRequest{WorkerID: "w", InstanceID: "w-1", Lanes: []string{"default"}}))
				if len(answer.Tasks) != 1 {
					t.Fatalf("%d tasks", len(answer.Tasks))
				}
				hand.TurnTo(hand.Now().Add(time.Second))
				_, _ = c.Work().Do(ctx, api.WorkItem{Op: api.OpRenew, ID: run.ID(), Lease: answer.Tasks[0].Lease}) // settles what is due
				hand.TurnTo(hand.Now().Add(time.Second))
				must[map[string]string](t)(c.Executions().SetTags(ctx, run.ID(), map[string]*string{}))
			}
			lines := book.lines(t, "attempt failed")
			if len(lines) != 2 || lines[0]["level"] != "WARN" || lines[0]["attempt"] != 0.0 || lines[0]["class"] != "timeout" || lines[0]["retry_at"] == nil ||
				lines[1]["attempt"] != 1.0 || lines[1]["reason"] != "attempt_timeout" || lines[1]["kind"] != "flaky" || lines[1]["execution_id"] != string(run.ID()) {
				t.Errorf("%v\n%s", lines, book)
			}
		})
	}
}

func TestS53_a_drained_worker_says_who_asked_and_exits_if_it_is_to(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx, book := inTime(t), &logBook{}
		client := w.Client
		if w.workers != nil {
			client = w.workers(t)
		}
		worker := flowfabric.NewWorker(client, flowfabric.WorkerConfig{Instance: "i-1", ExitOnDrain: true, Logger: book.logger(slog.LevelInfo)})
		flowfabric.Handle(worker, flaky, firstFails)
		var running sync.WaitGroup
		running.Go(func() {
			if err := worker.Run(ctx); err != nil {
				t.Errorf("Run: %v", err)
			}
		})
		if got, err := must[*flowfabric.Run[string]](t)(flaky.Submit(ctx, w.Client, "registered")).Result(ctx); err != nil {
			t.Fatalf("%q, %v", got, err)
		}
		if err := w.Workers().Drain(ctx, ops.WorkerTarget{InstanceID: "i-1"}); err != nil {
			t.Fatal(err)
		}
		running.Wait()
		lines := book.lines(t, "flowfabric: draining: it claims nothing more")
		if len(lines) != 1 || lines[0]["asked_by"] != w.who || lines[0]["level"] != "WARN" {
			t.Errorf("%v, want one line about %s:\n%s", lines, w.who, book)
		}
	})
}

func TestU131_a_worker_that_signs_off_is_audited_as_that(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		overHTTP := w.workers != nil // there a worker whose key is an operator's too is told from no operator but by what it says
		all := &world{Client: w.Client}
		_, stop := all.work(t, flowfabric.WorkerConfig{Instance: "i-2"}, func(worker *flowfabric.Worker) { flowfabric.Handle(worker, flaky, firstFails) })
		must[string](t)(must[*flowfabric.Run[string]](t)(flaky.Submit(ctx, w.Client, "registered")).Result(ctx))
		stop()
		if x := must[*api.Worker](t)(w.Workers().Get(ctx, "i-2")); x.State != "dead" {
			t.Errorf("it is %s", x.State)
		}
		var actions []string
		for row, err := range w.Admin().Audit(ctx) {
			if err != nil {
				t.Fatal(err)
			}
			if row.EntityID == "i-2" {
				actions = append(actions, row.Action)
			}
		}
		if want := []string{"sign_off"}; overHTTP && !slices.Equal(actions, want) || !overHTTP && len(actions) > 0 {
			t.Errorf("audited as %q", actions)
		}
	})
}
