package condition

import (
	"encoding/json"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Condition states which signals end a suspension (W39..W43). It is one node of a tree and, with its members, the tree itself. Parse reads
// it from a caller's JSON, Decode from the output of Canonical. Evaluate and the methods below require a tree in which every Single has
// its key: see WithPrimary.
type Condition struct {
	Kind        Kind
	Members     []Condition // of AllOf and AnyOf
	Waitpoints  []string    // the keys: for Single one, or none for the key of the primary binding; for Count the listed ones
	Matcher     Matcher     // of Single and Count
	N           int         // of Count: the required number of distinct things
	CountKind   CountKind   // of Count: what is distinct
	SourceTypes []string    // of Count: only signals of these source types count; empty: all do
	foreign     json.RawMessage
}

// Kind is a row of the first table of section 4. The zero kind is a stored node that this program does not know: it is never satisfied
// (W40) and is written back as it was read.
type Kind uint8

// The kinds of conditions.
const (
	Unknown Kind = iota
	Single
	OperatorOnly
	TimeoutOnly
	AllOf
	AnyOf
	Count
)

var conditionNames = [...]string{"", "single", "operator_only", "timeout_only", "all_of", "any_of", "count"}

// String is the word of U29.
func (k Kind) String() string { return base.NameOf(conditionNames[:], int(k)) }

// CountKind states what a Count node counts as distinct: a row of the second table of section 4. The zero kind counts nothing.
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
func (k CountKind) String() string { return base.NameOf(countKindNames[:], int(k)) }

// Matcher selects signals by name (W39). The zero Matcher is the wildcard and matches all.
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

// composite reports whether the node counts towards the depth (W41).
func (c *Condition) composite() bool {
	return c.Kind == AllOf || c.Kind == AnyOf || c.Kind == Count
}

// leaf reports whether the node evaluates signals. A Count with an unknown count kind does not.
func (c *Condition) leaf() bool {
	return c.Kind == Single || c.Kind == Count && CountUnknown < c.CountKind && int(c.CountKind) < len(countKindNames)
}

// branches returns the members of a node that has any.
func (c *Condition) branches() []Condition {
	if c.Kind == AllOf || c.Kind == AnyOf {
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

// Leaves lists the Single and Count nodes in the order of Progress.
func (c *Condition) Leaves() []*Condition {
	var leaves []*Condition
	c.visit(func(node *Condition) {
		if node.leaf() {
			leaves = append(leaves, node)
		}
	})
	return leaves
}

// Keys lists the waitpoint keys named in the tree, in order of first occurrence, without repeats.
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

// RequiredNames lists the signal names that a waitpoint with that key requires, in order of first occurrence, without repeats; none means any
// (W42).
func (c *Condition) RequiredNames(key string) []string {
	var names []string
	add := func(name string) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	c.visit(func(node *Condition) {
		switch {
		case node.Kind == OperatorOnly:
			add(operatorOnlyMark)
		case node.Kind == TimeoutOnly:
			add(timeoutOnlyMark)
		case node.leaf() && node.Matcher.Named && slices.Contains(node.Waitpoints, key):
			add(node.Matcher.Name)
		}
	})
	return names
}

// BindsNothing reports whether the condition is just OperatorOnly or TimeoutOnly: then a suspend needs no binding (W46), and bindings need not be
// mentioned by a node (W47).
func (c *Condition) BindsNothing() bool {
	return c.Kind == OperatorOnly || c.Kind == TimeoutOnly
}

// HasTimeoutOnly reports whether the tree contains a TimeoutOnly: then the suspension needs a timeout (W47).
func (c *Condition) HasTimeoutOnly() bool {
	found := false
	c.visit(func(node *Condition) { found = found || node.Kind == TimeoutOnly })
	return found
}

// FreshKey returns the waitpoint key of a Fresh binding without one: the key of the condition if the binding is the only one and the condition
// names exactly one, else a key made from the waitpoint's id (W45).
func (c *Condition) FreshKey(onlyBinding bool, waitpoint base.UUID) string {
	if onlyBinding {
		if keys := c.Keys(); len(keys) == 1 {
			return keys[0]
		}
	}
	return "wpk:" + waitpoint.String()
}

// WithPrimary returns the condition with the key of the primary binding in every Single without a key. c is not changed; unchanged parts are
// shared.
func (c *Condition) WithPrimary(key string) *Condition {
	resolved := *c
	if c.Kind == Single && len(c.Waitpoints) == 0 {
		resolved.Waitpoints = []string{key}
	}
	resolved.Members = slices.Clone(c.branches())
	for i := range resolved.Members {
		resolved.Members[i] = *c.Members[i].WithPrimary(key)
	}
	return &resolved
}
