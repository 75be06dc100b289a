package postgres

import (
	"sync"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

func TestS9_two_processes_that_claim_at_once_never_get_one_execution_twice(t *testing.T) {
	t.Parallel()
	first, url := openNew(t, Config{})
	second := openAt(t, url, Config{})
	filler := newCycler(t, first, "default")
	const total, batch = 3000, 40
	filler.submit(t, total)
	taken := map[base.UUID]int{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, s := range []*Store{first, second, first, second} {
		c := newCycler(t, s, "default")
		all.Go(func() {
			for {
				ids := c.claim(t, batch)
				mu.Lock()
				for _, id := range ids {
					taken[id]++
				}
				done := len(taken) == total || t.Failed()
				mu.Unlock()
				if done {
					return
				}
			}
		})
	}
	all.Wait()
	for id, times := range taken {
		if times != 1 {
			t.Errorf("%s was taken %d times", id, times)
		}
	}
}
