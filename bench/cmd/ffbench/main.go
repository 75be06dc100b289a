// Command ffbench measures the scenarios of package bench in turns and prints medians and ratios.
//
//	go run ./bench/cmd/ffbench -scenario raw-postgres,river -samples 5 -json report.json
//
// Without -postgres it starts a private, durable Postgres and removes it again. It exits with 1 if a result does not add up.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/flowfabric/flowfabric/bench"
	"github.com/flowfabric/flowfabric/internal/pgtest"
)

// options are the flags of the command.
type options struct {
	scenarios, part, postgres, json, profile, heap string
	samples, waiting                               int
	hold                                           time.Duration
	quick, list                                    bool
}

func main() {
	var o options
	flag.StringVar(&o.scenarios, "scenario", "", "scenarios to measure, separated by commas (default: all)")
	flag.StringVar(&o.part, "part", "", "of FlowFabric's own scenarios only submit, drain, cycle.64, cycle.512 or start")
	flag.StringVar(&o.postgres, "postgres", "", "address of a Postgres database whose role may make databases and schemas (default: a private server)")
	flag.StringVar(&o.json, "json", "", "file for the whole report")
	flag.StringVar(&o.profile, "cpuprofile", "", "file for a profile of this process, for go tool pprof")
	flag.StringVar(&o.heap, "memprofile", "", "file for a profile of what this process allocates, for go tool pprof -sample_index=alloc_space")
	flag.IntVar(&o.samples, "samples", 3, "samples of each scenario, taken in turns")
	flag.BoolVar(&o.quick, "quick", false, "a tenth of the work, for trying things out")
	flag.DurationVar(&o.hold, "hold", 0, "how long flowfabric-snapshot holds an old snapshot (default: two minutes)")
	flag.IntVar(&o.waiting, "waiting", 0, "how many executions wait in flowfabric-memory at the most, such as 1000000 (default: 500000)")
	flag.BoolVar(&o.list, "list", false, "list the scenarios and end")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "ffbench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	chosen, err := choose(bench.Scenarios(), o.scenarios)
	if err != nil {
		return err
	}
	if o.list {
		for _, s := range chosen {
			fmt.Printf("%-22s %s\n", s.Name, s.About)
		}
		return nil
	}
	env := bench.Env{Postgres: o.postgres, Quick: o.quick, Part: o.part, Hold: o.hold, Waiting: o.waiting}
	if env.Root, err = root(ctx); err != nil {
		return err
	}
	if env.Dir, err = os.MkdirTemp("", "ffbench"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(env.Dir) }()
	if env.Postgres == "" {
		server, err := pgtest.StartOnDisk(ctx)
		if err != nil {
			return err
		}
		defer server.Stop()
		env.Postgres = server.URL()
	}
	if o.profile != "" {
		f, err := os.Create(o.profile)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	report := bench.Run(ctx, chosen, env, o.samples, func(line string) { fmt.Fprintln(os.Stderr, line) })
	if o.heap != "" {
		if err := writeHeap(o.heap); err != nil {
			return err
		}
	}
	return write(report, o.json)
}

// writeHeap writes what was allocated since the start.
func writeHeap(file string) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(pprof.Lookup("allocs").WriteTo(f, 0), f.Close())
}

// write prints the table and, if a file is named, the whole report.
func write(report *bench.Report, file string) error {
	err := report.WriteTable(os.Stdout)
	if file != "" {
		var f *os.File
		if f, err = os.Create(file); err != nil {
			return err
		}
		err = errors.Join(report.WriteJSON(f), f.Close())
	}
	if err == nil && !report.Valid {
		err = errors.New("not every result is valid")
	}
	return err
}

// choose picks scenarios by name, in the order of the names.
func choose(all []bench.Scenario, names string) ([]bench.Scenario, error) {
	if names == "" {
		return all, nil
	}
	var chosen []bench.Scenario
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(all, func(s bench.Scenario) bool { return s.Name == strings.TrimSpace(name) })
		if i < 0 {
			return nil, fmt.Errorf("there is no scenario %q (-list shows them)", name)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// root is the directory of the main module.
func root(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", err
	}
	file := strings.TrimSpace(string(out))
	if filepath.Base(file) != "go.mod" {
		return "", errors.New("run it inside the source tree")
	}
	return filepath.Dir(file), nil
}
