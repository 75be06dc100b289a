package stream

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/testseed"
)

// execution is an execution with attempts whose frames are their seqs.
type execution struct {
	History
	dropped []int64 // of each attempt: frames up to this seq were dropped
	run     int     // replays
}

func (x *execution) running() bool {
	n := len(x.Attempts)
	return n > 0 && x.Attempts[n-1].Closed.Reason == 0
}

// start starts an attempt; one that runs is taken over.
func (x *execution) start() {
	x.close(Reclaimed)
	x.Attempts = append(slices.Clone(x.Attempts), Attempt{Index: len(x.Attempts), Type: "retry", StartedAt: 1})
	x.dropped = append(x.dropped, 0)
}

func (x *execution) say(n int64) {
	x.Attempts = slices.Clone(x.Attempts)
	x.Attempts[len(x.Attempts)-1].LastSeq += n
}

func (x *execution) close(reason Reason) {
	if x.running() {
		x.Attempts = slices.Clone(x.Attempts)
		x.Attempts[len(x.Attempts)-1].Closed = Closing{At: 1, Reason: reason}
	}
}

func (x *execution) end() {
	x.close(AttemptSuccess)
	x.End = Ending{Outcome: "success", At: 2}
}

func (x *execution) replay() {
	x.End, x.RunFrom = Ending{}, len(x.Attempts)
	x.run++
}

// page reads frames of an attempt.
func (x *execution) page(attempt int, after int64, limit int) (p ReadPage) {
	a := &x.Attempts[attempt]
	if d := x.dropped[attempt]; d > after {
		p.TruncatedBefore = d + 1
	}
	p.Position = after
	for seq := after + 1; seq <= a.LastSeq && len(p.Frames) < limit; seq++ {
		p.Position = seq
		if seq > x.dropped[attempt] {
			p.Frames = append(p.Frames, Frame{Seq: seq})
		}
	}
	return p
}

// viewer is a reader with a screen. Each item is a line; the screen is cleared where an attempt starts.
type viewer struct {
	what    Following
	only    int
	f       *Follower
	fresh   bool // nothing was sent on this connection
	last    Cursor
	lines   []string // everything
	screen  []int64  // frames since the last attempt_started
	shown   int      // the attempt on the screen; -1: none
	gap     int64    // frames below this seq may be missing on the screen
	ended   bool     // the response was ended
	refused bool     // with 204
}

func newViewer(what Following, only int) *viewer {
	v := &viewer{what: what, only: only, shown: -1}
	v.connect(Cursor{})
	return v
}

// connect goes on after a cursor.
func (v *viewer) connect(after Cursor) {
	v.f, v.last, v.fresh, v.ended, v.refused = NewFollower(v.what, after), after, true, false, false
	if v.what == OnlyThis {
		v.f = NewAttemptFollower(v.only, after)
	}
}

// step does one step and reports whether there may be another one.
func (v *viewer) step(t tester, x *execution, limit int) bool {
	t.Helper()
	s := v.f.Next(&x.History)
	switch s.Kind {
	case StepWait:
		return false
	case StepDone:
		v.ended, v.refused = true, v.fresh
		return false
	case StepRead:
		v.read(t, x, s, limit)
	case StepStarted:
		v.screen, v.shown, v.gap, v.last = nil, s.Attempt.Index, 0, s.ID
		v.lines = append(v.lines, fmt.Sprintf("started %d after %d", s.Attempt.Index, s.Supersedes))
	case StepAttemptClosed:
		v.last = s.ID
		v.lines = append(v.lines, fmt.Sprintf("%s %s", s.ID, s.Attempt.Closed.Reason))
	case StepClosed:
		v.last = s.ID
		v.lines = append(v.lines, fmt.Sprintf("%s %s", s.ID, s.End.Outcome))
	default:
		t.Fatalf("step %d", s.Kind)
	}
	v.fresh = false
	return true
}

