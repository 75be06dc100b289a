package sim

import (
	"flag"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

// The flags of a search: make sim sets them. Without them the histories of the gate are run.
var (
	seed     = flag.Uint64("seed", 1, "the seed of the first history")
	count    = flag.Int("histories", 60, "how many histories are run, from consecutive seeds")
	commands = flag.Int("commands", 200, "commands of a history")
	story    = flag.Bool("story", false, "print everything that happens")
	shrink   = flag.Bool("shrink", false, "shorten histories that fail")
)

// One processor: goroutines that one call of the store has woken run in the order in which they were woken, as far as the runtime keeps it. A
// collection while a history runs would change that order, and takes a fifth of the time: histories are short, and what they leave is collected
// between them.
func TestMain(m *testing.M) {
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(2 << 30)
	goleak.VerifyTestMain(m)
}

// garbage is how much memory is left uncollected between histories.
const garbage = 32 << 20

// run runs a history in a bubble of its own.
func run(t *testing.T, p Plan, trace bool) (r Result) {
	t.Helper()
	synctest.Test(t, func(*testing.T) { r = Run(p, trace) })
	var memory runtime.MemStats
	if runtime.ReadMemStats(&memory); memory.HeapAlloc > garbage {
		runtime.GC()
	}
	return r
}

func TestHistories(t *testing.T) {
	t.Parallel()
	began := time.Now()
	steps, issued, jobs := 0, 0, 0
	for i := range *count {
		p := Draw(*seed+uint64(i), *commands)
		r := run(t, p, *story)
		steps, issued, jobs = steps+r.Steps, issued+r.Commands, jobs+r.Jobs
		if *story {
			fmt.Println(r.Story)
		}
		if len(r.Findings) > 0 {
			report(t, p, r)
		}
	}
	t.Logf("%d histories, %d commands, %d executions, %d calls of the store in %v", *count, issued, jobs, steps, time.Since(began))
}

// kept are the seeds of histories, without moves of streams, that found a fault, with what it was.
var kept = map[uint64]string{
	1245: "a claim asked again and again for the best rows of several queues, which a frozen process held, and nothing behind them was served",
	5295: "looks at a lane without a free place were repeated without a pause for as long as a frozen process held a row of another queue",
	5337: "queues whose rows a frozen process held looked empty, were forgotten and found again without a pause",
}

func TestHistoriesThatFoundAFaultFindNoneAnyMore(t *testing.T) {
	t.Parallel()
	for s, what := range kept {
		if r := run(t, draw(s, 200), false); len(r.Findings) > 0 {
			t.Errorf("seed %d (%s): %s", s, what, strings.Join(r.Findings, "\n"))
		}
	}
}

// report shows a finding with its seed, and a shorter history that has it if that was asked for.
func report(t *testing.T, p Plan, r Result) {
	t.Helper()
	t.Errorf("seed %d: %s", p.Seed, strings.Join(r.Findings, "\n"))
	if !*shrink {
		return
	}
	short, last := Shrink(p, func(p Plan) Result { return run(t, p, true) }, 200)
	if len(last.Findings) > 0 {
		t.Errorf("seed %d fails with %d of %d moves: %s\n%s\n%s", p.Seed, len(short.Moves), len(p.Moves), short, strings.Join(last.Findings, "\n"), last.Story)
	}
}

// What a seed decides is the plan: which moves there are, and what each draws.
func TestTheSameSeedGivesTheSamePlan(t *testing.T) {
	t.Parallel()
	for s := range uint64(50) {
		if a, b := Draw(s, 200).String(), Draw(s, 200).String(); a != b {
			t.Fatalf("seed %d: two plans:\n%s\n%s", s, a, b)
		}
	}
}

func TestAPlanThatFailsIsShortenedToTheMovesThatItTakes(t *testing.T) {
	t.Parallel()
	p := Draw(3, 200)
	var needed []Move
	for i := range 3 {
		needed = append(needed, p.Moves[20+60*i])
	}
	fails := func(p Plan) (r Result) {
		found := 0
		for _, m := range p.Moves {
			if found < len(needed) && m == needed[found] {
				found++
			}
		}
		if found == len(needed) {
			r.Findings = []string{"I0: found"}
		}
		return r
	}
	short, last := Shrink(p, fails, 1000)
	if len(short.Moves) != len(needed) || len(last.Findings) != 1 {
		t.Fatalf("%d moves are left: %s", len(short.Moves), short)
	}
}
