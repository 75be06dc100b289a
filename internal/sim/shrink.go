package sim

import (
	"slices"
	"strings"
)

// Shrink leaves out moves of a plan that fails, as long as it fails in the same way, and returns the shortest plan that it found with its result.
// most bounds the runs. What a history does between two calls of the store is not drawn from the plan alone, so that a shorter one may fail only
// sometimes: it counts if it fails when it is run.
func Shrink(p Plan, run func(Plan) Result, most int) (Plan, Result) {
	last := run(p)
	if len(last.Findings) == 0 {
		return p, last
	}
	rule := ruleOf(last)
	for size := len(p.Moves) / 2; size > 0; size /= 2 {
		for at := 0; at < len(p.Moves) && most > 0; {
			shorter := p
			shorter.Moves = slices.Delete(slices.Clone(p.Moves), at, min(at+size, len(p.Moves)))
			most--
			if r := run(shorter); len(r.Findings) > 0 && ruleOf(r) == rule {
				p, last = shorter, r
				continue
			}
			at += size
		}
	}
	return p, last
}

// ruleOf returns the rule that the first finding names.
func ruleOf(r Result) string {
	rule, _, _ := strings.Cut(r.Findings[0], ":")
	return rule
}
