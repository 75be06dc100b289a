package flowfabric_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/transport"
)

const (
	someTraceID = "0af7651916cd43dd8448eb211c80319c"
	someParent  = "00-" + someTraceID + "-b7ad6b7169203331-01"
)

// fromElsewhere is a context as the server makes it of a request that is part of a trace.
func fromElsewhere(t *testing.T) context.Context {
	return transport.WithTrace(t.Context(), flowfabric.TraceContext{Traceparent: someParent, Tracestate: "rojo=1", Baggage: "user=7"})
}

// lines is a log whose lines are received; what finds no room is lost.
type lines chan string

func (l lines) Write(line []byte) (int, error) {
	select {
	case l <- string(line):
	default:
	}
	return len(line), nil
}

func TestU215_without_a_tracer_the_trace_context_is_passed_on(t *testing.T) {
	t.Parallel()
	const outer, inner flowfabric.Kind[flowfabric.None, string] = "outer", "inner"
	onEveryStore(t, func(t *testing.T, w *world) {
		log := make(lines, 16)
		w.work(t, flowfabric.WorkerConfig{Logger: slog.New(slog.NewTextHandler(log, nil))}, func(worker *flowfabric.Worker) {
			flowfabric.Handle(worker, outer, func(ctx context.Context, task *flowfabric.Task, _ flowfabric.None) (string, error) {
				task.Logger().Info("here")
				run, err := inner.Submit(ctx, w.Client, flowfabric.None{}, flowfabric.SubmitOptions{Lane: "elsewhere"})
				if err != nil {
					return "", err
				}
				return string(run.ID()), nil
			})
		})
		run := must[*flowfabric.Run[string]](t)(outer.Submit(fromElsewhere(t), w.Client, flowfabric.None{}))
		child := flowfabric.ID(must[string](t)(run.Result(inTime(t))))
		for _, id := range []flowfabric.ID{run.ID(), child} {
			if got := must[*flowfabric.Execution](t)(w.Get(t.Context(), id)).Traceparent; got != someParent {
				t.Errorf("%s has the traceparent %q", id, got)
			}
		}
		if line := receive(t, (chan string)(log)); !strings.Contains(line, "trace_id="+someTraceID) {
			t.Errorf("the task's logger does not tell the trace: %s", line)
		}
		answer := must[api.ClaimAnswer](t)(w.Work().Claim(inTime(t), api.ClaimRequest{
			WorkerID: "w", InstanceID: "other", Lanes: []string{"elsewhere"}, Wait: patience,
		}))
		if got := answer.Tasks[0].TraceContext; got != (flowfabric.TraceContext{Traceparent: someParent, Tracestate: "rojo=1", Baggage: "user=7"}) {
			t.Errorf("the task has %+v", got)
		}
	})
}

func TestU28_work_that_no_trace_brought_has_no_trace_context(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		result := must[flowfabric.SubmitResult](t)(w.Submit(t.Context(), flowfabric.Submission{Kind: "k"}))
		if x := must[*flowfabric.Execution](t)(w.Get(t.Context(), result.ID)); x.Traceparent != "" {
			t.Errorf("traceparent %q", x.Traceparent)
		}
		answer := must[api.ClaimAnswer](t)(w.Work().Claim(inTime(t), api.ClaimRequest{
			WorkerID: "w", InstanceID: "w-1", Lanes: []string{"default"}, Wait: patience,
		}))
		if got := answer.Tasks[0].TraceContext; got != (flowfabric.TraceContext{}) {
			t.Errorf("the task has %+v", got)
		}
	})
}
