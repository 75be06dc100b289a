package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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
	d.run.hurts(killPostgres)
	if err := gone(context.WithoutCancel(ctx), processes); err != nil {
		return err
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
	d.run.hurts(freezePostgres)
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

// again starts the server whose processes have ended, and once more if it ends while it starts.
func (d *database) again(ctx context.Context) error {
	var err error
	for deadline := time.Now().Add(recovery); ctx.Err() == nil && time.Now().Before(deadline); pause(ctx, 100*time.Millisecond) {
		if pid, noFile := d.pid(); noFile == nil && alive(pid) {
			if _, err = d.postmaster(ctx); err == nil {
				return nil
			}
			continue
		}
		starting, cancel := context.WithTimeout(ctx, startLimit)
		err = d.server.Again(starting)
		cancel()
		if err == nil {
			return nil
		}
	}
	log, _ := os.ReadFile(d.server.Data() + ".log")
	return fmt.Errorf("postgres does not start again: %w\n%s", err, log[max(0, len(log)-4000):])
}

// startLimit is how long a start that fails may take to be noticed.
const startLimit = 15 * time.Second

// gone waits until processes that were killed have ended. Until then they hold the shared memory of the server.
func gone(ctx context.Context, processes []int) error {
	for deadline := time.Now().Add(recovery); ; pause(ctx, 10*time.Millisecond) {
		if !slices.ContainsFunc(processes, alive) {
			return nil
		}
		if time.Now().After(deadline) {
			return errors.New("killed processes of Postgres do not end")
		}
	}
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
	err = occupy(file)
	if err == nil {
		d.run.hurts(fullDisk)
		pause(ctx, length)
	}
	err = errors.Join(err, file.Close(), os.Remove(ballast))
	if err != nil {
		return err
	}
	return d.ensure(ctx)
}

// occupy takes the room that is free on the disk of a file. What Postgres has written meanwhile is not free any more: then it tries with less.
func occupy(file *os.File) error {
	const less = 1 << 20
	var free unix.Statfs_t
	if err := unix.Fstatfs(int(file.Fd()), &free); err != nil {
		return err
	}
	for size := int64(free.Bavail) * free.Bsize; size > 0; size -= less {
		if err := unix.Fallocate(int(file.Fd()), 0, 0, size); !errors.Is(err, unix.ENOSPC) {
			return err
		}
	}
	return nil
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

// unbalanced compares the tables with what the API has shown, once everything has ended: each execution is stored once, none is in a queue, and
// the lease history of each has all epochs from 1.
func (d *database) unbalanced(ctx context.Context, executions int) (problems []string, err error) {
	conn, err := pgx.Connect(ctx, d.admin())
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(ctx) }()
	var schema string
	if err := conn.QueryRow(ctx, "select schemaname from pg_tables where tablename = 'exec'").Scan(&schema); err != nil {
		return nil, err
	}
	if _, err := conn.Exec(ctx, "set search_path to "+pgx.Identifier{schema}.Sanitize()); err != nil {
		return nil, err
	}
	for _, check := range []struct {
		what, sql string
		want      int
	}{
		{"rows of executions", "select count(*) from exec", executions},
		{"rows in queues", "select count(*) from queue", 0},
		{"lease histories with gaps", "select count(*) from (select from lease group by id having min(epoch) <> 1 or max(epoch) <> count(*)) gaps", 0},
	} {
		var got int
		if err := conn.QueryRow(ctx, check.sql).Scan(&got); err != nil {
			return nil, fmt.Errorf("%s: %w", check.what, err)
		}
		if got != check.want {
			problems = append(problems, fmt.Sprintf("SQL: %d %s, want %d", got, check.what, check.want))
		}
	}
	return problems, nil
}

// admin is the address of the database of the run for a superuser, without a proxy.
func (d *database) admin() string { return pgtest.URL(d.server.Socket(), "postgres", "crash") }

// alive reports whether a process exists and has not ended.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	return len(fields) > 0 && fields[0] != "Z"
}
