package store

import (
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/eventdata"
)

// shared holds the texts, classes and shapes that a commit has used so far. A number refers to one of them, counting from 1; 0 means that a new one
// follows.
type shared struct {
	texts    numbering[string]
	classes  numbering[*core.Class]
	shapes   numbering[string]
	previous [places]struct { // while writing
		text   string
		number uint64
	}

	// While reading.
	parsed []eventdata.Shape
	events int      // number of events in the commit
	free   []string // space for the texts of their data

	// Space for what most commits use, in one allocation with the tables.
	textRoom  [16]string
	classRoom [2]*core.Class
	shapeRoom [2]string
}

func newShared() *shared {
	s := &shared{}
	s.texts.known, s.classes.known, s.shapes.known = s.textRoom[:0], s.classRoom[:0], s.shapeRoom[:0]
	return s
}

// place is a field whose text is often the same from event to event; its last value is tried first.
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
	placeData // the first of the places of the texts of data
	places    = placeData + dataPlaces
)

// dataPlaces suffices for the texts of most events.
const dataPlaces = 12

// numbering numbers values in order of appearance. Most commits have so few that a linear search costs less than a map.
type numbering[T comparable] struct {
	known   []T
	last    uint64       // found last; most often it is requested again
	numbers map[T]uint64 // once there are many
}

const manyKnown = 24

// find returns the number of v, or 0.
func (n *numbering[T]) find(v T) uint64 {
	switch {
	case n.last != 0 && n.known[n.last-1] == v:
	case n.numbers != nil:
		n.last = n.numbers[v]
	default:
		n.last = uint64(slices.Index(n.known, v) + 1)
	}
	return n.last
}

// add gives v the next number.
func (n *numbering[T]) add(v T) uint64 {
	n.known = append(n.known, v)
	number := uint64(len(n.known))
	n.last = number
	switch {
	case n.numbers != nil:
		n.numbers[v] = number
	case number > manyKnown:
		n.numbers = make(map[T]uint64, 2*manyKnown)
		for i, known := range n.known {
			n.numbers[known] = uint64(i + 1)
		}
	}
	return number
}

// sharedText codes a text by its number in the tables; outside of commits, where there are no tables, in full.
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
	texts := &c.shared.texts
	switch {
	case c.bad:
	case number == 0:
		c.text(v)
		texts.known = append(texts.known, *v)
	case number > uint64(len(texts.known)):
		c.fail()
	default:
		*v = texts.known[number-1]
	}
}

func (c *coder) writeShared(text string, at place) {
	last := &c.shared.previous[at]
	if last.number == 0 || last.text != text {
		last.text, last.number = text, c.shared.texts.find(text)
		if last.number == 0 {
			last.number = c.shared.texts.add(text)
			c.out = append(c.out, 0)
			c.text(&text)
			return
		}
	}
	c.uint(&last.number)
}

func (c *coder) sharedClass(v **core.Class) {
	var number uint64
	classes := &c.shared.classes
	if !c.reading {
		number = classes.find(*v)
	}
	c.uint(&number)
	switch {
	case number == 0:
		c.newClass(present(c, v))
	case !c.reading:
	case number > uint64(len(classes.known)):
		c.fail()
	default:
		*v = classes.known[number-1]
	}
}

func (c *coder) newClass(class *core.Class) {
	c.sharedText(&class.Namespace, placeNamespace)
	c.sharedText(&class.Lane, placeLane)
	c.sharedText(&class.Kind, placeClassKind)
	if c.reading {
		c.shared.classes.known = append(c.shared.classes.known, class)
	} else {
		c.shared.classes.add(class)
	}
}
