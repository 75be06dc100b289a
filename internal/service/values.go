package service

import (
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core"
)

// millis rounds up, so that a short wait never becomes none.
func millis(d time.Duration) core.Millis {
	ms := d.Milliseconds()
	if d > time.Duration(ms)*time.Millisecond {
		ms++
	}
	return ms
}

func duration(ms core.Millis) time.Duration { return time.Duration(ms) * time.Millisecond }

// idOf shows a stored id; "" when it is absent.
func idOf(id core.ID) api.ID {
	if id.IsZero() {
		return ""
	}
	return api.ID(id.String())
}
