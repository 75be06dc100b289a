// Package testseed supplies the random numbers of tests.
//
// The test suite decides whether a change lands, so it must give the same verdict each time: its random tests draw from a fixed seed.
// The search for new faults sets [Variable] to "random" and draws from a fresh seed in each run; a fault it finds becomes a fixed test.
package testseed

import (
	"flag"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// Variable is the environment variable that overrides the seed of the suite: a decimal number, or "random" for a fresh seed in each test.
const Variable = "FLOWFABRIC_TEST_SEED"

// fixed is the seed of the suite. Another value is as good; it must only stay the same.
const fixed = 1

// fresh reports whether the environment asks for fresh seeds.
func fresh() bool { return os.Getenv(Variable) == "random" }

// Seed returns the seed of a test and logs it, so that a failure can be repeated with Variable.
func Seed(tb testing.TB) uint64 {
	tb.Helper()
	seed := uint64(fixed)
	if fresh() {
		seed = rand.Uint64()
	} else if text := os.Getenv(Variable); text != "" {
		given, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			tb.Fatalf("%s=%q is neither a number nor \"random\"", Variable, text)
		}
		seed = given
	}
	tb.Logf("random numbers: %s=%d", Variable, seed)
	return seed
}

// Stream returns random numbers of a test. Streams of different names and seeds are independent; the same name and seed always give the
// same numbers. The result must not be used by several goroutines at once: give each a name of its own.
func Stream(seed uint64, name string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // never fails
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// New returns the random numbers of a test that needs one stream.
func New(tb testing.TB) *rand.Rand {
	tb.Helper()
	return Stream(Seed(tb), tb.Name())
}

// Check is rapid.Check with the seed of the suite. The flag -rapid.seed, with which rapid asks to repeat a failure, takes precedence.
func Check(t *testing.T, property func(*rapid.T)) {
	t.Helper()
	fixRapid(t)
	rapid.Check(t, property)
}

// Rounds checks a property in rounds of rapid's number of cases, at least least (1 or more) and at most most of them, until missing returns
// nothing. It fails for what is missing after the last round: a test that never saw a thing proves nothing about it.
func Rounds(t *testing.T, least, most int, missing func() []string, property func(*rapid.T)) {
	t.Helper()
	fixRapid(t)
	if testing.Short() {
		most *= 5 // rapid makes a fifth of the cases then
	}
	var unseen []string
	for round := 0; round < most && (round < least || len(unseen) > 0) && !t.Failed(); round++ {
		rapid.Check(t, func(rt *rapid.T) {
			// From one seed rapid draws the same cases in every round. Numbers taken off the front make them others.
			for range round {
				_ = rapid.Uint64().Draw(rt, "round")
			}
			property(rt)
		})
		unseen = missing()
		t.Logf("round %d: not seen yet: %q", round+1, unseen)
	}
	for _, what := range unseen {
		t.Errorf("%s: never, so that the test proves nothing about it", what)
	}
}

// Example draws one value of a generator; the same number always gives the same value.
func Example[V any](t *testing.T, g *rapid.Generator[V], number int) V {
	t.Helper()
	fixRapid(t)
	return g.Example(number)
}

// setRapid gives rapid the seed of the suite. rapid keeps its seed in a flag that it reads without a lock, so the flag is set once, before
// the first use of rapid in the process: every use goes through this package.
var setRapid = sync.OnceValue(func() error {
	given := flag.Lookup("rapid.seed").Value.String()
	if given != "0" || fresh() {
		return nil
	}
	seed := os.Getenv(Variable)
	if seed == "" {
		seed = strconv.Itoa(fixed)
	}
	return flag.Set("rapid.seed", seed)
})

func fixRapid(t *testing.T) {
	t.Helper()
	if err := setRapid(); err != nil {
		t.Fatalf("%s: %v", Variable, err)
	}
}
