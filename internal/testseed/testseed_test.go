package testseed_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/testseed"
)

func draws(t *testing.T, check func(*testing.T, func(*rapid.T))) (all []uint64) {
	t.Helper()
	check(t, func(rt *rapid.T) { all = append(all, rapid.Uint64().Draw(rt, "n"), rapid.Uint64().Draw(rt, "m")) })
	return all
}

func TestACheckDrawsTheSameCasesEachTime(t *testing.T) {
	t.Parallel()
	first, second := draws(t, testseed.Check), draws(t, testseed.Check)
	if len(first) == 0 || !slices.Equal(first, second) {
		t.Errorf("two checks drew different cases")
	}
}

func TestRoundsDrawOtherCasesUntilNothingIsMissing(t *testing.T) {
	t.Parallel()
	rounds := 0
	perRound := map[int][]uint64{}
	missing := func() []string {
		if rounds++; rounds < 3 {
			return []string{"something"}
		}
		return nil
	}
	testseed.Rounds(t, 1, 10, missing, func(rt *rapid.T) {
		perRound[rounds] = append(perRound[rounds], rapid.Uint64().Draw(rt, "n"))
	})
	if len(perRound) != 3 {
		t.Fatalf("%d rounds, want 3", len(perRound))
	}
	if slices.Equal(perRound[0], perRound[1]) || slices.Equal(perRound[1], perRound[2]) {
		t.Error("a round repeated the cases of another")
	}
}

func TestStreamsDependOnSeedAndNameAlone(t *testing.T) {
	t.Parallel()
	a, again, other, later := testseed.Stream(1, "a"), testseed.Stream(1, "a"), testseed.Stream(1, "b"), testseed.Stream(2, "a")
	x := a.Uint64()
	if x != again.Uint64() {
		t.Error("the same seed and name gave other numbers")
	}
	if x == other.Uint64() || x == later.Uint64() {
		t.Error("another seed or name gave the same numbers")
	}
}
