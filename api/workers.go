package api

import (
	"time"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// Worker is a registered worker instance.
type Worker struct {
	WorkerID      string            `json:"worker_id" doc:"Logical name of the worker."`
	InstanceID    string            `json:"worker_instance_id" doc:"Name of the process."`
	State         string            `json:"state" enum:"live,draining,dead" doc:"State of the instance."`
	DrainedBy     string            `json:"drained_by,omitempty" doc:"Principal that asked for the drain."` // "" unless it drains
	Namespaces    []string          `json:"namespaces,omitempty" doc:"Namespaces that it works for; absent: all."`
	Lanes         []string          `json:"lanes,omitempty" doc:"Lanes that it claims from."`
	Kinds         []string          `json:"kinds,omitempty" doc:"Kinds that it handles; absent: all."`
	Capabilities  []string          `json:"capabilities,omitempty" doc:"Its capabilities."`
	MaxConcurrent int               `json:"max_concurrent,omitempty" doc:"Concurrent tasks; absent: not stated."`
	Version       string            `json:"version,omitempty" doc:"Version of the program."`
	Labels        map[string]string `json:"labels,omitempty" doc:"Labels by key."`
	RegisteredAt  time.Time         `json:"registered_at,omitzero" doc:"When it was first registered."`
	RegisteredBy  string            `json:"registered_by,omitempty" doc:"Principal that registered it."`
	LastSeen      time.Time         `json:"last_seen_at,omitzero" doc:"When it was last seen."`
	ExpiresAt     time.Time         `json:"expires_at,omitzero" doc:"When it is considered dead unless seen again."`
	Leases        int               `json:"leases" doc:"Executions that it holds leases on."`
}

// Drained is the result of draining all instances of a worker.
type Drained struct {
	WorkerID string `json:"worker_id" doc:"Logical name of the worker."`
	Drain    bool   `json:"drain" doc:"Whether they claim no new work."`
}

// MarshalJSON writes the instance as the HTTP API shows it.
func (w Worker) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&w) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (w *Worker) UnmarshalJSON(text []byte) error { return readAnswer(text, w) }
