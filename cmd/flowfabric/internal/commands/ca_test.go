package commands

import (
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

func TestU155_a_private_authority_is_named_by_flag_or_variable(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"version":"v1.2.3","items":[]}`)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // the handshakes that this test makes fail
	server.StartTLS()
	defer server.Close()
	path := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{{"info"}, {"api", "GET", "/v1/info"}} { // through the client, and without it
		for name, c := range map[string]struct {
			flags, environ []string
			code           int
			says           string
		}{
			"none":     {code: 7, says: "--ca"},
			"flag":     {flags: []string{"--ca", path}},
			"variable": {environ: []string{"FF_CA=" + path}},
			"empty":    {flags: []string{"--ca", empty}, code: 2, says: "no certificate in PEM form"},
		} {
			var out, errs strings.Builder
			app := &App{Out: &out, Err: &errs, Environ: append(c.environ, "FF_SERVER="+server.URL)}
			code := app.Run(append(append([]string{}, command...), append(c.flags, "--timeout", "1m")...))
			if code != c.code || !strings.Contains(errs.String(), c.says) {
				t.Errorf("%v, %s: exit %d\n%s", command, name, code, errs.String())
			}
		}
	}
}

// A redirect must not carry the key, the namespace or the body to another server.
func TestU155_U130_no_command_follows_a_redirect(t *testing.T) {
	t.Parallel()
	var reached atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer other.Close()
	for _, status := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL+r.URL.Path, status)
		}))
		defer server.Close()
		for _, command := range [][]string{
			{"info"}, {"api", "GET", "/v1/info"}, {"api", "POST", "/v1/executions", `{"kind":"k"}`}, {"submit", "k"}, {"events", "--limit", "1"}, {"openapi"}, {"export"},
		} {
			var out, errs strings.Builder
			app := &App{Out: &out, Err: &errs, Environ: []string{"FF_API_KEY=ffk_secret", "FF_NAMESPACE=red", "FF_SERVER=" + server.URL}}
			if code := app.Run(append(command, "--timeout", "1m")); code == 0 || reached.Load() != 0 {
				t.Errorf("%d %v: exit %d, %d requests arrived elsewhere\n%s%s", status, command, code, reached.Swap(0), out.String(), errs.String())
			}
		}
	}
}
