package stream

import (
	"encoding/binary"
	"math"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// decoder reads what the append functions of encoding/binary wrote. After bytes that no encoder can have written, bad is set and everything is zero.
// Numbers are accepted in their shortest form alone, so that equal values have equal bytes.
type decoder struct {
	data []byte // what is left
	bad  bool
}

func (d *decoder) fail() {
	d.bad, d.data = true, nil
}

// check fails unless ok.
func (d *decoder) check(ok bool) {
	if !ok {
		d.fail()
	}
}

func (d *decoder) byte() byte {
	if len(d.data) == 0 {
		d.fail()
		return 0
	}
	b := d.data[0]
	d.data = d.data[1:]
	return b
}

func (d *decoder) uint() uint64 {
	if len(d.data) > 0 && d.data[0] < 0x80 { // the most frequent case
		n := uint64(d.data[0])
		d.data = d.data[1:]
		return n
	}
	n, size := binary.Uvarint(d.data)
	if size <= 0 || d.data[size-1] == 0 {
		d.fail()
		return 0
	}
	d.data = d.data[size:]
	return n
}

// count reads a number of at least 0.
func (d *decoder) count() int64 {
	n := d.uint()
	if n > math.MaxInt64 {
		d.fail()
		return 0
	}
	return int64(n)
}

func (d *decoder) int() int64 {
	n := d.uint()
	return int64(n>>1) ^ -int64(n&1)
}

func (d *decoder) time() base.Time { return base.Time(d.int()) }

// cut takes bytes off the front, which the result shares.
func (d *decoder) cut(n int64) []byte {
	if n < 0 || n > int64(len(d.data)) {
		d.fail()
		return nil
	}
	taken := d.data[:n:n]
	d.data = d.data[n:]
	return taken
}

// text reads a length and that many bytes, up to most.
func (d *decoder) text(most int64) []byte {
	n := d.count()
	if n > most {
		d.fail()
	}
	return d.cut(n)
}

// finished reports whether everything was read and nothing was bad.
func (d *decoder) finished() bool { return !d.bad && len(d.data) == 0 }

func appendText[T string | []byte](to []byte, text T) []byte {
	to = binary.AppendUvarint(to, uint64(len(text)))
	return append(to, text...)
}

func appendCount(to []byte, n int64) []byte { return binary.AppendUvarint(to, uint64(n)) }

// unreadable is the error for bytes that no encoder can have written.
func unreadable(what string) error {
	return base.Errorf(base.CodeCorruption, "the stored %s cannot be read", what)
}
