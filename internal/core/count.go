package core

import (
	"strings"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// CountBy states by what executions are counted (U35): status, public_state, kind, lane, or the value of a tag.
type CountBy struct {
	Field string // status, public_state, kind, lane, tag
	Tag   string // of tag: its key
}

// The fields of CountBy.
const (
	CountByStatus      = "status"
	CountByPublicState = "public_state"
	CountByKind        = "kind"
	CountByLane        = "lane"
	CountByTag         = "tag"
)

// ParseCountBy reads the words of U35, else invalid_argument.
func ParseCountBy(text string) (CountBy, error) {
	switch text {
	case CountByStatus, CountByPublicState, CountByKind, CountByLane:
		return CountBy{Field: text}, nil
	}
	key, tagged := strings.CutPrefix(text, CountByTag+".")
	if !tagged || !base.WellFormedTagKey(key) {
		return CountBy{}, base.Invalid("by", "%q is nothing to count by", base.CutText(strings.ToValidUTF8(text, "\uFFFD"), 80)).
			WithHint("use status, public_state, kind, lane or tag.KEY")
	}
	return CountBy{Field: CountByTag, Tag: key}, nil
}

// Value returns the value under which x is counted; ok is false if x does not have the tag.
func (b CountBy) Value(x *Execution) (value string, ok bool) {
	switch b.Field {
	case CountByStatus:
		return x.Status.String(), true
	case CountByPublicState:
		return publicState(x.Status, x.Reason, x.Next), true
	case CountByKind:
		return x.Class.Kind, true
	case CountByLane:
		return x.Class.Lane, true
	default:
		value, ok = x.Tags[b.Tag]
		return value, ok
	}
}

// State returns the value under which a status, reason and next are counted, by status or by public state.
func (b CountBy) State(status Status, reason Reason, next Next) string {
	if b.Field == CountByPublicState {
		return publicState(status, reason, next)
	}
	return status.String()
}

// Narrow returns f restricted to executions with this value. ok is false if f excludes the value.
func (b CountBy) Narrow(f Filter, value string) (narrowed Filter, ok bool) {
	if b.Field == CountByTag {
		f.Tags = append(f.Tags[:len(f.Tags):len(f.Tags)], TagFilter{Key: b.Tag, Value: &value})
		return f, true
	}
	part := map[string]*[]string{
		CountByStatus: &f.Status, CountByPublicState: &f.PublicState, CountByKind: &f.Kind, CountByLane: &f.Lane,
	}[b.Field]
	if !among(*part, value) {
		return f, false
	}
	*part = []string{value}
	return f, true
}
