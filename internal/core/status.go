package core

import "github.com/flowfabric/flowfabric/internal/core/base"

// Status is the one stored status of an execution (L13). Values are stored: never renumber them.
type Status uint8

// The statuses of L13.
const (
	StatusNone Status = iota
	Ready
	Delayed
	Blocked
	Granted
	Running
	Suspended
	Succeeded
	Failed
	Cancelled
	Expired
	Skipped
)

var statusNames = [...]string{
	"", "ready", "delayed", "blocked", "granted", "running", "suspended",
	"succeeded", "failed", "cancelled", "expired", "skipped",
}

// Statuses lists every status in the order of L13.
func Statuses() []Status {
	return []Status{Ready, Delayed, Blocked, Granted, Running, Suspended, Succeeded, Failed, Cancelled, Expired, Skipped}
}

// String is the word of L13.
func (s Status) String() string { return base.NameOf(statusNames[:], int(s)) }

// ParseStatus reads the word of L13.
func ParseStatus(text string) (Status, bool) {
	n, ok := base.ValueOf(statusNames[:], text)
	return Status(n), ok
}

// Terminal reports whether s is final (L17).
func (s Status) Terminal() bool { return s >= Succeeded }

// Queues reports whether s is one of the statuses that the gate decides: ready, delayed, blocked.
func (s Status) Queues() bool { return s == Ready || s == Delayed || s == Blocked }

// Reason states why an execution is in its status (L13). Values are stored: never renumber them.
type Reason uint8

// The reasons of L13 and W52.
const (
	ReasonNone Reason = iota
	WaitingForWorker
	WaitingForDelay
	WaitingForRetryBackoff
	WaitingForResumeDelay
	WaitingForChildren
	WaitingForSubflow
	PausedByOperator
	WaitingForBudget
	WaitingForQuota
	Completed
	Permanent
	NotRetryable
	NoRetryPolicy
	RetriesExhausted
	RetryWindowElapsed
	AttemptTimeout
	ReclaimsExhausted
	SuspensionTimeout
	SubflowFailed
	BudgetExceeded
	CancelledByRequest
	FlowCancelled
	JoinSatisfied
	JoinImpossible
	ExecutionDeadline
	DependencyImpossible
	WaitingForSignal
	WaitingForApproval
	WaitingForCallback
	WaitingForToolResult
	PausedByPolicy
)

var reasonNames = [...]string{
	"none", "waiting_for_worker", "waiting_for_delay", "waiting_for_retry_backoff", "waiting_for_resume_delay",
	"waiting_for_children", "waiting_for_subflow", "paused_by_operator", "waiting_for_budget", "waiting_for_quota",
	"completed", "permanent", "not_retryable", "no_retry_policy", "retries_exhausted", "retry_window_elapsed",
	base.ReasonAttemptTimeout, "reclaims_exhausted", "suspension_timeout", "subflow_failed", base.ReasonBudgetExceeded, "cancelled",
	"flow_cancelled", "join_satisfied", "join_impossible", "execution_deadline", "dependency_impossible",
	"waiting_for_signal", "waiting_for_approval", "waiting_for_callback", "waiting_for_tool_result", "paused_by_policy",
}

// String is the word of L13; "none" for the absent reason.
func (r Reason) String() string { return base.NameOf(reasonNames[:], int(r)) }

// ParseReason reads the word of L13.
func ParseReason(text string) (Reason, bool) {
	n, ok := base.ValueOf(reasonNames[:], text)
	return Reason(n), ok
}

