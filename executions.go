package flowfabric

import (
	"context"
	"iter"
	"time"
)

// Executions reads executions.
type Executions interface {
	// List walks the executions that match, fetching pages as the loop goes. What is there during the whole walk, and keeps its
	// place in the order, appears exactly once. An error ends the walk.
	//
	// Codes: invalid_filter, invalid_cursor.
	List(ctx context.Context, o ...ListOptions) iter.Seq2[*Execution, error]
	// Page gives one page of the list. Codes: invalid_filter, invalid_cursor.
	Page(ctx context.Context, o ...ListOptions) (Page[*Execution], error)
	// Count counts what matches: exactly up to 10 000, and on request also by value. Codes: invalid_filter, invalid_argument for
	// a By that is none.
	Count(ctx context.Context, f Filter, o ...CountOptions) (Count, error)
	// Input delivers the input, bit for bit. Codes: execution_not_found.
	Input(ctx context.Context, id ID) (Payload, error)
	// Result delivers the result, bit for bit; the zero Payload when the execution succeeded without one.
	//
	// Codes: execution_not_found, execution_not_terminal, execution_not_succeeded.
	Result(ctx context.Context, id ID) (Payload, error)
	// Attempts lists all attempts by index. Codes: execution_not_found.
	Attempts(ctx context.Context, id ID) ([]Attempt, error)
	// Attempt shows one attempt: that of an index, or LatestAttempt. Codes: execution_not_found, attempt_not_found.
	Attempt(ctx context.Context, id ID, index int) (*Attempt, error)
	// Explain says why an execution is not running: every cause with its numbers, its place in line, who could take it. It changes
	// nothing. Codes: execution_not_found, invalid_argument for a negative wait.
	Explain(ctx context.Context, id ID, o ...ExplainOptions) (*Explanation, error)
	// Leases walks the lease history by epoch; the newest 1000 are kept. Codes: execution_not_found.
	Leases(ctx context.Context, id ID) iter.Seq2[LeaseRecord, error]
	// LeasesPage gives one page of the lease history. Codes: execution_not_found, invalid_cursor.
	LeasesPage(ctx context.Context, id ID, o ...PageOptions) (Page[LeaseRecord], error)
	// Steps lists what the present run remembers, in order of writing. Codes: execution_not_found.
	Steps(ctx context.Context, id ID, o ...StepsOptions) ([]StepRecord, error)
	// Suspension shows the wait that is open, or else the one of this run that ended last; nil when there was none. Reading it
	// consumes nothing. Codes: execution_not_found.
	Suspension(ctx context.Context, id ID) (*SuspensionRecord, error)
	// Suspensions walks all waits, oldest first, without payloads. Codes: execution_not_found.
	Suspensions(ctx context.Context, id ID) iter.Seq2[SuspensionRecord, error]
	// SuspensionsPage gives one page of them. Codes: execution_not_found, invalid_cursor.
	SuspensionsPage(ctx context.Context, id ID, o ...PageOptions) (Page[SuspensionRecord], error)
	// Signals walks the signals that were taken in, in their order. Codes: execution_not_found.
	Signals(ctx context.Context, id ID, q ...SignalQuery) iter.Seq2[SignalRecord, error]
	// SignalsPage gives one page of them. Codes: execution_not_found, invalid_cursor.
	SignalsPage(ctx context.Context, id ID, q ...SignalQuery) (Page[SignalRecord], error)
	// Usage shows what was used, by dimension, with or without budgets: of all attempts, or of one. Codes: execution_not_found,
	// attempt_not_found.
	Usage(ctx context.Context, id ID, o ...UsageOptions) (ExecutionUsage, error)
	// Budgets shows the budgets that decide whether the execution may start, and whether they would let it start now. Codes:
	// execution_not_found.
	Budgets(ctx context.Context, id ID) (ApplicableBudgets, error)
	// Children walks what the present run spawned, by name: the members of its children flow. What earlier runs spawned is found by
	// List with ParentID. Codes: execution_not_found.
	Children(ctx context.Context, id ID) iter.Seq2[FlowMember, error]
	// ChildrenPage gives one page of them. Codes: execution_not_found, invalid_cursor.
	ChildrenPage(ctx context.Context, id ID, o ...PageOptions) (Page[FlowMember], error)
	// NamedInput delivers what a member of a flow got from another, bit for bit; the zero Payload when that left no result.
	//
	// Codes: execution_not_found, input_not_found.
	NamedInput(ctx context.Context, id ID, name string) (Payload, error)
	// SetTags replaces each key that is given and deletes those whose value is nil, all or nothing, and answers all tags.
	//
	// Codes: execution_not_found, invalid_tag_key, invalid_argument, precondition_failed, idempotency_conflict.
	SetTags(ctx context.Context, id ID, changes map[string]*string, o ...Action) (map[string]string, error)

	sealed()
}

// ListOptions say what a list shows. The zero value: everything, newest first, in pages of 100.
type ListOptions struct {
	Filter
	Order  Order
	Limit  int    // of a page; 0: 100, above 1000 counts as 1000
	Cursor string // NextCursor of the page before, with the same filter and order
}

// Order is the order of a list. Ties go by id.
type Order string

// The orders of a list; "" is CreatedDesc.
const (
	CreatedDesc   Order = "created_desc"
	CreatedAsc    Order = "created_asc"
	CompletedDesc Order = "completed_desc" // finished ones only
	IDAsc         Order = "id_asc"
)

// Filter selects executions: all given parts must hold, of the values in one part any. The zero Filter selects everything.
type Filter struct {
	Status         []Status
	PublicState    []string
	Reason         []string
	Next           []string // what the next acquisition does: initial, retry, reclaim, replay, resume
	Kind           []string
	Lane           []string
	InstanceID     []string // of the worker that holds the lease or held the last one
	FlowID         []ID
	ParentID       []ID
	Creator        []string
	IdempotencyKey []string
	Tags           map[string]string // these keys with these values
	HasTags        []string          // these keys with any value
	CreatedFrom    time.Time         // ranges include their beginning and exclude their end
	CreatedTo      time.Time
	CompletedFrom  time.Time
	CompletedTo    time.Time
	UpdatedFrom    time.Time
	UpdatedTo      time.Time
	PriorityMin    *int
	PriorityMax    *int
	Query          string // beginning of an id, an idempotency key, or words of kind, tags and failure message
}

// LatestAttempt is the index of the last attempt, whatever that is.
const LatestAttempt = -1

// CountOptions say by what to count.
type CountOptions struct {
	By string // "status", "public_state", "kind", "lane" or "tag.<key>"; "": the total alone
}

// Count is an answer to Count.
type Count struct {
	Total   int
	AtLeast bool // there are more than Total, or more of some value than Counts says
	// Counts is how many there are of each value, when By is given; what does not have the tag is in no count. It is exact while
	// Total is. Beyond, each value is counted for itself, exactly up to 10 000: every status, public state, lane and kind, and the
	// tag values of the first 10 000 found; at most 100 values.
	Counts map[string]int
	AsOf   time.Time
}

// StepsOptions choose the run whose steps are listed.
type StepsOptions struct {
	Run *int // nil: the present one
}
