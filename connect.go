package flowfabric

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/transport"
	httptransport "github.com/flowfabric/flowfabric/internal/transport/http"
	"github.com/flowfabric/flowfabric/internal/wire"
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
// Close closes the client, not the server.
//
// Codes: invalid_argument.
func Connect(server string, cfg ...ConnectConfig) (*Client, error) {
	options, err := transport.Single(cfg)
	if err != nil {
		return nil, err
	}
	address, err := url.Parse(server)
	switch {
	case err == nil && address.User != nil, err != nil && strings.Contains(server, "@"): // it may have a password, which no message shows
		return nil, newError(base.CodeInvalidArgument, "the address of a server has no user").At("server", "write it as https://host:port, and give the API key beside it")
	case err != nil, address.Scheme != "http" && address.Scheme != "https", address.Host == "", address.RawQuery != "":
		return nil, newError(base.CodeInvalidArgument, "%q is not the address of a server", server).At("server", "write it as https://host:port")
	case !wire.HeaderText(options.APIKey):
		return nil, newError(base.CodeInvalidArgument, "the API key has characters that no key has").At("api_key", "give it as it was shown")
	case !wire.HeaderText(options.Namespace):
		return nil, newError(base.CodeInvalidArgument, "%q is not a namespace", options.Namespace).At("namespace", "name one")
	}
	via := httptransport.New(httptransport.Config{
		Server: strings.TrimSuffix(address.String(), "/"), APIKey: options.APIKey, Namespace: options.Namespace, HTTP: options.HTTP,
		Tracer: options.Tracer, Retry: options.Retry, Clock: clock.System(),
	})
	return NewClient(via.Connection()), nil
}
