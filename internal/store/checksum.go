package store

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/flowfabric/flowfabric/internal/core"
)

// Everything that is stored carries the checksum of its bytes, so that damage of the disk is found when it is read and nothing wrong is
// served. What was stored before there were checksums has none and is read as it is.

// castagnoli is the polynomial that processors compute by themselves.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const sumSize = crc32.Size

func sumOf(data []byte) uint32 { return crc32.Checksum(data, castagnoli) }

// sealed is set in the first byte of a record, which is the version of its format, whose last bytes are the checksum of those before.
const sealed = 0x80

// seal ends the record that begins at from with its checksum.
func (c *coder) seal(from int) {
	c.out[from] |= sealed
	c.out = binary.LittleEndian.AppendUint32(c.out, sumOf(c.out[from:]))
}

// unseal takes the checksum off a record. ok is false if the bytes are not those that were written.
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

// A doc has its checksums at the end of the column of its body: that of the body and that of the data, as far as they are there, and last
// the byte that says which. JSON never ends with such a byte, so that bodies without checksums are told apart.
const (
	sealedDoc = 0x10
	docBody   = 0x01
	docData   = 0x02
	docMarks  = docBody | docData
)

// StoredBody is what the column of a doc's body holds.
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

// Unsealed turns a doc whose Body is the stored column into the doc that was written. If it is not that any more it is Damaged.
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

// damagedBody is no JSON: whoever reads the body of a doc answers that it cannot be read.
const damagedBody = "\x00"

// unsealBody takes the checksums off the body. It reports whether that of the body is right, and that of the data by the function given.
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

// Whole refuses a doc that is damaged. Codes: corruption.
func (d *Doc) Whole() error {
	if !d.Damaged {
		return nil
	}
	return core.Errorf(core.CodeCorruption, "the stored record %d %q of %q is not what was written", d.Kind, d.Key, d.Owner)
}
