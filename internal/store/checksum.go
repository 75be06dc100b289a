package store

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Everything that is stored carries a checksum of its bytes, so that disk damage is detected on reading and damaged data is never served. Data that
// was stored before checksums were introduced has none and is read without a check.

// castagnoli is the polynomial with hardware support.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const sumSize = crc32.Size

func sumOf(data []byte) uint32 { return crc32.Checksum(data, castagnoli) }

// sealed is a bit of the first byte of a record, the format version. It is set if the last bytes of the record are the checksum of the bytes
// before.
const sealed = 0x80

// seal appends the checksum of the record that begins at from.
func (c *coder) seal(from int) {
	c.out[from] |= sealed
	c.out = binary.LittleEndian.AppendUint32(c.out, sumOf(c.out[from:]))
}

// unseal removes the checksum from a record. ok is false if the bytes are not those that were written.
func unseal(record []byte) (bytes []byte, ok bool) {
	if len(record) == 0 || record[0]&sealed == 0 {
		return record, true
	}
	end := len(record) - sumSize
	if end < 1 {
		return nil, false
	}
	return record[:end], binary.LittleEndian.Uint32(record[end:]) == sumOf(record[:end])
}

// sum codes the checksum of bytes that are stored beside the record.
func (c *coder) sum(v *uint32) {
	var room [sumSize]byte
	binary.LittleEndian.PutUint32(room[:], *v)
	for i := range room {
		c.byte(&room[i])
	}
	if c.reading {
		*v = binary.LittleEndian.Uint32(room[:])
	}
}

// The checksums of a doc are at the end of its body column: that of the body and that of the data, as far as present, followed by a byte that
// states which are present. JSON never ends with such a byte, so bodies without checksums can be recognized.
const (
	sealedDoc = 0x10
	docBody   = 0x01
	docData   = 0x02
	docMarks  = docBody | docData
)

// StoredBody returns the content of the body column of a doc.
func (d *Doc) StoredBody() []byte {
	stored := append(make([]byte, 0, len(d.Body)+2*sumSize+1), d.Body...)
	mark := byte(sealedDoc)
	if d.Body != nil {
		mark |= docBody
		stored = binary.LittleEndian.AppendUint32(stored, sumOf(d.Body))
	}
	if d.Data != nil {
		mark |= docData
		stored = binary.LittleEndian.AppendUint32(stored, sumOf(d.Data))
	}
	return append(stored, mark)
}

// Unsealed turns a doc whose Body is the stored column into the doc that was written. If the bytes have changed, the result is Damaged.
func (d Doc) Unsealed() Doc {
	ok := d.unsealBody(func(sum uint32, there bool) bool { return there == (d.Data != nil) && (!there || sum == sumOf(d.Data)) })
	if !ok {
		return Doc{DocRef: d.DocRef, Body: []byte(damagedBody), ExpiresAt: d.ExpiresAt, Damaged: true}
	}
	return d
}

// UnsealedBody is Unsealed for a doc that was loaded without its data.
func (d Doc) UnsealedBody() Doc {
	if !d.unsealBody(func(uint32, bool) bool { return true }) {
		return Doc{DocRef: d.DocRef, Body: []byte(damagedBody), ExpiresAt: d.ExpiresAt, Damaged: true}
	}
	return d
}

// damagedBody is not valid JSON: decoding the body of such a doc fails.
const damagedBody = "\x00"

// unsealBody removes the checksums from the body. It reports whether the checksum of the body is right and dataFits accepts that of the data.
func (d *Doc) unsealBody(dataFits func(sum uint32, there bool) bool) bool {
	end := len(d.Body) - 1
	if end < 0 || d.Body[end]&^docMarks != sealedDoc {
		return true
	}
	mark, sums := d.Body[end], 0
	if mark&docBody != 0 {
		sums += sumSize
	}
	if mark&docData != 0 {
		sums += sumSize
	}
	start := end - sums
	if start < 0 {
		return false
	}
	body, rest := d.Body[:start:start], d.Body[start:end]
	if mark&docBody == 0 {
		if d.Body = nil; start > 0 {
			return false
		}
	} else {
		if binary.LittleEndian.Uint32(rest) != sumOf(body) {
			return false
		}
		d.Body, rest = body, rest[sumSize:]
	}
	if mark&docData == 0 {
		return dataFits(0, false)
	}
	return dataFits(binary.LittleEndian.Uint32(rest), true)
}

// Whole refuses a damaged doc. Codes: corruption.
func (d *Doc) Whole() error {
	if !d.Damaged {
		return nil
	}
	return base.Errorf(base.CodeCorruption, "the stored record %d %q of %q is not what was written", d.Kind, d.Key, d.Owner)
}
