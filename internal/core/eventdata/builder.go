package eventdata

import (
	"encoding/binary"
	"encoding/json"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Builder builds the data of an event, with fields in the order of the calls. It lives on the caller's stack: nothing is allocated before done.
type Builder struct {
	shape  byteRoom
	values byteRoom
	texts  textRoom
}

func (b *Builder) field(kind dataKind, name Field) {
	b.shape.add([]byte{byte(kind), byte(name)})
}

// Str writes a text.
func (b *Builder) Str(name Field, value string) {
	b.field(dataText, name)
	b.texts.add(value)
}

// StrIf omits the field if the value is empty.
func (b *Builder) StrIf(name Field, value string) {
	if value != "" {
		b.Str(name, value)
	}
}

// Strs writes a list of texts.
func (b *Builder) Strs(name Field, values []string) {
	b.field(dataTexts, name)
	var room [binary.MaxVarintLen64]byte
	b.values.add(binary.AppendUvarint(room[:0], uint64(len(values))))
	for _, value := range values {
		b.texts.add(value)
	}
}

// Raw adds a value that is JSON already; it omits the field if there is none.
func (b *Builder) Raw(name Field, value json.RawMessage) {
	if len(value) > 0 {
		b.field(dataJSON, name)
		b.texts.add(string(value))
	}
}

// Num writes a number.
func (b *Builder) Num(name Field, value int64) {
	b.field(dataNumber, name)
	b.varint(value)
}

// Moment omits the field if t is absent.
func (b *Builder) Moment(name Field, t base.Time) {
	if t != 0 {
		b.field(dataMoment, name)
		b.varint(int64(t))
	}
}

func (b *Builder) varint(value int64) {
	var room [binary.MaxVarintLen64]byte
	b.values.add(binary.AppendVarint(room[:0], value))
}

// UUID writes a UUID.
func (b *Builder) UUID(name Field, u base.UUID) {
	b.field(dataUUID, name)
	b.values.add(u[:])
}

// IDIf omits the field if id is absent.
func (b *Builder) IDIf(name Field, id base.ID) {
	if !id.IsZero() {
		b.field(dataID, name)
		b.values.add([]byte{id.N})
		b.values.add(id.UUID[:])
	}
}

// Flag writes a truth value.
func (b *Builder) Flag(name Field, value bool) {
	kind := dataFalse
	if value {
		kind = dataTrue
	}
	b.field(kind, name)
}

// FlagIf omits the field if the value is false.
func (b *Builder) FlagIf(name Field, value bool) {
	if value {
		b.Flag(name, true)
	}
}

// Open begins a nested object, which shut ends.
func (b *Builder) Open(name Field) { b.field(dataOpen, name) }

// Shut ends the object that open began.
func (b *Builder) Shut() { b.shape.add([]byte{byte(dataShut)}) }

// Done ends the object and returns it.
func (b *Builder) Done() Data {
	b.Shut()
	var both strings.Builder
	both.Grow(b.shape.len() + b.values.len())
	b.shape.writeTo(&both)
	b.values.writeTo(&both)
	text := both.String()
	return Data{shape: text[:b.shape.len()], values: text[b.shape.len():], texts: b.texts.all()}
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
