package scenario

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/bench/measure"
)

// chainBook knows how far each flow of a line is. All its times are of this host's monotonic clock.
type chainBook struct {
	nodes int

	mu       sync.Mutex
	flows    map[flowfabric.ID]*chainRun
	ending   map[flowfabric.ID]*chainRun // by the execution of the last node, once that has begun
	ids      []flowfabric.ID             // of all nodes
	next     *measure.Durations
	starts   int
	disorder int // nodes that began before the one before them, or again
	done     int
	last     time.Time
}

// chainRun is one flow.
type chainRun struct {
	begun   int       // nodes
	left    time.Time // when the handler of the last of them returned
	ended   chan struct{}
	endedAt time.Time // set before ended is closed
}

func newChainBook(nodes int) *chainBook {
	return &chainBook{nodes: nodes, flows: map[flowfabric.ID]*chainRun{}, ending: map[flowfabric.ID]*chainRun{}, next: &measure.Durations{}}
}

// measureNext makes a new place for the times between nodes.
func (b *chainBook) measureNext() *measure.Durations {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.next = &measure.Durations{}
	return b.next
}

// run is a flow, which workers may hear of before its submit is answered.
func (b *chainBook) run(id flowfabric.ID) *chainRun {
	r := b.flows[id]
	if r == nil {
		r = &chainRun{ended: make(chan struct{})}
		b.flows[id] = r
	}
	return r
}

// sent notes the members of a flow.
func (b *chainBook) sent(f *flowfabric.FlowRun) *chainRun {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range f.Members {
		b.ids = append(b.ids, id)
	}
	return b.run(f.ID)
}

// handle does nothing but look at the clock.
func (b *chainBook) handle(_ context.Context, task *flowfabric.Task, _ []byte) (none flowfabric.None, _ error) {
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.run(task.FlowID())
	number, err := strconv.Atoi(strings.TrimPrefix(task.Name(), "n"))
	if err != nil || number != r.begun {
		b.disorder++
		return none, nil
	}
	b.starts++
	r.begun++
	if number > 0 {
		b.next.Add(now.Sub(r.left))
	}
	if r.begun == b.nodes {
		b.ending[task.ID()] = r
	}
	r.left = time.Now()
	return none, nil
}

// acknowledged hears of the end of a node.
func (b *chainBook) acknowledged(id flowfabric.ID) {
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.ending[id]
	if r == nil {
		return
	}
	delete(b.ending, id)
	r.endedAt, b.last = now, now
	b.done++
	close(r.ended)
}

func (b *chainBook) ended() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.done
}

func (b *chainBook) lastEnd() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last
}

// check compares with the store: every node once and in its turn, every flow completed.
func (b *chainBook) check(ctx context.Context, t *trial, from string) error {
	ended, err := t.check(ctx, "", b.ids, from)
	if err != nil {
		return err
	}
	t.sample.check("succeeded", len(b.ids), ended.outcomes["success"])
	t.sample.check("started", len(b.ids), b.starts)
	t.sample.check("out_of_order", 0, b.disorder)
	return t.checkFlows(ctx, "", len(b.flows))
}

// checkFlows wants so many flows in all, each of them completed.
func (t *trial) checkFlows(ctx context.Context, prefix string, want int) error {
	completed := 0
	for flow, err := range t.place.client.Flows().List(ctx, flowfabric.FlowQuery{Kind: benchFlow}) {
		if err != nil {
			return err
		}
		if flow.State == flowfabric.FlowCompleted {
			completed++
		} else {
			t.note(prefix + "a flow is " + string(flow.State))
		}
	}
	t.sample.check(prefix+"flows_completed", want, completed)
	return nil
}
