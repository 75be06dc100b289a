package stage

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// keyVariable has the API key for the server, as for the command line.
const keyVariable = "FF_API_KEY"

// Misuse is an error in how the example was started: the story cannot be shown in this way.
type Misuse struct{ Text string }

// Error says what cannot be, and what can.
func (m *Misuse) Error() string { return m.Text }

// Main is the main function of an example: it reads the flags, tells the story and ends the process. With 0 when all went well, 1
// when something failed, 2 when the story cannot be told in this way, 130 when it was interrupted.
func Main(story Story, own ...func(flags *flag.FlagSet)) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := Run(ctx, story, os.Args[1:], own...)
	interrupted := ctx.Err() != nil
	stop()
	var misuse *Misuse
	switch {
	case err == nil:
	case errors.As(err, &misuse):
		fmt.Fprintf(os.Stderr, "%s: %s\n", story.Name, misuse.Text)
		os.Exit(2)
	case interrupted:
		os.Exit(130)
	default:
		fmt.Fprintf(os.Stderr, "%s: %s\n", story.Name, err)
		os.Exit(1)
	}
}

// Run reads the flags, those of the story itself too, and tells it.
func Run(ctx context.Context, story Story, args []string, own ...func(flags *flag.FlagSet)) error {
	s := Stage{Key: os.Getenv(keyVariable)}
	flags := flag.NewFlagSet(story.Name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&s.Store, "store", "", "sqlite:PATH or postgres://…; a temporary file if absent")
	flags.StringVar(&s.Server, "server", "", "address of a server to tell the story on, with an API key in "+keyVariable)
	for _, add := range own {
		add(flags)
	}
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Printf("Usage: go run ./examples/%s [flags]\n", story.Name)
		flags.SetOutput(os.Stdout)
		flags.PrintDefaults()
		return nil
	case err != nil:
		return &Misuse{err.Error()}
	case flags.NArg() > 0:
		return &Misuse{fmt.Sprintf("%q is no flag; -help lists them", flags.Arg(0))}
	}
	return Play(ctx, story, s)
}
