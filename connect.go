package flowfabric

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/core/base"
)

// ConnectConfig sets up a client of a server. The zero value is useful where the server asks for no credentials.
type ConnectConfig struct {
	APIKey    string
	Namespace string       // that calls are about; "": the one that the key is for
	HTTP      *http.Client // default: one of this client's own, which follows no redirects
	Tracer    Tracer       // nil: no spans; package flowfabricotel makes one from OpenTelemetry
	// Retry says how calls are repeated that the server could not serve: always under the same Idempotency-Key. The zero value: 5
	// times, after up to 100 ms, doubling to 5 s, all of it by chance. Of its fields MaxRetries, Backoff and MaxElapsed count.
	Retry RetryPolicy
}

// Connect makes a Client of a server: "https://host", with a path before /v1 if there is one. No request is made yet, so Connect
// succeeds also when nobody answers there.
//
// The client is as the one of Open, but Close closes the client, not the server.
//
// Codes: invalid_argument.
func Connect(server string, cfg ...ConnectConfig) (Client, error) {
	options, err := single(cfg)
	if err != nil {
		return nil, err
	}
	address, err := url.Parse(server)
	switch {
	case err == nil && address.User != nil, err != nil && strings.Contains(server, "@"): // it may have a password, which no message shows
		return nil, newError(base.CodeInvalidArgument, "the address of a server has no user").At("server", "write it as https://host:port, and give the API key beside it")
	case err != nil, address.Scheme != "http" && address.Scheme != "https", address.Host == "", address.RawQuery != "":
		return nil, newError(base.CodeInvalidArgument, "%q is not the address of a server", server).At("server", "write it as https://host:port")
	case !headerText(options.APIKey):
		return nil, newError(base.CodeInvalidArgument, "the API key has characters that no key has").At("api_key", "give it as it was shown")
	case !headerText(options.Namespace):
		return nil, newError(base.CodeInvalidArgument, "%q is not a namespace", options.Namespace).At("namespace", "name one")
	}
	return newRemote(strings.TrimSuffix(address.String(), "/"), options, clock.System()), nil
}

// headerText reports whether a header can carry the text.
func headerText(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r < 0x21 || r > 0x7e }) < 0
}

// How connections are kept by the client's own http.Client.
const (
	idleConnections = 64
	idleTime        = 90 * time.Second
)

// newHTTP makes an http.Client that keeps connections and takes a redirect for an answer: it would lose the body of a command.
func newHTTP() *http.Client {
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true,
		MaxIdleConns: idleConnections, MaxIdleConnsPerHost: idleConnections, IdleConnTimeout: idleTime,
	}
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
