package flowfabric

import (
	"crypto/x509"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric/internal/calls"

	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/transport"
	httptransport "github.com/flowfabric/flowfabric/internal/transport/http"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// ConnectConfig configures Connect. The zero value is enough for a server that requires no credentials.
type ConnectConfig struct {
	APIKey    string
	Namespace string       // of the calls; "": the one of the API key
	HTTP      *http.Client // default: a client that follows no redirects
	// RootCAs are the authorities that may sign the certificate of the server; nil: those of the system. With HTTP it must be nil:
	// configure the transport of that client.
	RootCAs *x509.CertPool
	Tracer  Tracer // nil: no spans; package flowfabricotel makes one from OpenTelemetry
	// Retry configures how calls are repeated that the server could not serve; they keep their Idempotency-Key. The zero value: 5
	// times, after a random delay of up to 100 ms, which doubles up to 5 s. Only MaxRetries, Backoff and MaxElapsed are used.
	Retry RetryPolicy
}

// Connect returns a Client of the server at an address: "https://host", with a path before /v1 if there is one. Several servers that use
// one store are separated by commas: "https://a,https://b". The client then uses one of them, and another at once when that fails;
// commands whose outcome is unknown are repeated there under the same key. Connect makes no request, so it succeeds even if no server
// can be reached.
//
// Close closes the client, not the server.
//
// Codes: invalid_argument; of the first calls wrong_database if the addresses belong to servers of different stores.
func Connect(servers string, cfg ...ConnectConfig) (*Client, error) {
	options, err := transport.Single(cfg)
	if err != nil {
		return nil, err
	}
	addresses, err := addressesIn(servers)
	switch {
	case err != nil:
		return nil, err
	case options.HTTP != nil && options.RootCAs != nil:
		return nil, calls.Refuse(base.CodeInvalidArgument, "RootCAs and HTTP are both set").At("root_cas", "set RootCAs in the TLSClientConfig of the transport of HTTP")
	case !wire.HeaderText(options.APIKey):
		return nil, calls.Refuse(base.CodeInvalidArgument, "the API key has characters that no key has").At("api_key", "give it as it was shown")
	case !wire.HeaderText(options.Namespace):
		return nil, calls.Refuse(base.CodeInvalidArgument, "%q is not a namespace", options.Namespace).At("namespace", "name one")
	}
	via := httptransport.New(httptransport.Config{
		Servers: addresses, APIKey: options.APIKey, Namespace: options.Namespace, HTTP: options.HTTP, RootCAs: options.RootCAs,
		Tracer: options.Tracer, Retry: options.Retry, Clock: clock.System(),
	})
	return NewClient(via.Connection()), nil
}

// maxServers is the maximum number of addresses of a client.
const maxServers = 64

// addressesIn splits a list of addresses and checks each of them.
func addressesIn(servers string) ([]string, error) {
	var all []string
	for one := range strings.SplitSeq(servers, ",") {
		address, err := addressOf(strings.TrimSpace(one))
		switch {
		case err != nil:
			return nil, err
		case slices.Contains(all, address):
			return nil, calls.Refuse(base.CodeInvalidArgument, "the server %s is named twice", address).At("server", "name every server once")
		case len(all) == maxServers:
			return nil, calls.Refuse(base.CodeInvalidArgument, "more than %d servers", maxServers).At("server", "name fewer, or put a load balancer in front of them")
		}
		all = append(all, address)
	}
	return all, nil
}

// addressOf checks the address of one server.
func addressOf(server string) (string, error) {
	const form = "write it as https://host:port, several separated by commas"
	address, err := url.Parse(server)
	switch {
	case err == nil && address.User != nil, err != nil && strings.Contains(server, "@"): // the address may contain a password, which must not appear in a message
		return "", calls.Refuse(base.CodeInvalidArgument, "the address of a server has no user").At("server", "write it as https://host:port, and give the API key beside it")
	case err != nil, address.Scheme != "http" && address.Scheme != "https", address.Host == "", address.RawQuery != "", address.Fragment != "":
		return "", calls.Refuse(base.CodeInvalidArgument, "%q is not the address of a server", server).At("server", form)
	}
	return strings.TrimSuffix(address.String(), "/"), nil
}
