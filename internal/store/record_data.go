package store

import "github.com/flowfabric/flowfabric/internal/core/eventdata"

// data codes the data of an event: its shape, which the commit shares, the raw values, then the texts. It is converted to JSON on demand, never
// here.
func (c *coder) data(d *eventdata.Data) {
	if c.reading {
		c.readData(d)
		return
	}
	shape, values, texts := d.Parts()
	c.writeShape(shape)
	c.out = append(c.out, values...)
	for i, text := range texts {
		c.writeShared(text, placeData+place(i%dataPlaces))
	}
}

func (c *coder) readData(d *eventdata.Data) {
	shape := c.readShape()
	if shape == nil {
		return
	}
	n, count, ok := shape.Cut(c.in)
	if !ok || count > len(c.in)-n {
		c.fail()
		return
	}
	values := c.in[:n]
	c.in = c.in[n:]
	texts := c.shared.room(count)
	for i := range texts {
		c.readShared(&texts[i])
	}
	*d = eventdata.Of(shape.Text(), values, texts)
}

func (c *coder) writeShape(shape string) {
	number := c.shared.shapes.find(shape)
	c.uint(&number)
	if number == 0 {
		c.text(&shape)
		c.shared.shapes.add(shape)
	}
}

// readShape returns nil if the bytes are broken.
func (c *coder) readShape() *eventdata.Shape {
	var number uint64
	c.uint(&number)
	if number == 0 && !c.bad {
		var text string
		c.text(&text)
		shape, ok := eventdata.ParseShape(text)
		c.check(ok)
		c.shared.parsed = append(c.shared.parsed, shape)
		number = uint64(len(c.shared.parsed))
	}
	c.check(number <= uint64(len(c.shared.parsed)))
	if c.bad {
		return nil
	}
	return &c.shared.parsed[number-1]
}

// room returns space for the texts of an event. The texts of all events share a few arrays: most events of a commit have as many texts as the
// first.
func (s *shared) room(n int) []string {
	if n == 0 {
		return nil
	}
	if n > len(s.free) {
		s.free = make([]string, max(n, min(n*s.events, roomPiece)))
	}
	taken := s.free[:n:n]
	s.free = s.free[n:]
	return taken
}

const roomPiece = 1024
