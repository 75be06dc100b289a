package commands

import (
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric/bench/measure"
	"github.com/flowfabric/flowfabric/bench/scenario"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
)

// benchEntry is a line of bench list.
type benchEntry struct {
	Scenario string `json:"scenario"`
	About    string `json:"about"`
}

func (s *session) benchList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the scenarios", Args: counted(cobra.NoArgs),
		Example: examples("flowfabric bench list\nflowfabric bench list --json\nflowfabric bench list --quiet"),
		RunE: func(*cobra.Command, []string) error {
			var all []benchEntry
			for _, sc := range scenario.All() {
				all = append(all, benchEntry{Scenario: sc.Name, About: sc.About})
			}
			return show.All(s.printer, benchView, all)
		},
	}
}

var benchView = show.View[benchEntry]{
	ID: func(e benchEntry) string { return e.Scenario },
	Columns: []show.Column[benchEntry]{
		{Name: "SCENARIO", Text: func(e benchEntry) string { return e.Scenario }},
		{Name: "MEASURES", Text: func(e benchEntry) string { return e.About }},
	},
}

// benchFigure is a line of the table of a run.
type benchFigure struct {
	Scenario string         `json:"scenario"`
	Figure   string         `json:"figure"`
	Unit     string         `json:"unit"`
	Spread   measure.Spread `json:"spread"`
}

// figuresOf returns the summaries of reports as lines.
func figuresOf(reports []*scenario.Report) []benchFigure {
	var all []benchFigure
	for _, r := range reports {
		all = append(all, benchFigure{r.Scenario, "throughput", "1/s", r.Summary.ThroughputPerS})
		for _, name := range slices.Sorted(maps.Keys(r.Summary.LatencyMS)) {
			l := r.Summary.LatencyMS[name]
			all = append(all, benchFigure{r.Scenario, name + " p50", "ms", l.P50}, benchFigure{r.Scenario, name + " p99", "ms", l.P99})
		}
		for _, name := range slices.Sorted(maps.Keys(r.Summary.Counts)) {
			all = append(all, benchFigure{r.Scenario, name, "", r.Summary.Counts[name]})
		}
	}
	return all
}

var figureView = show.View[benchFigure]{
	ID: func(f benchFigure) string { return measure.Figure(f.Spread.Median) },
	Columns: []show.Column[benchFigure]{
		{Name: "SCENARIO", Text: func(f benchFigure) string { return f.Scenario }},
		{Name: "FIGURE", Text: func(f benchFigure) string { return f.Figure }},
		{Name: "MEDIAN", Text: func(f benchFigure) string { return measure.Figure(f.Spread.Median) }},
		{Name: "MIN", Text: func(f benchFigure) string { return measure.Figure(f.Spread.Min) }},
		{Name: "MAX", Text: func(f benchFigure) string { return measure.Figure(f.Spread.Max) }},
		{Name: "UNIT", Text: func(f benchFigure) string { return f.Unit }},
	},
}

func (s *session) benchCompare() *cobra.Command {
	return &cobra.Command{
		Use: "compare OLD.json NEW.json", Args: counted(cobra.ExactArgs(2)),
		Short:   "Compare two reports; exit 1 if throughput fell by over 10 % or a p99 grew by over 20 %, and the spreads do not overlap",
		Example: examples("flowfabric bench compare old.json new.json\nflowfabric bench compare old.json new.json --json\nflowfabric bench compare old.json new.json --wide"),
		RunE: func(_ *cobra.Command, args []string) error {
			before, err := readReports(args[0])
			if err != nil {
				return err
			}
			after, err := readReports(args[1])
			if err != nil {
				return err
			}
			if a, b := before[0].Host, after[0].Host; a.CPU != b.CPU || a.Cores != b.Cores || a.Kernel != b.Kernel {
				s.printer.Note("the reports come from different machines: their ratios mean little")
			}
			return s.printDifferences(scenario.Compare(before, after))
		},
	}
}

func readReports(file string) ([]*scenario.Report, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, show.Invalid("", "write it with flowfabric bench SCENARIO --json FILE", "%s", err)
	}
	defer func() { _ = f.Close() }()
	all, err := scenario.Read(f)
	if err != nil {
		return nil, show.Invalid("", "write it with flowfabric bench SCENARIO --json FILE", "%s: %s", file, err)
	}
	return all, nil
}

func (s *session) printDifferences(all []scenario.Difference, err error) error {
	if err != nil {
		return show.Invalid("", "run both with the same parameters", "%s", err)
	}
	if err := show.All(s.printer, differenceView, all); err != nil {
		return err
	}
	if slices.ContainsFunc(all, func(d scenario.Difference) bool { return d.Verdict == scenario.Worse }) {
		return show.Exit(show.ExitFailed)
	}
	return nil
}

var differenceView = show.View[scenario.Difference]{
	ID: func(d scenario.Difference) string { return measure.Figure(d.Ratio) },
	Columns: []show.Column[scenario.Difference]{
		{Name: "SCENARIO", Text: func(d scenario.Difference) string { return d.Scenario }},
		{Name: "FIGURE", Text: func(d scenario.Difference) string { return d.Figure }},
		{Name: "OLD", Text: func(d scenario.Difference) string { return measure.Figure(d.Old.Median) }},
		{Name: "NEW", Text: func(d scenario.Difference) string { return measure.Figure(d.New.Median) }},
		{Name: "RATIO", Text: func(d scenario.Difference) string { return fmt.Sprintf("%.2f", d.Ratio) }},
		{Name: "FROM", Text: func(d scenario.Difference) string { return fmt.Sprintf("%.2f", d.RatioMin) }},
		{Name: "TO", Text: func(d scenario.Difference) string { return fmt.Sprintf("%.2f", d.RatioMax) }},
		{Name: "VERDICT", Text: func(d scenario.Difference) string { return d.Verdict }},
	},
}
