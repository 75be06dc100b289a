package flowfabric_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/server"
)

// roleStories are what a key with one role must be able to do alone, as the roles are described in docs/security.md (U122). What
// others must do for that is done by the client that serves the store.
var roleStories = []struct {
	name  string
	roles []string // none: no key at all
	story func(t *testing.T, k *keyed, c *flowfabric.Client)
}{
	{"work: a worker does all that handlers may do", []string{"work"}, workerStory},
	{"work: a worker learns at once that its work was cancelled", []string{"work"}, cancelledStory},
	{"work: a broker grants, and a worker claims", []string{"work"}, brokerStory},
	{"submit: an application submits, repeats, waits, follows and steers", []string{"submit"}, submitStory},
	{"submit: an application runs flows", []string{"submit"}, flowStory},
	{"read: a reader looks at everything", []string{"read"}, readStory},
	{"operate: an operator looks and steers", []string{"operate"}, operateStory},
	{"admin: an administrator looks after keys", []string{"admin"}, adminStory},
	{"no key: who has a token signals, who has a link decides", nil, tokenStory},
}

func TestU122_a_key_with_one_role_is_enough_for_what_the_role_promises(t *testing.T) {
	t.Parallel()
	for _, s := range roleStories {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			for store, address := range everyStore() {
				t.Run(store, func(t *testing.T) {
					t.Parallel()
					k := openWorld(t, address(t), engine.Hooks{}).keyed(t)
					c := connect(t, k.address, flowfabric.ConnectConfig{})
					if s.roles != nil {
						c = k.with(t, "minimal", s.roles...)
					}
					s.story(t, k, c)
					k.noneRefused(t)
				})
			}
		})
	}
}

// noneRefused checks that no call was refused, not even one whose refusal a client gets over.
func (k *keyed) noneRefused(t *testing.T) {
	t.Helper()
	for row, err := range k.Admin().Audit(inTime(t), ops.AuditFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if row.Outcome != "done" {
			t.Errorf("%s was refused %s: %s", row.Principal, row.Action, row.Outcome)
		}
	}
}

func workerStory(t *testing.T, k *keyed, c *flowfabric.Client) {
	ctx := inTime(t)
	links := make(chan []flowfabric.ApprovalLink, 8)
	minimal := &world{Client: c}
	_, stop := minimal.work(t, flowfabric.WorkerConfig{}, func(w *flowfabric.Worker) {
		flowfabric.Handle(w, part, func(_ context.Context, _ *flowfabric.Task, in string) (string, error) { return in, nil })
		flowfabric.Handle(w, wait, func(ctx context.Context, task *flowfabric.Task, _ flowfabric.None) ([]string, error) {
			stepped, err := flowfabric.Step(ctx, task, "once", func(context.Context) (string, error) { return "stepped", nil })
			err = errors.Join(err, task.Progress(ctx, 10, "began"), task.Renew(ctx))
			_, spawnErr := task.Spawn(ctx, part.Node("a", "A"), part.Node("b", "B").After("a"))
			_, usageErr := task.ReportUsage(ctx, flowfabric.Usage{Amounts: map[string]int64{"tokens": 1}, DedupKey: "one"})
			if err = errors.Join(err, spawnErr, usageErr); err != nil {
				return nil, err
			}
			children, err := task.WaitForChildren(ctx)
			if err != nil {
				return nil, err
			}
			got := []string{stepped}
			for _, child := range children {
				text, err := flowfabric.ChildResult[string](ctx, task, child)
				if err != nil {
					return nil, err
				}
				got = append(got, text)
			}
			said, err := flowfabric.AwaitSignal[string](ctx, task, "word")
			if err != nil {
				return nil, err
			}
			d, err := task.Ask(ctx, flowfabric.Approval{
				Key: "ok", Title: "Well?", Approvers: []string{"ann"},
				Notify: func(_ context.Context, l []flowfabric.ApprovalLink) error { links <- l; return nil },
			})
			if err != nil {
				return nil, err
			}
			return append(got, said, d.By[0]), nil
		})
	})
	run := must[*flowfabric.Run[[]string]](t)(wait.Submit(ctx, k.Client, flowfabric.None{}))
	word := k.awaits(t, run.ID(), "word")
	must[api.SignalReceipt](t)(k.Signal(ctx, flowfabric.Signal{WaitpointID: word.ID, Token: word.Token, Name: "word", Payload: flowfabric.Text("said")}))
	link := receive(t, links)[0]
	k.awaits(t, run.ID(), "ok")
	must[api.LinkOutcome](t)(k.Waitpoints().Decide(ctx, link.ID, tokenOf(link.URL), api.LinkDecision{Decision: "approve"}))
	got := must[[]string](t)(run.Result(ctx))
	if slices.Sort(got); !slices.Equal(got, []string{"A", "B", "ann", "said", "stepped"}) {
		t.Errorf("%q", got)
	}
	stop()
	for worker, err := range k.Workers().List(ctx, ops.WorkerFilter{State: "all"}) {
		if err != nil || worker.State != "dead" || worker.RegisteredBy != "minimal" {
			t.Errorf("the worker did not sign off: %+v, %v", worker, err)
		}
	}
}

