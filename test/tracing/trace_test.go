package tracing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
)

// secret is the payload that no span may show.
const secret = "the-secret-payload"

// caller begins a span of the program, with baggage.
func (w *world) caller() (context.Context, trace.Span) {
	w.t.Helper()
	user, err := baggage.NewMember("user", "7")
	must(w.t, err)
	bag, err := baggage.New(user)
	must(w.t, err)
	return w.spans.Start(baggage.ContextWithBaggage(w.t.Context(), bag), "caller")
}

func TestU215_one_trace_goes_through_submit_claim_handler_step_and_a_submit_inside_the_handler(t *testing.T) {
	t.Parallel()
	const outer, inner flowfabric.Kind[string, string] = "outer", "inner"
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx, caller := w.caller()
		run, err := outer.Submit(ctx, w.Client, secret)
		must(t, err)
		caller.End()
		w.work(func(worker *flowfabric.Worker) {
			flowfabric.Handle(worker, outer, func(ctx context.Context, task *flowfabric.Task, _ string) (string, error) {
				task.Logger().Info("here")
				return flowfabric.Step(ctx, task, "order", func(ctx context.Context) (string, error) {
					run, err := inner.Submit(ctx, w.Client, secret)
					if err != nil {
						return "", err
					}
					return string(run.ID()), nil
				})
			})
			flowfabric.Handle(worker, inner, func(ctx context.Context, _ *flowfabric.Task, _ string) (string, error) {
				return baggage.FromContext(ctx).Member("user").Value(), nil
			})
		})
		ended := w.wait(run.ID())
		var child string
		must(t, ended.Result.Decode(&child))
		if got := string(w.wait(flowfabric.ID(child)).Result.Data); got != "7" {
			t.Errorf("the baggage came as %q", got)
		}
		if want := "trace_id=" + caller.SpanContext().TraceID().String(); !strings.Contains(w.log.String(), want) {
			t.Errorf("the task's logger does not tell %s: %s", want, w.log)
		}
		if !strings.Contains(ended.Traceparent, caller.SpanContext().TraceID().String()) {
			t.Errorf("traceparent %q is not of trace %s", ended.Traceparent, caller.SpanContext().TraceID())
		}
		w.followsTheOrder(caller.SpanContext(), string(run.ID()), child)
		w.showsNoPayload()
	})
}

// followsTheOrder checks the spans of the trace above.
func (w *world) followsTheOrder(caller trace.SpanContext, outer, inner string) {
	t := w.t
	t.Helper()
	submit := w.one("ff.command", "ff.operation", "submit", "ff.execution_id", outer)
	handler := w.one("ff.handler", "ff.execution_id", outer)
	step := w.one("ff.step", "ff.execution_id", outer, "ff.step", "order")
	second := w.one("ff.command", "ff.operation", "submit", "ff.execution_id", inner)
	child := w.one("ff.handler", "ff.execution_id", inner)
	complete := w.one("ff.command", "ff.operation", "complete", "ff.execution_id", inner)
	for _, pair := range []struct {
		what  string
		span  kept
		above trace.SpanContext
	}{
		{"the submit", submit, caller},
		{"the handler", handler, caller},
		{"the step", step, handler.SpanContext()},
		{"the submit inside the step", second, step.SpanContext()},
		{"the handler of what was submitted inside", child, step.SpanContext()},
	} {
		if !w.under(pair.span, pair.above) {
			t.Errorf("%s is not below %s of trace %s", pair.what, pair.above.SpanID(), pair.above.TraceID())
		}
	}
	// Over HTTP two completions may travel in one batch, which is below the first of them.
	if !w.under(complete, child.SpanContext()) && !(w.http && w.under(complete, handler.SpanContext())) {
		t.Errorf("the completion is not below %s of trace %s", child.SpanContext().SpanID(), child.SpanContext().TraceID())
	}
	for _, s := range []kept{handler, child} {
		if !linked(s, s.Parent()) || s.SpanKind() != trace.SpanKindConsumer {
			t.Errorf("%s has the links %v and is a %s", attr(s, "ff.kind"), s.Links(), s.SpanKind())
		}
		for name, want := range map[string]string{"ff.lane": "default", "ff.namespace": "default", "ff.attempt": "0", "ff.status": "succeeded", "ff.code": ""} {
			if got := attr(s, name); got != want {
				t.Errorf("%s of a handler is %q, want %q", name, got, want)
			}
		}
	}
	for name, want := range map[string]string{"ff.kind": "inner", "ff.lane": "default", "ff.namespace": "default", "ff.attempt": "0", "ff.status": "succeeded"} {
		if got := attr(complete, name); got != want {
			t.Errorf("%s of the completion is %q, want %q", name, got, want)
		}
	}
	for _, command := range []kept{submit, second, complete} {
		commits := slices.DeleteFunc(w.find("ff.commit"), func(s kept) bool { return !linked(s, command.SpanContext()) })
		if len(commits) != 1 || attr(commits[0], "ff.batch_size") == "" {
			t.Errorf("%d commits have a link to the command %s", len(commits), attr(command, "ff.operation"))
		}
	}
	if w.http {
		w.crossesTheNetwork(submit, caller)
	}
}

