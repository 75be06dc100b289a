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

// flusher syncs the write-ahead log while the next transaction runs already: a commit writes its pages and lets go of the one connection
// that writes, and whoever waits for it is told when they have reached the disk. All commits that were written when a sync begins share
// it. The log is read from its beginning after a loss of power, so that what is safe makes safe all that was written before.
//
// Transactions that follow see what is not safe yet, and are lost together with it. Nobody outside does: answers wait, and so do reads.
type flusher struct {
	sync func() error

	mu      sync.Mutex
	begun   int64     // commits that must not be lost: others may see them from now on
	written int64     // how many of them are in the log: one less while a commit is under way
	safe    int64     // how many of them are synced
	broken  error     // a sync failed: what the disk has is not known any more
	waiting []waiting // in order
	running bool
	idle    sync.WaitGroup
	kick    chan struct{} // starts the goroutine of serve; nil: there is none
	served  sync.WaitGroup
}

// waiting is whoever waits for a commit.
type waiting struct {
	commit int64
	tell   func(error)
}

// serve starts the goroutine that syncs, until end. It belongs to whoever opens the store: one that was started for a commit or a read would
// go on to answer others when that caller is gone, and a test that waits until all goroutines of an engine stand still would not know it.
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

// end waits for the syncs under way and ends the goroutine of serve.
func (f *flusher) end() {
	f.idle.Wait()
	f.stop()
	f.served.Wait()
}

// stop lets the goroutine of serve end when it has nothing to do. Whoever comes later starts one of its own.
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

// wrote says that the commit is in the log, or that it came to nothing, and calls tell once it is safe, from another goroutine. Nil:
// nobody waits for it.
func (f *flusher) wrote(tell func(error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.written = f.begun
	if tell != nil {
		f.waiting = append(f.waiting, waiting{f.written, tell})
	}
	f.start()
}

// then calls tell once everything that can be seen now is safe: at once if it is.
func (f *flusher) then(tell func(error)) {
	f.mu.Lock()
	if f.safe != f.begun {
		defer f.mu.Unlock()
		f.waiting = append(f.waiting, waiting{f.begun, tell})
		f.start()
		return
	}
	f.mu.Unlock()
	tell(nil)
}

// start syncs if somebody waits for something that is in the log. The lock is held.
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
	f.kick <- struct{}{} // there is room: a run that has ended has taken its own
}

func (f *flusher) worthwhile() bool { return len(f.waiting) > 0 && f.waiting[0].commit <= f.written }

// run syncs for as long as that is worthwhile.
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
			w.tell(err)
		}
	}
}

// reached takes a sync of so many commits into account, and lists who waited for it.
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
	told := f.waiting[:n:n]
	f.waiting = f.waiting[n:]
	return told
}

// settled waits until everything that can be seen now is safe.
func (f *flusher) settled(ctx context.Context) error {
	told := make(chan error, 1)
	f.then(func(err error) { told <- err })
	select {
	case err := <-told:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// fault is what keeps the store from going on: after a sync that failed nobody knows what the disk has, whatever later ones say.
func (f *flusher) fault() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.broken == nil {
		return nil
	}
	return &store.Fault{Kind: store.Unavailable, Err: fmt.Errorf("the file must be opened again: %w", f.broken)}
}

// writeAhead is the log of a file.
type writeAhead struct {
	path string
	file *os.File // nil before the first sync
}

// sync makes the log safe, and its name with the first time.
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
