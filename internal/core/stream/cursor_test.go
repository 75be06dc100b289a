package stream

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

func TestE14_every_form_of_a_cursor_is_read_and_written(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Cursor{
		"start": {}, "end": {Place: AtEnd}, "closed": {Place: AtClosed}, "0-0": FrameCursor(0, 0), "2-17": FrameCursor(2, 17),
		"2-17-end": AttemptEndCursor(2, 17), "0-0-end": AttemptEndCursor(0, 0), "2147483647-9223372036854775806": FrameCursor(1<<31-1, 1<<63-2),
	} {
		got, err := ParseCursor(text)
		if err != nil || got != want || got.String() != text {
			t.Errorf("%s is read as %+v and written as %s: %v", text, got, got, err)
		}
	}
}

func TestE14_anything_else_is_refused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "-", "1", "17", "1-", "-1", "1--1", "1-+1", "01-1", "1-01", "1-1-", "1-1-End", "1-1-end-end", "-end", "1-end", "START", "start ", " 1-1", "1-1\n",
		"1-9223372036854775807", "1-99999999999999999999", "2147483648-1", "1-1-closed", "１-1", strings.Repeat("9", 10_000),
	} {
		_, err := ParseCursor(text)
		wantCode(t, err, base.CodeInvalidCursor, "cursor")
	}
}

func TestE14_where_one_attempt_is_read_a_bare_seq_is_a_cursor_too(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Cursor{"17": FrameCursor(3, 17), "0": FrameCursor(3, 0), "3-4": FrameCursor(3, 4), "3-4-end": AttemptEndCursor(3, 4), "closed": {Place: AtClosed}} {
		if got := must[Cursor](t)(ParseCursorOf(3, text)); got != want {
			t.Errorf("%s is read as %s", text, got)
		}
	}
	for _, text := range []string{"2-17", "4-1-end", "017", "x", ""} {
		_, err := ParseCursorOf(3, text)
		wantCode(t, err, base.CodeInvalidCursor, "cursor")
	}
}

func TestE14_cursors_are_ordered_as_what_they_stand_before(t *testing.T) {
	t.Parallel()
	var all []Cursor
	for _, text := range strings.Fields("start 0-0 0-1 0-2 0-2-end 1-0 1-9 1-10 1-10-end 10-0 10-0-end end closed") {
		all = append(all, must[Cursor](t)(ParseCursor(text)))
	}
	for i := range all {
		for j := range all {
			if got := all[i].Compare(all[j]); got != max(-1, min(1, i-j)) {
				t.Errorf("%s and %s: %d", all[i], all[j], got)
			}
		}
	}
	if !slices.IsSortedFunc(all, Cursor.Compare) {
		t.Error("not sorted")
	}
}

func TestE14_random_cursors_come_back(t *testing.T) {
	t.Parallel()
	testseed.Check(t, func(t *rapid.T) {
		c := Cursor{Place: Place(rapid.IntRange(0, 4).Draw(t, "place"))}
		if c.inAttempt() {
			c.Attempt, c.Seq = rapid.IntRange(0, 1<<31-1).Draw(t, "attempt"), rapid.Int64Range(0, 1<<63-2).Draw(t, "seq")
		}
		want(t, "cursor", must[Cursor](t)(ParseCursor(c.String())), c)
	})
}

func FuzzCursor(f *testing.F) {
	for _, text := range []string{"start", "end", "closed", "0-0", "1-2-end", "7"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if c, err := ParseCursor(text); err == nil && c.String() != text {
			t.Fatalf("%q is written as %s", text, c)
		}
		if c, err := ParseCursorOf(1, text); err == nil && c.String() != text && c.String() != "1-"+text {
			t.Fatalf("%q is written as %s", text, c)
		}
	})
}