// crossesTheNetwork checks the spans on both sides of a submit.
func (w *world) crossesTheNetwork(submit kept, caller trace.SpanContext) {
	w.t.Helper()
	for _, s := range w.find("POST /v1/executions", "http.response.status_code", "201") {
		if s.SpanKind() != trace.SpanKindServer || s.SpanContext().SpanID() != submit.Parent().SpanID() {
			continue
		}
		for _, c := range w.find("POST /v1/executions") {
			if c.SpanKind() == trace.SpanKindClient && c.SpanContext().SpanID() == s.Parent().SpanID() && c.Parent().SpanID() == caller.SpanID() {
				if attr(s, "ff.namespace") != "default" || attr(s, "http.route") != "/v1/executions" {
					w.t.Errorf("the server's span has %v", s.Attributes())
				}
				return
			}
		}
	}
	w.t.Error("the submit does not go from the caller through the spans of client and server")
}

// showsNoPayload checks that nothing of the payloads stands in any span.
func (w *world) showsNoPayload() {
	w.t.Helper()
	for _, s := range w.seen.Ended() {
		if text := fmt.Sprint(s.Name(), s.Attributes(), s.Events(), s.Status(), s.Links()); strings.Contains(text, secret) {
			w.t.Errorf("a payload is shown: %s", text)
		}
	}
}

// handlesAttempt checks the span of an attempt: it has a link to the submit's context, and is in its trace or in one of its own.
func (w *world) handlesAttempt(index string, id flowfabric.ID, submit trace.SpanContext, own bool) {
	w.t.Helper()
	s := w.one("ff.handler", "ff.execution_id", string(id), "ff.attempt", index)
	if len(s.Links()) != 1 || s.Links()[0].SpanContext.TraceID() != submit.TraceID() {
		w.t.Errorf("attempt %s has the links %v, want one into the trace of the submit", index, s.Links())
	}
	if inside := s.SpanContext().TraceID() == submit.TraceID(); inside == own || s.Parent().IsValid() == own {
		w.t.Errorf("attempt %s is in the submit's trace: %t, below another span: %t", index, inside, s.Parent().IsValid())
	}
}

func TestU215_an_attempt_later_than_a_minute_begins_a_trace_of_its_own_with_a_link(t *testing.T) {
	t.Parallel()
	const kind flowfabric.Kind[string, string] = "late"
	for after, own := range map[time.Duration]bool{time.Minute: false, time.Minute + time.Millisecond: true} {
		t.Run(after.String(), func(t *testing.T) {
			t.Parallel()
			onTurnedStores(t, func(t *testing.T, w *world) {
				ctx, caller := w.caller()
				run, err := kind.Submit(ctx, w.Client, secret)
				must(t, err)
				w.host.TurnTo(w.host.Now().Add(after))
				carried := make(chan string, 1)
				w.work(func(worker *flowfabric.Worker) {
					flowfabric.Handle(worker, kind, func(ctx context.Context, _ *flowfabric.Task, _ string) (string, error) {
						carried <- baggage.FromContext(ctx).Member("user").Value()
						return "", nil
					})
				})
				w.wait(run.ID())
				w.handlesAttempt("0", run.ID(), caller.SpanContext(), own)
				if got := <-carried; got != "7" {
					t.Errorf("the baggage came as %q", got)
				}
			})
		})
	}
}

func TestU215_a_late_retry_begins_a_trace_of_its_own_with_a_link(t *testing.T) {
	t.Parallel()
	const kind flowfabric.Kind[string, string] = "again"
	onTurnedStores(t, func(t *testing.T, w *world) {
		ctx, caller := w.caller()
		run, err := kind.Submit(ctx, w.Client, "", flowfabric.SubmitOptions{Policy: &flowfabric.Policy{Retry: &flowfabric.RetryPolicy{MaxRetries: 1}}})
		must(t, err)
		w.work(func(worker *flowfabric.Worker) {
			flowfabric.Handle(worker, kind, func(_ context.Context, task *flowfabric.Task, _ string) (string, error) {
				if task.Attempt().Index == 0 {
					return "", flowfabric.RetryAfter(2*time.Minute, flowfabric.Category("busy", errors.New(secret)))
				}
				return "done", nil
			})
		})
		w.handlesAttempt("0", run.ID(), caller.SpanContext(), false)
		w.eventually("the retry", func() bool {
			w.host.TurnTo(w.host.Now().Add(5 * time.Second))
			return len(w.find("ff.handler", "ff.attempt", "1")) > 0
		})
		w.handlesAttempt("1", run.ID(), caller.SpanContext(), true)
		failed := w.one("ff.handler", "ff.attempt", "0")
		if failed.Status().Code != codes.Error || attr(failed, "ff.code") != "busy" || attr(failed, "ff.status") != "retry_scheduled" {
			t.Errorf("the failed attempt ends with %v %v", failed.Status(), failed.Attributes())
		}
		w.showsNoPayload()
	})
}