func (v *viewer) read(t tester, x *execution, s Step, limit int) {
	t.Helper()
	page := x.page(s.Attempt.Index, s.After, limit)
	if gap, dropped := v.f.Advance(&page); dropped {
		v.gap = gap.Before
		v.lines = append(v.lines, fmt.Sprintf("gap %d before %d", gap.Attempt.Index, gap.Before))
	}
	for _, f := range page.Frames {
		if v.what != OnlyThis && v.shown != s.Attempt.Index {
			t.Fatalf("a frame of attempt %d, and attempt %d was started", s.Attempt.Index, v.shown)
		}
		v.screen = append(v.screen, f.Seq)
		v.last = FrameCursor(s.Attempt.Index, f.Seq)
		v.lines = append(v.lines, v.last.String())
	}
}

func (v *viewer) drain(t tester, x *execution) {
	t.Helper()
	for n := 0; v.step(t, x, 3); n++ {
		if n > 10_000 {
			t.Fatalf("no end")
		}
	}
}

// count returns the numbers from a to b.
func count(a, b int64) (all []int64) {
	for ; a <= b; a++ {
		all = append(all, a)
	}
	return all
}

// drawChange lets something happen.
func drawChange(t *rapid.T, x *execution) {
	switch what := rapid.IntRange(0, 9).Draw(t, "change"); {
	case x.End.Outcome != "":
		if what < 3 {
			x.replay()
		}
	case !x.running() && what < 5, what == 0: // 0: reclaimed while it runs
		x.start()
	case what == 1:
		x.end()
	case !x.running():
	case what == 2:
		x.close(AttemptFailure)
	case what == 3:
		at := len(x.Attempts) - 1
		x.dropped[at] = rapid.Int64Range(x.dropped[at], max(x.dropped[at], x.Attempts[at].LastSeq-1)).Draw(t, "dropped")
	default:
		x.say(rapid.Int64Range(1, 7).Draw(t, "frames"))
	}
}

// What was told of the end of a run that is over cannot be told from the end of a later one: that reader begins anew.
func drawConnection(t *rapid.T, v *viewer, x *execution, toldRun int) {
	if rapid.IntRange(0, 3).Draw(t, "disconnect") > 0 && !v.ended {
		return
	}
	if v.last.Place == AtClosed && (x.run > toldRun+1 || x.run == toldRun+1 && x.End.Outcome != "") {
		*v = *newViewer(v.what, v.only)
		return
	}
	v.connect(v.last)
	v.step(t, x, 1) // the cursor is understood when the reader comes
}

func TestEI7_EI2_who_follows_the_latest_attempt_sees_its_frames_and_the_end(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	missing := func() (what []string) {
		for _, word := range []string{"gap", "started", "end", "closed", "refused", "superseded", "replayed"} {
			if seen[word] == 0 {
				what = append(what, word)
			}
		}
		return what
	}
	testseed.Rounds(t, 1, 10, missing, func(t *rapid.T) {
		x, v, toldRun := &execution{}, newViewer(Latest, 0), 0
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			drawChange(t, x)
			before := v.last
			drawConnection(t, v, x, toldRun)
			for range rapid.IntRange(0, 6).Draw(t, "sent") {
				if !v.step(t, x, rapid.IntRange(1, 3).Draw(t, "limit")) {
					break
				}
			}
			if v.last.Place == AtClosed && before.Place != AtClosed {
				toldRun = x.run
			}
			if v.refused {
				seen["refused"]++
				want(t, "refused at the end of the run", [2]int{toldRun, int(v.last.Place)}, [2]int{x.run, int(AtClosed)})
			}
			if !slices.IsSorted(v.screen) || len(slices.Compact(slices.Clone(v.screen))) != len(v.screen) {
				t.Fatalf("the screen shows %v", v.screen)
			}
		}
		drawConnection(t, v, x, toldRun)
		v.drain(t, x)
		if len(x.Attempts) == 0 {
			return
		}
		newest := x.Attempts[len(x.Attempts)-1]
		if x.RunFrom == len(x.Attempts) && v.last.Place == AtClosed { // replayed, and not yet started again
			seen["replayed"]++
		} else {
			want(t, "attempt on the screen", v.shown, newest.Index)
		}
		missed := max(v.gap, 1)
		shown := slices.DeleteFunc(slices.Clone(v.screen), func(seq int64) bool { return seq < missed })
		if !slices.Equal(shown, count(missed, newest.LastSeq)) {
			t.Fatalf("the screen shows %v of %d, with a gap before %d", v.screen, newest.LastSeq, v.gap)
		}
		if x.End.Outcome != "" {
			want(t, "the end was sent", v.last, Cursor{Place: AtClosed})
		} else if newest.Closed.Reason != 0 && v.last.Place != AtClosed {
			want(t, "the close was sent", v.last, AttemptEndCursor(newest.Index, newest.LastSeq))
		}
		for _, line := range v.lines {
			word, _, _ := strings.Cut(line, " ")
			seen[word]++
			if strings.Contains(line, "-end") {
				seen["end"]++
			}
		}
		if v.shown > 0 {
			seen["superseded"]++
		}
	})
}

