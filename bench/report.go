package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/flowfabric/flowfabric/bench/measure"
)

// Report is everything a run measured, and where.
type Report struct {
	SchemaVersion int               `json:"schema_version"`
	StartedAt     time.Time         `json:"started_at"`
	DurationS     float64           `json:"duration_s"`
	Quick         bool              `json:"quick"`
	Build         measure.Build     `json:"build"`
	Host          measure.Host      `json:"host"`
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

func newReport(env Env) *Report {
	return &Report{SchemaVersion: 1, StartedAt: time.Now().UTC(), Quick: env.Quick, Build: measure.ThisBuild(), Host: measure.ThisHost()}
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
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t\n", s.Name, v.Name, measure.Figure(v.Median), measure.Figure(v.Min), measure.Figure(v.Max), v.Unit, v.N)
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
