package server

import (
	"log/slog"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric/internal/quiet"
	"github.com/flowfabric/flowfabric/internal/service"
)

// Server serves the operations of an engine over HTTP. Make it with New; it holds no connection and starts no goroutine of its own.
type Server struct {
	on      service.Backend
	cfg     Config
	log     *slog.Logger
	notes   *quiet.Log // of what may come again and again
	proxies []netip.Prefix
	own     string // origin of the public URL; "" when it is not known
	foreign *http.CrossOriginProtection
	open    *openness

	mux     *http.ServeMux
	routes  map[string]*route   // by the id of the operation
	methods map[string][]string // that each path has, as written in the table

	memory      *bodyMemory
	readers     *seats    // of waiting readers
	claims      *seats    // of waiting claims
	failures    *failures // of API keys and logins
	tokens      *failures // of tokens
	keys        *keyLimits
	connections *connections
	lineTimeout time.Duration // for each line of a body of lines
	stallLimit  time.Duration // in which a client must take or send something (E23)
	writeLimit  time.Duration // in which a connection must take what is written to it; the bound of all its streams together
	metrics     *metrics
	document    func() []byte // OpenAPI
	texts       sync.Pool     // *[]byte, for answers

	draining  chan struct{} // closed by Drain
	stop      sync.Once
	untrusted sync.Once // logs that a proxy is not trusted
}

// New makes the server of an engine. It fails when the configuration cannot work, with all its problems.
func New(on service.Backend, cfg Config) (*Server, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	s := &Server{
		on: on, cfg: cfg, log: cfg.Logger, notes: quiet.New(cfg.Logger, nil),
		mux: http.NewServeMux(), routes: map[string]*route{}, methods: map[string][]string{},
		memory: newBodyMemory(cfg.BodyMemory), readers: newSeats(cfg.MaxReaders), claims: newSeats(cfg.MaxClaims),
		failures: newFailures(), tokens: newFailures(), keys: newKeyLimits(on), connections: newConnections(cfg.MaxConnectionsPerAddress),
		lineTimeout: bodyTimeout, stallLimit: stallLimit, writeLimit: stallLimit, open: newOpenness(on, cfg), draining: make(chan struct{}),
	}
	s.texts.New = func() any { return new([]byte) }
	for _, text := range cfg.TrustedProxies {
		s.proxies = append(s.proxies, netip.MustParsePrefix(text)) // validate has parsed it
	}
	if cfg.PublicURL != "" {
		s.own, _ = originOf(cfg.PublicURL) // validate has parsed it
	}
	var err error
	if s.foreign, err = cfg.guard(s.own); err != nil {
		return nil, err
	}
	s.metrics = newMetrics(s)
	s.document = sync.OnceValue(func() []byte { return openAPI(cfg) })
	s.register()
	return s, nil
}

// register brings every operation to its handler. Those without one of their own here are served as the service performs them.
func (s *Server) register() {
	s.serveSubmits()
	s.serveExecutions()
	s.serveOperators()
	s.serveBulk()
	s.serveWork()
	s.serveGrants()
	s.serveFenced()
	s.serveWaits()
	s.serveWaitpoints()
	s.serveFlows()
	s.serveBudgets()
	s.serveLanes()
	s.serveWorkers()
	s.serveEvents()
	s.serveStreams()
	s.serveAdmin()
	s.serveKeys()
	s.serveSigningKeys()
	s.serveHealth()
	s.serveReaders()
	s.serveTokens()
	s.serveReserved()
	s.serveRest()
	s.closeLiterals()
	s.mux.HandleFunc("/", s.noRoute)
}

// Handler answers requests.
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.serveHTTP) }

// Drain makes waiting calls answer at once with the present state, ends event streams after the item they are writing, and makes
// /readyz answer 503. Requests that come later are still answered. It may be called more than once.
func (s *Server) Drain() { s.stop.Do(func() { close(s.draining) }) }

// drains reports whether Drain was called.
func (s *Server) drains() bool {
	select {
	case <-s.draining:
		return true
	default:
		return false
	}
}

// The bounds that keep slow clients from holding connections.
const (
	headTimeout = 10 * time.Second // to send a head
	bodyTimeout = 2 * time.Minute  // to send a whole request
	idleTimeout = 2 * time.Minute  // between requests
	stallLimit  = 30 * time.Second // in which a client takes or sends nothing (E23)
	headLimit   = 32 << 10         // bytes of a head (U20)
	// frameLimit is the size of a frame of HTTP/2 that every server takes. Memory for a frame is made when it is announced.
	frameLimit = 16 << 10
)

// HTTPServer is an http.Server for the handler, with timeouts that slow clients cannot use. Its WriteTimeout is for what net/http answers
// itself, such as 431 over HTTP/2. The handler has none: a call may wait and a stream may last; a client that takes nothing for
// 30 seconds is cut off all the same.
func (s *Server) HTTPServer() *http.Server {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // a connection that cannot have one has none
		s.serveHTTP(w, r)
	})
	return &http.Server{
		Handler: handler, ReadHeaderTimeout: headTimeout, ReadTimeout: bodyTimeout, WriteTimeout: stallLimit, IdleTimeout: idleTimeout,
		MaxHeaderBytes:               2 * headLimit, // above the limit that the handler explains
		HTTP2:                        &http.HTTP2Config{MaxReadFrameSize: frameLimit},
		DisableGeneralOptionsHandler: true, // OPTIONS * is answered as everything else is
		ConnState:                    connState,
		ErrorLog:                     slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
}
