package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric/tools/crash/history"
)

// report is the result of a run.
type report struct {
	Store             string            `json:"store"`
	Seed              uint64            `json:"seed"`
	Length            string            `json:"length"`
	Settled           string            `json:"settled"` // how long everything took to end once the faults had stopped
	Executions        int               `json:"executions"`
	Events            int               `json:"events"`
	Calls             int               `json:"calls"`
	ByKind            map[string]int64  `json:"executions_by_kind"`
	ByStatus          map[string]int64  `json:"executions_by_status"`
	Counts            map[string]int64  `json:"counts"`
	Killed            map[string]int64  `json:"killed"`
	Unknown           int64             `json:"unknown_outcomes"` // of commands as requests, before they were repeated
	UnknownCalls      int64             `json:"unknown_calls"`    // of calls, after they were repeated
	Duplicated        int64             `json:"requests_sent_twice"`
	Recovery          map[string]string `json:"worst_recovery"`
	NotRecovered      []string          `json:"not_recovered,omitempty"`
	Found             int               `json:"found"`
	Findings          []history.Finding `json:"findings"`
	recoveryDurations map[string]time.Duration
}

// mostFindings bounds how many findings have their story in a report.
const mostFindings = 20

// newReport sums a run up.
func (r *run) newReport(g *gatherer, l *load, settled time.Duration) *report {
	findings := history.Check(g.facts)
	p := &report{
		Store: r.store, Seed: r.seed, Length: r.length.String(), Settled: settled.Round(time.Millisecond).String(),
		Executions: len(g.facts.Executions), Events: len(g.facts.Log), Calls: len(g.facts.Calls), ByKind: g.kinds,
		ByStatus: map[string]int64{}, Counts: map[string]int64{}, Killed: map[string]int64{}, Recovery: map[string]string{}, Found: len(findings),
		recoveryDurations: r.worst,
	}
	for _, x := range g.facts.Executions {
		p.ByStatus[x.Status]++
	}
	for what, n := range r.counts {
		p.Counts[what] = n
	}
	p.Killed["postgres"] = r.counts[killPostgres]
	p.Killed["servers"] = r.counts[killServer] + r.counts[powerCut] + r.counts[failedSync]
	p.Killed["workers"] = r.counts[killWorker]
	p.Killed["power"] = r.counts[powerCut] + r.counts[failedSync]
	p.UnknownCalls = r.counts["calls of unknown outcome"]
	for _, road := range l.roads {
		p.Unknown += road.unknown.Load()
		p.Duplicated += road.duplicated.Load()
	}
	for _, c := range g.facts.Calls {
		if c.Name == roadCall {
			twice := int64(0)
			_, _ = fmt.Sscan(c.Value, &twice)
			p.Unknown, p.Duplicated = p.Unknown+c.Epoch, p.Duplicated+twice
		}
	}
	for kind, took := range r.worst {
		p.Recovery[kind] = took.Round(time.Millisecond).String()
	}
	for kind := range r.hurt {
		p.NotRecovered = append(p.NotRecovered, kind)
	}
	slices.Sort(p.NotRecovered)
	p.Findings = findings[:min(len(findings), mostFindings)]
	for i, f := range p.Findings {
		p.Findings[i].Story = history.Story(g.facts, f.Execution)
	}
	return p
}

//go:embed report.html
var page string

// write writes the report as JSON and as a page.
func (p *report) write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	text, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	base := filepath.Join(dir, "crash-"+p.Store)
	if err := os.WriteFile(base+".json", append(text, '\n'), 0o644); err != nil {
		return err
	}
	t, err := template.New("report").Parse(page)
	if err != nil {
		return err
	}
	var html strings.Builder
	if err := t.Execute(&html, p); err != nil {
		return err
	}
	return os.WriteFile(base+".html", []byte(html.String()), 0o644)
}

// summary prints the report.
func (p *report) summary(out io.Writer) {
	fmt.Fprintf(out, "\n%s, seed %d, faults for %s: %d executions, %d events, %d calls\n", p.Store, p.Seed, p.Length, p.Executions, p.Events, p.Calls)
	fmt.Fprintf(out, "killed: %d servers, %d workers, %d times Postgres; power cut %d times\n", p.Killed["servers"], p.Killed["workers"], p.Killed["postgres"], p.Killed["power"])
	fmt.Fprintf(out, "unknown outcomes: %d commands, %d calls after their repeats; %d requests sent twice\n", p.Unknown, p.UnknownCalls, p.Duplicated)
	fmt.Fprintf(out, "everything had ended %s after the last fault\n", p.Settled)
	print := func(title string, of map[string]int64) {
		fmt.Fprintf(out, "%s:", title)
		for _, name := range names(of) {
			fmt.Fprintf(out, " %s %d,", name, of[name])
		}
		fmt.Fprintln(out)
	}
	print("executions", p.ByStatus)
	print("counts", p.Counts)
	fmt.Fprint(out, "worst recovery:")
	for _, name := range names(p.recoveryDurations) {
		fmt.Fprintf(out, " %s %s,", name, p.Recovery[name])
	}
	fmt.Fprintln(out)
	for i, f := range p.Findings {
		fmt.Fprintf(out, "FINDING %s\n", f)
		if i < 3 {
			for _, line := range f.Story {
				fmt.Fprintf(out, "    %s\n", line)
			}
		}
	}
	fmt.Fprintf(out, "%d findings; seed %d draws the same faults again, what they meet differs from run to run\n", p.Found, p.Seed)
}

func names[V any](of map[string]V) []string {
	all := make([]string, 0, len(of))
	for name := range of {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}
