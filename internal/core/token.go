package core

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// Token is the text that opens a waitpoint or a link: <kid>:<64 hex> (W26). It may be any text that somebody sent. It is never
// stored (W27), and printed by accident it hides its digest (W29): only Reveal tells it. The zero value is no token.
type Token struct{ text concealed }

// TokenOf is a text as somebody sent it.
func TokenOf(text string) Token {
	if text == "" {
		return Token{}
	}
	return Token{conceal([]byte(text))}
}

// Reveal is the whole text, for the one who may have it (W30).
func (t Token) Reveal() string { return string(t.text.reveal()) }

// Split is the kid and the fingerprint of the token, the first 16 characters of its digest (W28): both empty when it has no
// colon, no kid or no digest. It does not say that the token is good.
func (t Token) Split() (kid, fingerprint string) {
	kid, digest, _ := strings.Cut(t.Reveal(), ":")
	if kid == "" || digest == "" {
		return "", ""
	}
	return kid, digest[:min(len(digest), fingerprintLength)]
}

const fingerprintLength = 16

// parse reads the two parts of a token; ok is false when it has not the form of one.
func (t Token) parse() (kid string, digest [sha256.Size]byte, ok bool) {
	kid, digits, _ := strings.Cut(t.Reveal(), ":")
	lower := onlyBytes(digits, func(c byte) bool { return hexDigit(c) >= 0 })
	if !isKid(kid) || len(digits) != 2*sha256.Size || !lower {
		return "", digest, false
	}
	_, err := hex.Decode(digest[:], []byte(digits))
	return kid, digest, err == nil
}

// String hides the digest; of what is no token it hides everything (W29).
func (t Token) String() string {
	kid, _, ok := t.parse()
	if !ok {
		return redacted
	}
	return kid + ":" + redacted
}

// Format hides what String hides, whatever the verb.
func (t Token) Format(f fmt.State, _ rune) { fmt.Fprint(f, t.String()) }

// MarshalText hides what String hides.
func (t Token) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// TokenFields are what a token vouches for: the fields of one purpose (W26). Other purposes are other types.
type TokenFields interface {
	purpose() string
	fields() []string // that follow the format, the purpose and the kid
}

// WaitpointFields are those of a waitpoint's token.
type WaitpointFields struct {
	Namespace   string
	ExecutionID ID
	WaitpointID UUID
	Key         string
	MintedAt    Time
}

func (WaitpointFields) purpose() string { return "waitpoint" }

func (f WaitpointFields) fields() []string {
	return []string{f.Namespace, f.ExecutionID.Full(), f.WaitpointID.String(), f.Key, decimal(f.MintedAt)}
}

// LinkFields are those of the token of an approval link. MintedAt is that of the waitpoint: to reissue its token kills the links.
type LinkFields struct {
	Namespace   string
	ExecutionID ID
	WaitpointID UUID
	LinkID      UUID
	Approver    string
	ExpiresAt   Time // of the link
	MintedAt    Time // of the waitpoint
}

func (LinkFields) purpose() string { return "approval_link" }

func (f LinkFields) fields() []string {
	return []string{
		f.Namespace, f.ExecutionID.Full(), f.WaitpointID.String(), f.LinkID.String(), f.Approver, decimal(f.ExpiresAt), decimal(f.MintedAt),
	}
}

func decimal(t Time) string { return strconv.FormatInt(int64(t), 10) }

// tokenFormat is the first field of every message.
const tokenFormat = "ff1"

// mac signs fields. The key is derived for the purpose, and every field has its length before it: nothing that was signed for
// one purpose, or cut into fields in one way, is good for another.
func (s KeySecret) mac(kid string, f TokenFields) []byte {
	key, _ := hkdf.Key(sha256.New, s.reveal(), nil, "flowfabric/"+f.purpose(), sha256.Size) // fails for long keys only
	h := hmac.New(sha256.New, key)
	for _, field := range append([]string{tokenFormat, f.purpose(), kid}, f.fields()...) {
		h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(field))))
		h.Write([]byte(field))
	}
	return h.Sum(nil)
}
