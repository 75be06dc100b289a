package settings

import (
	"cmp"
	"crypto/rand"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// stated is what the specification says of a setting: its default, texts that it takes with what they mean, and texts that it refuses.
type stated struct {
	rule, name string
	fallback   any // nil: none
	takes      map[string]any
	refuses    []string
}

// hex64 is 32 bytes.
const hex64 = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

// statements are those of section 6 on the settings of a server.
var statements = []stated{
	{
		"U181", "store", nil,
		map[string]any{"sqlite:a.db": "sqlite:a.db", "postgres://me@db/ff": "postgres://me@db/ff", "postgresql://me@db/ff": "postgresql://me@db/ff"},
		[]string{"mysql://x", "app.db", "sqlite:", "postgres"},
	},
	{"U181", "unsafe-durability", false, map[string]any{"true": true}, []string{"yes", "1"}},
	{"U181", "store-schema", "flowfabric", map[string]any{"work": "work", "_a1": "_a1"}, []string{"Work", "1a", "a-b", "pg_work", strings.Repeat("a", 64)}},
	{"U182", "store-direct-url", nil, map[string]any{"postgres://me@direct/ff": "postgres://me@direct/ff"}, []string{"sqlite:a.db", "direct:5432"}},
	{"U183", "store-pool", 16, map[string]any{"1": 1, "64": 64}, []string{"0", "-1", "many", "1.5"}},
	{"U183", "store-timeout", 30 * time.Second, map[string]any{"1m": time.Minute}, []string{"0s", "30", "-1s"}},
	{"U184", "migrate", "auto", map[string]any{"auto": "auto", "check": "check", "off": "off"}, []string{"on", "AUTO"}},
	{"U185", "listen", "127.0.0.1:7433", map[string]any{"0.0.0.0:80": "0.0.0.0:80", "[::1]:0": "[::1]:0", ":7433": ":7433"}, []string{"7433", "localhost", "localhost:http", "a:65536"}},
	{
		"U185", "public-url", nil,
		map[string]any{"https://ff.example": "https://ff.example", "https://ff.example/base/": "https://ff.example/base"},
		[]string{"ff.example", "/base", "ftp://ff.example", "https://ff.example?x=1", "https://ff.example#x", "https://"},
	},
	{"U186", "allow-plaintext", false, map[string]any{"true": true}, []string{"maybe"}},
	{"U186", "insecure-open", false, map[string]any{"true": true}, []string{"maybe"}},
	{
		"U186", "trusted-proxies", nil,
		map[string]any{"10.0.0.0/8, ::1/128": []string{"10.0.0.0/8", "::1/128"}},
		[]string{"10.0.0.1", "10.0.0.0/33", "proxy.example", "10.0.0.0/8,"},
	},
	{
		"U186", "cors-origins", nil,
		map[string]any{"https://a.example,http://b.example:8443": []string{"https://a.example", "http://b.example:8443"}},
		[]string{"*", "a.example", "https://a.example/", "https://a.example/path", "https://a.example?x=1"},
	},
	{
		"U187", "master-key", nil,
		map[string]any{hex64: hex64, " " + hex64 + "\n": hex64, "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=": "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="},
		[]string{hex64[2:], hex64 + "00", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHg==", "secret"},
	},
	{"U187", "signing-kid", nil, map[string]any{"main": "main"}, nil},
	{"U187", "signing-secret", nil, map[string]any{hex64: hex64, hex64 + "\n": hex64}, []string{hex64[2:], hex64 + "00", "xx" + hex64[2:]}},
	{"U189", "max-payload", 4 << 20, map[string]any{"64KiB": 64 << 10, "64MiB": 64 << 20, "1MB": 1_000_000, "65536": 64 << 10}, []string{"63KiB", "65MiB", "-1", "big"}},
	{"U189", "max-wait", time.Minute, map[string]any{"1s": time.Second, "5m": 5 * time.Minute}, []string{"999ms", "5m1s", "60"}},
	{"U189", "max-readers", 4096, map[string]any{"1": 1}, []string{"0", "-1", "x"}},
	{"U189", "max-readers-per-key", nil, map[string]any{"1": 1}, []string{"0", "-1", "x"}},
	{"U189", "max-claims", 10000, map[string]any{"1": 1}, []string{"0", "-1", "x"}},
	{"U186", "max-connections-per-address", nil, map[string]any{"1": 1}, []string{"0", "-1", "x"}},
	{"U190", "queue-limit", 8192, map[string]any{"1": 1}, []string{"0", "-1", "x"}},
	{"U190", "batch-limit", 1000, map[string]any{"1": 1}, []string{"0", "-1", "x"}},
	{"U191", "poll-interval", time.Second, map[string]any{"100ms": 100 * time.Millisecond, "10s": 10 * time.Second}, []string{"99ms", "10001ms", "1"}},
	{"U192", "lease-ttl", 30 * time.Second, map[string]any{"500ms": 500 * time.Millisecond, "24h": 24 * time.Hour}, []string{"499ms", "24h1ms", "30"}},
	{
		"U193", "retention",
		map[string]time.Duration{"succeeded": 72 * time.Hour, "skipped": 72 * time.Hour, "cancelled": 168 * time.Hour, "failed": 336 * time.Hour, "expired": 336 * time.Hour},
		map[string]any{"failed=-1": map[string]time.Duration{"failed": -1}},
		[]string{"72h", "done=1h", "failed=0s", "failed=-2"},
	},
	{"U193", "event-retention", 168 * time.Hour, map[string]any{"-1": time.Duration(-1)}, []string{"0s", "-2", "week"}},
	{"U193", "audit-retention", 9600 * time.Hour, map[string]any{"-1": time.Duration(-1)}, []string{"0s", "-2", "year"}},
	{"U194", "key-grace", 24 * time.Hour, map[string]any{"1h": time.Hour}, []string{"-1s", "1"}},
	{"U194", "drain-timeout", 15 * time.Second, map[string]any{"0s": time.Duration(0)}, []string{"-1s", "1"}},
	{"U197", "webhook-allow-http", false, map[string]any{"true": true}, []string{"maybe"}},
	{
		"U197", "webhook-allow-cidr", nil,
		map[string]any{"10.0.0.0/8, fd00::/8": []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}},
		[]string{"10.0.0.1", "10.0.0.1/8", "10.0.0.0/33", "::ffff:10.0.0.0/104", "intranet.example", "10.0.0.0/8,"},
	},
	{"U197", "webhook-ports", []int{443}, map[string]any{"8443": []int{8443}, "443, 8443": []int{443, 8443}}, []string{"0", "65536", "-1", "https", "443,"}},
	{"U195", "log-level", "info", map[string]any{"debug": "debug", "info": "info", "warn": "warn", "error": "error"}, []string{"loud", "INFO"}},
	{"U195", "log-format", "auto", map[string]any{"text": "text", "json": "json"}, []string{"xml"}},
	{"U196", "otlp-endpoint", nil, map[string]any{"http://collector:4318": "http://collector:4318"}, []string{"collector:4318"}},
	{"U196", "trace-sample", 1.0, map[string]any{"0": 0.0, "0.25": 0.25}, []string{"1.1", "-0.1", "NaN", "all"}},
	{"U196", "metrics-listen", nil, map[string]any{"127.0.0.1:9464": "127.0.0.1:9464"}, []string{"9464"}},
	{"U196", "metrics-open", false, map[string]any{"true": true}, []string{"maybe"}},
}

// parsed is the value of a setting, nil when it has none.
func (v *Values) parsed(name string) any { return v.byKey[name].parsed }

func TestU181_U182_U183_U184_U185_U186_U187_U189_U190_U191_U192_U193_U194_U195_U196_U197_settings_are_as_stated(t *testing.T) {
	t.Parallel()
	for _, s := range statements {
		t.Run(s.rule+" "+s.name, func(t *testing.T) {
			t.Parallel()
			values, _ := Load(Server(), Sources{})
			if got := values.parsed(s.name); !reflect.DeepEqual(got, s.fallback) {
				t.Errorf("the default is %v, want %v", got, s.fallback)
			}
			for text, want := range s.takes {
				values, problems := Load(Server(), Sources{Flags: map[string]string{s.name: text}})
				if got := values.parsed(s.name); !reflect.DeepEqual(got, want) || len(problems) > 0 {
					t.Errorf("%q means %v (%v), want %v", text, got, problems, want)
				}
			}
			for _, text := range s.refuses {
				values, problems := Load(Server(), Sources{Flags: map[string]string{s.name: text}})
				if len(problems) != 1 || !reflect.DeepEqual(values.parsed(s.name), s.fallback) {
					t.Errorf("%q is taken as %v (%v)", text, values.parsed(s.name), problems)
				}
			}
		})
	}
}

// filesAndSecrets are settings whose values are not of the table above: files that must be there, and secrets.
var filesAndSecrets = []string{"tls-cert", "tls-key", "tls-client-ca", "bootstrap-admin-key"}

func TestU181_every_setting_of_the_server_is_stated(t *testing.T) {
	t.Parallel()
	rules := map[string]string{}
	for _, s := range statements {
		rules[s.name] = s.rule
	}
	for _, name := range filesAndSecrets {
		rules[name] = "below"
	}
	for _, setting := range Server() {
		if rules[setting.Name] == "" {
			t.Errorf("%s (%s) is not stated", setting.Name, cmp.Or(setting.Rule, "no rule"))
		}
		delete(rules, setting.Name)
	}
	for name := range rules {
		t.Errorf("there is no setting %s", name)
	}
}

func TestU186_files_of_tls_must_be_there(t *testing.T) {
	t.Parallel()
	there := filepath.Join(t.TempDir(), "there.pem")
	write(t, there, "x")
	for _, name := range []string{"tls-cert", "tls-key", "tls-client-ca"} {
		if values, problems := Load(Server(), Sources{Flags: map[string]string{name: there}}); len(problems) > 0 || Get[string](values, name) != there {
			t.Error(problems)
		}
		if _, problems := Load(Server(), Sources{Flags: map[string]string{name: there + ".not"}}); len(problems) != 1 {
			t.Errorf("%s: a file that is not there: %v", name, problems)
		}
	}
}

func TestU188_the_bootstrap_key_comes_from_the_environment_or_a_file_and_is_never_shown(t *testing.T) {
	t.Parallel()
	secret := "ffk_aaaaaaaaaaaa_" + rand.Text()
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"FF_BOOTSTRAP_ADMIN_KEY=" + secret, "FF_BOOTSTRAP_ADMIN_KEY_FILE=" + path} {
		values, problems := Load(Server(), Sources{Environ: []string{line}})
		if len(problems) > 0 || Get[string](values, "bootstrap-admin-key") != secret {
			t.Errorf("%s: %v", line, problems)
		}
		for _, row := range values.Rows() {
			if row.Name == "FF_BOOTSTRAP_ADMIN_KEY" && (row.Value != "set" || row.Source != FromEnvironment) {
				t.Errorf("shown as %+v", row)
			}
		}
	}
	for _, setting := range Server() {
		if setting.Name == "bootstrap-admin-key" && (!setting.NoFlag || !setting.Secret) {
			t.Error("a command line can be read by every process of the machine")
		}
	}
	if _, problems := Load(Server(), Sources{Environ: []string{"FF_BOOTSTRAP_ADMIN_KEY_FILE=" + path + ".not"}}); len(problems) != 1 {
		t.Errorf("a file that is not there: %v", problems)
	}
}

