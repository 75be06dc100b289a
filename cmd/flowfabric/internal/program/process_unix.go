//go:build unix

package program

import (
	"os/exec"
	"syscall"
)

// apart starts the program in its own process group, so that Ctrl-C on the terminal does not reach it: the worker decides when it
// ends.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// send sends a signal to the program and its children.
func send(cmd *exec.Cmd, sig syscall.Signal) error { return syscall.Kill(-cmd.Process.Pid, sig) }
