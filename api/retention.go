package api

import (
	"time"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// KeepForever keeps finished executions until they are deleted.
const KeepForever = -time.Millisecond // -1 in JSON

// Retention is how long finished executions are kept, by final status. A zero field uses the next rule: the policy's, then the
// lane's, then the engine's (succeeded and skipped 3 days, cancelled 7, failed and expired 14).
type Retention struct {
	Succeeded time.Duration `json:"succeeded,omitempty" unit:"ms" minimum:"-1" maximum:"315360000000" doc:"Milliseconds, or -1."`
	Failed    time.Duration `json:"failed,omitempty" unit:"ms" minimum:"-1" maximum:"315360000000" doc:"Milliseconds, or -1."`
	Cancelled time.Duration `json:"cancelled,omitempty" unit:"ms" minimum:"-1" maximum:"315360000000" doc:"Milliseconds, or -1."`
	Expired   time.Duration `json:"expired,omitempty" unit:"ms" minimum:"-1" maximum:"315360000000" doc:"Milliseconds, or -1."`
	Skipped   time.Duration `json:"skipped,omitempty" unit:"ms" minimum:"-1" maximum:"315360000000" doc:"Milliseconds, or -1."`
}

// Normalized replaces every negative duration by KeepForever, because one of less than a millisecond would be 0 in JSON.
func (r Retention) Normalized() Retention {
	for _, kept := range []*time.Duration{&r.Succeeded, &r.Failed, &r.Cancelled, &r.Expired, &r.Skipped} {
		if *kept < 0 {
			*kept = KeepForever
		}
	}
	return r
}

// MarshalJSON writes the retention as the HTTP API does: in milliseconds, -1 for KeepForever.
func (r Retention) MarshalJSON() ([]byte, error) {
	normalized := r.Normalized()
	return jsonx.Marshal(&normalized)
}

// UnmarshalJSON reads a retention as strictly as the HTTP API does.
func (r *Retention) UnmarshalJSON(text []byte) error { return readRequest(text, r) }
