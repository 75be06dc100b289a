//go:build unix

package program

import (
	"os/exec"
	"syscall"
)

// apart keeps a Ctrl-C on the terminal from the program: the worker decides when it ends.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// tell sends a signal to the program and everything that it started.
func tell(cmd *exec.Cmd, sig syscall.Signal) error { return syscall.Kill(-cmd.Process.Pid, sig) }
