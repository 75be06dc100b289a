package core

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Filter selects executions (L131). Parts combine with AND, values of one part with OR; an absent part selects everything. The values are the words
// of the specification, so that a filter can be shown, stored with a job and compared as text.
type Filter struct {
	Status         []string    `json:"status,omitempty"`
	PublicState    []string    `json:"public_state,omitempty"`
	Reason         []string    `json:"reason,omitempty"`
	Next           []string    `json:"next,omitempty"`
	Lane           []string    `json:"lane,omitempty"`
	Kind           []string    `json:"kind,omitempty"`
	Namespace      []string    `json:"namespace,omitempty"`
	Tags           []TagFilter `json:"tags,omitempty"` // all must hold
	Created        TimeRange   `json:"created,omitzero"`
	Completed      TimeRange   `json:"completed,omitzero"`
	Updated        TimeRange   `json:"updated,omitzero"`
	FlowID         []string    `json:"flow_id,omitempty"`   // full forms or bare UUIDs
	ParentID       []string    `json:"parent_id,omitempty"` // likewise
	InstanceID     []string    `json:"worker_instance_id,omitempty"`
	Creator        []string    `json:"creator,omitempty"`
	IdempotencyKey []string    `json:"idempotency_key,omitempty"`
	PriorityMin    *int        `json:"priority_min,omitempty"`
	PriorityMax    *int        `json:"priority_max,omitempty"`
	Query          string      `json:"q,omitempty"` // beginning of an id, an idempotency key, or words (U34)
}

// TagFilter requires a tag: this value, or any value if Value is nil.
type TagFilter struct {
	Key   string  `json:"key"`
	Value *string `json:"value,omitempty"`
}

// TimeRange is [From, To); an absent bound is open.
type TimeRange struct {
	From base.Time `json:"from,omitzero"`
	To   base.Time `json:"to,omitzero"`
}

// Bounds of a filter, so that a list never exceeds what a statement can carry.
const (
	maxFilterValues = 1000 // of one part
	maxFilterText   = 1024 // bytes of one value
)

// Empty reports whether f selects everything. Bulk operations refuse such a filter (L137).
func (f *Filter) Empty() bool {
	for _, part := range f.parts() {
		if len(*part.values) > 0 {
			return false
		}
	}
	return len(f.Tags) == 0 && f.Created == TimeRange{} && f.Completed == TimeRange{} && f.Updated == TimeRange{} &&
		f.PriorityMin == nil && f.PriorityMax == nil && f.Query == ""
}

// filterPart is one list of values with its name and the check of a value; nil accepts any text.
type filterPart struct {
	name   string
	values *[]string
	known  func(string) bool
	words  func() []string // the allowed values, if a hint can list them; else nil
}

func (f *Filter) parts() [12]filterPart {
	return [...]filterPart{
		{"status", &f.Status, func(s string) bool { _, ok := ParseStatus(s); return ok }, statusWords},
		{"public_state", &f.PublicState, func(s string) bool { return slices.Contains(PublicStates(), s) }, PublicStates},
		{"reason", &f.Reason, func(s string) bool { _, ok := ParseReason(s); return ok }, nil},
		{"next", &f.Next, func(s string) bool { _, ok := ParseNext(s); return ok }, nil},
		{"lane", &f.Lane, withoutNUL, nil},
		{"kind", &f.Kind, withoutNUL, nil},
		{"namespace", &f.Namespace, withoutNUL, nil},
		{"flow_id", &f.FlowID, isID, nil},
		{"parent_id", &f.ParentID, isID, nil},
		{"worker_instance_id", &f.InstanceID, withoutNUL, nil},
		{"creator", &f.Creator, withoutNUL, nil},
		{"idempotency_key", &f.IdempotencyKey, withoutNUL, nil},
	}
}

func statusWords() []string { return statusNames[1:] }

// withoutNUL reports whether a name contains no NUL. No valid name contains one, and not every store can compare with one.
func withoutNUL(name string) bool { return !strings.Contains(name, "\x00") }

func isID(text string) bool { _, err := base.ParseID(text); return err == nil }

