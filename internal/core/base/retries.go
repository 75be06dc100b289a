package base

import (
	"fmt"
	"time"
)

// The retries of an execution if nothing else is said: 25, the first after a second, each delay twice the one before, at most six hours, which is
// about three days in all. The count is that of River and asynq. The longest delay is a compromise: work that failed on a Friday evening is still
// retried on Monday, and once the cause is repaired it need not wait longer than six hours. This is the only statement of the default: documents,
// help texts and the OpenAPI document derive theirs from it, see RetrySummary.
const (
	DefaultMaxRetries = 25
	DefaultInitialMS  = Second
	DefaultMaxMS      = 6 * Hour
	DefaultMultiplier = 2
)

// RetrySummary returns the default for readers: "25 retries, after 1s, 2s, 4s and so on, at most 6h apart".
func RetrySummary() string {
	first := time.Duration(DefaultInitialMS) * time.Millisecond
	return fmt.Sprintf("%d retries, after %s, %s, %s and so on, at most %gh apart",
		DefaultMaxRetries, first, DefaultMultiplier*first, DefaultMultiplier*DefaultMultiplier*first, (time.Duration(DefaultMaxMS) * time.Millisecond).Hours())
}
