package stream

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

// drawModel draws a stream with a history: calls, pauses, clocks that are set back, deletions.
func drawModel(t *rapid.T) *model {
	m := newModel(drawPolicy(t))
	for range rapid.IntRange(1, 25).Draw(t, "steps") {
		m.now += base.Time(rapid.SampledFrom([]base.Millis{0, 1, 10, 500, 2_500, 70_000, -base.Hour}).Draw(t, "pause"))
		switch rapid.IntRange(0, 4).Draw(t, "step") {
		case 0:
			m.trim(t, Mode(rapid.IntRange(0, modes-1).Draw(t, "mode")), rapid.SampledFrom([]int{1, 2, 100}).Draw(t, "most"))
		default:
			m.append(t, drawDrafts(t)...)
		}
	}
	return m
}

func drawQuery(t *rapid.T, m *model) Query {
	last := m.head.LastSeq
	q := Query{To: last, Limit: 1_000_000, MaxBytes: 1 << 40}
	if rapid.Bool().Draw(t, "bounded") {
		q.After, q.To = rapid.Int64Range(0, last+1).Draw(t, "after"), rapid.Int64Range(0, last).Draw(t, "to")
	}
	q.Modes = ModeSet(rapid.IntRange(0, 7).Draw(t, "modes"))
	if rapid.IntRange(0, 3).Draw(t, "filtered") == 0 {
		q.Types = []string{"log", "none"}
	}
	return q
}

func TestE15_EI5_a_read_returns_what_is_retained_whatever_was_deleted(t *testing.T) {
	t.Parallel()
	cut, deleted := 0, 0
	missing := func() (what []string) {
		if cut == 0 {
			what = append(what, "frames that were dropped")
		}
		if deleted == 0 {
			what = append(what, "chunks that were deleted")
		}
		return what
	}
	testseed.Rounds(t, 1, 5, missing, func(t *rapid.T) {
		m := drawModel(t)
		q := drawQuery(t, m)
		wanted, truncated := m.matching(&q)
		portion := func() int { return rapid.SampledFrom([]int{1, 2, 100}).Draw(t, "portion") }
		for range 2 {
			page := m.read(t, q, portion)
			wantFrames(t, "read", page.Frames, wanted)
			want(t, "truncated before", page.TruncatedBefore, truncated)
			want(t, "position", page.Position, max(q.After, q.To))
			want(t, "more", page.More, false)
			for _, mode := range Modes() { // again, with less of what is out of retention
				deleted += m.trim(t, mode, 1_000)
			}
		}
		if truncated > 0 {
			cut++
		}
	})
}

func TestEI2_E16_pages_concatenate_to_one_read(t *testing.T) {
	t.Parallel()
	testseed.Check(t, func(t *rapid.T) {
		m := drawModel(t)
		q := drawQuery(t, m)
		wanted, _ := m.matching(&q)
		q.Limit = rapid.IntRange(1, 30).Draw(t, "limit")
		q.MaxBytes = rapid.SampledFrom([]int64{1, 5_000, 1 << 40}).Draw(t, "max bytes")
		portion := func() int { return rapid.SampledFrom([]int{1, 3, 100}).Draw(t, "portion") }
		if rapid.Bool().Draw(t, "stopped early") {
			m.stop = func() bool { return rapid.IntRange(0, 5).Draw(t, "stop") == 1 }
		}
		var got []Frame
		for pages := 0; ; pages++ {
			page := m.read(t, q, portion)
			got = append(got, page.Frames...)
			size := int64(0)
			for i := range page.Frames {
				size += int64(len(page.Frames[i].Payload))
			}
			if len(page.Frames) > q.Limit || len(page.Frames) > 1 && size > q.MaxBytes || m.stop == nil && pages > len(wanted)+1 {
				t.Fatalf("page %d has %d frames and %d bytes", pages, len(page.Frames), size)
			}
			if !page.More {
				break
			}
			q.After = page.Position
		}
		wantFrames(t, "pages", got, wanted)
	})
}

func TestE15_a_page_holds_at_most_4_MiB_and_one_frame_at_least(t *testing.T) {
	t.Parallel()
	m := newModel(testPolicy())
	for range 6 {
		m.append(t, some(16, Durable, MaxPayload)...)
	}
	everything := func() int { return 1000 }
	page := m.read(t, Query{To: m.head.LastSeq, Limit: 1000}, everything)
	if len(page.Frames) != 64 || !page.More || page.Position != 64 {
		t.Errorf("%d frames, position %d, more %v", len(page.Frames), page.Position, page.More)
	}
	page = m.read(t, Query{To: m.head.LastSeq, Limit: 1000, MaxBytes: 1}, everything)
	if len(page.Frames) != 1 {
		t.Errorf("%d frames", len(page.Frames))
	}
	page = m.read(t, Query{To: m.head.LastSeq}, everything)
	if len(page.Frames) != 0 || !page.More || page.Position != 0 {
		t.Errorf("with limit 0: %d frames, position %d, more %v", len(page.Frames), page.Position, page.More)
	}
}

