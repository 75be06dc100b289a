package sim

import (
	"math/rand/v2"
	"time"
)

// Result is what a history came to.
type Result struct {
	Findings []string
	Print    uint64 // of everything that happened: equal for equal histories
	Story    string // if it was asked for
	Steps    int
	Commands int
	Jobs     int
}

// kinds are all kinds of moves.
func kinds() []kind {
	return append(append(work(), faults()...), kind{name: "pass", weight: 8, always: true, do: func(w *World, r *rand.Rand) {
		w.pass(pick(r, 5*time.Millisecond, 60*time.Millisecond, 400*time.Millisecond, 1500*time.Millisecond, 6*time.Second))
	}})
}

// Run runs a history. It must be called inside a bubble of testing/synctest, and returns when every goroutine of it has ended.
func Run(p Plan, trace bool) Result {
	w := newWorld(p.Seed, p.Processes)
	w.trace = trace
	for i := range w.procs {
		w.start(i)
	}
	w.prepare()
	w.prepareLimits()
	do := map[string]func(*World, *rand.Rand){}
	for _, k := range append(kinds(), streaming()...) {
		do[k.name] = k.do
	}
	for _, m := range p.Moves {
		r := rand.New(rand.NewPCG(m.Seed, 3)) //nolint:gosec // G404: a history is repeated from its seed
		do[m.Kind](w, r)
		w.settle()
		if len(w.findings) > 0 {
			break
		}
		if r.IntN(3) == 0 {
			continue // the next one comes before anything goes on
		}
		for range r.IntN(24) {
			if !w.step() {
				break
			}
		}
		if r.IntN(8) == 0 {
			w.idle(time.Duration(1+r.IntN(40)) * time.Millisecond)
		}
	}
	if len(w.findings) == 0 {
		w.finish()
	}
	w.end()
	return Result{Findings: w.findings, Print: w.print, Story: w.Story(), Steps: w.steps, Commands: w.issued, Jobs: len(w.journal.jobs)}
}
