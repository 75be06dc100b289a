package flowfabrictest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/flowfabrictest"
)

// Release is what the deploy of the tests rolls out.
type Release struct{ Version string }

// Deploy is the worked example of an approval (U149).
const Deploy flowfabric.Kind[Release, flowfabric.None] = "deploy"

// mailbox keeps the links that were sent.
type mailbox struct {
	mu    sync.Mutex
	mails []flowfabric.ApprovalLink
	sent  int // how often something was sent
}

func (m *mailbox) send(_ context.Context, links []flowfabric.ApprovalLink) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mails, m.sent = append(m.mails, links...), m.sent+1
	return nil
}

// links are the different links that somebody has.
func (m *mailbox) links(approver string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var ids []string
	for _, l := range m.mails {
		if l.Approver == approver && !slices.Contains(ids, l.ID) {
			ids = append(ids, l.ID)
		}
	}
	return ids
}

// deploy rolls a release out when two of three people have approved it within two days.
func deploy(o *outside, m *mailbox) func(w *flowfabric.Worker) {
	return func(w *flowfabric.Worker) {
		flowfabric.Handle(w, Deploy, func(ctx context.Context, t *flowfabric.Task, in Release) (done flowfabric.None, err error) {
			answer, err := t.Ask(ctx, flowfabric.Approval{
				Key: "go-live", Title: "Release " + in.Version + "?", Quorum: 2,
				Approvers: []string{"ana@example.com", "ben@example.com", "eve@example.com"},
				Notify:    m.send,
				Timeout:   48 * time.Hour, OnTimeout: flowfabric.FailOnTimeout,
			})
			if err != nil {
				return done, err
			}
			if !answer.Approved {
				return done, flowfabric.Permanent(fmt.Errorf("rejected by %s: %s", answer.By[0], answer.Comment))
			}
			o.order("roll-out", t.EffectKey("roll-out"))
			return done, nil
		})
	}
}

func submitDeploy(t *testing.T, env *flowfabrictest.Env) *flowfabric.Run[flowfabric.None] {
	t.Helper()
	return must[*flowfabric.Run[flowfabric.None]](t)(Deploy.Submit(t.Context(), env.Client, Release{"4.2"}, flowfabric.SubmitOptions{IdempotencyKey: "4.2"}))
}

func TestU154_a_deploy_that_two_people_approve_within_its_time_succeeds(t *testing.T) {
	t.Parallel()
	env := flowfabrictest.New(t)
	o, m := newOutside(), &mailbox{}
	env.Worker(flowfabric.WorkerConfig{}, deploy(o, m))
	run := submitDeploy(t, env)
	env.Approve(run.ID(), "go-live", "ana@example.com")
	env.Approve(run.ID(), "go-live", "ana@example.com") // the same person is one
	env.Advance(47 * time.Hour)
	if got := statusOf(t, env, run.ID()); got != flowfabric.StatusSuspended || o.requests("roll-out") != 0 {
		t.Fatalf("after one approval it is %s with %d roll-outs", got, o.requests("roll-out"))
	}
	env.Approve(run.ID(), "go-live", "ben@example.com")
	if got := statusOf(t, env, run.ID()); got != flowfabric.StatusSucceeded || o.requests("roll-out") != 1 || m.sent != 1 {
		t.Errorf("it is %s after %d roll-outs and %d mails", got, o.requests("roll-out"), m.sent)
	}
	x := must[*flowfabric.Execution](t)(env.Get(t.Context(), run.ID()))
	if x.TotalAttempts != 1 {
		t.Errorf("%d attempts: people do not use up retries", x.TotalAttempts)
	}
}

