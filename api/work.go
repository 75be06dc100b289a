package api

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// Registration is what an instance tells of itself.
type Registration struct {
	WorkerID      string            `json:"worker_id" required:"true" maxLength:"256" doc:"Logical name of the worker."`
	InstanceID    string            `json:"worker_instance_id" required:"true" maxLength:"256" doc:"Name of this process."`
	Namespaces    []string          `json:"namespaces,omitempty" doc:"Namespaces that it works for; all of the key's if absent."` // never more
	Lanes         []string          `json:"lanes,omitempty" doc:"Lanes that it takes from."`
	Kinds         []string          `json:"kinds,omitempty" doc:"Kinds that it handles; all if absent."`
	Capabilities  []string          `json:"capabilities,omitempty" doc:"What it can do."`
	MaxConcurrent int               `json:"max_concurrent,omitempty" minimum:"0" maximum:"1000000" doc:"Tasks at a time; 0: not stated."`
	LivenessTTL   time.Duration     `json:"liveness_ttl_ms,omitempty" minimum:"1000" maximum:"3600000" doc:"Not seen for so long: gone; 30000 if absent."`
	Version       string            `json:"version,omitempty" doc:"Version of the program."`
	Labels        map[string]string `json:"labels,omitempty" doc:"Anything else, by key."`
}

// Registered is the answer to a registration.
type Registered struct {
	Outcome   string    `json:"outcome" enum:"registered,refreshed" doc:"Whether the instance was new."`
	ExpiresAt time.Time `json:"expires_at,omitzero" doc:"When it counts as gone unless it is seen before."`
	Drain     bool      `json:"drain" doc:"Take nothing new."`
}

// Heartbeat is the answer to a heartbeat.
type Heartbeat struct {
	Registered bool      `json:"registered" doc:"false: register again."`
	ExpiresAt  time.Time `json:"expires_at,omitzero" doc:"When the instance counts as gone unless it is seen before."`
	Drain      bool      `json:"drain" doc:"Take nothing new."`
	Leases     Renewals  `json:"leases" doc:"One entry a lease, in the order of the request."`
}

// Renewals are the answers to the renewals of a heartbeat, in the order of the request.
type Renewals []Renewal

// Renewal is the answer to one renewal. JSON shows why one of a heartbeat was refused beside it.
type Renewal struct {
	ExpiresAt time.Time     `json:"expires_at,omitzero" doc:"When it lapses unless it is renewed."`
	TTL       time.Duration `json:"ttl_ms,omitempty" doc:"How long a renewal lasts."`
	Drain     bool          `json:"-" apart:"true"` // the instance that has the lease is to finish what it has
	Err       error         `json:"-" apart:"true"`
}

// ClaimRequest asks for work.
type ClaimRequest struct {
	WorkerID     string        `json:"worker_id" required:"true" maxLength:"256" doc:"Logical name of the worker."`
	InstanceID   string        `json:"worker_instance_id" required:"true" maxLength:"256" doc:"Name of this process."`
	Lanes        []string      `json:"lanes" required:"true" minItems:"1" maxItems:"64" doc:"Lanes to take from, 1 to 64."`
	Max          int           `json:"max,omitempty" minimum:"0" maximum:"1000" doc:"Tasks at most; 1 if absent."`
	Wait         time.Duration `json:"wait_ms,omitempty" minimum:"0" maximum:"60000" doc:"Wait so long while there is none."`
	Capabilities []string      `json:"capabilities,omitempty" doc:"What the worker can do."`
	Kinds        []string      `json:"kinds,omitempty" doc:"Kinds that it handles; all if absent."`
	Namespaces   []string      `json:"namespaces,omitempty" doc:"Namespaces to take from; all of the key's if absent."` // never more
	LaneOrder    string        `json:"lane_order,omitempty" enum:"rotate,listed" doc:"Whether lanes take turns; rotate if absent."`
	LeaseTTL     time.Duration `json:"lease_ttl_ms,omitempty" minimum:"500" maximum:"86400000" doc:"30000 if absent."`
	// RequestKey makes the claim repeatable while its leases are held; minted by the client when empty.
	RequestKey string `json:"-" apart:"true"`
	// Repeat says that the claim was sent before under the same RequestKey. If it is answered with nothing, the earlier calls get nothing any
	// more either, also where they still wait at another server.
	Repeat bool `json:"-" apart:"true"`
	// Brief leaves out policies and effect keys, which take time to write: a Worker does not look at them.
	Brief bool `json:"-" apart:"true"`
}

