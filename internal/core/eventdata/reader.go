package eventdata

import (
	"encoding/binary"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// dataReader iterates over the fields of data that was written by a Builder or has passed an Shape. While an Shape is parsed, broken
// parts set bad and end the iteration.
type dataReader struct {
	shape, values string // what is left of them
	texts         []string
	at            int // the next text
	depth         int // of the object that contains the field; for an object, the depth that it opens
	bad           bool

	kind  dataKind
	field Field
}

func (d Data) reader() dataReader {
	return dataReader{shape: d.shape, values: d.values, texts: d.texts, depth: 1}
}

// next advances to the next field, past the value of the one before.
func (r *dataReader) next() bool {
	if r.shape == "" || r.bad {
		return false
	}
	if r.depth == 0 {
		return r.fail() // bytes after the end
	}
	r.kind, r.field = dataKind(r.shape[0]), 0
	r.shape = r.shape[1:]
	if r.kind.named() {
		if r.kind >= dataKinds || r.shape == "" || int(r.shape[0]) >= len(fieldNames) {
			return r.fail()
		}
		r.field = Field(r.shape[0])
		r.shape = r.shape[1:]
	}
	switch r.kind {
	case dataOpen:
		r.depth++
	case dataShut, dataWhole:
		r.depth--
	}
	return true
}

func (r *dataReader) fail() bool {
	r.bad = true
	return false
}

// skip skips the value of the field.
func (r *dataReader) skip() {
	switch r.kind {
	case dataText, dataJSON, dataWhole:
		r.at++
	case dataTexts:
		r.at += r.count()
	case dataNumber, dataMoment:
		r.uint()
	case dataUUID:
		r.cut(16)
	case dataID:
		r.cut(17)
	}
}

func (r *dataReader) text() string {
	r.at++
	return r.texts[r.at-1]
}

func (r *dataReader) list() []string {
	n := r.count()
	r.at += n
	return r.texts[r.at-n : r.at]
}

// maxListed bounds a count that was read, so that sums of counts do not overflow.
const maxListed = 1 << 31

func (r *dataReader) count() int {
	n := r.uint()
	if n > maxListed {
		r.fail()
		return 0
	}
	return int(n)
}

func (r *dataReader) int() int64 {
	n := r.uint()
	return int64(n>>1) ^ -int64(n&1)
}

// uint reads the output of binary.AppendUvarint.
func (r *dataReader) uint() uint64 {
	var sum uint64
	for i := 0; i < len(r.values) && i < binary.MaxVarintLen64; i++ {
		b := r.values[i]
		sum |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			r.values = r.values[i+1:]
			return sum
		}
	}
	r.fail()
	return 0
}

func (r *dataReader) uuid() (u base.UUID) {
	copy(u[:], r.cut(len(u)))
	return u
}

// cut takes bytes off the front of the values.
func (r *dataReader) cut(n int) string {
	if len(r.values) < n {
		r.fail()
		return ""
	}
	taken := r.values[:n]
	r.values = r.values[n:]
	return taken
}