func TestU154_a_deploy_that_is_not_approved_fails_when_its_time_is_over(t *testing.T) {
	t.Parallel()
	env := flowfabrictest.New(t)
	o := newOutside()
	env.Worker(flowfabric.WorkerConfig{}, deploy(o, &mailbox{}))
	run := submitDeploy(t, env)
	env.Advance(48*time.Hour - time.Second)
	if got := statusOf(t, env, run.ID()); got != flowfabric.StatusSuspended {
		t.Fatalf("a second before its time it is %s", got)
	}
	env.Advance(time.Second)
	x := must[*flowfabric.Execution](t)(env.Get(t.Context(), run.ID()))
	if x.Status != flowfabric.StatusFailed || x.Reason != "suspension_timeout" || o.requests("roll-out") != 0 {
		t.Errorf("it is %s (%s) after %d roll-outs", x.Status, x.Reason, o.requests("roll-out"))
	}
}

func TestU154_a_deploy_that_somebody_rejects_fails_with_what_was_said(t *testing.T) {
	t.Parallel()
	env := flowfabrictest.New(t)
	o := newOutside()
	env.Worker(flowfabric.WorkerConfig{}, deploy(o, &mailbox{}))
	run := submitDeploy(t, env)
	env.Approve(run.ID(), "go-live", "ana@example.com")
	env.Reject(run.ID(), "go-live", "eve@example.com", "not on a Friday")
	_, err := run.Result(t.Context())
	if !errors.Is(err, flowfabric.ErrExecutionFailed) || !strings.Contains(err.Error(), "rejected by eve@example.com: not on a Friday") {
		t.Errorf("%v", err)
	}
	if o.requests("roll-out") != 0 {
		t.Error("it was rolled out all the same")
	}
}

func TestU154_explore_finds_one_roll_out_wherever_the_process_dies(t *testing.T) {
	t.Parallel()
	runs, taken := 0, 0
	flowfabrictest.Explore(t, func(t *testing.T, env *flowfabrictest.Env) {
		runs++
		o, m := newOutside(), &mailbox{}
		env.Worker(flowfabric.WorkerConfig{}, deploy(o, m))
		run := submitDeploy(t, env)
		env.Advance(2 * time.Minute) // for the lease of a dead worker to lapse
		env.Approve(run.ID(), "go-live", "ana@example.com")
		env.Advance(47 * time.Hour)
		env.Approve(run.ID(), "go-live", "ben@example.com")
		env.Advance(2 * time.Minute)

		x := must[*flowfabric.Execution](t)(env.Get(t.Context(), run.ID()))
		if x.Status != flowfabric.StatusSucceeded {
			t.Fatalf("it is %s", x.Status)
		}
		taken += x.ReclaimCount
		if keys := o.keys("roll-out"); len(keys) != 1 {
			t.Errorf("rolled out under the keys %v", keys)
		}
		for _, who := range []string{"ana@example.com", "ben@example.com", "eve@example.com"} {
			if links := m.links(who); len(links) != 1 {
				t.Errorf("%s got the links %v", who, links)
			}
		}
		if waits := len(must[flowfabric.Page[api.SuspensionRecord]](t)(env.Executions().SuspensionsPage(t.Context(), run.ID())).Items); waits != 1 {
			t.Errorf("it waited %d times", waits)
		}
	})
	if runs < 20 || taken < 8 {
		t.Errorf("%d runs with %d takeovers: crash points are missing", runs, taken)
	}
}

const waiting flowfabric.Kind[flowfabric.None, []string] = "waiting"