func cancelledStory(t *testing.T, k *keyed, c *flowfabric.Client) {
	ctx := inTime(t)
	began, ended := make(chan struct{}), make(chan error, 1)
	_, stop := (&world{Client: c}).work(t, flowfabric.WorkerConfig{LeaseTTL: time.Hour}, func(w *flowfabric.Worker) { // no renewal tells
		flowfabric.Handle(w, double, func(ctx context.Context, _ *flowfabric.Task, _ int) (int, error) {
			close(began)
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return 0, ctx.Err()
		})
	})
	run := must[*flowfabric.Run[int]](t)(double.Submit(ctx, k.Client, 1))
	receive(t, began)
	must[*flowfabric.Execution](t)(k.Cancel(ctx, run.ID(), "enough"))
	if cause := receive(t, ended); !errors.Is(cause, flowfabric.ErrCancelled) {
		t.Errorf("the handler ended by %v", cause)
	}
	stop()
}

func brokerStory(t *testing.T, k *keyed, c *flowfabric.Client) {
	ctx := inTime(t)
	id := must[flowfabric.SubmitResult](t)(k.Submit(ctx, echo.Submission(flowfabric.Text("in")))).ID
	grants := must[[]api.Grant](t)(c.Work().Grant(ctx, forRender("default")))
	if len(grants) != 1 || grants[0].ExecutionID != id {
		t.Fatalf("%+v", grants)
	}
	if err := c.Work().VerifyGrant(ctx, grants[0].Key); err != nil {
		t.Fatal(err)
	}
	if err := c.Work().ReturnGrant(ctx, grants[0].Key); err != nil {
		t.Fatal(err)
	}
	again := must[[]api.Grant](t)(c.Work().Grant(ctx, forRender("default")))[0]
	worker := k.with(t, "renderer", "work")
	claimed := must[*api.Claimed](t)(worker.Work().ClaimGrant(ctx, again.Key, render))
	answers := must[[]api.WorkAnswer](t)(worker.Work().Do(ctx, api.WorkItem{Op: api.OpComplete, ID: id, Lease: claimed.Lease}))
	if answers[0].Err != nil {
		t.Error(answers[0].Err)
	}
}

