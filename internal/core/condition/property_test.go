package condition

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

// A generator keeps its name once it was asked for it, so that tests which run beside each other have each their own.
func drawnKeys() *rapid.Generator[string]  { return rapid.SampledFrom([]string{"a", "b", "c"}) }
func drawnNames() *rapid.Generator[string] { return rapid.SampledFrom([]string{"ok", "no"}) }
func drawnTypes() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{"operator", "approver", "external"})
}

func drawMatcher(t *rapid.T) Matcher {
	if rapid.Bool().Draw(t, "named") {
		return ByName(drawnNames().Draw(t, "name"))
	}
	return Matcher{}
}

// drawCondition draws a tree of at most so many composite nodes on a path. Count nodes are frequent, so that trees have several
// of one kind.
func drawCondition(t *rapid.T, depth int) Condition {
	kinds := []Kind{Single, OperatorOnly, TimeoutOnly, Unknown}
	if depth > 0 {
		kinds = []Kind{Single, Count, Count, AllOf, AllOf, AnyOf, AnyOf, TimeoutOnly}
	}
	c := Condition{Kind: rapid.SampledFrom(kinds).Draw(t, "kind")}
	switch c.Kind {
	case Unknown:
		c.foreign = []byte(`{"type":"newer"}`)
	case Single:
		c.Waitpoints, c.Matcher = []string{drawnKeys().Draw(t, "key")}, drawMatcher(t)
	case Count:
		c.Waitpoints = rapid.SliceOfNDistinct(drawnKeys(), 1, 3, rapid.ID[string]).Draw(t, "keys")
		c.Matcher = drawMatcher(t)
		c.N = rapid.IntRange(1, 3).Draw(t, "n")
		c.CountKind = rapid.SampledFrom([]CountKind{CountDistinctWaitpoints, CountDistinctSignals, CountDistinctSources}).Draw(t, "kind of counting")
		if rapid.IntRange(0, 3).Draw(t, "filtered") == 0 {
			c.SourceTypes = rapid.SliceOfNDistinct(drawnTypes(), 1, 2, rapid.ID[string]).Draw(t, "source types")
		}
	case AllOf, AnyOf:
		for range rapid.IntRange(0, 3).Draw(t, "members") {
			c.Members = append(c.Members, drawCondition(t, depth-1))
		}
	}
	return c
}

func drawSignals(t *rapid.T) []Evidence {
	one := rapid.Custom(func(t *rapid.T) Evidence {
		return Evidence{
			WaitpointKey:   rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "key"),
			SignalID:       base.UUID{15: rapid.ByteRange(1, 6).Draw(t, "id")},
			Name:           drawnNames().Draw(t, "name"),
			SourceType:     drawnTypes().Draw(t, "source type"),
			SourceIdentity: rapid.SampledFrom([]string{"", "ann", "bob"}).Draw(t, "identity"),
		}
	})
	return rapid.SliceOfN(one, 0, 7).Draw(t, "signals")
}

func TestWI8_evaluation_agrees_with_an_oracle_after_each_signal(t *testing.T) {
	t.Parallel()
	testseed.Check(t, func(t *rapid.T) {
		c := drawCondition(t, MaxConditionDepth)
		signals := drawSignals(t)
		leaves := oracleLeaves(&c)
		chain := c.Evaluate(nil)
		for i := range len(signals) + 1 {
			fresh := c.Evaluate(signals[:i])
			if met := oracleMet(&c, signals[:i]); fresh.Satisfied() != met || chain.Satisfied() != met {
				t.Fatalf("%s with %+v: %v from scratch, %v step by step, want %v", c.Canonical(), signals[:i], fresh.Satisfied(), chain.Satisfied(), met)
			}
			for at, progress := range fresh.Progress() {
				if want := oracleProgress(leaves[at], signals[:i]); progress != want || chain.Progress()[at] != want {
					t.Fatalf("%s with %+v: node %d is at %d, step by step %d, want %d", c.Canonical(), signals[:i], at, progress, chain.Progress()[at], want)
				}
			}
			if i == len(signals) {
				return
			}
			want := oracleEffect(&c, signals[:i], signals[i])
			if got, again := chain.Add(signals[i]), fresh.Add(signals[i]); got != want || again != want {
				t.Fatalf("%s after %+v: the effect of %+v is %s step by step and %s from scratch, want %s", c.Canonical(), signals[:i], signals[i], got, again, want)
			}
			if fresh.Matches(signals[i]) != want.Matched() {
				t.Fatalf("%s: %+v is matched %v with the effect %s", c.Canonical(), signals[i], !want.Matched(), want)
			}
		}
	})
}

