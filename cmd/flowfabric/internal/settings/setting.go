// Package settings is the table of all settings, and reads them from defaults, file, environment and flags. It does not know what
// the settings do.
package settings

import (
	"slices"
	"strings"
	"time"
)

// Setting is one row of the table.
type Setting struct {
	Name    string // of the flag, without dashes
	Var     string // of the variable, without FF_; "": by the name
	Rule    string // the rule of the specification that states it
	Default string // as text; "": none
	Dev     string // default of `dev` if different
	Shown   string // default as shown in the page, if the text is not enough
	Meaning string
	Also    string // variable of another program, used if ours is not set
	Secret  bool   // shown as "set"; can be read from a file
	InFile  bool   // can be read from a file, although it is shown: it may contain a password
	First   bool   // it is shown in the help of the commands that start a server
	NoFlag  bool   // a command line can be read by every process of the machine

	parse func(text string) (any, error)
}

// Variable is the name of the environment variable: FF_MAX_WAIT for max-wait.
func (s Setting) Variable() string {
	if s.Var != "" {
		return "FF_" + s.Var
	}
	return "FF_" + strings.ToUpper(strings.ReplaceAll(s.Name, "-", "_"))
}

// MayBeInFile reports whether NAME_FILE, and the flag name-file, can name a file that contains the value.
func (s Setting) MayBeInFile() bool { return s.Secret || s.InFile }

// IsSwitch reports whether the flag needs no value.
func (s Setting) IsSwitch() bool {
	v, err := s.parse("true")
	_, is := v.(bool)
	return is && err == nil
}

// Type is the type of the flag for people: bool, int, duration, size, or string.
func (s Setting) Type() string {
	if s.IsSwitch() {
		return "bool"
	}
	for _, sample := range []struct{ text, name string }{{s.Default, ""}, {"100", "int"}, {"30s", "duration"}, {"168h", "duration"}, {"1MiB", "size"}} {
		v, err := s.parse(sample.text)
		if err != nil {
			continue
		}
		switch v.(type) {
		case time.Duration:
			return "duration"
		case int:
			if _, err := s.parse("1MiB"); err == nil {
				return "size"
			}
			return "int"
		case float64:
			return "number"
		default:
			return "string"
		}
	}
	return "string"
}

// Server are the settings of `serve` and `dev`.
func Server() []Setting { return serverTable }

// Client are the settings of the commands that act on a server.
func Client() []Setting { return clientTable }

