package core

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// The two sides of a capability match (S10).
const (
	SideRequired = "required" // what an execution requires
	SideWorker   = "worker"   // what a worker offers
)

// Bounds of a capability set (S10).
const (
	MaxCapabilities    = 256
	MaxCapabilityBytes = 4096 // of the tokens joined by commas
)

// ParseCapabilities checks the tokens of one side and returns them sorted and unique; nil for none. A violation is invalid_capabilities with the
// details {side, why} (S10).
func ParseCapabilities(side string, tokens []string) ([]string, error) {
	if len(tokens) == 0 {
		return nil, nil
	}
	for _, token := range tokens {
		if why := checkCapability(token); why != "" {
			return nil, badCapabilities(side, why).With("token", base.CutText(strings.ToValidUTF8(token, "\uFFFD"), 80))
		}
	}
	set := slices.Compact(slices.Sorted(slices.Values(tokens)))
	if len(set) > MaxCapabilities {
		return nil, badCapabilities(side, "too_many_tokens")
	}
	size := len(set) - 1 // the commas
	for _, token := range set {
		size += len(token)
	}
	if size > MaxCapabilityBytes {
		return nil, badCapabilities(side, "too_many_bytes")
	}
	return set, nil
}

func badCapabilities(side, why string) *base.Error {
	field := "capabilities"
	if side == SideRequired {
		field = "routing_requirements.required_capabilities"
	}
	return base.Errorf(base.CodeInvalidCapabilities, "the %s capabilities are not valid: %s", side, strings.ReplaceAll(why, "_", " ")).
		WithField(field).With("side", side).With("why", why).
		WithHint("at most %d tokens and %d bytes joined by commas; a token has no comma, white space or control character", MaxCapabilities, MaxCapabilityBytes)
}

// checkCapability returns what is wrong with a token in the words of S10, or "".
func checkCapability(token string) string {
	switch {
	case token == "":
		return "empty_token"
	case !utf8.ValidString(token):
		return "invalid_utf8"
	case strings.Contains(token, ","):
		return "comma"
	case strings.ContainsFunc(token, base.SpaceOrControl):
		return "whitespace_or_control"
	default:
		return ""
	}
}

// Matches reports whether a worker with the capabilities have may take work that requires required. Both are sorted and
// unique; the comparison is exact and case-sensitive (S11).
func Matches(required, have []string) bool {
	at := 0
	for _, token := range required {
		for at < len(have) && have[at] < token {
			at++
		}
		if at == len(have) || have[at] != token {
			return false
		}
	}
	return true
}

// MissingCapabilities lists, sorted, the required tokens that have lacks (S14). Both sets are sorted and unique.
func MissingCapabilities(required, have []string) []string {
	var missing []string
	for _, token := range required {
		if _, found := slices.BinarySearch(have, token); !found {
			missing = append(missing, token)
		}
	}
	return missing
}
