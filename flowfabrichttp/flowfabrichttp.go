// Package flowfabrichttp mounts the FlowFabric server in your own program, on an engine that runs there:
//
//	handler, err := flowfabrichttp.New(client, flowfabrichttp.Config{Authenticate: myLogin})
//	mux.Handle("/flowfabric/", http.StripPrefix("/flowfabric", handler))
//
// Roles, namespaces, limits and the audit log work as in the server of the command line. The package only mounts that server; it
// has no rules and no store.
package flowfabrichttp

import (
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/internal/inprocess"
	"github.com/flowfabric/flowfabric/internal/server"
)

// Config configures a mounted server. The zero value requires API keys and uses the limits of the command line's server.
type Config struct {
	// Authenticate replaces API keys by your own login. It returns the principal of a request: nil if there is no login, an error
	// if the login is not valid; both are answered with 401, an *flowfabric.Error with its own code. It must be safe for
	// concurrent use, and is called again every few seconds while a call waits, so that the call ends with the login. Requests
	// from pages of other origins that would change something are refused, because a login may use cookies.
	Authenticate func(r *http.Request) (*Principal, error)
	// Open disables authentication: every request is the principal dev with all roles in the namespace default. It accepts only
	// requests over loopback, with a name of this machine in Host, and not through a proxy. It ends with the first admin key.
	Open bool

	PublicURL        string            // address for users, with the path it is mounted at; "" if unknown
	MaxPayload       int64             // bytes of an input or a result; 0: 4 MiB
	MaxWait          time.Duration     // longest wait of a call; 0: 60 s
	MaxReaders       int               // waiting readers; 0: 4096
	MaxReadersPerKey int               // waiting readers of one key or login; 0: a quarter of MaxReaders
	MaxClaims        int               // waiting claims; 0: 10,000
	TrustedProxies   []string          // CIDRs whose X-Forwarded-For is trusted; none if empty
	CORSOrigins      []string          // origins whose pages may call the API, exactly as browsers send them; none if empty
	MetricsOpen      bool              // /metrics requires no credentials
	Logger           *slog.Logger      // default slog.Default()
	Tracer           flowfabric.Tracer // makes spans of requests; nil: none
	Version          string            // of the program, shown by /v1/info; "dev" if empty
}

// Principal is the identity and the permissions of a request. Without a name or a namespace, or with an unknown role, the request
// fails with an internal error, because the login is wrong.
type Principal struct {
	Name       string   // recorded in events and in the audit log
	Namespaces []string // namespaces; "*": all
	Roles      []string // "read", "submit", "work", "operate", "admin"; none: it can only ask for its identity
}

// New returns the server of a client as a handler. The client must come from sqlite, postgres or embedded: a Connect client has one key for
// all callers, so they could not be distinguished. To mount it below a prefix use http.StripPrefix.
//
// Waiting calls and event streams end at once when the http.Server that runs the handler is shut down. Close the client after
// that.
//
// It fails if the configuration is not valid, and reports all problems.
func New(c *flowfabric.Client, cfg Config) (http.Handler, error) {
	on, ok := inprocess.BackendOf(c)
	if !ok {
		return nil, errors.New("flowfabrichttp: the client is not one of embedded.Open")
	}
	s, err := server.New(on, server.Config{
		Open: cfg.Open, LoopbackOnly: true, Login: loginOf(cfg.Authenticate), PublicURL: cfg.PublicURL,
		MaxPayload: cfg.MaxPayload, MaxWait: cfg.MaxWait, MaxReaders: cfg.MaxReaders, MaxReadersPerKey: cfg.MaxReadersPerKey, MaxClaims: cfg.MaxClaims,
		TrustedProxies: cfg.TrustedProxies, CORSOrigins: cfg.CORSOrigins, MetricsOpen: cfg.MetricsOpen,
		Logger: cfg.Logger, Tracer: cfg.Tracer, Version: cfg.Version,
	})
	if err != nil {
		return nil, err
	}
	return &mounted{server: s, next: s.Handler(), hosts: map[*http.Server]bool{}}, nil
}

func loginOf(authenticate func(*http.Request) (*Principal, error)) func(*http.Request) (*server.Key, error) {
	if authenticate == nil {
		return nil
	}
	return func(r *http.Request) (*server.Key, error) {
		who, err := authenticate(r)
		if err != nil || who == nil {
			return nil, err
		}
		return &server.Key{Name: who.Name, Namespaces: who.Namespaces, Roles: who.Roles}, nil
	}
}

// mounted is the server as a handler that ends waiting calls when its http.Server shuts down.
type mounted struct {
	server *server.Server
	next   http.Handler

	mu    sync.Mutex
	hosts map[*http.Server]bool // servers with a shutdown hook
}

// ServeHTTP answers a request.
func (m *mounted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if host, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok {
		m.endWith(host)
	}
	m.next.ServeHTTP(w, r)
}

// endWith drains when the http.Server shuts down.
func (m *mounted) endWith(host *http.Server) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.hosts[host] {
		m.hosts[host] = true
		host.RegisterOnShutdown(m.server.Drain)
	}
}
