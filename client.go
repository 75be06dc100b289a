package flowfabric

import (
	"context"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/transport"
)

// Client is a FlowFabric: the engine in this process (Open), or a server's (Connect). It may be used from many goroutines at once.
//
// Commands that change something are repeated by the client, under the same key, while their outcome is unknown: up to five
// times, after 100 ms to 5 s. What any call may answer besides the codes it states: overloaded and store_unavailable (retryable),
// shutting_down once Close has begun, timeout when the outcome stayed unknown, internal and corruption. Ids that are no ids are
// invalid_id; two option structs are invalid_argument.
//
// The interface may grow; only this module implements it. Tests use package flowfabrictest, not fakes.
type Client interface {
	// Submit hands in a piece of work. When it returns without an error the execution is durable.
	//
	// Codes: invalid_argument, invalid_policy, invalid_capabilities, invalid_tag_key, payload_too_large, idempotency_conflict,
	// id_conflict, idempotency_in_progress, lane_not_accepting.
	Submit(ctx context.Context, s Submission) (SubmitResult, error)
	// SubmitMany hands in up to 10 000 pieces of work of 64 MiB together. Each is accepted or refused for itself, in its Err; the
	// answers stand in the order of the submissions. With Atomic all of them are accepted or none.
	//
	// Codes of the call: batch_too_large; with Atomic also the first refusal, whose Current has its index.
	SubmitMany(ctx context.Context, all []Submission, o ...SubmitManyOptions) ([]SubmitResult, error)
	// Get shows an execution. Codes: execution_not_found.
	Get(ctx context.Context, id ID) (*Execution, error)
	// Wait returns the execution when it has ended, however it ended. It waits as long as ctx allows.
	//
	// Codes: execution_not_found.
	Wait(ctx context.Context, id ID) (*Execution, error)
	// Cancel ends an execution that has not ended. One that was cancelled before is a success.
	//
	// Codes: execution_not_found, execution_not_active, precondition_failed (Expect), idempotency_conflict (the request key was used
	// for something else).
	Cancel(ctx context.Context, id ID, reason string, o ...CancelOptions) (*Execution, error)
	// Signal tells waiting work what happened outside. The token is the credential; who has it needs no other.
	//
	// Codes: missing_token, invalid_token for every token that does not open the waitpoint, invalid_signal, reserved_name,
	// reserved_source_type, payload_too_large, waitpoint_expired, waitpoint_closed, signal_limit_exceeded.
	Signal(ctx context.Context, s Signal) (SignalReceipt, error)
	// Nudge makes the engine look for work now, in these lanes or in all: after a transactional submit has committed.
	//
	// Codes: invalid_argument for a name that no lane can have.
	Nudge(ctx context.Context, lanes ...string) error

	Executions() Executions
	Operate() Operate
	Flows() Flows
	Waitpoints() Waitpoints
	Events() Events
	Budgets() Budgets
	Quotas() Quotas
	Lanes() Lanes
	Workers() Workers
	Work() Work
	Admin() Admin

	// Close stops the engine of Open, and lets go of the server of Connect: calls under way are finished, waiting ones end at
	// once, later ones answer shutting_down. Stop workers first.
	Close(ctx context.Context) error

	// Transport does the operations behind the groups; packages of this module use it.
	transport.Transport
	// seam keeps the interface closed and serves what only this package sees.
	seam() seam
}

// seam is what workers and transactional submits need of a client besides its methods.
type seam struct {
	clock    clock.Clock // by which a worker measures its leases
	tracer   Tracer      // of workers; nil: no spans
	claims   int         // that a worker has in flight while work flows; 0 counts as 1
	brief    bool        // all claims but the first wait for a moment only, and rest while there is no work
	submitTx func(ctx context.Context, tx any, s Submission) (*Execution, error)
}

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
