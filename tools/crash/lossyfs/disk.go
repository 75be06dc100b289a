// Package lossyfs is a file system in memory that loses what was not synced when its power is cut. Bytes of a file are durable once the file
// was synced, and the names in a directory once the directory was synced. Of what was not synced a cut keeps nothing, everything, or a drawn
// part: whole writes, torn ones that end at a sector, and of the changes of a directory the first ones.
//
// A Disk is the content; Mount shows it to programs by FUSE, which takes Linux, /dev/fuse and root. It knows nothing of the programs that use it.
package lossyfs

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"
)

// sector is what a disk writes whole: a torn write ends at a multiple of it.
const sector = 512

// Disk is the content of a file system: what programs see, and what would survive a cut.
type Disk struct {
	mu    sync.Mutex
	root  *inode
	last  uint64
	fault Fault
	stats Stats
}

// Fault is what a disk does wrong until it is set to another one.
type Fault int

// The faults.
const (
	Sound     Fault = iota
	Full            // writes that need room fail with ENOSPC
	Unsyncing       // syncs fail with EIO, and make nothing durable
)

// Stats counts what programs have done.
type Stats struct {
	Writes   int64 // writes of bytes
	Syncs    int64 // successful syncs of files
	DirSyncs int64 // successful syncs of directories
	Failed   int64 // operations that failed because of a fault
}

// Loss is what a cut has done to what was not synced.
type Loss struct {
	Kept, Torn, Dropped int // writes and changes of sizes
	Names               int // changes of directories that were lost
}

// NewDisk returns an empty disk.
func NewDisk() *Disk {
	d := &Disk{}
	d.root = d.newInode(syscall.S_IFDIR | 0o755)
	return d
}

// inode is a file or a directory.
type inode struct {
	ino      uint64
	mode     uint32
	modified time.Time

	live    []byte   // of a file: what programs see
	durable []byte   // what a cut leaves at least
	pending []change // what leads from durable to live, in order

	names   map[string]*inode // of a directory
	synced  map[string]*inode
	renames []rename
}

// change is a write, or a change of the size if data is nil.
type change struct {
	offset int64
	data   []byte
}

// rename is a change of one name in a directory; nil: the name is gone.
type rename struct {
	name string
	to   *inode
}

func (d *Disk) newInode(mode uint32) *inode {
	d.last++
	n := &inode{ino: d.last, mode: mode, modified: time.Now()}
	if n.isDir() {
		n.names, n.synced = map[string]*inode{}, map[string]*inode{}
	}
	return n
}

func (n *inode) isDir() bool { return n.mode&syscall.S_IFMT == syscall.S_IFDIR }

// Set makes the disk faulty, or sound again.
func (d *Disk) Set(f Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault = f
}

// Stats returns what programs have done.
func (d *Disk) Stats() Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stats
}

// apply makes a change to bytes.
func (c change) apply(to []byte) []byte {
	end := c.offset + int64(len(c.data))
	if c.data == nil {
		if c.offset <= int64(len(to)) {
			return to[:c.offset]
		}
		end = c.offset
	}
	if grow := end - int64(len(to)); grow > 0 {
		old := len(to)
		to = slices.Grow(to, int(grow))[:end]
		clear(to[old:])
	}
	copy(to[c.offset:], c.data)
	return to
}

// write changes the bytes of a file that programs see.
func (d *Disk) write(n *inode, offset int64, data []byte) syscall.Errno {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fault == Full && offset+int64(len(data)) > int64(len(n.live)) {
		d.stats.Failed++
		return syscall.ENOSPC
	}
	d.stats.Writes++
	d.change(n, change{offset, slices.Clone(data)})
	return 0
}

// resize changes the size of a file.
func (d *Disk) resize(n *inode, size int64) syscall.Errno {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fault == Full && size > int64(len(n.live)) {
		d.stats.Failed++
		return syscall.ENOSPC
	}
	if size != int64(len(n.live)) {
		d.change(n, change{offset: size})
	}
	return 0
}

