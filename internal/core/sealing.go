package core

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"encoding/hex"
	"strings"
)

// MasterKey seals secrets at rest (W24): 32 bytes from outside of the store. The zero value is none: secrets are kept in clear.
type MasterKey struct{ concealed }

const masterKeySize = 32

// NewMasterKey is the master key of these bytes.
func NewMasterKey(bytes [masterKeySize]byte) MasterKey { return MasterKey{conceal(bytes[:])} }

// ParseMasterKey reads 32 bytes as hexadecimal digits or base64 of any spelling (U187); white space around them is left out,
// since files end with it. invalid_argument, which never shows the text.
func ParseMasterKey(text string) (MasterKey, error) {
	text = strings.TrimSpace(text)
	if raw, err := hex.DecodeString(text); err == nil && len(raw) == masterKeySize {
		return NewMasterKey([masterKeySize]byte(raw)), nil
	}
	text = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(text, "="))
	if raw, err := base64.RawStdEncoding.Strict().DecodeString(text); err == nil && len(raw) == masterKeySize {
		return NewMasterKey([masterKeySize]byte(raw)), nil
	}
	return MasterKey{}, Invalid("master_key", "must be 32 bytes as hexadecimal digits or base64")
}

// SealNonce makes a seal unlike every other under the same master key: 12 random bytes, used once.
type SealNonce [12]byte

// Sealing says how a new secret is kept: under Master, or in clear when that is none. The nonce is for one secret.
type Sealing struct {
	Master MasterKey
	Nonce  SealNonce
}

// StoredSecret is a secret as a record keeps it: in clear, or sealed under a master key and bound to the row that it stands in,
// so that nobody can put it elsewhere. The zero value is a secret that is no longer held.
type StoredSecret struct{ concealed }

// How the text of a stored secret begins.
const (
	clearMark  = "clear:"  // then hexadecimal digits
	sealedMark = "sealed:" // then base64 of nonce, AES-256-GCM cipher text and tag
)

// Seal keeps a secret for the row of that id. Without a master key it is kept in clear.
func Seal(how Sealing, row string, secret []byte) StoredSecret {
	if how.Master.IsZero() {
		return StoredSecret{conceal([]byte(clearMark + hex.EncodeToString(secret)))}
	}
	box := how.Master.cipher().Seal(how.Nonce[:], how.Nonce[:], secret, []byte(row))
	return StoredSecret{conceal([]byte(sealedMark + base64.RawStdEncoding.EncodeToString(box)))}
}

// cipher cannot fail: the key has the right size.
func (m MasterKey) cipher() cipher.AEAD {
	block, _ := aes.NewCipher(m.reveal())
	aead, _ := cipher.NewGCM(block)
	return aead
}

// ParseStoredSecret reads what Stored wrote; the empty text is a secret that is no longer held. Anything else is corruption.
func ParseStoredSecret(text string) (StoredSecret, error) {
	if text == "" {
		return StoredSecret{}, nil
	}
	s := StoredSecret{conceal([]byte(text))}
	_, err := s.content()
	return s, err
}

// Stored is the whole text, for the store alone. Unless it is sealed it shows the secret.
func (s StoredSecret) Stored() string { return string(s.reveal()) }

// Sealed reports whether a master key is needed to open it.
func (s StoredSecret) Sealed() bool { return strings.HasPrefix(s.Stored(), sealedMark) }

// content is the secret, or the sealed box.
func (s StoredSecret) content() ([]byte, error) {
	text := s.Stored()
	if digits, ok := strings.CutPrefix(text, clearMark); ok {
		if raw, err := hex.DecodeString(digits); err == nil {
			return raw, nil
		}
	}
	if box, ok := strings.CutPrefix(text, sealedMark); ok {
		if raw, err := base64.RawStdEncoding.Strict().DecodeString(box); err == nil && len(raw) > len(SealNonce{}) {
			return raw, nil
		}
	}
	return nil, Errorf(CodeCorruption, "a stored secret cannot be read")
}

// Open is the secret of the row of that id; nil when it is no longer held. A clear one needs no master key. Codes:
// master_key_required; master_key_mismatch, also for a secret that was altered or brought from another row; corruption.
func (s StoredSecret) Open(master MasterKey, row string) ([]byte, error) {
	if s.IsZero() {
		return nil, nil
	}
	content, err := s.content()
	switch {
	case err != nil || !s.Sealed():
		return content, err
	case master.IsZero():
		return nil, Errorf(CodeMasterKeyRequired, "stored secrets are sealed, and there is no master key").With("row", row).
			WithHint("start with the master key under which they were sealed")
	}
	nonce, box := content[:len(SealNonce{})], content[len(SealNonce{}):]
	secret, err := master.cipher().Open(nil, nonce, box, []byte(row))
	if err != nil {
		return nil, Errorf(CodeMasterKeyMismatch, "a stored secret does not open under this master key").With("row", row).
			WithHint("start with the master key under which it was sealed")
	}
	return secret, nil
}

// Reseal keeps the same secret in another way: sealed where it was clear, under another master key, or in clear again. A secret
// that is no longer held stays so. Codes are those of Open.
func (s StoredSecret) Reseal(from MasterKey, to Sealing, row string) (StoredSecret, error) {
	secret, err := s.Open(from, row)
	if err != nil || secret == nil {
		return s, err
	}
	return Seal(to, row, secret), nil
}
