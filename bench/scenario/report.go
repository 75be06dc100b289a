package scenario

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/flowfabric/flowfabric/bench/measure"
)

// schemaVersion grows when a report can no longer be read as before.
const schemaVersion = 1

// Report is what a scenario measured, and where (U261).
type Report struct {
	SchemaVersion int            `json:"schema_version"`
	Scenario      string         `json:"scenario"`
	Params        map[string]any `json:"params"`
	Via           string         `json:"via"` // embedded, http, server
	StartedAt     time.Time      `json:"started_at"`
	DurationS     float64        `json:"duration_s"`
	Build         measure.Build  `json:"build"`
	Store         Store          `json:"store"`
	Host          measure.Host   `json:"host"`
	Samples       []*Sample      `json:"samples"`
	Summary       Summary        `json:"summary"`
	Valid         bool           `json:"valid"`
	Notes         []string       `json:"notes"`
}

// Store names the database that was measured.
type Store struct {
	Kind     string            `json:"kind"`
	Version  string            `json:"version"`
	Settings map[string]string `json:"settings"` // those that matter; empty where they cannot be seen
}

// Sample is one turn of a scenario.
type Sample struct {
	ThroughputPerS float64                    `json:"throughput_per_s"`
	LatencyMS      map[string]measure.Latency `json:"latency_ms"`
	Counts         map[string]float64         `json:"counts"`
	Resources      Resources                  `json:"resources"`
	Checks         []Check                    `json:"checks"`
}

// Resources is what a sample used. What is not known is null.
type Resources struct {
	CPUClientS *float64 `json:"cpu_s_client"` // this process; via embedded the engine is in it
	CPUServerS *float64 `json:"cpu_s_server"`
	CPUStoreS  *float64 `json:"cpu_s_store"`
	RSSMax     *int64   `json:"rss_max"` // of the process that holds the engine
	DBBytes    *int64   `json:"db_bytes"`
	WALBytes   *int64   `json:"wal_bytes"`
	Commits    *int64   `json:"commits"`
	Queries    *int64   `json:"queries"` // transactions, committed or not
}

// Check is something that must hold of a sample, whatever its speed (U252).
type Check struct {
	Name string  `json:"name"`
	Want float64 `json:"want"`
	Got  float64 `json:"got"`
	OK   bool    `json:"ok"`
}

// Summary is the middle of the samples and how far they lie apart.
type Summary struct {
	MedianSample   int                       `json:"median_sample"` // index of the sample in the middle by throughput
	ThroughputPerS measure.Spread            `json:"throughput_per_s"`
	LatencyMS      map[string]LatencySummary `json:"latency_ms"`
	Counts         map[string]measure.Spread `json:"counts"`
}

// LatencySummary is the spread of two percentiles over the samples.
type LatencySummary struct {
	P50 measure.Spread `json:"p50"`
	P99 measure.Spread `json:"p99"`
}

func newSample() *Sample {
	return &Sample{LatencyMS: map[string]measure.Latency{}, Counts: map[string]float64{}, Checks: []Check{}}
}

// check notes what must hold.
func (s *Sample) check(name string, want, got int) {
	s.Checks = append(s.Checks, Check{Name: name, Want: float64(want), Got: float64(got), OK: want == got})
}

// valid reports whether all checks hold. A sample without any has not been looked at.
func (s *Sample) valid() bool {
	return len(s.Checks) > 0 && !slices.ContainsFunc(s.Checks, func(c Check) bool { return !c.OK })
}

// summarize computes the summary and the validity.
func (r *Report) summarize() {
	var throughputs []float64
	p50, p99, counts := map[string][]float64{}, map[string][]float64{}, map[string][]float64{}
	r.Valid = len(r.Samples) > 0
	for _, s := range r.Samples {
		r.Valid = r.Valid && s.valid()
		throughputs = append(throughputs, s.ThroughputPerS)
		for name, l := range s.LatencyMS {
			p50[name], p99[name] = append(p50[name], l.P50), append(p99[name], l.P99)
		}
		for name, n := range s.Counts {
			counts[name] = append(counts[name], n)
		}
	}
	r.Summary = Summary{LatencyMS: map[string]LatencySummary{}, Counts: map[string]measure.Spread{}}
	r.Summary.MedianSample = middle(throughputs)
	r.Summary.ThroughputPerS = measure.SpreadOf(throughputs)
	for name := range p50 {
		r.Summary.LatencyMS[name] = LatencySummary{P50: measure.SpreadOf(p50[name]), P99: measure.SpreadOf(p99[name])}
	}
	for name := range counts {
		r.Summary.Counts[name] = measure.SpreadOf(counts[name])
	}
}

// middle is the index of the value in the middle; of an even number the lower one.
func middle(values []float64) int {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case values[a] < values[b]:
			return -1
		case values[a] > values[b]:
			return 1
		}
		return 0
	})
	if len(order) == 0 {
		return 0
	}
	return order[(len(order)-1)/2]
}

// Failed lists the checks that do not hold, as sentences.
func (r *Report) Failed() []string {
	var all []string
	for i, s := range r.Samples {
		if len(s.Checks) == 0 {
			all = append(all, fmt.Sprintf("sample %d was not checked", i+1))
		}
		for _, c := range s.Checks {
			if !c.OK {
				all = append(all, fmt.Sprintf("sample %d: %s is %g, want %g", i+1, c.Name, c.Got, c.Want))
			}
		}
	}
	return all
}

// Write writes reports, one a document.
func Write(w io.Writer, reports []*Report) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	for _, r := range reports {
		if err := e.Encode(r); err != nil {
			return err
		}
	}
	return nil
}

// Read reads what Write wrote. It refuses what is no report and what a later version wrote.
func Read(from io.Reader) ([]*Report, error) {
	var all []*Report
	for d := json.NewDecoder(from); ; {
		r := &Report{}
		err := d.Decode(r)
		switch {
		case errors.Is(err, io.EOF) && len(all) > 0:
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("no report: %w", err)
		case r.SchemaVersion < 1 || r.SchemaVersion > schemaVersion || r.Scenario == "":
			return nil, fmt.Errorf("no report that this program reads: schema_version %d, scenario %q", r.SchemaVersion, r.Scenario)
		}
		all = append(all, r)
	}
}