// Validate refuses with invalid_filter any value that no execution can have: unknown words, malformed ids and tag keys, texts that are not UTF-8,
// lists that are too long.
func (f *Filter) Validate() error {
	for _, part := range f.parts() {
		if err := part.validate(); err != nil {
			return err
		}
	}
	if len(f.Tags) > base.MaxTags {
		return badFilter("tags", "has more than %d entries", base.MaxTags)
	}
	for _, tag := range f.Tags {
		if !base.WellFormedTagKey(tag.Key) {
			return badFilter(base.FieldUnder("tags", tag.Key), "%q is not a tag key", base.CutText(strings.ToValidUTF8(tag.Key, "\uFFFD"), 80))
		}
		if tag.Value != nil && base.CheckText(*tag.Value, 0, maxFilterText) != "" {
			return badFilter(base.FieldUnder("tags", tag.Key), "the value must be UTF-8 of at most %d bytes", maxFilterText)
		}
	}
	if why := base.CheckText(f.Query, 0, maxFilterText); why != "" {
		return badFilter("q", "%s", why)
	}
	return CheckFilterText("q", f.Query)
}

// CheckFilterText refuses with invalid_filter texts that nothing a list shows can have: those that are not UTF-8 or contain NUL. Not every store
// can compare with them.
func CheckFilterText(field string, texts ...string) error {
	for _, text := range texts {
		if !utf8.ValidString(text) || !withoutNUL(text) {
			return badFilter(field, "must be UTF-8 without NUL")
		}
	}
	return nil
}

// CheckFilterTags refuses with invalid_filter tags that nothing can have: keys that CheckFilterText refuses, and values that are not UTF-8.
func CheckFilterTags(tags map[string]string) error {
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		field := base.FieldUnder("tags", key)
		if err := CheckFilterText(field, key); err != nil {
			return err
		}
		if !utf8.ValidString(tags[key]) {
			return badFilter(field, "the value must be UTF-8")
		}
	}
	return nil
}

func (p *filterPart) validate() error {
	if len(*p.values) > maxFilterValues {
		return badFilter(p.name, "has more than %d values", maxFilterValues)
	}
	for _, value := range *p.values {
		if base.CheckText(value, 0, maxFilterText) != "" || p.known != nil && !p.known(value) {
			bad := badFilter(p.name, "%q is not a %s", base.CutText(strings.ToValidUTF8(value, "\uFFFD"), 80), p.name)
			if p.words != nil {
				bad = bad.WithHint("use one of %s", strings.Join(p.words(), ", "))
			}
			return bad
		}
	}
	return nil
}

func badFilter(field, format string, args ...any) *base.Error {
	return base.Errorf(base.CodeInvalidFilter, format, args...).WithField(field)
}

// Matches reports whether f selects x. The lane state is an argument because it is part of the state vector (L20), although no public state depends
// on it today. The filter must be valid.
func (f *Filter) Matches(x *Execution, _ LaneState) bool {
	return f.matchesState(x) && f.matchesIdentity(x) && f.matchesTimes(x) && f.matchesTags(x) && f.matchesQuery(x)
}

func (f *Filter) matchesState(x *Execution) bool {
	return among(f.Status, x.Status.String()) && among(f.Reason, x.Reason.String()) && among(f.Next, x.Next.String()) &&
		(len(f.PublicState) == 0 || slices.Contains(f.PublicState, publicState(x.Status, x.Reason, x.Next)))
}

func (f *Filter) matchesIdentity(x *Execution) bool {
	return among(f.Lane, x.Class.Lane) && among(f.Kind, x.Class.Kind) && among(f.Namespace, x.Class.Namespace) &&
		names(f.FlowID, x.FlowID) && names(f.ParentID, x.ParentID) && among(f.InstanceID, x.LastInstance()) &&
		among(f.Creator, x.Creator) && among(f.IdempotencyKey, x.IdempotencyKey) &&
		(f.PriorityMin == nil || x.Priority >= *f.PriorityMin) && (f.PriorityMax == nil || x.Priority <= *f.PriorityMax)
}

