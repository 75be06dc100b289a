package keyring

import (
	"encoding/json"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// storedKeySet is the stored form of the key set. The types used elsewhere hide their secrets even from JSON.
type storedKeySet struct {
	Version int64       `json:"version"`
	Keys    []storedKey `json:"keys"`
	Audit   string      `json:"audit_key,omitempty"`
}

type storedKey struct {
	SigningKey
	Secret string `json:"secret,omitempty"` // takes precedence over the field of the same name in SigningKey
}

// Encode encodes the set for the store, including its secrets in stored form: the text must not be used for anything else.
func (s *KeySet) Encode() []byte {
	stored := storedKeySet{Version: s.Version, Keys: make([]storedKey, len(s.Keys)), Audit: s.Audit.Stored()}
	for i, k := range s.Keys {
		stored.Keys[i] = storedKey{SigningKey: k, Secret: k.Secret.Stored()}
	}
	text, _ := json.Marshal(stored)
	return text
}

// DecodeKeySet reads the output of Encode; an empty text is the set without keys. Fields added by a later version are ignored. Invalid text is
// corruption; the message never quotes it.
func DecodeKeySet(text []byte) (KeySet, error) {
	if len(text) == 0 {
		return KeySet{}, nil
	}
	var stored storedKeySet
	if err := json.Unmarshal(text, &stored); err != nil || stored.Version < 1 {
		return KeySet{}, base.Errorf(base.CodeCorruption, "the stored key set is none")
	}
	s := KeySet{Version: stored.Version}
	for _, k := range stored.Keys {
		secret, err := ParseStoredSecret(k.Secret)
		if err != nil {
			return KeySet{}, err
		}
		k.SigningKey.Secret = secret
		if why := s.cannotHave(&k.SigningKey); why != "" {
			return KeySet{}, base.Errorf(base.CodeCorruption, "key %d of the stored key set %s", len(s.Keys)+1, why)
		}
		s.Keys = append(s.Keys, k.SigningKey)
	}
	audit, err := ParseStoredSecret(stored.Audit)
	s.Audit = audit
	return s, err
}

// cannotHave returns why no rule can have written the key in addition to those in the set, or "".
func (s *KeySet) cannotHave(k *SigningKey) string {
	switch {
	case !isKid(k.Kid):
		return "has no kid"
	case s.find(k.Kid) != nil:
		return "has the kid of another"
	case k.State == KeyActive && s.active() != nil:
		return "is active beside another"
	case k.State == KeyActive && k.Secret.IsZero():
		return "is active without a secret"
	case k.State == KeyVerifyOnly && k.VerifyUntil == 0:
		return "verifies without an end"
	case k.State == KeyRevoked && !k.Secret.IsZero():
		return "was revoked and has a secret"
	case k.State < KeyActive || k.State > KeyRevoked:
		return "has no state"
	default:
		return ""
	}
}