// ClaimAnswer is what a claim found.
type ClaimAnswer struct {
	Tasks      []*Claimed `json:"tasks" nil:"[]" doc:"The work; empty when there is none."`
	Drain      bool       `json:"drain" doc:"Finish what there is and take nothing new."`
	ServerTime time.Time  `json:"server_time,omitzero" doc:"The store's clock."`
}

// TargetedClaim says who takes one particular execution.
type TargetedClaim struct {
	WorkerID     string        `json:"worker_id" required:"true" maxLength:"256" doc:"Logical name of the worker."`
	InstanceID   string        `json:"worker_instance_id" required:"true" maxLength:"256" doc:"Name of this process."`
	Capabilities []string      `json:"capabilities,omitempty" doc:"What the worker can do."`
	Lane         string        `json:"lane,omitempty" doc:"Refuse when it is in another lane."` // "": whatever it is
	LeaseTTL     time.Duration `json:"lease_ttl_ms,omitempty" minimum:"500" maximum:"86400000" doc:"30000 if absent."`
	RequestKey   string        `json:"-" apart:"true"` // minted by the client when empty
}

// Claimed is an execution under a new lease. Its Attempt says what a resumed one goes on after (ResumedFrom: released, delayed, ...).
type Claimed struct {
	ID              ID                `json:"execution_id" doc:"Id of the execution."`
	Partition       int               `json:"partition" minimum:"0" maximum:"255" doc:"N of the full form {fp:N}:<uuid> of its id."`
	Kind            string            `json:"kind" doc:"Kind of work."`
	Lane            string            `json:"lane" doc:"Queue that it came through."`
	Namespace       string            `json:"namespace" doc:"Namespace that it belongs to."`
	Priority        int               `json:"priority" doc:"Its priority."`
	Tags            map[string]string `json:"tags,omitempty" doc:"Tags by key."`
	Input           Payload           `json:"input,omitempty" spread:"shown" doc:"The input."`
	Inputs          []NamedInput      `json:"inputs,omitempty" doc:"What it got from the members that it waited for."`
	How             string            `json:"how" enum:"fresh,resumed,reclaimed" doc:"How the worker came to it."`
	Attempt         Attempt           `json:"attempt" doc:"The attempt under way."`
	Lease           Lease             `json:"lease" spread:"fenced" doc:"The lease; send it with every call."`
	Policy          json.RawMessage   `json:"policy,omitempty" doc:"How it is run."` // as it was frozen at the submit, every field
	CreatedAt       time.Time         `json:"created_at,omitzero" doc:"When it was submitted."`
	DeadlineAt      time.Time         `json:"deadline_at,omitzero" doc:"When it expires."`
	AttemptDeadline time.Time         `json:"attempt_deadline_at,omitzero" doc:"When this attempt times out."`
	FlowID          ID                `json:"flow_id,omitempty" doc:"Flow that it is a member of."`                // "" outside a flow
	RootFlowID      ID                `json:"root_flow_id,omitempty" doc:"The outermost flow that it is part of."` // "" outside a flow
	Name            string            `json:"name,omitempty" doc:"Its name in the flow."`                          // or among the children of who spawned it
	ParentID        ID                `json:"parent_id,omitempty" doc:"Execution that spawned it."`                // "" unless spawned
	RunIndex        int               `json:"run_index" doc:"How often it was replayed."`
	Resume          *Resume           `json:"resumed,omitempty" doc:"After a wait: how it ended."`
	// Remaining is what it may still report of its budgets: of each dimension with a hard limit, by id of the budget.
	Remaining map[string]map[string]int64 `json:"remaining,omitempty" doc:"What it may still use of its budgets, by id and dimension."`
	EffectKey string                      `json:"effect_key,omitempty" doc:"The same for all attempts of a run: an idempotency key for effects outside."`
	TraceContext
}

// Resume is how a wait ended.
type Resume struct {
	SuspensionID string `json:"suspension_id,omitempty" doc:"The suspension that ended; absent after a wait for children."`
	// Cause is signal, operator, timeout, early_signals, budget_approved; of a wait for children children, children_impossible, children_timeout.
	Cause        string         `json:"cause" doc:"How it ended: signal, operator, timeout, early_signals or budget_approved; of a wait for children children, children_impossible or children_timeout."`
	Signals      []SignalRecord `json:"signals" nil:"[]" doc:"The signals that came, in order of acceptance."`
	Children     []Child        `json:"children,omitempty" doc:"After a wait for children: those that it waited for."`
	Continuation Payload        `json:"continuation,omitempty" spread:"kept" doc:"The continuation."`
}

// TraceContext names a span across processes, in the headers of W3C Trace Context and W3C Baggage. The zero value names none.
type TraceContext struct {
	Traceparent string `json:"traceparent,omitempty" doc:"W3C trace context of the submit."`
	Tracestate  string `json:"tracestate,omitempty" doc:"What tracing systems added to it."`
	Baggage     string `json:"baggage,omitempty" doc:"W3C baggage of the submit."`
}

