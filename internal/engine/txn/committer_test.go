package txn

import (
	"fmt"
	"testing"

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

func (c *talkers) put(talks, others int) {
	for i := range talks {
		c.yields.queue = append(c.yields.queue, &Request{Command: &talk{plain{fmt.Sprint("talk ", i)}}})
	}
	for i := range others {
		c.queue = append(c.queue, &Request{Command: &plain{fmt.Sprint("other ", i)}})
	}
}

// counts returns how many of the next batch yield, and how many others it has.
func (c *talkers) counts(n int) (counts [2]int) {
	for _, r := range c.next(n) {
		if _, yields := r.Command.(Yielding); yields {
			counts[0]++
		} else {
			counts[1]++
		}
	}
	return counts
}

// A thousand attempts that talk must not make every commit as long as a thousand appends: workers who end their work wait for each of them.
func TestE4_commands_that_yield_share_a_batch_and_do_not_fill_it(t *testing.T) {
	t.Parallel()
	c := &talkers{}
	c.put(300, 2)
	for i, want := range [][2]int{{128, 2}, {128, 0}, {44, 0}, {0, 0}} {
		if got := c.counts(1000); got != want {
			t.Errorf("batch %d has %v, want %v", i, got, want)
		}
	}
	c.put(200, 5)
	if got := c.counts(2); got != [2]int{128, 2} || len(c.queue) != 3 || len(c.yields.queue) != 72 {
		t.Errorf("a batch has %v, and %d and %d wait", got, len(c.yields.queue), len(c.queue))
	}
}

func TestE4_commands_that_yield_have_transactions_of_their_own_on_a_store_with_row_locks(t *testing.T) {
	t.Parallel()
	c := &talkers{}
	c.Lines, c.yields.apart = 2, true
	c.put(200, 1)
	if got := c.counts(1000); got != [2]int{0, 1} {
		t.Errorf("a batch of a line has %v", got)
	}
	if c.othersWait() || !c.worthwhile() || len(c.yields.take()) != yieldingAtMost {
		t.Error("those that yield are not run beside a line")
	}
	if c.yields.busy = true; c.worthwhile() {
		t.Error("they are run twice at a time")
	}
}
