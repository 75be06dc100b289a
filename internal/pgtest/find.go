package pgtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/flowfabric/flowfabric/internal/aptget"
)

// oldest is the first major version that FlowFabric supports.
const oldest = 14

// BinVariable names the environment variable that chooses the Postgres of all servers of a run: the directory of its programs.
const BinVariable = "FLOWFABRIC_TEST_POSTGRES_BIN"

// binaries is the directory that BinVariable names, else that of the newest Postgres on this machine; it installs one where apt-get can.
func binaries(ctx context.Context) (string, error) {
	if chosen := os.Getenv(BinVariable); chosen != "" {
		if version := versionOf(ctx, chosen); version < oldest {
			return "", fmt.Errorf("%s=%s has no PostgreSQL %d or newer", BinVariable, chosen, oldest)
		}
		return chosen, nil
	}
	if bin, found := newest(ctx); found {
		return bin, nil
	}
	if err := aptget.Install(ctx, "postgresql"); err != nil {
		return "", fmt.Errorf("no PostgreSQL %d or newer is here: %w", oldest, err)
	}
	if bin, found := newest(ctx); found {
		return bin, nil
	}
	return "", fmt.Errorf("no PostgreSQL %d or newer is here", oldest)
}

func newest(ctx context.Context) (string, bool) {
	candidates, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	if out, err := exec.CommandContext(ctx, "pg_config", "--bindir").Output(); err == nil {
		candidates = append(candidates, strings.TrimSpace(string(out)))
	}
	if path, err := exec.LookPath("postgres"); err == nil {
		candidates = append(candidates, filepath.Dir(path))
	}
	best, bestVersion := "", oldest-1
	for _, bin := range candidates {
		if version := versionOf(ctx, bin); version > bestVersion {
			best, bestVersion = bin, version
		}
	}
	return best, best != ""
}

// versionOf is the major version of the server in a directory, 0 if there is none that can make a cluster.
func versionOf(ctx context.Context, bin string) int {
	if _, err := os.Stat(filepath.Join(bin, "initdb")); err != nil {
		return 0
	}
	out, err := exec.CommandContext(ctx, filepath.Join(bin, "postgres"), "--version").Output()
	if err != nil {
		return 0
	}
	// postgres (PostgreSQL) 15.8 (Debian 15.8-0+deb12u1)
	_, rest, _ := strings.Cut(string(out), ") ")
	digits := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	if digits < 0 {
		return 0
	}
	version, _ := strconv.Atoi(rest[:digits])
	return version
}
