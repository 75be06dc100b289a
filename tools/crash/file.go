package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/flowfabric/flowfabric/tools/crash/lossyfs"
)

// lossyFile is a SQLite store on a disk that loses power.
type lossyFile struct {
	run     *run
	disk    *lossyfs.Disk
	mounted *lossyfs.Mounted // nil: file systems cannot be mounted here; the file is on an ordinary one, and the power stays on
	at      string
}

// openFile mounts the disk.
func openFile(r *run) (*lossyFile, error) {
	f := &lossyFile{run: r, at: filepath.Join(r.dir, "sqlite")}
	if err := os.Mkdir(f.at, 0o700); err != nil {
		return nil, err
	}
	if why := lossyfs.Unavailable(); why != "" {
		r.say("the power will not be cut: %s", why)
		return f, nil
	}
	f.disk = lossyfs.NewDisk()
	return f, f.mount()
}

func (f *lossyFile) mount() (err error) {
	f.mounted, err = f.disk.Mount(f.at)
	return err
}

// url is the address of the store.
func (f *lossyFile) url() string { return "sqlite:" + filepath.Join(f.at, "app.db") }

// cut ends the server and the power: what was not synced is lost in part or whole. The server is not started again here. Its lock must be held.
func (f *lossyFile) cut(s *server, random *rand.Rand) error {
	if err := s.process.kill(); err != nil {
		return err
	}
	if err := f.mounted.Unmount(); err != nil {
		return err
	}
	loss := f.disk.CutPower(random)
	f.run.add("unsynced writes lost", int64(loss.Dropped))
	f.run.add("unsynced writes torn", int64(loss.Torn))
	f.run.add("unsynced writes kept", int64(loss.Kept))
	f.run.add("unsynced names lost", int64(loss.Names))
	return f.mount()
}

// hurt makes the disk faulty for a time.
func (f *lossyFile) hurt(ctx context.Context, fault lossyfs.Fault, length time.Duration) {
	f.disk.Set(fault)
	pause(ctx, length)
	f.disk.Set(lossyfs.Sound)
}

func (f *lossyFile) close() error {
	if f.mounted == nil {
		return nil
	}
	if err := f.mounted.Unmount(); err != nil {
		return fmt.Errorf("unmounting the store: %w", err)
	}
	f.mounted = nil
	return nil
}
