package engine

import (
	"context"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/store"
)

// What bounds a namespace, so that one tenant costs the others little: how many lanes and classes its executions use, and how many of these
// wait for a worker. The first two are counted in memory as classes are added, the last by the store now and then. Several processes may let
// as much more in as each takes before it hears of the others.

// newNames counts the names that the submissions of one call bring along, before any of them is registered. With nil they are not bounded: what
// was accepted before is not refused by a bound when it begins.
type newNames struct {
	e       *Engine
	classes map[className]bool
	of      map[string]*namespaceUse
}

func (e *Engine) newNames() *newNames { return &newNames{e: e} }

// check refuses a submission whose class is another one for its namespace when that may have no more.
func (n *newNames) check(space core.NamespaceSettings, class *core.Class) error {
	if n == nil {
		return nil
	}
	dict, name := n.e.dict.now(), nameOf(class)
	if n.classes[name] || dict.named(name) != nil {
		return nil
	}
	use, hasLane := dict.table.useOf(class.Namespace, class.Lane)
	own := n.of[class.Namespace]
	if own == nil {
		own = &namespaceUse{lanes: map[string]bool{}}
		setIn(&n.of, class.Namespace, own)
	}
	use.Classes += own.classes
	use.Lanes += len(own.lanes)
	newLane := !hasLane && !own.lanes[class.Lane]
	if err := space.CheckNew(use, newLane); err != nil {
		return err
	}
	setIn(&n.classes, name, true)
	if own.classes++; newLane {
		own.lanes[class.Lane] = true
	}
	return nil
}

const (
	readyAge  = 10 * time.Second // how long a count of what waits is believed
	readyFull = time.Second      // and how long if it says that there is no room
)

// readyBounds knows about how many executions of namespaces wait for workers. Between two counts each submit counts as one that waits, so that
// what is known is rather too much than too little, and the next count puts it right.
type readyBounds struct {
	e  *Engine
	mu sync.Mutex
	of map[string]*readyBound
}

type readyBound struct {
	mu    sync.Mutex // held while the store counts: one asks for all
	known int
	at    time.Time
}

// take counts a submission as one that waits, or tells why it may not: rate_limited.
func (b *readyBounds) take(ctx context.Context, namespace string, space core.NamespaceSettings) error {
	if space.MaxReady == 0 {
		return nil
	}
	r := b.bound(namespace)
	r.mu.Lock()
	defer r.mu.Unlock()
	now := b.e.cfg.Clock.Now()
	if age := now.Sub(r.at); age >= readyAge || age >= readyFull && space.CheckReady(r.known) != nil {
		if n, err := b.count(ctx, namespace, space.MaxReady); err == nil { // a store that does not answer refuses by itself
			r.known, r.at = n, now
		}
	}
	if err := space.CheckReady(r.known); err != nil {
		return err
	}
	r.known++
	return nil
}

func (b *readyBounds) bound(namespace string) *readyBound {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.of[namespace]
	if r == nil {
		r = &readyBound{}
		setIn(&b.of, namespace, r)
	}
	return r
}

// count counts what waits, no further than most.
func (b *readyBounds) count(ctx context.Context, namespace string, most int) (int, error) {
	if err := b.e.follower.reach(ctx); err != nil {
		return 0, err
	}
	q := store.Query{Statuses: []core.Status{core.Ready}, Classes: b.e.dict.now().classesIn(namespace)}
	return b.e.store.Count(ctx, q, most)
}

// classesIn are the numbers of all classes of namespaces.
func (d *dictionary) classesIn(namespaces ...string) []int32 {
	numbers := []int32{}
	for class := range d.all() {
		if contains(namespaces, class.Namespace) {
			numbers = append(numbers, class.ID)
		}
	}
	return numbers
}
