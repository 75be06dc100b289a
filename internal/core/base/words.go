package base

import (
	"encoding/binary"
	"hash"
)

// NameOf returns the name of n in a table.
func NameOf(names []string, n int) string {
	if n < len(names) {
		return names[n]
	}
	return "unknown"
}

// ValueOf is the inverse of word. The empty text names nothing.
func ValueOf(names []string, text string) (int, bool) {
	if text == "" {
		return 0, false
	}
	for n, name := range names {
		if name == text {
			return n, true
		}
	}
	return 0, false
}

// SetOf returns the texts as a set, nil for an empty list.
func SetOf(texts []string) map[string]bool {
	if len(texts) == 0 {
		return nil
	}
	set := make(map[string]bool, len(texts))
	for _, text := range texts {
		set[text] = true
	}
	return set
}

// AddPart writes the length first, so that different lists of parts never have the same bytes.
func AddPart(h hash.Hash, part []byte) {
	var length [8]byte
	binary.BigEndian.PutUint64(length[:], uint64(len(part)))
	h.Write(length[:])
	h.Write(part)
}
