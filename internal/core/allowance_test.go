package core_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

func TestU129_in_no_second_is_more_allowed_than_the_limit_and_little_less(t *testing.T) {
	t.Parallel()
	const longestPause = 40
	testseed.Check(t, func(t *rapid.T) {
		var a core.Allowance
		limit := rapid.IntRange(1, 500).Draw(t, "limit")
		now := base.Time(rapid.Int64Range(0, 1<<40).Draw(t, "start"))
		total := 0
		var taken []base.Time
		for range rapid.IntRange(1, 400).Draw(t, "asks") {
			now = now.Add(rapid.Int64Range(0, longestPause).Draw(t, "pause"))
			for { // a caller that always wants more
				got, wait := a.Take(now, limit, 1)
				if got == 0 {
					if wait <= 0 || wait > 1100 {
						t.Fatalf("wait %d ms", wait)
					}
					break
				}
				total += got
				for range got {
					taken = append(taken, now)
				}
			}
		}
		for i, first := range taken {
			if last := i + limit; last < len(taken) && taken[last].Sub(first) < base.Second {
				t.Fatalf("%d within a second, limit %d", limit+1, limit)
			}
		}
		// What is taken in a slice is free again when the eleventh after it begins, and taken by the first who asks then.
		if rounds := max(0, now.Sub(taken[0])-longestPause)/1100 + 1; int64(total) < rounds*int64(limit) {
			t.Fatalf("%d in %d ms, limit %d", total, now.Sub(taken[0]), limit)
		}
	})
}

func TestU129_what_is_taken_at_once_beyond_the_limit_is_paid_off_first(t *testing.T) {
	t.Parallel()
	var a core.Allowance
	start := base.Time(1_000_000)
	if got, _ := a.Take(start, 10, 45); got != 45 {
		t.Fatalf("got %d of 45", got)
	}
	if got, wait := a.Take(start, 10, 1); got != 0 || wait != 3500 {
		t.Errorf("got %d, wait %d ms", got, wait)
	}
	if got, _ := a.Take(start.Add(3400), 10, 1); got != 0 {
		t.Error("the debt is not paid off yet")
	}
	if got, _ := a.Take(start.Add(3600), 10, 1); got != 1 {
		t.Error("the debt is paid off")
	}
}

func TestU129_processes_together_hold_no_more_places_than_there_are(t *testing.T) {
	t.Parallel()
	var a core.Allowance
	start := base.Time(1_000_000)
	for _, c := range []struct {
		who        string
		want, held int
		after      base.Millis
	}{
		{"a", 3, 3, 0},
		{"b", 4, 2, 0},
		{"c", 1, 0, 0},
		{"a", 1, 1, 1},
		{"c", 9, 2, 1},
		{"b", 0, 0, 2},
		{"c", 9, 4, 3},
		{"b", 9, 0, 4},
		{"b", 9, 5, 15_004}, // a and c have not been heard of since
	} {
		if got := a.Hold(start.Add(c.after), c.who, 5, c.want); got != c.held {
			t.Errorf("after %d ms %s wants %d and holds %d, want %d", c.after, c.who, c.want, got, c.held)
		}
	}
}
