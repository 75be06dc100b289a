package commands

import (
	"context"
	"encoding/pem"
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/settings"
	"github.com/flowfabric/flowfabric/embedded"
	"github.com/flowfabric/flowfabric/flowfabrichttp"
)

// plainSettings are the settings whose variables the program of a worker may see. One that is in no list here makes the test fail: a developer who
// adds a setting decides whether it holds a secret.
var plainSettings = []string{
	"store-pool", "store-schema", "store-timeout", "unsafe-durability", "migrate", "listen", "public-url", "tls-cert", "tls-key", "tls-client-ca",
	"allow-plaintext", "insecure-open", "trusted-proxies", "cors-origins", "signing-kid", "max-payload", "max-wait", "max-readers",
	"max-readers-per-key", "max-claims", "max-connections-per-address", "queue-limit", "batch-limit", "poll-interval", "lease-ttl", "retention",
	"event-retention", "audit-retention", "key-grace", "drain-timeout", "log-level", "log-format", "otlp-endpoint", "trace-sample",
	"metrics-listen", "metrics-open", "webhook-allow-http", "webhook-allow-cidr", "webhook-ports", "server", "namespace", "ca",
}

// secretSettings are those whose variables it must not see.
var secretSettings = []string{"store", "store-direct-url", "bootstrap-admin-key", "master-key", "signing-secret", "key"}

// secured is an engine on SQLite, the address of its server, and a key for all of it.
func secured(t *testing.T) (client *flowfabric.Client, address, key string) {
	t.Helper()
	client, err := embedded.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "ff.db"), embedded.Config{EngineConfig: flowfabric.EngineConfig{Logger: slog.New(slog.DiscardHandler)}})
	if err != nil {
		t.Fatal(err)
	}
	made, err := client.Admin().APIKeys().Create(t.Context(), api.APIKeySettings{Name: "all", Roles: []string{"admin"}, Namespaces: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	handler, err := flowfabrichttp.New(client, flowfabrichttp.Config{Logger: slog.New(slog.DiscardHandler)})
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
	return client, server.URL, made.Secret
}

// environmentOfProgram runs `work` with an environment and returns the one that its program gets.
func environmentOfProgram(t *testing.T, client *flowfabric.Client, environ []string) string {
	t.Helper()
	submitted, err := client.Submit(t.Context(), flowfabric.Submission{Kind: "x"})
	if err != nil {
		t.Fatal(err)
	}
	var out, errs strings.Builder
	app := &App{In: strings.NewReader(""), Out: &out, Err: &errs, Environ: environ}
	if code := app.Run([]string{"work", "--kind", "x", "--tasks", "1", "--", "env"}); code != 0 {
		t.Fatalf("exit %d\n%s", code, errs.String())
	}
	result, err := client.Wait(t.Context(), submitted.ID)
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Result.Data) == 0 {
		t.Fatalf("no result: %+v\n%s", result, errs.String())
	}
	return string(result.Result.Data)
}

func TestU175_the_program_of_a_worker_sees_no_secret_of_any_setting(t *testing.T) {
	t.Parallel()
	client, address, key := secured(t)
	keyFile := filepath.Join(t.TempDir(), "canary-key")
	if err := os.WriteFile(keyFile, []byte(key), 0o600); err != nil {
		t.Fatal(err)
	}
	given := map[string]string{
		"PATH": os.Getenv("PATH"), "FF_SERVER": address, "FF_API_KEY": key, "FF_API_KEY_FILE": keyFile, tokenVariable: "canary-token",
		"FF_NAMESPACE": "default", "FF_OTLP_ENDPOINT": "https://me:canary@collector.example",
		"FF_PUBLIC_URL": "https://me:canary@ff.example", "SEEN": "yes", "OTEL_EXPORTER_OTLP_HEADERS": "authorization=theirs",
	}
	authority := httptest.NewTLSServer(http.NotFoundHandler())
	authority.Close()
	given["FF_CA"] = filepath.Join(t.TempDir(), "plain-ca")
	if err := os.WriteFile(given["FF_CA"], pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, s := range slices.Concat(settings.Server(), settings.Client()) {
		if slices.Contains(plainSettings, s.Name) == slices.Contains(secretSettings, s.Name) {
			t.Errorf("%s: is its value a secret? Name it in one of the two lists", s.Name)
		}
		name, secret := s.Variable(), slices.Contains(secretSettings, s.Name)
		if _, set := given[name]; !set && secret {
			given[name] = "canary-" + s.Name
		} else if !set {
			given[name] = "plain-" + s.Name
		}
		if _, set := given[name+"_FILE"]; !set && secret {
			given[name+"_FILE"] = "/canary/" + s.Name
		}
	}
	var environ []string
	for name, value := range given {
		environ = append(environ, name+"="+value)
	}
	got := environmentOfProgram(t, client, environ)
	for line := range strings.Lines(got) {
		if strings.Contains(line, "canary") || strings.Contains(line, key) {
			t.Errorf("the program sees %s", line)
		}
	}
	for _, want := range []string{
		"SEEN=yes\n", "OTEL_EXPORTER_OTLP_HEADERS=authorization=theirs\n", "FF_SERVER=" + address + "\n", "FF_NAMESPACE=default\n", "FF_LEASE=", "FF_LOG_LEVEL=plain-log-level\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the program does not see %q:\n%s", want, got)
		}
	}
}

// Variables that commands read themselves are in no table. The test finds them in the source, so that one more is classed here.
func TestU175_every_variable_that_a_command_reads_is_known_as_secret_or_not(t *testing.T) {
	t.Parallel()
	known := map[string]bool{"COLUMNS": false, "NO_COLOR": false, "tokenVariable": true, "scenario.KeyVariable": true} // true: a secret
	values := map[string]string{"tokenVariable": tokenVariable, "scenario.KeyVariable": "FF_API_KEY"}
	for expression, secret := range known {
		if name := values[expression]; secret && !confidential(name+"=x") {
			t.Errorf("the program of a worker sees %s", name)
		}
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if variable, ok := lookedUp(n); ok {
				read++
				if _, classed := known[variable]; !classed {
					t.Errorf("%s reads the variable %s: is it a secret?", name, variable)
				}
			}
			return true
		})
	}
	if read < len(known) {
		t.Errorf("%d variables are read, %d are known: the test looks in the wrong place", read, len(known))
	}
}

// lookedUp is the variable that a call of lookup reads, as the source writes it.
func lookedUp(n ast.Node) (string, bool) {
	call, ok := n.(*ast.CallExpr)
	if !ok || len(call.Args) != 1 {
		return "", false
	}
	if f, ok := call.Fun.(*ast.SelectorExpr); !ok || f.Sel.Name != "lookup" {
		return "", false
	}
	switch arg := call.Args[0].(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(arg.Value)
		return text, err == nil
	case *ast.Ident:
		return arg.Name, true
	case *ast.SelectorExpr:
		if of, ok := arg.X.(*ast.Ident); ok {
			return of.Name + "." + arg.Sel.Name, true
		}
	}
	return "an expression", true
}
