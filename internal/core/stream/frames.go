package stream

import (
	"fmt"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// frameReader reads the frames of an encoded chunk one by one.
type frameReader struct {
	extent      Extent
	d           decoder
	pairs       []pair
	index       int64 // of the next frame
	seq         int64 // of the frame before it
	before      int64 // bytes of the mode's frames before it
	size        int64 // of the frame before it
	correlation string
}

// open begins to read a chunk. The reader may have read another one before.
func (r *frameReader) open(data []byte) error {
	d := decoder{data: data}
	extent := d.extent()
	pairs := r.pairs[:0]
	for n := d.count(); n > 0 && !d.bad; n-- {
		pairs = append(pairs, pair{frameType: word(d.text(MaxType)), contentType: word(d.text(maxContentType))})
	}
	d.check(extent.Count <= int64(len(d.data))/3) // a frame takes three bytes at least
	*r = frameReader{extent: extent, d: d, pairs: pairs, seq: extent.Prev, before: extent.Before}
	return r.err()
}

// next reads a frame. It returns false after the last one, and when the bytes cannot be read: see err.
func (r *frameReader) next(f *Frame) bool {
	if r.index == r.extent.Count || r.d.bad {
		r.close()
		return false
	}
	r.before += r.size
	delta := r.d.count()
	r.d.check(delta >= 1 && delta <= r.extent.LastSeq-r.seq)
	mark := r.d.uint()
	at := mark >> correlationBits
	r.d.check(at < uint64(len(r.pairs)))
	f.CorrelationID = ""
	switch mark & (1<<correlationBits - 1) {
	case correlationNone:
	case correlationSame:
		f.CorrelationID = r.correlation
	case correlationNew:
		r.correlation = string(r.d.text(MaxCorrelation))
		f.CorrelationID = r.correlation
	default:
		r.d.fail()
	}
	f.Payload = r.d.text(MaxPayload)
	if r.d.bad {
		return false
	}
	r.seq += delta
	r.size = int64(len(f.Payload))
	f.Seq, f.At, f.Mode = r.seq, r.extent.At, r.extent.Mode
	f.Type, f.ContentType = r.pairs[at].frameType, r.pairs[at].contentType
	f.SummaryVersion = 0
	if f.Mode == Summary {
		f.SummaryVersion = r.extent.Ordinal + r.index
	}
	r.index++
	return true
}

// close checks the end of the chunk.
func (r *frameReader) close() {
	s := &r.extent
	r.d.check(r.d.finished() && r.seq == s.LastSeq && r.size == s.LastSize && r.before+r.size == s.Before+s.Bytes)
}

func (r *frameReader) err() error {
	if r.d.bad {
		return unreadable(fmt.Sprintf("chunk after frame %d of a stream", r.extent.Prev))
	}
	return nil
}

// word returns a text, without a copy for the frequent ones.
func word(text []byte) string {
	switch string(text) {
	case DefaultType:
		return DefaultType
	case "stdout":
		return "stdout"
	case "stderr":
		return "stderr"
	case "log":
		return "log"
	case base.DefaultContentType:
		return base.DefaultContentType
	case DefaultPatchContentType:
		return DefaultPatchContentType
	case "text/plain; charset=utf-8":
		return "text/plain; charset=utf-8"
	}
	return string(text)
}
