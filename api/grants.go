package api

import (
	"time"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// HandTo names the worker who is to go on with an execution that is taken away from another.
type HandTo struct {
	WorkerID     string        `json:"worker_id" required:"true" maxLength:"256" doc:"Logical name of the worker."`
	InstanceID   string        `json:"worker_instance_id" required:"true" maxLength:"256" doc:"Name of its process."`
	Capabilities []string      `json:"capabilities,omitempty" doc:"What it can do."`
	GrantTTL     time.Duration `json:"grant_ttl_ms,omitempty" minimum:"1" maximum:"60000" doc:"5000 if absent."`
}

// MarshalJSON writes it as the HTTP API takes it.
func (h HandTo) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&h) }

// UnmarshalJSON reads it as strictly as the HTTP API does.
func (h *HandTo) UnmarshalJSON(text []byte) error { return readRequest(text, h) }