// account is what a reader of every attempt must have been sent, from the first attempt on.
func (x *execution) account() (lines []string) {
	for _, a := range x.Attempts {
		lines = append(lines, fmt.Sprintf("started %d after %d", a.Index, a.Index-1))
		for _, seq := range count(1, a.LastSeq) {
			lines = append(lines, fmt.Sprintf("%d-%d", a.Index, seq))
		}
		if a.Closed.Reason != 0 {
			lines = append(lines, fmt.Sprintf("%d-%d-end %s", a.Index, a.LastSeq, a.Closed.Reason))
		}
	}
	if x.End.Outcome != "" {
		lines = append(lines, "closed "+x.End.Outcome)
	}
	return lines
}

func TestE18_EI7_who_follows_every_attempt_is_sent_all_of_them_in_order(t *testing.T) {
	t.Parallel()
	testseed.Check(t, func(t *rapid.T) {
		x, v, toldRun := &execution{}, newViewer(Every, 0), 0
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			drawChange(t, x)
			clear(x.dropped)
			before := v.last
			drawConnection(t, v, x, toldRun)
			for range rapid.IntRange(0, 6).Draw(t, "sent") {
				v.step(t, x, 2)
			}
			if v.last.Place == AtClosed && before.Place != AtClosed {
				toldRun = x.run
			}
		}
		drawConnection(t, v, x, toldRun)
		v.drain(t, x)
		told := slices.DeleteFunc(slices.Clone(v.lines), func(line string) bool { return line == "closed success" })
		account := slices.DeleteFunc(x.account(), func(line string) bool { return line == "closed success" })
		if !slices.Equal(told, account) {
			t.Fatalf("sent\n%s\nwant\n%s", strings.Join(told, ", "), strings.Join(account, ", "))
		}
		if x.End.Outcome != "" {
			want(t, "the last line", v.lines[len(v.lines)-1], "closed success")
		}
	})
}

// told lists what a reader is sent until there is nothing more.
func told(t tester, x *execution, what Following, only int, after string) string {
	t.Helper()
	v := &viewer{what: what, only: only, shown: only}
	v.connect(must[Cursor](t)(ParseCursor(after)))
	v.shown = v.last.Attempt
	if v.last.Place == AtEnd {
		v.shown = len(x.Attempts) - 1
	}
	v.drain(t, x)
	if v.refused {
		return "204"
	}
	if v.ended {
		v.lines = append(v.lines, "done")
	}
	return strings.Join(v.lines, ", ")
}

