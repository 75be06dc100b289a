package api

import (
	"time"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// NamespaceSettings are all settings of a namespace. The zero value is the default.
type NamespaceSettings struct {
	Description        string `json:"description,omitempty" maxLength:"1024" doc:"What it is for."`
	MaxSubmitPerSecond int    `json:"max_submit_per_second,omitempty" minimum:"0" maximum:"1000000" doc:"Submits a second over all servers; 0: no limit."`
	// MaxRequestsPerSecond bounds the requests with keys of the namespace, over all servers: more are refused with rate_limited. Calls that keep
	// or end work which runs have four times as many for themselves. 0: 1,000 a second and processor on each server, as long as other
	// namespaces send requests there too.
	MaxRequestsPerSecond int `json:"max_requests_per_second,omitempty" minimum:"0" maximum:"1000000" doc:"Requests a second with keys of the namespace, over all servers; 0: 1,000 a second and processor on each server, as long as other namespaces send requests there too."`
	// MaxPayloadBytes bounds an input, up to 64 MiB; 0: the engine's limit.
	MaxPayloadBytes int `json:"max_payload_bytes,omitempty" minimum:"0" maximum:"67108864" doc:"Largest payload; 0: the server's."`
	// MaxLanes and MaxClasses bound what the executions of the namespace use: lanes, and combinations of lane, kind, capabilities, fairness
	// key, quotas and budgets. What is there goes on; new ones are refused with namespace_limit_exceeded. 0: 10,000 and 100,000 as long as
	// other namespaces are in use too, else no limit.
	MaxLanes   int `json:"max_lanes,omitempty" minimum:"0" maximum:"1000000" doc:"Lanes that its executions use; 0: 10,000 as long as other namespaces are in use too, else no limit."`
	MaxClasses int `json:"max_classes,omitempty" minimum:"0" maximum:"1000000" doc:"Combinations of lane, kind, capabilities, fairness key, quotas and budgets; 0: 100,000 as long as other namespaces are in use too, else no limit."`
	// MaxReady bounds the executions that wait for a worker: further submits are refused with rate_limited. Flows, children, retries and
	// resumes are not. It is counted every few seconds; several servers may go beyond it by what they take in between. 0: no limit.
	MaxReady int `json:"max_ready,omitempty" minimum:"0" maximum:"1000000" doc:"Executions that wait for a worker, those that a submit delayed or a quota or budget blocks included, beyond which submits are refused; 0: no limit."`
	// MaxPriority is what a submit gets that asks for a higher priority; 0: any.
	MaxPriority int `json:"max_priority,omitempty" minimum:"0" maximum:"9000" doc:"Highest priority: a submit that asks for more gets this; 0: any."`
	// DefaultQuotas are added to the policy of every submit that does not name them, up to 8.
	DefaultQuotas []QuotaUse `json:"default_quotas,omitempty" doc:"Quotas that are added to the policy of every submit which does not name them."`
}

// Namespace is a namespace and its settings.
type Namespace struct {
	Name string `json:"namespace" doc:"Name of the namespace."`
	NamespaceSettings
	Revision  int64     `json:"revision" doc:"Counts the changes of the settings."`
	CreatedAt time.Time `json:"created_at,omitzero" doc:"When it was created."`
}

// MarshalJSON writes the namespace as the HTTP API shows it.
func (n Namespace) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&n) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (n *Namespace) UnmarshalJSON(text []byte) error { return readAnswer(text, n) }
