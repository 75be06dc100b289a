// Package tracing sends spans to a collector by OTLP over HTTP (U216). It does not know what the spans are about.
package tracing

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/flowfabricotel"
)

// Config says where spans go.
type Config struct {
	Endpoint string  // base URL of the collector; /v1/traces is added
	Sample   float64 // which part of the traces that begin here is sent, 0..1; others follow their caller
	Version  string  // of the program
	Log      *slog.Logger
	Lookup   func(variable string) string // the environment, "" for what is not set; nil: nothing is
}

// Exporter sends spans until it is stopped.
type Exporter struct {
	provider *sdktrace.TracerProvider
	sender   *sender
	version  string
}

// Start makes an exporter. A collector that does not answer is no error, nor are variables of OpenTelemetry that cannot be read: the log
// names them, and they count as absent. It returns nil when spans cannot be sent without them: they name the certificates.
func Start(ctx context.Context, cfg Config) (*Exporter, error) {
	at, err := url.JoinPath(cfg.Endpoint, "v1", "traces")
	if err != nil {
		return nil, err
	}
	if cfg.Lookup == nil {
		cfg.Lookup = func(string) string { return "" }
	}
	variables := &environment{lookup: cfg.Lookup}
	how := variables.read()
	if how.tls != nil && !strings.HasPrefix(at, "https://") {
		variables.refuseToSend("OTEL_EXPORTER_OTLP_CERTIFICATE", "certificates are set, and the collector is not an https:// URL")
	}
	about, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "flowfabric"), attribute.String("service.version", cfg.Version)),
		resource.WithFromEnv(), // OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win
	)
	if err != nil {
		variables.refuse("OTEL_RESOURCE_ATTRIBUTES", "an attribute is not NAME=VALUE")
	}
	for _, problem := range variables.problems {
		cfg.Log.Warn("a variable of OpenTelemetry cannot be read and is ignored", "problem", problem)
	}
	if variables.unsafe {
		cfg.Log.Warn("no spans are sent: what protects the connection to the collector cannot be read")
		return nil, nil
	}
	sender := newSender(at, cfg.Version, how)
	limits := sdktrace.NewSpanLimits()
	limits.LinkCountLimit = -1 // a commit has a link to each of its commands
	return &Exporter{version: cfg.Version, sender: sender, provider: sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(&patient{SpanExporter: sender, log: cfg.Log}, how.batches...), sdktrace.WithResource(about), sdktrace.WithRawSpanLimits(limits),
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(cfg.Sample))),
	)}, nil
}

// Tracer makes the spans that the exporter sends.
func (e *Exporter) Tracer() flowfabric.Tracer {
	return flowfabricotel.New(e.provider, flowfabricotel.Config{Version: e.version})
}

// Stop sends what is left, for as long as ctx lasts.
func (e *Exporter) Stop(ctx context.Context) error {
	err := e.provider.Shutdown(ctx)
	return errors.Join(err, e.sender.Shutdown(ctx)) // the provider leaves a request that outlasts ctx alone
}

// quietFor is the interval at which a lasting failure is logged again (U217).
const quietFor = time.Minute

// patient logs at most once a minute that spans are lost, and returns no error.
type patient struct {
	sdktrace.SpanExporter
	log *slog.Logger

	mu       sync.Mutex
	warnedAt time.Time
	lost     int // spans since then
}

// ExportSpans sends spans, or loses them.
func (p *patient) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := p.SpanExporter.ExportSpans(ctx, spans)
	if err == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lost += len(spans)
	if now := time.Now(); now.Sub(p.warnedAt) >= quietFor {
		p.log.Warn("spans cannot be sent and are lost", "spans", p.lost, "error", err)
		p.warnedAt, p.lost = now, 0
	}
	return nil
}
