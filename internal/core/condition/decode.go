package condition

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// FieldName is the field of a suspend that holds its condition.
const FieldName = "resume_condition"

// conditionFields lists the members allowed in a condition of each kind (U29).
var conditionFields = [...][]string{
	Unknown:      nil,
	Single:       {"name", "type", "waitpoint_key"},
	OperatorOnly: {"type"},
	TimeoutOnly:  {"type"},
	AllOf:        {"members", "type"},
	AnyOf:        {"members", "type"},
	Count:        {"count_kind", "n", "name", "source_types", "type", "waitpoints"},
}

// Parse reads a caller's condition (U29). Empty text, invalid JSON or JSON of another form (an unknown type, count kind or field, a
// duplicate key, a wrong type) is invalid_suspend with reason condition_malformed and the path in Field. Whether the condition makes sense is
// decided by Check.
func Parse(text []byte) (*Condition, error) {
	c, err := readCondition(text, false)
	if err != nil {
		return nil, InvalidSuspend(Malformed, err.Field, "%s", err.Message)
	}
	return c, nil
}

// Decode reads the output of Canonical. A node that a newer program wrote and this one does not understand is kept unchanged and counts as
// not satisfied (W40). Any other fault is corruption (W10).
func Decode(text []byte) (*Condition, error) {
	c, err := readCondition(text, true)
	if err != nil {
		return nil, base.Errorf(base.CodeCorruption, "a stored condition cannot be read: %s: %s", err.Field, err.Message).WithField(FieldName)
	}
	return c, nil
}

func readCondition(text []byte, stored bool) (*Condition, *base.Error) {
	switch trimmed := bytes.TrimSpace(text); {
	case len(trimmed) == 0 || string(trimmed) == "null":
		return nil, base.Errorf(base.CodeInvalidSuspend, "is required").WithField(FieldName)
	case !utf8.Valid(text) || !json.Valid(text):
		return nil, base.Errorf(base.CodeInvalidSuspend, "is not valid JSON").WithField(FieldName)
	}
	r := conditionReader{base.ValueReader{Text: text, Path: []string{FieldName}}, stored}
	var c Condition
	err := r.condition(&c)
	var refused *base.Error
	if errors.As(err, &refused) {
		return nil, refused
	}
	return &c, nil
}

// conditionReader reads conditions with the strictness of the policy's reader. Its depth is bounded by that of valid JSON.
type conditionReader struct {
	base.ValueReader
	stored bool
}

// condition reads the next node. A stored node that cannot be read because it has a newer form is kept unchanged.
func (r *conditionReader) condition(into *Condition) error {
	r.Peek()
	begin, depth := r.At, len(r.Path)
	err := r.node(into)
	if err == nil || !r.stored {
		return err
	}
	raw := valueAt(r.Text[begin:])
	if !foreignNode(raw) {
		return err
	}
	r.At, r.Path = begin+len(raw), r.Path[:depth]
	*into = Condition{foreign: bytes.Clone(raw)}
	return nil
}

// node reads the members in any order and then checks them against the kind.
func (r *conditionReader) node(into *Condition) error {
	var given []string
	err := r.Object(func(key string) error {
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
	case into.Kind == Unknown:
		return r.RefuseMember("type", "is required")
	case into.Kind == Count && into.CountKind == CountUnknown:
		return r.RefuseMember("count_kind", "is required")
	}
	for _, name := range given {
		if !slices.Contains(conditionFields[into.Kind], name) {
			return r.RefuseMember(name, "is not a field of a condition of type "+into.Kind.String())
		}
	}
	return nil
}

func (r *conditionReader) member(into *Condition, key string) error {
	switch key {
	case "type":
		n, err := r.oneOf(conditionNames[:])
		into.Kind = Kind(n)
		return err
	case "count_kind":
		n, err := r.oneOf(countKindNames[:])
		into.CountKind = CountKind(n)
		return err
	case "name":
		into.Matcher.Named = true
		return r.Checked(&into.Matcher.Name, anyText)
	case "waitpoint_key":
		into.Waitpoints = []string{""}
		return r.Checked(&into.Waitpoints[0], anyText)
	case "waitpoints":
		return r.Texts(&into.Waitpoints, math.MaxInt, anyText)
	case "source_types":
		return r.sourceTypes(&into.SourceTypes)
	case "n":
		return r.Count(&into.N, -maxCountN, maxCountN)
	case "members":
		return r.members(&into.Members)
	default:
		return r.Refuse("is not a field of a condition")
	}
}

// knownMember reports whether a condition of any kind has a member of that name.
func knownMember(name string) bool {
	return slices.ContainsFunc(conditionFields[:], func(names []string) bool { return slices.Contains(names, name) })
}

func (r *conditionReader) members(into *[]Condition) error {
	return r.Array(math.MaxInt, func() error {
		*into = append(*into, Condition{})
		return r.condition(&(*into)[len(*into)-1])
	})
}

// sourceTypes refuses an empty list. It could mean all or none, and a caller that computes the list of permitted approvers must not permit all by
// accident.
func (r *conditionReader) sourceTypes(into *[]string) error {
	if err := r.Texts(into, math.MaxInt, anyText); err != nil {
		return err
	}
	if len(*into) == 0 {
		return r.Refuse("must not be empty: leave it out to count signals of every source type")
	}
	return nil
}

// oneOf reads a word of a table whose first entry is not a valid word.
func (r *conditionReader) oneOf(names []string) (int, error) {
	var text string
	err := r.Word(&text, names[1:]...)
	n, _ := base.ValueOf(names, text)
	return n, err
}

// null skips a null, which means the same as absent (U5).
func (r *conditionReader) null() bool {
	if r.Peek() != 'n' {
		return false
	}
	r.At += len("null")
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
	kind, known := base.ValueOf(conditionNames[:], typeName)
	if !known {
		return true
	}
	if json.Unmarshal(fields["count_kind"], &countKind) == nil && countKind != "" {
		if _, known := base.ValueOf(countKindNames[:], countKind); !known {
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
	o := base.JSONObject{Text: append(to, '{')}
	switch c.Kind {
	case AllOf, AnyOf:
		c.writeMembers(&o)
	case Count:
		o.Str("count_kind", c.CountKind.String())
		o.Num("n", int64(c.N))
		c.writeMatcher(&o)
		if len(c.SourceTypes) > 0 {
			o.Strs("source_types", c.SourceTypes)
		}
	case Single:
		c.writeMatcher(&o)
	}
	o.Str("type", c.Kind.String())
	switch {
	case c.Kind == Single && len(c.Waitpoints) > 0:
		o.Str("waitpoint_key", c.Waitpoints[0])
	case c.Kind == Count:
		o.Strs("waitpoints", c.Waitpoints)
	}
	return o.Done()
}

func (c *Condition) writeMatcher(o *base.JSONObject) {
	if c.Matcher.Named {
		o.Str("name", c.Matcher.Name)
	}
}

func (c *Condition) writeMembers(o *base.JSONObject) {
	o.Name("members")
	o.Text = append(o.Text, '[')
	for i := range c.Members {
		if i > 0 {
			o.Text = append(o.Text, ',')
		}
		o.Text = c.Members[i].appendTo(o.Text)
	}
	o.Text = append(o.Text, ']')
}
