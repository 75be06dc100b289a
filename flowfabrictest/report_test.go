package flowfabrictest_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/flowfabrictest"
)

func TestU153_a_failing_test_prints_the_timeline_of_what_is_unfinished(t *testing.T) {
	t.Parallel()
	inner := &recorder{}
	env := flowfabrictest.New(inner, flowfabrictest.Config{Seed: 99})
	env.Worker(flowfabric.WorkerConfig{}, func(w *flowfabric.Worker) {
		flowfabric.Handle(w, greet, func(_ context.Context, _ *flowfabric.Task, name string) (string, error) {
			return "hello " + name, nil
		})
	})
	done := must[*flowfabric.Run[string]](t)(greet.Submit(t.Context(), env.Client, "you"))
	waiting := must[*flowfabric.Run[string]](t)(greet.Submit(t.Context(), env.Client, "me", flowfabric.SubmitOptions{Delay: time.Hour}))
	env.Settle()
	inner.Errorf("the test fails")

	said := inner.end()
	for _, want := range []string{"seed 99", string(waiting.ID()), "execution.submitted", "delayed (waiting_for_delay) until 2026-01-01T01:00:00Z"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not in the report:\n%s", want, said)
		}
	}
	if strings.Contains(said, string(done.ID())) {
		t.Errorf("what is done is in the report:\n%s", said)
	}
}

func TestU153_a_test_that_ends_well_prints_nothing(t *testing.T) {
	t.Parallel()
	inner := &recorder{}
	env := flowfabrictest.New(inner)
	must[*flowfabric.Run[string]](t)(greet.Submit(t.Context(), env.Client, "you", flowfabric.SubmitOptions{Delay: time.Hour}))
	if said := inner.end(); said != "" || inner.Failed() {
		t.Errorf("failed: %v, it says:\n%s", inner.Failed(), said)
	}
}

func TestU153_a_handler_that_never_ends_fails_the_test(t *testing.T) {
	t.Parallel()
	inner := &recorder{}
	env := flowfabrictest.New(inner)
	forever := make(chan struct{})
	defer close(forever)
	env.Worker(flowfabric.WorkerConfig{}, func(w *flowfabric.Worker) {
		flowfabric.Handle(w, greet, func(context.Context, *flowfabric.Task, string) (string, error) {
			<-forever // it does not look at its context
			return "", nil
		})
	})
	must[*flowfabric.Run[string]](t)(greet.Submit(t.Context(), env.Client, "you"))
	env.Settle()
	if said := inner.end(); !inner.Failed() || !strings.Contains(said, "a goroutine is left behind") {
		t.Errorf("failed: %v, it says:\n%s", inner.Failed(), said)
	}
}

func TestU153_a_worker_that_cannot_run_fails_the_test(t *testing.T) {
	t.Parallel()
	inner := &recorder{}
	env := flowfabrictest.New(inner)
	env.Worker(flowfabric.WorkerConfig{}, func(*flowfabric.Worker) {})
	env.Settle()
	if said := inner.end(); !inner.Failed() || !strings.Contains(said, "there is no handler") {
		t.Errorf("failed: %v, it says:\n%s", inner.Failed(), said)
	}
}
