package core

import (
	"encoding/binary"
	"encoding/json"
	"slices"
	"strings"
)

// dataBuilder builds the data of an event, with fields in the order of the calls. It lives on the caller's stack: nothing is allocated before done.
type dataBuilder struct {
	shape  byteRoom
	values byteRoom
	texts  textRoom
}

func (b *dataBuilder) field(kind dataKind, name field) {
	b.shape.add([]byte{byte(kind), byte(name)})
}

// str writes a text.
func (b *dataBuilder) str(name field, value string) {
	b.field(dataText, name)
	b.texts.add(value)
}

// strIf omits the field if the value is empty.
func (b *dataBuilder) strIf(name field, value string) {
	if value != "" {
		b.str(name, value)
	}
}

// strs writes a list of texts.
func (b *dataBuilder) strs(name field, values []string) {
	b.field(dataTexts, name)
	var room [binary.MaxVarintLen64]byte
	b.values.add(binary.AppendUvarint(room[:0], uint64(len(values))))
	for _, value := range values {
		b.texts.add(value)
	}
}

// raw adds a value that is JSON already; it omits the field if there is none.
func (b *dataBuilder) raw(name field, value json.RawMessage) {
	if len(value) > 0 {
		b.field(dataJSON, name)
		b.texts.add(string(value))
	}
}

// num writes a number.
func (b *dataBuilder) num(name field, value int64) {
	b.field(dataNumber, name)
	b.varint(value)
}

// moment omits the field if t is absent.
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

// uuid writes a UUID.
func (b *dataBuilder) uuid(name field, u UUID) {
	b.field(dataUUID, name)
	b.values.add(u[:])
}

// idIf omits the field if id is absent.
func (b *dataBuilder) idIf(name field, id ID) {
	if !id.IsZero() {
		b.field(dataID, name)
		b.values.add([]byte{id.N})
		b.values.add(id.UUID[:])
	}
}

// flag writes a truth value.
func (b *dataBuilder) flag(name field, value bool) {
	kind := dataFalse
	if value {
		kind = dataTrue
	}
	b.field(kind, name)
}

// flagIf omits the field if the value is false.
func (b *dataBuilder) flagIf(name field, value bool) {
	if value {
		b.flag(name, true)
	}
}

// open begins a nested object, which shut ends.
func (b *dataBuilder) open(name field) { b.field(dataOpen, name) }

// shut ends the object that open began.
func (b *dataBuilder) shut() { b.shape.add([]byte{byte(dataShut)}) }

// done ends the object and returns it.
func (b *dataBuilder) done() EventData {
	b.shut()
	var both strings.Builder
	both.Grow(b.shape.len() + b.values.len())
	b.shape.writeTo(&both)
	b.values.writeTo(&both)
	text := both.String()
	return EventData{shape: text[:b.shape.len()], values: text[b.shape.len():], texts: b.texts.all()}
}

// byteRoom collects bytes. Its fixed buffer suffices for most events.
type byteRoom struct {
	room [64]byte
	n    int
	more []byte // everything from the first write that did not fit
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

// textRoom collects texts as byteRoom collects bytes.
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

// all returns nil if there are none.
func (r *textRoom) all() []string {
	if r.n == 0 {
		return nil
	}
	return slices.Concat(r.room[:r.n], r.more)
}
