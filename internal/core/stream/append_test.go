package stream

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

func TestE1_a_call_answers_with_its_first_and_last_frame_and_the_count_of_all(t *testing.T) {
	t.Parallel()
	m := newModel(testPolicy())
	a := m.append(t, text("1"), text("2"))
	want(t, "answer", a.Answer, Answer{FirstSeq: 1, LastSeq: 2})
	m.policy.MaxFrames = 1
	a = m.append(t, text("3"), patch(`{"a":1}`), patch(`{}`), Draft{Mode: BestEffort})
	want(t, "answer", a.Answer, Answer{FirstSeq: 3, LastSeq: 6, SummaryVersion: 2})
	want(t, "count", a.Answer.FrameCount(), int64(6))
	a = m.append(t, text("7"))
	want(t, "answer", a.Answer, Answer{FirstSeq: 7, LastSeq: 7})
	want(t, "times", [2]base.Time{m.head.FirstAt, m.head.LastAt}, [2]base.Time{m.now, m.now})
	want(t, "bytes", m.head.Bytes(), int64(4+7+2))
}

func TestE1_a_call_of_several_modes_is_stored_as_a_chunk_of_each(t *testing.T) {
	t.Parallel()
	m := newModel(testPolicy())
	m.append(t, text("12345"), Draft{Mode: BestEffort})
	a := m.append(t, Draft{Mode: BestEffort}, text("67"), text("8"), patch(`{}`), text("9"))
	var extents []Extent
	for i := range a.Chunks {
		extents = append(extents, a.Chunks[i].Extent)
	}
	want(t, "extents", extents, []Extent{
		{Mode: Durable, At: m.now, Ordinal: 2, Count: 3, Prev: 1, LastSeq: 7, Before: 5, Bytes: 4, LastSize: 1},
		{Mode: Summary, At: m.now, Ordinal: 1, Count: 1, LastSeq: 6, Bytes: 2, LastSize: 2},
		{Mode: BestEffort, At: m.now, Ordinal: 2, Count: 1, Prev: 2, LastSeq: 3},
	})
}

func TestE1_checks_come_in_order_and_a_refused_call_changes_nothing(t *testing.T) {
	t.Parallel()
	p := testPolicy()
	p.OnFull, p.MaxFrames = Refuse, 3
	seq := int64(5)
	open := must[Appended](t)(Head{}.Append(p, &Appending{Drafts: []Draft{text("x"), patch("{}")}, Epoch: 1, ClientSeq: &seq, Now: 1}))
	ended := open.Head
	ended.Closed = Closing{At: 2, Reason: AttemptCancelled}
	old, same := int64(4), int64(5)
	faults := []struct {
		code   base.Code
		draft  Draft
		number int
		seq    *int64
		closed bool
	}{
		{code: base.CodeInvalidFrame, draft: Draft{Type: "?"}},
		{code: base.CodeReservedName, draft: Draft{Type: "closed"}},
		{code: base.CodeFrameTooLarge, draft: text(strings.Repeat("x", MaxPayload+1))},
		{code: base.CodeBatchTooLarge, number: 257},
		{code: base.CodeStaleLease, closed: true},
		{code: base.CodeStaleAppend, seq: &old},
		{code: base.CodeInvalidPatch, draft: patch("[]")},
		{code: base.CodeStreamFull, number: 3},
	}
	for i, first := range faults {
		call := &Appending{Epoch: 1, Now: 3, Document: open.Document, ClientSeq: first.seq}
		head := open.Head
		for _, later := range slices.Backward(faults[i:]) {
			call.Drafts = append(call.Drafts, some(later.number, Durable, 0)...)
			if later.code != base.CodeBatchTooLarge && later.code != base.CodeStreamFull {
				call.Drafts = append(call.Drafts, later.draft)
			}
			if later.closed {
				head = ended
			}
			if later.seq != nil {
				call.ClientSeq = later.seq
			}
		}
		before := head
		a, err := head.Append(p, call)
		wantCode(t, err, first.code, "")
		if head != before || !reflect.DeepEqual(a, Appended{}) {
			t.Errorf("%s changed something", first.code)
		}
	}
	for code, call := range map[base.Code]*Appending{
		base.CodeStaleLease: {Epoch: 1, ClientSeq: &same, Drafts: []Draft{text("x")}}, // of a closed stream not even a repetition is answered
	} {
		_, err := ended.Append(p, call)
		wantCode(t, err, code, "")
	}
}

func TestE3_a_client_seq_is_accepted_once_within_a_lease(t *testing.T) {
	t.Parallel()
	p := testPolicy()
	call := func(h Head, epoch, seq int64, payload string) (Appended, error) {
		return h.Append(p, &Appending{Epoch: epoch, ClientSeq: &seq, Drafts: []Draft{text(payload)}, Now: 1})
	}
	first := must[Appended](t)(call(Head{}, 1, 10, "a"))
	unprotected := must[Appended](t)(first.Head.Append(p, &Appending{Epoch: 1, Drafts: []Draft{text("b")}, Now: 1}))
	again := must[Appended](t)(call(unprotected.Head, 1, 10, "other frames"))
	if !again.Repeated || again.Answer != first.Answer || again.Head != unprotected.Head || again.Chunks != nil || again.Answer.FrameCount() != 1 {
		t.Errorf("repeated: %+v", again)
	}
	_, err := call(unprotected.Head, 1, 9, "c")
	e := wantCode(t, err, base.CodeStaleAppend, "client_seq")
	want(t, "detail", e.Details["client_seq"], any(int64(10)))
	next := must[Appended](t)(call(unprotected.Head, 1, 11, "c"))
	want(t, "next", next.Answer, Answer{FirstSeq: 3, LastSeq: 3})
	resumed := must[Appended](t)(call(next.Head, 2, -1, "d")) // another lease counts anew
	want(t, "resumed", resumed.Answer, Answer{FirstSeq: 4, LastSeq: 4})
	want(t, "recorded", resumed.Head.Call, Call{Present: true, Epoch: 2, ClientSeq: -1, Answer: resumed.Answer})
}

