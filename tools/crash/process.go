package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"
)

// nonceVariable marks the processes of a run in their environment.
const nonceVariable = "FF_CRASH_NONCE"

// process is a child of this one that is started, killed and frozen again and again.
type process struct {
	name  string
	nonce string
	log   string // file of its output
	cmd   *exec.Cmd
	ended chan struct{}
	err   error // of its end; valid once ended is closed
}

// start starts a program, with its output appended to a file of its name.
func start(dir, nonce, name, program string, args, environment []string) (*process, error) {
	p := &process{name: name, nonce: nonce, log: filepath.Join(dir, name+".log"), ended: make(chan struct{})}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	p.cmd = exec.Command(program, args...) //nolint:noctx // it lives until it is killed
	p.cmd.Env = append([]string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), nonceVariable + "=" + nonce}, environment...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	// A group of its own: an interrupt from the keyboard reaches this process only. The kernel ends it with this process.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	p.awaitEnvironment()
	return p, nil
}

// awaitEnvironment waits until the kernel shows the environment of a process that was just started. A program counts as started a moment before its
// environment is set up: until then the file is empty, and the process would not be recognized as one of this run.
func (p *process) awaitEnvironment() {
	for !p.over() {
		if environment, err := p.environment(); err != nil || len(environment) > 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func (p *process) environment() ([]byte, error) {
	return os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.cmd.Process.Pid))
}

// over reports whether the process has ended.
func (p *process) over() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// ours reports whether the process is the one that was started: the environment of its id has the nonce of the run.
func (p *process) ours() error {
	if p.over() {
		return fmt.Errorf("%s has ended", p.name)
	}
	environment, err := p.environment()
	if err != nil {
		return err
	}
	for variable := range bytes.SplitSeq(environment, []byte{0}) {
		if string(variable) == nonceVariable+"="+p.nonce {
			return nil
		}
	}
	return fmt.Errorf("the process %d is not %s of this run", p.cmd.Process.Pid, p.name)
}

// signal sends a signal after a check of the identity.
func (p *process) signal(s syscall.Signal) error {
	if err := p.ours(); err != nil {
		return err
	}
	return p.cmd.Process.Signal(s)
}

// kill ends the process without a warning and waits for its end.
func (p *process) kill() error {
	if p.over() {
		return nil
	}
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.ended
	return nil
}

// freeze stops the process for a time. It then continues where it was, as after a long pause of its machine.
func (p *process) freeze(ctx context.Context, d time.Duration) error {
	if err := p.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	pause(ctx, d)
	return p.signal(syscall.SIGCONT)
}

// pause waits, and returns false if ctx ends before.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// server is one server at a stable address, although its process changes.
type server struct {
	name    string
	run     *run
	ways    []*way // of clients and workers to it
	store   string
	mu      sync.Mutex // held while the server is being hurt or started
	process *process
	starts  int
}

// readyAt is what a server writes when it is ready.
var readyAt = regexp.MustCompile(`"msg":"ready".*"address":"http://([0-9.:]+)"`)

// boot starts the server and waits until it is ready. While its store is away the server waits for it, and may give up and end: then it is
// started again, as a service manager does.
func (s *server) boot(ctx context.Context) error {
	for try := 0; ; try++ {
		ready, err := s.try(ctx)
		if err != nil || ready {
			return err
		}
		if try >= bootTries {
			return fmt.Errorf("%s does not start; its log is %s", s.name, s.process.log)
		}
		pause(ctx, time.Second)
	}
}

// bootTries bounds how often a server is started in vain.
const bootTries = 60

func (s *server) try(ctx context.Context) (ready bool, err error) {
	s.starts++
	name := fmt.Sprintf("%s-%d", s.name, s.starts)
	s.process, err = start(s.run.dir, s.run.nonce, name, s.run.program, []string{
		"serve", "--store", s.store, "--listen", "127.0.0.1:0", "--log-format", "json", "--store-timeout", "10s", "--lease-ttl", leaseTTL.String(),
	}, []string{"FF_BOOTSTRAP_ADMIN_KEY=" + s.run.key})
	if err != nil {
		return false, err
	}
	for !s.process.over() {
		text, err := os.ReadFile(s.process.log)
		if err != nil {
			return false, err
		}
		if at := readyAt.FindSubmatch(text); at != nil {
			for _, w := range s.ways {
				w.Forward("tcp", string(at[1]))
			}
			return true, nil
		}
		if !pause(ctx, 20*time.Millisecond) {
			return false, ctx.Err()
		}
	}
	s.run.count("server ended by itself")
	return false, nil
}

// panics returns what the servers and workers of a run have written about panics, which the run reports as findings.
func panics(dir string) ([]string, error) {
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil {
		return nil, err
	}
	var found []string
	for _, log := range logs {
		text, err := os.ReadFile(log)
		if err != nil {
			return nil, err
		}
		for _, sign := range []string{"panic: ", "fatal error: ", "DATA RACE", `"msg":"flowfabric: a handler panicked"`} {
			if at := strings.Index(string(text), sign); at >= 0 {
				found = append(found, filepath.Base(log)+": "+string(text[at:min(len(text), at+2000)]))
				break
			}
		}
	}
	return found, nil
}

// build compiles the flowfabric program into a directory.
func build(ctx context.Context, source, dir string) (string, error) {
	program := filepath.Join(dir, "flowfabric")
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", program, "./cmd/flowfabric")
	cmd.Dir = source
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building flowfabric in %s: %w\n%s", source, err, out)
	}
	return program, nil
}

// errNotOurs means that a fault was not applied because its target could not be identified at that moment.
var errNotOurs = errors.New("the target is not there")
