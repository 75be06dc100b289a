package lossyfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// Unavailable returns why file systems cannot be mounted here; "" if they can.
func Unavailable() string {
	if os.Geteuid() != 0 {
		return "mounting a file system takes root"
	}
	file, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		return "FUSE is not available: " + err.Error()
	}
	return errorText(file.Close())
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Mounted is a disk that programs see at a directory.
type Mounted struct {
	directory string
	server    *fuse.Server
}

// Mount shows the disk at an empty directory. This process must not use files below it: it would wait for itself.
func (d *Disk) Mount(directory string) (*Mounted, error) {
	long := time.Hour // nothing but the kernel changes the disk while it is mounted
	server, err := fs.Mount(directory, &node{disk: d, inode: d.root}, &fs.Options{
		MountOptions: fuse.MountOptions{DirectMountStrict: true, FsName: "lossyfs", Name: "lossyfs", MaxWrite: 1 << 20},
		EntryTimeout: &long, AttrTimeout: &long,
	})
	if err != nil {
		return nil, fmt.Errorf("mounting %s: %w", directory, err)
	}
	return &Mounted{directory, server}, nil
}

// unmountTries bounds how often Unmount tries while the kernel still closes files of processes that have ended.
const unmountTries = 100

// Unmount hides the disk. The programs that used it must have ended. What they had written without syncing is on the disk, as after a crash
// of programs, and is lost only by CutPower.
func (m *Mounted) Unmount() error {
	err := syscall.EBUSY
	for try := 0; try < unmountTries && errors.Is(err, syscall.EBUSY); try++ {
		if try > 0 {
			<-time.After(20 * time.Millisecond)
		}
		if failed := syscall.Unmount(m.directory, 0); failed == nil {
			m.server.Wait()
			return nil
		} else if !errors.As(failed, &err) {
			return failed
		}
	}
	// Programs that still use it get errors from now on.
	_ = syscall.Unmount(m.directory, syscall.MNT_FORCE|syscall.MNT_DETACH)
	return fmt.Errorf("unmounting %s: %w", m.directory, err)
}

// node shows an inode to the kernel.
type node struct {
	fs.Inode
	disk  *Disk
	inode *inode
}

// The calls of the kernel that a node answers.
var (
	_ fs.NodeLookuper  = (*node)(nil)
	_ fs.NodeReaddirer = (*node)(nil)
	_ fs.NodeGetattrer = (*node)(nil)
	_ fs.NodeSetattrer = (*node)(nil)
	_ fs.NodeOpener    = (*node)(nil)
	_ fs.NodeCreater   = (*node)(nil)
	_ fs.NodeMkdirer   = (*node)(nil)
	_ fs.NodeReader    = (*node)(nil)
	_ fs.NodeWriter    = (*node)(nil)
	_ fs.NodeFsyncer   = (*node)(nil)
	_ fs.NodeUnlinker  = (*node)(nil)
	_ fs.NodeRmdirer   = (*node)(nil)
	_ fs.NodeRenamer   = (*node)(nil)
	_ fs.NodeStatfser  = (*node)(nil)
)

// shown is the node of an inode below this one.
func (n *node) shown(ctx context.Context, child *inode, out *fuse.EntryOut) *fs.Inode {
	child.attributes(&out.Attr)
	return n.NewInode(ctx, &node{disk: n.disk, inode: child}, fs.StableAttr{Mode: child.mode & syscall.S_IFMT, Ino: child.ino})
}

func (n *inode) attributes(out *fuse.Attr) {
	out.Ino, out.Mode, out.Size, out.Nlink = n.ino, n.mode, uint64(len(n.live)), 1
	out.Blocks, out.Blksize = (out.Size+sector-1)/sector, 4096
	out.SetTimes(nil, &n.modified, &n.modified)
}

// Lookup finds a name.
func (n *node) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	child := n.inode.names[name]
	if child == nil {
		return nil, syscall.ENOENT
	}
	return n.shown(ctx, child, out), 0
}

// Readdir lists the names.
func (n *node) Readdir(context.Context) (fs.DirStream, syscall.Errno) {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	entries := make([]fuse.DirEntry, 0, len(n.inode.names))
	for _, name := range sortedNames(n.inode.names) {
		child := n.inode.names[name]
		entries = append(entries, fuse.DirEntry{Name: name, Ino: child.ino, Mode: child.mode})
	}
	return fs.NewListDirStream(entries), 0
}

