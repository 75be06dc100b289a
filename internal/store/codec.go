package store

import (
	"encoding/binary"
	"encoding/json"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// coder visits the fields of a record in one order and either writes or reads them, so that each format has one description and the two directions
// cannot diverge. While writing, it does not change the fields. While reading, broken bytes set bad and leave all further fields unchanged.
type coder struct {
	reading bool
	bad     bool
	out     []byte    // written so far
	in      string    // remaining input; the texts of the record share it
	base    base.Time // moments are coded as their distance from it
	shared  *shared   // texts that many records share; nil outside of commits
}

// writer returns a coder that writes this version of a format.
func writer(version byte, room int, base base.Time) coder {
	return coder{out: append(make([]byte, 0, room), version), base: base}
}

// reader returns a coder that reads this version of a format. data is a copy of the stored bytes.
func reader(version byte, data string, base base.Time) coder {
	c := coder{reading: true, in: data, base: base}
	var found byte
	c.byte(&found)
	c.bad = c.bad || found&^sealed != version
	return c
}

// finished reports whether all fields were read and no bytes are left.
func (c *coder) finished() bool { return !c.bad && len(c.in) == 0 }

// fail marks the bytes as broken.
func (c *coder) fail() {
	c.bad = true
	c.in = ""
}

func (c *coder) byte(v *byte) {
	switch {
	case !c.reading:
		c.out = append(c.out, *v)
	case len(c.in) == 0:
		c.fail()
	default:
		*v, c.in = c.in[0], c.in[1:]
	}
}

func (c *coder) uint(v *uint64) {
	switch {
	case !c.reading:
		c.out = binary.AppendUvarint(c.out, *v)
	case len(c.in) > 0 && c.in[0] < 0x80: // the most frequent case
		*v, c.in = uint64(c.in[0]), c.in[1:]
	default:
		c.readUint(v)
	}
}

func (c *coder) readUint(v *uint64) {
	var sum uint64
	for i := 0; i < len(c.in) && i < binary.MaxVarintLen64; i++ {
		b := c.in[i]
		sum |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			if i == binary.MaxVarintLen64-1 && b > 1 {
				break
			}
			*v, c.in = sum, c.in[i+1:]
			return
		}
	}
	c.fail()
}

func (c *coder) int64(v *int64) {
	code := zigzag(*v)
	c.uint(&code)
	if c.reading && !c.bad {
		*v = unzigzag(code)
	}
}

func (c *coder) int(v *int) {
	wide := int64(*v)
	c.int64(&wide)
	if c.reading {
		*v = int(wide)
	}
}

// time codes a moment as its distance from base. The absent moment and base itself are frequent and take one byte: they have the codes 0 and 1. The
// moment just before base, which would have had code 1, has the code of the absent moment.
func (c *coder) time(v *base.Time) {
	absent := zigzag(-int64(c.base))
	code := zigzag(int64(*v - c.base))
	if !c.reading {
		if c.base != 0 {
			switch {
			case *v == 0:
				code = 0
			case *v == c.base:
				code = 1
			case code == 1:
				code = absent
			}
		}
		c.uint(&code)
		return
	}
	c.uint(&code)
	switch {
	case c.bad:
	case c.base != 0 && code == 0:
		*v = 0
	case c.base != 0 && code == 1:
		*v = c.base
	case c.base != 0 && code == absent:
		*v = c.base - 1
	default:
		*v = c.base + base.Time(unzigzag(code))
	}
}

// length codes a length or a count; a value that is read never exceeds the number of remaining bytes.
func (c *coder) length(n int) int {
	code := uint64(n)
	c.uint(&code)
	if c.bad || c.reading && code > uint64(len(c.in)) {
		c.fail()
		return 0
	}
	return int(code)
}

func (c *coder) text(v *string) {
	n := c.length(len(*v))
	if !c.reading {
		c.out = append(c.out, *v...)
		return
	}
	if !c.bad {
		*v, c.in = c.in[:n], c.in[n:]
	}
}

