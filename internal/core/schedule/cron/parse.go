package cron

import (
	"strings"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// MaxText bounds a cron text and a field of a calendar, in bytes.
const MaxText = 256

// Line is what a cron text means: a pattern or an interval. Pattern is nil for an interval.
type Line struct {
	Pattern  *Pattern
	Interval Interval
}

// macros are the names of lines, and what they stand for.
var macros = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
	"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}

// Parse reads a cron text (T6 to T9): invalid_schedule, with the place as a detail.
func Parse(text string) (Line, error) {
	if why := base.CheckLength(text, 1, MaxText); why != "" {
		return Line{}, fault(0, "%s", why)
	}
	words := split(text)
	if len(words) == 0 {
		return Line{}, fault(0, "is empty")
	}
	first := words[0]
	name := strings.ToLower(first.text)
	switch {
	case strings.HasPrefix(name, "tz=") || strings.HasPrefix(name, "cron_tz="):
		return Line{}, fault(first.at, "a time zone must not stand in front").WithHint("state the time zone in the field timezone")
	case name == "@every":
		return parseEveryLine(words, len(text))
	case strings.HasPrefix(name, "@"):
		line, known := macros[name]
		if !known {
			return Line{}, fault(first.at, "%s is not a known name", base.CutText(first.text, 40)).
				WithHint("use @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly or @every")
		}
		if len(words) > 1 {
			return Line{}, fault(words[1].at, "nothing may follow %s", name)
		}
		words = split(line)
	case len(words) < 5 || len(words) > 6:
		return Line{}, fault(0, "has %d fields", len(words)).
			WithHint("write minute, hour, day of month, month and day of week, with the second before them if it is not 0")
	}
	pattern, err := parseWords(words)
	return Line{Pattern: pattern}, err
}

// word is a part of a text between blanks, and its place.
type word struct {
	text string
	at   int
}

func split(text string) (words []word) {
	blank := func(c byte) bool { return c == ' ' || c == '\t' }
	for at := 0; at < len(text); {
		begin := at
		for at < len(text) && !blank(text[at]) {
			at++
		}
		if at > begin {
			words = append(words, word{text[begin:at], begin})
		}
		for at < len(text) && blank(text[at]) {
			at++
		}
	}
	return words
}

func parseEveryLine(words []word, end int) (Line, error) {
	switch {
	case len(words) == 1:
		return Line{}, fault(end, "@every takes a duration").WithHint("write it like @every 90s, @every 6h or @every 1d/2h")
	case len(words) > 2:
		return Line{}, fault(words[2].at, "nothing may follow the duration of @every")
	}
	interval, err := parseEvery(words[1].text, words[1].at)
	return Line{Interval: interval}, err
}

// parseWords reads five or six fields.
func parseWords(words []word) (*Pattern, error) {
	units := []*unit{&seconds, &minutes, &hours, &daysOfMonth, &months, &daysOfWeek}
	fields := make([]field, 0, len(units))
	if len(words) == 5 {
		fields = append(fields, field{unit: &seconds, items: []item{{kind: itemValues}}})
	}
	for _, w := range words {
		f, err := parseField(units[len(fields)], w.text, w.at)
		if err != nil {
			return nil, err
		}
		fields = append(fields, f)
	}
	return compile(fields, true), nil
}

// String returns the canonical text of the line: Parse makes an equal line of it.
func (l Line) String() string {
	if l.Pattern == nil {
		return string(l.Interval.append(nil))
	}
	return l.Pattern.String()
}

// String returns the canonical text of the pattern: its fields, without the second if that is 0. Of a calendar it ends with the year.
func (p *Pattern) String() string {
	fields := p.fields
	if len(fields) == 6 && string(fields[0].append(nil)) == "0" {
		fields = fields[1:]
	}
	var text []byte
	for i := range fields {
		if i > 0 {
			text = append(text, ' ')
		}
		text = fields[i].append(text)
	}
	return string(text)
}
