package jsonx

import (
	"strconv"
	"strings"
)

// Pointer is the JSON pointer of an argument that is called as in Go: policy.retry, items[3].kind, tags["app.tier"].
func Pointer(argument string) string { return PointerTo(ArgumentParts(argument)) }

// PointerTo is the JSON pointer that leads through these names.
func PointerTo(parts []string) string {
	var to strings.Builder
	for _, part := range parts {
		to.WriteString("/" + EscapePointer(part))
	}
	return to.String()
}

// ArgumentParts cuts the name of an argument apart: policy.retry, items[3].kind, tags["app.tier"].
func ArgumentParts(argument string) (parts []string) {
	for argument != "" {
		var part, rest string
		quoted, err := strconv.QuotedPrefix(strings.TrimPrefix(argument, "["))
		switch end := strings.IndexAny(argument[1:], ".[") + 1; {
		case err == nil && argument[0] == '[':
			part, _ = strconv.Unquote(quoted)
			rest = strings.TrimPrefix(argument[1+len(quoted):], "]")
		case end > 0:
			part, rest = strings.Trim(argument[:end], ".[]"), argument[end:]
		default:
			part = strings.Trim(argument, ".[]")
		}
		parts, argument = append(parts, part), rest
	}
	return parts
}