func TestWI8_the_order_of_signals_does_not_matter(t *testing.T) {
	t.Parallel()
	testseed.Check(t, func(t *rapid.T) {
		c := drawCondition(t, MaxConditionDepth)
		signals := drawSignals(t)
		other := rapid.Permutation(signals).Draw(t, "other order")
		one, two := c.Evaluate(signals), c.Evaluate(other)
		if one.Satisfied() != two.Satisfied() || !slices.Equal(one.Progress(), two.Progress()) {
			t.Fatalf("%s: %v %v in one order, %v %v in another", c.Canonical(), one.Satisfied(), one.Progress(), two.Satisfied(), two.Progress())
		}
	})
}

func TestWI8_more_signals_never_undo_what_is_met(t *testing.T) {
	t.Parallel()
	testseed.Check(t, func(t *rapid.T) {
		c := drawCondition(t, MaxConditionDepth)
		signals := drawSignals(t)
		some := rapid.SliceOfN(rapid.Bool(), len(signals), len(signals)).Draw(t, "which")
		var fewer []Evidence
		for i, signal := range signals {
			if some[i] {
				fewer = append(fewer, signal)
			}
		}
		less, more := c.Evaluate(fewer), c.Evaluate(signals)
		if less.Satisfied() && !more.Satisfied() {
			t.Fatalf("%s is met by %+v and not by %+v", c.Canonical(), fewer, signals)
		}
		for i, progress := range more.Progress() {
			if less.Progress()[i] > progress {
				t.Fatalf("%s: node %d went back", c.Canonical(), i)
			}
		}
	})
}

func TestWI8_evaluating_changes_neither_condition_nor_signals(t *testing.T) {
	t.Parallel()
	testseed.Check(t, func(t *rapid.T) {
		c := drawCondition(t, MaxConditionDepth)
		signals := drawSignals(t)
		text, given := string(c.Canonical()), slices.Clone(signals)
		first := c.Evaluate(signals)
		second := c.Evaluate(signals)
		if first.Satisfied() != second.Satisfied() || !slices.Equal(first.Progress(), second.Progress()) {
			t.Fatalf("%s: two answers", text)
		}
		if string(c.Canonical()) != text || !slices.Equal(signals, given) {
			t.Fatalf("%s was changed", text)
		}
	})
}

func TestW40_a_condition_means_the_same_after_it_was_stored(t *testing.T) {
	t.Parallel()
	testseed.Check(t, func(t *rapid.T) {
		c := drawCondition(t, MaxConditionDepth)
		signals := drawSignals(t)
		stored := must[*Condition](t)(Decode(c.Canonical()))
		if !sameCondition(&c, stored) {
			t.Fatalf("%s came back as %+v", c.Canonical(), stored)
		}
		if c.Evaluate(signals).Satisfied() != stored.Evaluate(signals).Satisfied() {
			t.Fatalf("%s means something else now", c.Canonical())
		}
	})
}

// A run in which conditions are hardly ever met, or always, would prove little.
func TestWI8_the_drawn_conditions_are_met_and_unmet_and_have_every_effect(t *testing.T) {
	t.Parallel()
	effects := map[SignalEffect]int{}
	several := 0
	look := func(t *rapid.T) {
		c := drawCondition(t, MaxConditionDepth)
		e := c.Evaluate(nil)
		for _, signal := range drawSignals(t) {
			effects[e.Add(signal)]++
		}
		counts := map[CountKind]int{}
		for _, leaf := range c.Leaves() {
			if counts[leaf.CountKind]++; leaf.Kind == Count && counts[leaf.CountKind] == 2 {
				several++
			}
		}
	}
	missing := func() (names []string) {
		for _, effect := range []SignalEffect{EffectSatisfied, EffectAppended, EffectRepeated, EffectNotMatched, EffectNotMentioned} {
			if effects[effect] == 0 {
				names = append(names, "a signal with the effect "+string(effect))
			}
		}
		if several == 0 {
			names = append(names, "a condition with two Count nodes of one kind")
		}
		return names
	}
	testseed.Rounds(t, 1, 50, missing, look)
}
