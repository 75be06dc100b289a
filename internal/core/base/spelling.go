package base

import (
	"encoding/base64"
	"errors"
	"strings"
)

var errLineEnd = errors.New("a line end inside of base64")

// DecodeURLText reads base64 for URLs, without padding, in the only spelling that EncodeToString writes. The decoder of the standard library skips
// line ends, also where it is strict.
func DecodeURLText(text string) ([]byte, error) {
	if strings.ContainsAny(text, "\r\n") {
		return nil, errLineEnd
	}
	return base64.RawURLEncoding.Strict().DecodeString(text)
}
