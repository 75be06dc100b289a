package flowfabrictest

import (
	"slices"
	"testing"
)

// Explore runs the scenario once without a crash, and then once with each crash point that it reached, each time in a new
// environment; heartbeats, which concern no execution, are left out. The scenario checks its own invariants. It must give
// crashed work time to be taken over: a lease lasts 30 s unless the worker sets another duration.
func Explore(t *testing.T, scenario func(t *testing.T, env *Env)) {
	t.Helper()
	var met []CrashPoint
	whole := t.Run("no crash", func(t *testing.T) {
		env := New(t)
		scenario(t, env)
		met = slices.DeleteFunc(env.points.seen(), upkeep)
	})
	if !whole {
		return
	}
	for _, point := range met {
		t.Run(point.String(), func(t *testing.T) {
			env := New(t)
			crash := env.CrashAt(point)
			scenario(t, env)
			if !crash.Hit() {
				t.Logf("%s was not reached again", point)
			}
		})
	}
}

// upkeep reports whether a point is one of signs of life, which concern no execution. A heartbeat is written only if no claim was at the same moment,
// so that some runs would have the point and others not.
func upkeep(p CrashPoint) bool {
	return p == BeforeCommit("heartbeat") || p == AfterCommit("heartbeat")
}
