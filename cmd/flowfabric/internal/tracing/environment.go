package tracing

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// delivery is how spans are sent, as the variables of OpenTelemetry say.
type delivery struct {
	headers http.Header
	timeout time.Duration // of one request; 0: none
	gzip    bool
	tls     *tls.Config // nil: as the host has it
	batches []sdktrace.BatchSpanProcessorOption
}

// environment reads those variables. The one for traces counts where it is set; the one for all signals where it is not.
// One that cannot be read is a problem and counts as absent; without the certificates that are named nothing may be sent.
type environment struct {
	lookup   func(variable string) string
	problems []string
	unsafe   bool // what cannot be read protects the connection
}

func (e *environment) read() delivery {
	return delivery{headers: e.headers(), timeout: e.timeout(), gzip: e.gzip(), tls: e.tls(), batches: e.batches()}
}

func (e *environment) refuse(variable, format string, values ...any) {
	e.problems = append(e.problems, variable+": "+fmt.Sprintf(format, values...))
}

// refuseToSend is refuse for a variable without which nothing may be sent.
func (e *environment) refuseToSend(variable, format string, values ...any) {
	e.refuse(variable, format, values...)
	e.unsafe = true
}

// maxBatching bounds the variables about batches.
const maxBatching = 1 << 20

// batches says how spans are gathered before they are sent. The library takes these variables as they are.
func (e *environment) batches() (options []sdktrace.BatchSpanProcessorOption) {
	queue := e.number("OTEL_BSP_MAX_QUEUE_SIZE", sdktrace.DefaultMaxQueueSize)
	return []sdktrace.BatchSpanProcessorOption{
		sdktrace.WithMaxQueueSize(queue),
		sdktrace.WithMaxExportBatchSize(min(e.number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", sdktrace.DefaultMaxExportBatchSize), queue)),
		sdktrace.WithBatchTimeout(time.Duration(e.number("OTEL_BSP_SCHEDULE_DELAY", sdktrace.DefaultScheduleDelay)) * time.Millisecond),
		sdktrace.WithExportTimeout(time.Duration(e.number("OTEL_BSP_EXPORT_TIMEOUT", sdktrace.DefaultExportTimeout)) * time.Millisecond),
	}
}

func (e *environment) number(variable string, otherwise int) int {
	value := strings.TrimSpace(e.lookup(variable))
	if value == "" {
		return otherwise
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > maxBatching {
		e.refuse(variable, "%q is not a number within 1 and %d", value, maxBatching)
		return otherwise
	}
	return n
}

// get is the value with the variable that has it; an empty one counts as absent.
func (e *environment) get(forTraces, forAll string) (variable, value string) {
	if value := strings.TrimSpace(e.lookup(forTraces)); value != "" {
		return forTraces, value
	}
	return forAll, strings.TrimSpace(e.lookup(forAll))
}

// defaultTimeout is what OpenTelemetry says.
const defaultTimeout = 10 * time.Second

func (e *environment) timeout() time.Duration {
	variable, value := e.get("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT")
	if value == "" {
		return defaultTimeout
	}
	n, err := strconv.ParseUint(value, 10, 32)
	if err != nil {
		e.refuse(variable, "%q is not a number of milliseconds", value)
		return defaultTimeout
	}
	return time.Duration(n) * time.Millisecond
}

func (e *environment) gzip() bool {
	variable, value := e.get("OTEL_EXPORTER_OTLP_TRACES_COMPRESSION", "OTEL_EXPORTER_OTLP_COMPRESSION")
	if value != "" && value != "none" && value != "gzip" {
		e.refuse(variable, "%q is neither gzip nor none", value)
	}
	return value == "gzip"
}

// headers reads NAME=VALUE pairs by comma, with the values escaped as in a URL. Values may be secrets: no problem tells them.
func (e *environment) headers() http.Header {
	variable, value := e.get("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS")
	headers := http.Header{}
	for pair := range strings.SplitSeq(value, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, escaped, found := strings.Cut(pair, "=")
		name = strings.TrimSpace(name)
		text, err := url.PathUnescape(escaped)
		text = strings.TrimSpace(text)
		switch {
		case !found:
			e.refuse(variable, "a header is not NAME=VALUE")
		case name == "" || strings.ContainsFunc(name, notInName):
			e.refuse(variable, "%q is not a name of a header", name)
		case err != nil || strings.ContainsFunc(text, notInValue):
			e.refuse(variable, "the value of %s is not one of a header", name)
		default:
			headers.Set(name, text)
		}
	}
	return headers
}

// notInName finds what names of headers cannot have (RFC 9110, token).
func notInName(c rune) bool {
	letter := 'a' <= c|0x20 && c|0x20 <= 'z'
	return !letter && !('0' <= c && c <= '9') && !strings.ContainsRune("!#$%&'*+-.^_`|~", c)
}

// notInValue finds what values of headers cannot have.
func notInValue(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }

// tls is nil when no variable says anything about it.
func (e *environment) tls() *tls.Config {
	authorities, own := e.authorities(), e.certificate()
	if authorities == nil && own == nil {
		return nil
	}
	cfg := &tls.Config{RootCAs: authorities}
	if own != nil {
		cfg.Certificates = []tls.Certificate{*own}
	}
	return cfg
}

// authorities are those that the collector's certificate is checked against; nil: those of the host.
func (e *environment) authorities() *x509.CertPool {
	variable, path := e.get("OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", "OTEL_EXPORTER_OTLP_CERTIFICATE")
	if path == "" {
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		e.refuseToSend(variable, "%s", err)
		return nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		e.refuseToSend(variable, "%s has no certificate", path)
	}
	return pool
}

// certificate is what is shown to a collector that asks for one; nil: none.
func (e *environment) certificate() *tls.Certificate {
	certVariable, keyVariable := "OTEL_EXPORTER_OTLP_TRACES_CLIENT_CERTIFICATE", "OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY"
	cert, key := strings.TrimSpace(e.lookup(certVariable)), strings.TrimSpace(e.lookup(keyVariable))
	if cert == "" && key == "" { // a certificate and a key of different origin are no pair
		certVariable, keyVariable = "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", "OTEL_EXPORTER_OTLP_CLIENT_KEY"
		cert, key = strings.TrimSpace(e.lookup(certVariable)), strings.TrimSpace(e.lookup(keyVariable))
	}
	switch {
	case cert == "" && key == "":
		return nil
	case key == "":
		e.refuseToSend(certVariable, "its key is missing; give %s", keyVariable)
		return nil
	case cert == "":
		e.refuseToSend(keyVariable, "its certificate is missing; give %s", certVariable)
		return nil
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		e.refuseToSend(certVariable, "%s", err)
	}
	return &pair
}