func submitStory(t *testing.T, k *keyed, c *flowfabric.Client) {
	ctx := inTime(t)
	once := flowfabric.SubmitOptions{IdempotencyKey: "once", Tags: map[string]string{"a": "b"}}
	run := must[*flowfabric.Run[int]](t)(double.Submit(ctx, c, 21, once))
	if again := must[*flowfabric.Run[int]](t)(double.Submit(ctx, c, 21, once)); again.ID() != run.ID() || !again.Duplicate() {
		t.Errorf("a repeat is %s, want %s", again.ID(), run.ID())
	}
	must[[]flowfabric.SubmitResult](t)(c.SubmitMany(ctx, []flowfabric.Submission{double.Submission(1), double.Submission(2)}))
	if err := c.Nudge(ctx, "default"); err != nil {
		t.Error(err)
	}
	must[*api.Explanation](t)(c.Executions().Explain(ctx, run.ID()))
	_, stop := k.work(t, flowfabric.WorkerConfig{}, func(w *flowfabric.Worker) {
		flowfabric.Handle(w, double, func(_ context.Context, _ *flowfabric.Task, in int) (int, error) { return 2 * in, nil })
	})
	defer stop()
	if got := must[int](t)(run.Result(ctx)); got != 42 {
		t.Errorf("the result is %d", got)
	}
	must[*flowfabric.Execution](t)(run.Wait(ctx))
	for event, err := range c.Events().Follow(ctx, ops.ReadOptions{After: api.FromStart, EventFilter: ops.EventFilter{ExecutionID: run.ID()}}) {
		if err != nil {
			t.Fatal(err)
		}
		if event.Kind == "execution.completed" {
			break
		}
	}
	must[flowfabric.Payload](t)(c.Executions().Input(ctx, run.ID()))
	must[flowfabric.Payload](t)(c.Executions().Result(ctx, run.ID()))
	must[map[string]string](t)(c.Executions().SetTags(ctx, run.ID(), map[string]*string{"a": nil}))
	must[*flowfabric.Execution](t)(c.Operate().Replay(ctx, run.ID()))
	later := must[*flowfabric.Run[int]](t)(double.Submit(ctx, c, 1, flowfabric.SubmitOptions{Lane: "later"}))
	if err := later.Cancel(ctx, "not needed"); err != nil {
		t.Error(err)
	}
}

func flowStory(t *testing.T, k *keyed, c *flowfabric.Client) {
	ctx := inTime(t)
	k.parts(t)
	run := must[*flowfabric.FlowRun](t)(c.Flows().Create(ctx, flowfabric.Flow{Kind: "graph"}))
	must[*flowfabric.FlowRun](t)(c.Flows().Extend(ctx, run.ID, flowfabric.FlowExtension{Nodes: []flowfabric.Node{part.Node("a", "A"), part.Node("b", "B").After("a")}}))
	must[*flowfabric.FlowRun](t)(c.Flows().Seal(ctx, run.ID))
	if flow := must[*flowfabric.FlowView](t)(c.Flows().Wait(ctx, run.ID)); flow.State != flowfabric.FlowCompleted {
		t.Errorf("the flow is %s", flow.State)
	}
	must[*api.FlowGraph](t)(c.Flows().Graph(ctx, run.ID))
	if members := must[[]api.FlowMember](t)(all(c.Flows().Members(ctx, run.ID))); len(members) != 2 {
		t.Errorf("%d members", len(members))
	}
	page := must[api.EventPage](t)(c.Events().Read(ctx, ops.ReadOptions{After: api.FromStart, EventFilter: ops.EventFilter{FlowID: run.ID}}))
	if len(page.Events) == 0 {
		t.Error("the flow has no events")
	}
	if flows := must[[]*flowfabric.FlowView](t)(all(c.Flows().List(ctx))); len(flows) != 1 {
		t.Errorf("it lists %d flows", len(flows))
	}
	second := must[*flowfabric.FlowRun](t)(c.Flows().Submit(ctx, flowfabric.Flow{Kind: "graph", Nodes: []flowfabric.Node{part.Node("a", "A", flowfabric.SubmitOptions{Lane: "later"})}}))
	must[api.FlowCancelProgress](t)(c.Flows().Cancel(ctx, second.ID, flowfabric.FlowCancel{}))
}

