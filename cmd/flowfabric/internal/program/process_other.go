//go:build !unix

package program

import (
	"os/exec"
	"syscall"
)

// apart does nothing where processes have no groups.
func apart(*exec.Cmd) {}

// send ends the program: there are no signals here.
func send(cmd *exec.Cmd, _ syscall.Signal) error { return cmd.Process.Kill() }
