package stream

import (
	"bytes"
	"math/big"
	"slices"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// model is a stream beside a plain account of it: every frame that was ever appended, and which of them were dropped. It says once more what the rules
// say, frame by frame.
type model struct {
	policy *Policy
	now    base.Time
	head   Head
	doc    *Document
	rows   map[string][]byte

	frames  []Frame // all, by seq
	dropped []bool  // of best-effort frames: dropped by number, or deleted
	rate    *big.Rat
	rateAt  base.Time
	patches [][]byte
	stop    func() bool // ends a read before its page is complete; nil: none is
}

func newModel(p *Policy) *model {
	return &model{policy: p, now: 1_700_000_000_000, head: Head{Attempt: 2}, rows: map[string][]byte{}}
}

// append appends, stores what is to be stored, and does the account.
func (m *model) append(t tester, drafts ...Draft) Appended {
	t.Helper()
	a := must[Appended](t)(m.head.Append(m.policy, &Appending{Drafts: drafts, Now: m.now, Document: m.doc}))
	m.head = must[Head](t)(DecodeHead(m.head.Attempt, a.Head.Encode()))
	want(t, "stored head", m.head, a.Head)
	for i := range a.Chunks {
		m.rows[a.Chunks[i].Key(m.head.Attempt)] = a.Chunks[i].Encode()
	}
	if a.Document != nil {
		m.doc = must[*Document](t)(DecodeDocument(a.Document.Encode()))
	}
	m.account(drafts)
	return a
}

func (m *model) account(drafts []Draft) {
	burst := int64(0)
	for _, d := range drafts {
		f := Frame{Seq: int64(len(m.frames)) + 1, At: m.now, Type: d.Type, Mode: d.Mode, Payload: d.Payload, ContentType: d.ContentType, CorrelationID: d.CorrelationID}
		if f.Type == "" {
			f.Type = "data"
		}
		if f.ContentType == "" {
			f.ContentType = map[bool]string{true: "application/json", false: "application/octet-stream"}[d.Mode == Summary]
		}
		switch d.Mode {
		case Summary:
			m.patches = append(m.patches, d.Payload)
			f.SummaryVersion = int64(len(m.patches))
		case BestEffort:
			burst++
		}
		m.frames, m.dropped = append(m.frames, f), append(m.dropped, false)
	}
	if burst > 0 {
		m.measure(burst)
		m.dropOldest(m.kept())
	}
}

// measure does the sum of E8 without rounding, in frames a second.
func (m *model) measure(burst int64) {
	p := &m.policy.BestEffort
	if m.rate == nil {
		m.rate = new(big.Rat).Quo(big.NewRat(int64(p.Floor), 1), m.seconds())
	} else {
		dt := max(1, int64(m.now-m.rateAt))
		alpha := new(big.Rat).SetFloat64(p.Alpha)
		rest := new(big.Rat).Sub(big.NewRat(1, 1), alpha)
		current := big.NewRat(burst*1000, dt)
		m.rate = new(big.Rat).Add(current.Mul(current, alpha), rest.Mul(rest, m.rate))
	}
	m.rateAt = m.now
}

// seconds is twice the ttl.
func (m *model) seconds() *big.Rat { return big.NewRat(2*m.policy.BestEffort.TTLMS, 1000) }

// kept is K of E8.
func (m *model) kept() int {
	k := new(big.Rat).Mul(m.rate, m.seconds())
	k.Sub(k, new(big.Rat).SetFloat64(tolerance))
	n := new(big.Int).Div(new(big.Int).Sub(new(big.Int).Add(k.Num(), k.Denom()), big.NewInt(1)), k.Denom())
	if !n.IsInt64() {
		return m.policy.BestEffort.Ceiling
	}
	return int(min(max(n.Int64(), int64(m.policy.BestEffort.Floor)), int64(m.policy.BestEffort.Ceiling)))
}

// dropOldest drops all best-effort frames but the newest k.
func (m *model) dropOldest(k int) {
	for i, f := range slices.Backward(m.frames) {
		if f.Mode != BestEffort {
			continue
		}
		if k--; k < 0 {
			if m.dropped[i] {
				return
			}
			m.dropped[i] = true
		}
	}
}

// retained returns the seqs that are retained now, in each mode by its own rule.
func (m *model) retained() map[int64]bool {
	kept := map[int64]bool{}
	durable, patches := 0, 0
	bytes := int64(0)
	for i, f := range slices.Backward(m.frames) {
		switch f.Mode {
		case Durable:
			durable++
			bytes += int64(len(f.Payload))
			kept[f.Seq] = m.policy.OnFull == Refuse || durable <= m.policy.MaxFrames && bytes <= m.policy.MaxBytes
		case Summary:
			patches++
			kept[f.Seq] = patches <= 64
		case BestEffort:
			kept[f.Seq] = !m.dropped[i] && m.now-f.At <= base.Time(2*m.policy.BestEffort.TTLMS)
		}
	}
	return kept
}

// matching returns what a read must find, and truncated_before.
func (m *model) matching(q *Query) (frames []Frame, truncated int64) {
	kept := m.retained()
	asked := map[Mode]bool{} // modes with a frame after the beginning, where the range is not empty
	for _, f := range m.frames {
		if !q.Modes.Has(f.Mode) || f.Seq <= q.After || q.After >= q.To {
			continue
		}
		asked[f.Mode] = true
		if !kept[f.Seq] {
			if f.Mode != BestEffort {
				truncated = max(truncated, f.Seq+1)
			}
			continue
		}
		if f.Seq <= q.To && (len(q.Types) == 0 || slices.Contains(q.Types, f.Type)) {
			frames = append(frames, f)
		}
	}
	return frames, truncated
}

// read reads one page as an engine does, with rows in portions of a random size.
func (m *model) read(t tester, q Query, portion func() int) ReadPage {
	t.Helper()
	r := NewReader(m.head, m.policy, q, m.now)
	keys := m.keys()
	for wants := r.Wants(); len(wants) > 0; wants = r.Wants() {
		for _, w := range wants {
			var rows [][]byte
			for n := portion(); n > 0; n-- {
				at, _ := slices.BinarySearch(keys, w.From)
				if at == len(keys) || keys[at] >= w.Limit {
					break
				}
				rows = append(rows, m.rows[keys[at]])
				w.From = keys[at] + "0"
			}
			if err := r.Feed(w.Mode, rows); err != nil {
				t.Fatalf("%v", err)
			}
			if m.stop != nil && m.stop() {
				return r.Page()
			}
		}
	}
	return r.Page()
}

func (m *model) keys() []string {
	var keys []string
	for key := range m.rows {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// trim deletes chunks of a mode as an engine does, looking at so many.
func (m *model) trim(t tester, mode Mode, most int) int {
	t.Helper()
	if !m.head.MayTrim(m.policy, mode, m.now) {
		most = len(m.rows) // then there is none
	}
	var oldest []Extent
	var keys []string
	for _, key := range m.keys() {
		if _, of, _, _ := ParseKey(key); of == mode && len(keys) < most {
			oldest, keys = append(oldest, must[Extent](t)(DecodeExtent(m.rows[key]))), append(keys, key)
		}
	}
	n, after := m.head.Trim(m.policy, mode, m.now, oldest)
	if n > 0 && !m.head.MayTrim(m.policy, mode, m.now) {
		t.Fatalf("%d chunks may be deleted, and MayTrim says that there are none", n)
	}
	for i, key := range keys[:n] {
		delete(m.rows, key)
		for seq := oldest[i].Prev + 1; mode == BestEffort && seq <= oldest[i].LastSeq; seq++ {
			m.dropped[seq-1] = m.dropped[seq-1] || m.frames[seq-1].Mode == BestEffort
		}
	}
	m.head = after
	return n
}

// drawDrafts draws the frames of a call.
func drawDrafts(t *rapid.T) []Draft {
	one := rapid.Custom(func(t *rapid.T) Draft {
		d := Draft{Mode: rapid.SampledFrom([]Mode{Durable, Durable, Summary, BestEffort, BestEffort}).Draw(t, "mode"), Type: rapid.SampledFrom([]string{"", "log", "x.y"}).Draw(t, "type")}
		d.CorrelationID = rapid.SampledFrom([]string{"", "", "a"}).Draw(t, "correlation id")
		if d.Mode == Summary {
			d.Payload = []byte(rapid.SampledFrom([]string{`{}`, `{"a":1}`, `{"a":null,"b":{"c":2}}`}).Draw(t, "patch"))
			return d
		}
		d.Payload = bytes.Repeat([]byte("p"), rapid.SampledFrom([]int{0, 1, 10, 1000, 20_000}).Draw(t, "size"))
		return d
	})
	n := rapid.SampledFrom([]int{1, 1, 2, 5, 40}).Draw(t, "frames")
	return rapid.SliceOfN(one, n, n).Draw(t, "call")
}

// drawPolicy draws bounds that are soon reached.
func drawPolicy(t *rapid.T) *Policy {
	p := testPolicy()
	p.MaxFrames = rapid.SampledFrom([]int{1, 3, 20, 10_000}).Draw(t, "max frames")
	p.MaxBytes = rapid.SampledFrom([]int64{65_536, 1 << 20}).Draw(t, "max bytes")
	p.BestEffort.TTLMS = rapid.SampledFrom([]base.Millis{1000, 30_000}).Draw(t, "ttl")
	p.BestEffort.Floor = rapid.SampledFrom([]int{1, 4, 64}).Draw(t, "floor")
	p.BestEffort.Ceiling = p.BestEffort.Floor * rapid.SampledFrom([]int{1, 3, 200}).Draw(t, "ceiling")
	p.BestEffort.Alpha = rapid.SampledFrom([]float64{0.2, 1, 0.01}).Draw(t, "alpha")
	return p
}