func readStory(t *testing.T, k *keyed, c *flowfabric.Client) {
	ctx := inTime(t)
	id := must[flowfabric.SubmitResult](t)(k.Submit(ctx, echo.Submission(flowfabric.Text("in")))).ID
	flow := must[*flowfabric.FlowRun](t)(k.Flows().Submit(ctx, flowfabric.Flow{Kind: "graph", Nodes: []flowfabric.Node{part.Node("a", "A")}}))
	calls := map[string]func() error{
		"get":      func() error { _, err := c.Get(ctx, id); return err },
		"list":     func() error { _, err := c.Executions().Page(ctx, ops.ListOptions{}); return err },
		"count":    func() error { _, err := c.Executions().Count(ctx, ops.Filter{}); return err },
		"input":    func() error { _, err := c.Executions().Input(ctx, id); return err },
		"attempts": func() error { _, err := c.Executions().Attempts(ctx, id); return err },
		"steps":    func() error { _, err := c.Executions().Steps(ctx, id); return err },
		"explain":  func() error { _, err := c.Executions().Explain(ctx, id); return err },
		"events": func() error {
			_, err := c.Events().Read(ctx, ops.ReadOptions{After: api.FromStart})
			return err
		},
		"flow":       func() error { _, err := c.Flows().Get(ctx, flow.ID); return err },
		"flows":      func() error { _, err := c.Flows().Page(ctx); return err },
		"graph":      func() error { _, err := c.Flows().Graph(ctx, flow.ID); return err },
		"lanes":      func() error { _, err := c.Lanes().Page(ctx); return err },
		"workers":    func() error { _, err := c.Workers().Page(ctx); return err },
		"budgets":    func() error { _, err := c.Budgets().Page(ctx); return err },
		"quotas":     func() error { _, err := c.Quotas().Page(ctx); return err },
		"waitpoints": func() error { _, err := c.Waitpoints().Page(ctx); return err },
		"suspended":  func() error { _, err := c.Waitpoints().SuspendedPage(ctx); return err },
		"bulk jobs":  func() error { _, err := c.Operate().BulkJobsPage(ctx); return err },
		"info":       func() error { _, err := c.Admin().Info(ctx); return err },
		"whoami":     func() error { _, err := c.Admin().Whoami(ctx); return err },
	}
	for name, call := range calls {
		if err := call(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func operateStory(t *testing.T, k *keyed, c *flowfabric.Client) {
	readStory(t, k, c)
	ctx := inTime(t)
	id := must[flowfabric.SubmitResult](t)(k.Submit(ctx, echo.Submission(flowfabric.Text("in")))).ID
	must[*api.Lane](t)(c.Lanes().Pause(ctx, "default"))
	must[*api.Lane](t)(c.Lanes().Resume(ctx, "default"))
	must[*flowfabric.Execution](t)(c.Operate().Hold(ctx, id))
	must[*flowfabric.Execution](t)(c.Operate().ReleaseHold(ctx, id))
	must[*flowfabric.Execution](t)(c.Operate().SetPriority(ctx, id, 5))
	must[*api.CreatedBudget](t)(c.Budgets().Create(ctx, api.Budget{Name: "b", Scope: api.BudgetScope{Type: "namespace"}, Dimensions: map[string]api.BudgetLimits{"x": {Hard: 5}}}))
	run := k.waits(t, func(ctx context.Context, task *flowfabric.Task) ([]string, error) {
		said, err := flowfabric.AwaitSignal[string](ctx, task, "word", flowfabric.WaitOptions{Name: "approved"})
		return []string{said}, err
	})
	k.awaits(t, run.ID(), "word")
	must[api.SignalReceipt](t)(c.Operate().Approve(ctx, run.ID(), ops.Approve{Payload: flowfabric.Text("yes")}))
	if got := must[[]string](t)(run.Result(ctx)); !slices.Equal(got, []string{"yes"}) {
		t.Errorf("%q", got)
	}
	must[*flowfabric.Execution](t)(c.Operate().Replay(ctx, run.ID()))
	job := must[*api.BulkJob](t)(c.Operate().Bulk(ctx, ops.BulkRequest{Action: api.BulkCancel, All: true}))
	if job = must[*api.BulkJob](t)(c.Operate().WaitBulk(ctx, job.ID)); job.State == "running" {
		t.Errorf("%+v", job)
	}
}

func adminStory(t *testing.T, k *keyed, c *flowfabric.Client) {
	ctx := inTime(t)
	made := must[*api.NewAPIKey](t)(c.Admin().APIKeys().Create(ctx, api.APIKeySettings{Name: "shop", Roles: []string{"submit"}, Namespaces: []string{"default"}}))
	must[*api.NewAPIKey](t)(c.Admin().APIKeys().Rotate(ctx, made.ID))
	if err := c.Admin().APIKeys().Revoke(ctx, made.ID); err != nil {
		t.Error(err)
	}
	must[flowfabric.Page[api.AuditRow]](t)(c.Admin().AuditPage(ctx, ops.AuditFilter{}))
	submitStory(t, k, c)
}

func tokenStory(t *testing.T, k *keyed, c *flowfabric.Client) {
	ctx := inTime(t)
	links := make(chan []flowfabric.ApprovalLink, 1)
	run := k.waits(t, func(ctx context.Context, task *flowfabric.Task) ([]string, error) {
		said, err := flowfabric.AwaitSignal[string](ctx, task, "word")
		if err != nil {
			return nil, err
		}
		d, err := task.Ask(ctx, flowfabric.Approval{
			Key: "ok", Title: "Well?", Approvers: []string{"ann"}, Notify: func(_ context.Context, l []flowfabric.ApprovalLink) error { links <- l; return nil },
		})
		return append(d.By, said), err
	})
	word := k.awaits(t, run.ID(), "word")
	must[api.SignalReceipt](t)(c.Signal(ctx, flowfabric.Signal{WaitpointID: word.ID, Token: word.Token, Name: "word", Payload: flowfabric.Text("said")}))
	link := receive(t, links)[0]
	must[*api.LinkPage](t)(c.Waitpoints().OpenLink(ctx, link.ID, tokenOf(link.URL)))
	k.awaits(t, run.ID(), "ok")
	must[api.LinkOutcome](t)(c.Waitpoints().Decide(ctx, link.ID, tokenOf(link.URL), api.LinkDecision{Decision: "approve"}))
	if got := must[[]string](t)(run.Result(ctx)); !slices.Equal(got, []string{"ann", "said"}) {
		t.Errorf("%q", got)
	}
}

// withoutEvents serves a world with an event log that is refused as a server does which does not let workers read it.
func withoutEvents(t *testing.T, w *world, asked *atomic.Int64) *flowfabric.Client {
	t.Helper()
	s := must[*server.Server](t)(server.New(backend(w.Client), server.Config{Open: true, Logger: silent()}))
	handler := s.Handler()
	listener := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/events" {
			asked.Add(1)
			rw.Header().Set("Content-Type", "application/problem+json")
			rw.WriteHeader(http.StatusForbidden)
			_, _ = rw.Write([]byte(`{"code":"role_required","class":"forbidden","title":"role required","status":403,"detail":"the caller may not do this"}`))
			return
		}
		handler.ServeHTTP(rw, r)
	}))
	t.Cleanup(func() {
		s.Drain()
		listener.Close()
	})
	return connect(t, listener.URL, flowfabric.ConnectConfig{})
}

