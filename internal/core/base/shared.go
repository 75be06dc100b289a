package base

// Words and bounds that clients use besides the rules: a program that only connects to a server carries this package and not the rules.

// The kinds of a budget's reset.
const (
	ResetNone     = "none"
	ResetInterval = "interval"
	ResetCalendar = "calendar"
)

// The backoff strategies of L11.
const (
	BackoffExponential = "exponential"
	BackoffFixed       = "fixed"
)

// Reasons of L13 and W54, as they are shown, that workers act upon.
const (
	ReasonAttemptTimeout = "attempt_timeout"
	ReasonBudgetExceeded = "budget_exceeded"
	ReasonCodeBudget     = "paused_by_budget" // of a suspension by a budget (B29)
	CauseTimeout         = "timeout"          // of the end of a suspension
)

// The longest lives of a waitpoint (W36) and of a link (W68).
const (
	MaxWaitpointExpiry = Year
	MaxLinkExpiry      = 90 * Day
)
