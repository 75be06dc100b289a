package store

import "github.com/flowfabric/flowfabric/internal/core"

// EncodeCommit makes the body of a log row of the events of one commit. A text or class that many of them share is written
// once.
func EncodeCommit(events []core.Event) []byte {
	var base core.Time
	if len(events) > 0 {
		base = events[0].At
	}
	c := writer(commitVersion, 64+96*len(events), 0)
	c.shared = &shared{numbers: map[string]uint64{}, classNumbers: map[*core.Class]uint64{}}
	c.begin(&base, len(events))
	for i := range events {
		c.event(&events[i])
	}
	return c.out
}

// DecodeCommit reads what EncodeCommit wrote. Of the class of an event it knows namespace, lane and kind; its ID is 0. Bytes
// that cannot be read are code corruption.
func DecodeCommit(data []byte) ([]core.Event, error) {
	c := reader(commitVersion, data, 0)
	c.shared = &shared{}
	var base core.Time
	n := c.begin(&base, 0)
	events := make([]core.Event, 0, min(n, len(c.in)/leastEvent))
	for i := 0; i < n && !c.bad; i++ {
		events = append(events, core.Event{})
		c.event(&events[i])
	}
	if !c.finished() {
		return nil, core.Errorf(core.CodeCorruption, "a stored commit of the event log cannot be read")
	}
	return events, nil
}

// leastEvent is less than any encoded event takes.
const leastEvent = 8

// shared holds the texts and classes that a commit has named so far. A number refers to one of them, counting from 1; 0 says
// that a new one follows.
type shared struct {
	texts        []string // while reading
	classes      []*core.Class
	numbers      map[string]uint64 // while writing
	classNumbers map[*core.Class]uint64
	previous     [places]struct {
		text   string
		number uint64
	}
}

// place is a field whose text is often the same from event to event; what it last held is tried first.
type place int

const (
	placeKind place = iota
	placeNamespace
	placeInstance
	placeActorType
	placeActor
	placeLane
	placeClassKind
	placeTag
	placeShape
	placeDataText
	places
)

func (c *coder) begin(base *core.Time, n int) int {
	c.time(base)
	c.base = *base
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
	parts := bits(eventExecution, e.ExecutionID != core.ID{}) |
		bits(eventClass, e.Class != nil) |
		bits(eventInstance, e.InstanceID != "") |
		bits(eventTags, len(e.Tags) != 0) |
		bits(eventRequest, e.RequestID != "") |
		bits(eventFlow, e.FlowID != core.ID{}) |
		bits(eventRootFlow, e.RootFlowID != core.ID{}) |
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

// sharedText codes a text by its number in the tables; outside of commits, where there are none, in full.
func (c *coder) sharedText(v *string, at place) {
	switch {
	case c.shared == nil:
		c.text(v)
	case c.reading:
		c.readShared(v)
	default:
		c.writeShared(*v, at)
	}
}

func (c *coder) readShared(v *string) {
	var number uint64
	c.uint(&number)
	switch {
	case c.bad:
	case number == 0:
		c.text(v)
		c.shared.texts = append(c.shared.texts, *v)
	case number > uint64(len(c.shared.texts)):
		c.fail()
	default:
		*v = c.shared.texts[number-1]
	}
}

func (c *coder) writeShared(text string, at place) {
	last := &c.shared.previous[at]
	if last.number != 0 && last.text == text {
		c.uint(&last.number)
		return
	}
	numbers := c.shared.numbers
	number := numbers[text]
	c.uint(&number)
	if number == 0 {
		c.text(&text)
		number = uint64(len(numbers) + 1)
		numbers[text] = number
	}
	last.text, last.number = text, number
}

func (c *coder) sharedClass(v **core.Class) {
	var number uint64
	if !c.reading {
		number = c.shared.classNumbers[*v]
	}
	c.uint(&number)
	switch {
	case number == 0:
		c.newClass(present(c, v))
	case !c.reading:
	case number > uint64(len(c.shared.classes)):
		c.fail()
	default:
		*v = c.shared.classes[number-1]
	}
}

func (c *coder) newClass(class *core.Class) {
	c.sharedText(&class.Namespace, placeNamespace)
	c.sharedText(&class.Lane, placeLane)
	c.sharedText(&class.Kind, placeClassKind)
	if c.reading {
		c.shared.classes = append(c.shared.classes, class)
	} else {
		c.shared.classNumbers[class] = uint64(len(c.shared.classNumbers) + 1)
	}
}
