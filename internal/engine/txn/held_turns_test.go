package txn

import (
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/store"
)

// lineOf is the line of a row, with one command in it, of a process that lets tests take the turns of its waiters.
func lineOf(cmd Command) (*heldRows, *heldLine, *time.Duration) {
	now := time.Second
	h := &heldRows{e: &Engine{Meter: newMeter(func() time.Duration { return now })}, limit: 10, lines: map[store.Lock]*heldLine{}}
	lock := store.Lock{Counter: "c"}
	h.join(lock, nil, []*Request{{Command: cmd, Done: make(chan struct{})}})
	return h, h.lines[lock], &now
}

func TestL143_S73_a_command_whose_turn_comes_late_is_not_given_up_for_a_row_that_is_held_at_that_moment(t *testing.T) {
	t.Parallel()
	h, line, now := lineOf(&OnOne{})
	for turn := 1; turn < patientTries; turn++ {
		*now += 10 * heldLong
		if late, over := h.takeLate(line); len(late) > 0 || over {
			t.Fatalf("it is given up at turn %d", turn)
		}
	}
	if late, over := h.takeLate(line); len(late) != 1 || !over {
		t.Errorf("after %d turns: %d given up, over: %v", patientTries, len(late), over)
	}
}

func TestS73_a_command_that_had_many_short_turns_waits_out_its_time(t *testing.T) {
	t.Parallel()
	h, line, now := lineOf(&OnOne{})
	for turn := range 5 * patientTries {
		if late, _ := h.takeLate(line); len(late) > 0 {
			t.Fatalf("it is given up at turn %d", turn)
		}
	}
	*now += heldLong
	if late, _ := h.takeLate(line); len(late) != 1 {
		t.Error("it is not given up")
	}
}

// hasty is a command that does not wait long for a lock, as a submit.
type hasty struct{ OnOne }

func (*hasty) WaitsOnce() {}

func TestL82_a_submit_is_given_up_after_a_second_however_few_turns_it_had(t *testing.T) {
	t.Parallel()
	h, line, now := lineOf(&hasty{})
	if late, _ := h.takeLate(line); len(late) > 0 {
		t.Error("it is given up at once")
	}
	*now += HeldOnce
	if late, _ := h.takeLate(line); len(late) != 1 {
		t.Error("it is not given up")
	}
}

func TestS73_a_line_that_waits_in_vain_waits_longer_each_time_also_among_many(t *testing.T) {
	t.Parallel()
	h, first, _ := lineOf(&OnOne{})
	for i := range 1000 {
		h.Watch([]store.Lock{{Lane: int32(i + 1)}})
	}
	before := time.Duration(0)
	for range patientTries {
		line, turn := h.next()
		for ; line != first; line, turn = h.next() {
			h.takeLate(line)
		}
		if turn < shortestTurn || turn <= before && turn < longestTurn || turn > longestTurn {
			t.Fatalf("a turn of %s after one of %s", turn, before)
		}
		before = turn
		h.takeLate(first)
	}
	if before != longestTurn {
		t.Errorf("the last turn takes %s", before)
	}
}
