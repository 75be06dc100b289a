package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/flowfabric/flowfabric/internal/aptget"
)

// PoolerName is the application_name of the sessions between a pooler and the server.
const PoolerName = "pooler"

// pooler is the configuration of a PgBouncer in transaction mode: the hardest for a client, which meets another server
// connection with every transaction.
const pooler = `[databases]
* = host=%s user=flowfabric connect_query='set application_name = ` + PoolerName + `'
[pgbouncer]
listen_addr =
listen_port = 6432
unix_socket_dir = %s
unix_socket_mode = 0777
auth_type = any
auth_file =
pool_mode = transaction
default_pool_size = 10
max_client_conn = 500
admin_users = flowfabric
logfile =
pidfile =
`

// Pooler starts Debian's PgBouncer in front of the server, until the test ends. It returns what turns the address of a
// database into one through the pooler.
func (c *Cluster) Pooler(tb testing.TB) func(url string) string {
	tb.Helper()
	c.ready(tb)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	socket, err := c.startPooler(ctx, tb)
	if err != nil {
		tb.Fatalf("pgtest: pgbouncer: %v", err)
	}
	return func(url string) string {
		config, err := pgx.ParseConfig(url)
		if err != nil {
			tb.Fatalf("pgtest: %v", err)
		}
		return fmt.Sprintf("postgres://%s@/%s?host=%s&port=6432&sslmode=disable", config.User, config.Database, socket)
	}
}

// startPooler runs a PgBouncer until the test ends and returns the directory of its socket. A socket needs no port that another process could take
// between the moment it is chosen and the moment PgBouncer listens.
func (c *Cluster) startPooler(ctx context.Context, tb testing.TB) (string, error) {
	binary, err := exec.LookPath("pgbouncer")
	if err != nil {
		binary = "/usr/sbin/pgbouncer"
		if _, err := os.Stat(binary); err != nil {
			if err := aptget.Install(ctx, "pgbouncer"); err != nil {
				return "", err
			}
		}
	}
	owner, err := ownerOf()
	if err != nil {
		return "", err
	}
	directory, err := os.MkdirTemp("", "ffbouncer")
	if err != nil {
		return "", err
	}
	tb.Cleanup(func() { _ = os.RemoveAll(directory) })
	config, log := filepath.Join(directory, "pgbouncer.ini"), filepath.Join(directory, "log")
	if owner != nil {
		if err := os.Chown(directory, int(owner.Uid), int(owner.Gid)); err != nil {
			return "", err
		}
	}
	if err := errors.Join(os.Chmod(directory, 0o755), os.WriteFile(config, fmt.Appendf(nil, pooler, c.socket, directory), 0o644)); err != nil {
		return "", err
	}
	output, err := os.Create(log)
	if err != nil {
		return "", err
	}
	//nolint:noctx // it lives until its leash is let go
	command := exec.Command("/bin/sh", "-c", `"$1" "$2" & server=$!; cat >/dev/null; kill $server; wait $server`, "sh", binary, config)
	command.Stdout, command.Stderr = output, output
	command.SysProcAttr = &syscall.SysProcAttr{Credential: owner, Setpgid: true}
	leash, err := command.StdinPipe()
	if err != nil {
		return "", err
	}
	if err := command.Start(); err != nil {
		return "", err
	}
	tb.Cleanup(func() {
		_ = leash.Close()
		_ = command.Wait()
		_ = output.Close()
	})
	if err := dial(ctx, filepath.Join(directory, ".s.PGSQL.6432")); err != nil {
		text, _ := os.ReadFile(log)
		return "", fmt.Errorf("%w\n%s", err, text)
	}
	return directory, nil
}

// dial waits until somebody listens.
func dial(ctx context.Context, socket string) error {
	var dialer net.Dialer
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := dialer.DialContext(ctx, "unix", socket)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}
