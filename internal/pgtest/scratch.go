package pgtest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// clearAway waits for the end of its input, which comes with the end of the process that holds the other side, and removes a directory.
const clearAway = `while read -r _; do :; done
rm -rf "$1"`

// Scratch makes a directory for the temporary files of tests, in memory: a durable store that is opened there waits for no disk. It is
// removed when end is called, or the process ends. "": there is not enough memory, or programs cannot be run from there.
func Scratch() (directory string, end func(), err error) {
	parent := memory()
	if parent == "" {
		return "", func() {}, nil
	}
	if directory, err = os.MkdirTemp(parent, "fftmp"); err != nil {
		return "", nil, err
	}
	if err := os.Chmod(directory, 0o711); err != nil { // servers of another user open their own files in it
		return "", nil, errors.Join(err, os.RemoveAll(directory))
	}
	if !runsPrograms(directory) {
		return "", func() {}, os.RemoveAll(directory)
	}
	//nolint:noctx // it lives until its leash is let go
	keeper := exec.Command("/bin/sh", "-c", clearAway, "sh", directory)
	keeper.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt from the keyboard does not reach it
	leash, err := keeper.StdinPipe()
	if err == nil {
		err = keeper.Start()
	}
	if err != nil {
		_ = os.RemoveAll(directory)
		return "", nil, err
	}
	return directory, func() {
		_ = leash.Close()
		_ = keeper.Wait()
	}, nil
}

// runsPrograms reports whether a program in the directory can be run: many a container forbids it for memory.
func runsPrograms(directory string) bool {
	program := filepath.Join(directory, "program")
	defer func() { _ = os.Remove(program) }()
	return os.WriteFile(program, []byte("#!/bin/sh\n"), 0o700) == nil && exec.Command(program).Run() == nil //nolint:noctx // ends at once
}
