package flowfabrichttp_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/flowfabric/flowfabric/ops"

	"go.uber.org/goleak"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/embedded"
	"github.com/flowfabric/flowfabric/flowfabrichttp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// mount is the prefix below which these tests mount the server.
const mount = "/flowfabric"

// program is a program with a mounted server.
type program struct {
	*flowfabric.Client
	handler http.Handler
	http    *httptest.Server
}

// start mounts a server on a new store.
func start(t *testing.T, cfg flowfabrichttp.Config) *program {
	t.Helper()
	client, err := embedded.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "app.db"))
	if err != nil {
		t.Fatal(err)
	}
	cfg.Logger = slog.New(slog.DiscardHandler)
	handler, err := flowfabrichttp.New(client, cfg)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(mount+"/", http.StripPrefix(mount, handler))
	p := &program{client, mux, httptest.NewServer(mux)}
	t.Cleanup(func() {
		p.http.Client().CloseIdleConnections()
		p.http.Close()
		if err := client.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return p
}

// reply is an answer as far as these tests look at it.
type reply struct {
	status   int
	location string
	kind     string // of a problem
	code     string
	body     string
}

// send makes a request over the network.
func (p *program) send(t *testing.T, method, path, body string, header map[string]string) reply {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, p.http.URL+mount+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for name, value := range header {
		r.Header.Set(name, value)
	}
	answer, err := p.http.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	return read(t, answer)
}

func read(t *testing.T, answer *http.Response) reply {
	t.Helper()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	var problem struct{ Type, Code string }
	_ = json.Unmarshal(text, &problem) // pages are no JSON
	return reply{answer.StatusCode, answer.Header.Get("Location"), problem.Type, problem.Code, string(text)}
}

// wants fails the test on another answer.
func (r reply) wants(t *testing.T, status int, code string) reply {
	t.Helper()
	if r.status != status || r.code != code {
		t.Errorf("%d %q, want %d %q: %s", r.status, r.code, status, code, r.body)
	}
	return r
}

// byName is a login: the header X-User says who calls.
func byName(r *http.Request) (*flowfabrichttp.Principal, error) {
	switch user := r.Header.Get("X-User"); user {
	case "":
		return nil, nil
	case "olga":
		return &flowfabrichttp.Principal{Name: user, Namespaces: []string{"*"}, Roles: []string{"operate", "admin"}}, nil
	case "carl":
		return &flowfabrichttp.Principal{Name: user, Namespaces: []string{"shop"}, Roles: []string{"submit"}}, nil
	case "missing":
		return &flowfabrichttp.Principal{Name: user, Namespaces: []string{"shop"}, Roles: []string{"king"}}, nil
	case "late":
		return nil, &flowfabric.Error{Code: "api_key_expired", Class: "unauthenticated", Message: "the session is over"}
	default:
		return nil, errors.New("a secret of the login")
	}
}

func as(user string) map[string]string { return map[string]string{"X-User": user} }

func TestU147_an_own_login_stands_in_place_of_api_keys(t *testing.T) {
	t.Parallel()
	p := start(t, flowfabrichttp.Config{Authenticate: byName})
	p.send(t, "GET", "/v1/lanes", "", nil).wants(t, 401, "missing_credentials")
	p.send(t, "GET", "/v1/lanes", "", as("late")).wants(t, 401, "api_key_expired")
	if wrong := p.send(t, "GET", "/v1/lanes", "", as("mallory")).wants(t, 401, "invalid_credentials"); strings.Contains(wrong.body, "secret") {
		t.Errorf("the error of the login is shown: %s", wrong.body)
	}
	p.send(t, "GET", "/v1/whoami", "", as("missing")).wants(t, 500, "internal")
	p.send(t, "GET", "/healthz", "", nil).wants(t, 200, "")
	p.send(t, "GET", "/healthz", "", as("mallory")).wants(t, 200, "")
	if who := p.send(t, "GET", "/v1/whoami", "", as("carl")).wants(t, 200, ""); !strings.Contains(who.body, `"principal":"carl"`) || !strings.Contains(who.body, `"namespaces":["shop"]`) {
		t.Errorf("%s", who.body)
	}
	key, err := p.Admin().APIKeys().Create(t.Context(), api.APIKeySettings{Name: "k", Roles: []string{"admin"}, Namespaces: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	p.send(t, "GET", "/v1/lanes", "", map[string]string{"Authorization": "Bearer " + key.Secret}).wants(t, 401, "missing_credentials")
}

func TestU147_roles_namespaces_and_the_audit_log_hold_for_a_login(t *testing.T) {
	t.Parallel()
	p := start(t, flowfabrichttp.Config{Authenticate: byName})
	made := p.send(t, "POST", "/v1/executions", `{"kind":"job"}`, as("carl")).wants(t, 201, "")
	id := made.location[strings.LastIndex(made.location, "/")+1:]
	p.send(t, "GET", "/v1/executions", "", as("carl")).wants(t, 403, "role_required")
	p.send(t, "POST", "/v1/executions/"+id+"/hold", "{}", as("carl")).wants(t, 403, "role_required")
	elsewhere := as("carl")
	elsewhere["FlowFabric-Namespace"] = "other"
	p.send(t, "POST", "/v1/executions", `{"kind":"job"}`, elsewhere).wants(t, 403, "namespace_forbidden")
	p.send(t, "POST", "/v1/executions/"+id+"/hold", "{}", as("olga")).wants(t, 200, "")

	var told []string
	for row, err := range p.Admin().Audit(t.Context(), ops.AuditFilter{Namespace: "shop"}) {
		if err != nil {
			t.Fatal(err)
		}
		told = append(told, row.Principal+" "+row.Outcome)
	}
	for _, want := range []string{"olga done", "carl role_required"} {
		if !slices.Contains(told, want) {
			t.Errorf("%q is not in the audit log: %q", want, told)
		}
	}
}

func TestU147_a_page_of_another_origin_changes_nothing_under_a_login(t *testing.T) {
	t.Parallel()
	p := start(t, flowfabrichttp.Config{Authenticate: byName, CORSOrigins: []string{"https://friend.example.com"}})
	from := func(origin string) map[string]string {
		return map[string]string{"X-User": "carl", "Origin": origin, "Sec-Fetch-Site": "cross-site"}
	}
	p.send(t, "POST", "/v1/executions", `{"kind":"job"}`, from("https://evil.example.com")).wants(t, 403, "origin_forbidden")
	p.send(t, "POST", "/v1/executions", `{"kind":"job"}`, from("https://friend.example.com")).wants(t, 201, "")
	p.send(t, "POST", "/v1/executions", `{"kind":"job"}`, map[string]string{"X-User": "carl", "Origin": p.http.URL}).wants(t, 201, "")
}

func TestU147_without_a_login_api_keys_are_asked_for(t *testing.T) {
	t.Parallel()
	p := start(t, flowfabrichttp.Config{})
	p.send(t, "GET", "/v1/lanes", "", as("olga")).wants(t, 401, "missing_credentials")
	key, err := p.Admin().APIKeys().Create(t.Context(), api.APIKeySettings{Name: "r", Roles: []string{"read"}, Namespaces: []string{"default"}})
	if err != nil {
		t.Fatal(err)
	}
	bearer := map[string]string{"Authorization": "Bearer " + key.Secret}
	p.send(t, "GET", "/v1/lanes", "", bearer).wants(t, 200, "")
	p.send(t, "POST", "/v1/executions", `{"kind":"job"}`, bearer).wants(t, 403, "role_required")
}

func TestU123_open_mode_answers_on_loopback_alone(t *testing.T) {
	t.Parallel()
	p := start(t, flowfabrichttp.Config{Open: true})
	p.send(t, "POST", "/v1/executions", `{"kind":"job"}`, nil).wants(t, 201, "")
	p.send(t, "GET", "/v1/lanes", "", map[string]string{"Origin": "https://evil.example.com"}).wants(t, 403, "origin_forbidden")
	over := func(local net.Addr) reply {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost"+mount+"/v1/lanes", nil)
		if local != nil {
			r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, local))
		}
		w := httptest.NewRecorder()
		p.handler.ServeHTTP(w, r)
		return read(t, w.Result())
	}
	over(&net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 80}).wants(t, 403, "origin_forbidden")
	over(nil).wants(t, 403, "origin_forbidden")
	over(&net.TCPAddr{IP: net.IPv6loopback, Port: 80}).wants(t, 200, "")
	over(&net.UnixAddr{Name: "sock", Net: "unix"}).wants(t, 200, "")
}

