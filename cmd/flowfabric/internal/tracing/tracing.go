// Package tracing sends spans to a collector by OTLP over HTTP (U216). It does not know what the spans are about.
package tracing

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
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

// Start makes an exporter. It fails only for settings that cannot work: a collector that does not answer is no reason not to start.
func Start(ctx context.Context, cfg Config) (*Exporter, error) {
	at, err := url.JoinPath(cfg.Endpoint, "v1", "traces")
	if err != nil {
		return nil, err
	}
	if cfg.Lookup == nil {
		cfg.Lookup = func(string) string { return "" }
	}
	how, err := (&environment{lookup: cfg.Lookup}).read()
	if err != nil {
		return nil, err
	}
	sender, err := newSender(at, cfg.Version, how)
	if err != nil {
		return nil, err
	}
	about, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "flowfabric"), attribute.String("service.version", cfg.Version)),
		resource.WithFromEnv(), // OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win
	)
	if err != nil {
		return nil, err
	}
	limits := sdktrace.NewSpanLimits()
	limits.LinkCountLimit = -1 // a commit has a link to each of its commands
	return &Exporter{version: cfg.Version, sender: sender, provider: sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(&patient{SpanExporter: sender, log: cfg.Log}), sdktrace.WithResource(about), sdktrace.WithRawSpanLimits(limits),
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

// quietFor is how long a failure that lasts is not told again (U217).
const quietFor = time.Minute

// patient tells the log once a minute that spans are lost, and nobody else.
type patient struct {
	sdktrace.SpanExporter
	log *slog.Logger

	mu   sync.Mutex
	told time.Time
	lost int // spans since then
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
	if now := time.Now(); now.Sub(p.told) >= quietFor {
		p.log.Warn("spans cannot be sent and are lost", "spans", p.lost, "error", err)
		p.told, p.lost = now, 0
	}
	return nil
}
