package pgtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Server is a private Postgres. It ends with the process that started it, however that ends, and leaves nothing behind.
type Server struct {
	directory string
	keeper    *exec.Cmd
	leash     io.WriteCloser // the keeper's standard input: the server lives as long as it is open
	bin       string
	owner     *syscall.Credential
}

// keep runs the server and waits for the end of its input, which comes with the end of the process that holds the other side,
// even if that was killed. Then it ends the server at once and removes everything. The line "mark" puts the copy that Mark has made in place
// of the server's files; the line "again" starts a server that has ended.
const keep = `start() { "$1" -D "$2" >>"$2.log" 2>&1 & server=$!; }
end() { kill -QUIT $server 2>/dev/null; wait $server; }
start "$1" "$2"
while read -r line; do
	if [ "$line" = mark ]; then
		end
		rm -rf "$2" && mv "$2.mark" "$2"
	else
		wait $server
	fi
	start "$1" "$2"
done
end
cd / && rm -rf "$(dirname "$2")"`

// Start makes and starts a server for tests, with these settings on top of Postgres's defaults: no TCP, fsync and synchronous_commit on.
// It keeps its files in memory where there is enough of it, because each database is some hundred files, and most file systems spend more
// time on making and removing those than Postgres spends on the tests.
func Start(ctx context.Context, settings map[string]string) (*Server, error) {
	return start(ctx, memory(), settings)
}

// StartOnDisk is Start with files that outlast the power, for measuring: what is written is waited for.
func StartOnDisk(ctx context.Context) (*Server, error) { return start(ctx, "", nil) }

// StartIn is Start with files below a directory, which must be accessible for the user that the server runs as.
func StartIn(ctx context.Context, directory string, settings map[string]string) (*Server, error) {
	return start(ctx, directory, settings)
}

// start makes a server in a directory of its own below parent; "": where temporary files are.
func start(ctx context.Context, parent string, settings map[string]string) (*Server, error) {
	bin, err := binaries(ctx)
	if err != nil {
		return nil, err
	}
	owner, err := ownerOf()
	if err != nil {
		return nil, err
	}
	directory, err := os.MkdirTemp(parent, "ffpg")
	if err != nil {
		return nil, err
	}
	s := &Server{directory: directory, bin: bin, owner: owner}
	if err := s.launch(ctx, settings); err != nil {
		log, _ := os.ReadFile(s.data() + ".log")
		s.Stop()
		_ = os.RemoveAll(directory)
		return nil, fmt.Errorf("starting postgres: %w\n%s", err, log)
	}
	return s, nil
}

// enough is the memory that a server may fill: its log up to max_wal_size, and the databases of the tests under way.
const enough = 6 << 30

// memory is a directory in memory with enough room; "": there is none.
func memory() string {
	const directory = "/dev/shm"
	var free syscall.Statfs_t
	if err := syscall.Statfs(directory, &free); err != nil || free.Bavail*uint64(free.Bsize) < enough {
		return ""
	}
	return directory
}

// Socket is the directory of the server's socket.
func (s *Server) Socket() string { return s.directory }

// URL is the address of the database that every server has, for a superuser.
func (s *Server) URL() string { return URL(s.directory, adminRole, "postgres") }

// Stop ends the server and removes its directory. It may be called twice.
func (s *Server) Stop() {
	if s.leash == nil {
		return
	}
	_ = s.leash.Close()
	s.leash = nil
	_ = s.keeper.Wait()
}

// Data is the directory of the server's files. It holds postmaster.pid while the server runs.
func (s *Server) Data() string { return s.data() }

// Again starts the server after all of its processes have ended, as after a crash, and waits until it has recovered.
func (s *Server) Again(ctx context.Context) error {
	if _, err := io.WriteString(s.leash, "again\n"); err != nil {
		return err
	}
	return s.welcome(ctx, "select 1")
}

func (s *Server) data() string { return filepath.Join(s.directory, "data") }

func (s *Server) launch(ctx context.Context, settings map[string]string) error {
	if err := s.own(s.directory); err != nil {
		return err
	}
	if err := s.initialize(ctx); err != nil {
		return err
	}
	if err := s.configure(settings); err != nil {
		return err
	}
	//nolint:noctx // it lives until its leash is let go
	s.keeper = exec.Command("/bin/sh", "-c", keep, "sh", filepath.Join(s.bin, "postgres"), s.data())
	// A group of its own, so that an interrupt from the keyboard reaches the tests and not the server under them.
	s.keeper.Dir, s.keeper.SysProcAttr = s.directory, &syscall.SysProcAttr{Credential: s.owner, Setpgid: true}
	leash, err := s.keeper.StdinPipe()
	if err != nil {
		return err
	}
	if err := s.keeper.Start(); err != nil {
		return err
	}
	s.leash = leash
	return s.welcome(ctx, "create role "+ordinaryRole+" login")
}

// initialize makes the files of the server. Where another one serves the run they are a copy of its first files: initdb costs twenty times as
// much.
func (s *Server) initialize(ctx context.Context) error {
	first := "first" + strings.ReplaceAll(s.bin, "/", "-") // another Postgres may not read them
	if socket := os.Getenv(Variable); socket != "" {
		if source, err := filepath.EvalSymlinks(filepath.Join(socket, first)); err == nil {
			return errors.Join(s.copyTree(source, s.data()), os.Symlink(source, filepath.Join(s.directory, first)))
		}
	}
	if err := s.tool(ctx, "initdb", "-D", s.data(), "-U", adminRole, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"); err != nil {
		return err
	}
	return s.copyTree(s.data(), filepath.Join(s.directory, first))
}

// tool runs a program of Postgres.
func (s *Server) tool(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, name), args...)
	cmd.Dir, cmd.SysProcAttr = s.directory, &syscall.SysProcAttr{Credential: s.owner}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, out)
	}
	return nil
}

// configure appends settings to the server's configuration.
func (s *Server) configure(settings map[string]string) error {
	lines := []string{
		"listen_addresses = ''",
		"unix_socket_directories = '" + s.directory + "'",
		"max_connections = 300",
		"shared_buffers = 256MB",
		"max_wal_size = 2GB",
		"log_min_messages = fatal",
	}
	for name, value := range settings {
		lines = append(lines, name+" = '"+value+"'")
	}
	file, err := os.OpenFile(filepath.Join(s.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString(strings.Join(lines, "\n") + "\n")
	return errors.Join(err, file.Close())
}

// welcome waits until the server accepts commands.
func (s *Server) welcome(ctx context.Context, sql string) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := execute(ctx, s.URL(), sql)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("it does not answer: %w", err)
		case <-tick.C:
		}
	}
}

// ownerOf is whom the server runs as when we are root, which Postgres refuses: the user postgres, else the unprivileged user of the system. Nil: ourselves.
func ownerOf() (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	account, err := user.Lookup("postgres")
	if err != nil {
		if account, err = user.Lookup("nobody"); err != nil {
			return nil, err
		}
	}
	uid, err := strconv.ParseUint(account.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(account.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, err
}
