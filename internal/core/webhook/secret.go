package webhook

import (
	"encoding/base64"
	"fmt"
	"log/slog"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// The sizes of a secret in bytes.
const (
	MinSecret = 24
	MaxSecret = 64
	NewSize   = 32 // of a secret that the server makes
)

// secretPrefix begins the text of a secret.
const secretPrefix = "whsec_"

// Secret is a key that signs requests to an endpoint. fmt, JSON and logs show a placeholder: only Text and Bytes return the secret. fmt follows one
// pointer when a verb does not fit, so the bytes are stored behind two. The zero Secret is no secret.
type Secret struct{ bytes **[]byte }

// NewSecret returns the secret with these bytes. The caller passes 32 random ones (NewSize) and does not change them afterwards.
func NewSecret(random []byte) Secret {
	held := &random
	return Secret{&held}
}

// ParseSecret reads `whsec_` and the base64 of 24 to 64 bytes, in the standard alphabet with padding and in no other spelling.
// Errors: invalid_secret, which never shows the text.
func ParseSecret(text string) (Secret, error) {
	encoded, found := strings.CutPrefix(text, secretPrefix)
	if !found {
		return Secret{}, refuseSecret("must begin with " + secretPrefix)
	}
	if len(encoded) > base64.StdEncoding.EncodedLen(MaxSecret) {
		return Secret{}, refuseSecret("has more than %d bytes", MaxSecret)
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(encoded)
	switch {
	case err != nil || strings.ContainsAny(encoded, "\r\n"): // the decoder skips line ends
		return Secret{}, refuseSecret("must be base64 with padding after %s", secretPrefix)
	case len(raw) < MinSecret || len(raw) > MaxSecret:
		return Secret{}, refuseSecret("has %d bytes, not %d to %d", len(raw), MinSecret, MaxSecret)
	}
	return NewSecret(raw), nil
}

func refuseSecret(format string, args ...any) error {
	return base.Errorf(base.CodeInvalidSecret, format, args...).WithField("secret").
		WithHint("leave it out and the server makes one, or send whsec_ and the base64 of %d to %d random bytes", MinSecret, MaxSecret)
}

// Text returns the secret as its receiver is shown it: `whsec_` and base64. "" for the zero Secret.
func (s Secret) Text() string {
	if s.IsZero() {
		return ""
	}
	return secretPrefix + base64.StdEncoding.EncodeToString(s.Bytes())
}

// Bytes returns the key itself, nil for the zero Secret. The caller does not change it.
func (s Secret) Bytes() []byte {
	if s.bytes == nil {
		return nil
	}
	return **s.bytes
}

// IsZero reports whether there is no secret.
func (s Secret) IsZero() bool { return s.bytes == nil }

// hidden is shown in place of a secret.
const hidden = "<redacted>"

// Format hides the secret for every verb.
func (s Secret) Format(f fmt.State, _ rune) { fmt.Fprint(f, hidden) }

// MarshalText hides the secret.
func (s Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// LogValue hides the secret.
func (s Secret) LogValue() slog.Value { return slog.StringValue(hidden) }
