// Command pgcluster runs a command with one private Postgres for all test binaries that it starts:
//
//	go run ./internal/pgtest/cmd/pgcluster go test ./...
//
// The server ends with the command. Temporary files of the tests are in memory where there is enough of it. With -version the Postgres of that release is fetched with npm, and used for every server that the tests start:
//
//	go run ./internal/pgtest/cmd/pgcluster -version 14.23.0-beta.17 go test ./internal/store/postgres
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"

	"github.com/flowfabric/flowfabric/internal/pgtest"
)

func main() {
	version := flag.String("version", "", "release of Postgres to fetch, as npm names it; empty: the newest on this machine")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: pgcluster [-version VERSION] COMMAND [ARGUMENT...]")
		os.Exit(2)
	}
	code, err := run(*version, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "pgcluster:", err)
	}
	os.Exit(code)
}

func run(version string, arguments []string) (int, error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if version != "" {
		bin, remove, err := pgtest.Fetch(ctx, version)
		if err != nil {
			return 1, err
		}
		defer remove()
		if err := os.Setenv(pgtest.BinVariable, bin); err != nil { // for this server and for those of the tests
			return 1, err
		}
	}
	server, err := pgtest.Start(ctx, nil)
	if err != nil {
		return 1, err
	}
	defer server.Stop()
	environment, end, err := inMemory()
	if err != nil {
		return 1, err
	}
	defer end()
	command := exec.CommandContext(ctx, arguments[0], arguments[1:]...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	command.Env = slices.Concat(environment, []string{pgtest.Variable + "=" + server.Socket()})
	var exit *exec.ExitError
	switch err := command.Run(); {
	case err == nil:
		return 0, nil
	case errors.As(err, &exit):
		return exit.ExitCode(), nil
	default:
		return 1, err
	}
}

// inMemory is the environment of a command whose temporary files are in memory, except for those of the compiler, which are many and large.
func inMemory() (environment []string, end func(), err error) {
	scratch, end, err := pgtest.Scratch()
	environment = os.Environ()
	if err != nil || scratch == "" {
		return environment, end, err
	}
	if os.Getenv("GOTMPDIR") == "" {
		environment = append(environment, "GOTMPDIR="+os.TempDir())
	}
	return append(environment, "TMPDIR="+scratch), end, nil
}
