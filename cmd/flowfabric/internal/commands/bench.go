package commands

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric/bench/measure"
	"github.com/flowfabric/flowfabric/bench/scenario"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/settings"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// benchRun is one call of bench.
type benchRun struct {
	cfg      scenario.Config
	file     string // of the report; "-": standard output
	asWorker string // settings of a worker process
	inFile   string // contains the address of the store
}

func (s *session) bench() *cobra.Command {
	var b benchRun
	cmd := &cobra.Command{
		Use: "bench SCENARIO…", Short: "Measure FlowFabric on a store and check that nothing was lost; exit 1 if something was", Args: cobra.ArbitraryArgs,
		Long: "Each sample runs on a fresh store, created next to the given one and removed afterwards, or in a fresh namespace of --server.",
		Example: examples(`
flowfabric bench cycle --quick
flowfabric bench cycle routing --store postgres://flowfabric@db/flowfabric --via http --json new.json
flowfabric bench steady --store sqlite:/var/lib/flowfabric/ff.db --rate 500 --duration 5m
`),
	}
	b.register(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if b.asWorker != "" {
			return s.during(cmd, func(ctx context.Context) error { return b.work(ctx, s.lookup(scenario.KeyVariable), s.Out) })
		}
		return s.runBench(cmd, b, args)
	}
	cmd.AddCommand(s.benchList(), s.benchCompare())
	return cmd
}

func (b *benchRun) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&b.cfg.Store, "store", "", "sqlite:PATH or postgres://…; default: a temporary SQLite file")
	f.StringVar(&b.inFile, "store-file", "", "file that contains the store's address")
	f.StringVar(&b.cfg.Via, "via", "", "embedded (default) or http: how to reach the store")
	f.IntVar(&b.cfg.Workers, "workers", 0, "workers; 0: the scenario's default; keys: slots of its one worker")
	f.StringVar(&b.file, "json", "", "file for the full report; - prints it instead of the table")
	f.IntVar(&b.cfg.Samples, "samples", 0, "samples, each on a fresh store; 0: 3, with --quick 1")
	f.BoolVar(&b.cfg.Quick, "quick", false, "tiny sizes, for trying things out")
	f.IntVarP(&b.cfg.N, "n", "n", 0, "cycle, routing, keys, events: executions; chain: flows; fan-in, losers: members of the join; recovery: tasks; idle: waiting executions")
	f.IntVar(&b.cfg.InFlight, "in-flight", 0, "chain: concurrent flows; 0: all at once")
	f.IntVar(&b.cfg.Batch, "batch", 0, "cycle: executions per call; 0: single calls")
	f.BoolVar(&b.cfg.Drain, "drain", false, "cycle: submit first, measure only the rest")
	f.BoolVar(&b.cfg.Admission, "admission", false, "cycle: give each execution a budget and a quota")
	f.Float64Var(&b.cfg.Rate, "rate", 0, "steady: arrivals per second; 0: half of cycle's throughput")
	f.DurationVar(&b.cfg.Duration, "duration", 0, "steady, idle: duration; recovery: duration of a task")
	f.DurationVar(&b.cfg.Work, "work", 0, "steady: how long a handler sleeps")
	f.StringSliceVar(&b.cfg.Variants, "variant", nil, "routing: happy, partial, scarce; keys: fairness, quota; default: all")
	f.DurationVar(&b.cfg.Lease, "lease", 0, "recovery: lease of the workers; default 30s")
	f.IntVar(&b.cfg.Kept, "kept", 0, "idle: finished executions; default 1,000,000")
	f.StringVar(&b.asWorker, scenario.WorkerFlag, "", "run as a worker process of a scenario")
	_ = f.MarkHidden(scenario.WorkerFlag) // the flag exists
}

// work runs this process as a worker of a scenario.
func (b *benchRun) work(ctx context.Context, key string, out io.Writer) error {
	var worker scenario.WorkerSettings
	if err := json.Unmarshal([]byte(b.asWorker), &worker); err != nil {
		return show.Invalid("--"+scenario.WorkerFlag, "", "%s", err)
	}
	worker.Key = key
	return scenario.Work(ctx, worker, out)
}

