package tracing

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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
		got, err := in(c.variables).read()
		if err != nil || got.timeout != c.timeout || got.gzip != c.gzip || got.tls != nil {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		headers := map[string][]string(got.headers)
		if len(headers)+len(c.headers) > 0 && !cmp.Equal(headers, c.headers) {
			t.Errorf("%s: %v", name, headers)
		}
	}
}

func TestU216_variables_that_cannot_be_read_are_refused_at_once_and_tell_no_secret(t *testing.T) {
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
		_, err := Start(t.Context(), Config{Endpoint: "https://collector", Lookup: in(c.variables).lookup})
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%v: %v", c.variables, err)
		}
	}
}
