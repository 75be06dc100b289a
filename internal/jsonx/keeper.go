package jsonx

import "strings"

// Strings that are read are cut from pieces of memory, so that not every one costs an allocation. One that is kept for long, as the id of
// a lease, keeps its piece with it: so pieces are small, whatever the size of the document, and hold what belongs to about one item.
const (
	pieceSize   = 512
	ownMemory   = pieceSize / 4 // strings from this length on stand alone
	longestWord = 32
	wordSlots   = 64
)

// keeper makes strings of what is read. Words that come again and again, as kinds and states do, are made once.
type keeper struct {
	total int // bytes of the document: its strings have no more
	piece strings.Builder
	words *[wordSlots]string // nil until the first; not of a document about one thing
}

func (k *keeper) keep(chars []byte) string {
	switch {
	case len(chars) == 0:
		return ""
	case len(chars) <= longestWord && k.total > 4*pieceSize:
		return k.word(chars)
	case len(chars) >= ownMemory:
		return string(chars)
	default:
		return k.cut(chars)
	}
}

func (k *keeper) word(chars []byte) string {
	if k.words == nil {
		k.words = new([wordSlots]string)
	}
	// Words of one length differ at the ends, mostly.
	slot := &k.words[(len(chars)*31+int(chars[0])*7+int(chars[len(chars)-1]))%wordSlots]
	if *slot != string(chars) {
		*slot = k.cut(chars)
	}
	return *slot
}

// cut copies characters into the present piece, or into a new one when it is full. What a piece holds does not change any more.
func (k *keeper) cut(chars []byte) string {
	if k.piece.Cap()-k.piece.Len() < len(chars) {
		k.piece = strings.Builder{}
		k.piece.Grow(min(pieceSize, max(k.total, len(chars))))
	}
	begin := k.piece.Len()
	k.piece.Write(chars)
	return k.piece.String()[begin:]
}
