package service

import (
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
)

// CoreRetention converts a retention for the engine: a duration of 0 is absent, one of -1 ms or less than that means without end. The engine refuses
// others below 0.
func CoreRetention(r api.Retention) core.RetentionByStatus {
	part := func(d time.Duration) *base.Millis {
		if d == 0 {
			return nil
		}
		ms := millis(d)
		if d < 0 && ms == 0 {
			ms = -1
		}
		return &ms
	}
	return core.RetentionByStatus{
		Succeeded: part(r.Succeeded), Failed: part(r.Failed), Cancelled: part(r.Cancelled), Expired: part(r.Expired), Skipped: part(r.Skipped),
	}
}

// RetentionOf reverses CoreRetention.
func RetentionOf(r core.RetentionByStatus) api.Retention {
	part := func(ms *base.Millis) time.Duration {
		switch {
		case ms == nil:
			return 0
		case *ms < 0:
			return api.KeepForever
		default:
			return duration(*ms)
		}
	}
	return api.Retention{
		Succeeded: part(r.Succeeded), Failed: part(r.Failed), Cancelled: part(r.Cancelled), Expired: part(r.Expired), Skipped: part(r.Skipped),
	}
}