func TestE18_E19_E21_where_a_reader_goes_on(t *testing.T) {
	t.Parallel()
	x := &execution{}
	x.start()
	x.say(2)
	x.close(AttemptFailure)
	x.start()
	x.say(3)
	ended, replayed, again := *x, *x, *x
	ended.end()
	replayed.end()
	replayed.replay()
	again.end()
	again.replay()
	again.start()
	again.say(1)
	early := &execution{}
	early.end()
	for _, row := range []struct {
		name  string
		x     *execution
		what  Following
		after string
		sent  string
	}{
		{"the newest attempt from its start", x, Latest, "start", "started 1 after 0, 1-1, 1-2, 1-3"},
		{"a cursor of an older attempt", x, Latest, "0-1", "started 1 after 0, 1-1, 1-2, 1-3"},
		{"the end of an older attempt", x, Latest, "0-2", "0-2-end attempt_failure, started 1 after 0, 1-1, 1-2, 1-3"},
		{"the close of an older attempt", x, Latest, "0-2-end", "started 1 after 0, 1-1, 1-2, 1-3"},
		{"a cursor of the newest attempt", x, Latest, "1-2", "1-3"},
		{"the start of the newest attempt", x, Latest, "1-0", "1-1, 1-2, 1-3"},
		{"the end", x, Latest, "end", ""},
		{"an attempt that there is not yet", x, Latest, "7-3", ""},
		{"a frame that there is not yet", x, Latest, "1-9", ""},
		{"a close that did not happen", x, Latest, "1-2-end", "1-3"},
		{"the end of the execution, which has not come", x, Latest, "closed", "started 1 after 0, 1-1, 1-2, 1-3"},
		{"every attempt", x, Every, "start", "started 0 after -1, 0-1, 0-2, 0-2-end attempt_failure, started 1 after 0, 1-1, 1-2, 1-3"},
		{"every attempt from a frame", x, Every, "0-1", "0-2, 0-2-end attempt_failure, started 1 after 0, 1-1, 1-2, 1-3"},
		{"every attempt from a close", x, Every, "0-2-end", "started 1 after 0, 1-1, 1-2, 1-3"},
		{"every attempt from the end", x, Every, "end", ""},

		{"at the end, from the last frame", &ended, Latest, "1-3", "1-3-end attempt_success, closed success, done"},
		{"at the end, from the last close", &ended, Latest, "1-3-end", "closed success, done"},
		{"at the end, from the end", &ended, Latest, "end", "closed success, done"},
		{"at the end, told of it", &ended, Latest, "closed", "204"},
		{"at the end, every attempt, told of it", &ended, Every, "closed", "204"},
		{"at the end, from an older attempt", &ended, Latest, "0-1", "started 1 after 0, 1-1, 1-2, 1-3, 1-3-end attempt_success, closed success, done"},
		{"without attempts", early, Latest, "start", "closed success, done"},
		{"without attempts, told of it", early, Latest, "closed", "204"},

		{"replayed, told of the end", &replayed, Latest, "closed", ""},
		{"replayed, every attempt, told of the end", &replayed, Every, "closed", ""},
		{"replayed and started, told of the end", &again, Latest, "closed", "started 2 after 1, 2-1"},
		{"replayed and started, every attempt, told of the end", &again, Every, "closed", "started 2 after 1, 2-1"},
		{"replayed and started, from the last close", &again, Latest, "1-3-end", "started 2 after 1, 2-1"},
		{"nothing yet", &execution{}, Latest, "end", ""},

		{"one attempt", &ended, OnlyThis, "start", "1-1, 1-2, 1-3, 1-3-end attempt_success, done"},
		{"one attempt, open", x, OnlyThis, "1-1", "1-2, 1-3"},
		{"one attempt, told of its close", &ended, OnlyThis, "1-3-end", "204"},
		{"one attempt, told of the end", &ended, OnlyThis, "closed", "204"},
		{"one attempt, from its end", &ended, OnlyThis, "end", "1-3-end attempt_success, done"},
	} {
		if got := told(t, row.x, row.what, 1, row.after); got != row.sent {
			t.Errorf("%s: %s, want %s", row.name, got, row.sent)
		}
	}
}

