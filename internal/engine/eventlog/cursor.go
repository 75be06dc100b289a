package eventlog

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// place is a position in the log: behind event number index of commit seq; index 0 is before its first (E32).
type place struct {
	seq   int64
	index int32
}

// cursor is the opaque text of a place, with the log's identity inside.
func (e *Reader) cursor(p place) string {
	var raw [20]byte
	id := e.Store.Info().LogID
	copy(raw[:8], id[8:])
	binary.BigEndian.PutUint64(raw[8:], uint64(p.seq))
	binary.BigEndian.PutUint32(raw[16:], uint32(p.index))
	return base64.RawURLEncoding.EncodeToString(raw[:])
}

func (e *Reader) parseCursor(text string) (place, error) {
	raw, err := base.DecodeURLText(text)
	if err != nil || len(raw) != 20 {
		return place{}, invalidCursor("not a cursor of the event log")
	}
	p := place{seq: int64(binary.BigEndian.Uint64(raw[8:])), index: int32(binary.BigEndian.Uint32(raw[16:]))}
	id := e.Store.Info().LogID
	switch {
	case p.seq < 0 || p.index < 0:
		return place{}, invalidCursor("not a cursor of the event log")
	case string(raw[:8]) != string(id[8:]):
		return place{}, invalidCursor("the cursor is of another event log: of another store, or of this one before it was restored or lost its newest commits")
	}
	return p, nil
}

func invalidCursor(why string) error {
	return base.Errorf(base.CodeInvalidCursor, "%s", why).WithField("after").WithHint("begin again with start, the oldest event that is kept, or with end")
}

// eventID is the id of an event: the same for every reader, derived from its place.
func (e *Reader) eventID(p place, at base.Time) base.UUID {
	id := e.Store.Info().LogID
	sum := sha256.Sum256([]byte(string(id[:]) + e.cursor(p)))
	return base.MintUUID(at, [10]byte(sum[:10]))
}
