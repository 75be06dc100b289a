package keyring

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Token is the text that gives access to a waitpoint or a link: <kid>:<64 hex> (W26). A token sent by a client may be any text. It is never stored
// (W27), and printing hides its digest (W29): only Reveal returns it. The zero value is no token.
type Token struct{ text concealed }

// TokenOf returns a token sent by a client, unverified.
func TokenOf(text string) Token {
	if text == "" {
		return Token{}
	}
	return Token{conceal([]byte(text))}
}

// Reveal returns the complete text. It must be shown only to the holder of the token (W30).
func (t Token) Reveal() string { return string(t.text.reveal()) }

// Split returns the kid and the fingerprint of the token, which is the first 16 characters of its digest (W28): both empty if it has no colon, no
// kid or no digest. The token is not verified.
func (t Token) Split() (kid, fingerprint string) {
	kid, digest, _ := strings.Cut(t.Reveal(), ":")
	if kid == "" || digest == "" {
		return "", ""
	}
	return kid, digest[:min(len(digest), fingerprintLength)]
}

const fingerprintLength = 16

// parse splits a token into its two parts; ok is false if it does not have the form of a token.
func (t Token) parse() (kid string, digest [sha256.Size]byte, ok bool) {
	kid, digits, _ := strings.Cut(t.Reveal(), ":")
	lower := base.OnlyBytes(digits, func(c byte) bool { return base.HexDigit(c) >= 0 })
	if !isKid(kid) || len(digits) != 2*sha256.Size || !lower {
		return "", digest, false
	}
	_, err := hex.Decode(digest[:], []byte(digits))
	return kid, digest, err == nil
}

// String hides the digest; for a text that is not a token it hides everything (W29).
func (t Token) String() string {
	kid, _, ok := t.parse()
	if !ok {
		return redacted
	}
	return kid + ":" + redacted
}

// Format hides what String hides, for every verb.
func (t Token) Format(f fmt.State, _ rune) { fmt.Fprint(f, t.String()) }

// MarshalText hides what String hides.
func (t Token) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// TokenFields are the signed fields of a token, for one purpose (W26). Each purpose has its own type.
type TokenFields interface {
	purpose() string
	fields() []string // the fields after the format, the purpose and the kid
}

// WaitpointFields are the signed fields of a waitpoint's token.
type WaitpointFields struct {
	Namespace   string
	ExecutionID base.ID
	WaitpointID base.UUID
	Key         string
	MintedAt    base.Time
}

func (WaitpointFields) purpose() string { return "waitpoint" }

func (f WaitpointFields) fields() []string {
	return []string{f.Namespace, f.ExecutionID.Full(), f.WaitpointID.String(), f.Key, decimal(f.MintedAt)}
}

// LinkFields are the signed fields of the token of an approval link. MintedAt is that of the waitpoint: reissuing the waitpoint's token invalidates
// its links.
type LinkFields struct {
	Namespace   string
	ExecutionID base.ID
	WaitpointID base.UUID
	LinkID      base.UUID
	Approver    string
	ExpiresAt   base.Time // of the link
	MintedAt    base.Time // of the waitpoint
}

func (LinkFields) purpose() string { return "approval_link" }

func (f LinkFields) fields() []string {
	return []string{
		f.Namespace, f.ExecutionID.Full(), f.WaitpointID.String(), f.LinkID.String(), f.Approver, decimal(f.ExpiresAt), decimal(f.MintedAt),
	}
}

func decimal(t base.Time) string { return strconv.FormatInt(int64(t), 10) }

// tokenFormat is the first field of every message.
const tokenFormat = "ff1"

// mac signs fields. The key is derived for the purpose, and every field is preceded by its length: a signature for one purpose, or for one division
// into fields, is not valid for another.
func (s KeySecret) mac(kid string, f TokenFields) []byte {
	key, _ := hkdf.Key(sha256.New, s.reveal(), nil, "flowfabric/"+f.purpose(), sha256.Size) // fails for long keys only
	h := hmac.New(sha256.New, key)
	for _, field := range append([]string{tokenFormat, f.purpose(), kid}, f.fields()...) {
		h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(field))))
		h.Write([]byte(field))
	}
	return h.Sum(nil)
}
