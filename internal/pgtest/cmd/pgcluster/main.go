// Command pgcluster runs a command with one private Postgres for all test binaries that it starts:
//
//	go run ./internal/pgtest/cmd/pgcluster go test ./...
//
// The server ends with the command.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/flowfabric/flowfabric/internal/pgtest"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: pgcluster COMMAND [ARGUMENT...]")
		os.Exit(2)
	}
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "pgcluster:", err)
	}
	os.Exit(code)
}

func run(arguments []string) (int, error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	server, err := pgtest.Start(ctx, nil)
	if err != nil {
		return 1, err
	}
	defer server.Stop()
	command := exec.CommandContext(ctx, arguments[0], arguments[1:]...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	command.Env = append(os.Environ(), pgtest.Variable+"="+server.Socket())
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
