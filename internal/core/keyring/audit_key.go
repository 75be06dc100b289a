package keyring

import (
	"crypto/hmac"
	"crypto/sha256"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// AuditKey seals the heads of audit chains and the lists of chains (U131), so that write access to the database without the master key does not
// suffice to forge a valid chain. It is random, made once per installation, and stored only under a master key. The zero value is no key.
type AuditKey struct{ concealed }

// auditKeyRow is the id to which the stored key is bound.
const auditKeyRow = "audit_key"

// MakeAuditKey gives the set an audit log key. The master key must not be zero. The version of the set does not change, because no signing key has
// changed.
func (s *KeySet) MakeAuditKey(how Sealing, random [keySecretSize]byte) AuditKey {
	s.Audit = Seal(how, auditKeyRow, random[:])
	return AuditKey{conceal(random[:])}
}

// AuditKey opens the audit log key; it returns the zero key when there is none. Errors are those of StoredSecret.Open. A key stored in clear is
// corruption: anyone with access to the database could have put it there.
func (s *KeySet) AuditKey(master MasterKey) (AuditKey, error) {
	if s.Audit.IsZero() {
		return AuditKey{}, nil
	}
	raw, err := s.Audit.Open(master, auditKeyRow)
	switch {
	case err != nil:
		return AuditKey{}, err
	case !s.Audit.Sealed() || len(raw) != keySecretSize:
		return AuditKey{}, base.Errorf(base.CodeCorruption, "the stored key of the audit log is none")
	}
	return AuditKey{conceal(raw)}, nil
}

// Mac is HMAC-SHA-256 over the parts, each with its length. The first part names what is sealed.
func (k AuditKey) Mac(parts ...[]byte) []byte {
	h := hmac.New(sha256.New, k.reveal())
	for _, part := range parts {
		base.AddPart(h, part)
	}
	return h.Sum(nil)
}
