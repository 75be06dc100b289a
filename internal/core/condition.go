package core

import (
	"encoding/json"
	"slices"
)

// Condition says which signals end a suspension (W39..W43). It is one node of a tree and, with its members, the tree itself.
// ParseCondition makes it from a caller's JSON, DecodeCondition from what Canonical wrote. Evaluate and all the questions
// below want a tree in which every Single has its key: see WithPrimary.
type Condition struct {
	Kind        ConditionKind
	Members     []Condition // of AllOf and AnyOf
	Waitpoints  []string    // the keys: of Single one, or none for the key of the primary binding; of Count the listed ones
	Matcher     Matcher     // of Single and Count
	N           int         // of Count: how many distinct things are enough
	CountKind   CountKind   // of Count: what is distinct
	SourceTypes []string    // of Count: only signals of these source types count; empty: all do
	foreign     json.RawMessage
}

// ConditionKind is a row of the first table of section 4. The zero kind is that of a stored node which this program does not
// know: it is never satisfied (W40) and is written back as it was read.
type ConditionKind uint8

// The kinds of conditions.
const (
	ConditionUnknown ConditionKind = iota
	ConditionSingle
	ConditionOperatorOnly
	ConditionTimeoutOnly
	ConditionAllOf
	ConditionAnyOf
	ConditionCount
)

var conditionNames = [...]string{"", "single", "operator_only", "timeout_only", "all_of", "any_of", "count"}

// String is the word of U29.
func (k ConditionKind) String() string { return word(conditionNames[:], int(k)) }

// CountKind is what a Count node holds apart: a row of the second table of section 4. The zero kind counts nothing.
type CountKind uint8

// The kinds of counting.
const (
	CountUnknown CountKind = iota
	CountDistinctWaitpoints
	CountDistinctSignals
	CountDistinctSources
)

var countKindNames = [...]string{"", "distinct_waitpoints", "distinct_signals", "distinct_sources"}

// String is the word of U29.
func (k CountKind) String() string { return word(countKindNames[:], int(k)) }

// Matcher lets signals pass by their name (W39). The zero Matcher is the wildcard: it lets all pass.
type Matcher struct {
	Named bool
	Name  string // "" unless Named
}

// ByName is the matcher for one name, exact and case-sensitive.
func ByName(name string) Matcher { return Matcher{Named: true, Name: name} }

func (m Matcher) passes(name string) bool { return !m.Named || m.Name == name }

// Marks among the required signal names of a waitpoint (W42).
const (
	operatorOnlyMark = "__operator_only__"
	timeoutOnlyMark  = "__timeout_only__"
)

// composite reports whether the node counts for the depth (W41).
func (c *Condition) composite() bool {
	return c.Kind == ConditionAllOf || c.Kind == ConditionAnyOf || c.Kind == ConditionCount
}

// leaf reports whether the node looks at signals. A Count that cannot tell what is distinct does not.
func (c *Condition) leaf() bool {
	return c.Kind == ConditionSingle || c.Kind == ConditionCount && CountUnknown < c.CountKind && int(c.CountKind) < len(countKindNames)
}

// branches are the members of a node that has any.
func (c *Condition) branches() []Condition {
	if c.Kind == ConditionAllOf || c.Kind == ConditionAnyOf {
		return c.Members
	}
	return nil
}

// visit calls each for every node, a node before its members.
func (c *Condition) visit(each func(*Condition)) {
	each(c)
	members := c.branches()
	for i := range members {
		members[i].visit(each)
	}
}

// Leaves lists the Single and Count nodes in the order in which Progress tells of them.
func (c *Condition) Leaves() []*Condition {
	var leaves []*Condition
	c.visit(func(node *Condition) {
		if node.leaf() {
			leaves = append(leaves, node)
		}
	})
	return leaves
}

// Keys lists the waitpoint keys that the tree names, first seen first, without repeats.
func (c *Condition) Keys() []string {
	var keys []string
	seen := map[string]bool{}
	for _, node := range c.Leaves() {
		for _, key := range node.Waitpoints {
			if !seen[key] {
				seen[key] = true
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// RequiredNames lists the signal names that a waitpoint of that key asks for, first seen first, without repeats; none means
// any (W42).
func (c *Condition) RequiredNames(key string) []string {
	var names []string
	add := func(name string) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	c.visit(func(node *Condition) {
		switch {
		case node.Kind == ConditionOperatorOnly:
			add(operatorOnlyMark)
		case node.Kind == ConditionTimeoutOnly:
			add(timeoutOnlyMark)
		case node.leaf() && node.Matcher.Named && slices.Contains(node.Waitpoints, key):
			add(node.Matcher.Name)
		}
	})
	return names
}

// BindsNothing reports whether the condition is just OperatorOnly or TimeoutOnly: then a suspend needs no binding (W46), and
// bindings need no node that mentions them (W47).
func (c *Condition) BindsNothing() bool {
	return c.Kind == ConditionOperatorOnly || c.Kind == ConditionTimeoutOnly
}

// HasTimeoutOnly reports whether a TimeoutOnly stands anywhere in the tree: then the suspension needs a timeout (W47).
func (c *Condition) HasTimeoutOnly() bool {
	found := false
	c.visit(func(node *Condition) { found = found || node.Kind == ConditionTimeoutOnly })
	return found
}

// FreshKey is the waitpoint key of a Fresh binding that gives none: the key of the condition when the binding is the only one
// and the condition names exactly one, else one made of the waitpoint's id (W45).
func (c *Condition) FreshKey(onlyBinding bool, waitpoint UUID) string {
	if onlyBinding {
		if keys := c.Keys(); len(keys) == 1 {
			return keys[0]
		}
	}
	return "wpk:" + waitpoint.String()
}

// WithPrimary is the condition with the key of the primary binding in every Single that gives none. c is not changed; the
// parts that stay the same are shared.
func (c *Condition) WithPrimary(key string) *Condition {
	resolved := *c
	if c.Kind == ConditionSingle && len(c.Waitpoints) == 0 {
		resolved.Waitpoints = []string{key}
	}
	resolved.Members = slices.Clone(c.branches())
	for i := range resolved.Members {
		resolved.Members[i] = *c.Members[i].WithPrimary(key)
	}
	return &resolved
}