func TestU215_work_submitted_outside_any_trace_is_handled_in_one_of_its_own(t *testing.T) {
	t.Parallel()
	const kind flowfabric.Kind[string, string] = "alone"
	onEveryStore(t, func(t *testing.T, w *world) {
		w.work(func(worker *flowfabric.Worker) {
			flowfabric.Handle(worker, kind, func(context.Context, *flowfabric.Task, string) (string, error) { return "", nil })
		})
		run, err := kind.Submit(t.Context(), w.Client, "")
		must(t, err)
		ended := w.wait(run.ID())
		handler := w.one("ff.handler", "ff.kind", "alone")
		if !w.http && (ended.Traceparent != "" || handler.Parent().IsValid() || len(handler.Links()) != 0) {
			t.Errorf("traceparent %q, links %v", ended.Traceparent, handler.Links())
		}
		if w.http && ended.Traceparent == "" { // the client's own call is a span
			t.Error("the call of the client left no trace context")
		}
	})
}

func TestU215_a_repeat_with_another_trace_context_is_still_a_duplicate(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		submission := flowfabric.Submission{Kind: "once", SubmitOptions: flowfabric.SubmitOptions{IdempotencyKey: "k"}}
		first, caller := w.caller()
		created, err := w.Submit(first, submission)
		must(t, err)
		second, _ := w.caller()
		again, err := w.Submit(second, submission)
		must(t, err)
		if created.Duplicate || !again.Duplicate || again.ID != created.ID {
			t.Errorf("first %+v, then %+v", created, again)
		}
		claimed, err := w.Work().Claim(t.Context(), api.ClaimRequest{WorkerID: "w", InstanceID: "w-1", Lanes: []string{"default"}, Wait: time.Minute})
		must(t, err)
		if got := claimed.Tasks[0].TraceContext; !strings.Contains(got.Traceparent, caller.SpanContext().TraceID().String()) || got.Baggage != "user=7" {
			t.Errorf("the task has %+v, want the context of the first submit", got)
		}
	})
}

func TestU216_a_commit_has_links_to_all_its_commands(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx, caller := w.caller()
		const many = 20
		results, err := w.SubmitMany(ctx, slices.Repeat([]flowfabric.Submission{{Kind: "bulk"}}, many))
		must(t, err)
		for _, r := range results {
			must(t, r.Err)
		}
		commands := w.find("ff.command", "ff.operation", "submit")
		commit := w.one("ff.commit", "ff.batch_size", fmt.Sprint(many))
		if len(commands) != many || len(commit.Links()) != many {
			t.Fatalf("%d commands, %d links", len(commands), len(commit.Links()))
		}
		for _, c := range commands {
			if !linked(commit, c.SpanContext()) || !w.under(c, caller.SpanContext()) {
				t.Errorf("the command %s of trace %s is not linked, or not the caller's", c.SpanContext().SpanID(), c.SpanContext().TraceID())
			}
		}
		if !w.under(commit, caller.SpanContext()) {
			t.Error("the commit of one caller is not in the trace of that caller")
		}
	})
}

func TestU216_a_refusal_ends_its_span_with_the_code(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx, _ := w.caller()
		created, err := w.Submit(ctx, flowfabric.Submission{Kind: "calm"})
		must(t, err)
		_, err = w.Operate().Replay(ctx, created.ID)
		code := flowfabric.CodeOf(err)
		if code == "" {
			t.Fatalf("what has not ended can be replayed: %v", err)
		}
		refused := w.one("ff.command", "ff.operation", "replay", "ff.code", code)
		if refused.Status().Code != codes.Error {
			t.Errorf("the command ends with %v", refused.Status())
		}
		if !w.http {
			return
		}
		for _, s := range w.find("POST /v1/executions/{id}/replay", "ff.code", code) {
			if failed := s.Status().Code == codes.Error; failed == (s.SpanKind() == trace.SpanKindServer) {
				t.Errorf("a refusal is no failure of the server: the %s ends with %v", s.SpanKind(), s.Status())
			}
		}
	})
}
