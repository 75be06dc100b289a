// Package standstill tells when a family of goroutines stands still: when every one of them waits for something that none of
// them will bring about. Tests that turn the clock by hand use it in place of sleeping, and to find goroutines left behind.
//
// A member is known by a label that goroutines inherit, and by its parent: of goroutines that start another and end between two looks nothing
// else would tell that their children belong to the family. For the labels to be shown New adds tracebacklabels=1 to the variable GODEBUG.
//
// It reads the runtime's own dump of all goroutines, which is taken while the world is stopped: a goroutine that was woken but
// has not run yet shows as runnable, so nothing is missed between a send and its receipt. It knows nothing of what the
// goroutines do, with two exceptions that idle explains.
package standstill

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Family is the goroutines started by Do and Go, and all that those start.
type Family struct {
	label   string // of the goroutines, unlike that of any other family
	mu      sync.Mutex
	members map[uint64]bool // every member ever seen, also those that have ended: their children are members too
	buffer  []byte          // of the last dump
	calls   atomic.Int64    // of During that have not returned
}

// New makes a family without members.
func New() *Family {
	showLabels()
	return &Family{label: rand.Text(), members: map[uint64]bool{}}
}

// labelKey is the key of the label.
const labelKey = "standstill"

// showLabels makes the runtime show labels in dumps. What it says stays if others make a family at the same time: all say the same.
func showLabels() {
	const variable, setting = "GODEBUG", "tracebacklabels=1"
	if value := os.Getenv(variable); !strings.HasSuffix(value, setting) {
		_ = os.Setenv(variable, strings.TrimPrefix(value+","+setting, ",")) // without it parents tell, as far as they were seen
	}
}

// Do runs f on a goroutine of its own and waits for it. What f starts belongs to the family.
func (fam *Family) Do(f func()) { <-fam.Go(f) }

// Go runs f on a goroutine of its own, which belongs to the family as all that it starts. The channel is closed when f returns.
func (fam *Family) Go(f func()) <-chan struct{} {
	begun, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		fam.join()
		close(begun)
		f()
	}()
	<-begun
	return done
}

// join makes the calling goroutine a member.
func (fam *Family) join() {
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels(labelKey, fam.label)))
	id := self()
	fam.mu.Lock()
	defer fam.mu.Unlock()
	fam.members[id] = true
}

// During runs a call that comes back by itself, for a member. While it lasts Await knows without a look that the family goes on; it
// must not be one that waits for the clock or for another member.
func (fam *Family) During(call func() error) error {
	fam.calls.Add(1)
	defer fam.calls.Add(-1)
	return call()
}

// Await returns when all members stand still, or with an error that shows who does not when ctx ends.
func (fam *Family) Await(ctx context.Context) error {
	for breath := shortest; ; breath = min(breath*3/2, longest) {
		for fam.calls.Load() > 0 {
			if ctx.Err() != nil {
				return fmt.Errorf("%w: one of these goroutines is in a call:\n\n%s", ctx.Err(), join(fam.present()))
			}
			time.Sleep(pause)
		}
		restless := fam.restless()
		if len(restless) == 0 {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%w: these goroutines go on:\n\n%s", ctx.Err(), join(restless))
		}
		time.Sleep(breath)
	}
}

// So long a breath is left to the others between two looks. It decides nothing: a look itself is exact. But a look stops everybody, so that
// those who wait for long look less and less often, and nobody spends most of the time on looking. To see whether a call lasts costs nothing.
const (
	pause    = 100 * time.Microsecond
	shortest = 500 * time.Microsecond
	longest  = 3 * time.Millisecond
)

// Alive shows the members that have not ended.
func (fam *Family) Alive() []string {
	var alive []string
	for _, g := range fam.present() {
		alive = append(alive, g.text)
	}
	return alive
}

// restless lists the members that do not stand still.
func (fam *Family) restless() []goroutine {
	var found []goroutine
	for _, g := range fam.present() {
		if !g.idle() {
			found = append(found, g)
		}
	}
	return found
}

// present lists the members in a fresh dump. The goroutine that asks is never among them: it is running.
func (fam *Family) present() []goroutine {
	me := self()
	fam.mu.Lock()
	defer fam.mu.Unlock()
	all := fam.dump()
	for _, g := range all {
		if g.label == fam.label {
			fam.members[g.id] = true
		}
	}
	for grew := true; grew; { // a dump is in no order: parents may come after their children
		grew = false
		for _, g := range all {
			if !fam.members[g.id] && fam.members[g.parent] {
				fam.members[g.id] = true
				grew = true
			}
		}
	}
	var present []goroutine
	for _, g := range all {
		if g.id != me && fam.members[g.id] {
			present = append(present, g)
		}
	}
	return present
}
