package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lmittmann/tint"
	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/host"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/settings"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/tracing"
	"github.com/flowfabric/flowfabric/embedded"
	"github.com/flowfabric/flowfabric/internal/inprocess"
	"github.com/flowfabric/flowfabric/internal/server"
)

func (s *session) serve() *cobra.Command {
	cmd := &cobra.Command{
		Use: "serve", Short: "Run a production server", Args: counted(cobra.NoArgs),
		Long: "Run a production server.\n\nIt needs a store with an admin key. Create the key first, in the same store:\n" +
			"  flowfabric api-keys create --store STORE --role admin --name me\n\nThen set FF_API_KEY to the key and FF_NAMESPACE to default in the terminal from which you call it.\n" +
			"docs/operations.md describes TLS, health, backup and upgrade.",
		Example: examples(`
flowfabric serve --store postgres://flowfabric@db/flowfabric --listen 0.0.0.0:7433 --tls-cert cert.pem --tls-key key.pem
flowfabric serve --store sqlite:/var/lib/flowfabric/ff.db
flowfabric serve --config /etc/flowfabric.env
`),
		RunE: func(cmd *cobra.Command, _ []string) error { return s.runServer(cmd, serving{}) },
	}
	serverFlags(cmd)
	return cmd
}

func (s *session) dev() *cobra.Command {
	how := serving{dev: true}
	cmd := &cobra.Command{
		Use: "dev", Short: "Run a local server for development: no keys, data in .flowfabric/", Args: counted(cobra.NoArgs),
		Long: "Run a local server for development: no keys, data in .flowfabric/. It prints commands to try.",
		Example: examples(`
flowfabric dev
flowfabric dev --listen 127.0.0.1:0 --fresh
flowfabric dev --fresh --seed-demo
`),
		RunE: func(cmd *cobra.Command, _ []string) error { return s.runServer(cmd, how) },
	}
	serverFlags(cmd)
	cmd.Flags().BoolVar(&how.fresh, "fresh", false, "start with an empty store")
	cmd.Flags().BoolVar(&how.seed, "seed-demo", false, "add executions in different states to look at")
	return cmd
}

// serving says how a server is run.
type serving struct{ dev, fresh, seed bool }

// instance is one run of a server.
type instance struct {
	session *session
	cmd     *cobra.Command
	dev     bool
	values  *settings.Values
	level   *slog.LevelVar
	log     *slog.Logger
	certs   *host.Certificates // nil: no TLS
	tracer  flowfabric.Tracer  // nil: no spans
	bound   *listeners         // addresses opened before the store; nil: not yet
}

// runServer checks all settings, opens the store, and serves until it is stopped.
func (s *session) runServer(cmd *cobra.Command, how serving) error {
	values, problems := s.serverSettings(cmd, how.dev)
	i := &instance{session: s, cmd: cmd, dev: how.dev, values: values, level: new(slog.LevelVar)}
	if err := s.problems(append(problems, i.check(problems...)...)); err != nil {
		return err
	}
	i.setLevel(values)
	i.log = i.logger()
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	if s.flags.timeout > 0 {
		defer time.AfterFunc(s.flags.timeout, cancel).Stop()
	}
	if i.dev { // serve opens its addresses when it is ready: until then callers are refused and try other servers
		bound, err := i.listen(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = bound.close() }() // already closed if it was served
		i.bound = &bound
	}
	if err := i.prepareFile(ctx, how.fresh); err != nil {
		return err
	}
	sendSpans, err := i.startTracing(ctx)
	if err != nil {
		return err
	}
	client, err := i.open(ctx)
	if err != nil {
		sendSpans(ctx)
		return err
	}
	if how.seed {
		err = seedDemo(ctx, client, i.log)
	}
	if err == nil {
		err = i.serveStore(ctx, client)
	}
	closing, end := context.WithTimeout(context.WithoutCancel(ctx), settings.Get[time.Duration](values, "drain-timeout")+time.Second)
	defer end()
	err = errors.Join(err, client.Close(closing))
	sendSpans(closing)
	return err
}

