// Package eventlog reads the event log for others: pages of events behind a position, by filter, as a caller may see them. It keeps the index of
// the log by execution and by flow.
package eventlog

import (
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
)

// Reader reads the event log.
type Reader struct {
	*txn.Engine
	index *indexer
}

// New makes the reader of an engine.
func New(e *txn.Engine) *Reader {
	r := &Reader{Engine: e, index: &indexer{e: e}}
	e.OnLoop(r.index.run)
	return r
}

// Request asks for events (E34).
type Request struct {
	After  string // cursor, "start", or "end" ("" = end)
	Limit  int    // 0 = 100
	Wait   time.Duration
	Filter Filter
}

// Filter keeps events for which all given parts hold (E35).
type Filter struct {
	Kinds       []string // exact, or a prefix that ends at a dot boundary ("execution.")
	ExecutionID *base.GivenID
	FlowID      *base.GivenID
	Lane        string
	Outcome     string
	InstanceID  string
	Tags        map[string]string
	ActorType   string
	Since       base.Time
}

// Page is a part of the log (E34).
type Page struct {
	Events []Event
	Next   string // position reached, also when empty
	AtEnd  bool   // there is no more yet; else read on, also if there are no events: a page ends after a filter has passed over many
}

// Event is an event with its place in the log.
type Event struct {
	core.Event
	ID     base.UUID // derived from log and place: the same for every reader
	Cursor string
}
