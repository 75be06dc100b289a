package flowfabric

import (
	"context"
	"time"

	"github.com/flowfabric/flowfabric/api"
)

// Waitpoint is an address at which work waits for signals.
type Waitpoint = api.Waitpoint

// IssuedWaitpoint is a waitpoint whose JSON shows its token and its address: Waitpoint.Issued.
type IssuedWaitpoint = api.IssuedWaitpoint

// The states of a waitpoint.
const (
	WaitpointPending = "pending"
	WaitpointActive  = "active"
	WaitpointClosed  = "closed"
)

// WaitpointOptions say how a waitpoint is made.
type WaitpointOptions struct {
	ExpiresIn      time.Duration // while nothing waits at it; 0: a day, at most a year
	ID             string        // "": minted
	IdempotencyKey string        // the same call again, also of a later attempt, gets the same waitpoint; "": its key, so that a handler that runs again gets the one it has
	Another        bool          // a new waitpoint at each call: no idempotency key
}

// Condition says which signals are enough. Make one by OnSignal, AllOf, AnyOf, CountOf, OperatorOnly, TimeoutOnly.
type Condition = api.Condition

// Suspension is what a handler waits for.
type Suspension = api.Suspension

// Binding is a waitpoint of a suspension: Fresh or Pending.
type Binding = api.Binding

// TimeoutBehavior is what happens to a suspension whose time is over.
type TimeoutBehavior = api.TimeoutBehavior

// The behaviours at a timeout.
const (
	FailOnTimeout     = api.FailOnTimeout
	CancelOnTimeout   = api.CancelOnTimeout
	ExpireOnTimeout   = api.ExpireOnTimeout
	ResumeOnTimeout   = api.ResumeOnTimeout   // go on, with a signal named TimeoutSignal
	EscalateOnTimeout = api.EscalateOnTimeout // wait on, for an operator
)

// TimeoutSignal is the name of the signal that tells of a timeout.
const TimeoutSignal = "__timeout__"

// Why work is suspended.
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

// SuspensionRecord is a suspension as it is kept.
type SuspensionRecord = api.SuspensionRecord

// Signal is something that happened outside, for work that waits. Token is the credential.
type Signal = api.Signal

// SignalReceipt is the answer to a signal.
type SignalReceipt = api.SignalReceipt

// SignalRecord is a signal as it was taken in.
type SignalRecord = api.SignalRecord

// Approve is an operator's signal: it needs no token.
type Approve struct {
	Action
	WaitpointID string // "": the only one that is active
	Name        string // "": approved
	Suffix      string // tells apart what one person says twice
	Lane        string // "": not compared
	Payload     Payload
	Comment     string
}

// ResumeOptions say how an operator resumes.
type ResumeOptions struct {
	Action
	Delay                time.Duration
	ExpectedSuspensionID string // "": whichever is open
}

// LinkOptions say whom a link asks, and what.
type LinkOptions struct {
	Approver        string
	Decisions       []LinkChoice  // none: approve and reject
	ExpiresIn       time.Duration // 0: seven days; a minute to ninety days
	Title           string
	Message         string
	CommentRequired bool
	Lease           *Lease // of the worker that makes it; nil: an operator does
	RequestKey      string // minted by the client when empty
}

// LinkChoice is a button of a link.
type LinkChoice = api.LinkChoice

// ApprovalLink lets one named person decide once. URL is shown when the link is made and by Waitpoints.LinkURL; neither a print, a log
// line nor the JSON of this type shows it.
type ApprovalLink = api.ApprovalLink

// IssuedLink is a link whose JSON shows its address: ApprovalLink.Issued.
type IssuedLink = api.IssuedLink

// LinkPage is what a link shows to whoever holds it.
type LinkPage = api.LinkPage

// LinkDecision is what the holder of a link chose.
type LinkDecision = api.LinkDecision

// LinkOutcome is the answer to a decision.
type LinkOutcome = api.LinkOutcome

// WaitpointQuery selects waitpoints.
type WaitpointQuery struct {
	ExecutionID ID     // "": of all executions
	State       string // "": pending and active; pending, active, closed, all
	Key         string
	PageOptions
}

// SignalQuery selects signals of an execution.
type SignalQuery struct {
	SuspensionID string // "": all
	PageOptions
}

// SuspendedQuery selects suspended executions. All given parts must hold.
type SuspendedQuery struct {
	Lane       string
	ReasonCode string
	FlowID     ID
	Tags       map[string]string
	Approver   string // only what has a link for this person
	PageOptions
}

// Suspended is an execution that waits.
type Suspended = api.Suspended

// NodeProgress is how far one part of a condition is.
type NodeProgress = api.NodeProgress

// PersonalDecision is what somebody said whom the engine knows.
type PersonalDecision = api.PersonalDecision

// Approval is a question to people, see Task.Ask.
type Approval struct {
	Key     string // names the question within the execution, and its waitpoint; also a Step, so 1..100 bytes of 0x21..0x7e
	Title   string
	Message string
	// Approvers get a link each, when the question is put for the first time in a run. Whoever a later call of the handler names in
	// addition gets none: Waitpoints.NewLink makes one.
	Approvers []string
	Quorum    int // different people who must approve; 0: one
	// NoVeto: a rejection does not end the wait. However many reject, it waits on for the quorum: operators may approve too, whoever
	// was asked. So give it a Timeout; one with ResumeOnTimeout returns who approved by then.
	NoVeto          bool
	CommentRequired bool
	// Notify gets the links once, to send them. It is run as a Step: if it fails, or the process dies in it, it is run again, with
	// the same links for a day and with new ones after that.
	Notify     func(ctx context.Context, links []ApprovalLink) error
	Timeout    time.Duration // 0: by the policy, else none
	OnTimeout  TimeoutBehavior
	LinkExpiry time.Duration // 0: until the question ends, at most ninety days
}

// Decision is how people answered.
type Decision struct {
	Approved bool
	By       []string // who approved; of a rejection who rejected, at least one
	Comment  string   // of the last one of them who wrote one
	TimedOut bool     // with ResumeOnTimeout: nobody decided in time
	Resume   Resume
}

// WaitOptions say how AwaitSignal waits.
type WaitOptions struct {
	Name       string     // of the signal; "": any
	Waitpoint  *Waitpoint // that was made before; nil: a new one
	ReasonCode string
	Timeout    time.Duration
	// TimeoutAt is the same moment in every call of the handler, so take it from the input or a Step. One that is reckoned anew, from
	// the present, asks for another wait under the key: idempotency_conflict.
	TimeoutAt time.Time
	OnTimeout TimeoutBehavior
	// Notify gets the waitpoint once, before the wait, to hand its token or address out. It is run as a Step.
	Notify func(ctx context.Context, w Waitpoint) error
}
