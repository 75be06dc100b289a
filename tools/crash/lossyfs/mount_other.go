//go:build !linux

package lossyfs

import "errors"

// Unavailable returns why file systems cannot be mounted here.
func Unavailable() string { return "file systems of our own are mounted on Linux only" }

// Mounted is a disk that programs see at a directory.
type Mounted struct{}

// Mount fails.
func (d *Disk) Mount(string) (*Mounted, error) { return nil, errors.New(Unavailable()) }

// Unmount does nothing.
func (m *Mounted) Unmount() error { return nil }
