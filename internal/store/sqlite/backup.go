package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Backup writes a consistent copy of the whole file to path, which must not exist, while the store is in use. The copy's event log gets an identity
// of its own: from here on the two diverge, and a cursor of one is not valid in the other (E32). While it runs, the write-ahead log cannot be
// reset.
func (s *Store) Backup(ctx context.Context, path string, progress func(done, total int)) error {
	if err := ctx.Err(); err != nil {
		return unavailable(err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		return base.Invalid("path", "%s is there already", path)
	}
	partial := path + ".partial"
	if err := s.writeCopy(ctx, partial, path, progress); err != nil {
		return errors.Join(fault(err), os.RemoveAll(partial))
	}
	return nil
}

// writeCopy gives the copy its name once it is complete and durable.
func (s *Store) writeCopy(ctx context.Context, partial, path string, progress func(done, total int)) error {
	for _, step := range [...]func() error{
		func() error { return os.RemoveAll(partial) },
		func() error { return s.copyTo(ctx, partial, progress) },
		func() error { return s.settled(ctx) }, // the copy must not contain anything that the original may lose
		func() error { return s.makeOwn(partial) },
		func() error { return syncFile(partial) },
		func() error { return os.Rename(partial, path) },
		func() error { return syncDir(filepath.Dir(path)) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// copyTo writes the copy on a connection of its own, so that no reader connection is occupied.
func (s *Store) copyTo(ctx context.Context, path string, progress func(done, total int)) error {
	c, err := connect(s.path, s.statements)
	if err != nil {
		return err
	}
	var total, pageSize int64
	err = c.each("file pages", func(r row) error { total, pageSize = r.Int(0)-r.Int(1), r.Int(2); return nil })
	if err != nil {
		return errors.Join(err, c.close())
	}
	defer watchFile(path, progress, total, pageSize)()
	makePrivate(path)
	err = c.search(ctx, s.statements["copy into"], func(row) error { return nil }, []any{path})
	return errors.Join(err, c.close())
}

// lookAtCopy is the interval at which the size of a growing copy is reported.
const lookAtCopy = 100 * time.Millisecond

// watchFile reports the growth of a file until the returned function is called: SQLite itself does not report it.
func watchFile(path string, progress func(done, total int), total, pageSize int64) (stop func()) {
	if progress == nil {
		return func() {}
	}
	look := func() {
		if info, err := os.Stat(path); err == nil {
			progress(int(min(info.Size()/pageSize, total)), int(total))
		}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(lookAtCopy)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				look()
			case <-done:
				look()
				return
			}
		}
	}()
	return func() { close(done); <-ended }
}

// makeOwn gives the copy its own log identity.
func (s *Store) makeOwn(path string) error {
	c, err := connect(path, s.statements, "journal_mode = delete", synced)
	if err != nil {
		return err
	}
	id := mint(s.now())
	return errors.Join(c.run("set log id", id[:]), c.close())
}

func syncFile(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}
