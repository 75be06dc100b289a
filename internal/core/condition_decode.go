package core

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"unicode/utf8"
)

// conditionField is the field of a suspend that holds its condition.
const conditionField = "resume_condition"

// conditionFields lists the members allowed in a condition of each kind (U29).
var conditionFields = [...][]string{
	ConditionUnknown:      nil,
	ConditionSingle:       {"name", "type", "waitpoint_key"},
	ConditionOperatorOnly: {"type"},
	ConditionTimeoutOnly:  {"type"},
	ConditionAllOf:        {"members", "type"},
	ConditionAnyOf:        {"members", "type"},
	ConditionCount:        {"count_kind", "n", "name", "source_types", "type", "waitpoints"},
}

// ParseCondition reads a caller's condition (U29). Empty text, invalid JSON or JSON of another form (an unknown type, count kind or field, a
// duplicate key, a wrong type) is invalid_suspend with reason condition_malformed and the path in Field. Whether the condition makes sense is
// decided by Check.
func ParseCondition(text []byte) (*Condition, error) {
	c, err := readCondition(text, false)
	if err != nil {
		return nil, invalidSuspend(conditionMalformed, err.Field, "%s", err.Message)
	}
	return c, nil
}

// DecodeCondition reads the output of Canonical. A node that a newer program wrote and this one does not understand is kept unchanged and counts as
// not satisfied (W40). Any other fault is corruption (W10).
func DecodeCondition(text []byte) (*Condition, error) {
	c, err := readCondition(text, true)
	if err != nil {
		return nil, Errorf(CodeCorruption, "a stored condition cannot be read: %s: %s", err.Field, err.Message).WithField(conditionField)
	}
	return c, nil
}

func readCondition(text []byte, stored bool) (*Condition, *Error) {
	switch trimmed := bytes.TrimSpace(text); {
	case len(trimmed) == 0 || string(trimmed) == "null":
		return nil, Errorf(CodeInvalidSuspend, "is required").WithField(conditionField)
	case !utf8.Valid(text) || !json.Valid(text):
		return nil, Errorf(CodeInvalidSuspend, "is not valid JSON").WithField(conditionField)
	}
	r := conditionReader{valueReader{text: text, path: []string{conditionField}}, stored}
	var c Condition
	err := r.condition(&c)
	var refused *Error
	if errors.As(err, &refused) {
		return nil, refused
	}
	return &c, nil
}

// conditionReader reads conditions with the strictness of the policy's reader. Its depth is bounded by that of valid JSON.
type conditionReader struct {
	valueReader
	stored bool
}

// condition reads the next node. A stored node that cannot be read because it has a newer form is kept unchanged.
func (r *conditionReader) condition(into *Condition) error {
	r.peek()
	begin, depth := r.at, len(r.path)
	err := r.node(into)
	if err == nil || !r.stored {
		return err
	}
	raw := valueAt(r.text[begin:])
	if !foreignNode(raw) {
		return err
	}
	r.at, r.path = begin+len(raw), r.path[:depth]
	*into = Condition{foreign: bytes.Clone(raw)}
	return nil
}

// node reads the members in any order and then checks them against the kind.
func (r *conditionReader) node(into *Condition) error {
	var given []string
	err := r.object(func(key string) error {
		if knownMember(key) && r.null() {
			return nil
		}
		given = append(given, key)
		return r.member(into, key)
	})
	if err != nil {
		return err
	}
	switch {
	case into.Kind == ConditionUnknown:
		return r.refuseMember("type", "is required")
	case into.Kind == ConditionCount && into.CountKind == CountUnknown:
		return r.refuseMember("count_kind", "is required")
	}
	for _, name := range given {
		if !slices.Contains(conditionFields[into.Kind], name) {
			return r.refuseMember(name, "is not a field of a condition of type "+into.Kind.String())
		}
	}
	return nil
}

func (r *conditionReader) member(into *Condition, key string) error {
	switch key {
	case "type":
		n, err := r.oneOf(conditionNames[:])
		into.Kind = ConditionKind(n)
		return err
	case "count_kind":
		n, err := r.oneOf(countKindNames[:])
		into.CountKind = CountKind(n)
		return err
	case "name":
		into.Matcher.Named = true
		return r.checked(&into.Matcher.Name, anyText)
	case "waitpoint_key":
		into.Waitpoints = []string{""}
		return r.checked(&into.Waitpoints[0], anyText)
	case "waitpoints":
		return r.texts(&into.Waitpoints, math.MaxInt, anyText)
	case "source_types":
		return r.sourceTypes(&into.SourceTypes)
	case "n":
		return r.count(&into.N, -maxCountN, maxCountN)
	case "members":
		return r.members(&into.Members)
	default:
		return r.refuse("is not a field of a condition")
	}
}