// Getattr reads the attributes.
func (n *node) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	n.inode.attributes(&out.Attr)
	return 0
}

// Setattr changes size and mode. Other attributes do not matter here and are accepted.
func (n *node) Setattr(ctx context.Context, f fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	if size, given := in.GetSize(); given {
		if errno := n.disk.resize(n.inode, int64(size)); errno != 0 {
			return errno
		}
	}
	if mode, given := in.GetMode(); given {
		n.disk.mu.Lock()
		n.inode.mode = n.inode.mode&syscall.S_IFMT | mode&0o7777
		n.disk.mu.Unlock()
	}
	return n.Getattr(ctx, f, out)
}

// Open opens a file without state of its own.
func (n *node) Open(_ context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	if flags&syscall.O_TRUNC != 0 {
		return nil, 0, n.disk.resize(n.inode, 0)
	}
	return nil, fuse.FOPEN_KEEP_CACHE, 0
}

// Create makes a file.
func (n *node) Create(ctx context.Context, name string, _, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	child, errno := n.make(ctx, name, syscall.S_IFREG|mode&0o7777, out)
	return child, nil, fuse.FOPEN_KEEP_CACHE, errno
}

// Mkdir makes a directory.
func (n *node) Mkdir(ctx context.Context, name string, mode uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	return n.make(ctx, name, syscall.S_IFDIR|mode&0o7777, out)
}

func (n *node) make(ctx context.Context, name string, mode uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	if n.disk.fault == Full {
		n.disk.stats.Failed++
		return nil, syscall.ENOSPC
	}
	if n.inode.names[name] != nil {
		return nil, syscall.EEXIST
	}
	child := n.disk.newInode(mode)
	n.inode.set(name, child)
	return n.shown(ctx, child, out), 0
}

// Read reads bytes.
func (n *node) Read(_ context.Context, _ fs.FileHandle, dest []byte, offset int64) (fuse.ReadResult, syscall.Errno) {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	if offset >= int64(len(n.inode.live)) {
		return fuse.ReadResultData(nil), 0
	}
	return fuse.ReadResultData(dest[:copy(dest, n.inode.live[offset:])]), 0
}

// Write writes bytes.
func (n *node) Write(_ context.Context, _ fs.FileHandle, data []byte, offset int64) (uint32, syscall.Errno) {
	if errno := n.disk.write(n.inode, offset, data); errno != 0 {
		return 0, errno
	}
	return uint32(len(data)), 0
}

// Fsync makes a file, or the names in a directory, durable.
func (n *node) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno {
	return n.disk.sync(n.inode)
}

// Unlink removes a file.
func (n *node) Unlink(_ context.Context, name string) syscall.Errno { return n.remove(name, false) }

// Rmdir removes an empty directory.
func (n *node) Rmdir(_ context.Context, name string) syscall.Errno { return n.remove(name, true) }

func (n *node) remove(name string, directory bool) syscall.Errno {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	child := n.inode.names[name]
	switch {
	case child == nil:
		return syscall.ENOENT
	case child.isDir() != directory:
		return syscall.EISDIR
	case len(child.names) > 0:
		return syscall.ENOTEMPTY
	}
	n.inode.set(name, nil)
	return 0
}

// Rename moves a name, and replaces what has the new one.
func (n *node) Rename(_ context.Context, name string, parent fs.InodeEmbedder, newName string, flags uint32) syscall.Errno {
	to, ours := parent.(*node)
	if flags != 0 || !ours {
		return syscall.EINVAL
	}
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	child := n.inode.names[name]
	if child == nil {
		return syscall.ENOENT
	}
	// One change of two names: a cut between them would leave both, as a file system without a journal does.
	to.inode.set(newName, child)
	n.inode.set(name, nil)
	return 0
}

// Statfs shows a disk with much room, or with none.
func (n *node) Statfs(_ context.Context, out *fuse.StatfsOut) syscall.Errno {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	out.Bsize, out.Frsize, out.NameLen = 4096, 4096, 255
	out.Blocks = 1 << 24
	if n.disk.fault != Full {
		out.Bfree, out.Bavail = 1<<23, 1<<23
	}
	return 0
}
