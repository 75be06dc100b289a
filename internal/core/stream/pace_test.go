package stream

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

func TestE8_EI5_the_kept_number_is_that_of_the_rule_without_rounding(t *testing.T) {
	t.Parallel()
	testseed.Check(t, func(t *rapid.T) {
		m := newModel(drawPolicy(t))
		for range rapid.IntRange(1, 15).Draw(t, "appends") {
			m.now += base.Time(rapid.SampledFrom([]base.Millis{0, 1, 7, 100, 1_000, 60_000, -base.Hour}).Draw(t, "pause"))
			m.append(t, some(rapid.IntRange(1, 256).Draw(t, "burst"), BestEffort, 0)...)
			kept := m.head.BestEffort.Kept(&m.policy.BestEffort)
			want(t, "kept", kept, int64(m.kept()))
			if kept < int64(m.policy.BestEffort.Floor) || kept > int64(m.policy.BestEffort.Ceiling) {
				t.Fatalf("%d are kept", kept)
			}
		}
	})
}

func TestE8_the_first_append_keeps_the_floor(t *testing.T) {
	t.Parallel()
	for _, ttl := range []base.Millis{1_000, 7_777, 30_000, 599_999} {
		for floor := range 200 {
			p := BestEffortPolicy{TTLMS: ttl, Floor: floor + 1, Ceiling: 65_536, Alpha: 0.2}
			want(t, "kept", Pace{}.after(&p, 256, 5, 256).Kept(&p), int64(floor+1))
		}
	}
}

func TestE8_bursts_pauses_and_a_steady_thousand_a_second(t *testing.T) {
	t.Parallel()
	p, h, now := testPolicy(), Head{}, base.Time(1<<40)
	kept := func(pause base.Millis, frames int) int64 {
		now += base.Time(pause)
		h = must[Appended](t)(h.Append(p, &Appending{Drafts: some(frames, BestEffort, 0), Now: now})).Head
		return h.BestEffort.Kept(&p.BestEffort)
	}
	want(t, "after the first", kept(0, 256), int64(64))
	for range 300 { // 1000 frames a second: 60,000 in twice the ttl
		kept(10, 10)
	}
	want(t, "under load", kept(10, 10), int64(16_384))
	p.BestEffort.Ceiling = 65_536
	want(t, "with a higher ceiling", kept(10, 10), int64(60_000))
	if k := kept(600_000, 1); k < 47_000 || k > 48_100 { // a pause of ten minutes counts as one slow append
		t.Errorf("after a pause: %d", k)
	}
	for range 60 {
		kept(60_000, 1)
	}
	want(t, "after a long time", kept(60_000, 1), int64(64))
}

func TestE8_what_was_dropped_stays_dropped_when_the_rate_grows(t *testing.T) {
	t.Parallel()
	m := newModel(testPolicy())
	m.append(t, some(100, BestEffort, 0)...)
	m.now += 10
	m.append(t, some(100, BestEffort, 0)...)
	page := m.read(t, Query{To: m.head.LastSeq, Limit: 1000}, func() int { return 10 })
	if len(page.Frames) != 164 || page.Frames[0].Seq != 37 || page.TruncatedBefore != 0 {
		t.Errorf("%d frames from %d, truncated before %d", len(page.Frames), page.Frames[0].Seq, page.TruncatedBefore)
	}
}

func TestE8_frames_live_for_twice_the_ttl(t *testing.T) {
	t.Parallel()
	m := newModel(testPolicy())
	m.append(t, Draft{Mode: BestEffort}, text("durable"))
	read := func() []int64 {
		return seqs(m.read(t, Query{To: m.head.LastSeq, Limit: 1000}, func() int { return 10 }).Frames)
	}
	start := m.now
	m.now = start + 60_000
	want(t, "at twice the ttl", read(), []int64{1, 2})
	m.now++
	want(t, "after it", read(), []int64{2})
	m.now = start
	want(t, "with the clock set back", read(), []int64{1, 2})
	m.now = start + 60_001
	want(t, "deleted", m.trim(t, BestEffort, 10), 1)
	want(t, "when they are deleted", read(), []int64{2})
	if m.head.MayTrim(m.policy, BestEffort, start+1_000_000) {
		t.Error("there is more to delete")
	}
}

func TestE7_the_newest_64_patches_are_kept(t *testing.T) {
	t.Parallel()
	m := newModel(testPolicy())
	m.append(t, text("durable"))
	m.append(t, some(60, Summary, 0)...)
	m.append(t, some(10, Summary, 0)...)
	page := m.read(t, Query{To: m.head.LastSeq, Limit: 1000}, func() int { return 10 })
	if len(page.Frames) != 65 || page.Frames[1].Seq != 8 || page.Frames[1].SummaryVersion != 7 || page.TruncatedBefore != 8 {
		t.Errorf("%v, truncated before %d", seqs(page.Frames), page.TruncatedBefore)
	}
	page = m.read(t, Query{To: m.head.LastSeq, Limit: 1000, Modes: SetOf(Durable, BestEffort)}, func() int { return 10 })
	want(t, "truncated for who reads no patches", page.TruncatedBefore, int64(0))
	want(t, "nothing to delete", m.trim(t, Summary, 10), 0)
	m.append(t, some(54, Summary, 0)...)
	want(t, "whole chunks alone are deleted", m.trim(t, Summary, 10), 1)
	want(t, "document", m.doc.Version, int64(124))
}

func TestE6_bytes_are_counted_to_the_frame(t *testing.T) {
	t.Parallel()
	m := newModel(testPolicy())
	m.policy.MaxBytes = 65_536
	m.append(t, append(some(2, Durable, 10), some(1, Durable, 0)...)...)
	m.append(t, some(1, Durable, 65_526)...)
	everything := func() int { return 10 }
	page := m.read(t, Query{To: m.head.LastSeq, Limit: 1000}, everything)
	want(t, "as many bytes as may be", seqs(page.Frames), []int64{2, 3, 4})
	want(t, "truncated before", page.TruncatedBefore, int64(2))
	m.append(t, some(1, Durable, 1)...)
	page = m.read(t, Query{To: m.head.LastSeq, Limit: 1000}, everything)
	want(t, "one byte more", seqs(page.Frames), []int64{3, 4, 5})
	want(t, "to delete while a frame without bytes is kept", m.trim(t, Durable, 10), 0)
	m.append(t, some(1, Durable, 10)...)
	want(t, "to delete", m.trim(t, Durable, 10), 2)

	m = newModel(testPolicy())
	m.policy.MaxBytes = 65_536
	m.append(t, some(2, Durable, 10)...)
	m.append(t, some(1, Durable, 65_527)...)
	want(t, "to delete when the last frame of a chunk does not fit", m.trim(t, Durable, 10), 1)
}
