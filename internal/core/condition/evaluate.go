package condition

import (
	"slices"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Evidence is the part of a stored signal that a condition evaluates.
type Evidence struct {
	WaitpointKey   string
	SignalID       base.UUID
	Name           string
	SourceType     string
	SourceIdentity string
}

// Source types that only the engine sets (section 6).
const (
	SourceOperator = "operator"
	SourceApprover = "approver"
	SourceEngine   = "engine"
)

// SignalEffect is what a signal did (W61). The words are stored and shown.
type SignalEffect string

// The effects of W61.
const (
	EffectBuffered     SignalEffect = "buffered_for_pending_waitpoint"
	EffectSatisfied    SignalEffect = "resume_condition_satisfied"
	EffectAppended     SignalEffect = "appended_to_waitpoint"
	EffectRepeated     SignalEffect = "appended_to_waitpoint_duplicate"
	EffectNotMatched   SignalEffect = "signal_ignored_matcher_failed"
	EffectNotMentioned SignalEffect = "signal_ignored_not_in_condition"
)

// Matched reports whether a node matched the signal (W43). A buffered signal has not been evaluated.
func (e SignalEffect) Matched() bool {
	return e == EffectSatisfied || e == EffectAppended || e == EffectRepeated
}

// Evaluation is the evaluation of a condition over signals. It lives for one command and is computed from the stored signals each time. None of it
// is stored, so it cannot become inconsistent (W40).
type Evaluation struct {
	condition *Condition
	leaves    []leafTally
	mentions  map[string][]mention // by waitpoint key
	signals   map[base.UUID]int    // signals and sources by number, in order of appearance
	sources   map[source]int
}

// mention states that a leaf lists a key, and at which place.
type mention struct{ leaf, place int }

// source identifies what counts once among distinct sources.
type source struct{ sourceType, identity string }

// leafTally is the progress of one Single or Count node. Each leaf counts separately.
type leafTally struct {
	node        *Condition
	sourceTypes map[string]bool // nil: all
	seen        []uint64        // a bit for each number that was counted
	progress    int
}

// Evaluate evaluates the stored signals of all waitpoints of the suspension, in any order. Every Single must have its key: see WithPrimary.
func (c *Condition) Evaluate(stored []Evidence) *Evaluation {
	e := &Evaluation{condition: c, mentions: map[string][]mention{}, signals: map[base.UUID]int{}, sources: map[source]int{}}
	for i, node := range c.Leaves() {
		e.leaves = append(e.leaves, leafTally{node: node, sourceTypes: base.SetOf(node.SourceTypes)})
		for place, key := range node.Waitpoints {
			e.mention(key, mention{i, place})
		}
	}
	for i := range stored {
		e.note(&stored[i])
	}
	return e
}

// mention records that a leaf lists a key, once.
func (e *Evaluation) mention(key string, m mention) {
	already := e.mentions[key]
	if len(already) == 0 || already[len(already)-1].leaf != m.leaf {
		e.mentions[key] = append(already, m)
	}
}

// Add adds one more signal and returns its effect on an active waitpoint (W61). The signal that satisfies the condition is the last one with an
// effect; any later one is appended.
func (e *Evaluation) Add(signal Evidence) SignalEffect {
	before := e.Satisfied()
	matched, grew := e.note(&signal)
	switch {
	case len(e.mentions[signal.WaitpointKey]) == 0:
		return EffectNotMentioned
	case !matched:
		return EffectNotMatched
	case !grew:
		return EffectRepeated
	case !before && e.Satisfied():
		return EffectSatisfied
	default:
		return EffectAppended
	}
}

// note counts a signal in every leaf that matches it.
func (e *Evaluation) note(signal *Evidence) (matched, grew bool) {
	for _, m := range e.mentions[signal.WaitpointKey] {
		leaf := &e.leaves[m.leaf]
		if leaf.passes(signal) {
			matched = true
			grew = leaf.count(e.number(leaf.node, m, signal)) || grew
		}
	}
	return matched, grew
}

// Matches reports whether a Single or Count node that mentions the signal's key matches the signal (W43).
func (e *Evaluation) Matches(signal Evidence) bool {
	return slices.ContainsFunc(e.mentions[signal.WaitpointKey], func(m mention) bool { return e.leaves[m.leaf].passes(&signal) })
}

// passes is the rule of W39.
func (l *leafTally) passes(signal *Evidence) bool {
	return l.node.Matcher.passes(signal.Name) && (l.sourceTypes == nil || l.sourceTypes[signal.SourceType])
}

// number returns which of the distinct things of the node the signal is. For a Single all signals are the same thing.
func (e *Evaluation) number(node *Condition, m mention, signal *Evidence) int {
	switch {
	case node.Kind == Single:
		return 0
	case node.CountKind == CountDistinctWaitpoints:
		return m.place
	case node.CountKind == CountDistinctSignals:
		return numberOf(e.signals, signal.SignalID)
	default:
		return numberOf(e.sources, sourceOf(signal))
	}
}

// sourceOf merges operator and approver: the same name in the console and on a link is one person, however it is spelled (see SamePerson).
func sourceOf(signal *Evidence) source {
	if signal.SourceType == SourceApprover || signal.SourceType == SourceOperator {
		return source{SourceOperator, base.SamePerson(signal.SourceIdentity)}
	}
	return source{signal.SourceType, signal.SourceIdentity}
}

// numberOf numbers things in order of first appearance.
func numberOf[K comparable](numbers map[K]int, thing K) int {
	n, known := numbers[thing]
	if !known {
		n = len(numbers)
		numbers[thing] = n
	}
	return n
}

// count reports whether the number is new.
func (l *leafTally) count(number int) bool {
	word, bit := number/64, uint64(1)<<(number%64)
	for len(l.seen) <= word {
		l.seen = append(l.seen, 0)
	}
	if l.seen[word]&bit != 0 {
		return false
	}
	l.seen[word] |= bit
	l.progress++
	return true
}

// Satisfied reports whether the condition is met (W40).
func (e *Evaluation) Satisfied() bool {
	leaves := e.leaves
	return e.condition.met(&leaves)
}

// met takes the tallies of its leaves from the front of the list. It visits every member, since each takes its own.
func (c *Condition) met(leaves *[]leafTally) bool {
	if c.leaf() {
		progress := (*leaves)[0].progress
		*leaves = (*leaves)[1:]
		return c.Kind == Single && progress > 0 || c.Kind == Count && c.N > 0 && progress >= c.N
	}
	met := 0
	members := c.branches()
	for i := range members {
		if members[i].met(leaves) {
			met++
		}
	}
	if c.Kind == AllOf {
		return met > 0 && met == len(members)
	}
	return met > 0
}

// Progress returns the progress of each node of Leaves: 1 or 0 for Single, the distinct count for Count (W43).
func (e *Evaluation) Progress() []int {
	progress := make([]int, len(e.leaves))
	for i, leaf := range e.leaves {
		progress[i] = leaf.progress
	}
	return progress
}