// TraceID is the id of the trace that the span belongs to, 32 hexadecimal digits; "" when the traceparent is absent or malformed.
func (c TraceContext) TraceID() string {
	t := base.ParseTrace(c.Traceparent, "", "")
	if t == nil {
		return ""
	}
	return base.TraceIDOf(t.Parent)
}

// EffectKeyOf is the key of one effect in the present run, made of the full form of the id; that of the effect "" is EffectKey.
func (c *Claimed) EffectKeyOf(effect string) string {
	sum := sha256.Sum256([]byte(c.fullID() + "\x00" + strconv.Itoa(c.RunIndex) + "\x00" + effect))
	return hex.EncodeToString(sum[:])
}

// fullID is the full form of the id, which it may have already.
func (c *Claimed) fullID() string {
	given, err := base.ParseID(string(c.ID))
	if err != nil || given.Full {
		return string(c.ID)
	}
	return base.ID{N: uint8(c.Partition), UUID: given.UUID}.Full()
}

// MarshalJSON writes it as the HTTP API takes it.
func (r Registration) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&r) }

// UnmarshalJSON reads it as strictly as the HTTP API does.
func (r *Registration) UnmarshalJSON(text []byte) error { return readRequest(text, r) }

// MarshalJSON writes the answer as the HTTP API shows it.
func (r Registered) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&r) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (r *Registered) UnmarshalJSON(text []byte) error { return readAnswer(text, r) }

// MarshalJSON writes the answer as the HTTP API shows it.
func (h Heartbeat) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&h) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (h *Heartbeat) UnmarshalJSON(text []byte) error { return readAnswer(text, h) }

// MarshalJSON writes the renewal as the HTTP API shows it, without its refusal.
func (r Renewal) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&r) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (r *Renewal) UnmarshalJSON(text []byte) error { return readAnswer(text, r) }

// renewals are the answers about leases in JSON (U22).
type renewals struct {
	Items  []renewalItem `json:"items"`
	Failed int           `json:"failed"`
}

type renewalItem struct {
	Index int      `json:"index"`
	OK    bool     `json:"ok"`
	Error *Problem `json:"error,omitempty"`
	Renewal
}

// MarshalJSON writes the answers as the HTTP API shows them.
func (all Renewals) MarshalJSON() ([]byte, error) { return all.AppendJSON(nil) }

// AppendJSON adds what MarshalJSON writes to a text.
func (all Renewals) AppendJSON(text []byte) ([]byte, error) {
	shown := renewals{Items: make([]renewalItem, len(all))}
	for i, renewal := range all {
		item := renewalItem{Index: i, OK: renewal.Err == nil, Renewal: renewal}
		if !item.OK {
			item.Error, item.Renewal = ProblemOf(renewal.Err), Renewal{}
			shown.Failed++
		}
		shown.Items[i] = item
	}
	return jsonx.Append(text, &shown)
}

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (all *Renewals) UnmarshalJSON(text []byte) error { return readAnswer(text, all) }

// ReadJSON reads the next value of an answer.
func (all *Renewals) ReadJSON(d *jsonx.Decoder) {
	var read renewals
	if !d.Into(&read) {
		return
	}
	for _, item := range read.Items {
		item.Renewal.Err = item.Error.Refusal()
		*all = append(*all, item.Renewal)
	}
}

// MarshalJSON writes the answer as the HTTP API shows it.
func (a ClaimAnswer) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&a) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (a *ClaimAnswer) UnmarshalJSON(text []byte) error { return readAnswer(text, a) }

// MarshalJSON writes the task as the HTTP API shows it.
func (c Claimed) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&c) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (c *Claimed) UnmarshalJSON(text []byte) error { return readAnswer(text, c) }

// MarshalJSON writes how the wait ended, as a task of the HTTP API shows it.
func (r Resume) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&r) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (r *Resume) UnmarshalJSON(text []byte) error { return readAnswer(text, r) }

// MarshalJSON writes it as the HTTP API takes it.
func (r ClaimRequest) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&r) }

// UnmarshalJSON reads it as strictly as the HTTP API does.
func (r *ClaimRequest) UnmarshalJSON(text []byte) error { return readRequest(text, r) }

// MarshalJSON writes it as the HTTP API takes it.
func (c TargetedClaim) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&c) }

// UnmarshalJSON reads it as strictly as the HTTP API does.
func (c *TargetedClaim) UnmarshalJSON(text []byte) error { return readRequest(text, c) }