func TestU153_signals_and_links_survive_the_death_of_the_process(t *testing.T) {
	t.Parallel()
	env := flowfabrictest.New(t)
	waits := make(chan flowfabric.Waitpoint, 2)
	env.Worker(flowfabric.WorkerConfig{}, func(w *flowfabric.Worker) {
		flowfabric.Handle(w, waiting, func(ctx context.Context, t *flowfabric.Task, _ flowfabric.None) ([]string, error) {
			tell := func(_ context.Context, w flowfabric.Waitpoint) error {
				waits <- w
				return nil
			}
			first, err := flowfabric.AwaitSignal[string](ctx, t, "first", flowfabric.WaitOptions{Notify: tell})
			if err != nil {
				return nil, err
			}
			second, err := t.Ask(ctx, flowfabric.Approval{Key: "second"})
			return append([]string{first}, second.By...), err
		})
	})
	run := must[*flowfabric.Run[[]string]](t)(waiting.Submit(t.Context(), env.Client, flowfabric.None{}))
	w := <-waits
	env.Settle()
	signalled := env.CrashAt(flowfabrictest.AfterCommit("signal"))
	receipt := must[api.SignalReceipt](t)(env.Signal(t.Context(), flowfabric.Signal{WaitpointID: w.ID, Token: w.Token, Name: "go", Payload: flowfabric.Text("one")}))
	if !signalled.Hit() || receipt.Outcome != "accepted" {
		t.Errorf("hit: %v, %+v", signalled.Hit(), receipt)
	}
	env.Advance(time.Minute) // the dead process had taken the execution with the signal: its lease has to lapse
	var asked flowfabric.Waitpoint
	for open, err := range env.Waitpoints().List(t.Context(), ops.WaitpointQuery{ExecutionID: run.ID()}) {
		asked = open
		if err != nil {
			t.Fatal(err)
		}
	}
	linked := env.CrashAt(flowfabrictest.AfterCommit("create_link"))
	link := must[flowfabric.ApprovalLink](t)(env.Waitpoints().NewLink(t.Context(), asked.ID, ops.LinkOptions{Approver: "ann"}))
	if links := must[[]flowfabric.ApprovalLink](t)(env.Waitpoints().Links(t.Context(), asked.ID)); !linked.Hit() || len(links) != 1 {
		t.Errorf("hit: %v, %d links", linked.Hit(), len(links))
	}
	decided := env.CrashAt(flowfabrictest.AfterCommit("decide"))
	token := flowfabric.TokenOf(link.URL[strings.LastIndex(link.URL, "/")+1:])
	outcome := must[api.LinkOutcome](t)(env.Waitpoints().Decide(t.Context(), link.ID, token, api.LinkDecision{Decision: "approve"}))
	if !decided.Hit() || outcome.Outcome != "decided" {
		t.Errorf("hit: %v, %+v", decided.Hit(), outcome)
	}
	env.Advance(time.Minute)
	if got := must[[]string](t)(run.Result(t.Context())); !slices.Equal(got, []string{"one", "ann"}) {
		t.Errorf("%v", got)
	}
}

func TestU153_waits_that_end_by_themselves_end_exactly_when_they_are_due(t *testing.T) {
	t.Parallel()
	env := flowfabrictest.New(t)
	start := env.Now()
	var woken diary
	env.Worker(flowfabric.WorkerConfig{}, func(w *flowfabric.Worker) {
		flowfabric.Handle(w, waiting, func(ctx context.Context, t *flowfabric.Task, _ flowfabric.None) ([]string, error) {
			for _, d := range []time.Duration{24 * time.Hour, 72 * time.Hour} {
				if err := t.Sleep(ctx, "nap", d); err != nil {
					return nil, err
				}
			}
			woken.note(env.Now().Sub(start))
			return nil, nil
		})
	})
	run := must[*flowfabric.Run[[]string]](t)(waiting.Submit(t.Context(), env.Client, flowfabric.None{}))
	env.Advance(120 * time.Hour)
	if got := woken.all(); statusOf(t, env, run.ID()) != flowfabric.StatusSucceeded || !slices.Equal(got, []time.Duration{96 * time.Hour}) {
		t.Errorf("it is %s, woken at %v", statusOf(t, env, run.ID()), got)
	}
}

func TestU153_an_approval_of_what_does_not_wait_fails_the_test(t *testing.T) {
	t.Parallel()
	r := &recorder{}
	done := make(chan struct{})
	go func() { // a test that fails ends its goroutine
		defer close(done)
		env := flowfabrictest.New(r)
		run, err := Deploy.Submit(context.Background(), env.Client, Release{"4.2"})
		if err != nil {
			t.Error(err)
			return
		}
		env.Approve(run.ID(), "go-live", "ana@example.com")
		t.Error("it passed")
	}()
	<-done
	if text := r.end(); !r.Failed() || !strings.Contains(text, `no open waitpoint "go-live"`) {
		t.Errorf("it says:\n%s", text)
	}
}