func TestE15_the_close_is_told_at_the_end_alone(t *testing.T) {
	t.Parallel()
	m := newModel(testPolicy())
	m.append(t, some(10, Durable, 1)...)
	m.head.Closed = Closing{At: m.now + 5, Reason: AttemptTimeout}
	everything := func() int { return 1000 }
	for _, row := range []struct {
		q    Query
		told bool
	}{
		{Query{To: 10, Limit: 100}, true},
		{Query{To: 10, Limit: 10}, true},
		{Query{To: 10, Limit: 9}, false},
		{Query{To: 9, Limit: 100}, false},
		{Query{After: 10, To: 10, Limit: 100}, true},
		{Query{After: 9, To: 10, Limit: 1}, true},
		{Query{To: 10, Limit: 100, Types: []string{"none"}}, true},
	} {
		if page := m.read(t, row.q, everything); (page.Closed == Closing{At: m.now + 5, Reason: AttemptTimeout}) != row.told {
			t.Errorf("%+v: %+v", row.q, page.Closed)
		}
	}
}

func TestE15_an_attempt_that_said_nothing_is_an_open_empty_stream(t *testing.T) {
	t.Parallel()
	r := NewReader(Head{Attempt: 1}, testPolicy(), Query{Limit: 10}, 5)
	if wants, page := r.Wants(), r.Page(); len(wants) != 0 || len(page.Frames) != 0 || page.More || page.Closed.Reason != 0 || page.TruncatedBefore != 0 {
		t.Errorf("%v %+v", wants, page)
	}
}

func TestE16_frames_appended_after_the_head_was_read_are_left_out(t *testing.T) {
	t.Parallel()
	m := newModel(testPolicy())
	m.append(t, text("1"), Draft{Mode: BestEffort})
	before := m.head
	m.append(t, text("3"), Draft{Mode: BestEffort})
	now := m.head
	m.head = before
	page := m.read(t, Query{To: 100, Limit: 100}, func() int { return 100 })
	want(t, "seqs", seqs(page.Frames), []int64{1, 2})
	want(t, "position", page.Position, int64(2))
	m.head = now
	page = m.read(t, Query{After: page.Position, To: 100, Limit: 100}, func() int { return 100 })
	want(t, "seqs", seqs(page.Frames), []int64{3, 4})
}

// The rows of a head that is read first may be gone when they are asked for.
func TestE22_chunks_that_are_deleted_during_a_read_count_as_dropped(t *testing.T) {
	t.Parallel()
	m := newModel(testPolicy())
	m.policy.MaxFrames = 4
	m.append(t, some(4, Durable, 1)...)
	before := m.head
	for range 2 {
		m.append(t, some(4, Durable, 1)...)
	}
	m.trim(t, Durable, 10)
	m.head = before
	page := m.read(t, Query{To: 4, Limit: 10}, func() int { return 10 })
	if len(page.Frames) != 0 || page.TruncatedBefore <= 4 {
		t.Errorf("%v, truncated before %d", seqs(page.Frames), page.TruncatedBefore)
	}
	m.rows = nil
	if page := m.read(t, Query{To: 4, Limit: 10}, func() int { return 10 }); page.TruncatedBefore != 5 || page.Position != 4 || page.More {
		t.Errorf("%+v", page)
	}
}

func TestE15_cursors_are_bounds_of_a_read(t *testing.T) {
	t.Parallel()
	h := Head{Attempt: 2, LastSeq: 10}
	for _, row := range []struct {
		from        string
		exclusive   bool
		to          string
		after, last int64
	}{
		{"start", false, "end", 0, 10},
		{"start", true, "closed", 0, 10},
		{"2-3", false, "2-7", 2, 7},
		{"2-3", true, "2-7", 3, 7},
		{"2-0", false, "2-0", 0, 0},
		{"2-0", true, "end", 0, 10},
		{"2-10-end", false, "end", 10, 10},
		{"2-10-end", true, "end", 10, 10},
		{"end", false, "end", 10, 10},
		{"closed", true, "end", 10, 10},
		{"1-7", true, "3-1", 0, 10},
		{"1-7", false, "start", 0, 0},
		{"2-50", true, "2-60", 50, 60},
	} {
		from, to := must[Cursor](t)(ParseCursor(row.from)), must[Cursor](t)(ParseCursor(row.to))
		if after, last := h.Range(from, row.exclusive, to); after != row.after || last != row.last {
			t.Errorf("%s (exclusive %v) to %s: %d, %d", row.from, row.exclusive, row.to, after, last)
		}
	}
}

func TestW10_a_chunk_that_cannot_be_read_fails_the_read(t *testing.T) {
	t.Parallel()
	m := newModel(testPolicy())
	a := m.append(t, text("x"), text("y"))
	good := a.Chunks[0].Encode()
	again := must[Appended](t)(Head{Attempt: 2}.Append(m.policy, &Appending{Drafts: []Draft{{Mode: BestEffort}}, Now: 1}))
	for name, rows := range map[string][][]byte{
		"broken":          {good[:len(good)-1]},
		"text":            {[]byte("chunk")},
		"twice":           {good, good},
		"of another mode": {again.Chunks[0].Encode()},
	} {
		r := NewReader(Head{Attempt: 2, LastSeq: 5, Tallies: [modes]Tally{{Frames: 5, Bytes: 5, LastSeq: 5}}}, m.policy, Query{To: 5, Limit: 9}, m.now)
		if err := r.Feed(Durable, rows); base.CodeOf(err) != base.CodeCorruption || !strings.Contains(err.Error(), "chunk") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
