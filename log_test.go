package flowfabric_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/embedded"
	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/server"
)

// logBook is a log that can be read while it is written.
type logBook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBook) Write(part []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(part)
}

func (b *logBook) logger(level slog.Level) *slog.Logger {
	return slog.New(slog.NewJSONHandler(b, &slog.HandlerOptions{Level: level}))
}

func (b *logBook) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// lines are those of a message so far.
func (b *logBook) lines(t testing.TB, msg string) (found []map[string]any) {
	t.Helper()
	for line := range strings.Lines(b.String()) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if fields["msg"] == msg {
			found = append(found, fields)
		}
	}
	return found
}

// await waits for a line with the message.
func (b *logBook) await(t testing.TB, msg string) []map[string]any {
	t.Helper()
	ctx := inTime(t)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if found := b.lines(t, msg); len(found) > 0 {
			return found
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%q is not in the log:\n%s", msg, b)
		}
	}
}

func openLogged(t testing.TB, url string, book *logBook, level slog.Level, hooks engine.Hooks) *flowfabric.Client {
	t.Helper()
	hooks.UnsafeDurability = true
	c := must[*flowfabric.Client](t)(embedded.Open(cluster.Keeping(engine.WithHooks(t.Context(), hooks), url), url, embedded.Config{EngineConfig: flowfabric.EngineConfig{Logger: book.logger(level)}}))
	t.Cleanup(func() { _ = c.Close(context.WithoutCancel(t.Context())) })
	return c
}

// talk does what has secrets and payloads in it, over HTTP with a key, and returns what no log may show.
func chat(t testing.TB, c *flowfabric.Client, book *logBook, level slog.Level) (id flowfabric.ID, hidden []string) {
	t.Helper()
	ctx := inTime(t)
	key := must[*api.NewAPIKey](t)(c.Admin().APIKeys().Create(ctx, api.APIKeySettings{
		Name: "ci", Roles: []string{"read", "submit", "work", "operate", "admin"}, Namespaces: []string{"default"},
	}))
	s := must[*server.Server](t)(server.New(backend(c), server.Config{Logger: book.logger(level)}))
	listener := httptest.NewServer(s.Handler())
	t.Cleanup(func() {
		s.Drain()
		listener.Close()
	})
	remote := connect(t, listener.URL, flowfabric.ConnectConfig{APIKey: key.Secret})
	w := &world{Client: remote}
	_, stop := w.work(t, flowfabric.WorkerConfig{Logger: book.logger(level)}, func(worker *flowfabric.Worker) {
		flowfabric.Handle(worker, flowfabric.Kind[string, string]("tell"), func(context.Context, *flowfabric.Task, string) (string, error) {
			return "", flowfabric.Permanent(errors.New("shown-failure"))
		})
	})
	defer stop()
	run := must[*flowfabric.Run[string]](t)(flowfabric.Kind[string, string]("tell").Submit(ctx, remote, "hidden-input"))
	if _, err := run.Result(ctx); err == nil {
		t.Fatal("it did not fail")
	}
	id = must[flowfabric.SubmitResult](t)(remote.Submit(ctx, echo.Submission(flowfabric.Text("hidden-payload"), flowfabric.SubmitOptions{
		Lane: "elsewhere", IdempotencyKey: "hidden-key", Tags: map[string]string{"t": "hidden-tag"},
	}))).ID
	must[*flowfabric.Execution](t)(remote.Cancel(ctx, id, "hidden-reason"))
	wrong := must[*http.Request](t)(http.NewRequestWithContext(ctx, http.MethodGet, listener.URL+"/v1/executions?q=hidden-query", nil))
	wrong.Header.Set("Authorization", "Bearer "+key.Secret+"x")
	answer := must[*http.Response](t)(http.DefaultClient.Do(wrong))
	_, _ = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
	return id, []string{"hidden-", key.Secret, key.Secret[len(key.Secret)-20:], "Bearer"}
}

func TestU217_no_log_has_payloads_or_secrets_in_it(t *testing.T) {
	t.Parallel()
	for name, address := range everyStore() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			book := &logBook{}
			c := openLogged(t, address(t), book, slog.LevelDebug, engine.Hooks{})
			_, hidden := chat(t, c, book, slog.LevelDebug)
			for _, text := range hidden {
				if strings.Contains(book.String(), text) {
					t.Errorf("the log has %q in it:\n%s", text, book)
				}
			}
			if len(book.lines(t, "request")) < 4 {
				t.Errorf("requests are not in the log:\n%s", book)
			}
		})
	}
}

func TestU217_at_info_requests_are_not_logged_and_audit_rows_are(t *testing.T) {
	t.Parallel()
	for name, address := range everyStore() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			book := &logBook{}
			c := openLogged(t, address(t), book, slog.LevelInfo, engine.Hooks{})
			id, _ := chat(t, c, book, slog.LevelInfo)
			if got := book.lines(t, "request"); len(got) > 0 {
				t.Errorf("%v", got)
			}
			actions := map[any]map[string]any{}
			for _, line := range book.await(t, "audit") {
				actions[line["action"]] = line
			}
			cancel := actions["cancel"]
			if cancel == nil || cancel["level"] != "INFO" || cancel["execution_id"] != string(id) || cancel["namespace"] != "default" ||
				cancel["principal"] != "ci" || cancel["request_id"] == "" || cancel["code"] != "done" {
				t.Errorf("%v", cancel)
			}
			rows := 0
			for _, err := range c.Admin().Audit(inTime(t)) {
				if err != nil {
					t.Fatal(err)
				}
				rows++
			}
			if lines := len(book.lines(t, "audit")); lines != rows {
				t.Errorf("%d rows of the audit log and %d lines", rows, lines)
			}
		})
	}
}

func TestU217_schema_and_sweeps_that_found_something_are_logged(t *testing.T) {
	t.Parallel()
	book, url := &logBook{}, stores["sqlite"](t)
	hand := clock.NewManual(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	c := openLogged(t, url, book, slog.LevelDebug, engine.Hooks{Clock: hand})
	if schema := book.lines(t, "the schema of the store was brought up to date"); len(schema) != 1 || schema[0]["schema"] == 0.0 {
		t.Errorf("%v", schema)
	}
	must[flowfabric.SubmitResult](t)(c.Submit(inTime(t), echo.Submission(flowfabric.Text("x"), flowfabric.SubmitOptions{Delay: time.Second})))
	if found := book.lines(t, "a sweep found timers that were due"); len(found) > 0 {
		t.Errorf("%v", found)
	}
	hand.TurnTo(hand.Now().Add(2 * time.Second))
	if found := book.await(t, "a sweep found timers that were due"); found[0]["kind"] != "execution" || found[0]["count"] != 1.0 || found[0]["level"] != "DEBUG" {
		t.Errorf("%v", found)
	}
	if err := c.Close(inTime(t)); err != nil {
		t.Fatal(err)
	}
	again := &logBook{}
	openLogged(t, url, again, slog.LevelInfo, engine.Hooks{})
	if schema := again.lines(t, "the schema of the store was brought up to date"); len(schema) > 0 {
		t.Errorf("%v", schema)
	}
}
