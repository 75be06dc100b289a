package flowfabric

import (
	"context"
	"net/http"

	"github.com/flowfabric/flowfabric/ops"
	"github.com/flowfabric/flowfabric/workapi"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/metrics"
	"github.com/flowfabric/flowfabric/internal/transport"
)

// Client is a client of FlowFabric: of a server (Connect), or of the engine in this process (sqlite.Open, postgres.Open,
// embedded.Open). It is safe for concurrent use.
//
// While the outcome of a command that changes something is unknown, the client repeats it under the same key: up to five times,
// after 100 ms to 5 s. Besides the codes that it documents, any call may return overloaded and store_unavailable (retryable),
// shutting_down once Close has begun, timeout when the outcome stayed unknown, internal and corruption. A malformed id is
// invalid_id; more than one option struct is invalid_argument.
//
// Tests use package flowfabrictest, not fakes.
type Client struct {
	conn   transport.Connection
	claims int // that a worker has in flight while claims bring work; 0 counts as 1
}

// NewClient returns a client that uses a connection. Only packages of this module can make connections: Connect, sqlite.Open,
// postgres.Open, embedded.Open and flowfabrictest.New do.
func NewClient(c transport.Connection) *Client { return &Client{conn: c, claims: flowingClaims} }

// Connection returns the connection of the client, for packages of this module.
func (c *Client) Connection() transport.Connection { return c.conn }

// Executions reads executions and their parts.
func (c *Client) Executions() ops.Executions { return ops.On(c.conn).Executions() }

// Flows returns the calls on flows, which are graphs of executions.
func (c *Client) Flows() Flows { return Flows{c.conn, c.conn.Clock} }

// Operate returns the calls of operators on executions.
func (c *Client) Operate() ops.Operate { return ops.On(c.conn).Operate() }

// Waitpoints returns the calls on waitpoints, the addresses at which work waits for signals.
func (c *Client) Waitpoints() ops.Waitpoints { return ops.On(c.conn).Waitpoints() }

// Streams reads what attempts say while they work.
func (c *Client) Streams() ops.Streams { return ops.On(c.conn).Streams() }

// Events reads the event log.
func (c *Client) Events() ops.Events { return ops.On(c.conn).Events() }

// Quotas returns the calls on quotas, which limit when work starts.
func (c *Client) Quotas() ops.Quotas { return ops.On(c.conn).Quotas() }

// Lanes returns the calls that show and control lanes.
func (c *Client) Lanes() ops.Lanes { return ops.On(c.conn).Lanes() }

// Workers returns the calls that show and control worker instances.
func (c *Client) Workers() ops.Workers { return ops.On(c.conn).Workers() }

// Budgets returns the calls on budgets, which limit what work uses.
func (c *Client) Budgets() ops.Budgets { return ops.On(c.conn).Budgets() }

// Work returns the worker protocol.
func (c *Client) Work() workapi.Work { return workapi.On(c.conn) }

// Admin returns the calls of administrators.
func (c *Client) Admin() ops.Admin { return ops.On(c.conn).Admin() }

// Metrics serves the metrics of the client's engine as Prometheus text. They are always collected and are described in
// docs/metrics.md. The engine of a Connect client runs elsewhere: its metrics are served by the server, and this handler answers
// 404.
func (c *Client) Metrics() http.Handler {
	if c.conn.Metrics == nil {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "the engine does not run in this process: ask its server for /metrics", http.StatusNotFound)
		})
	}
	return metrics.Compressed(metrics.Registry{c.conn.Metrics})
}

// Close stops an engine in this process, or closes the connection of Connect: calls in progress are finished, waiting ones end at
// once, later ones return shutting_down. Stop workers first.
func (c *Client) Close(ctx context.Context) error { return c.conn.Close(ctx) }

// SubmitManyOptions are the options of SubmitMany.
type SubmitManyOptions struct {
	Atomic bool // all or none, in one transaction
}

// PageOptions select a page of a list.
type PageOptions = api.PageOptions

// Page is a page of a list. NextCursor is "" on the last page.
type Page[T any] = api.Page[T]

// CancelOptions are the options of a cancel besides its reason.
type CancelOptions struct {
	RequestKey string     // makes the call repeatable for 24 hours; minted by the client when empty
	Expect     ops.Expect // refuse with precondition_failed when the execution is not as expected
}