// startTracing creates the tracer if a collector is configured (U196). send flushes the remaining spans.
func (i *instance) startTracing(ctx context.Context) (send func(context.Context), err error) {
	endpoint := settings.Get[string](i.values, "otlp-endpoint")
	if endpoint == "" {
		return func(context.Context) {}, nil
	}
	spans, err := tracing.Start(ctx, tracing.Config{
		Endpoint: endpoint, Sample: settings.Get[float64](i.values, "trace-sample"), Version: i.session.Version, Log: i.log, Lookup: i.session.lookup,
	})
	if err != nil {
		return nil, i.session.problems([]settings.Problem{i.values.Problem("otlp-endpoint", err.Error())})
	}
	if spans == nil {
		return func(context.Context) {}, nil
	}
	i.tracer = spans.Tracer()
	return func(ctx context.Context) {
		if err := spans.Stop(ctx); err != nil {
			i.log.Warn("the last spans were not sent", "error", err)
		}
	}, nil
}

// check reports all problems of settings that depend on each other (U180), besides those found before.
func (i *instance) check(found ...settings.Problem) []settings.Problem {
	v := i.values
	var problems []settings.Problem
	missing := v.Problem("store", "")
	if settings.Get[string](v, "store") == "" && !slices.ContainsFunc(found, func(p settings.Problem) bool { return p.Variable == missing.Variable }) {
		problems = append(problems, v.Problem("store", "a store is needed. Give --store sqlite:PATH or --store postgres://…"))
	}
	cert, key := settings.Get[string](v, "tls-cert"), settings.Get[string](v, "tls-key")
	switch {
	case cert != "" && key == "":
		problems = append(problems, v.Problem("tls-cert", "its key is missing. Give --tls-key"))
	case cert == "" && key != "":
		problems = append(problems, v.Problem("tls-key", "its certificate is missing. Give --tls-cert"))
	case cert != "":
		problems = append(problems, i.checkCertificate(cert, key)...)
	case settings.Get[string](v, "tls-client-ca") != "":
		problems = append(problems, v.Problem("tls-client-ca", "client certificates need TLS. Give --tls-cert and --tls-key"))
	case !settings.Get[bool](v, "allow-plaintext"):
		problems = append(problems, i.inPlaintext()...)
	}
	switch kid, secret := settings.Get[string](v, "signing-kid"), settings.Get[string](v, "signing-secret"); {
	case kid != "" && secret == "":
		problems = append(problems, v.Problem("signing-kid", "its secret is missing. Give FF_SIGNING_SECRET_FILE"))
	case kid == "" && secret != "":
		problems = append(problems, v.Problem("signing-secret", "its name is missing. Give FF_SIGNING_KID"))
	}
	return problems
}

func (i *instance) checkCertificate(cert, key string) []settings.Problem {
	i.certs = &host.Certificates{CertFile: cert, KeyFile: key, ClientCAFile: settings.Get[string](i.values, "tls-client-ca")}
	if err := i.certs.Load(); err != nil {
		return []settings.Problem{i.values.Problem("tls-cert", err.Error())}
	}
	if end, err := i.certs.Expiry(); err != nil || end.Before(time.Now()) {
		return []settings.Problem{i.values.Problem("tls-cert", "the certificate has expired at "+end.UTC().Format(time.RFC3339))}
	}
	return nil
}

func (i *instance) setLevel(v *settings.Values) {
	var level slog.Level
	_ = level.UnmarshalText([]byte(settings.Get[string](v, "log-level"))) // settings validated the name
	i.level.Set(level)
}

// logger writes text on a terminal and in dev, else JSON (U195).
func (i *instance) logger() *slog.Logger {
	format := settings.Get[string](i.values, "log-format")
	if format == "text" || format == "auto" && (i.dev || isTerminal(i.session.Err)) {
		color := isTerminal(i.session.Err) && i.session.lookup("NO_COLOR") == ""
		return slog.New(tint.NewTextHandler(i.session.Err, &tint.Options{Level: i.level, TimeFormat: time.TimeOnly, NoColor: !color}))
	}
	return slog.New(slog.NewJSONHandler(i.session.Err, &slog.HandlerOptions{Level: i.level}))
}

