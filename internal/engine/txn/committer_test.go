package txn

import (
	"fmt"
	"slices"
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

// A thousand attempts that talk must not make every commit as long as a thousand appends: workers who end their work wait for each of them.
func TestE4_commands_that_yield_share_a_batch_and_do_not_fill_it(t *testing.T) {
	t.Parallel()
	c := &committer{}
	put := func(n int, command func(name string) Command) {
		for i := range n {
			c.queue = append(c.queue, &Request{Command: command(fmt.Sprint(i))})
		}
	}
	talks := func(name string) Command { return &talk{plain{"talk " + name}} }
	others := func(name string) Command { return &plain{"other " + name} }
	count := func(batch []*Request) (talking int, rest []string) {
		for _, r := range batch {
			if _, yields := r.Command.(Yielding); yields {
				talking++
			} else {
				rest = append(rest, r.Command.Name())
			}
		}
		return talking, rest
	}
	put(300, talks)
	put(2, others)
	put(100, talks)
	for _, want := range []struct {
		talking int
		rest    []string
	}{{128, []string{"other 0", "other 1"}}, {128, nil}, {128, nil}, {16, nil}, {0, nil}} {
		if talking, rest := count(c.take(1000)); talking != want.talking || !slices.Equal(rest, want.rest) {
			t.Errorf("a batch of %d that yield and %v, want %d and %v", talking, rest, want.talking, want.rest)
		}
	}
	put(200, talks)
	put(5, others)
	if talking, rest := count(c.take(130)); talking != 128 || !slices.Equal(rest, []string{"other 0", "other 1"}) || len(c.queue) != 75 {
		t.Errorf("a batch of %d that yield and %v, and %d wait", talking, rest, len(c.queue))
	}
}