// reasonsOf is the table of L13: which reasons a status may have.
var reasonsOf = map[Status][]Reason{
	Ready:     {WaitingForWorker},
	Delayed:   {WaitingForDelay, WaitingForRetryBackoff, WaitingForResumeDelay},
	Blocked:   {WaitingForChildren, WaitingForSubflow, PausedByOperator, WaitingForBudget, WaitingForQuota},
	Granted:   {WaitingForWorker},
	Running:   {ReasonNone},
	Suspended: {WaitingForSignal, WaitingForApproval, WaitingForCallback, WaitingForToolResult, PausedByPolicy, PausedByOperator, WaitingForBudget},
	Succeeded: {Completed},
	Failed: {
		Permanent, NotRetryable, NoRetryPolicy, RetriesExhausted, RetryWindowElapsed, AttemptTimeout,
		ReclaimsExhausted, SuspensionTimeout, SubflowFailed, BudgetExceeded,
	},
	Cancelled: {CancelledByRequest, FlowCancelled, JoinSatisfied, JoinImpossible, SuspensionTimeout, BudgetExceeded},
	Expired:   {ExecutionDeadline, SuspensionTimeout},
	Skipped:   {DependencyImpossible},
}

// ReasonsOf lists the reasons that status s may have (L13). The caller must not change the list.
func ReasonsOf(s Status) []Reason { return reasonsOf[s] }

// Next states what the next acquisition does (L13). Values are stored: never renumber them.
type Next uint8

// The values of `next` in L13.
const (
	NextNone Next = iota
	NextInitial
	NextRetry
	NextReclaim
	NextReplay
	NextResume
)

var nextNames = [...]string{"none", "initial", "retry", "reclaim", "replay", "resume"}

// String is the word of L13.
func (n Next) String() string { return base.NameOf(nextNames[:], int(n)) }

// ParseNext reads the word of L13.
func ParseNext(text string) (Next, bool) {
	v, ok := base.ValueOf(nextNames[:], text)
	return Next(v), ok
}

// AttemptType states how an attempt was started (L25). Values are stored.
type AttemptType uint8

// The types of L25.
const (
	AttemptInitial AttemptType = iota + 1
	AttemptRetry
	AttemptReclaim
	AttemptReplay
)

var attemptTypeNames = [...]string{"", "initial", "retry", "reclaim", "replay"}

// String is the word of L25.
func (t AttemptType) String() string { return base.NameOf(attemptTypeNames[:], int(t)) }

// AttemptState is the state of an attempt (L26). Values are stored.
type AttemptState uint8

// The states of L26.
const (
	AttemptStarted AttemptState = iota + 1
	AttemptInterrupted
	EndedSuccess
	EndedFailure
	EndedCancelled
	InterruptedReclaimed
)

var attemptStateNames = [...]string{"", "started", "interrupted", "ended_success", "ended_failure", "ended_cancelled", "interrupted_reclaimed"}

// String is the word of L26.
func (s AttemptState) String() string { return base.NameOf(attemptStateNames[:], int(s)) }

// Final reports whether s never changes.
func (s AttemptState) Final() bool { return s >= EndedSuccess }

// Interruption is the kind of an interrupted attempt (L26), and the value of resumed_from (L98). Values are stored.
type Interruption uint8

// The kinds of L26.
const (
	InterruptedNone Interruption = iota
	InterruptedSuspended
	InterruptedDelayed
	InterruptedWaitingChildren
	InterruptedReleased
	InterruptedLeaseExpired
	InterruptedLeaseRevoked
)

var interruptionNames = [...]string{"", "suspended", "delayed", "waiting_children", "released", "lease_expired", "lease_revoked"}

// String is the word of L26.
func (i Interruption) String() string { return base.NameOf(interruptionNames[:], int(i)) }

// LeaseEnd is how a lease ended: the ending operation, or what ended it otherwise (L40). Values are stored.
type LeaseEnd uint8

// The ends of L40.
const (
	EndNone LeaseEnd = iota
	EndComplete
	EndFail
	EndDelay
	EndWaitForChildren
	EndSuspend
	EndRelease
	EndCancel // by the holder (L100)
	EndExpired
	EndRevoked
	EndAttemptTimeout
	EndDeadline
	EndCancelled // by any other caller
	EndBudgetExceeded
)

var leaseEndNames = [...]string{
	"", "complete", "fail", "delay", "wait_for_children", "suspend", "release", "cancel",
	"expired", "revoked", "attempt_timeout", "deadline", "cancelled", "budget_exceeded",
}

// String is the word of L40.
func (e LeaseEnd) String() string { return base.NameOf(leaseEndNames[:], int(e)) }
