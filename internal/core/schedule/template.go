package schedule

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/schedule/zone"
)

// Values are what the placeholders of a template stand for (T39).
type Values struct {
	Name        string
	ID          base.UUID
	ScheduledAt base.Time
	PreviousAt  base.Time // 0: there is no moment before; previous_at is empty then, and previous_ms alone is null
	Run         int64
	Cause       Cause
	Zone        *zone.Zone
}

// placeholder begins every placeholder; dollar stands for the two characters ${.
const (
	placeholder = "${schedule."
	dollar      = "$${"
)

// value returns the text of a field, and whether a string that is nothing but its placeholder becomes a number.
func (v *Values) value(field string) (text string, number, known bool) {
	switch field {
	case "name":
		return v.Name, false, true
	case "id":
		return v.ID.String(), false, true
	case "cause":
		return string(v.Cause), false, true
	case "run":
		return strconv.FormatInt(v.Run, 10), true, true
	case "scheduled_at":
		return v.ScheduledAt.String(), false, true
	case "scheduled_ms":
		return strconv.FormatInt(int64(v.ScheduledAt), 10), true, true
	case "scheduled_local":
		return v.Zone.Local(v.ScheduledAt), false, true
	case "scheduled_date":
		return v.Zone.Date(v.ScheduledAt), false, true
	case "previous_at":
		if v.PreviousAt == 0 {
			return "", false, true
		}
		return v.PreviousAt.String(), false, true
	case "previous_ms":
		if v.PreviousAt == 0 {
			return "", true, true
		}
		return strconv.FormatInt(int64(v.PreviousAt), 10), true, true
	default:
		return "", false, false
	}
}

// ExpandText replaces the placeholders of a text, such as the value of a tag: invalid_schedule for one that is not known, with its place.
func (v *Values) ExpandText(text string) (string, error) {
	if !strings.Contains(text, "${") {
		return text, nil
	}
	var to strings.Builder
	for at := 0; at < len(text); {
		rest := text[at:]
		switch {
		case strings.HasPrefix(rest, dollar):
			to.WriteString("${")
			at += len(dollar)
		case strings.HasPrefix(rest, placeholder):
			name, _, closed := strings.Cut(rest[len(placeholder):], "}")
			value, _, known := v.value(name)
			if !closed || !known {
				return "", unknownPlaceholder(base.CutText(rest, 40), at)
			}
			to.WriteString(value)
			at += len(placeholder) + len(name) + 1
		default:
			to.WriteByte(text[at])
			at++
		}
	}
	return to.String(), nil
}

func unknownPlaceholder(text string, at int) error {
	return base.Errorf(base.CodeInvalidSchedule, "%q is not a known placeholder", text).With("position", at).
		WithHint("use ${schedule.F} with F one of name, id, scheduled_at, scheduled_local, scheduled_date, scheduled_ms, previous_at, previous_ms, run, cause, or write $${ for ${")
}

// Expand replaces the placeholders inside the string values of a JSON text; everything else stays as it is, byte by byte. A text that is not JSON and
// a placeholder that is not known are invalid_schedule.
func (v *Values) Expand(input []byte) ([]byte, error) {
	if len(input) == 0 {
		return input, nil
	}
	if !json.Valid(input) {
		return nil, base.Errorf(base.CodeInvalidSchedule, "the input of a template must be JSON")
	}
	to := make([]byte, 0, len(input)+64)
	for at := 0; at < len(input); {
		if input[at] != '"' {
			to = append(to, input[at])
			at++
			continue
		}
		end := endOfString(input, at)
		raw := input[at:end]
		if isName(input, end) {
			to = append(to, raw...)
		} else {
			expanded, err := v.appendString(to, raw)
			if err != nil {
				return nil, within("input", err)
			}
			to = expanded
		}
		at = end
	}
	return to, nil
}

// endOfString returns the place after the string that begins at a place of valid JSON.
func endOfString(text []byte, at int) int {
	for at++; text[at] != '"'; at++ {
		if text[at] == '\\' {
			at++
		}
	}
	return at + 1
}

// isName reports whether the string that ends at a place is the name of a member.
func isName(text []byte, at int) bool {
	for at < len(text) && (text[at] == ' ' || text[at] == '\t' || text[at] == '\n' || text[at] == '\r') {
		at++
	}
	return at < len(text) && text[at] == ':'
}

// appendString writes a string value with its placeholders replaced.
func (v *Values) appendString(to, raw []byte) ([]byte, error) {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil || !strings.Contains(text, "${") {
		return append(to, raw...), nil
	}
	if rest, found := strings.CutPrefix(text, placeholder); found {
		name, closed := strings.CutSuffix(rest, "}")
		if value, number, known := v.value(name); closed && known && number {
			if value == "" {
				value = "null"
			}
			return append(to, value...), nil
		}
	}
	expanded, err := v.ExpandText(text)
	if err != nil {
		return nil, err
	}
	return base.AppendQuoted(to, expanded), nil
}
