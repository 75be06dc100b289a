package core

import (
	"encoding/binary"
	"encoding/json"
	"slices"
	"strings"
)

// dataBuilder makes the data of an event; its fields stand in the order of the calls. It lives on the stack of whoever emits:
// nothing is allocated before done.
type dataBuilder struct {
	shape  byteRoom
	values byteRoom
	texts  textRoom
}

func (b *dataBuilder) field(kind dataKind, name field) {
	b.shape.add([]byte{byte(kind), byte(name)})
}

func (b *dataBuilder) str(name field, value string) {
	b.field(dataText, name)
	b.texts.add(value)
}

// strIf leaves the field out when the value is empty.
func (b *dataBuilder) strIf(name field, value string) {
	if value != "" {
		b.str(name, value)
	}
}

func (b *dataBuilder) strs(name field, values []string) {
	b.field(dataTexts, name)
	var room [binary.MaxVarintLen64]byte
	b.values.add(binary.AppendUvarint(room[:0], uint64(len(values))))
	for _, value := range values {
		b.texts.add(value)
	}
}

// raw takes a value that is JSON already; it leaves the field out when there is none.
func (b *dataBuilder) raw(name field, value json.RawMessage) {
	if len(value) > 0 {
		b.field(dataJSON, name)
		b.texts.add(string(value))
	}
}

func (b *dataBuilder) num(name field, value int64) {
	b.field(dataNumber, name)
	b.varint(value)
}

// moment leaves the field out when t is absent.
func (b *dataBuilder) moment(name field, t Time) {
	if t != 0 {
		b.field(dataMoment, name)
		b.varint(int64(t))
	}
}

func (b *dataBuilder) varint(value int64) {
	var room [binary.MaxVarintLen64]byte
	b.values.add(binary.AppendVarint(room[:0], value))
}

func (b *dataBuilder) uuid(name field, u UUID) {
	b.field(dataUUID, name)
	b.values.add(u[:])
}

// idIf leaves the field out when id is absent.
func (b *dataBuilder) idIf(name field, id ID) {
	if !id.IsZero() {
		b.field(dataID, name)
		b.values.add([]byte{id.N})
		b.values.add(id.UUID[:])
	}
}

func (b *dataBuilder) flag(name field, value bool) {
	kind := dataFalse
	if value {
		kind = dataTrue
	}
	b.field(kind, name)
}

// flagIf leaves the field out when the value is false.
func (b *dataBuilder) flagIf(name field, value bool) {
	if value {
		b.flag(name, true)
	}
}

// open begins a nested object, which shut ends.
func (b *dataBuilder) open(name field) { b.field(dataOpen, name) }

func (b *dataBuilder) shut() { b.shape.add([]byte{byte(dataShut)}) }

// done ends the object and hands it out.
func (b *dataBuilder) done() EventData {
	b.shut()
	var both strings.Builder
	both.Grow(b.shape.len() + b.values.len())
	b.shape.writeTo(&both)
	b.values.writeTo(&both)
	text := both.String()
	return EventData{shape: text[:b.shape.len()], values: text[b.shape.len():], texts: b.texts.all()}
}

// byteRoom gathers bytes. It has room for those of most events.
type byteRoom struct {
	room [64]byte
	n    int
	more []byte // what came after something that had no room
}

func (r *byteRoom) add(bytes []byte) {
	if r.more == nil && r.n+len(bytes) <= len(r.room) {
		r.n += copy(r.room[r.n:], bytes)
		return
	}
	r.more = append(r.more, bytes...)
}

func (r *byteRoom) len() int { return r.n + len(r.more) }

func (r *byteRoom) writeTo(to *strings.Builder) {
	to.Write(r.room[:r.n])
	to.Write(r.more)
}

// textRoom gathers texts, as byteRoom does bytes.
type textRoom struct {
	room [10]string
	n    int
	more []string
}

func (r *textRoom) add(text string) {
	if r.n < len(r.room) {
		r.room[r.n] = text
		r.n++
		return
	}
	r.more = append(r.more, text)
}

// all is nil when there are none.
func (r *textRoom) all() []string {
	if r.n == 0 {
		return nil
	}
	return slices.Concat(r.room[:r.n], r.more)
}
