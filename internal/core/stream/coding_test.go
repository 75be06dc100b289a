package stream

import (
	"bytes"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

// fullHead is a head with every part.
func fullHead() Head {
	return Head{
		Attempt: 3, LastSeq: 9, FirstAt: 1_000, LastAt: 2_000,
		Tallies:    [modes]Tally{{Frames: 4, Bytes: 77, LastSeq: 8}, {Frames: 2, Bytes: 4, LastSeq: 9}, {Frames: 3, LastSeq: 5}},
		Call:       Call{Present: true, Epoch: 2, ClientSeq: -7, Answer: Answer{FirstSeq: 8, LastSeq: 9, SummaryVersion: 2}},
		BestEffort: Pace{At: 1_500, Expected: 64.25, First: 2}, Deleted: [modes]int64{3, 0, 1},
	}
}

func TestE3_a_head_comes_back(t *testing.T) {
	t.Parallel()
	for _, h := range []Head{fullHead(), {Attempt: 1}} {
		want(t, "head", must[Head](t)(DecodeHead(h.Attempt, h.Encode())), h)
	}
	if size := len((&Head{}).Encode()); size > 16 {
		t.Errorf("an empty head takes %d bytes", size)
	}
}

func TestW10_a_head_with_unreadable_bytes_is_refused(t *testing.T) {
	t.Parallel()
	full := fullHead()
	stored := full.Encode()
	for n := range stored {
		_, err := DecodeHead(0, stored[:n])
		wantCode(t, err, base.CodeCorruption, "")
	}
	broken := func(change func(*Head)) []byte {
		h := fullHead()
		change(&h)
		return h.Encode()
	}
	for name, data := range map[string][]byte{
		"bytes after it":               append(slices.Clone(stored), 0),
		"another version":              append([]byte{2}, stored[1:]...),
		"an unknown part":              append([]byte{stored[0], stored[1] | 1<<3}, stored[2:]...),
		"frames without a mode":        broken(func(h *Head) { h.LastSeq++ }),
		"a mode with too many frames":  broken(func(h *Head) { h.Tallies[Durable].Frames++ }),
		"a mode without its last seq":  broken(func(h *Head) { h.Tallies[BestEffort].LastSeq = 0 }),
		"more bytes than frames allow": broken(func(h *Head) { h.Tallies[Summary].Bytes = 1 << 20 }),
		"a rate that is no number":     broken(func(h *Head) { h.BestEffort.Expected = math.NaN() }),
		"an endless rate":              broken(func(h *Head) { h.BestEffort.Expected = math.Inf(1) }),
		"an answer beyond the end":     broken(func(h *Head) { h.Call.Answer.LastSeq = 10 }),
		"a deletion beyond the end":    broken(func(h *Head) { h.Deleted[Durable] = 9 }),
	} {
		if _, err := DecodeHead(0, data); base.CodeOf(err) != base.CodeCorruption {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzHead(f *testing.F) {
	full := fullHead()
	f.Add(full.Encode())
	f.Add((&Head{}).Encode())
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := DecodeHead(1, data)
		if err != nil {
			wantCode(t, err, base.CodeCorruption, "")
			return
		}
		if again := h.Encode(); !bytes.Equal(again, data) {
			t.Fatalf("%x is written as %x", data, again)
		}
	})
}

// drawChunk draws a chunk as appends make them.
func drawChunk(t *rapid.T) Chunk {
	var c Chunk
	mode := Mode(rapid.IntRange(0, modes-1).Draw(t, "mode"))
	before := Tally{Frames: rapid.Int64Range(0, 1<<40).Draw(t, "frames")}
	if before.Frames > 0 {
		before.LastSeq = before.Frames + rapid.Int64Range(0, 1<<40).Draw(t, "others")
		before.Bytes = rapid.Int64Range(0, before.Frames).Draw(t, "bytes")
	}
	at := base.Time(rapid.Int64().Draw(t, "at"))
	seq := before.LastSeq
	payloads := rapid.SliceOfN(rapid.Byte(), 0, 300)
	words := rapid.SampledFrom([]string{"", "data", "stdout", "x", "application/json"})
	for i := range rapid.IntRange(1, 20).Draw(t, "count") {
		seq += rapid.SampledFrom([]int64{1, 1, 2, 1000}).Draw(t, "gap")
		f := Frame{
			Seq: seq, At: at, Mode: mode, Type: words.Draw(t, "type"), ContentType: words.Draw(t, "content type"),
			CorrelationID: words.Draw(t, "correlation id"), Payload: payloads.Draw(t, "payload"),
		}
		if mode == Summary {
			f.SummaryVersion = before.Frames + int64(i) + 1
		}
		c.add(f, before)
	}
	return c
}

func TestEI6_chunks_come_back_bit_for_bit(t *testing.T) {
	t.Parallel()
	testseed.Check(t, func(t *rapid.T) {
		c := drawChunk(t)
		stored := c.Encode()
		back := must[Chunk](t)(DecodeChunk(stored))
		want(t, "extent", back.Extent, c.Extent)
		wantFrames(t, "frames", back.Frames, c.Frames)
		want(t, "extent of a prefix", must[Extent](t)(DecodeExtent(stored[:min(len(stored), ExtentPrefix)])), c.Extent)
		cut := rapid.IntRange(0, len(stored)-1).Draw(t, "cut")
		_, err := DecodeChunk(stored[:cut])
		wantCode(t, err, base.CodeCorruption, "")
	})
}

func TestEI6_a_payload_of_any_bytes_comes_back(t *testing.T) {
	t.Parallel()
	random := testseed.New(t)
	for _, size := range []int{0, 1, 127, 128, 4096, MaxPayload - 1, MaxPayload} {
		payload := make([]byte, size)
		for i := range payload {
			payload[i] = byte(random.Uint32())
		}
		var c Chunk
		c.add(Frame{Seq: 1, Type: "data", Payload: payload}, Tally{})
		wantFrames(t, "frames", must[Chunk](t)(DecodeChunk(c.Encode())).Frames, c.Frames)
	}
}

func TestW10_a_chunk_with_unreadable_bytes_is_refused(t *testing.T) {
	t.Parallel()
	chunk := func(change func(*Chunk)) []byte {
		var c Chunk
		for i := range int64(3) {
			c.add(Frame{Seq: 5 + i, Type: "data", ContentType: "a/b", Payload: []byte("abc")}, Tally{Frames: 2, Bytes: 6, LastSeq: 4})
		}
		change(&c)
		return c.Encode()
	}
	if _, err := DecodeChunk(chunk(func(*Chunk) {})); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"nothing":                  nil,
		"bytes after it":           append(chunk(func(*Chunk) {}), 0),
		"another version":          append([]byte{9}, chunk(func(*Chunk) {})[1:]...),
		"no such mode":             chunk(func(c *Chunk) { c.Mode = 3 }),
		"no frames":                chunk(func(c *Chunk) { c.Count, c.Frames = 0, nil }),
		"more frames than it says": chunk(func(c *Chunk) { c.Count = 2 }),
		"fewer":                    chunk(func(c *Chunk) { c.Count = 4 }),
		"another last seq":         chunk(func(c *Chunk) { c.LastSeq++ }),
		"other bytes":              chunk(func(c *Chunk) { c.Bytes++ }),
		"another last size":        chunk(func(c *Chunk) { c.LastSize-- }),
		"no frame before it":       chunk(func(c *Chunk) { c.Prev = 0 }),
		"seqs that go back":        chunk(func(c *Chunk) { c.Frames[1].Seq = 5 }),
		"a long payload":           chunk(func(c *Chunk) { c.Frames[1].Payload = make([]byte, MaxPayload+1) }),
		"a long type":              chunk(func(c *Chunk) { c.Frames[1].Type = strings.Repeat("a", 65) }),
	} {
		if _, err := DecodeChunk(data); base.CodeOf(err) != base.CodeCorruption {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzChunk(f *testing.F) {
	a, _ := Head{}.Append(testPolicy(), &Appending{Drafts: []Draft{text("x"), patch(`{"a":1}`), {Mode: BestEffort, Type: "log", CorrelationID: "c"}}, Now: 9})
	for i := range a.Chunks {
		f.Add(a.Chunks[i].Encode())
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		extent, extentErr := DecodeExtent(data)
		c, err := DecodeChunk(data)
		if err != nil {
			wantCode(t, err, base.CodeCorruption, "")
			return
		}
		again := must[Chunk](t)(DecodeChunk(c.Encode()))
		if extentErr != nil || extent != c.Extent || again.Extent != c.Extent || !reflect.DeepEqual(again.Frames, c.Frames) {
			t.Fatalf("read\n%+v\nthen\n%+v", c, again)
		}
	})
}

func TestE15_keys_sort_as_attempt_mode_and_seq(t *testing.T) {
	t.Parallel()
	testseed.Check(t, func(t *rapid.T) {
		draw := func(name string) (key string, at [3]int64) {
			at[0] = rapid.Int64Range(0, 1<<31-1).Draw(t, name+" attempt")
			at[1] = rapid.Int64Range(0, modes-1).Draw(t, name+" mode")
			at[2] = rapid.Int64Range(0, 1<<63-1).Draw(t, name+" seq")
			key = Key(int(at[0]), Mode(at[1]), at[2])
			attempt, mode, seq, ok := ParseKey(key)
			if !ok || attempt != int(at[0]) || mode != Mode(at[1]) || seq != at[2] {
				t.Fatalf("%s is read as %d %s %d", key, attempt, mode, seq)
			}
			return key, at
		}
		a, inA := draw("a")
		b, inB := draw("b")
		if got := strings.Compare(a, b); got != letterOrder(inA, inB) {
			t.Fatalf("%s and %s: %d", a, b, got)
		}
		limit := KeyLimit(int(inA[0]), Mode(inA[1]))
		if a >= limit || b > a && (b < limit) != (inA[0] == inB[0] && inA[1] == inB[1]) {
			t.Fatalf("%s is the limit of %s, and %s comes after it", limit, a, b)
		}
	})
}

// letterOrder compares attempts, the letters of modes, and seqs.
func letterOrder(a, b [3]int64) int {
	a[1], b[1] = int64(modeLetters[a[1]]), int64(modeLetters[b[1]])
	return slices.Compare(a[:], b[:])
}

func TestE15_texts_that_are_no_keys_are_refused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "a", "a0", "a0d", "a0da", "a0xa1", "a0da1a", "b0ada1", "a0dA1", "q0da1", "a0db01", "ifffffffffda1", "a0dpffffffffffffffff"} {
		if _, _, _, ok := ParseKey(text); ok {
			t.Errorf("%q is a key", text)
		}
	}
}
