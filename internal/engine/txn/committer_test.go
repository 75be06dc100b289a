package txn

import (
	"fmt"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/store"
)

// plain is a command that does nothing.
type plain struct{ name string }

func (p *plain) Name() string         { return p.name }
func (*plain) Want(*store.Want, bool) {}
func (*plain) Decide(*Tx) error       { return nil }

// talk is one of many of its kind.
type talk struct{ plain }

func (*talk) Yields() {}

// talkers is a committer with a queue, and what its batches have.
type talkers struct{ committer }

func (c *talkers) put(talks, others int, began time.Duration) {
	for i := range talks {
		c.yields.queue = append(c.yields.queue, &Request{Command: &talk{plain{fmt.Sprint("talk ", i)}}, began: began})
	}
	for i := range others {
		c.queue = append(c.queue, &Request{Command: &plain{fmt.Sprint("other ", i)}, began: began})
	}
}

// counts returns how many of the next batch yield, and how many others it has.
func (c *talkers) counts(n int, now time.Duration) (counts [2]int) {
	for _, r := range c.next(n, now) {
		if _, yields := r.Command.(Yielding); yields {
			counts[0]++
		} else {
			counts[1]++
		}
	}
	return counts
}

// A thousand attempts that talk must not make every commit as long as a thousand appends: workers who end their work wait for each of them.
func TestE4_commands_that_yield_let_others_go_first_and_do_not_fill_a_batch(t *testing.T) {
	t.Parallel()
	const early = 5 * time.Millisecond
	c := &talkers{}
	c.put(300, 2, 0)
	for i, want := range [][2]int{{128, 2}, {128, 0}, {44, 0}, {0, 0}} { // so many are due at once
		if got := c.counts(1000, early); got != want {
			t.Errorf("batch %d has %v, want %v", i, got, want)
		}
	}
	c.put(5, 3, 0)
	for i, want := range [][2]int{{0, 3}, {5, 0}} {
		if got := c.counts(1000, early); got != want {
			t.Errorf("batch %d of a few has %v, want %v", i, got, want)
		}
	}
	c.put(5, 3, 0)
	for i, want := range [][2]int{{5, 2}, {0, 1}} {
		if got := c.counts(2, yieldingWait); got != want {
			t.Errorf("batch %d of a few that have waited has %v, want %v", i, got, want)
		}
	}
}

func TestE4_commands_that_yield_have_transactions_of_their_own_on_a_store_with_row_locks(t *testing.T) {
	t.Parallel()
	c := &talkers{}
	c.Lines, c.yields.apart = 2, true
	c.put(200, 1, 0)
	if got := c.counts(1000, time.Hour); got != [2]int{0, 1} {
		t.Errorf("a batch of a line has %v", got)
	}
	if c.othersWait() || !c.worthwhile() || len(c.yields.take()) != yieldingAtMost {
		t.Error("those that yield are not run beside a line")
	}
	if c.yields.busy = true; c.worthwhile() {
		t.Error("they are run twice at a time")
	}
}
