package tracing

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// in is an environment of some variables, without the words that all of them begin with.
func in(variables map[string]string) *environment {
	return &environment{lookup: func(name string) string {
		short, ours := strings.CutPrefix(name, "OTEL_EXPORTER_OTLP_")
		if !ours {
			return ""
		}
		return variables[short]
	}}
}

func TestU216_the_variables_of_OpenTelemetry_say_how_spans_are_sent(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		variables map[string]string
		headers   map[string][]string
		timeout   time.Duration
		gzip      bool
	}{
		"nothing":  {nil, nil, 10 * time.Second, false},
		"of all":   {map[string]string{"HEADERS": "a=b", "TIMEOUT": "1500", "COMPRESSION": "gzip"}, map[string][]string{"A": {"b"}}, 1500 * time.Millisecond, true},
		"of blank": {map[string]string{"HEADERS": " ", "TIMEOUT": "", "COMPRESSION": " "}, nil, 10 * time.Second, false},
		"those of traces win": {
			map[string]string{"HEADERS": "a=b", "TIMEOUT": "soon", "COMPRESSION": "gzip", "TRACES_HEADERS": "c=d", "TRACES_TIMEOUT": "0", "TRACES_COMPRESSION": "none"},
			map[string][]string{"C": {"d"}},
			0, false,
		},
		"headers": {
			map[string]string{"HEADERS": " Authorization = Bearer%20a%2Cb== , x-tenant=é,empty=,x-tenant=last,"},
			map[string][]string{"Authorization": {"Bearer a,b=="}, "X-Tenant": {"last"}, "Empty": {""}},
			10 * time.Second, false,
		},
	}
	for name, c := range cases {
		environment := in(c.variables)
		got := environment.read()
		if len(environment.problems) > 0 || got.timeout != c.timeout || got.gzip != c.gzip || got.tls != nil {
			t.Errorf("%s: %+v, %v", name, got, environment.problems)
		}
		headers := map[string][]string(got.headers)
		if len(headers)+len(c.headers) > 0 && !cmp.Equal(headers, c.headers) {
			t.Errorf("%s: %v", name, headers)
		}
	}
}

func TestU216_variables_that_cannot_be_read_are_warnings_and_tell_no_secret(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	empty, missing := filepath.Join(dir, "empty.pem"), filepath.Join(dir, "missing.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		variables map[string]string
		want      string
	}{
		{map[string]string{"TIMEOUT": "10s"}, `OTEL_EXPORTER_OTLP_TIMEOUT: "10s" is not a number of milliseconds`},
		{map[string]string{"TRACES_TIMEOUT": "-1"}, `OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: "-1" is not a number of milliseconds`},
		{map[string]string{"COMPRESSION": "zstd"}, `OTEL_EXPORTER_OTLP_COMPRESSION: "zstd" is neither gzip nor none`},
		{map[string]string{"HEADERS": "secret"}, `OTEL_EXPORTER_OTLP_HEADERS: a header is not NAME=VALUE`},
		{map[string]string{"HEADERS": "=secret"}, `OTEL_EXPORTER_OTLP_HEADERS: "" is not a name of a header`},
		{map[string]string{"HEADERS": "a b=secret"}, `OTEL_EXPORTER_OTLP_HEADERS: "a b" is not a name of a header`},
		{map[string]string{"HEADERS": "a=secret%zz"}, `OTEL_EXPORTER_OTLP_HEADERS: the value of a is not one of a header`},
		{map[string]string{"TRACES_HEADERS": "a=secret%0Ab"}, `OTEL_EXPORTER_OTLP_TRACES_HEADERS: the value of a is not one of a header`},
		{map[string]string{"HEADERS": "a=secret%7F"}, `OTEL_EXPORTER_OTLP_HEADERS: the value of a is not one of a header`},
		{map[string]string{"CERTIFICATE": missing}, "OTEL_EXPORTER_OTLP_CERTIFICATE: open " + missing},
		{map[string]string{"TRACES_CERTIFICATE": empty}, "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE: " + empty + " has no certificate"},
		{map[string]string{"CLIENT_CERTIFICATE": empty}, "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE: its key is missing; give OTEL_EXPORTER_OTLP_CLIENT_KEY"},
		{map[string]string{"CLIENT_KEY": empty}, "OTEL_EXPORTER_OTLP_CLIENT_KEY: its certificate is missing; give OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE"},
		{
			map[string]string{"TRACES_CLIENT_KEY": empty, "CLIENT_CERTIFICATE": empty, "CLIENT_KEY": empty},
			"OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY: its certificate is missing; give OTEL_EXPORTER_OTLP_TRACES_CLIENT_CERTIFICATE",
		},
		{map[string]string{"CLIENT_CERTIFICATE": empty, "CLIENT_KEY": empty}, "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE: tls: failed"},
		{
			map[string]string{"TIMEOUT": "x", "COMPRESSION": "y"},
			`OTEL_EXPORTER_OTLP_TIMEOUT: "x" is not a number of milliseconds; OTEL_EXPORTER_OTLP_COMPRESSION: "y" is neither gzip nor none`,
		},
	}
	for _, c := range cases {
		var log bytes.Buffer
		e, err := Start(t.Context(), Config{Endpoint: "https://collector", Lookup: in(c.variables).lookup, Log: slog.New(slog.NewJSONHandler(&log, nil))})
		if err != nil {
			t.Errorf("%v: %v", c.variables, err)
			continue
		}
		var problems []string
		for line := range strings.Lines(log.String()) {
			var said struct{ Problem string }
			if err := json.Unmarshal([]byte(line), &said); err != nil {
				t.Fatal(err)
			}
			if said.Problem != "" {
				problems = append(problems, said.Problem)
			}
		}
		if said := strings.Join(problems, "; "); !strings.HasPrefix(said, c.want) || strings.Contains(log.String(), "secret") {
			t.Errorf("%v: %s", c.variables, log.String())
		}
		protects := strings.Contains(c.want, "CERTIFICATE") || strings.Contains(c.want, "KEY")
		if protects != (e == nil) {
			t.Errorf("%v: spans are sent: %t", c.variables, e != nil)
		}
		if e != nil {
			if err := e.Stop(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestU216_batches_are_as_their_variables_say_where_those_can_be_read(t *testing.T) {
	t.Parallel()
	variables := []string{"OTEL_BSP_MAX_QUEUE_SIZE", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "OTEL_BSP_SCHEDULE_DELAY", "OTEL_BSP_EXPORT_TIMEOUT"}
	batching := func(value string) (o sdktrace.BatchSpanProcessorOptions, problems []string) {
		e := &environment{lookup: func(name string) string {
			if slices.Contains(variables, name) {
				return value
			}
			return ""
		}}
		for _, apply := range e.read().batches {
			apply(&o)
		}
		return o, e.problems
	}
	want := sdktrace.BatchSpanProcessorOptions{MaxQueueSize: 7, MaxExportBatchSize: 7, BatchTimeout: 7 * time.Millisecond, ExportTimeout: 7 * time.Millisecond}
	if got, problems := batching("7"); got != want || len(problems) > 0 {
		t.Errorf("%+v, %v", got, problems)
	}
	want = sdktrace.BatchSpanProcessorOptions{MaxQueueSize: 2048, MaxExportBatchSize: 512, BatchTimeout: 5 * time.Second, ExportTimeout: 30 * time.Second}
	for _, value := range []string{"-1", "0", "many", "99999999999999999999", "1048577"} {
		got, problems := batching(value)
		if got != want || len(problems) != len(variables) {
			t.Errorf("%s: %+v, %v", value, got, problems)
		}
	}
}
