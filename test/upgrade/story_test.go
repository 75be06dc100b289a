package upgrade_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"iter"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/flowfabrictest"
	"github.com/flowfabric/flowfabric/ops"
)

// A program of an earlier version has written the fixtures with this file: it was copied into the sources of its commit, and run there with
// -run TestU265_work_in_every_state -at ADDRESS -into FILE.json. The store at the address was then copied, and the file says what was read.
var (
	storyAt   = flag.String("at", "", "address of the store that the story is written to; otherwise a new SQLite file")
	storyInto = flag.String("into", "", "file for what is read of the story")
)

// fixture is what was read of a story.
type fixture struct {
	At   time.Time                  // by the clock of the store
	IDs  map[string]flowfabric.ID   // by the names of the story
	Read map[string]json.RawMessage // by what was read
}

// talk does the work of the stories. Until it goes on, it fails, waits and stays under way.
func talk(goOn bool) func(w *flowfabric.Worker) {
	return func(w *flowfabric.Worker) {
		handle := func(kind flowfabric.Kind[string, string], do func(ctx context.Context, t *flowfabric.Task, in string) (string, error)) {
			flowfabric.Handle(w, kind, do)
		}
		handle("steps", func(ctx context.Context, t *flowfabric.Task, in string) (string, error) {
			first, err := flowfabric.Step(ctx, t, "first", func(context.Context) (string, error) { return in + "!", nil })
			if err != nil {
				return "", err
			}
			if t.Attempt().Index == 0 {
				return "", flowfabric.Category("busy", errors.New("the first attempt fails"))
			}
			return first + "?", nil
		})
		handle("retries", func(_ context.Context, _ *flowfabric.Task, in string) (string, error) {
			if !goOn {
				return "", errors.New("not yet")
			}
			return in, nil
		})
		handle("fails", func(context.Context, *flowfabric.Task, string) (string, error) {
			return "", flowfabric.Permanent(errors.New("it never works"))
		})
		handle("waits", func(ctx context.Context, t *flowfabric.Task, in string) (string, error) {
			answer, err := flowfabric.AwaitSignal[string](ctx, t, "go")
			return in + " " + answer, err
		})
		handle("asks", func(ctx context.Context, t *flowfabric.Task, in string) (string, error) {
			answer, err := t.Ask(ctx, flowfabric.Approval{Key: "live", Title: "Go live?", Approvers: []string{"ana@example.com", "ben@example.com"}, Timeout: 48 * time.Hour})
			if err == nil && !answer.Approved {
				return "", flowfabric.Permanent(errors.New("rejected"))
			}
			return in, err
		})
		handle("spends", func(ctx context.Context, t *flowfabric.Task, in string) (string, error) {
			_, err := t.ReportUsage(ctx, flowfabric.Usage{Amounts: map[string]int64{"tokens": 70}, DedupKey: "model", AlreadySpent: true})
			return in, err
		})
		handle("echo", func(_ context.Context, _ *flowfabric.Task, in string) (string, error) { return in, nil })
	}
}

// kinds that no worker takes until the story goes on have a lane of their own.
const later = "later"

// tell writes work in every state and returns it by name.
func tell(t *testing.T, env *flowfabrictest.Env) map[string]flowfabric.ID {
	t.Helper()
	ctx, c, ids := t.Context(), env.Client, map[string]flowfabric.ID{}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := c.Quotas().Put(ctx, "model", api.QuotaSettings{RateLimit: 100, Window: time.Hour, ConcurrencyLimit: 3, PerKey: true})
	check(err)
	_, err = c.Budgets().Create(ctx, api.Budget{Name: "red", Dimensions: map[string]api.BudgetLimits{"tokens": {Soft: 800, Hard: 1200}}})
	check(err)
	_, err = c.Lanes().Put(ctx, "narrow", api.LaneSettings{MaxConcurrent: 2, Fairness: "key", FairnessWeights: map[string]int{"a": 3}})
	check(err)
	_, err = c.Lanes().Put(ctx, "closed", api.LaneSettings{State: api.LanePaused})
	check(err)

	submit := func(name string, kind flowfabric.Kind[string, string], o flowfabric.SubmitOptions) flowfabric.ID {
		t.Helper()
		run, err := kind.Submit(ctx, c, name, o)
		check(err)
		ids[name] = run.ID()
		return run.ID()
	}
	submit("succeeded", "steps", flowfabric.SubmitOptions{IdempotencyKey: "one", Tags: map[string]string{"customer": "ana", "size": "large"}, Priority: 7, Policy: &flowfabric.Policy{Retry: &flowfabric.RetryPolicy{MaxRetries: 2}}})
	submit("failed", "fails", flowfabric.SubmitOptions{})
	submit("retrying", "retries", flowfabric.SubmitOptions{Policy: &flowfabric.Policy{
		Retry:    &flowfabric.RetryPolicy{MaxRetries: 3, Backoff: flowfabric.Backoff{Strategy: "fixed", Delay: 12 * time.Hour}},
		Deadline: 90 * 24 * time.Hour, AttemptTimeout: time.Hour, MaxReclaims: 4,
	}})
	submit("waiting", "waits", flowfabric.SubmitOptions{})
	submit("asking", "asks", flowfabric.SubmitOptions{})
	submit("spent", "spends", flowfabric.SubmitOptions{BudgetIDs: []string{"red"}, Estimate: map[string]int64{"tokens": 50}, Quotas: []api.QuotaUse{{Quota: "model", Key: "k"}}})
	submit("delayed", "echo", flowfabric.SubmitOptions{Delay: 30 * time.Hour})
	submit("ready", "echo", flowfabric.SubmitOptions{Lane: later, FairnessKey: "a", Requires: []string{"gpu"}})
	submit("paused", "echo", flowfabric.SubmitOptions{Lane: "closed"})
	submit("big", "echo", flowfabric.SubmitOptions{Lane: "closed", Tags: map[string]string{"bytes": "many"}})
	held := submit("held", "echo", flowfabric.SubmitOptions{Lane: later})
	cancelled := submit("cancelled", "echo", flowfabric.SubmitOptions{Lane: later})
	running := submit("running", "echo", flowfabric.SubmitOptions{Lane: later, Policy: &flowfabric.Policy{LeaseGrace: time.Minute}})
	_, err = c.Operate().Hold(ctx, held, ops.Action{Reason: "wait for ana"})
	check(err)
	_, err = c.Cancel(ctx, cancelled, "not needed")
	check(err)
	flow, err := c.Flows().Submit(ctx, flowfabric.Flow{
		Kind: "trip", Output: "sum", Tags: map[string]string{"to": "Rome"},
		Nodes: []flowfabric.Node{
			flowfabric.Kind[string, string]("echo").Node("first", "a"),
			flowfabric.Kind[string, string]("waits").Node("second", "b"),
			flowfabric.Kind[string, string]("echo").Node("sum", "c"),
		},
		Edges: []flowfabric.Edge{{From: "first", To: "second"}, {From: "second", To: "sum"}},
	})
	check(err)
	ids["flow"] = flow.ID

	worker := env.Worker(flowfabric.WorkerConfig{Concurrency: 4}, talk(false))
	env.Advance(2 * time.Hour)
	worker.Kill()
	env.Advance(10 * time.Minute)
	_, err = c.Operate().Claim(ctx, running, ops.OperatorClaim{LeaseTTL: time.Hour})
	check(err)
	env.Settle()
	return ids
}