var serverTable = []Setting{
	{Name: "store", First: true, Rule: "U181", Dev: "sqlite:.flowfabric/dev.db", Meaning: "`sqlite:PATH` or `postgres://…`; use the variable or a file if it contains a password", InFile: true, parse: storeURL},
	{Name: "store-schema", Rule: "U181", Default: "flowfabric", Meaning: "schema of the Postgres database for all tables; it is created if it does not exist", parse: schemaName},
	{Name: "store-direct-url", Rule: "U182", Shown: "the store", Meaning: "direct connection for notifications, if the store is reached through a transaction pooler", InFile: true, parse: postgresURL},
	{Name: "store-pool", Rule: "U183", Default: "16", Meaning: "maximum connections to Postgres", parse: count(1, 1000)},
	{Name: "store-timeout", Rule: "U183", Default: "30s", Meaning: "how long to wait for the store, at start and in every call", parse: span("1s", "10m")},
	{Name: "unsafe-durability", Rule: "U181", Default: "false", Meaning: "accept a database that may lose acknowledged commits on power failure", parse: toggle},
	{Name: "migrate", Rule: "U184", Default: "auto", Meaning: "an older schema: `auto` migrates it, `check` refuses it, `off` accepts it", parse: choice("auto", "check", "off")},
	{Name: "listen", First: true, Rule: "U185", Default: "127.0.0.1:7433", Meaning: "address of the server; port 0 uses a free one", parse: address},
	{Name: "public-url", First: true, Rule: "U185", Shown: "from listen", Meaning: "base URL of links: absolute, without query", parse: publicURL},
	{Name: "tls-cert", First: true, Rule: "U186", Meaning: "file with the certificate, reloaded when it changes", parse: file},
	{Name: "tls-key", First: true, Rule: "U186", Meaning: "file with the private key of the certificate", parse: file},
	{Name: "tls-client-ca", Rule: "U126", Meaning: "file with the CAs of client certificates, which are then required in addition to keys", parse: file},
	{Name: "allow-plaintext", First: true, Rule: "U124", Default: "false", Meaning: "allow listeners for other hosts without TLS, if a proxy terminates TLS", parse: toggle},
	{Name: "insecure-open", Rule: "U124", Default: "false", Meaning: "serve without an admin key: until one exists, every caller may do everything", parse: toggle},
	{Name: "trusted-proxies", Rule: "U129", Meaning: "networks (CIDR, comma-separated) whose X-Forwarded-For is trusted", parse: networks},
	{Name: "cors-origins", Rule: "U127", Meaning: "origins (comma-separated) whose pages may call the API; `*` is refused", parse: origins},
	{
		Name: "bootstrap-admin-key", Rule: "U125", Meaning: "a complete key, `ffk_…`, installed at start with the role admin unless it exists", Secret: true, NoFlag: true, parse: text,
	},
	{Name: "master-key", First: true, Rule: "U187", Meaning: "encrypts the secrets in the store: 32 bytes as hexadecimal digits or base64; better in a file", Secret: true, parse: masterKey},
	{Name: "signing-kid", Rule: "U187", Shown: "a random key", Meaning: "name of the first signing key, created at start", NoFlag: true, parse: text},
	{Name: "signing-secret", Rule: "U187", Meaning: "its secret: 64 hexadecimal digits", Secret: true, NoFlag: true, parse: hexSecret},
	{Name: "max-payload", Rule: "U189", Default: "4MiB", Meaning: "maximum size of an input or a result; 64KiB to 64MiB", parse: size(64<<10, 64<<20)},
	{Name: "max-wait", Rule: "U189", Default: "60s", Meaning: "maximum wait of a call; 1s to 5m", parse: span("1s", "5m")},
	{Name: "max-readers", Rule: "U189", Default: "4096", Meaning: "maximum waiting readers per process", parse: count(1, 1_000_000)},
	{Name: "max-readers-per-key", Rule: "U189", Shown: "a quarter of max-readers", Meaning: "maximum waiting readers of one key per process", parse: count(1, 1_000_000)},
	{Name: "max-claims", Rule: "U189", Default: "10000", Meaning: "maximum waiting claims per process", parse: count(1, 1_000_000)},
	{Name: "max-connections-per-address", Rule: "U186", Shown: "4096, or less with few files or little memory", Meaning: "maximum open connections of one address per process, by default at most half of the files that it may open and what a quarter of its memory limit holds, at 160 KiB each with TLS and 32 KiB without; networks of `trusted-proxies` are exempt", parse: count(1, 1_000_000)},
	{Name: "queue-limit", Rule: "U190", Default: "8192", Meaning: "maximum commands that wait for a commit", parse: count(1, 1_000_000)},
	{Name: "batch-limit", Rule: "U190", Default: "1000", Meaning: "maximum commands per commit", parse: count(1, 10_000)},
	{Name: "poll-interval", Rule: "U191", Default: "1s", Meaning: "fallback polling interval for the store and timers; 100ms to 10s", parse: span("100ms", "10s")},
	{Name: "lease-ttl", Rule: "U192", Default: "30s", Meaning: "default lease of a claim; 500ms to 24h", parse: span("500ms", "24h")},
	{
		Name: "retention", First: true, Rule: "U193", Default: "succeeded=72h,skipped=72h,cancelled=168h,failed=336h,expired=336h",
		Meaning: "how long finished executions are kept, by status; -1: forever", parse: retention,
	},
	{Name: "event-retention", Rule: "U193", Default: "168h", Meaning: "how long events are kept; -1: forever", parse: keep},
	{Name: "audit-retention", Rule: "U193", Default: "9600h", Meaning: "how long the audit log is kept; -1: forever", parse: keep},
	{Name: "key-grace", Rule: "U194", Default: "24h", Meaning: "default validity of the old secret of a rotated API key, and of the previous signing key; 1s to 720h", parse: span("1s", "720h")},
	{Name: "drain-timeout", First: true, Rule: "U194", Default: "15s", Meaning: "how long pending calls may continue at shutdown", parse: span("0s", "1h")},
	{Name: "webhook-allow-http", Rule: "U197", Default: "false", Meaning: "webhooks may be sent by http too, and to port 80 with it", parse: toggle},
	{Name: "webhook-allow-cidr", Rule: "U197", Meaning: "networks (CIDR, comma-separated) that webhooks may reach although they are private or reserved; `dev` permits loopback", parse: ranges},
	{Name: "webhook-ports", Rule: "U197", Default: "443", Meaning: "ports (comma-separated) that webhooks may use besides 443", parse: ports},
	{Name: "log-level", First: true, Rule: "U195", Default: "info", Meaning: "`debug`, `info`, `warn` or `error`; SIGHUP reloads it from the file", parse: choice("debug", "info", "warn", "error")},
	{Name: "log-format", Rule: "U195", Default: "auto", Meaning: "`text`, `json`, or `auto`: text on a terminal, else JSON", parse: choice("auto", "text", "json")},
	{Name: "otlp-endpoint", Rule: "U196", Also: "OTEL_EXPORTER_OTLP_ENDPOINT", Meaning: "base URL of a collector for spans (OTLP over HTTP); default: no spans", parse: serverURL},
	{Name: "trace-sample", Rule: "U196", Default: "1.0", Meaning: "fraction of traces started here that is sent, 0 to 1; requests with a trace follow their caller", parse: share},
	{Name: "metrics-listen", Rule: "U196", Shown: "the address of the server", Meaning: "separate address for /metrics; port 0 uses a free one", parse: address},
	{Name: "metrics-open", First: true, Rule: "U196", Default: "false", Meaning: "serve /metrics without a key; with `metrics-listen` only there", parse: toggle},
}

