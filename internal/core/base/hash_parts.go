package base

import (
	"encoding/binary"
	"hash"
)

// AddPart writes the length first, so that different lists of parts never have the same bytes.
func AddPart(h hash.Hash, part []byte) {
	var length [8]byte
	binary.BigEndian.PutUint64(length[:], uint64(len(part)))
	h.Write(length[:])
	h.Write(part)
}