// retell reads everything, by the names of the story.
func retell(t *testing.T, c *flowfabric.Client, ids map[string]flowfabric.ID) map[string]json.RawMessage {
	t.Helper()
	ctx, read := t.Context(), map[string]json.RawMessage{}
	note := func(name string, what any, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		text, err := json.Marshal(what)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		read[name] = text
	}
	for name, id := range ids {
		if name == "flow" {
			view, err := c.Flows().Get(ctx, id)
			note(name, view, err)
			graph, err := c.Flows().Graph(ctx, id)
			note(name+" graph", graph, err)
			continue
		}
		x, err := c.Get(ctx, id)
		note(name, x, err)
		attempts, err := c.Executions().Attempts(ctx, id)
		note(name+" attempts", attempts, err)
		kept, err := c.Executions().Steps(ctx, id)
		note(name+" steps", kept, err)
		leases, err := all(c.Executions().Leases(ctx, id))
		note(name+" leases", leases, err)
		waits, err := all(c.Executions().Suspensions(ctx, id))
		note(name+" suspensions", waits, err)
		usage, err := c.Executions().Usage(ctx, id)
		note(name+" usage", usage, err)
	}
	lanes, err := all(c.Lanes().List(ctx))
	for _, lane := range lanes {
		lane.Rates = api.LaneRates{} // each process counts its own
	}
	note("lanes", lanes, err)
	quotas, err := all(c.Quotas().List(ctx))
	note("quotas", quotas, err)
	budgets, err := all(c.Budgets().List(ctx))
	note("budgets", budgets, err)
	page, err := c.Events().Read(ctx, ops.ReadOptions{After: api.FromStart, Limit: 1000})
	note("events", page.Events, err)
	return read
}

func all[T any](list iter.Seq2[T, error]) (items []T, err error) {
	for item, err := range list {
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}

// compare reads everything again: what a program has added since is no difference.
func (f *fixture) compare(t *testing.T, c *flowfabric.Client) {
	t.Helper()
	now := retell(t, c, f.IDs)
	for name, text := range f.Read {
		var was, is any
		if err := errors.Join(json.Unmarshal(text, &was), json.Unmarshal(now[name], &is)); err != nil {
			t.Fatal(err)
		}
		differ(t, name, was, is)
	}
}

// differ reports what is not as it was.
func differ(t *testing.T, at string, was, is any) {
	t.Helper()
	switch was := was.(type) {
	case map[string]any:
		now, _ := is.(map[string]any)
		for key, value := range was {
			if key != "cursor" { // a copy of a store has a log of its own
				differ(t, at+"."+key, value, now[key])
			}
		}
	case []any:
		now, _ := is.([]any)
		if len(was) > len(now) {
			t.Errorf("%s had %d items and has %d", at, len(was), len(now))
			return
		}
		for i := range was {
			differ(t, at+"["+strconv.Itoa(i)+"]", was[i], now[i])
		}
	default:
		if was != is {
			t.Errorf("%s was %v and is %v", at, was, is)
		}
	}
}

func TestU265_work_in_every_state_is_read_as_it_was_written(t *testing.T) {
	t.Parallel()
	env := flowfabrictest.New(t, flowfabrictest.Config{Store: *storyAt})
	ids := tell(t, env)
	first := fixture{env.Now(), ids, retell(t, env.Client, ids)}
	env.Restart()
	first.compare(t, env.Client)
	if *storyInto == "" {
		return
	}
	text, err := json.Marshal(first)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(*storyInto, append(text, '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
}
