package streams

import (
	"context"
	"sync"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// maxTails bounds the readers of a process that wait (E17).
const maxTails = 4096

// looksAtOnce is how many heads are read in one statement.
const looksAtOnce = 512

// tails are the readers of this process that wait at the end of a stream. A waiting reader is an entry here and nothing else: it holds no connection.
// Wake-ups are hints. A reader enters first, reads second and waits third, so that none is missed; what woke it is found by its next read (E17).
type tails struct {
	mu sync.Mutex
	n  int
	of map[base.UUID]map[*tail]struct{}
}

// tail is one waiting reader. What it waits for is protected by the lock of its tails.
type tail struct {
	id    base.UUID
	woken chan struct{} // closed
	gone  bool
	head  store.DocRef // of the stream at whose end it waits
	last  int64        // the last frame of that stream that it knows
}

func newTails() *tails { return &tails{of: map[base.UUID]map[*tail]struct{}{}} }

// enter adds a reader. Codes: overloaded.
func (t *tails) enter(id base.UUID) (*tail, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n >= maxTails {
		return nil, base.Errorf(base.CodeOverloaded, "%d readers of streams wait already", maxTails).WithRetryAfter(1000)
	}
	one := &tail{id: id, woken: make(chan struct{})}
	if t.of[id] == nil {
		t.of[id] = map[*tail]struct{}{}
	}
	t.of[id][one] = struct{}{}
	t.n++
	return one, nil
}

// knows records at the end of which stream a reader waits.
func (t *tails) knows(one *tail, head store.DocRef, last int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	one.head, one.last = head, last
}

func (t *tails) withdraw(one *tail) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.remove(one)
}

// remove takes a reader out. The lock is held.
func (t *tails) remove(one *tail) {
	if one.gone {
		return
	}
	one.gone = true
	t.n--
	delete(t.of[one.id], one)
	if len(t.of[one.id]) == 0 {
		delete(t.of, one.id)
	}
}

// wake makes the readers of an execution's streams look again.
func (t *tails) wake(id base.UUID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end(id)
}

// end wakes the readers of an execution. The lock is held.
func (t *tails) end(id base.UUID) {
	for one := range t.of[id] {
		t.remove(one)
		close(one.woken)
	}
}

func (t *tails) wakeAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id := range t.of {
		t.end(id)
	}
}

// heard wakes the readers of executions that a commit is about: an attempt may have begun or ended.
func (t *tails) heard(c *store.Commit) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n == 0 {
		return
	}
	for i := range c.Events {
		t.end(c.Events[i].ExecutionID.UUID)
	}
}

func (t *tails) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.n
}

// waiting returns the heads of the streams at whose end readers wait, with the least that a reader of each knows.
func (t *tails) waiting() map[store.DocRef]int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	heads := map[store.DocRef]int64{}
	for _, readers := range t.of {
		for one := range readers {
			if known, ok := heads[one.head]; one.head.Key != "" && (!ok || one.last < known) {
				heads[one.head] = one.last
			}
		}
	}
	return heads
}

// behind wakes the readers of an execution that wait at the end of a stream which has more than they know.
func (t *tails) behind(id base.UUID, head store.DocRef, last int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for one := range t.of[id] {
		if one.head == head && one.last < last {
			t.remove(one)
			close(one.woken)
		}
	}
}

// look reads the heads of all streams at whose end readers of this process wait, and wakes those that are behind. The number of statements does not
// depend on the number of readers of a stream.
func (e *Streams) look(ctx context.Context) {
	known := e.tails.waiting()
	refs := make([]store.DocRef, 0, min(len(known), looksAtOnce))
	for ref := range known {
		if refs = append(refs, ref); len(refs) == looksAtOnce {
			e.lookAt(ctx, refs)
			refs = refs[:0]
		}
	}
	if len(refs) > 0 {
		e.lookAt(ctx, refs)
	}
}

func (e *Streams) lookAt(ctx context.Context, refs []store.DocRef) {
	docs, err := e.ReadDocs(ctx, refs...)
	if err != nil {
		return // the next look finds it
	}
	for ref, doc := range docs {
		id, ok := base.ParseUUID(ref.Owner)
		if head, err := decodeHead(&doc); ok && err == nil {
			e.tails.behind(id, ref, head.LastSeq)
		}
	}
}
