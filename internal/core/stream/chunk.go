package stream

import (
	"encoding/binary"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Chunk is what one append stores of one mode: one row. Its frames have the mode and the time of the chunk, and summary frames the version that is their
// ordinal.
type Chunk struct {
	Extent
	Frames []Frame
}

// Extent states where a chunk lies in the sequence of all frames of its mode that were ever appended. It suffices to decide whether the chunk is retained.
type Extent struct {
	Mode     Mode
	At       base.Time
	Ordinal  int64 // of its first frame, from 1
	Count    int64 // of its frames, at least 1
	Prev     int64 // seq of the mode's frame before it; 0: none
	LastSeq  int64
	Before   int64 // bytes of the mode's frames before it
	Bytes    int64 // of its frames
	LastSize int64 // bytes of its last frame
}

const chunkVersion = 1

// ExtentPrefix is the number of leading bytes of an encoded chunk that suffice for DecodeExtent.
const ExtentPrefix = 96

// add appends a frame to a chunk, which continues the tally of its mode.
func (c *Chunk) add(f Frame, t Tally) {
	if len(c.Frames) == 0 {
		c.Extent = Extent{Mode: f.Mode, At: f.At, Ordinal: t.Frames + 1, Prev: t.LastSeq, Before: t.Bytes}
	}
	c.LastSeq, c.LastSize = f.Seq, int64(len(f.Payload))
	c.Count++
	c.Bytes += c.LastSize
	c.Frames = append(c.Frames, f)
}

// Key is the key of the row of a chunk in the streams of an execution.
func (c *Chunk) Key(attempt int) string { return Key(attempt, c.Mode, c.LastSeq) }

// frameRoom is an estimate of what a frame takes beside its payload.
const frameRoom = 8

// Encode returns the stored form of c. Payloads are stored bit for bit.
func (c *Chunk) Encode() []byte {
	to := make([]byte, 0, ExtentPrefix+int(c.Bytes)+len(c.Frames)*frameRoom)
	to = c.appendExtent(to)
	pairs := c.pairs()
	to = appendCount(to, int64(len(pairs)))
	for _, p := range pairs {
		to = appendText(to, p.frameType)
		to = appendText(to, p.contentType)
	}
	seq, correlation, at := c.Prev, "", 0
	for i := range c.Frames {
		f := &c.Frames[i]
		if pairs[at] != pairOf(f) {
			at = placeOf(pairs, f)
		}
		to = appendCount(to, f.Seq-seq)
		mark := correlationNone
		switch {
		case f.CorrelationID == "":
		case f.CorrelationID == correlation:
			mark = correlationSame
		default:
			mark = correlationNew
		}
		to = binary.AppendUvarint(to, uint64(at)<<correlationBits|mark)
		if mark == correlationNew {
			correlation = f.CorrelationID
			to = appendText(to, correlation)
		}
		to = appendText(to, f.Payload)
		seq = f.Seq
	}
	return to
}

// Marks of the correlation id of a frame: none, the last one in the chunk, or one that follows.
const (
	correlationNone uint64 = iota
	correlationSame
	correlationNew
	correlationBits = 2
)

func (s *Extent) appendExtent(to []byte) []byte {
	to = append(to, chunkVersion, byte(s.Mode))
	to = binary.AppendVarint(to, int64(s.At))
	to = appendCount(to, s.Ordinal)
	to = appendCount(to, s.Count)
	to = appendCount(to, s.Prev)
	to = appendCount(to, s.LastSeq-s.Prev)
	to = appendCount(to, s.Before)
	to = appendCount(to, s.Bytes)
	return appendCount(to, s.LastSize)
}

// pair is what frames of one source have in common.
type pair struct{ frameType, contentType string }

func pairOf(f *Frame) pair { return pair{f.Type, f.ContentType} }

// pairs lists the different pairs of the chunk.
func (c *Chunk) pairs() []pair {
	var found []pair
	var seen map[pair]bool
	for i := range c.Frames {
		p := pairOf(&c.Frames[i])
		if len(found) > 0 && (found[len(found)-1] == p || seen[p]) {
			continue
		}
		if len(found) > 0 {
			if seen == nil {
				seen = map[pair]bool{found[0]: true}
			}
			seen[p] = true
		}
		found = append(found, p)
	}
	return found
}

func placeOf(pairs []pair, f *Frame) int {
	for i, p := range pairs {
		if p == pairOf(f) {
			return i
		}
	}
	return 0 // cannot be: pairs has all of them
}

// DecodeExtent reads the extent of an encoded chunk, of which data has all bytes or the first ExtentPrefix. Anything else is corruption.
func DecodeExtent(data []byte) (Extent, error) {
	d := decoder{data: data}
	s := d.extent()
	if d.bad {
		return Extent{}, unreadable("chunk of a stream")
	}
	return s, nil
}

// DecodeChunk reads the output of Encode; anything else is corruption. The payloads of the frames share data, which must not change afterwards.
func DecodeChunk(data []byte) (Chunk, error) {
	var r frameReader
	if err := r.open(data); err != nil {
		return Chunk{}, err
	}
	c := Chunk{Extent: r.extent, Frames: make([]Frame, 0, r.extent.Count)}
	for {
		var f Frame
		if !r.next(&f) {
			return c, r.err()
		}
		c.Frames = append(c.Frames, f)
	}
}

func (d *decoder) extent() Extent {
	d.check(d.byte() == chunkVersion)
	s := Extent{Mode: Mode(d.byte()), At: d.time(), Ordinal: d.count(), Count: d.count(), Prev: d.count()}
	s.LastSeq = s.Prev + d.count()
	s.Before, s.Bytes, s.LastSize = d.count(), d.count(), d.count()
	d.check(int(s.Mode) < modes && s.Ordinal >= 1 && s.Count >= 1)
	d.check((s.Ordinal == 1) == (s.Prev == 0) && s.Prev >= s.Ordinal-1 && s.LastSeq > s.Prev && s.LastSeq-s.Prev >= s.Count)
	d.check(s.Bytes >= s.LastSize && s.Before+s.Bytes >= s.Before && s.Before/MaxPayload <= s.Ordinal-1)
	return s
}
