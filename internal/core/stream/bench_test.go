package stream

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkAppend decides and encodes calls: everything that an append computes.
func BenchmarkAppend(b *testing.B) {
	for _, n := range []int{1, 16, 256} {
		for _, mode := range []Mode{Durable, BestEffort} {
			b.Run(fmt.Sprintf("%s/frames=%d", mode, n), func(b *testing.B) {
				p, drafts, h := testPolicy(), some(n, mode, 100), Head{Attempt: 1}
				b.ReportAllocs()
				for b.Loop() {
					seq := h.Call.ClientSeq + 1
					a := must[Appended](b)(h.Append(p, &Appending{Epoch: 1, ClientSeq: &seq, Drafts: drafts, Now: 1}))
					for i := range a.Chunks {
						_, _ = a.Chunks[i].Key(1), a.Chunks[i].Encode()
					}
					_ = a.Head.Encode()
					h = a.Head
				}
				reportFrames(b, n)
			})
		}
	}
}

func reportFrames(b *testing.B, n int) {
	b.Helper()
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "frames/s")
}

// BenchmarkRead reads a stream of 100,000 frames in pages of 1,000: decode and merge.
func BenchmarkRead(b *testing.B) {
	const frames = 100_000
	for _, row := range []struct {
		name  string
		batch int
		modes []Mode
	}{
		{"chunks of 1", 1, []Mode{Durable}},
		{"chunks of 100", 100, []Mode{Durable}},
		{"chunks of 100, two modes", 100, []Mode{Durable, BestEffort}},
	} {
		b.Run(row.name, func(b *testing.B) {
			m := newModel(testPolicy())
			m.policy.MaxFrames, m.policy.BestEffort.Floor, m.policy.BestEffort.Ceiling = 1_000_000, 1_000_000, 1_000_000
			rows := map[Mode][][]byte{}
			drafts := some(row.batch, Durable, 100)
			for i := range drafts {
				drafts[i].Mode = row.modes[i%len(row.modes)]
			}
			for range frames / row.batch {
				a := must[Appended](b)(m.head.Append(m.policy, &Appending{Drafts: drafts, Now: m.now}))
				m.head = a.Head
				for i := range a.Chunks {
					rows[a.Chunks[i].Mode] = append(rows[a.Chunks[i].Mode], a.Chunks[i].Encode())
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				readAll(b, m, rows, frames/row.batch)
			}
			reportFrames(b, frames)
		})
	}
}

func readAll(b *testing.B, m *model, rows map[Mode][][]byte, chunks int) {
	b.Helper()
	q := Query{To: m.head.LastSeq, Limit: 1000}
	perChunk := m.head.LastSeq / int64(chunks)
	for n := int64(0); ; {
		r := NewReader(m.head, m.policy, q, m.now)
		for wants := r.Wants(); len(wants) > 0; wants = r.Wants() {
			for _, w := range wants {
				_, _, from, _ := ParseKey(w.From)
				at := (from - 1) / perChunk
				if err := r.Feed(w.Mode, rows[w.Mode][at:min(int64(chunks), at+64)]); err != nil {
					b.Fatal(err)
				}
			}
		}
		page := r.Page()
		n += int64(len(page.Frames))
		if q.After = page.Position; !page.More {
			if n != m.head.LastSeq {
				b.Fatalf("%d frames", n)
			}
			return
		}
	}
}

// BenchmarkPatch applies a call of patches to a document: reads it, merges, and writes it.
func BenchmarkPatch(b *testing.B) {
	for _, members := range []int{10, 200, 4000} {
		for _, n := range []int{1, 64} {
			b.Run(fmt.Sprintf("members=%d/patches=%d", members, n), func(b *testing.B) {
				m := newModel(testPolicy())
				for i := 0; i < members; i += 200 {
					m.append(b, patch(wide(i, min(members, i+200))))
				}
				var drafts []Draft
				for i := range n {
					drafts = append(drafts, patch(fmt.Sprintf(`{"step":%d,"k%d":{"state":"done","progress":{"percent":100,"note":null}}}`, i, i*7%members)))
				}
				b.SetBytes(int64(len(m.doc.Text)))
				b.ReportAllocs()
				for b.Loop() {
					e := edit(m.doc)
					for i := range drafts {
						if err := e.apply(drafts[i].Payload); err != nil {
							b.Fatal(err)
						}
					}
					_ = e.document(m.doc, 1).Encode()
				}
				b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "patches/s")
			})
		}
	}
}

// wide is an object with members from and up to these numbers.
func wide(from, to int) string {
	var all []string
	for i := from; i < to; i++ {
		all = append(all, fmt.Sprintf(`"k%d":{"state":"open","tries":%d}`, i, i))
	}
	return "{" + strings.Join(all, ",") + "}"
}
