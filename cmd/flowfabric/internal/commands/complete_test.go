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

	"github.com/flowfabric/flowfabric"
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

func TestU160_ids_lanes_kinds_workers_and_jobs_are_completed_from_the_server(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	client, err := flowfabric.Open(ctx, "sqlite:"+filepath.Join(t.TempDir(), "ff.db"), flowfabric.OpenConfig{Logger: slog.New(slog.DiscardHandler)})
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
	submitted, err := client.Submit(ctx, flowfabric.Submission{Kind: "mail.send", SubmitOptions: flowfabric.SubmitOptions{Lane: "post"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Work().Register(ctx, flowfabric.Registration{WorkerID: "mailer", InstanceID: "host-17", Lanes: []string{"post"}, MaxConcurrent: 1}); err != nil {
		t.Fatal(err)
	}
	job, err := client.Operate().Bulk(ctx, flowfabric.BulkRequest{Action: flowfabric.BulkHold, All: true})
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"get ": bareID(submitted.ID), "cancel ": bareID(submitted.ID), "events ": bareID(submitted.ID), "wait ": bareID(submitted.ID),
		"lanes pause ": "post", "list --lane ": "post", "submit --lane ": "post", "top --lane ": "post", "work --lane ": "post",
		"submit ": "mail.send", "list --kind ": "mail.send", "count --kind ": "mail.send", "work --kind ": "mail.send", "top --kind ": "mail.send",
		"workers get ": "host-17", "workers drain ": "host-17", "list --worker-instance-id ": "host-17",
		"bulk get ": job.ID, "bulk stop ": job.ID,
		"list --status ": "expired", "export --status ": "running", "lan": "lanes", "list --stat": "--status",
	} {
		// A busy host may miss the limit of a completion: it is asked for again, as a user would.
		for deadline := time.Now().Add(30 * time.Second); ; {
			offers := completed(t, server.URL, strings.Split(line, " ")...)
			if slices.Contains(offers, want) {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%q offers %v, want %q", line, offers, want)
			}
		}
	}
}

func TestU160_a_server_that_does_not_answer_completes_nothing_and_keeps_nobody_waiting(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 100)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done() // ends when the one who asked has left
	}))
	t.Cleanup(server.Close)
	if offers := completed(t, server.URL, "get", ""); len(offers) != 0 {
		t.Errorf("%v", offers)
	}
	select {
	case <-asked:
	default:
		t.Error("the server was not asked")
	}
}
