package flowfabric

import (
	"context"
	"encoding/json"
	"iter"
	"time"
)

// Events reads the log of everything that happened. It has one order for all readers and keeps events for a week.
type Events interface {
	// Read gives the events after a position. Codes: invalid_cursor, invalid_filter, cursor_too_old.
	Read(ctx context.Context, o ...ReadOptions) (EventPage, error)
	// Follow gives events as they happen until ctx ends; it then ends without an error. An interruption of the store is
	// bridged. Each event is given at least once, in order; remember Event.Cursor to go on later.
	//
	// Codes: invalid_cursor, invalid_filter, cursor_too_old.
	Follow(ctx context.Context, o ...ReadOptions) iter.Seq2[Event, error]

	sealed()
}

// Positions in the log besides cursors.
const (
	FromStart = "start" // the oldest event kept
	FromEnd   = "end"   // only what happens from now on
)

// ReadOptions say which events to read.
type ReadOptions struct {
	EventFilter
	After string        // a cursor, FromStart or FromEnd (default)
	Limit int           // of a page; 0: 100, at most 1000
	Wait  time.Duration // Read: how long to wait while there is none, up to 30 s
}

// EventFilter keeps events for which all given parts hold.
type EventFilter struct {
	Kinds       []string // exact, or the beginning up to a dot ("execution."); several: any of them
	ExecutionID ID
	FlowID      ID
	Lane        string
	Outcome     string // of execution.completed: success, failed, cancelled, expired, skipped
	InstanceID  string // of the worker
	Tags        map[string]string
	ActorType   string // client, worker, operator, engine
	Since       time.Time
}

// EventPage is a part of the log.
type EventPage struct {
	Events []Event
	Next   string // read on from here, also when there are no events
	AtEnd  bool   // nothing follows yet
}

// Event is one thing that happened. Data holds what only this kind of event has.
type Event struct {
	ID           string // the same for every reader
	Cursor       string // position in the log
	Kind         string
	At           time.Time
	Namespace    string
	ExecutionID  ID
	ExecKind     string // kind of the execution
	Lane         string
	FlowID       ID
	RootFlowID   ID  // the outermost flow; "" outside a flow
	AttemptIndex int // -1: does not apply
	InstanceID   string
	Tags         map[string]string
	ActorType    string
	ActorID      string
	RequestID    string
	Data         json.RawMessage
}
