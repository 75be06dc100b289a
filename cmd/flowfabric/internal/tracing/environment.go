package tracing

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// delivery is how spans are sent, as the variables of OpenTelemetry say.
type delivery struct {
	headers http.Header
	timeout time.Duration // of one request; 0: none
	gzip    bool
	tls     *tls.Config // nil: as the host has it
}

// environment reads those variables. The one for traces counts where it is set; the one for all signals where it is not.
type environment struct {
	lookup   func(variable string) string
	problems []string
}

// read reports everything that cannot be read at once.
func (e *environment) read() (delivery, error) {
	d := delivery{headers: e.headers(), timeout: e.timeout(), gzip: e.gzip(), tls: e.tls()}
	if len(e.problems) > 0 {
		return delivery{}, errors.New(strings.Join(e.problems, "; "))
	}
	return d, nil
}

func (e *environment) refuse(variable, format string, values ...any) {
	e.problems = append(e.problems, variable+": "+fmt.Sprintf(format, values...))
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
		e.refuse(variable, "%s", err)
		return nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		e.refuse(variable, "%s has no certificate", path)
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
		e.refuse(certVariable, "its key is missing; give %s", keyVariable)
		return nil
	case cert == "":
		e.refuse(keyVariable, "its certificate is missing; give %s", certVariable)
		return nil
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		e.refuse(certVariable, "%s", err)
	}
	return &pair
}
