package flowfabrictest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/flowfabrichttp"
	"github.com/flowfabric/flowfabric/flowfabrictest"
)

// Invoice is the input of the reminder in the example.
type Invoice struct{ Number string }

// Remind reminds of an invoice until it is paid.
const Remind flowfabric.Kind[Invoice, string] = "remind"

// remind asks again every day until the invoice is paid.
func remind(paid func(Invoice) bool) func(context.Context, *flowfabric.Task, Invoice) (string, error) {
	return func(_ context.Context, _ *flowfabric.Task, in Invoice) (string, error) {
		if !paid(in) {
			return "", flowfabric.RetryAfter(24*time.Hour, errors.New("not paid yet"))
		}
		return in.Number + " is paid", nil
	}
}

func Test_an_invoice_is_asked_for_every_day_until_it_is_paid(t *testing.T) {
	t.Parallel()
	env := flowfabrictest.New(t)
	start, asked := env.Now(), 0
	paid := func(Invoice) bool {
		asked++
		return env.Now().Sub(start) >= 72*time.Hour
	}
	env.Worker(flowfabric.WorkerConfig{}, func(w *flowfabric.Worker) {
		flowfabric.Handle(w, Remind, remind(paid))
	})
	policy := &flowfabric.Policy{Retry: &flowfabric.RetryPolicy{MaxRetries: 30}}
	run, err := Remind.Submit(t.Context(), env.Client, Invoice{"17"}, flowfabric.SubmitOptions{Policy: policy})
	if err != nil {
		t.Fatal(err)
	}

	env.Advance(72 * time.Hour)

	if answer, err := run.Result(t.Context()); answer != "17 is paid" || asked != 4 {
		t.Errorf("%q after asking %d times: %v", answer, asked, err)
	}
}

func TestExplore_an_invoice_is_paid_for_wherever_the_process_dies(t *testing.T) {
	t.Parallel()
	flowfabrictest.Explore(t, func(t *testing.T, env *flowfabrictest.Env) {
		env.Worker(flowfabric.WorkerConfig{}, func(w *flowfabric.Worker) {
			flowfabric.Handle(w, Remind, remind(func(Invoice) bool { return true }))
		})
		run, err := Remind.Submit(t.Context(), env.Client, Invoice{"17"})
		if err != nil {
			t.Fatal(err)
		}

		env.Advance(time.Hour) // time enough for the lease of a dead worker to lapse

		if x, err := env.Get(t.Context(), run.ID()); err != nil || x.Status != flowfabric.StatusSucceeded {
			t.Errorf("%+v, %v", x, err)
		}
	})
}

// A test takes the place of tb with its own t.
// Publish waits for the approval of an editor.
const Publish flowfabric.Kind[string, string] = "publish"

func Test_an_editor_approves_by_the_link_in_the_mail(t *testing.T) {
	t.Parallel()
	env := flowfabrictest.New(t)
	var mailed []flowfabric.ApprovalLink
	env.Worker(flowfabric.WorkerConfig{}, func(w *flowfabric.Worker) {
		flowfabric.Handle(w, Publish, func(ctx context.Context, t *flowfabric.Task, page string) (string, error) {
			answer, err := t.Ask(ctx, flowfabric.Approval{Key: "editor", Title: page + "?", Approvers: []string{"ana@example.com"}, Notify: func(_ context.Context, links []flowfabric.ApprovalLink) error {
				mailed = links
				return nil
			}})
			if err != nil {
				return "", err
			}
			return page + " approved by " + answer.By[0], nil
		})
	})
	pages, err := flowfabrichttp.New(env.Client, flowfabrichttp.Config{}) // the server with the pages that the links lead to
	if err != nil {
		t.Fatal(err)
	}
	run, err := Publish.Submit(t.Context(), env.Client, "news")
	if err != nil {
		t.Fatal(err)
	}
	env.Settle()

	click := httptest.NewRequest(http.MethodPost, mailed[0].URL, strings.NewReader("decision=approve"))
	click.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	click.Header.Set("Accept", "text/html")
	answer := httptest.NewRecorder()
	pages.ServeHTTP(answer, click)
	env.Settle()

	if said, err := run.Result(t.Context()); answer.Code != http.StatusSeeOther || said != "news approved by ana@example.com" {
		t.Errorf("status %d, %q, %v", answer.Code, said, err)
	}
}

func TestExplore_a_flow_and_a_key_survive_wherever_the_process_dies(t *testing.T) {
	t.Parallel()
	flowfabrictest.Explore(t, func(t *testing.T, env *flowfabrictest.Env) {
		env.Worker(flowfabric.WorkerConfig{}, func(w *flowfabric.Worker) {
			flowfabric.Handle(w, Remind, remind(func(Invoice) bool { return true }))
		})
		run, err := env.Flows().Submit(t.Context(), flowfabric.Flow{Kind: "reminders", Nodes: []flowfabric.Node{
			Remind.Node("first", Invoice{"17"}), Remind.Node("second", Invoice{"18"}).After("first"),
		}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := env.Admin().APIKeys().Create(t.Context(), api.APIKeySettings{Name: "ci", Roles: []string{"read"}, Namespaces: []string{"default"}}); err != nil {
			t.Error(err)
		}
		env.Advance(time.Hour)
		if flow, err := env.Flows().Get(t.Context(), run.ID); err != nil || flow.State != flowfabric.FlowCompleted {
			t.Errorf("%+v, %v", flow, err)
		}
	})
}

func ExampleNew() {
	tb := &recorder{}
	defer tb.end()

	env := flowfabrictest.New(tb)
	env.Worker(flowfabric.WorkerConfig{}, func(w *flowfabric.Worker) {
		flowfabric.Handle(w, Remind, func(_ context.Context, _ *flowfabric.Task, in Invoice) (string, error) {
			return "reminded of " + in.Number + " on " + env.Now().Format(time.DateOnly), nil
		})
	})
	ctx := context.Background()
	run, err := Remind.Submit(ctx, env.Client, Invoice{"17"}, flowfabric.SubmitOptions{Delay: 72 * time.Hour})
	if err != nil {
		fmt.Println(err)
		return
	}
	crash := env.CrashAt(flowfabrictest.AfterCommit("complete"))
	env.Advance(72 * time.Hour)
	answer, err := run.Result(ctx)
	fmt.Println(answer, err, crash.Hit())
	// Output: reminded of 17 on 2026-01-04 <nil> true
}
