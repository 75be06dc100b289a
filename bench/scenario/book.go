package scenario

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/bench/measure"
)

// noop is the work of most scenarios. Its input begins with the number of the execution.
const noop flowfabric.Kind[[]byte, flowfabric.None] = "bench"

// inputBytes is the size of an input.
const inputBytes = 4 << 10

// book knows what was sent and what began, by number. The first are the warm-up: they are checked and not measured.
type book struct {
	base      time.Time
	warm      int
	sent      []atomic.Int64 // when, since base
	ids       []flowfabric.ID
	starts    []atomic.Int32
	begun     atomic.Int64 // executions that have started
	misrouted atomic.Int64
	submit    measure.Durations
	start     measure.Durations
}

func newBook(warm, n int) *book {
	return &book{
		base: time.Now(), warm: warm, sent: make([]atomic.Int64, warm+n), ids: make([]flowfabric.ID, warm+n), starts: make([]atomic.Int32, warm+n),
	}
}

// warmUp is how much of n comes before it.
func warmUp(n int) int { return max(n/10, 1) }

// input is random, but for the number at its head.
func input(random *rand.ChaCha8, number int) []byte {
	data := make([]byte, inputBytes)
	_, _ = random.Read(data) // never fails
	binary.BigEndian.PutUint64(data, uint64(number))
	return data
}

// began notes the start of a handler and returns the number of its execution; -1 if it was not sent.
func (b *book) began(in []byte) int {
	now := time.Since(b.base)
	if len(in) < 8 {
		return -1
	}
	number := int(binary.BigEndian.Uint64(in))
	if number < 0 || number >= len(b.starts) {
		return -1
	}
	if b.starts[number].Add(1) == 1 {
		if number >= b.warm {
			b.start.Add(now - time.Duration(b.sent[number].Load()))
		}
		b.begun.Add(1)
	}
	return number
}

// sending notes that an execution is due now.
func (b *book) sending(number int) time.Time {
	now := time.Now()
	b.sent[number].Store(int64(now.Sub(b.base)))
	return now
}

// accepted notes the answer to a submit.
func (b *book) accepted(number int, id flowfabric.ID, began time.Time) {
	b.ids[number] = id
	if number >= b.warm {
		b.submit.Add(time.Since(began))
	}
}

// endings is how executions ended, by the log of the store.
type endings struct {
	times    map[flowfabric.ID]int // how often each one ended
	outcomes map[string]int
}

// position is the present end of the log.
func (t *trial) position(ctx context.Context) (string, error) {
	page, err := t.place.client.Events().Read(ctx, ops.ReadOptions{After: api.FromEnd})
	return page.Next, err
}

// endingsSince reads the log from a position until it has seen so many endings, or nothing more comes.
func (t *trial) endingsSince(ctx context.Context, from string, want int) (endings, error) {
	e := endings{times: map[flowfabric.ID]int{}, outcomes: map[string]int{}}
	seen := 0
	for {
		o := ops.ReadOptions{After: from, Limit: 1000, EventFilter: ops.EventFilter{Kinds: []string{"execution.completed"}}}
		if seen < want {
			o.Wait = min(t.cfg.Stall, 5*time.Second)
		}
		page, err := t.place.client.Events().Read(ctx, o)
		if err != nil {
			return e, err
		}
		for _, event := range page.Events {
			var data struct {
				Outcome string `json:"outcome"`
			}
			if err := json.Unmarshal(event.Data, &data); err != nil {
				return e, err
			}
			e.times[event.ExecutionID]++
			e.outcomes[data.Outcome]++
		}
		seen += len(page.Events)
		from = page.Next
		if len(page.Events) == 0 && page.AtEnd {
			return e, nil
		}
	}
}

// check compares what was sent with the log: nothing may be lost, end twice, or come from nowhere (U252).
// The names of the checks begin with prefix.
func (t *trial) check(ctx context.Context, prefix string, ids []flowfabric.ID, from string) (endings, error) {
	e, err := t.endingsSince(ctx, from, len(ids))
	if err != nil {
		return e, err
	}
	lost, twice := 0, 0
	for _, id := range ids {
		switch n := e.times[id]; {
		case n == 0:
			lost++
		case n > 1:
			twice++
		}
	}
	t.sample.check(prefix+"ended", len(ids), len(e.times))
	t.sample.check(prefix+"lost", 0, lost)
	t.sample.check(prefix+"ended_twice", 0, twice)
	open, err := t.open(ctx)
	t.sample.check(prefix+"still_open", 0, open)
	return e, err
}

// unended are the statuses of executions that have not ended.
var unended = []flowfabric.Status{
	flowfabric.StatusDelayed, flowfabric.StatusReady, flowfabric.StatusBlocked, flowfabric.StatusGranted, flowfabric.StatusRunning, flowfabric.StatusSuspended,
}

// open counts what has not ended, once lists have caught up with the log.
func (t *trial) open(ctx context.Context) (int, error) {
	left := 0
	var failed error
	err := t.awaitZero(ctx, func() int {
		var count api.Count
		if count, failed = t.place.client.Executions().Count(ctx, ops.Filter{Status: unended}); failed != nil {
			return 0
		}
		left = count.Total
		return left
	})
	if failed != nil {
		return 0, failed
	}
	return left, err
}

// awaitZero asks again and again until there is nothing left, or nothing changes any more.
func (t *trial) awaitZero(ctx context.Context, left func() int) error {
	last, changed := -1, time.Now()
	for {
		n := left()
		if n == 0 || n == last && time.Since(changed) > min(t.cfg.Stall, 10*time.Second) {
			return nil
		}
		if n != last {
			last, changed = n, time.Now()
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