func (f *Filter) matchesTimes(x *Execution) bool {
	return f.Created.holds(x.CreatedAt) && f.Completed.holds(x.CompletedAt) && f.Updated.holds(x.LastMutationAt)
}

func (f *Filter) matchesTags(x *Execution) bool {
	for _, tag := range f.Tags {
		value, present := x.Tags[tag.Key]
		if !present || tag.Value != nil && value != *tag.Value {
			return false
		}
	}
	return true
}

func (f *Filter) matchesQuery(x *Execution) bool {
	if f.Query == "" {
		return true
	}
	text := f.Text()
	return text.begins(x.ID) || x.IdempotencyKey == text.Key || text.occursIn(x.SearchWords())
}

// Text is the free text of a filter in each of its meanings (U34): an execution matches if one of them holds. A meaning that does not apply to the
// text is empty.
type Text struct {
	IDPrefix string // the beginning of the UUID
	Key      string
	Words    []string // all must occur

	partition string // the partition before the UUID in the full form of an id; "": any
}

// Text parses the free text. The filter must have one.
func (f *Filter) Text() Text {
	t := Text{IDPrefix: f.Query, Key: f.Query, Words: Words(f.Query)}
	if partition, uuid, full := strings.Cut(f.Query, endOfPartition); full {
		t.partition, t.IDPrefix = partition+endOfPartition, uuid
	}
	return t
}

// endOfPartition is the end of the partition before the UUID in the text of an id (L1).
const endOfPartition = "}:"

func (t *Text) begins(id base.ID) bool {
	return t.IDPrefix != "" && strings.HasPrefix(id.UUID.String(), t.IDPrefix) && strings.HasPrefix(id.Full(), t.partition)
}

func (t *Text) occursIn(words []string) bool {
	for _, word := range t.Words {
		if _, found := slices.BinarySearch(words, word); !found {
			return false
		}
	}
	return len(t.Words) > 0
}

// among reports whether value is one of values; an empty list means any.
func among(values []string, value string) bool {
	return len(values) == 0 || slices.Contains(values, value)
}

// names reports whether one of the texts, each a full form or a bare UUID, names id (L2). Each form has exactly one spelling.
func names(texts []string, id base.ID) bool {
	return len(texts) == 0 || !id.IsZero() && (slices.Contains(texts, id.UUID.String()) || slices.Contains(texts, id.Full()))
}

func (r TimeRange) holds(t base.Time) bool {
	if r == (TimeRange{}) {
		return true
	}
	return t != 0 && t >= r.From && (r.To == 0 || t < r.To)
}

// LastInstance returns the instance that holds the lease or held the last one; "" if there was none. The filter worker_instance_id uses it.
func (x *Execution) LastInstance() string {
	switch {
	case x.Lease != nil:
		return x.Lease.InstanceID
	case x.Attempt != nil:
		return x.Attempt.InstanceID
	default:
		return ""
	}
}

// Words splits text into lower-case words: runs of letters and digits, in order, repeated ones included.
func Words(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return r == utf8.RuneError || !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}

// SearchWords returns the words by which a query finds x (U34): those of kind, tags and failure message, sorted and unique.
func (x *Execution) SearchWords() []string {
	words := Words(x.Class.Kind)
	for key, value := range x.Tags {
		words = append(words, Words(key)...)
		words = append(words, Words(value)...)
	}
	if x.Failure != nil {
		words = append(words, Words(x.Failure.Message)...)
	}
	slices.Sort(words)
	return slices.Compact(words)
}

// canonical returns equal texts for filters with the same values in any order.
func (f *Filter) canonical() []byte {
	sorted := *f
	for _, part := range sorted.parts() {
		*part.values = slices.Compact(slices.Sorted(slices.Values(*part.values)))
	}
	sorted.Tags = slices.Clone(f.Tags)
	slices.SortStableFunc(sorted.Tags, func(a, b TagFilter) int { return strings.Compare(a.Key, b.Key) })
	text, _ := json.Marshal(sorted) // plain data always marshals
	return text
}
