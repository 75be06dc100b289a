package keyring

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"encoding/hex"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// MasterKey seals secrets at rest (W24): 32 bytes from outside the store. The zero value is no key: secrets are stored in clear.
type MasterKey struct{ concealed }

const masterKeySize = 32

// NewMasterKey returns the master key with these bytes.
func NewMasterKey(bytes [masterKeySize]byte) MasterKey { return MasterKey{conceal(bytes[:])} }

// ParseMasterKey reads 32 bytes as hexadecimal digits or any form of base64 (U187). Surrounding white space is ignored, since files end with it.
// Errors: invalid_argument, which never shows the text.
func ParseMasterKey(text string) (MasterKey, error) {
	text = strings.TrimSpace(text)
	if raw, err := hex.DecodeString(text); err == nil && len(raw) == masterKeySize {
		return NewMasterKey([masterKeySize]byte(raw)), nil
	}
	text = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(text, "="))
	if raw, err := base64.RawStdEncoding.Strict().DecodeString(text); err == nil && len(raw) == masterKeySize {
		return NewMasterKey([masterKeySize]byte(raw)), nil
	}
	return MasterKey{}, base.Invalid("master_key", "must be 32 bytes as hexadecimal digits or base64")
}

// SealNonce makes each seal under one master key unique: 12 random bytes, used once.
type SealNonce [12]byte

// Sealing states how a new secret is stored: under Master, or in clear if that is zero. The nonce is for one secret.
type Sealing struct {
	Master MasterKey
	Nonce  SealNonce
}

// StoredSecret is a secret as a record stores it: in clear, or sealed under a master key and bound to its row, so that it cannot be moved to
// another row. The zero value is an erased secret.
type StoredSecret struct{ concealed }

// The prefixes of a stored secret.
const (
	clearMark  = "clear:"  // then hexadecimal digits
	sealedMark = "sealed:" // then base64 of nonce, AES-256-GCM cipher text and tag
)

// Seal returns the stored form of a secret for the row of that id. Without a master key it is in clear.
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

// ParseStoredSecret reads the output of Stored; the empty text is an erased secret. Anything else is corruption.
func ParseStoredSecret(text string) (StoredSecret, error) {
	if text == "" {
		return StoredSecret{}, nil
	}
	s := StoredSecret{conceal([]byte(text))}
	_, err := s.content()
	return s, err
}

// Stored returns the complete text, for the store only. Unless it is sealed, it contains the secret.
func (s StoredSecret) Stored() string { return string(s.reveal()) }

// Sealed reports whether a master key is needed to open it.
func (s StoredSecret) Sealed() bool { return strings.HasPrefix(s.Stored(), sealedMark) }

// content returns the secret or the sealed bytes.
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
	return nil, base.Errorf(base.CodeCorruption, "a stored secret cannot be read")
}

// Open returns the secret of the row of that id; nil if it was erased. A secret in clear needs no master key. Errors: master_key_required;
// master_key_mismatch, also for a secret that was altered or moved from another row; corruption.
func (s StoredSecret) Open(master MasterKey, row string) ([]byte, error) {
	if s.IsZero() {
		return nil, nil
	}
	content, err := s.content()
	switch {
	case err != nil || !s.Sealed():
		return content, err
	case master.IsZero():
		return nil, base.Errorf(base.CodeMasterKeyRequired, "stored secrets are sealed, and there is no master key").With("row", row).
			WithHint("start with the master key under which they were sealed")
	}
	nonce, box := content[:len(SealNonce{})], content[len(SealNonce{}):]
	secret, err := master.cipher().Open(nil, nonce, box, []byte(row))
	if err != nil {
		return nil, base.Errorf(base.CodeMasterKeyMismatch, "a stored secret does not open under this master key").With("row", row).
			WithHint("start with the master key under which it was sealed")
	}
	return secret, nil
}

// Reseal stores the same secret in another way: sealed if it was in clear, under another master key, or in clear again. An erased secret stays
// erased. Errors are those of Open.
func (s StoredSecret) Reseal(from MasterKey, to Sealing, row string) (StoredSecret, error) {
	secret, err := s.Open(from, row)
	if err != nil || secret == nil {
		return s, err
	}
	return Seal(to, row, secret), nil
}
