package api

// Status is the stored status of an execution.
type Status string

// Statuses. Succeeded, failed, cancelled, expired and skipped are terminal.
const (
	StatusReady     Status = "ready"
	StatusDelayed   Status = "delayed"
	StatusBlocked   Status = "blocked"
	StatusGranted   Status = "granted"
	StatusRunning   Status = "running"
	StatusSuspended Status = "suspended"
	StatusSucceeded Status = "succeeded"
	StatusFailed    Status = "failed"
	StatusCancelled Status = "cancelled"
	StatusExpired   Status = "expired"
	StatusSkipped   Status = "skipped"
)

// Terminal reports whether s is final: only a replay leaves it.
func (s Status) Terminal() bool {
	switch s {
	case StatusSucceeded, StatusFailed, StatusCancelled, StatusExpired, StatusSkipped:
		return true
	default:
		return false
	}
}
