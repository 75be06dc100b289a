package flowfabric

import (
	"math"
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Policy says how one execution is run. It is fixed when the execution is submitted. The zero value means: no retry, no timeout,
// up to ten takeovers after crashes, engine defaults for the rest. A value out of its range is invalid_policy with the path in
// Field.
type Policy = api.Policy

// SuspensionPolicy is what holds for a wait that gives no timeout of its own.
type SuspensionPolicy = api.SuspensionPolicy

// RetryPolicy says whether and when a failed attempt is followed by another.
type RetryPolicy = api.RetryPolicy

// Backoff is the wait before a retry. The zero value grows from one second to one minute, doubling.
type Backoff = api.Backoff

// KeepForever as a retention keeps finished executions until they are deleted.
const KeepForever = api.KeepForever

// Retention is how long finished executions are kept, by the status they ended in. A zero field leaves that status to the next
// rule: the policy's, then the lane's, then the engine's (succeeded and skipped 3 days, cancelled 7, failed and expired 14).
type Retention = api.Retention

// millis rounds up, so that a short wait never becomes none.
func millis(d time.Duration) base.Millis {
	ms := d.Milliseconds()
	if d > time.Duration(ms)*time.Millisecond {
		ms++
	}
	return ms
}

// duration is the longest span if there are too many milliseconds.
func duration(ms base.Millis) time.Duration {
	const most = math.MaxInt64 / int64(time.Millisecond)
	return time.Duration(max(min(ms, most), -most)) * time.Millisecond
}
