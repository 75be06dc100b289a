package flowfabric

import (
	"math"
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Policy configures how one execution runs. It is fixed when the execution is submitted. The zero value means: default retries, no
// timeout, up to ten takeovers after crashes, engine defaults for the rest. A value out of its range is invalid_policy with the
// path in Field.
type Policy = api.Policy

// SuspensionPolicy applies to a wait that sets no timeout of its own.
type SuspensionPolicy = api.SuspensionPolicy

// RetryPolicy says whether and when a failed attempt is followed by another. The zero value is the default of executions about
// which nothing else is said.
type RetryPolicy = api.RetryPolicy

// CategoryRetry says how failures of one category or class are retried.
type CategoryRetry = api.CategoryRetry

// NoRetry returns the policy without retries: a failed attempt ends the execution.
func NoRetry() *RetryPolicy { return api.NoRetry() }

// Backoff is the delay before a retry. The zero value is the default: it doubles from api.DefaultInitialBackoff to
// api.DefaultMaxBackoff.
type Backoff = api.Backoff

// KeepForever as a retention keeps finished executions until they are deleted explicitly.
const KeepForever = api.KeepForever

// Retention is how long finished executions are kept, by their final status. A zero field defers to the next rule for that
// status: the policy's, then the lane's, then the engine's (succeeded and skipped 3 days, cancelled 7, failed and expired 14).
type Retention = api.Retention

// duration converts milliseconds; if there are too many it returns the longest duration.
func duration(ms base.Millis) time.Duration {
	const most = math.MaxInt64 / int64(time.Millisecond)
	return time.Duration(max(min(ms, most), -most)) * time.Millisecond
}