// reload reads the log level again (SIGHUP).
func (i *instance) reload() {
	values, problems := i.session.serverSettings(i.cmd, i.dev)
	if len(problems) > 0 {
		i.log.Error("the settings cannot be read again; the old ones are kept", "problem", problems[0].String())
		return
	}
	i.setLevel(values)
	i.log.Info("read again", "log_level", i.level.Level().String())
}

// prepareFile creates the directory of dev's own store, and empties the store if requested.
func (i *instance) prepareFile(ctx context.Context, fresh bool) error {
	store := settings.Get[string](i.values, "store")
	path, isFile := strings.CutPrefix(store, "sqlite:")
	if !i.dev || !isFile {
		if fresh {
			return show.Invalid("--fresh", "", "only a SQLite store can be emptied")
		}
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return show.Invalid("--store", "run it in a directory that you can write to, or name a file elsewhere: --store sqlite:PATH", "%s", err)
	}
	if filepath.Base(filepath.Dir(path)) == ".flowfabric" {
		if err := os.WriteFile(filepath.Join(filepath.Dir(path), ".gitignore"), []byte("*\n"), 0o644); err != nil { //nolint:gosec // G306: it holds nothing but an asterisk
			return err
		}
	}
	if !fresh {
		return nil
	}
	return removeStore(ctx, path)
}

// tryEvery is the retry interval for a store that does not answer at start.
const tryEvery = 5 * time.Second

// open opens the store, and retries up to store-timeout if it does not answer (U180).
func (i *instance) open(ctx context.Context) (*flowfabric.Client, error) {
	deadline := time.Now().Add(settings.Get[time.Duration](i.values, "store-timeout"))
	for {
		cfg := openConfig(i.values, i.log)
		cfg.Tracer = i.tracer
		cfg.Webhooks.AllowLoopback = i.dev
		client, err := embedded.Open(ctx, settings.Get[string](i.values, "store"), cfg)
		full := flowfabric.CodeOf(err) == "store_full" // waiting does not help
		if err == nil || full || !errors.Is(err, flowfabric.ErrUnavailable) || time.Now().Add(tryEvery).After(deadline) {
			return client, notOpened(err)
		}
		i.log.Warn("the store does not answer yet", "error", err)
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(tryEvery):
		}
	}
}

// openConfig returns the engine's part of the settings.
func openConfig(v *settings.Values, log *slog.Logger) embedded.Config {
	kept := settings.Get[map[string]time.Duration](v, "retention")
	migrate, _ := api.ParseMigrateMode(settings.Get[string](v, "migrate")) // the settings know no other
	return embedded.Config{
		EngineConfig: flowfabric.EngineConfig{
			Logger:           log,
			Migrate:          migrate,
			UnsafeDurability: settings.Get[bool](v, "unsafe-durability"),
			MaxPayload:       settings.Get[int](v, "max-payload"),
			QueueLimit:       settings.Get[int](v, "queue-limit"),
			BatchLimit:       settings.Get[int](v, "batch-limit"),
			MaxClaims:        settings.Get[int](v, "max-claims"),
			PollInterval:     settings.Get[time.Duration](v, "poll-interval"),
			LeaseTTL:         settings.Get[time.Duration](v, "lease-ttl"),
			EventRetention:   settings.Get[time.Duration](v, "event-retention"),
			AuditRetention:   settings.Get[time.Duration](v, "audit-retention"),
			KeyGrace:         settings.Get[time.Duration](v, "key-grace"),
			MasterKey:        settings.Get[string](v, "master-key"),
			SigningKid:       settings.Get[string](v, "signing-kid"),
			SigningSecret:    settings.Get[string](v, "signing-secret"),
			Retention: flowfabric.Retention{
				Succeeded: kept["succeeded"], Failed: kept["failed"], Cancelled: kept["cancelled"], Expired: kept["expired"], Skipped: kept["skipped"],
			}.Normalized(),
			Webhooks: api.WebhookTargets{
				AllowHTTP:   settings.Get[bool](v, "webhook-allow-http"),
				AllowRanges: settings.Get[[]netip.Prefix](v, "webhook-allow-cidr"),
				Ports:       settings.Get[[]int](v, "webhook-ports"),
			},
		},
		Schema:    settings.Get[string](v, "store-schema"),
		DirectURL: settings.Get[string](v, "store-direct-url"),
		PoolSize:  settings.Get[int](v, "store-pool"),
		Timeout:   settings.Get[time.Duration](v, "store-timeout"),
	}
}