func TestU147_below_a_prefix_every_address_has_the_prefix(t *testing.T) {
	t.Parallel()
	p := start(t, flowfabrichttp.Config{Open: true})
	made := p.send(t, "POST", "/v1/executions", `{"kind":"job"}`, nil).wants(t, 201, "")
	if !strings.HasPrefix(made.location, mount+"/v1/executions/") {
		t.Errorf("Location %s", made.location)
	}
	if none := p.send(t, "GET", "/v1/lanes/none", "", nil).wants(t, 404, "lane_not_found"); none.kind != mount+"/problems/lane_not_found" {
		t.Errorf("type %s", none.kind)
	}
	for page, link := range map[string]string{"/docs": mount + "/openapi.json", "/problems/internal": mount + "/docs"} {
		if text := p.send(t, "GET", page, "", nil).wants(t, 200, "").body; !strings.Contains(text, `href="`+link+`"`) {
			t.Errorf("%s has no link to %s", page, link)
		}
	}
	remote, err := flowfabric.Connect(p.http.URL + mount)
	if err != nil {
		t.Fatal(err)
	}
	defer remote.Close(t.Context())
	if count, err := remote.Executions().Count(t.Context(), ops.Filter{}); err != nil || count.Total != 1 {
		t.Errorf("%+v, %v", count, err)
	}
}

