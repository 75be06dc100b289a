package flowfabric

import (
	"context"
	"time"

	"github.com/flowfabric/flowfabric/api"
)

// Waitpoint is an address at which work waits for signals.
type Waitpoint = api.Waitpoint

// The states of a waitpoint.
const (
	WaitpointPending = "pending"
	WaitpointActive  = "active"
	WaitpointClosed  = "closed"
)

// WaitpointOptions are the options of a new waitpoint.
type WaitpointOptions struct {
	ExpiresIn      time.Duration // while no work waits at it; 0: a day, at most a year
	ID             string        // "": generated
	IdempotencyKey string        // the same call again, also in a later attempt, returns the same waitpoint; "": the key of the waitpoint is used, so that a handler that runs again gets the existing one
	Another        bool          // a new waitpoint at each call: no idempotency key
}

// Condition says which signals end a wait. Make one by OnSignal, AllOf, AnyOf, CountOf, OperatorOnly, TimeoutOnly.
type Condition = api.Condition

// Suspension configures a wait.
type Suspension = api.Suspension

// Binding is a waitpoint of a suspension: NewWaitpoint or ExistingWaitpoint.
type Binding = api.Binding

// TimeoutBehavior is what happens to a suspension at its timeout.
type TimeoutBehavior = api.TimeoutBehavior

// The behaviours at a timeout.
const (
	FailOnTimeout     = api.FailOnTimeout
	CancelOnTimeout   = api.CancelOnTimeout
	ExpireOnTimeout   = api.ExpireOnTimeout
	ResumeOnTimeout   = api.ResumeOnTimeout   // resume, with a signal named TimeoutSignal
	EscalateOnTimeout = api.EscalateOnTimeout // keep waiting, for an operator
)

// TimeoutSignal is the name of the signal that reports a timeout.
const TimeoutSignal = "__timeout__"

// The reasons for a suspension.
const (
	WaitingForSignal         = "waiting_for_signal"
	WaitingForApproval       = "waiting_for_approval"
	WaitingForCallback       = "waiting_for_callback"
	WaitingForToolResult     = "waiting_for_tool_result"
	WaitingForOperatorReview = "waiting_for_operator_review"
	PausedByPolicy           = "paused_by_policy"
	PausedByBudget           = "paused_by_budget"
	StepBoundary             = "step_boundary"
	ManualPause              = "manual_pause"
)

// Resume is how a wait ended.
type Resume = api.Resume

// Signal reports an outside event to waiting work. Token is the credential.
type Signal = api.Signal

// SignalRecord is a signal as it was accepted.
type SignalRecord = api.SignalRecord

// LinkChoice is a button of a link.
type LinkChoice = api.LinkChoice

// ApprovalLink is a link with which one named person can decide once. URL is set when the link is made and by Waitpoints.LinkURL;
// it is left out when the link is printed, logged or encoded as JSON.
type ApprovalLink = api.ApprovalLink

// Approval is a question to people, see Task.Ask.
type Approval struct {
	Key     string // identifies the question within the execution, and its waitpoint; also the name of a Step, so 1..100 bytes of 0x21..0x7e
	Title   string
	Message string
	// Approvers get a link each when the question is first asked in a run. Approvers that a later call of the handler adds get
	// none: use Waitpoints.NewLink.
	Approvers []string
	Quorum    int // number of different people who must approve; 0: one
	// NoVeto: a rejection does not end the wait, which lasts until the quorum is reached, regardless of the number of rejections:
	// operators may approve as well as those asked. So set a Timeout; with ResumeOnTimeout the decision lists those who approved
	// by then.
	NoVeto          bool
	CommentRequired bool
	// Notify gets the links once, in order to send them. It runs as a Step: if it fails, or the process dies, it runs again, with
	// the same links for a day and with new ones after that.
	Notify     func(ctx context.Context, links []ApprovalLink) error
	Timeout    time.Duration // 0: by the policy, else none
	OnTimeout  TimeoutBehavior
	LinkExpiry time.Duration // 0: until the question ends, at most ninety days
}

// Decision is the answer to an Approval.
type Decision struct {
	Approved bool
	By       []string // who approved; for a rejection, who rejected, at least one
	Comment  string   // the last comment among theirs
	TimedOut bool     // with ResumeOnTimeout: there was no decision in time
	Resume   Resume
}

// WaitOptions are the options of AwaitSignal.
type WaitOptions struct {
	Name       string     // of the signal; "": any
	Waitpoint  *Waitpoint // made earlier; nil: a new one
	ReasonCode string
	Timeout    time.Duration
	// TimeoutAt must be the same in every call of the handler, so take it from the input or a Step. A time computed from the
	// current time makes a different wait under the same key: idempotency_conflict.
	TimeoutAt time.Time
	OnTimeout TimeoutBehavior
	// Notify gets the waitpoint once, before the wait, in order to pass on its token or address. It runs as a Step.
	Notify func(ctx context.Context, w Waitpoint) error
}
