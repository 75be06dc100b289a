package base

import "strings"

// Bounds of a stored trace context (U215). A longer value is omitted, not truncated.
const (
	maxTraceState   = 512
	maxTraceMembers = 32
	maxBaggage      = 8192
)

// Trace is the W3C trace context of the submitter (U215). It affects no decision. A Trace is never changed in place.
type Trace struct {
	Parent  string `json:"parent,omitempty"` // traceparent, version 00; "": none
	State   string `json:"state,omitempty"`  // tracestate; "" without a parent
	Baggage string `json:"baggage,omitempty"`
}

// ParseTrace reads the three headers of W3C Trace Context and Baggage. A malformed traceparent counts as absent, and the tracestate with it; a
// tracestate or baggage that is malformed or too long is omitted alone. It returns nil if nothing is left.
func ParseTrace(parent, state, baggage string) *Trace {
	if parent == "" && baggage == "" {
		return nil
	}
	t := Trace{Parent: traceParent(parent)}
	if t.Parent != "" && validTraceState(state) {
		t.State = state
	}
	if validBaggage(baggage) {
		t.Baggage = baggage
	}
	if t == (Trace{}) {
		return nil
	}
	return &t
}

// The places of the parts of a traceparent: version, trace id, parent id, flags, with a dash between each two.
const (
	traceIDAt   = 3
	traceSpanAt = 36
	traceFlagAt = 53
	traceLength = 55
)

// traceParent returns the traceparent in version 00; "" if it is malformed. Of a later version only the parts of 00 are kept.
func traceParent(text string) string {
	if len(text) < traceLength || text[2] != '-' || text[traceSpanAt-1] != '-' || text[traceFlagAt-1] != '-' {
		return ""
	}
	version, id, span, flags := text[:2], text[traceIDAt:traceSpanAt-1], text[traceSpanAt:traceFlagAt-1], text[traceFlagAt:traceLength]
	switch {
	case !lowerHex(version) || !lowerHex(id) || !lowerHex(span) || !lowerHex(flags), allZero(id), allZero(span), version == "ff":
		return ""
	case version == "00" && len(text) > traceLength, len(text) > traceLength && text[traceLength] != '-':
		return ""
	case version == "00":
		return text
	}
	sampled := "00"
	if strings.IndexByte("13579bdf", flags[1]) >= 0 { // the only flag defined in version 00
		sampled = "01"
	}
	return "00" + text[2:traceFlagAt] + sampled
}

// TraceIDOf returns the trace id of a traceparent of version 00; "" for an empty one.
func TraceIDOf(parent string) string {
	if len(parent) < traceLength {
		return ""
	}
	return parent[traceIDAt : traceSpanAt-1]
}

func lowerHex(text string) bool {
	for i := range len(text) {
		if c := text[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

func allZero(text string) bool { return strings.Trim(text, "0") == "" }

// validTraceState reports whether a tracestate is a list of key=value as defined by W3C, within bounds.
func validTraceState(text string) bool {
	if text == "" || len(text) > maxTraceState {
		return false
	}
	members := 0
	for member := range strings.SplitSeq(text, ",") {
		member = strings.Trim(member, " \t")
		if member == "" {
			continue
		}
		key, value, found := strings.Cut(member, "=")
		if members++; members > maxTraceMembers || !found || !traceKey(key) || !plainText(value, ",=") {
			return false
		}
	}
	return members > 0
}

// traceKey reports whether a text is a key of a tracestate: small letters, digits and _-*/, with @ before a system.
func traceKey(key string) bool {
	return key != "" && strings.Trim(key, "abcdefghijklmnopqrstuvwxyz0123456789_-*/@") == ""
}

// validBaggage reports whether a text is a list of key=value;properties, within bounds.
func validBaggage(text string) bool {
	if text == "" || len(text) > maxBaggage {
		return false
	}
	for member := range strings.SplitSeq(text, ",") {
		key, value, found := strings.Cut(member, "=")
		if !found || strings.Trim(key, " \t") == "" || !plainText(key, ";") || !plainText(value, "") {
			return false
		}
	}
	return true
}

// plainText reports whether a text is printable ASCII, blanks and tabs, without the characters given.
func plainText(text, without string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' && c != '\t' || c > '~' || strings.IndexByte(without, c) >= 0 {
			return false
		}
	}
	return true
}
