package secrets

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx
	"go.uber.org/goleak"
	_ "modernc.org/sqlite" // the driver sqlite

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/embedded"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/inprocess"
	"github.com/flowfabric/flowfabric/internal/pgtest/migrated"
	"github.com/flowfabric/flowfabric/internal/server"
)

// cluster is the Postgres of these tests; its databases are migrated.
var cluster = migrated.New()

func TestMain(m *testing.M) { goleak.VerifyTestMain(tidy{cluster.Around(m)}) }

// patience bounds every wait in real time; nothing waits for it to pass.
const patience = 5 * time.Minute

// What the installation is set up with and must not tell.
const (
	masterKey   = "c0ffee00000000000000000000000000000000000000000000000000000000a1"
	firstSecret = "decade00000000000000000000000000000000000000000000000000000000a2"
	nextSecret  = "facade00000000000000000000000000000000000000000000000000000000a3"
)

// book is a log that several write into.
type book struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *book) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *book) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// world is a server on a store, a program beside it, and everything that they say.
type world struct {
	t       *testing.T
	address string
	client  *flowfabric.Client
	url     string
	key     string // an API key that may do everything
	logs    book
	said    book // what is shown to those who may know no token
	shown   book // the answers that show one

	received book     // by a webhook
	hooks    []string // secrets of webhooks
}

func newWorld(t *testing.T, address string) *world {
	t.Helper()
	w := &world{t: t, address: address}
	logger := slog.New(slog.NewTextHandler(&w.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	client, err := embedded.Open(cluster.Keeping(engine.WithHooks(t.Context(), engine.Hooks{UnsafeDurability: true}), address), address, embedded.Config{
		EngineConfig: flowfabric.EngineConfig{
			Logger:        logger,
			MasterKey:     masterKey,
			SigningKid:    "first",
			SigningSecret: firstSecret,
			PublicURL:     "https://flow.example.com",
			Webhooks:      api.WebhookTargets{AllowLoopback: true},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.client = client
	on, _ := inprocess.BackendOf(client)
	s, err := server.New(on, server.Config{Logger: logger, PublicURL: "https://flow.example.com"})
	if err != nil {
		t.Fatal(err)
	}
	key, err := client.Admin().APIKeys().Create(t.Context(), api.APIKeySettings{
		Name: "ci", Roles: []string{"read", "submit", "work", "operate", "admin"}, Namespaces: []string{"*"},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.key = key.Secret
	listener := httptest.NewServer(s.Handler())
	w.url = listener.URL
	t.Cleanup(func() {
		s.Drain()
		listener.Close()
		_ = client.Close(context.WithoutCancel(t.Context()))
	})
	return w
}

func (w *world) ctx() context.Context {
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	w.t.Cleanup(cancel)
	return ctx
}

// ask sends a request and returns the answer. Where it goes is written down by whether the answer may show a token.
func (w *world) ask(to *book, method, path, body string, header ...string) (int, string) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.ctx(), method, w.url+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+w.key)
	r.Header.Set("FlowFabric-Namespace", "default")
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	head := answer.Header.Clone()
	head.Del("Location") // of a decision: the link itself
	fmt.Fprintf(to, "%s %d %v %s\n", method, answer.StatusCode, head, text)
	return answer.StatusCode, string(text)
}

// issue sends a request that shows a token and returns the answer.
func (w *world) issue(method, path, body string, header ...string) string {
	w.t.Helper()
	status, text := w.ask(&w.shown, method, path, body, header...)
	if status >= 300 {
		w.t.Fatalf("%s %s %s: %d %s", method, path, body, status, text)
	}
	return text
}

// field is the first text under a name in an answer.
func field(t *testing.T, answer, name string) string {
	t.Helper()
	found := regexp.MustCompile(`"` + name + `":\s*"([^"]*)"`).FindStringSubmatch(answer)
	if found == nil {
		t.Fatalf("no %s in %s", name, answer)
	}
	return found[1]
}

// claimed submits and claims an execution.
func (w *world) claimed() (path, lease string) {
	w.t.Helper()
	w.ask(&w.said, "POST", "/v1/executions", `{"kind":"asked-over-http","lane":"http"}`)
	_, text := w.ask(&w.said, "POST", "/v1/work/claim", `{"worker_id":"w","worker_instance_id":"w-1","lanes":["http"],"wait_ms":20000}`)
	var answer struct {
		Tasks []struct {
			Lease json.RawMessage `json:"lease"`
		} `json:"tasks"`
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil || len(answer.Tasks) == 0 {
		w.t.Fatalf("no lease in %s: %v", text, err)
	}
	return "/v1/executions/" + url.PathEscape(field(w.t, text, "execution_id")), string(answer.Tasks[0].Lease)
}

// pathOf is the path of an address.
func pathOf(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal("not an address")
	}
	return u.EscapedPath()
}

// dump is every row of every table.
func (w *world) dump() string {
	w.t.Helper()
	driver, source, tables := "pgx", w.address, `select format('%I.%I', table_schema, table_name) from information_schema.tables where table_schema not in ('pg_catalog', 'information_schema')`
	if path, ok := strings.CutPrefix(w.address, "sqlite:"); ok {
		driver, source, tables = "sqlite", path, `select name from sqlite_master where type = 'table'`
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	var all strings.Builder
	for _, table := range w.rows(db, tables) {
		for _, row := range w.rows(db, "select * from "+table) {
			all.WriteString(row + "\n")
		}
	}
	return all.String()
}

// rows runs a query and writes every value of a row as it is.
func (w *world) rows(db *sql.DB, query string) []string {
	w.t.Helper()
	rows, err := db.QueryContext(w.ctx(), query)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		w.t.Fatal(err)
	}
	var all []string
	for rows.Next() {
		values := make([]any, len(columns))
		places := make([]any, len(columns))
		for i := range values {
			places[i] = &values[i]
		}
		if err := rows.Scan(places...); err != nil {
			w.t.Fatal(err)
		}
		var texts []string
		for _, value := range values {
			if raw, ok := value.([]byte); ok {
				value = string(raw)
			}
			texts = append(texts, fmt.Sprint(value))
		}
		all = append(all, strings.Join(texts, " "))
	}
	if err := rows.Err(); err != nil {
		w.t.Fatal(err)
	}
	return all
}

func onStores(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	for name, address := range map[string]func() string{
		"sqlite":   func() string { return "sqlite:" + filepath.Join(t.TempDir(), "app.db") },
		"postgres": func() string { return cluster.Again(t).URL },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newWorld(t, address()))
		})
	}
}
