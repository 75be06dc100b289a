package flowfabric

import (
	"context"
	"net/http"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/metrics"
	"github.com/flowfabric/flowfabric/internal/transport"
)

// Client is a FlowFabric: a server's (Connect), or the engine in this process (sqlite.Open, postgres.Open, embedded.Open). It may be used
// from many goroutines at once.
//
// Commands that change something are repeated by the client, under the same key, while their outcome is unknown: up to five
// times, after 100 ms to 5 s. What any call may answer besides the codes it states: overloaded and store_unavailable (retryable),
// shutting_down once Close has begun, timeout when the outcome stayed unknown, internal and corruption. Ids that are no ids are
// invalid_id; two option structs are invalid_argument.
//
// Tests use package flowfabrictest, not fakes.
type Client struct {
	conn   transport.Connection
	claims int // that a worker has in flight while work flows; 0 counts as 1
}

// NewClient makes a client of a connection. Only packages of this module can make connections: Connect, sqlite.Open, postgres.Open,
// embedded.Open and flowfabrictest.New do.
func NewClient(c transport.Connection) *Client { return &Client{conn: c, claims: flowingClaims} }

// Connection is what the client was made of, for packages of this module.
func (c *Client) Connection() transport.Connection { return c.conn }

// Executions reads executions, and what belongs to one.
func (c *Client) Executions() Executions { return Executions{c.conn} }

// Flows are graphs of executions.
func (c *Client) Flows() Flows { return Flows{c.conn, c.conn.Clock} }

// Operate is what operators do to executions.
func (c *Client) Operate() Operate { return Operate{c.conn} }

// Waitpoints are what work waits at.
func (c *Client) Waitpoints() Waitpoints { return Waitpoints{c.conn} }

// Events reads the log.
func (c *Client) Events() Events { return Events{c.conn, c.conn.Clock} }

// Quotas limit when work starts.
func (c *Client) Quotas() Quotas { return Quotas{c.conn} }

// Lanes steers the lanes.
func (c *Client) Lanes() Lanes { return Lanes{c.conn} }

// Workers shows and steers the fleet.
func (c *Client) Workers() Workers { return Workers{c.conn} }

// Budgets limit what work uses.
func (c *Client) Budgets() Budgets { return Budgets{c.conn} }

// Work is the worker protocol itself.
func (c *Client) Work() Work { return Work{c.conn} }

// Admin is what administrators do.
func (c *Client) Admin() Admin { return Admin{c.conn} }

// Metrics serves, as Prometheus text, what the engine of the client measures. They are always on; what they mean is told in
// docs/metrics.md. The engine of a Connect client runs elsewhere: its metrics are those of the server, and the handler answers 404.
func (c *Client) Metrics() http.Handler {
	if c.conn.Metrics == nil {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "the engine does not run in this process: ask its server for /metrics", http.StatusNotFound)
		})
	}
	return metrics.Compressed(metrics.Registry{c.conn.Metrics})
}

// Close stops an engine in this process, and lets go of the server of Connect: calls under way are finished, waiting ones end at
// once, later ones answer shutting_down. Stop workers first.
func (c *Client) Close(ctx context.Context) error { return c.conn.Close(ctx) }

// SubmitManyOptions say how a batch is submitted.
type SubmitManyOptions struct {
	Atomic bool // all or none, in one transaction
}

// PageOptions ask for a part of a list.
type PageOptions = api.PageOptions

// Page is a part of a list. NextCursor is "" when nothing follows.
type Page[T any] = api.Page[T]

// Action is what every operator's command may carry.
type Action struct {
	Reason     string // at most 1024 bytes; stands in the event
	RequestKey string // makes the call repeatable for 24 hours; minted by the client when empty
	Expect     Expect // refuse with precondition_failed when the execution is not as expected
}

// CancelOptions are what a cancel may carry besides its reason.
type CancelOptions struct {
	RequestKey string // makes the call repeatable for 24 hours; minted by the client when empty
	Expect     Expect // refuse with precondition_failed when the execution is not as expected
}

// Expect is what an operator believes of an execution; zero fields are not compared.
type Expect struct {
	Status     Status
	LeaseID    string
	LeaseEpoch int64
}
