package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/flowfabric/flowfabric/internal/store"
)

// flusher syncs the write-ahead log while the next transaction is already running: a commit writes its pages and releases the only writing
// connection, and its waiters are notified once the pages have reached the disk. All commits that were written when a sync begins share it. After a
// power loss the log is read from its beginning, so syncing one commit makes all earlier ones durable too.
//
// Later transactions see commits that are not durable yet, and are lost together with them. Callers outside the store do not: answers wait for
// durability, and so do reads.
type flusher struct {
	sync func() error

	mu      sync.Mutex
	begun   int64     // commits that must not be lost: others may see them from now on
	written int64     // how many of them are in the log: one less while a commit is being written
	safe    int64     // how many of them are synced
	broken  error     // a sync failed: the content of the disk is unknown
	waiting []waiting // in order of commit
	running bool
	idle    sync.WaitGroup
	kick    chan struct{} // starts the goroutine of serve; nil: there is none
	served  sync.WaitGroup
}

// waiting is a waiter for a commit.
type waiting struct {
	commit int64
	done   func(error)
}

// serve starts the goroutine that syncs, until end. It is started when the store is opened. A goroutine that was started for one commit or read
// would continue to serve others after its caller has returned, and a test that waits until all goroutines of an engine are idle would not know it.
func (f *flusher) serve() {
	f.mu.Lock()
	defer f.mu.Unlock()
	kick := make(chan struct{}, 1)
	f.kick = kick
	f.served.Go(func() {
		for range kick {
			f.run()
			f.idle.Done()
		}
	})
}

// end waits for the syncs in progress and ends the goroutine of serve.
func (f *flusher) end() {
	f.idle.Wait()
	f.stop()
	f.served.Wait()
}

// stop lets the goroutine of serve end when it has nothing to do. Later waiters start one of their own.
func (f *flusher) stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.kick != nil {
		close(f.kick)
		f.kick = nil
	}
}

// begins counts a commit that is about to be written. It must be followed by wrote before the next one.
func (f *flusher) begins() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begun++
}

// wrote records that the commit is in the log or has failed, and calls tell from another goroutine once it is durable. A nil tell is not called.
func (f *flusher) wrote(done func(error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.written = f.begun
	if done != nil {
		f.waiting = append(f.waiting, waiting{f.written, done})
	}
	f.start()
}

// then calls tell once everything that is visible now is durable: at once if it already is.
func (f *flusher) then(done func(error)) {
	f.mu.Lock()
	if f.safe != f.begun {
		defer f.mu.Unlock()
		f.waiting = append(f.waiting, waiting{f.begun, done})
		f.start()
		return
	}
	f.mu.Unlock()
	done(nil)
}

// start syncs if there is a waiter for a commit that is in the log. The lock must be held.
func (f *flusher) start() {
	if f.running || !f.worthwhile() {
		return
	}
	f.running = true
	if f.kick == nil {
		f.idle.Go(f.run)
		return
	}
	f.idle.Add(1)
	f.kick <- struct{}{} // does not block: the previous run has received its own
}

func (f *flusher) worthwhile() bool { return len(f.waiting) > 0 && f.waiting[0].commit <= f.written }

// run syncs while there are waiters for written commits.
func (f *flusher) run() {
	for {
		f.mu.Lock()
		if f.running = f.worthwhile(); !f.running {
			f.mu.Unlock()
			return
		}
		all, err := f.written, f.broken
		f.mu.Unlock()
		if err == nil {
			err = f.sync()
		}
		for _, w := range f.reached(all, err) {
			w.done(err)
		}
	}
}

// reached records a sync of the given number of commits and returns its waiters.
func (f *flusher) reached(all int64, err error) []waiting {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil {
		f.safe = all
	} else if f.broken == nil {
		f.broken = err
	}
	n := 0
	for n < len(f.waiting) && f.waiting[n].commit <= all {
		n++
	}
	safe := f.waiting[:n:n]
	f.waiting = f.waiting[n:]
	return safe
}

// settled waits until everything that is visible now is durable.
func (f *flusher) settled(ctx context.Context) error {
	answer := make(chan error, 1)
	f.then(func(err error) { answer <- err })
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// fault returns what prevents further work: after a failed sync the content of the disk is unknown, regardless of later syncs.
func (f *flusher) fault() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.broken == nil {
		return nil
	}
	return &store.Fault{Kind: store.Unavailable, Err: fmt.Errorf("the file must be opened again: %w", f.broken)}
}

// writeAhead is the write-ahead log of a file.
type writeAhead struct {
	path string
	file *os.File // nil before the first sync
}

// sync makes the log durable and, the first time, its name too.
func (w *writeAhead) sync() error {
	if w.file == nil {
		file, err := os.OpenFile(w.path, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		if err := syncDir(filepath.Dir(w.path)); err != nil {
			return errors.Join(err, file.Close())
		}
		w.file = file
	}
	return syncData(w.file)
}

func (w *writeAhead) close() error {
	if w.file == nil {
		return nil
	}
	return w.file.Close()
}
