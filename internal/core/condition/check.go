package condition

import (
	"math"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Bounds of conditions and of the names in them (W39, W41, section 6).
const (
	MaxConditionDepth = 4 // composite nodes on a path
	MaxConditionNodes = 256
	MaxConditionSize  = 64 << 10 // bytes of the canonical text
	MaxWaitpointKey   = 128
	MaxSignalName     = 128
	MaxSourceType     = 64

	maxCountN = math.MaxInt32
)

// InvalidSuspend is a refusal of W46 or W47.
func InvalidSuspend(reason, field, format string, args ...any) *base.Error {
	return base.Errorf(base.CodeInvalidSuspend, format, args...).WithField(field).With("reason", reason)
}

// Malformed is the reason for faults that have no row in W46: not in the form of a condition, or a text that W11 forbids.
const Malformed = "condition_malformed"

// ReservedPrefix is the prefix of the engine's own names (W11).
const ReservedPrefix = "__"

// CheckKeys checks the lengths of the keys in the condition: invalid_suspend with reason waitpoint_key_empty or waitpoint_key_too_long. It is
// separate from Check because these reasons come before the others in W46.
func (c *Condition) CheckKeys() error {
	empty := func(node *Condition) (string, string) {
		return node.badKey(func(key string) bool { return key == "" }, "must not be empty")
	}
	if path, why := c.search(empty); why != "" {
		return InvalidSuspend("waitpoint_key_empty", path, "%s", why)
	}
	long := func(node *Condition) (string, string) {
		return node.badKey(func(key string) bool { return len(key) > MaxWaitpointKey }, "is too long")
	}
	if path, why := c.search(long); why != "" {
		return InvalidSuspend("waitpoint_key_too_long", path, "%s: at most %d bytes are allowed", why, MaxWaitpointKey)
	}
	return nil
}

// Check returns the first fault of the condition in the order of W46, over the whole tree: invalid_suspend with the reason and the path of the
// member in Field. After the reasons of the table come texts that W11 forbids: condition_malformed, and reserved_name for a key or signal name that
// belongs to the engine. A condition that passes is within MaxConditionDepth, MaxConditionNodes and MaxConditionSize.
func (c *Condition) Check() error {
	if c.deeperThan(MaxConditionDepth) {
		return InvalidSuspend("condition_too_deep", FieldName, "more than %d composite conditions stand inside one another", MaxConditionDepth).
			With("limit", MaxConditionDepth)
	}
	if err := c.checkSize(); err != nil {
		return err
	}
	for _, row := range conditionRows {
		if path, why := c.search(row.find); why != "" {
			return InvalidSuspend(row.reason, path, "%s", why)
		}
	}
	if path, why := c.search((*Condition).malformed); why != "" {
		return InvalidSuspend(Malformed, path, "%s", why)
	}
	if path, why := c.search((*Condition).reserved); why != "" {
		return base.Errorf(base.CodeReservedName, "%s", why).WithField(path)
	}
	return nil
}

// deeperThan stops at the first path that is too long, so that a tree of any depth can be checked.
func (c *Condition) deeperThan(limit int) bool {
	if !c.composite() {
		return false
	}
	if limit == 0 {
		return true
	}
	return slices.ContainsFunc(c.branches(), func(member Condition) bool { return member.deeperThan(limit - 1) })
}

func (c *Condition) checkSize() error {
	nodes := 0
	c.visit(func(*Condition) { nodes++ })
	if nodes > MaxConditionNodes {
		return InvalidSuspend("condition_too_large", FieldName, "%d nodes, at most %d are allowed", nodes, MaxConditionNodes).
			With("limit", MaxConditionNodes)
	}
	if size := len(c.Canonical()); size > MaxConditionSize {
		return InvalidSuspend("condition_too_large", FieldName, "%d bytes of JSON, at most %d are allowed", size, MaxConditionSize).
			With("limit", MaxConditionSize)
	}
	return nil
}

// faultRow is a row of W46 about single nodes.
type faultRow struct {
	reason, member, why string
	fault               func(*Condition) bool
}

func (r faultRow) find(c *Condition) (member, why string) {
	if r.fault(c) {
		return r.member, r.why
	}
	return "", ""
}

var conditionRows = [...]faultRow{
	{"allof_empty_members", "members", "must not be empty", func(c *Condition) bool {
		return c.Kind == AllOf && len(c.Members) == 0
	}},
	{"anyof_empty_members", "members", "must not be empty", func(c *Condition) bool {
		return c.Kind == AnyOf && len(c.Members) == 0
	}},
	{"count_n_zero", "n", "must be at least 1", func(c *Condition) bool {
		return c.Kind == Count && c.N < 1
	}},
	{"count_waitpoints_empty", "waitpoints", "must not be empty", func(c *Condition) bool {
		return c.Kind == Count && len(c.Waitpoints) == 0
	}},
	{"count_waitpoints_duplicate", "waitpoints", "names a key twice", func(c *Condition) bool {
		return c.Kind == Count && len(base.SetOf(c.Waitpoints)) < len(c.Waitpoints)
	}},
	{"count_exceeds_waitpoint_set", "n", "is more than there are waitpoints", func(c *Condition) bool {
		return c.Kind == Count && c.CountKind == CountDistinctWaitpoints && c.N > len(c.Waitpoints)
	}},
	{"matcher_name_empty", "name", "must not be empty: leave it out to match any name", func(c *Condition) bool {
		return c.leaf() && c.Matcher.Named && c.Matcher.Name == ""
	}},
}

// badKey finds the first bad key of the node.
func (c *Condition) badKey(bad func(string) bool, why string) (string, string) {
	for i, key := range c.Waitpoints {
		if bad(key) {
			return c.keyMember(i), why
		}
	}
	return "", ""
}

func (c *Condition) keyMember(i int) string {
	if c.Kind == Single {
		return "waitpoint_key"
	}
	return base.Element("waitpoints", i)
}

// malformed finds faults that only Go callers can make, because Parse refuses them, and texts that W11 forbids.
func (c *Condition) malformed() (string, string) {
	switch {
	case c.Kind == Unknown || int(c.Kind) >= len(conditionNames):
		return "type", "is not a type of condition"
	case c.Kind == Count && !c.leaf():
		return "count_kind", "is not a kind of counting"
	case c.strays():
		return "type", "does not go with what else is given"
	case c.N > maxCountN:
		return "n", "is too large"
	}
	if why := base.CheckPlain(c.Matcher.Name, 0, MaxSignalName); why != "" {
		return "name", why
	}
	for i, key := range c.Waitpoints {
		if why := base.CheckPlain(key, 1, MaxWaitpointKey); why != "" {
			return c.keyMember(i), why
		}
	}
	for i, sourceType := range c.SourceTypes {
		if why := base.CheckPlain(sourceType, 1, MaxSourceType); why != "" {
			return base.Element("source_types", i), why
		}
	}
	return "", ""
}

// strays reports whether the node has a field that its kind does not have. It would be lost when the condition is stored.
func (c *Condition) strays() bool {
	counts := c.N != 0 || c.CountKind != CountUnknown || len(c.SourceTypes) > 0
	looks := c.Matcher != (Matcher{}) || len(c.Waitpoints) > 0
	return counts && c.Kind != Count || looks && !c.leaf() ||
		len(c.Members) > len(c.branches()) ||
		c.Kind == Single && len(c.Waitpoints) > 1 ||
		!c.Matcher.Named && c.Matcher.Name != ""
}

func (c *Condition) reserved() (string, string) {
	why := "names that begin with " + ReservedPrefix + " belong to the engine"
	if strings.HasPrefix(c.Matcher.Name, ReservedPrefix) {
		return "name", why
	}
	return c.badKey(func(key string) bool { return strings.HasPrefix(key, ReservedPrefix) }, why)
}

// search calls find for each node, before its members, until it returns a faulty member and what is wrong with it. The path is built on the way
// back, so that a valid tree allocates no texts.
func (c *Condition) search(find func(*Condition) (member, why string)) (path, why string) {
	var parts []string
	if why = c.searchBelow(find, &parts); why == "" {
		return "", ""
	}
	slices.Reverse(parts)
	return base.CutText(FieldName+"."+strings.Join(parts, "."), maxFieldPath), why
}

// searchBelow appends the parts of the path, the last first.
func (c *Condition) searchBelow(find func(*Condition) (member, why string), parts *[]string) string {
	if member, why := find(c); why != "" {
		*parts = append(*parts, member)
		return why
	}
	members := c.branches()
	for i := range members {
		if why := members[i].searchBelow(find, parts); why != "" {
			*parts = append(*parts, base.Element("members", i))
			return why
		}
	}
	return ""
}

// maxFieldPath is the length at which the path in an error is cut, as in the errors of a policy.
const maxFieldPath = 256
