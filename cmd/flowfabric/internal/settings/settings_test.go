package settings

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/pagetest"
)

var update = flag.Bool("update", false, "write the page")

func TestU179_the_page_is_the_table(t *testing.T) {
	t.Parallel()
	pagetest.Same(t, "../../../../docs/configuration.md", Page(), *update)
}

func TestEvery_default_passes_its_own_check(t *testing.T) {
	t.Parallel()
	for _, dev := range []bool{false, true} {
		if _, problems := Load(Server(), Sources{Dev: dev}); len(problems) > 0 {
			t.Error(problems)
		}
	}
	if _, problems := Load(Client(), Sources{}); len(problems) > 0 {
		t.Error(problems)
	}
}

func TestU179_later_sources_win(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ff.env")
	write(t, path, "# a comment\n\nFF_MAX_WAIT=10s\nFF_LOG_LEVEL=warn\nFF_QUEUE_LIMIT=7\n")
	values, problems := Load(Server(), Sources{
		File: path, Environ: []string{"FF_LOG_LEVEL=error", "FF_QUEUE_LIMIT=8", "HOME=x", "FF_EXECUTION_ID=x"}, Flags: map[string]string{"queue-limit": "9"},
	})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if got := Get[time.Duration](values, "max-wait"); got != 10*time.Second {
		t.Error("the file does not win over the default:", got)
	}
	if got := Get[string](values, "log-level"); got != "error" {
		t.Error("the environment does not win over the file:", got)
	}
	if got := Get[int](values, "queue-limit"); got != 9 {
		t.Error("the flag does not win over the environment:", got)
	}
	if got := Get[int](values, "max-payload"); got != 4<<20 {
		t.Error("the default is not there:", got)
	}
	sources := map[string]string{}
	for _, row := range values.Rows() {
		sources[row.Name] = row.Source
	}
	for name, want := range map[string]string{"FF_MAX_WAIT": FromFile, "FF_LOG_LEVEL": FromEnvironment, "FF_QUEUE_LIMIT": FromFlag, "FF_LISTEN": FromDefault} {
		if sources[name] != want {
			t.Errorf("%s is from %s, want %s", name, sources[name], want)
		}
	}
}

func TestU180_every_problem_is_told_at_once(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ff.env")
	write(t, path, "FF_MAX_WAITT=10s\nnonsense\nFF_SECRET_THING=hush\n")
	_, problems := Load(Server(), Sources{
		File: path, Environ: []string{"FF_LISTEN=nowhere", "FF_MAX_PAYLOAD=1B", "FF_STORE=mysql:x"},
		Flags: map[string]string{"lease-ttl": "1ms", "cors-origins": "*", "retention": "done=1h"},
	})
	var lines []string
	for _, p := range problems {
		lines = append(lines, p.String())
	}
	all := strings.Join(lines, "\n")
	for _, want := range []string{
		"FF_MAX_WAITT (from file): unknown setting; did you mean FF_MAX_WAIT?", `"nonsense" is not FF_NAME=value`,
		"FF_LISTEN=nowhere (from environment): not HOST:PORT", "FF_MAX_PAYLOAD=1B (from environment): 1 bytes", "FF_STORE=mysql:x (from environment): unknown store",
		"FF_SECRET_THING (from file)", "FF_LEASE_TTL=1ms (from flag): not between 500ms and 24h", "FF_CORS_ORIGINS=* (from flag)", "FF_RETENTION=done=1h",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("not told: %s\nin\n%s", want, all)
		}
	}
	if strings.Contains(all, "hush") {
		t.Error("the value of an unknown name is shown, and may be a secret")
	}
}

func TestU179_names_of_others_in_the_environment_are_ignored_and_in_the_file_refused(t *testing.T) {
	t.Parallel()
	// What Kubernetes sets beside a service called ff, what an example reads, and what a person misspells.
	lines := []string{"FF_PORT=tcp://10.0.0.1:7433", "FF_SERVICE_HOST=10.0.0.1", "FF_MODEL_URL=http://model", "FF_KEY=hush", "FF_LISSTEN=x"}
	for _, table := range [][]Setting{Server(), Client()} {
		values, problems := Load(table, Sources{Environ: append(lines, "FF_API_KEY=ffk_x")})
		if len(problems) > 0 {
			t.Errorf("problems: %v", problems)
		}
		var all string
		for _, p := range values.Ignored() {
			all += p.String() + "\n"
		}
		if strings.Contains(all, "hush") || strings.Contains(all, "FF_MODEL_URL (") || len(values.Ignored()) != 4 {
			t.Errorf("ignored:\n%s", all)
		}
		for _, want := range []string{"FF_PORT (from environment): unknown setting; Kubernetes sets it for a Service named ff, unless", "FF_KEY (from environment): unknown setting; did you mean FF_API_KEY?", "did you mean FF_LISTEN?"} {
			if !strings.Contains(all, want) {
				t.Errorf("not told: %s\nin\n%s", want, all)
			}
		}
		path := filepath.Join(t.TempDir(), "ff.env")
		write(t, path, strings.Join(lines, "\n"))
		if values, problems := Load(table, Sources{File: path}); len(problems) != 4 || len(values.Ignored()) > 0 {
			t.Errorf("in the file: %v, ignored %v", problems, values.Ignored())
		}
	}
}

