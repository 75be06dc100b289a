package store

import (
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
)

// EncodeCommit encodes the events of one commit as the body of a log row. A text or class that several of them share is written once.
func EncodeCommit(events []core.Event) []byte {
	var start base.Time
	if len(events) > 0 {
		start = events[0].At
	}
	c := writer(commitVersion, tablesRoom+eventRoom*len(events), 0)
	c.shared = newShared()
	c.begin(&start, len(events))
	for i := range events {
		c.event(&events[i])
	}
	c.seal(0)
	return c.out
}

// Initial sizes for the texts and shapes of most commits, and for each event.
const (
	tablesRoom = 160
	eventRoom  = 80
)

// DecodeCommit reads the output of EncodeCommit. The class of an event has only namespace, lane and kind; its ID is 0. Unreadable bytes are code
// corruption.
func DecodeCommit(data []byte) (events []core.Event, err error) {
	defer func() {
		if what := recover(); what != nil { // unforeseen bytes are unreadable like any others
			events, err = nil, base.Errorf(base.CodeCorruption, "a stored commit of the event log cannot be read: %v", what)
		}
	}()
	body, ok := unseal(data)
	if !ok {
		return nil, base.Errorf(base.CodeCorruption, "a stored commit of the event log is not what was written")
	}
	c := reader(commitVersion, string(body), 0)
	c.shared = newShared()
	var start base.Time
	n := c.begin(&start, 0)
	c.check(n <= len(c.in)/leastEvent)
	if !c.bad {
		c.shared.events = n
	}
	events = make([]core.Event, c.shared.events)
	for i := range events {
		c.event(&events[i])
	}
	if !c.finished() {
		return nil, base.Errorf(base.CodeCorruption, "a stored commit of the event log cannot be read")
	}
	return events, nil
}

// leastEvent is the minimum size of an event: its parts, kind, namespace, moment and shape.
const leastEvent = 5

func (c *coder) begin(start *base.Time, n int) int {
	c.time(start)
	c.base = *start
	return c.length(n)
}

// Parts of an event. Values are stored.
const (
	eventExecution uint64 = 1 << iota
	eventClass
	eventInstance
	eventTags
	eventRequest
	eventFlow
	eventRootFlow
	eventActor
	eventAttempt
)

func (c *coder) event(e *core.Event) {
	parts := bits(eventExecution, e.ExecutionID != base.ID{}) |
		bits(eventClass, e.Class != nil) |
		bits(eventInstance, e.InstanceID != "") |
		bits(eventTags, len(e.Tags) != 0) |
		bits(eventRequest, e.RequestID != "") |
		bits(eventFlow, e.FlowID != base.ID{}) |
		bits(eventRootFlow, e.RootFlowID != base.ID{}) |
		bits(eventActor, e.Actor != core.Actor{}) |
		bits(eventAttempt, e.AttemptIndex != -1)
	c.uint(&parts)
	c.sharedText(&e.Kind, placeKind)
	c.sharedText(&e.Namespace, placeNamespace)
	c.time(&e.At)
	if parts&eventExecution != 0 {
		c.id(&e.ExecutionID)
	}
	if parts&eventClass != 0 {
		c.sharedClass(&e.Class)
	}
	if parts&eventInstance != 0 {
		c.sharedText(&e.InstanceID, placeInstance)
	}
	if parts&eventTags != 0 {
		c.tags(&e.Tags)
	}
	if parts&eventRequest != 0 {
		c.text(&e.RequestID)
	}
	if parts&eventFlow != 0 {
		c.id(&e.FlowID)
	}
	if parts&eventRootFlow != 0 {
		c.id(&e.RootFlowID)
	}
	if parts&eventActor != 0 {
		c.sharedText(&e.Actor.Type, placeActorType)
		c.sharedText(&e.Actor.ID, placeActor)
	}
	if parts&eventAttempt != 0 {
		c.int(&e.AttemptIndex)
	} else if c.reading {
		e.AttemptIndex = -1
	}
	c.data(&e.Data)
}
