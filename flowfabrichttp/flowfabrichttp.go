// Package flowfabrichttp mounts the whole FlowFabric server in a program of one's own, on an engine that runs there:
//
//	handler, err := flowfabrichttp.New(client, flowfabrichttp.Config{Authenticate: myLogin})
//	mux.Handle("/flowfabric/", http.StripPrefix("/flowfabric", handler))
//
// Roles, namespaces, limits and the audit log hold as they do for the server of the command line. The package adds nothing to that
// server; it knows no rule and no store.
package flowfabrichttp

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/internal/server"
)

// Config sets up a mounted server. The zero value asks for API keys and serves with the limits of the command line's server.
type Config struct {
	// Authenticate puts a login of one's own in place of API keys. It says who makes a request: nil when nobody is logged in, an
	// error when the login is not valid; both are answered with 401, an *flowfabric.Error with its own code. It may be called from
	// many goroutines, and is called again every few seconds while a call of that caller waits, so that it ends with the login.
	// Requests by which pages of other origins would change something are refused: a login may rest on a cookie.
	Authenticate func(r *http.Request) (*Principal, error)
	// Open asks nobody: every request is the principal dev with all roles in the namespace default. It answers only what comes in
	// over loopback, with a name of this machine in Host, and that no proxy has passed on. It ends with the first admin key.
	Open bool

	PublicURL        string            // where users find the server, with the path it is mounted at; "" when it is not known
	MaxPayload       int64             // bytes of an input or a result; 0: 4 MiB
	MaxWait          time.Duration     // longest wait of a call; 0: 60 s
	MaxReaders       int               // waiting readers at a time; 0: 4096
	MaxReadersPerKey int               // waiting readers of one key or login at a time; 0: a quarter of MaxReaders
	MaxClaims        int               // waiting claims at a time; 0: 10 000
	TrustedProxies   []string          // CIDRs whose X-Forwarded-For is believed; none if empty
	CORSOrigins      []string          // origins whose pages may call, exactly as browsers send them; none if empty
	MetricsOpen      bool              // /metrics needs no credentials
	Logger           *slog.Logger      // default slog.Default()
	Tracer           flowfabric.Tracer // makes spans of requests; nil: none
	Version          string            // of the program, shown by /v1/info; "dev" if empty
}

// Principal is who makes a request, and what it may do. A principal without a name or a namespace, or with a role that does not
// exist, is answered with an internal error: the login is wrong.
type Principal struct {
	Name       string   // stands in events and in the audit log
	Namespaces []string // where; "*": everywhere
	Roles      []string // "read", "submit", "work", "operate", "admin"; none: it may do nothing but ask who it is
}

// New makes the server of a client as a handler. The client must be one of embedded.Open: calls of many callers cannot be told
// apart behind the one key of a Connect client. To mount it below a prefix use http.StripPrefix.
//
// Waiting calls and event streams end at once when the http.Server that runs the handler is shut down. Close the client after that.
//
// It fails when the configuration cannot work, with all its problems.
func New(c *flowfabric.Client, cfg Config) (http.Handler, error) {
	if !inThisProcess(c) {
		return nil, errors.New("flowfabrichttp: the client is not one of embedded.Open")
	}
	s, err := server.New(c, server.Config{
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

// inThisProcess tells a client with an engine from one of a server, which cannot look keys up.
func inThisProcess(c *flowfabric.Client) bool {
	_, err := c.Admin().APIKeys().Authenticate(context.Background(), "")
	return !errors.Is(err, flowfabric.ErrNotImplemented)
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

// mounted is the server as a handler that lets go of waiting calls when its host shuts down.
type mounted struct {
	server *server.Server
	next   http.Handler

	mu    sync.Mutex
	hosts map[*http.Server]bool // that tell when they shut down
}

// ServeHTTP answers a request.
func (m *mounted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if host, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok {
		m.endWith(host)
	}
	m.next.ServeHTTP(w, r)
}

// endWith drains when the host shuts down.
func (m *mounted) endWith(host *http.Server) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.hosts[host] {
		m.hosts[host] = true
		host.RegisterOnShutdown(m.server.Drain)
	}
}