// runBench runs the scenarios in turn and prints their results.
func (s *session) runBench(cmd *cobra.Command, b benchRun, args []string) error {
	chosen, err := scenariosOf(args)
	if err != nil {
		return err
	}
	if b.inFile != "" {
		text, err := s.content("--store-file", "@"+b.inFile)
		if err != nil {
			return err
		}
		b.cfg.Store = strings.TrimSpace(string(text))
	}
	if err := s.fillBench(cmd, &b.cfg); err != nil {
		return err
	}
	var reports []*scenario.Report
	err = s.during(cmd, func(ctx context.Context) error {
		for _, sc := range chosen {
			report, err := scenario.Run(ctx, sc, b.cfg)
			if err != nil {
				return err
			}
			reports = append(reports, report)
			s.printer.Note("%s on %s %s via %s, samples: %d, took %s", sc.Name, report.Store.Kind, report.Store.Version, report.Via, len(report.Samples),
				show.Span(time.Duration(report.DurationS*float64(time.Second))))
		}
		return nil
	})
	if err == nil {
		err = s.printBench(reports, b.file)
	}
	return err
}

// scenariosOf returns the scenarios with these names.
func scenariosOf(names []string) ([]scenario.Scenario, error) {
	if len(names) == 0 {
		return nil, show.Invalid("SCENARIO", "see flowfabric bench list", "which scenario?")
	}
	var known []string
	for _, sc := range scenario.All() {
		known = append(known, sc.Name)
	}
	var chosen []scenario.Scenario
	for _, name := range names {
		i := slices.Index(known, name)
		if i < 0 {
			hint := "see flowfabric bench list"
			if near := jsonx.Nearest(name, known); near != "" {
				hint = "did you mean " + near + "?"
			}
			return nil, show.Invalid("SCENARIO", hint, "unknown scenario %q", name)
		}
		chosen = append(chosen, scenario.All()[i])
	}
	return chosen, nil
}

// fillBench adds the environment's settings to the flags.
func (s *session) fillBench(cmd *cobra.Command, cfg *scenario.Config) error {
	switch {
	case cfg.Via != "" && cfg.Via != "embedded" && cfg.Via != "http":
		return show.Invalid("--via", "use embedded or http", "unknown --via %q", cfg.Via)
	case cfg.Store != "" && !isPostgres(cfg.Store) && !strings.HasPrefix(cfg.Store, "sqlite:"):
		return show.Invalid("--store", "give --store sqlite:PATH or --store postgres://…", "unknown store %q", cfg.Store)
	}
	if cmd.Flags().Changed("server") {
		if cfg.Store != "" || cfg.Via != "" {
			return show.Invalid("--server", "omit --store and --via", "a server has its own store")
		}
		values, err := s.clientSettings(cmd)
		if err != nil {
			return err
		}
		if cfg.Server, err = oneServer(values); err != nil {
			return err
		}
		cfg.Key = settings.Get[string](values, "key")
	} else if cfg.Store == "" {
		cfg.Store = "sqlite:"
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cfg.Program, cfg.Environ, cfg.Build = self, s.Environ, measure.Build{Version: s.Version, Commit: s.Commit}
	cfg.Progress = func(what string, total int) (func(int), func()) {
		bar := s.printer.NewProgress(what, isTerminal(s.Err))
		return func(done int) { bar.At(done, total) }, bar.End
	}
	return nil
}

// printBench prints the table, writes the file, and fails if a report is not valid.
func (s *session) printBench(reports []*scenario.Report, file string) error {
	if file == "-" {
		if err := scenario.Write(s.Out, reports); err != nil {
			return err
		}
	} else if err := show.All(s.printer, figureView, figuresOf(reports)); err != nil {
		return err
	}
	if file != "" && file != "-" {
		f, err := os.Create(file)
		if err != nil {
			return err
		}
		if err := errors.Join(scenario.Write(f, reports), f.Close()); err != nil {
			return err
		}
	}
	valid := true
	for _, r := range reports {
		for _, note := range r.Notes {
			s.printer.Note("%s: %s", r.Scenario, note)
		}
		for _, failed := range r.Failed() {
			fmt.Fprintf(s.Err, "%s is not valid: %s\n", r.Scenario, failed)
		}
		valid = valid && r.Valid
	}
	if !valid {
		return show.Exit(show.ExitFailed)
	}
	return nil
}
