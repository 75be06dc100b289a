// Package quiescence tells when a family of goroutines stands still: when every one of them waits for something that none of
// them will bring about. Tests that turn the clock by hand use it in place of sleeping, and to find goroutines left behind.
//
// A member is known by a label that goroutines inherit: of goroutines that start another and end between two looks nothing else would tell that
// their children belong to the family. For the labels to be shown New adds tracebacklabels=1 to the variable GODEBUG.
//
// It reads the runtime's own dump of all goroutines, which is taken while the world is stopped: a goroutine that was woken but
// has not run yet shows as runnable, so nothing is missed between a send and its receipt. It knows nothing of what the
// goroutines do, with exceptions that idle and shared explain.
package quiescence

import (
	"context"
	"fmt"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"time"
)

// Family is the goroutines started by Do and Go, and all that those start. They are known by a label, which a goroutine has from the one that
// started it.
type Family struct {
	name  string       // value of the label
	calls atomic.Int64 // of During that have not returned
	begun atomic.Int64 // calls of During so far

	mu     sync.Mutex
	buffer []byte // of the last dump
}

// New makes a family without members. From then on the runtime shows labels in its dumps.
func New() *Family {
	showLabels()
	fam := &Family{}
	fam.name = fmt.Sprintf("%p", fam)
	return fam
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
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels(label, fam.name)))
}

// During runs a call that comes back by itself, for a member. While it lasts Await knows without a look that the family goes on; it
// must not be one that waits for the clock or for another member.
func (fam *Family) During(call func() error) error {
	fam.begun.Add(1)
	fam.calls.Add(1)
	defer fam.calls.Add(-1)
	return call()
}

// Await returns when all members stand still, or with an error that shows who does not when ctx ends.
func (fam *Family) Await(ctx context.Context) error {
	for breath := shortest; ; breath = min(breath*3/2, longest) {
		if err := fam.lull(ctx); err != nil {
			return err
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

// lull waits until no call lasts and, in a family that makes calls, none has begun for a pause: a caller that has an answer often asks again.
func (fam *Family) lull(ctx context.Context) error {
	for before := int64(0); ; {
		begun := fam.begun.Load()
		lasts := fam.calls.Load() > 0
		if !lasts && begun == before {
			return nil
		}
		if lasts && ctx.Err() != nil {
			return fmt.Errorf("%w: one of these goroutines is in a call:\n\n%s", ctx.Err(), join(fam.present()))
		}
		before = begun
		time.Sleep(pause)
	}
}

// So long a breath is left to the others between two looks. It decides nothing: a look itself is exact. But a look stops everybody, so that
// those who wait for long look less and less often, and most of the time is not spent on looking. To see whether a call lasts costs nothing.
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
	var present []goroutine
	for _, g := range fam.dump() {
		if g.family == fam.name && g.id != me && !g.shared() {
			present = append(present, g)
		}
	}
	return present
}