func TestU120_a_stream_ends_with_the_login_that_opened_it(t *testing.T) {
	t.Parallel()
	var over atomic.Bool
	p := start(t, flowfabrichttp.Config{Authenticate: func(*http.Request) (*flowfabrichttp.Principal, error) {
		if over.Load() {
			return nil, nil
		}
		return &flowfabrichttp.Principal{Name: "ann", Namespaces: []string{"default"}, Roles: []string{"read"}}, nil
	}})
	stream := p.follow(t)
	defer stream.Close()
	over.Store(true)
	if _, err := io.ReadAll(stream); err != nil {
		t.Error(err)
	}
}

// follow opens a stream of events. It answers when the stream has begun.
func (p *program) follow(t *testing.T) io.ReadCloser {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.http.URL+mount+"/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	stream, err := p.http.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if stream.StatusCode != http.StatusOK {
		t.Fatal(stream.Status)
	}
	return stream.Body
}

func TestU147_streams_end_when_the_host_shuts_down(t *testing.T) {
	t.Parallel()
	p := start(t, flowfabrichttp.Config{Open: true})
	stream := p.follow(t)
	defer stream.Close()
	down := make(chan error, 1)
	go func() { down <- p.http.Config.Shutdown(t.Context()) }()
	if _, err := io.ReadAll(stream); err != nil {
		t.Error(err)
	}
	if err := <-down; err != nil {
		t.Error(err)
	}
}

func TestU147_what_cannot_work_is_refused_at_once(t *testing.T) {
	t.Parallel()
	remote, err := flowfabric.Connect("http://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	defer remote.Close(t.Context())
	if _, err := flowfabrichttp.New(remote, flowfabrichttp.Config{}); err == nil {
		t.Error("a client of a server is mounted")
	}
	p := start(t, flowfabrichttp.Config{})
	_, err = flowfabrichttp.New(p.Client, flowfabrichttp.Config{Open: true, Authenticate: byName, PublicURL: "nowhere", CORSOrigins: []string{"*"}})
	for _, part := range []string{"Open", "PublicURL", "CORSOrigins"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not told: %v", part, err)
		}
	}
}

func TestU147_a_browser_that_opens_the_mounted_server_sees_a_page(t *testing.T) {
	t.Parallel()
	p := start(t, flowfabrichttp.Config{Open: true})
	if page := p.send(t, "GET", "/", "", map[string]string{"Accept": "text/html"}); page.status != 200 || !strings.Contains(page.body, "<html") {
		t.Errorf("%d %.200s", page.status, page.body)
	}
}
