package bench

import (
	"context"
	"fmt"
	"time"
)

// Run takes samples of the scenarios in turns, so that whatever slows the machine down for a while meets all of them, and every other
// round backwards, so that none always follows the same. say hears of each sample. A scenario that fails keeps its error and is left
// out of further rounds.
func Run(ctx context.Context, scenarios []Scenario, env Env, samples int, say func(line string)) *Report {
	report := newReport(env)
	for _, s := range scenarios {
		report.Scenarios = append(report.Scenarios, &ScenarioReport{Name: s.Name, About: s.About})
	}
	for round := range samples {
		for i := range scenarios {
			if round%2 == 1 {
				i = len(scenarios) - 1 - i
			}
			if ctx.Err() == nil && report.Scenarios[i].Error == "" {
				say(fmt.Sprintf("%s %d/%d", scenarios[i].Name, round+1, samples))
				report.Scenarios[i].take(ctx, scenarios[i], env)
			}
		}
	}
	report.finish()
	return report
}

// take adds one sample.
func (r *ScenarioReport) take(ctx context.Context, s Scenario, env Env) {
	began := time.Now()
	sample, err := s.Run(ctx, env)
	if err != nil {
		r.Error = err.Error()
		return
	}
	sample.StartedAt, sample.DurationS = began.UTC(), time.Since(began).Seconds()
	r.Samples = append(r.Samples, sample)
}
