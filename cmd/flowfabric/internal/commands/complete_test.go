package commands

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/embedded"
	"github.com/flowfabric/flowfabric/flowfabrichttp"
)

// completed is what the shell is offered after the words of a line.
func completed(t *testing.T, server string, words ...string) []string {
	t.Helper()
	var out, errs strings.Builder
	app := &App{Out: &out, Err: &errs, Environ: []string{"FF_SERVER=" + server}}
	if code := app.Run(append([]string{"__complete"}, words...)); code != 0 {
		t.Fatalf("%v: exit %d\n%s", words, code, errs.String())
	}
	var offers []string
	for line := range strings.Lines(out.String()) {
		offer, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if !strings.HasPrefix(offer, ":") { // the directive to the shell
			offers = append(offers, offer)
		}
	}
	return offers
}

func TestU160_the_names_of_demos_are_completed(t *testing.T) {
	t.Parallel()
	if offers := completed(t, "http://127.0.0.1:1", "demo", ""); len(offers) != len(tales) || !slices.Contains(offers, "live-page") {
		t.Errorf("offered %q", offers)
	}
	if offers := completed(t, "http://127.0.0.1:1", "demo", "hello", ""); len(offers) > 0 {
		t.Errorf("offered after a name: %q", offers)
	}
}

// served is an engine on SQLite and the address of its server.
func served(t *testing.T) (*flowfabric.Client, string) {
	t.Helper()
	client, err := embedded.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "ff.db"), embedded.Config{EngineConfig: flowfabric.EngineConfig{Logger: slog.New(slog.DiscardHandler)}})
	if err != nil {
		t.Fatal(err)
	}
	handler, err := flowfabrichttp.New(client, flowfabrichttp.Config{Open: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(func() {
		server.Close()
		if err := client.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return client, server.URL
}

func TestU160_ids_lanes_kinds_workers_and_jobs_are_completed_from_the_server(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	client, url := served(t)
	submitted, err := client.Submit(ctx, flowfabric.Submission{Kind: "mail.send", SubmitOptions: flowfabric.SubmitOptions{Lane: "post"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Work().Register(ctx, api.Registration{WorkerID: "mailer", InstanceID: "host-17", Lanes: []string{"post"}, MaxConcurrent: 1}); err != nil {
		t.Fatal(err)
	}
	job, err := client.Operate().Bulk(ctx, ops.BulkRequest{Action: api.BulkHold, All: true})
	if err != nil {
		t.Fatal(err)
	}
	flow, err := client.Flows().Submit(ctx, flowfabric.Flow{Kind: "release", Nodes: []flowfabric.Node{{Name: "a", Kind: "k"}}})
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"flow get ": bareID(flow.ID), "flow wait x ": bareID(flow.ID), "flow list --kind ": "release", "events --flow ": bareID(flow.ID),
		"get ": bareID(submitted.ID), "cancel ": bareID(submitted.ID), "events ": bareID(submitted.ID), "wait ": bareID(submitted.ID), "tail ": bareID(submitted.ID),
		"tail --attempt ": "latest", "tail --mode ": "best_effort", "tail --type ": "stderr",
		"lanes pause ": "post", "list --lane ": "post", "submit --lane ": "post", "top --lane ": "post", "work --lane ": "post",
		"submit ": "mail.send", "list --kind ": "mail.send", "count --kind ": "mail.send", "work --kind ": "mail.send", "top --kind ": "mail.send",
		"workers get ": "host-17", "workers drain ": "host-17", "list --worker-instance-id ": "host-17",
		"bulk get ": job.ID, "bulk stop ": job.ID,
		"list --status ": "expired", "export --status ": "running", "lan": "lanes", "list --stat": "--status",
	} {
		offers(t, url, line, want)
	}
}

// offers wants a completion. A busy host may miss the limit of one: it is asked for again, as a user would.
func offers(t *testing.T, server, line, want string) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); ; {
		offers := completed(t, server, strings.Split(line, " ")...)
		if slices.Contains(offers, want) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%q offers %v, want %q", line, offers, want)
		}
	}
}

func TestU160_waitpoints_links_and_what_waits_are_completed_from_the_server(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	client, url := served(t)
	submitted, err := client.Submit(ctx, flowfabric.Submission{Kind: "deploy"})
	if err != nil {
		t.Fatal(err)
	}
	task, err := client.Operate().Claim(ctx, submitted.ID)
	if err != nil {
		t.Fatal(err)
	}
	answers, err := client.Work().Do(ctx, api.WorkItem{Op: api.OpSuspend, ID: task.ID, Lease: task.Lease, Suspension: &flowfabric.Suspension{
		Waitpoints: []flowfabric.Binding{flowfabric.NewWaitpoint("ship")}, Until: flowfabric.Condition{Type: "single", Key: "ship"},
	}})
	if err != nil || answers[0].Err != nil {
		t.Fatal(err, answers)
	}
	waitpoint := answers[0].Waitpoints[0].ID
	link, err := client.Waitpoints().NewLink(ctx, waitpoint, ops.LinkOptions{Approver: "ana"})
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"approve ": bareID(task.ID), "reject ": bareID(task.ID), "resume ": bareID(task.ID), "suspension ": bareID(task.ID), "waitpoints ": bareID(task.ID),
		"signals ": bareID(task.ID), "suspensions ": bareID(task.ID),
		"signal ": waitpoint, "token ": waitpoint, "link ": waitpoint, "links ": waitpoint, "waitpoints get ": waitpoint, "waitpoints close ": waitpoint,
		"approve --waitpoint ": waitpoint, "links url ": link.ID, "links revoke ": link.ID,
		"waitpoints --state ": "pending", "suspended --reason-code ": "waiting_for_callback", "suspended --lane ": "default",
	} {
		offers(t, url, line, want)
	}
}

func TestU160_a_server_that_does_not_answer_completes_nothing_and_keeps_no_user_waiting(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 10_000)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done() // ends when the one who asked has left
	}))
	t.Cleanup(server.Close)
	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); { // on a busy machine the time may be over before it is asked
		if offers := completed(t, server.URL, "get", ""); len(offers) != 0 {
			t.Errorf("%v", offers)
		}
		select {
		case <-asked:
			return
		default:
		}
	}
	t.Error("the server was not asked")
}
