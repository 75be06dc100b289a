package scenario

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/flowfabric/flowfabric/bench/measure"
)

// The bounds of U262: a change beyond them counts when the spreads do not overlap.
const (
	throughputBound = 0.10
	p99Bound        = 0.20
)

// The verdicts about a figure. What changed within the bounds or the spreads is the same.
const (
	Same   = "same"
	Better = "better"
	Worse  = "worse"
)

// Difference is one figure in two reports.
type Difference struct {
	Scenario string         `json:"scenario"`
	Figure   string         `json:"figure"` // throughput_per_s, or latency_ms.NAME.p99
	Old      measure.Spread `json:"old"`
	New      measure.Spread `json:"new"`
	Ratio    float64        `json:"ratio"` // of the medians, new to old
	RatioMin float64        `json:"ratio_min"`
	RatioMax float64        `json:"ratio_max"`
	Verdict  string         `json:"verdict"`
}

// Compare sets each scenario of one set of reports beside the same one of the other (U262). It refuses reports that are not valid,
// and scenarios that were not run in the same way.
func Compare(before, after []*Report) ([]Difference, error) {
	var all []Difference
	for _, next := range after {
		i := slices.IndexFunc(before, func(r *Report) bool { return r.Scenario == next.Scenario })
		if i < 0 {
			continue
		}
		if err := alike(before[i], next); err != nil {
			return nil, fmt.Errorf("%s: %w", next.Scenario, err)
		}
		all = append(all, compare(before[i], next)...)
	}
	if len(all) == 0 {
		return nil, errors.New("the reports have no scenario in common")
	}
	return all, nil
}

// alike tells what keeps two reports from being compared.
func alike(before, after *Report) error {
	switch {
	case !before.Valid || !after.Valid:
		return errors.New("a report is not valid: its speed means nothing")
	case before.Via != after.Via || before.Store.Kind != after.Store.Kind:
		return fmt.Errorf("one was run on %s via %s, the other on %s via %s", before.Store.Kind, before.Via, after.Store.Kind, after.Via)
	case !reflect.DeepEqual(before.Params, after.Params):
		return fmt.Errorf("the parameters differ: %v and %v", before.Params, after.Params)
	}
	return nil
}

func compare(before, after *Report) []Difference {
	name := after.Scenario
	all := []Difference{higherIsBetter(name, "throughput_per_s", before.Summary.ThroughputPerS, after.Summary.ThroughputPerS)}
	for _, latency := range slices.Sorted(maps.Keys(after.Summary.LatencyMS)) {
		if old, both := before.Summary.LatencyMS[latency]; both {
			all = append(all, lowerIsBetter(name, "latency_ms."+latency+".p99", old.P99, after.Summary.LatencyMS[latency].P99))
		}
	}
	return all
}

func higherIsBetter(scenario, figure string, before, after measure.Spread) Difference {
	d := difference(scenario, figure, before, after)
	switch {
	case before.Overlaps(after):
	case d.Ratio < 1-throughputBound:
		d.Verdict = Worse
	case d.Ratio > 1+throughputBound:
		d.Verdict = Better
	}
	return d
}

func lowerIsBetter(scenario, figure string, before, after measure.Spread) Difference {
	d := difference(scenario, figure, before, after)
	switch {
	case before.Overlaps(after):
	case d.Ratio > 1+p99Bound:
		d.Verdict = Worse
	case d.Ratio < 1-p99Bound:
		d.Verdict = Better
	}
	return d
}

func difference(scenario, figure string, before, after measure.Spread) Difference {
	return Difference{
		Scenario: scenario, Figure: figure, Old: before, New: after, Verdict: Same,
		Ratio: ratio(after.Median, before.Median), RatioMin: ratio(after.Min, before.Max), RatioMax: ratio(after.Max, before.Min),
	}
}

// ratio of two figures; 1 where there is nothing to compare with.
func ratio(of, to float64) float64 {
	if to == 0 {
		return 1
	}
	return of / to
}