// A reader that keeps nothing but its cursor between two pages once read the last run again: the cursor that it got had no number.
func TestE16_E21_the_cursor_of_a_reader_who_was_at_the_end_holds_over_a_replay(t *testing.T) {
	t.Parallel()
	x := &execution{}
	x.start()
	x.say(3)
	x.end()
	x.replay()
	for _, what := range []Following{Latest, Every} {
		f := NewFollower(what, Cursor{Place: AtClosed})
		for range 3 {
			if step := f.Next(&x.History); step.Kind != StepWait || f.Cursor().String() != "0-3-end" {
				t.Errorf("%v: step %d at %s", what, step.Kind, f.Cursor())
			}
			f = NewFollower(what, f.Cursor())
		}
	}
}

func TestE18_a_reader_at_the_last_frame_is_told_of_the_close_before_the_next_start(t *testing.T) {
	t.Parallel()
	x := &execution{}
	x.start()
	x.say(4)
	ahead, behind := newViewer(Latest, 0), newViewer(Latest, 0)
	ahead.drain(t, x)
	behind.step(t, x, 1)
	behind.step(t, x, 1)
	polls := newViewer(Latest, 0)
	polls.connect(ahead.last)
	x.start() // reclaimed, in one transaction
	x.say(1)
	ahead.drain(t, x)
	behind.drain(t, x)
	polls.drain(t, x)
	want(t, "a reader that keeps its cursor alone", strings.Join(polls.lines, ", "), "0-4-end reclaimed, started 1 after 0, 1-1")
	want(t, "ahead", strings.Join(ahead.lines, ", "), "started 0 after -1, 0-1, 0-2, 0-3, 0-4, 0-4-end reclaimed, started 1 after 0, 1-1")
	want(t, "behind", strings.Join(behind.lines, ", "), "started 0 after -1, 0-1, started 1 after 0, 1-1")
}

func TestE22_a_gap_is_told_once(t *testing.T) {
	t.Parallel()
	x := &execution{}
	x.start()
	x.say(9)
	x.dropped[0] = 4
	want(t, "from the start", told(t, x, Latest, 0, "start"), "started 0 after -1, gap 0 before 5, 0-5, 0-6, 0-7, 0-8, 0-9")
	want(t, "from a dropped frame", told(t, x, OnlyThis, 0, "0-2"), "gap 0 before 5, 0-5, 0-6, 0-7, 0-8, 0-9")
	want(t, "from the last dropped frame", told(t, x, Latest, 0, "0-4"), "0-5, 0-6, 0-7, 0-8, 0-9")

	x.start()
	x.say(9)
	x.dropped[1] = 2
	want(t, "of each attempt", told(t, x, Every, 0, "start"),
		"started 0 after -1, gap 0 before 5, 0-5, 0-6, 0-7, 0-8, 0-9, 0-9-end reclaimed, started 1 after 0, gap 1 before 3, 1-3, 1-4, 1-5, 1-6, 1-7, 1-8, 1-9")

	// Frames of other modes before the end of the gap are still there, over several pages.
	f := NewAttemptFollower(0, Cursor{})
	f.Next(&x.History)
	for i, row := range []struct {
		page ReadPage
		told int64
	}{
		{ReadPage{Position: 1, TruncatedBefore: 5}, 5},
		{ReadPage{Position: 2, TruncatedBefore: 5}, 0},
		{ReadPage{Position: 6}, 0},
		{ReadPage{Position: 8, TruncatedBefore: 8}, 8},
	} {
		gap, dropped := f.Advance(&row.page)
		if gap.Before != row.told || dropped != (row.told > 0) || f.Cursor() != FrameCursor(0, row.page.Position) {
			t.Errorf("page %d: %+v, %s", i, gap, f.Cursor())
		}
	}
}
