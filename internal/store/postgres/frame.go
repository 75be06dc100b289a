package postgres

import (
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// frameKey is the key under which a connection keeps its frame.
const frameKey = "flowfabric.frame"

// largestFrame is the largest buffer that a connection keeps.
const largestFrame = 1 << 20

// frame is the buffer into which a connection encodes what it sends. The driver drops its own buffer after every large message and lets the next
// one grow from nothing; frame puts the same buffer back. It is sent as two messages of no bytes, before and after the others, which see and
// replace the driver's buffer.
type frame struct {
	to    *pgproto3.Frontend
	buf   []byte
	spare spare
}

func frameOf(conn *pgconn.PgConn) *frame {
	data := conn.CustomData()
	f, _ := data[frameKey].(*frame)
	if f == nil {
		f = &frame{to: conn.Frontend()}
		data[frameKey] = f
	}
	return f
}

// open gives the driver the buffer for the following messages.
func (f *frame) open() { f.to.Send(opening{f}) }

// keep records the buffer with the encoded messages before it is sent.
func (f *frame) keep() { f.to.Send(keeping{f}) }

type (
	opening struct{ *frame }
	keeping struct{ *frame }
)

// Encode returns the frame's buffer in place of dst.
func (o opening) Encode(dst []byte) ([]byte, error) {
	if cap(o.buf) <= cap(dst) {
		return dst, nil
	}
	return append(o.buf[:0], dst...), nil
}

// Encode records dst.
func (k keeping) Encode(dst []byte) ([]byte, error) {
	if cap(dst) <= largestFrame {
		k.buf = dst[:0]
	}
	return dst, nil
}

// Frontend and Decode make frame a message that a client sends; it is never received.

func (f *frame) Frontend()           {}
func (f *frame) Decode([]byte) error { return nil }