func TestU145_a_worker_whose_feed_is_refused_works_without_it_and_says_so_once(t *testing.T) {
	t.Parallel()
	for store, address := range everyStore() {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			ctx := inTime(t)
			w := openWorld(t, address(t), engine.Hooks{})
			var asked atomic.Int64
			book := &logBook{}
			began, ended := make(chan struct{}), make(chan error, 1)
			deaf := &world{Client: withoutEvents(t, w, &asked)}
			// Only a renewal tells of the cancel here, after a third of this time. A machine may be busy for much of the rest.
			_, stop := deaf.work(t, flowfabric.WorkerConfig{LeaseTTL: 30 * time.Second, Logger: book.logger(0)}, func(worker *flowfabric.Worker) {
				flowfabric.Handle(worker, double, func(ctx context.Context, _ *flowfabric.Task, in int) (int, error) {
					if in > 0 {
						return 2 * in, nil
					}
					close(began)
					<-ctx.Done()
					ended <- context.Cause(ctx)
					return 0, ctx.Err()
				})
			})
			if got := must[int](t)(must[*flowfabric.Run[int]](t)(double.Submit(ctx, w.Client, 21)).Result(ctx)); got != 42 {
				t.Errorf("the result is %d", got)
			}
			lost := must[*flowfabric.Run[int]](t)(double.Submit(ctx, w.Client, 0))
			receive(t, began)
			must[*flowfabric.Execution](t)(w.Cancel(ctx, lost.ID(), "enough"))
			if cause := receive(t, ended); !errors.Is(cause, flowfabric.ErrCancelled) {
				t.Errorf("the handler ended by %v", cause)
			}
			stop()
			if n := asked.Load(); n != 1 {
				t.Errorf("the feed was asked for %d times", n)
			}
			if n := strings.Count(book.String(), "may not read the events"); n != 1 {
				t.Errorf("%d lines say that there is no feed:\n%s", n, book)
			}
		})
	}
}
