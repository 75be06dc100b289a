package api

import (
	"time"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// NamespaceSettings are all settings of a namespace. The zero value is the default.
type NamespaceSettings struct {
	Description        string `json:"description,omitempty" maxLength:"1024" doc:"Description."`
	MaxSubmitPerSecond int    `json:"max_submit_per_second,omitempty" minimum:"0" maximum:"1000000" doc:"Submits per second over all servers; 0: no limit."`
	// MaxRequestsPerSecond limits the requests with keys of the namespace, over all servers; more are refused with rate_limited.
	// Calls that keep or end running work have a separate limit four times as high. 0: 1,000 per second and processor on each
	// server, while other namespaces send requests there too.
	MaxRequestsPerSecond int `json:"max_requests_per_second,omitempty" minimum:"0" maximum:"1000000" doc:"Requests per second with keys of the namespace, over all servers; 0: 1,000 per second and processor on each server, while other namespaces send requests there too."`
	// MaxPayloadBytes limits an input, up to 64 MiB; 0: the engine's limit.
	MaxPayloadBytes int `json:"max_payload_bytes,omitempty" minimum:"0" maximum:"67108864" doc:"Largest payload; 0: the server's."`
	// MaxLanes and MaxClasses limit what the executions of the namespace use: lanes, and combinations of lane, kind,
	// capabilities, fairness key, quotas and budgets. Existing ones stay usable; new ones are refused with
	// namespace_limit_exceeded. 0: 10,000 and 100,000 while other namespaces are in use too, else no limit.
	MaxLanes   int `json:"max_lanes,omitempty" minimum:"0" maximum:"1000000" doc:"Lanes with executions; 0: 10,000 while other namespaces are in use too, else no limit."`
	MaxClasses int `json:"max_classes,omitempty" minimum:"0" maximum:"1000000" doc:"Combinations of lane, kind, capabilities, fairness key, quotas and budgets; 0: 100,000 while other namespaces are in use too, else no limit."`
	// MaxReady limits the executions that wait for a worker: further submits are refused with rate_limited. Children,
	// retries and resumes are not refused. The count is refreshed every few seconds; several servers can exceed it by what they
	// accept in between. 0: 1,000,000 while other namespaces are in use too, else no limit.
	MaxReady int `json:"max_ready,omitempty" minimum:"0" maximum:"100000000" doc:"Executions that wait for a worker, including those delayed by their submit or blocked by a quota or budget, beyond which submits are refused; 0: 1,000,000 while other namespaces are in use too, else no limit."`
	// MaxPriority is the highest priority; higher ones are lowered to it; 0: no limit.
	MaxPriority int `json:"max_priority,omitempty" minimum:"0" maximum:"9000" doc:"Highest priority; higher ones are lowered to it; 0: no limit."`
	// MaxReaders limits the calls with keys of the namespace that wait for something to read, and the streams of events, on each
	// server; more are refused with rate_limited. 0: three quarters of the server's --max-readers.
	MaxReaders int `json:"max_readers,omitempty" minimum:"0" maximum:"1000000" doc:"Waiting reads and streams with keys of the namespace, on each server; 0: three quarters of its --max-readers."`
	// MaxAuditRowsPerMinute limits the audit rows that keys, tokens and links of the namespace cause: further operator actions
	// are refused with rate_limited until the minute is over. Keys for all namespaces are neither counted nor refused.
	// 0: 6,000 while other namespaces are in use too, else no limit.
	MaxAuditRowsPerMinute int `json:"max_audit_rows_per_minute,omitempty" minimum:"0" maximum:"1000000" doc:"Audit rows per minute that keys, tokens and links of the namespace cause, beyond which operator actions are refused; 0: 6,000 while other namespaces are in use too, else no limit."`
	// MaxWorkers limits the worker instances that serve the namespace: further registrations, and claims of instances that are not
	// registered, are refused with namespace_limit_exceeded. At the limit, the oldest records of dead instances make room. 0: 10,000
	// while other namespaces are in use too, else no limit.
	MaxWorkers int `json:"max_workers,omitempty" minimum:"0" maximum:"1000000" doc:"Worker instances that serve the namespace, beyond which registrations are refused; 0: 10,000 while other namespaces are in use too, else no limit."`
	// DefaultQuotas are added to the policy of every submit that does not name them, up to 8.
	DefaultQuotas []QuotaUse `json:"default_quotas,omitempty" doc:"Quotas that are added to the policy of every submit that does not name them."`
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