var clientTable = []Setting{
	{Name: "server", Rule: "U155", Default: "http://127.0.0.1:7433", Meaning: "address of the server; several servers of one store are separated by commas", parse: serverURLs},
	{Name: "key", Var: "API_KEY", Rule: "U155", Meaning: "API key; better in the variable, or in a file named by `--key-file`", Secret: true, parse: text},
	{Name: "ca", Rule: "U155", Shown: "those of the system", Meaning: "file with the certificate authorities that may sign the certificate of the server", parse: authorities},
	{Name: "namespace", Rule: "U155", Shown: "of the key", Meaning: "namespace, for keys that are valid for several", parse: text},
}

// Confidential reports whether a line of the environment, NAME=value, must not be passed on to programs that this one starts: the
// variable of a setting that holds a secret, names a file with one, or is an address with a password. Variables of other
// programs, such as PGPASSWORD or those of OpenTelemetry, are passed on because they may be meant for the program.
func Confidential(line string) bool {
	name, value, _ := strings.Cut(line, "=")
	for _, s := range slices.Concat(serverTable, clientTable) {
		switch name {
		case s.Variable():
			if s.MayBeInFile() {
				return true
			}
		case s.Variable() + "_FILE":
			return true
		default:
			continue
		}
		_, hidden := WithoutPassword(value)
		return hidden
	}
	return false
}

// foreign are variables that begin with FF_ and are not settings: `work` passes the first ones to its program, and the examples read
// the last.
var foreign = []string{"FF_EXECUTION_ID", "FF_ATTEMPT", "FF_EFFECT_KEY", "FF_LEASE", "FF_MODEL_URL"}
