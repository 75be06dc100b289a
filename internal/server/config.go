package server

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/flowfabric/flowfabric/api"
)

// Config sets up a Server. The zero value asks for API keys and serves with the limits of the specification.
type Config struct {
	// Open requires no credentials: every request is the principal dev with all roles in the namespace default (U123). Only for
	// servers that listen on loopback. It ends permanently once there is an admin key, made in any process, within openCheck.
	Open bool
	// OpenByFlag means that Open was requested for a production server: /readyz reports it.
	OpenByFlag bool
	// LoopbackOnly makes Open answer only what comes in over loopback, whatever the listener is. Without it the caller has
	// checked the address of the listener.
	LoopbackOnly bool
	// Exposed means that Open is intended for other machines too (U124): names of this machine are not required, and /readyz and
	// the doctor report it.
	Exposed bool
	// Login replaces API keys: it returns what the sender of a request may do, or nil if there is no login. It is called again
	// while a call waits. Any error other than an Error counts as an invalid login.
	Login func(r *http.Request) (*Key, error)
	// PublicURL is where users find the server, absolute and without a query; "" when it is not known.
	PublicURL string

	MaxPayload int64         // bytes of an input or a result; 0: 4 MiB
	MaxWait    time.Duration // longest wait of a call (U18); 0: 60 s
	BodyMemory int64         // bytes that the bodies of all requests may take together; 0: a quarter of the process's memory limit, at most 512 MiB
	MaxReaders int           // waiting readers at a time (U21); 0: 4096
	// MaxReadersPerKey is how many of MaxReaders one key or login may hold; 0: a quarter.
	MaxReadersPerKey int
	MaxClaims        int // waiting claims at a time (U21); 0: 10 000

	// MaxConnectionsPerAddress is how many connections one address may have open; 0: 4096. Trusted proxies are not counted.
	MaxConnectionsPerAddress int
	// TLS means that connections of the Listener terminate TLS: answers then require browsers to use nothing else.
	TLS bool

	TrustedProxies []string // CIDRs whose X-Forwarded-For is believed; none if empty
	CORSOrigins    []string // origins whose pages may call, exactly as browsers send them; none if empty
	MetricsOpen    bool     // /metrics needs no credentials

	Logger   *slog.Logger // nil: slog.Default()
	Tracer   api.Tracer   // nil: requests have no spans
	Version  string       // of the program; "dev" if empty
	Commit   string       // that it was built from
	Settings []Setting    // for /v1/admin/settings; nil: those of the engine

	// Checks returns checks of the process for the doctor (U113); may be nil.
	Checks func() []api.Check
}

// Setting is an effective setting in /v1/admin/settings. The value of a secret is "set".
type Setting struct {
	Name   string
	Value  any
	Source string // default, file, environment or flag
}

// Key is what an API key allows.
type Key struct {
	ID         string
	Name       string   // of the principal
	Roles      []string // read, submit, work, operate, admin
	Namespaces []string // "*" is everywhere
	Lanes      []string // that it may work on; none: all

	MaxRequestsPerSecond int // 0: no limit
	MaxInFlight          int // 0: no limit
}

// The limits that hold unless the configuration says otherwise.
const (
	defaultPayload = 4 << 20
	defaultWait    = time.Minute
	defaultReaders = 4096
	defaultClaims  = 10_000
	defaultConns   = 4096 // of an address
)

func (cfg Config) withDefaults() Config {
	cfg.MaxPayload = cmp.Or(cfg.MaxPayload, defaultPayload)
	cfg.MaxWait = cmp.Or(cfg.MaxWait, defaultWait)
	cfg.BodyMemory = cmp.Or(cfg.BodyMemory, memoryForBodies())
	cfg.MaxReaders = cmp.Or(cfg.MaxReaders, defaultReaders)
	cfg.MaxReadersPerKey = cmp.Or(cfg.MaxReadersPerKey, max(1, cfg.MaxReaders/keyPart))
	cfg.MaxClaims = cmp.Or(cfg.MaxClaims, defaultClaims)
	cfg.MaxConnectionsPerAddress = cmp.Or(cfg.MaxConnectionsPerAddress, defaultConns)
	cfg.Logger = cmp.Or(cfg.Logger, slog.Default())
	cfg.Version = cmp.Or(cfg.Version, "dev")
	return cfg
}

// validate reports every problem at once.
func (cfg Config) validate() error {
	var problems []error
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if cfg.MaxPayload < 0 || cfg.BodyMemory < 0 || cfg.MaxWait < 0 || cfg.MaxReaders < 0 || cfg.MaxReadersPerKey < 0 || cfg.MaxConnectionsPerAddress < 0 || cfg.MaxClaims < 0 {
		wrong("a limit is negative")
	}
	if cfg.Open && cfg.Login != nil {
		wrong("Open requires no credentials, and a login is given")
	}
	if _, err := originOf(cfg.PublicURL); err != nil && cfg.PublicURL != "" {
		wrong("PublicURL %q: %w", cfg.PublicURL, err)
	}
	for _, text := range cfg.TrustedProxies {
		if _, err := netip.ParsePrefix(text); err != nil {
			wrong("TrustedProxies: %q is not a CIDR", text)
		}
	}
	for _, origin := range cfg.CORSOrigins {
		if own, err := originOf(origin); err != nil || own != origin {
			wrong("CORSOrigins: %q is not an origin such as https://console.example.com", origin)
		}
	}
	for _, s := range cfg.Settings {
		if _, err := json.Marshal(s.Value); err != nil {
			wrong("Settings: %s: %w", s.Name, err)
		}
	}
	return errors.Join(problems...)
}

// originOf is the origin of an absolute URL.
func originOf(text string) (string, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return "", errors.New("not an absolute http or https URL")
	case u.RawQuery != "" || u.Fragment != "" || u.User != nil:
		return "", errors.New("a query, a fragment or a user is not wanted")
	}
	return u.Scheme + "://" + u.Host, nil
}