func TestEI1_seqs_are_dense_under_any_clock_and_a_repeated_call_is_written_once(t *testing.T) {
	t.Parallel()
	testseed.Check(t, func(t *rapid.T) {
		p := testPolicy()
		var h Head
		var doc *Document
		now, clientSeq, last := base.Time(1<<40), int64(0), int64(0)
		var answer Answer
		for range rapid.IntRange(1, 20).Draw(t, "calls") {
			now += base.Time(rapid.Int64Range(-base.Hour, base.Hour).Draw(t, "pause"))
			repeat := clientSeq > 0 && rapid.IntRange(0, 2).Draw(t, "repeat") == 0
			if !repeat {
				clientSeq += rapid.Int64Range(1, 3).Draw(t, "client seq")
			}
			a := must[Appended](t)(h.Append(p, &Appending{Epoch: 7, ClientSeq: &clientSeq, Drafts: drawDrafts(t), Now: now, Document: doc}))
			if repeat {
				if !a.Repeated || a.Answer != answer || a.Head != h {
					t.Fatalf("repeated: %+v", a)
				}
				continue
			}
			var written []int64
			for i := range a.Chunks {
				written = append(written, seqs(a.Chunks[i].Frames)...)
			}
			slices.Sort(written)
			for _, seq := range written {
				if last++; seq != last {
					t.Fatalf("frame %d has seq %d", last, seq)
				}
			}
			if a.Head.LastSeq != last || a.Answer.LastSeq != last || a.Answer.FirstSeq != written[0] {
				t.Fatalf("after %d frames: %+v", last, a.Answer)
			}
			h, answer = a.Head, a.Answer
			if a.Document != nil {
				doc = a.Document
			}
		}
	})
}

func TestE6_a_stream_that_refuses_takes_a_call_whole_or_not_at_all(t *testing.T) {
	t.Parallel()
	full := newModel(testPolicy())
	full.policy.OnFull, full.policy.MaxFrames, full.policy.MaxBytes = Refuse, 5, 65_536
	full.append(t, some(3, Durable, 10)...)
	_, err := full.head.Append(full.policy, &Appending{Drafts: some(3, Durable, 1), Now: 1})
	e := wantCode(t, err, base.CodeStreamFull, "")
	want(t, "detail", e.Details["frames"], any(int64(3)))
	_, err = full.head.Append(full.policy, &Appending{Drafts: some(1, Durable, 65_507), Now: 1})
	wantCode(t, err, base.CodeStreamFull, "")
	full.append(t, some(1, Durable, 65_506)...)
	full.append(t, some(1, Durable, 0)...)
	_, err = full.head.Append(full.policy, &Appending{Drafts: some(1, Durable, 0), Now: 1})
	wantCode(t, err, base.CodeStreamFull, "")
	full.append(t, some(200, Summary, 0)...) // other modes have room of their own
	full.append(t, some(200, BestEffort, 1000)...)
	for _, mode := range Modes() {
		full.trim(t, mode, 1000)
	}
	q := Query{To: full.head.LastSeq, Limit: 1000, Modes: SetOf(Durable)}
	want(t, "durable frames", len(full.read(t, q, func() int { return 9 }).Frames), 5)
}

func TestE2_EI3_nothing_is_appended_after_the_close(t *testing.T) {
	t.Parallel()
	names := map[string]bool{"": true}
	for reason := AttemptSuccess; reason <= BudgetExceeded; reason++ {
		if names[reason.String()] {
			t.Errorf("%q names two reasons, or is no name", reason)
		}
		names[reason.String()] = true
		h := Head{Attempt: 1, LastSeq: 4, Closed: Closing{At: 8, Reason: reason}}
		if h.End() != AttemptEndCursor(1, 4) {
			t.Errorf("%+v", h)
		}
		_, err := h.Append(testPolicy(), &Appending{Drafts: []Draft{text("x")}, Now: 9})
		wantCode(t, err, base.CodeStaleLease, "")
	}
}

func TestE11_a_document_that_is_not_that_of_the_stream_is_corruption(t *testing.T) {
	t.Parallel()
	m := newModel(testPolicy())
	m.append(t, patch(`{"a":1}`))
	for _, d := range []*Document{nil, {Text: []byte(`{}`), Version: 2}} {
		_, err := m.head.Append(m.policy, &Appending{Drafts: []Draft{patch(`{}`)}, Now: 1, Document: d})
		wantCode(t, err, base.CodeCorruption, "")
		if _, err := m.head.Append(m.policy, &Appending{Drafts: []Draft{text("x")}, Now: 1, Document: d}); err != nil {
			t.Errorf("a call without patches: %v", err)
		}
	}
}

func TestEI6_chunks_hold_the_bytes_that_were_given(t *testing.T) {
	t.Parallel()
	testseed.Check(t, func(t *rapid.T) {
		payload := rapid.SliceOfN(rapid.Byte(), 0, 2000).Draw(t, "payload")
		a := must[Appended](t)(Head{}.Append(testPolicy(), &Appending{Drafts: []Draft{{Payload: payload}}, Now: 1}))
		if back := must[Chunk](t)(DecodeChunk(a.Chunks[0].Encode())); !bytes.Equal(back.Frames[0].Payload, payload) {
			t.Fatalf("%x became %x", payload, back.Frames[0].Payload)
		}
	})
}
