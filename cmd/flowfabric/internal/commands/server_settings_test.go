package commands

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/settings"
)

// configured is a server to be, with these flags.
func configured(t *testing.T, dev bool, flags map[string]string) (*instance, *bytes.Buffer) {
	t.Helper()
	values, problems := settings.Load(settings.Server(), settings.Sources{Dev: dev, Flags: flags})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	var out bytes.Buffer
	return &instance{session: &session{App: &App{Out: &out, Err: &out, Build: Build{Version: "1.2.3"}}}, dev: dev, values: values, level: new(slog.LevelVar)}, &out
}

// pair writes a certificate that ends at a moment, and its key.
func pair(t *testing.T, ends time.Time) (cert, key string) {
	t.Helper()
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: ends.Add(-48 * time.Hour), NotAfter: ends, DNSNames: []string{"localhost"}}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, secret.Public(), secret)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: signed}, key: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

func TestU186_a_pair_of_tls_is_whole_matches_and_has_not_expired(t *testing.T) {
	t.Parallel()
	cert, key := pair(t, time.Now().Add(time.Hour))
	_, otherKey := pair(t, time.Now().Add(time.Hour))
	oldCert, oldKey := pair(t, time.Now().Add(-time.Hour))
	for name, c := range map[string]struct {
		flags map[string]string
		told  string // "": nothing
	}{
		"whole":              {map[string]string{"tls-cert": cert, "tls-key": key, "listen": "0.0.0.0:0"}, ""},
		"with clients":       {map[string]string{"tls-cert": cert, "tls-key": key, "tls-client-ca": cert}, ""},
		"no key":             {map[string]string{"tls-cert": cert}, "FF_TLS_CERT=" + cert + " (from flag): its key is missing"},
		"no certificate":     {map[string]string{"tls-key": key}, "FF_TLS_KEY=" + key + " (from flag): its certificate is missing"},
		"another's key":      {map[string]string{"tls-cert": cert, "tls-key": otherKey}, "private key does not match"},
		"expired":            {map[string]string{"tls-cert": oldCert, "tls-key": oldKey}, "has expired at"},
		"no authority":       {map[string]string{"tls-cert": cert, "tls-key": key, "tls-client-ca": key}, "has no certificate"},
		"clients alone":      {map[string]string{"tls-client-ca": cert}, "client certificates need TLS"},
		"plain text outside": {map[string]string{"listen": "0.0.0.0:0"}, "reachable from other hosts without TLS"},
		"plain and allowed":  {map[string]string{"listen": "0.0.0.0:0", "allow-plaintext": "true"}, ""},
	} {
		c.flags["store"] = "sqlite:ff.db"
		i, _ := configured(t, false, c.flags)
		var lines []string
		for _, problem := range i.check() {
			lines = append(lines, problem.String())
		}
		if told := strings.Join(lines, "\n"); c.told == "" && told != "" || !strings.Contains(told, c.told) || len(lines) > 1 {
			t.Errorf("%s: %q, want %q", name, told, c.told)
		}
	}
}

func TestU185_the_public_url_is_that_of_the_setting_or_of_the_address(t *testing.T) {
	t.Parallel()
	at := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7433}
	plain, _ := configured(t, false, nil)
	named, _ := configured(t, false, map[string]string{"public-url": "https://ff.example/base/"})
	cert, key := pair(t, time.Now().Add(time.Hour))
	safe, _ := configured(t, false, map[string]string{"store": "sqlite:ff.db", "tls-cert": cert, "tls-key": key})
	if problems := safe.check(); len(problems) > 0 {
		t.Fatal(problems)
	}
	for want, i := range map[string]*instance{"http://127.0.0.1:7433": plain, "https://ff.example/base": named, "https://127.0.0.1:7433": safe} {
		if got := i.url(at); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if got := i.serverConfig(false, i.url(at)).PublicURL; got != want {
			t.Errorf("the server has %s, want %s", got, want)
		}
	}
}

func TestU186_U189_the_limits_and_the_trust_of_a_server_reach_it(t *testing.T) {
	t.Parallel()
	i, _ := configured(t, false, map[string]string{
		"max-payload": "1MiB", "max-wait": "90s", "max-readers": "7", "max-readers-per-key": "3", "max-claims": "8", "trusted-proxies": "10.0.0.0/8", "cors-origins": "https://a.example", "metrics-open": "true",
	})
	cfg := i.serverConfig(false, "http://127.0.0.1:1")
	if cfg.MaxPayload != 1<<20 || cfg.MaxWait != 90*time.Second || cfg.MaxReaders != 7 || cfg.MaxReadersPerKey != 3 || cfg.MaxClaims != 8 || !cfg.MetricsOpen || cfg.Version != "1.2.3" ||
		!slices.Equal(cfg.TrustedProxies, []string{"10.0.0.0/8"}) || !slices.Equal(cfg.CORSOrigins, []string{"https://a.example"}) {
		t.Errorf("%+v", cfg)
	}
	if len(cfg.Settings) != len(settings.Server()) { // U179
		t.Errorf("%d settings are shown", len(cfg.Settings))
	}
}

func TestU195_logs_are_json_unless_people_read_them_and_have_a_level(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		dev    bool
		flags  map[string]string
		isJSON bool
	}{
		"in a pipe":             {false, nil, true},
		"text is asked for":     {false, map[string]string{"log-format": "text"}, false},
		"dev is for people":     {true, nil, false},
		"JSON is asked for":     {true, map[string]string{"log-format": "json"}, true},
		"only what went wrong":  {false, map[string]string{"log-level": "error"}, true},
		"everything there is":   {false, map[string]string{"log-level": "debug"}, true},
		"warnings and the like": {false, map[string]string{"log-level": "warn"}, true},
	} {
		i, out := configured(t, c.dev, c.flags)
		i.setLevel(i.values)
		log := i.logger()
		log.Debug("d")
		log.Info("i")
		log.Warn("w")
		log.Error("e")
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		want := map[string]int{"debug": 4, "": 3, "info": 3, "warn": 2, "error": 1}[c.flags["log-level"]]
		if len(lines) != want || json.Valid([]byte(lines[0])) != c.isJSON || strings.Contains(out.String(), "\x1b") {
			t.Errorf("%s: %d lines, want %d\n%s", name, len(lines), want, out)
		}
	}
}

func TestU161_dev_prints_three_commands_that_can_be_typed_where_it_was_started(t *testing.T) {
	t.Parallel()
	for called, program := range map[string]string{"": "flowfabric", "go run ./cmd/flowfabric": "go run ./cmd/flowfabric"} {
		for url, server := range map[string]string{"http://127.0.0.1:7433": "", "http://127.0.0.1:9": " --server http://127.0.0.1:9"} {
			i, _ := configured(t, true, nil)
			var out strings.Builder
			i.session.Out, i.session.Called, i.log = &out, called, slog.New(slog.DiscardHandler)
			i.ready(api.Info{}, url)
			for _, command := range []string{
				program + " work" + server + " --kind upper -- tr a-z A-Z", program + " submit" + server + " upper --text hello --wait", program + " list" + server,
			} {
				if !strings.Contains(out.String(), "\n  "+command+"\n") {
					t.Errorf("%q is not in\n%s", command, out.String())
				}
			}
		}
	}
}
