package scenario

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// server is a flowfabric server of our own, in a process of its own.
type server struct {
	cmd  *exec.Cmd
	url  string
	gone chan struct{} // closed when the process has ended
	why  error         // it ended; to be read once it is gone
}

// upWithin bounds the start of a server, stopWithin its end.
const (
	upWithin   = time.Minute
	stopWithin = 30 * time.Second
)

// startServer runs `flowfabric serve` on a store and waits until it says where it is.
func startServer(ctx context.Context, cfg Config, store, listen string) (*server, error) {
	if cfg.Program == "" {
		return nil, errors.New("there is no program to start a server with")
	}
	s := &server{cmd: child(ctx, cfg, "serve", "--listen", listen, "--log-format", "json", "--insecure-open"), gone: make(chan struct{})}
	s.cmd.Env = append(s.cmd.Env, "FF_STORE="+store) // command lines can be read by everybody on the host, and it may have a password
	log, err := s.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	ready := make(chan string, 1)
	go func() {
		last := follow(log, ready)
		s.why = fmt.Errorf("the server ended: %w", errors.Join(s.cmd.Wait(), errors.New(last)))
		close(s.gone)
	}()
	select {
	case s.url = <-ready:
		return s, nil
	case <-s.gone:
		return nil, s.why
	case <-time.After(upWithin):
		return nil, errors.Join(errors.New("the server does not start"), s.kill())
	}
}

// child is a process of the same program without settings from our surroundings.
func child(ctx context.Context, cfg Config, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, cfg.Program, args...)
	for _, line := range cfg.Environ {
		if !strings.HasPrefix(line, "FF_") {
			cmd.Env = append(cmd.Env, line)
		}
	}
	return cmd
}

// follow reads the log of a server, tells its address when it is ready, and returns the last line.
func follow(log io.Reader, ready chan<- string) (last string) {
	for lines := bufio.NewScanner(log); lines.Scan(); {
		last = lines.Text()
		var line struct{ Msg, Address string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "ready" && line.Address != "" {
			select {
			case ready <- line.Address:
			default:
			}
		}
	}
	return last
}

func (s *server) pid() int { return s.cmd.Process.Pid }

// kill ends the process at once, as a crash does.
func (s *server) kill() error {
	err := s.cmd.Process.Kill()
	<-s.gone
	return err
}

// stop lets the server end properly.
func (s *server) stop() error {
	select {
	case <-s.gone:
		return nil // by itself, or killed
	default:
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return s.kill()
	}
	select {
	case <-s.gone:
		return nil
	case <-time.After(stopWithin):
		return s.kill()
	}
}
