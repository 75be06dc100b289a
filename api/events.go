package api

import (
	"encoding/json"
	"time"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// Positions in the event log besides cursors.
const (
	FromStart = "start" // the oldest event kept
	FromEnd   = "end"   // only what happens from now on
)

// EventPage is a part of the event log.
type EventPage struct {
	Events []Event `json:"items" doc:"The events, in order."`
	Next   string  `json:"next" doc:"Read on after this position."` // also when there are no events
	AtEnd  bool    `json:"at_end" doc:"Nothing follows yet."`
}

// Event is one thing that happened. Data holds what only this kind of event has.
type Event struct {
	ID           string            `json:"id" doc:"The same for every reader."`
	Cursor       string            `json:"cursor" doc:"Position in the log."`
	Kind         string            `json:"kind" doc:"What happened."`
	V            int               `json:"v" doc:"Version of the kind's fields."`
	At           time.Time         `json:"at,omitzero" doc:"When."`
	Namespace    string            `json:"namespace,omitempty" doc:"Namespace that it concerns."`
	ExecutionID  ID                `json:"execution_id,omitempty" doc:"Execution that it concerns."`
	ExecKind     string            `json:"execution_kind,omitempty" doc:"Kind of that execution."`
	FlowID       ID                `json:"flow_id,omitempty" doc:"Flow that it concerns."`
	RootFlowID   ID                `json:"root_flow_id,omitempty" doc:"The outermost flow around that."`
	Lane         string            `json:"lane,omitempty" doc:"Lane that it concerns."`
	AttemptIndex *int              `json:"attempt_index,omitempty" doc:"Attempt that it concerns."` // nil: it concerns none
	InstanceID   string            `json:"worker_instance_id,omitempty" doc:"Instance that it concerns."`
	Tags         map[string]string `json:"tags,omitempty" doc:"Tags at that moment."`
	Actor        Actor             `json:"actor" doc:"Who did it."`
	RequestID    string            `json:"request_id,omitempty" doc:"Request that did it."`
	Data         json.RawMessage   `json:"data,omitempty" doc:"What only this kind has."`
}

// Actor is who made an event.
type Actor struct {
	Type string `json:"type" enum:"client,worker,operator,approver,engine" doc:"What sort."`
	ID   string `json:"id,omitempty" doc:"Its name."`
}

// MarshalJSON writes the page as the HTTP API shows it.
func (p EventPage) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&p) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (p *EventPage) UnmarshalJSON(text []byte) error { return readAnswer(text, p) }

// MarshalJSON writes the event as the HTTP API shows it.
func (e Event) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&e) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (e *Event) UnmarshalJSON(text []byte) error { return readAnswer(text, e) }