// knownMember reports whether a condition of any kind has a member of that name.
func knownMember(name string) bool {
	return slices.ContainsFunc(conditionFields[:], func(names []string) bool { return slices.Contains(names, name) })
}

func (r *conditionReader) members(into *[]Condition) error {
	return r.array(math.MaxInt, func() error {
		*into = append(*into, Condition{})
		return r.condition(&(*into)[len(*into)-1])
	})
}

// sourceTypes refuses an empty list. It could mean all or none, and a caller that computes the list of permitted approvers must not permit all by
// accident.
func (r *conditionReader) sourceTypes(into *[]string) error {
	if err := r.texts(into, math.MaxInt, anyText); err != nil {
		return err
	}
	if len(*into) == 0 {
		return r.refuse("must not be empty: leave it out to count signals of every source type")
	}
	return nil
}

// oneOf reads a word of a table whose first entry is not a valid word.
func (r *conditionReader) oneOf(names []string) (int, error) {
	var text string
	err := r.word(&text, names[1:]...)
	n, _ := find(names, text)
	return n, err
}

// null skips a null, which means the same as absent (U5).
func (r *conditionReader) null() bool {
	if r.peek() != 'n' {
		return false
	}
	r.at += len("null")
	return true
}

// anyText accepts every text: these texts are checked by Check, in its order.
func anyText(string) string { return "" }

// valueAt returns the first JSON value of a text that begins with one.
func valueAt(text []byte) []byte {
	decoder := json.NewDecoder(bytes.NewReader(text))
	var raw json.RawMessage
	if decoder.Decode(&raw) != nil {
		return nil
	}
	return text[:decoder.InputOffset()]
}

// foreignNode reports whether an object is a node of a newer form: it has a type, and the type, its count kind or one of its fields is unknown.
func foreignNode(raw []byte) bool {
	var fields map[string]json.RawMessage
	var typeName, countKind string
	if json.Unmarshal(raw, &fields) != nil || json.Unmarshal(fields["type"], &typeName) != nil || typeName == "" {
		return false
	}
	kind, known := find(conditionNames[:], typeName)
	if !known {
		return true
	}
	if json.Unmarshal(fields["count_kind"], &countKind) == nil && countKind != "" {
		if _, known := find(countKindNames[:], countKind); !known {
			return true
		}
	}
	for name := range fields {
		if !slices.Contains(conditionFields[kind], name) {
			return true
		}
	}
	return false
}

// Canonical returns the canonical JSON text of c: sorted keys, no white space, absent members omitted. Equal conditions have equal texts. Stores
// keep conditions in this form.
func (c *Condition) Canonical() []byte { return c.appendTo(nil) }

func (c *Condition) appendTo(to []byte) []byte {
	if c.foreign != nil {
		return append(to, c.foreign...)
	}
	o := jsonObject{text: append(to, '{')}
	switch c.Kind {
	case ConditionAllOf, ConditionAnyOf:
		c.writeMembers(&o)
	case ConditionCount:
		o.str("count_kind", c.CountKind.String())
		o.num("n", int64(c.N))
		c.writeMatcher(&o)
		if len(c.SourceTypes) > 0 {
			o.strs("source_types", c.SourceTypes)
		}
	case ConditionSingle:
		c.writeMatcher(&o)
	}
	o.str("type", c.Kind.String())
	switch {
	case c.Kind == ConditionSingle && len(c.Waitpoints) > 0:
		o.str("waitpoint_key", c.Waitpoints[0])
	case c.Kind == ConditionCount:
		o.strs("waitpoints", c.Waitpoints)
	}
	return o.done()
}

func (c *Condition) writeMatcher(o *jsonObject) {
	if c.Matcher.Named {
		o.str("name", c.Matcher.Name)
	}
}

func (c *Condition) writeMembers(o *jsonObject) {
	o.name("members")
	o.text = append(o.text, '[')
	for i := range c.Members {
		if i > 0 {
			o.text = append(o.text, ',')
		}
		o.text = c.Members[i].appendTo(o.text)
	}
	o.text = append(o.text, ']')
}