func TestU179_secrets_come_from_files_and_are_never_shown(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "key")
	write(t, path, "ffk_secret\n")
	for _, from := range []Sources{{Environ: []string{"FF_API_KEY_FILE=" + path}}, {Flags: map[string]string{"key-file": path}}} {
		values, problems := Load(Client(), from)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		if got := Get[string](values, "key"); got != "ffk_secret" {
			t.Errorf("%q", got)
		}
		for _, row := range values.Rows() {
			if strings.Contains(row.Value, "ffk_") {
				t.Error("the secret is shown")
			}
		}
	}
	values, _ := Load(Server(), Sources{Environ: []string{"FF_STORE=postgres://me:hush@db/x"}})
	for _, row := range values.Rows() {
		if strings.Contains(row.Value, "hush") {
			t.Error("the password of the store is shown")
		}
	}
}

func TestValues_are_read_in_their_units(t *testing.T) {
	t.Parallel()
	values, problems := Load(Server(), Sources{Flags: map[string]string{
		"max-payload": "1MiB", "retention": "failed=-1,succeeded=1h", "event-retention": "-1", "trusted-proxies": "10.0.0.0/8, ::1/128",
		"cors-origins": "https://a.example,https://b.example:8443", "insecure-open": "true", "public-url": "https://ff.example/base/",
	}})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	kept := Get[map[string]time.Duration](values, "retention")
	if Get[int](values, "max-payload") != 1<<20 || kept["failed"] != -1 || kept["succeeded"] != time.Hour || Get[time.Duration](values, "event-retention") != -1 ||
		!Get[bool](values, "insecure-open") || Get[string](values, "public-url") != "https://ff.example/base" || len(Get[[]string](values, "cors-origins")) != 2 {
		t.Error(values.Rows())
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestU196_the_collector_may_be_named_by_the_variable_of_OpenTelemetry(t *testing.T) {
	t.Parallel()
	const theirs, ours = "OTEL_EXPORTER_OTLP_ENDPOINT=http://theirs:4318", "FF_OTLP_ENDPOINT=http://ours:4318"
	path := filepath.Join(t.TempDir(), "ff.env")
	write(t, path, "FF_OTLP_ENDPOINT=http://file:4318\n")
	for name, c := range map[string]struct {
		from Sources
		want string
	}{
		"nothing":                       {Sources{}, ""},
		"theirs":                        {Sources{Environ: []string{theirs}}, "http://theirs:4318"},
		"theirs is of the environment":  {Sources{File: path, Environ: []string{theirs}}, "http://theirs:4318"},
		"ours wins":                     {Sources{Environ: []string{ours, theirs}}, "http://ours:4318"},
		"a flag wins":                   {Sources{Environ: []string{theirs}, Flags: map[string]string{"otlp-endpoint": "http://flag"}}, "http://flag"},
		"an empty one counts as absent": {Sources{Environ: []string{"OTEL_EXPORTER_OTLP_ENDPOINT="}}, ""},
	} {
		values, problems := Load(Server(), c.from)
		if got := Get[string](values, "otlp-endpoint"); got != c.want || len(problems) > 0 {
			t.Errorf("%s: %q %v", name, got, problems)
		}
	}
	values, problems := Load(Server(), Sources{File: path, Environ: []string{"OTEL_EXPORTER_OTLP_ENDPOINT=nowhere", "FF_TRACE_SAMPLE=NaN"}})
	if got := Get[string](values, "otlp-endpoint"); got != "http://file:4318" || len(problems) != 1 || len(values.Ignored()) != 1 ||
		values.Ignored()[0].String() != "OTEL_EXPORTER_OTLP_ENDPOINT=nowhere (from environment): not an http:// or https:// URL" {
		t.Errorf("%q, problems %v, ignored %v", got, problems, values.Ignored())
	}
}

func TestU179_a_name_is_suggested_only_if_it_is_near(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"FF_LOG=x": "did you mean FF_LOG_LEVEL?", "FF_LISSTEN=x": "did you mean FF_LISTEN?", "FF_KEY=x": "did you mean FF_API_KEY?", "FF_URL=x": "unknown setting",
	} {
		values, _ := Load(Server(), Sources{Environ: []string{line}})
		if ignored := values.Ignored(); len(ignored) != 1 || !strings.HasSuffix(ignored[0].Detail, want) {
			t.Errorf("%s: ignored %v, want %s", line, ignored, want)
		}
	}
}

func TestU179_an_unknown_name_of_kubernetes_is_told_as_one(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"FF_PORT=tcp://10.0.0.1:80":             "Service named ff,",
		"FF_PORT_80_TCP=tcp://10.0.0.1:80":      "Service named ff,",
		"FF_SERVICE_PORT_HTTP=80":               "Service named ff,",
		"FF_WEB_UI_SERVICE_HOST=10.0.0.1":       "Service named ff-web-ui,",
		"FF_UI_PORT_7433_UDP_PROTO=udp":         "Service named ff-ui,",
		"FF_PORT=7433":                          "did you mean FF_LISTEN?",
		"FF_LISSTEN=tcp://10.0.0.1:80":          "did you mean FF_LISTEN?",
		"FF_NOTHING_THAT_IS_NEAR_ANYTHING=PORT": "unknown setting",
	} {
		values, problems := Load(Server(), Sources{Environ: []string{line}})
		if ignored := values.Ignored(); len(problems) > 0 || len(ignored) != 1 || !strings.Contains(ignored[0].Detail, want) {
			t.Errorf("%s: %v, ignored %v, want %s", line, problems, ignored, want)
		}
	}
}
