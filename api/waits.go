package api

// TimeoutBehavior is what happens to a suspension whose time is over.
type TimeoutBehavior string

// The behaviours at a timeout.
const (
	FailOnTimeout     TimeoutBehavior = "fail"
	CancelOnTimeout   TimeoutBehavior = "cancel"
	ExpireOnTimeout   TimeoutBehavior = "expire"
	ResumeOnTimeout   TimeoutBehavior = "auto_resume_with_timeout_signal" // go on, with a signal named TimeoutSignal
	EscalateOnTimeout TimeoutBehavior = "escalate"                        // wait on, for an operator
)
