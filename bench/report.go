package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"text/tabwriter"
	"time"
)

// Report is everything a run measured, and where.
type Report struct {
	SchemaVersion int               `json:"schema_version"`
	StartedAt     time.Time         `json:"started_at"`
	DurationS     float64           `json:"duration_s"`
	Quick         bool              `json:"quick"`
	Build         Build             `json:"build"`
	Host          Host              `json:"host"`
	Scenarios     []*ScenarioReport `json:"scenarios"`
	Ratios        []Ratio           `json:"ratios"`
	Valid         bool              `json:"valid"`
}

// ScenarioReport is what one scenario measured.
type ScenarioReport struct {
	Name    string    `json:"name"`
	About   string    `json:"about"`
	Samples []*Sample `json:"samples"`
	Summary []Summary `json:"summary"`
	Error   string    `json:"error,omitempty"`
	Valid   bool      `json:"valid"`
}

// Ratio is a Comparison of medians.
type Ratio struct {
	About string  `json:"about"`
	Of    string  `json:"of"`
	To    string  `json:"to"`
	Ratio float64 `json:"ratio"`
}

// Build names the program that measured.
type Build struct {
	Go     string `json:"go"`
	Commit string `json:"commit,omitempty"`
}

// Host names the machine.
type Host struct {
	CPU        string `json:"cpu"`
	Cores      int    `json:"cores"`
	Memory     string `json:"memory"`
	OS         string `json:"os"`
	Kernel     string `json:"kernel"`
	LoadBefore string `json:"load_before"`
}

func newReport(env Env) *Report {
	r := &Report{SchemaVersion: 1, StartedAt: time.Now().UTC(), Quick: env.Quick, Build: Build{Go: runtime.Version()}, Host: host()}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				r.Build.Commit = s.Value
			}
		}
	}
	return r
}

// host reads what Linux tells about the machine; elsewhere those fields stay empty.
func host() Host {
	return Host{
		Cores: runtime.NumCPU(), OS: runtime.GOOS + "/" + runtime.GOARCH,
		CPU:        field("/proc/cpuinfo", "model name"),
		Memory:     field("/proc/meminfo", "MemTotal"),
		Kernel:     firstLine("/proc/sys/kernel/osrelease"),
		LoadBefore: firstLine("/proc/loadavg"),
	}
}

func firstLine(file string) string {
	text, _ := os.ReadFile(file)
	line, _, _ := strings.Cut(string(text), "\n")
	return line
}

// field finds the value of "name : value".
func field(file, name string) string {
	text, _ := os.ReadFile(file)
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, ":")
		if strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// finish computes medians, ratios and validity.
func (r *Report) finish() {
	r.DurationS = time.Since(r.StartedAt).Seconds()
	r.Valid = true
	medians := map[string]float64{}
	for _, s := range r.Scenarios {
		s.Summary = Summarize(s.Samples)
		s.Valid = s.Error == "" && len(s.Samples) > 0
		for _, sample := range s.Samples {
			s.Valid = s.Valid && len(sample.Failures) == 0
		}
		r.Valid = r.Valid && s.Valid
		for _, v := range s.Summary {
			medians[s.Name+"/"+v.Name] = v.Median
		}
	}
	for _, c := range Comparisons() {
		of, haveOf := medians[c.Of]
		to, haveTo := medians[c.To]
		if haveOf && haveTo && to > 0 {
			r.Ratios = append(r.Ratios, Ratio{About: c.About, Of: c.Of, To: c.To, Ratio: of / to})
		}
	}
}

// WriteJSON writes the whole report.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// WriteTable writes medians with their spread, the ratios, and whatever went wrong.
func (r *Report) WriteTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "scenario\tvalue\tmedian\tmin\tmax\tunit\tsamples\t")
	for _, s := range r.Scenarios {
		for _, v := range s.Summary {
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t\n", s.Name, v.Name, figure(v.Median), figure(v.Min), figure(v.Max), v.Unit, v.N)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, ratio := range r.Ratios {
		fmt.Fprintf(w, "%.2f x  %s (%s : %s)\n", ratio.Ratio, ratio.About, ratio.Of, ratio.To)
	}
	for _, s := range r.Scenarios {
		if s.Error != "" {
			fmt.Fprintf(w, "%s failed: %s\n", s.Name, s.Error)
		}
		for _, sample := range s.Samples {
			for _, failure := range sample.Failures {
				fmt.Fprintf(w, "%s is not valid: %s\n", s.Name, failure)
			}
		}
	}
	return nil
}

// figure prints three digits that matter.
func figure(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}