// serveStore listens and serves after checking who may call.
func (i *instance) serveStore(ctx context.Context, client *flowfabric.Client) error {
	if err := i.installKey(ctx, client); err != nil {
		return err
	}
	on, _ := inprocess.BackendOf(client) // which runs in this process
	open, err := i.openMode(ctx, on)
	if err != nil {
		return err
	}
	listeners, err := i.listening(ctx)
	if err != nil {
		return err
	}
	url := i.url(listeners.api.Addr())
	srv, err := server.New(on, i.serverConfig(open, url))
	if err != nil {
		return errors.Join(err, listeners.close())
	}
	info, err := client.Admin().Info(ctx)
	if err != nil {
		return errors.Join(err, listeners.close())
	}
	if open && settings.Get[bool](i.values, "insecure-open") {
		go remindHourly(ctx, i.log, srv.IsOpen)
	}
	err = host.Run(ctx, host.Config{
		HTTP: srv.HTTPServer(), Listener: srv.Listener(listeners.api), Beside: i.metricsBeside(srv, listeners.metrics), Certificates: i.certs,
		Drain: srv.Drain, Reload: i.reload, Ready: func() { i.ready(info, url) }, Log: i.log, DrainTimeout: settings.Get[time.Duration](i.values, "drain-timeout"),
	})
	i.log.Info("stopped")
	return err
}

// url is the address of the server from this host, or public-url.
func (i *instance) url(at net.Addr) string {
	if public := settings.Get[string](i.values, "public-url"); public != "" {
		return public
	}
	scheme := "http://"
	if i.certs != nil {
		scheme = "https://"
	}
	return scheme + at.String()
}

func (i *instance) serverConfig(open bool, url string) server.Config {
	v := i.values
	cfg := server.Config{
		Open: open, OpenByFlag: open && settings.Get[bool](v, "insecure-open"), Exposed: open && !i.onLoopback(), PublicURL: url, MaxPayload: int64(settings.Get[int](v, "max-payload")), MaxWait: settings.Get[time.Duration](v, "max-wait"),
		MaxReaders: settings.Get[int](v, "max-readers"), MaxReadersPerKey: settings.Get[int](v, "max-readers-per-key"), MaxClaims: settings.Get[int](v, "max-claims"),
		TrustedProxies: settings.Get[[]string](v, "trusted-proxies"), CORSOrigins: settings.Get[[]string](v, "cors-origins"),
		MaxConnectionsPerAddress: cmp.Or(settings.Get[int](v, "max-connections-per-address"), host.ConnectionsPerAddress(i.certs != nil)), TLS: i.certs != nil,
		MetricsOpen: settings.Get[bool](v, "metrics-open") && settings.Get[string](v, "metrics-listen") == "", Logger: i.log, Tracer: i.tracer, Version: i.session.Version, Commit: i.session.Commit,
	}
	if i.certs != nil {
		cfg.Checks = func() []api.Check { return []api.Check{i.checkTLS()} }
	}
	for _, row := range v.Rows() {
		cfg.Settings = append(cfg.Settings, server.Setting{Name: row.Name, Value: row.Value, Source: row.Source})
	}
	return cfg
}

// ready logs that the server is ready; dev also prints commands to try.
func (i *instance) ready(info api.Info, url string) {
	i.log.Info("ready", "version", i.session.Version, "store", info.Store.Kind, "store_version", info.Store.Version, "schema", info.Store.Schema, "address", url)
	if !i.dev {
		return
	}
	server := ""
	if url != settings.Client()[0].Default {
		server = " --server " + url
	}
	program := cmp.Or(i.session.Called, "flowfabric")
	fmt.Fprintf(i.session.Out, `FlowFabric is ready at %[1]s
Try in another terminal:
  %[2]s work%[3]s --kind upper -- tr a-z A-Z
  %[2]s submit%[3]s upper --text hello --wait
  %[2]s list%[3]s
`, url, program, server)
}
