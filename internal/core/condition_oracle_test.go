package core

import (
	"math/bits"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core/condition"
)

// The oracle says once more what section 4 says, in another way: it picks signals out of the set of all of them. What counts as
// distinct is a relation between two signals, and a Count is as large as the largest choice of signals that pairwise differ.

func oraclePasses(c *condition.Condition, s condition.Evidence) bool {
	if !slices.Contains(c.Waitpoints, s.WaitpointKey) || c.Matcher.Named && c.Matcher.Name != s.Name {
		return false
	}
	return c.SourceTypes == nil || slices.Contains(c.SourceTypes, s.SourceType)
}

func oracleDiffer(kind condition.CountKind, s, other condition.Evidence) bool {
	human := func(sourceType string) bool { return sourceType == "operator" || sourceType == "approver" }
	switch kind {
	case condition.CountDistinctWaitpoints:
		return s.WaitpointKey != other.WaitpointKey
	case condition.CountDistinctSignals:
		return s.SignalID != other.SignalID
	case condition.CountDistinctSources:
		sameType := s.SourceType == other.SourceType || human(s.SourceType) && human(other.SourceType)
		return !sameType || s.SourceIdentity != other.SourceIdentity
	default:
		return false
	}
}

// oracleProgress tries every choice.
func oracleProgress(c *condition.Condition, signals []condition.Evidence) int {
	if c.Kind == condition.Single {
		if slices.ContainsFunc(signals, func(s condition.Evidence) bool { return oraclePasses(c, s) }) {
			return 1
		}
		return 0
	}
	best := 0
	for choice := range 1 << len(signals) {
		if bits.OnesCount(uint(choice)) > best && oracleAllows(c, signals, choice) {
			best = bits.OnesCount(uint(choice))
		}
	}
	return best
}

func oracleAllows(c *condition.Condition, signals []condition.Evidence, choice int) bool {
	for i := range signals {
		if choice>>i&1 == 0 {
			continue
		}
		if !oraclePasses(c, signals[i]) {
			return false
		}
		for j := range i {
			if choice>>j&1 == 1 && !oracleDiffer(c.CountKind, signals[i], signals[j]) {
				return false
			}
		}
	}
	return true
}

func oracleMet(c *condition.Condition, signals []condition.Evidence) bool {
	switch c.Kind {
	case condition.Single, condition.Count:
		return oracleProgress(c, signals) >= max(c.N, 1)
	case condition.AllOf:
		unmet := slices.ContainsFunc(c.Members, func(m condition.Condition) bool { return !oracleMet(&m, signals) })
		return len(c.Members) > 0 && !unmet
	case condition.AnyOf:
		return slices.ContainsFunc(c.Members, func(m condition.Condition) bool { return oracleMet(&m, signals) })
	default:
		return false
	}
}

// oracleLeaves lists Single and Count nodes, a stack in place of recursion.
func oracleLeaves(c *condition.Condition) []*condition.Condition {
	var leaves []*condition.Condition
	for left := []*condition.Condition{c}; len(left) > 0; {
		node := left[0]
		left = left[1:]
		if node.Kind == condition.Single || node.Kind == condition.Count {
			leaves = append(leaves, node)
		}
		for i := range node.Members {
			left = slices.Insert(left, i, &node.Members[i])
		}
	}
	return leaves
}

// oracleEffect compares the state before with the state after, each evaluated from nothing.
func oracleEffect(c *condition.Condition, before []condition.Evidence, signal condition.Evidence) condition.SignalEffect {
	after := append(slices.Clone(before), signal)
	mentioned, matched, grew := false, false, false
	for _, leaf := range oracleLeaves(c) {
		mentioned = mentioned || slices.Contains(leaf.Waitpoints, signal.WaitpointKey)
		matched = matched || oraclePasses(leaf, signal)
		grew = grew || oracleProgress(leaf, after) > oracleProgress(leaf, before)
	}
	switch {
	case !oracleMet(c, before) && oracleMet(c, after):
		return condition.EffectSatisfied
	case matched && grew:
		return condition.EffectAppended
	case matched:
		return condition.EffectRepeated
	case mentioned:
		return condition.EffectNotMatched
	default:
		return condition.EffectNotMentioned
	}
}