func TestU155_the_server_the_key_and_the_namespace_have_flags_and_variables(t *testing.T) {
	t.Parallel()
	key := filepath.Join(t.TempDir(), "key")
	profile := filepath.Join(t.TempDir(), "prod.env")
	write(t, key, "ffk_file\n")
	write(t, profile, "FF_SERVER=https://profile.example\nFF_API_KEY=ffk_profile\nFF_NAMESPACE=red\n")
	for name, c := range map[string]struct {
		from                   Sources
		server, key, namespace string
	}{
		"nothing":                      {Sources{}, "http://127.0.0.1:7433", "", ""},
		"the environment":              {Sources{Environ: []string{"FF_SERVER=https://a.example/", "FF_API_KEY=ffk_env", "FF_NAMESPACE=blue"}}, "https://a.example", "ffk_env", "blue"},
		"flags win":                    {Sources{Environ: []string{"FF_SERVER=https://a.example", "FF_API_KEY=ffk_env"}, Flags: map[string]string{"server": "http://b", "key-file": key, "namespace": "green"}}, "http://b", "ffk_file", "green"},
		"a profile":                    {Sources{File: profile}, "https://profile.example", "ffk_profile", "red"},
		"the environment wins over it": {Sources{File: profile, Environ: []string{"FF_SERVER=http://c"}}, "http://c", "ffk_profile", "red"},
	} {
		values, problems := Load(Client(), c.from)
		if len(problems) > 0 || Get[string](values, "server") != c.server || Get[string](values, "key") != c.key || Get[string](values, "namespace") != c.namespace {
			t.Errorf("%s: %v %v", name, values.Rows(), problems)
		}
	}
}
