package condition

import (
	"math/bits"
	"slices"
)

// The oracle says once more what section 4 says, in another way: it picks signals out of the set of all of them. What counts as
// distinct is a relation between two signals, and a Count is as large as the largest choice of signals that pairwise differ.

func oraclePasses(c *Condition, s Evidence) bool {
	if !slices.Contains(c.Waitpoints, s.WaitpointKey) || c.Matcher.Named && c.Matcher.Name != s.Name {
		return false
	}
	return c.SourceTypes == nil || slices.Contains(c.SourceTypes, s.SourceType)
}

func oracleDiffer(kind CountKind, s, other Evidence) bool {
	human := func(sourceType string) bool { return sourceType == "operator" || sourceType == "approver" }
	switch kind {
	case CountDistinctWaitpoints:
		return s.WaitpointKey != other.WaitpointKey
	case CountDistinctSignals:
		return s.SignalID != other.SignalID
	case CountDistinctSources:
		sameType := s.SourceType == other.SourceType || human(s.SourceType) && human(other.SourceType)
		return !sameType || s.SourceIdentity != other.SourceIdentity
	default:
		return false
	}
}

// oracleProgress tries every choice.
func oracleProgress(c *Condition, signals []Evidence) int {
	if c.Kind == Single {
		if slices.ContainsFunc(signals, func(s Evidence) bool { return oraclePasses(c, s) }) {
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

func oracleAllows(c *Condition, signals []Evidence, choice int) bool {
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

func oracleMet(c *Condition, signals []Evidence) bool {
	switch c.Kind {
	case Single, Count:
		return oracleProgress(c, signals) >= max(c.N, 1)
	case AllOf:
		unmet := slices.ContainsFunc(c.Members, func(m Condition) bool { return !oracleMet(&m, signals) })
		return len(c.Members) > 0 && !unmet
	case AnyOf:
		return slices.ContainsFunc(c.Members, func(m Condition) bool { return oracleMet(&m, signals) })
	default:
		return false
	}
}

// oracleLeaves lists Single and Count nodes, a stack in place of recursion.
func oracleLeaves(c *Condition) []*Condition {
	var leaves []*Condition
	for left := []*Condition{c}; len(left) > 0; {
		node := left[0]
		left = left[1:]
		if node.Kind == Single || node.Kind == Count {
			leaves = append(leaves, node)
		}
		for i := range node.Members {
			left = slices.Insert(left, i, &node.Members[i])
		}
	}
	return leaves
}

// oracleEffect compares the state before with the state after, each evaluated from nothing.
func oracleEffect(c *Condition, before []Evidence, signal Evidence) SignalEffect {
	after := append(slices.Clone(before), signal)
	mentioned, matched, grew := false, false, false
	for _, leaf := range oracleLeaves(c) {
		mentioned = mentioned || slices.Contains(leaf.Waitpoints, signal.WaitpointKey)
		matched = matched || oraclePasses(leaf, signal)
		grew = grew || oracleProgress(leaf, after) > oracleProgress(leaf, before)
	}
	switch {
	case !oracleMet(c, before) && oracleMet(c, after):
		return EffectSatisfied
	case matched && grew:
		return EffectAppended
	case matched:
		return EffectRepeated
	case mentioned:
		return EffectNotMatched
	default:
		return EffectNotMentioned
	}
}
