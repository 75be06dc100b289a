package api

import (
	"encoding/json"
	"time"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// Positions in the event log besides cursors.
const (
	FromStart = "start" // the oldest stored event
	FromEnd   = "end"   // only new events
)

// EventPage is a part of the event log.
type EventPage struct {
	Events []Event `json:"items" doc:"The events, in order."`
	Next   string  `json:"next" doc:"Continue reading after this position."` // set even if there are no events
	AtEnd  bool    `json:"at_end" doc:"There are no later events yet. If false, read on after next, even if items is empty: a page ends after a filter has passed over many events."`
}

// Event is one entry of the event log. Data holds the fields of its kind.
type Event struct {
	ID           string            `json:"id" doc:"Stable id of the event."`
	Cursor       string            `json:"cursor" doc:"Position in the log."`
	Kind         string            `json:"kind" doc:"Kind of the event."`
	V            int               `json:"v" doc:"Version of the fields of this kind."`
	At           time.Time         `json:"at,omitzero" doc:"When."`
	Namespace    string            `json:"namespace,omitempty" doc:"Namespace, if any."`
	ExecutionID  ID                `json:"execution_id,omitempty" doc:"Execution, if any."`
	ExecKind     string            `json:"execution_kind,omitempty" doc:"Kind of the execution."`
	FlowID       ID                `json:"flow_id,omitempty" doc:"Flow, if any."`
	RootFlowID   ID                `json:"root_flow_id,omitempty" doc:"Outermost flow around it."`
	Lane         string            `json:"lane,omitempty" doc:"Lane, if any."`
	AttemptIndex *int              `json:"attempt_index,omitempty" doc:"Attempt, if any."` // nil if it has no attempt
	InstanceID   string            `json:"worker_instance_id,omitempty" doc:"Worker instance, if any."`
	Tags         map[string]string `json:"tags,omitempty" doc:"Tags at that time."`
	Actor        Actor             `json:"actor" doc:"Who caused it."`
	RequestID    string            `json:"request_id,omitempty" doc:"Request that caused it."`
	Data         json.RawMessage   `json:"data,omitempty" doc:"Fields of this kind."`
}

// Actor is the author of an event.
type Actor struct {
	Type string `json:"type" enum:"client,worker,operator,approver,engine" doc:"Type of the actor."`
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
