package core

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

// windowOf is a window with an admission at each moment.
func windowOf(moments ...base.Time) *RateWindow {
	w := &RateWindow{}
	for _, at := range moments {
		w.Take(at)
	}
	return w
}

// countedByHand is S40 said once more: an admission at t counts until t + window, that moment excluded.
func countedByHand(admitted []base.Time, now base.Time, window base.Millis) (n int) {
	for _, at := range admitted {
		if now < at.Add(window) {
			n++
		}
	}
	return n
}

func TestS40_an_admission_counts_until_its_window_ends_that_moment_excluded(t *testing.T) {
	t.Parallel()
	w := windowOf(1000, 1000, 1500)
	for _, c := range []struct {
		now  base.Time
		want int
	}{{1000, 3}, {1999, 3}, {2000, 1}, {2499, 1}, {2500, 0}} {
		if got := w.Count(c.now, 1000); got != c.want {
			t.Errorf("at %d %d count, want %d", c.now, got, c.want)
		}
	}
}

func TestS40_next_free_is_the_first_moment_at_which_fewer_count(t *testing.T) {
	t.Parallel()
	w := windowOf(1000, 1000, 1500)
	for _, c := range []struct {
		name  string
		now   base.Time
		limit int
		want  base.Time
	}{
		{"off", 1500, 0, 1500},
		{"room for one more", 1500, 4, 1500},
		{"full", 1500, 3, 2000},
		{"above the limit", 1500, 1, 2500},
		{"the first have left", 2000, 1, 2500},
		{"all have left", 2500, 1, 2500},
	} {
		if got := w.NextFree(c.now, 1000, c.limit); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

func TestS40_what_is_given_back_counts_no_more_and_what_has_gone_takes_nothing_of_others(t *testing.T) {
	t.Parallel()
	w := windowOf(1000, 1000, 1500)
	if !w.GiveBack(1000) || w.Count(1500, 1000) != 2 {
		t.Errorf("%d count after one was given back", w.Count(1500, 1000))
	}
	w.Trim(2000, 1000)
	if w.GiveBack(1000) || w.Count(2000, 1000) != 1 {
		t.Error("an admission that counts no more took another's place")
	}
	if !w.GiveBack(1500) || !w.Empty() || w.LastsUntil(1000) != 0 {
		t.Errorf("not empty: %+v", w)
	}
}

func TestS40_a_window_lasts_until_its_last_admission_leaves_and_knows_whether_it_changed(t *testing.T) {
	t.Parallel()
	w := windowOf(1000, 1500)
	if got := w.LastsUntil(1000); got != 2500 {
		t.Errorf("lasts until %d", got)
	}
	read, err := DecodeRateWindow(w.Encode())
	if err != nil || !w.Changed() || read.Changed() {
		t.Fatalf("changed %v, as read %v (%v)", w.Changed(), read.Changed(), err)
	}
	if read.Trim(1999, 1000); read.Changed() {
		t.Error("nothing was there to trim")
	}
	if read.Trim(2000, 1000); !read.Changed() {
		t.Error("trimmed, and it will not be written")
	}
}

func TestSI8_no_window_holds_more_admissions_than_the_limit(t *testing.T) {
	t.Parallel()
	testseed.Check(t, func(t *rapid.T) {
		window := rapid.Int64Range(1, 50).Draw(t, "window")
		limit := rapid.IntRange(1, 5).Draw(t, "limit")
		clock, w := storyStart, &RateWindow{}
		var kept []base.Time
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			clock += base.Time(rapid.IntRange(0, 12).Draw(t, "step"))
			now := clock + base.Time(rapid.IntRange(0, 3).Draw(t, "ahead")) // that of an execution may be ahead of the store's (L5)
			if got, want := w.Count(now, window), countedByHand(kept, now, window); got != want {
				t.Fatalf("%d count, by hand %d", got, want)
			}
			free := w.NextFree(now, window, limit)
			if countedByHand(kept, free, window) >= limit || free > now && countedByHand(kept, free-1, window) < limit {
				t.Fatalf("next free %d of %v, now %d", free, kept, now)
			}
			switch rapid.IntRange(0, 5).Draw(t, "deed") {
			case 0:
				w.Trim(clock, window)
			case 1:
				if len(kept) > 0 && w.GiveBack(kept[len(kept)-1]) {
					kept = kept[:len(kept)-1]
				}
			default:
				if w.Count(now, window) < limit {
					w.Take(now)
					kept = append(kept, now)
				}
			}
		}
		slices.Sort(kept)
		for i := limit; i < len(kept); i++ {
			if kept[i].Sub(kept[i-limit]) < window {
				t.Fatalf("%d admissions within %d ms: %v", limit+1, window, kept[i-limit:i+1])
			}
		}
	})
}

func TestSI8_merged_admissions_count_a_little_longer_and_never_shorter(t *testing.T) {
	t.Parallel()
	testseed.Check(t, func(t *rapid.T) {
		const window = 100 * base.Second
		w, now := &RateWindow{}, storyStart
		steps := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		longest := rapid.Int64Range(1, 40).Draw(t, "longest step")
		var admitted []base.Time
		for range 3 * maxRateEntries {
			now += base.Time(steps.Int64N(longest + 1))
			w.Take(now)
			w.Trim(now, window)
			admitted = append(admitted, now)
		}
		if len(w.entries) > maxRateEntries {
			t.Fatalf("%d entries", len(w.entries))
		}
		const little = window / 500 // a stretch is at most a thousandth of what was at hand when they were merged
		for probe := now; probe < now.Add(window); probe += 997 {
			least, most := countedByHand(admitted, probe, window), countedByHand(admitted, probe.Add(-little), window)
			if got := w.Count(probe, window); got < least || got > most {
				t.Fatalf("%d count, at least %d and at most %d should", got, least, most)
			}
		}
	})
}

func TestSI8_merging_keeps_the_number_of_admissions(t *testing.T) {
	t.Parallel()
	w := &RateWindow{}
	for i := range 10 * maxRateEntries {
		w.Take(storyStart + base.Time(i))
	}
	if got := w.Count(storyStart, base.Day); got != 10*maxRateEntries || len(w.entries) > maxRateEntries {
		t.Errorf("%d count in %d entries", got, len(w.entries))
	}
}

func TestS40_a_window_is_stored_in_few_bytes_and_read_back_the_same(t *testing.T) {
	t.Parallel()
	testseed.Check(t, func(t *rapid.T) {
		w, now := &RateWindow{}, storyStart
		for range rapid.IntRange(0, 200).Draw(t, "admissions") {
			now += base.Time(rapid.IntRange(0, 60).Draw(t, "step"))
			w.Take(now)
		}
		data := w.Encode()
		if len(data) > 10+2*len(w.entries) {
			t.Fatalf("%d bytes for %d entries", len(data), len(w.entries))
		}
		read, err := DecodeRateWindow(data)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(w.entries, read.entries, cmp.AllowUnexported(rateEntry{})); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestS40_a_window_that_cannot_be_read_is_corruption(t *testing.T) {
	t.Parallel()
	good := windowOf(storyStart, storyStart, storyStart+7).Encode()
	for name, data := range map[string][]byte{
		"nothing":          {},
		"another format":   {9, 2},
		"cut off":          good[:len(good)-2],
		"no distance":      append(slices.Clone(good), 0),
		"a count of one":   append(slices.Clone(good), 5, 1),
		"a count cut off":  append(slices.Clone(good), 5),
		"an endless count": append(slices.Clone(good), 5, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f),
		"too long":         append([]byte{1}, bytes.Repeat([]byte{2}, maxRateEntries+1)...),
	} {
		if _, err := DecodeRateWindow(data); base.CodeOf(err) != base.CodeCorruption {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzDecodeRateWindow(f *testing.F) {
	f.Add((&RateWindow{}).Encode())
	f.Add(windowOf(storyStart, storyStart, storyStart+7).Encode())
	f.Add([]byte{1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2})
	f.Fuzz(func(t *testing.T, data []byte) {
		w, err := DecodeRateWindow(data)
		if err != nil {
			if base.CodeOf(err) != base.CodeCorruption {
				t.Fatal(err)
			}
			return
		}
		if len(w.entries) > maxRateEntries || !slices.IsSortedFunc(w.entries, func(a, b rateEntry) int { return int(min(max(a.at-b.at, -1), 1)) }) {
			t.Fatalf("read %+v", w)
		}
		again, err := DecodeRateWindow(w.Encode())
		if err != nil || !slices.Equal(again.entries, w.entries) {
			t.Fatalf("%+v became %+v: %v", w, again, err)
		}
	})
}
