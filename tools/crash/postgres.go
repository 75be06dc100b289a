package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sys/unix"

	"github.com/flowfabric/flowfabric/internal/pgtest"
)

// database is the private Postgres of a run.
type database struct {
	run    *run
	server *pgtest.Server
	mount  string // of a small file system of its own; "": none, and the disk is never full
	mu     sync.Mutex
}

// diskSize is the size of the file system of Postgres.
const diskSize = "3g"

// startDatabase starts Postgres on a file system of its own where one can be mounted, and writes the nonce of the run into it.
func startDatabase(ctx context.Context, r *run) (*database, error) {
	d := &database{run: r}
	parent := r.dir
	if os.Geteuid() == 0 {
		d.mount = filepath.Join(r.dir, "postgres")
		if err := os.Mkdir(d.mount, 0o755); err != nil {
			return nil, err
		}
		if err := unix.Mount("tmpfs", d.mount, "tmpfs", 0, "mode=0755,size="+diskSize); err != nil {
			r.say("the disk of Postgres will not be full: tmpfs cannot be mounted: %v", err)
			d.mount = ""
		} else {
			parent = d.mount
		}
	}
	var err error
	d.server, err = pgtest.StartIn(ctx, parent, map[string]string{
		"max_wal_size": "512MB", "shared_buffers": "128MB", "max_connections": "100", "log_min_messages": "warning",
	})
	if err != nil {
		return nil, errors.Join(err, d.unmount())
	}
	if err := d.execute(ctx, "create table crash_nonce (nonce text)", "insert into crash_nonce values ('"+r.nonce+"')", "create database crash owner flowfabric"); err != nil {
		return nil, errors.Join(err, d.stop())
	}
	return d, nil
}

func (d *database) stop() error {
	d.server.Stop()
	return d.unmount()
}

func (d *database) unmount() error {
	if d.mount == "" {
		return nil
	}
	return unix.Unmount(d.mount, unix.MNT_DETACH)
}

func (d *database) execute(ctx context.Context, statements ...string) error {
	conn, err := pgx.Connect(ctx, d.server.URL())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

// socket is the path of the server's socket.
func (d *database) socket() string { return filepath.Join(d.server.Socket(), ".s.PGSQL.5432") }

// url is the address of the database of the run behind a proxy.
func (d *database) url(proxy string) string {
	return "postgres://flowfabric@" + proxy + "/crash?sslmode=disable&connect_timeout=5"
}

// postmaster returns the id of the server's first process after a check of its identity: the server at our socket has our directory and our
// nonce, and the process of the id works in that directory.
func (d *database) postmaster(ctx context.Context) (int, error) {
	asking, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	conn, err := pgx.Connect(asking, d.server.URL())
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errNotOurs, err)
	}
	defer func() { _ = conn.Close(asking) }()
	var directory, nonce string
	if err := conn.QueryRow(asking, "select current_setting('data_directory'), nonce from crash_nonce").Scan(&directory, &nonce); err != nil {
		return 0, fmt.Errorf("%w: %w", errNotOurs, err)
	}
	if directory != d.server.Data() || nonce != d.run.nonce {
		return 0, fmt.Errorf("the Postgres at %s is not that of this run: directory %s", d.server.Socket(), directory)
	}
	pid, err := d.pid()
	if err != nil {
		return 0, err
	}
	if at, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid)); err != nil || at != d.server.Data() {
		return 0, fmt.Errorf("the process %d does not work in %s but in %s: %w", pid, d.server.Data(), at, err)
	}
	return pid, nil
}

// pid reads the id of the first process; it fails while the server does not run.
func (d *database) pid() (int, error) {
	text, err := os.ReadFile(filepath.Join(d.server.Data(), "postmaster.pid"))
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errNotOurs, err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	return strconv.Atoi(first)
}

// tree stops the server's first process, so that it starts no others, and returns all processes of the server.
func tree(postmaster int) ([]int, error) {
	if err := syscall.Kill(postmaster, syscall.SIGSTOP); err != nil {
		return nil, err
	}
	processes, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	all := []int{postmaster}
	for _, entry := range processes {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue // it has ended
		}
		// 123 (name) S 45 ...: the parent follows the state
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(fields) > 1 && fields[1] == strconv.Itoa(postmaster) {
			all = append(all, pid)
		}
	}
	return all, nil
}

// kill ends all processes of the server at once, and starts it again.
func (d *database) kill(ctx context.Context, away time.Duration) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	postmaster, err := d.postmaster(ctx)
	if err != nil {
		return err
	}
	processes, err := tree(postmaster)
	if err != nil {
		return err
	}
	for _, pid := range processes {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
	pause(ctx, away)
	return d.again(ctx)
}

// freeze stops all processes of the server for a time.
func (d *database) freeze(ctx context.Context, length time.Duration) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	postmaster, err := d.postmaster(ctx)
	if err != nil {
		return err
	}
	processes, err := tree(postmaster)
	for _, pid := range processes {
		_ = syscall.Kill(pid, syscall.SIGSTOP)
	}
	pause(ctx, length)
	for _, pid := range processes {
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
	return err
}

// recovery bounds how long Postgres may take to start after a crash.
const recovery = 2 * time.Minute

// again starts the server whose processes have ended.
func (d *database) again(ctx context.Context) error {
	starting, cancel := context.WithTimeout(context.WithoutCancel(ctx), recovery)
	defer cancel()
	if err := d.server.Again(starting); err != nil {
		log, _ := os.ReadFile(d.server.Data() + ".log")
		return fmt.Errorf("postgres does not start again: %w\n%s", err, log[max(0, len(log)-4000):])
	}
	return nil
}

// fill leaves no room on the disk for a time. Postgres may end itself meanwhile: then it is started again.
func (d *database) fill(ctx context.Context, length time.Duration) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.postmaster(ctx); err != nil {
		return err
	}
	ballast := filepath.Join(d.mount, "ballast")
	file, err := os.Create(ballast)
	if err != nil {
		return err
	}
	var free unix.Statfs_t
	err = unix.Fstatfs(int(file.Fd()), &free)
	if err == nil {
		err = unix.Fallocate(int(file.Fd()), 0, 0, int64(free.Bavail)*free.Bsize)
	}
	if err == nil {
		pause(ctx, length)
	}
	err = errors.Join(err, file.Close(), os.Remove(ballast))
	if err != nil {
		return err
	}
	return d.ensure(ctx)
}

// ensure waits until the server answers, and starts it if its processes have ended.
func (d *database) ensure(ctx context.Context) error {
	for deadline := time.Now().Add(recovery); ; {
		_, err := d.postmaster(ctx)
		if err == nil {
			return nil
		}
		if pid, err := d.pid(); err != nil || !alive(pid) {
			return d.again(ctx)
		}
		if time.Now().After(deadline) || !pause(ctx, 200*time.Millisecond) {
			return fmt.Errorf("postgres does not recover: %w", err)
		}
	}
}

// alive reports whether a process exists and has not ended.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	return len(fields) > 0 && fields[0] != "Z"
}