// bytes distinguishes nil from empty.
func (c *coder) bytes(v *[]byte) {
	present := *v != nil
	c.flag(&present)
	if present {
		c.someBytes(v)
	}
}

// someBytes codes bytes that are present, possibly empty.
func (c *coder) someBytes(v *[]byte) {
	n := c.length(len(*v))
	if !c.reading {
		c.out = append(c.out, *v...)
		return
	}
	if !c.bad {
		*v = make([]byte, n)
		copy(*v, c.in)
		c.in = c.in[n:]
	}
}

func (c *coder) json(v *json.RawMessage) { c.bytes((*[]byte)(v)) }

func (c *coder) flag(v *bool) {
	var code byte
	if *v {
		code = 1
	}
	c.byte(&code)
	if c.reading {
		*v = code == 1
	}
	c.check(code <= 1)
}

func (c *coder) uuid(v *base.UUID) {
	switch {
	case !c.reading:
		c.out = append(c.out, v[:]...)
	case len(c.in) < len(v):
		c.fail()
	default:
		copy(v[:], c.in)
		c.in = c.in[len(v):]
	}
}

func (c *coder) id(v *base.ID) {
	c.byte(&v.N)
	c.uuid(&v.UUID)
}

// check marks the bytes that are being read as broken unless ok.
func (c *coder) check(ok bool) {
	if c.reading && !ok {
		c.fail()
	}
}

// texts codes a list; the caller's flags distinguish nil from empty.
func (c *coder) texts(v *[]string) {
	n := c.length(len(*v))
	if c.reading {
		*v = make([]string, n)
	}
	for i := range *v {
		c.text(&(*v)[i])
	}
}

// frequent codes a text that is usually one of a table, which then takes one byte. Index 0 means that another text follows.
func (c *coder) frequent(v *string, table []string) {
	var place byte
	if !c.reading {
		place = byte(slices.Index(table[1:], *v) + 1)
	}
	c.byte(&place)
	switch {
	case place == 0:
		c.text(v)
	case int(place) >= len(table):
		c.fail()
	case c.reading:
		*v = table[place]
	}
}

// list codes the items of a list one by one; nil when there are none.
func list[T any](c *coder, v *[]T, one func(*T)) {
	n := c.length(len(*v))
	if !c.reading {
		for i := range *v {
			one(&(*v)[i])
		}
		return
	}
	for i := 0; i < n && !c.bad; i++ {
		var item T
		one(&item)
		*v = append(*v, item)
	}
}

// presized bounds the allocation for a count that was read before its items are.
const presized = 64

// tags codes at least one tag, sorted by key, so that equal records have equal bytes.
func (c *coder) tags(v *base.Tags) {
	n := c.length(len(*v))
	c.check(n > 0)
	if c.reading {
		tags := make(base.Tags, min(n, presized))
		for range n {
			var k, value string
			c.sharedText(&k, placeTag)
			c.text(&value)
			if c.bad {
				return
			}
			tags[k] = value
		}
		*v = tags
		return
	}
	var room [16]string
	keys := room[:0]
	for k := range *v {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		c.sharedText(&k, placeTag)
		value := (*v)[k]
		c.text(&value)
	}
}

// present returns *p; while reading, it first allocates the value.
func present[T any](c *coder, p **T) *T {
	if c.reading {
		*p = new(T)
	}
	return *p
}

// small codes an enumeration.
func small[T ~uint8](c *coder, v *T) {
	b := byte(*v)
	c.byte(&b)
	if c.reading {
		*v = T(b)
	}
}

func zigzag(v int64) uint64   { return uint64(v<<1) ^ uint64(v>>63) }
func unzigzag(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }

// damaged is the error for bytes that are not those that were written.
func damaged(what string, of base.UUID) error {
	return base.Errorf(base.CodeCorruption, "the stored %s of %s is damaged: its checksum is another", what, of)
}

// corrupt is the error for bytes that no encoder can have written.
func corrupt(what string, of base.UUID) error {
	return base.Errorf(base.CodeCorruption, "the stored %s of %s cannot be read", what, of)
}