func (d *Disk) change(n *inode, c change) {
	n.live = c.apply(n.live)
	n.pending = append(n.pending, c)
	n.modified = time.Now()
}

// sync makes a file or the names in a directory durable.
func (d *Disk) sync(n *inode) syscall.Errno {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fault == Unsyncing {
		d.stats.Failed++
		return syscall.EIO
	}
	if n.isDir() {
		d.stats.DirSyncs++
		n.settleNames(len(n.renames))
		return 0
	}
	d.stats.Syncs++
	for _, c := range n.pending {
		n.durable = c.apply(n.durable)
	}
	n.pending = nil
	return 0
}

// settleNames makes the first changes of a directory durable and forgets the others.
func (n *inode) settleNames(first int) {
	for _, r := range n.renames[:first] {
		if r.to == nil {
			delete(n.synced, r.name)
		} else {
			n.synced[r.name] = r.to
		}
	}
	n.renames = nil
}

// set changes a name in a directory; nil removes it. The lock must be held.
func (n *inode) set(name string, to *inode) {
	if to == nil {
		delete(n.names, name)
	} else {
		n.names[name] = to
	}
	n.renames = append(n.renames, rename{name, to})
	n.modified = time.Now()
}

// CutPower reduces the disk to what was synced and a part of the rest that random draws. No program may use it at this time: end them and
// unmount it before.
func (d *Disk) CutPower(random *rand.Rand) (loss Loss) {
	d.mu.Lock()
	defer d.mu.Unlock()
	// One cut in four keeps nothing that was not synced, one in four everything.
	draw := func() float64 { return random.Float64() }
	switch random.IntN(4) {
	case 0:
		draw = func() float64 { return 1 }
	case 1:
		draw = func() float64 { return 0 }
	}
	d.fault = Sound
	d.root.lose(draw, random, &loss, map[*inode]bool{})
	return loss
}

// lose does to a file or a tree what a cut does. A draw below a third keeps a write, one below a half tears it.
func (n *inode) lose(draw func() float64, random *rand.Rand, loss *Loss, seen map[*inode]bool) {
	if seen[n] {
		return
	}
	seen[n] = true
	if !n.isDir() {
		for _, c := range n.pending {
			if c, kept := c.survive(draw(), random, loss); kept {
				n.durable = c.apply(n.durable)
			}
		}
		n.pending, n.live = nil, slices.Clone(n.durable)
		return
	}
	kept := 0
	for kept < len(n.renames) && draw() < 0.5 {
		kept++
	}
	loss.Names += len(n.renames) - kept
	n.settleNames(kept)
	n.names = map[string]*inode{}
	for _, name := range sortedNames(n.synced) {
		n.names[name] = n.synced[name]
		n.synced[name].lose(draw, random, loss, seen)
	}
}

// survive returns what a cut keeps of a change that was not synced.
func (c change) survive(drawn float64, random *rand.Rand, loss *Loss) (change, bool) {
	switch sectors := len(c.data) / sector; {
	case drawn < 1./3:
		loss.Kept++
		return c, true
	case drawn < 1./2 && sectors > 1:
		loss.Torn++
		end := (c.offset/sector+1+int64(random.IntN(sectors)))*sector - c.offset
		return change{c.offset, c.data[:min(end, int64(len(c.data)))]}, true
	default:
		loss.Dropped++
		return change{}, false
	}
}

func sortedNames(names map[string]*inode) []string {
	sorted := make([]string, 0, len(names))
	for name := range names {
		sorted = append(sorted, name)
	}
	slices.Sort(sorted)
	return sorted
}

// Export writes what programs see into a directory.
func (d *Disk) Export(directory string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.root.export(directory)
}

func (n *inode) export(path string) error {
	if !n.isDir() {
		return os.WriteFile(path, n.live, os.FileMode(n.mode&0o777))
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	for _, name := range sortedNames(n.names) {
		if err := n.names[name].export(filepath.Join(path, name)); err != nil {
			return err
		}
	}
	return nil
}
