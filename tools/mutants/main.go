// Command mutants plants bugs, one at a time, and runs the check that must notice each.
//
//	mutants -root .. [-run REGEXP] [-limit 60s] [-json FILE] [-list]
//
// A planted bug is a file in planted/: what it breaks, the text that it replaces, and the check. The tree itself is not touched: the compiler
// reads the changed files from an overlay. The check runs without any bug first: it must pass then. A bug that its check does not notice survives.
// Mutants exits with 1 if one survives or cannot be planted, and with 2 if it could not run.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"
	"time"
)

func main() {
	var r run
	only := flag.String("run", "", "plant only the bugs whose names match this regular expression")
	list := flag.Bool("list", false, "print the bugs and their checks as a table, and run nothing")
	report := flag.String("json", "", "write the results to this file")
	flag.StringVar(&r.root, "root", ".", "root of the module in which bugs are planted")
	flag.DurationVar(&r.limit, "limit", time.Minute, "how long a check may run, without compiling")
	flag.Parse()
	mutants, err := selected(filepath.Join(r.root, "tools", "mutants", "planted"), *only)
	if err == nil && len(mutants) == 0 {
		err = errors.New("no planted bug has such a name")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	}
	if *list {
		fmt.Print(table(mutants))
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	results, err := r.all(ctx, mutants, os.Stdout)
	stop()
	if err == nil && *report != "" {
		err = write(*report, results)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	}
	if summary(os.Stdout, results) > 0 {
		os.Exit(1)
	}
}

// selected reads the planted bugs whose names match a pattern.
func selected(dir, pattern string) ([]*mutant, error) {
	match, err := regexp.Compile(pattern)
	if err != nil {
		return nil, err
	}
	all, err := readAll(dir)
	if err != nil {
		return nil, err
	}
	var some []*mutant
	for _, m := range all {
		if match.MatchString(m.Name) {
			some = append(some, m)
		}
	}
	return some, nil
}

// write stores the results as JSON.
func write(path string, results []result) error {
	text, err := json.MarshalIndent(results, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o600)
}

// summary prints how many bugs were caught and which were not, and returns how many those are.
func summary(out io.Writer, results []result) (missed int) {
	for _, r := range results {
		if r.Outcome != caught {
			missed++
			fmt.Fprintf(out, "%s: %s: %s\n", r.Outcome, r.Name, r.What)
		}
	}
	fmt.Fprintf(out, "%d caught, %d not\n", len(results)-missed, missed)
	return missed
}
