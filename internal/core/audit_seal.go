package core

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// AuditKey seals the heads of audit chains and the lists of them (U131), so that who can write the database but does not have the
// master key cannot make up a chain that fits. It is random, made once per installation, and kept only under a master key. The zero
// value is none.
type AuditKey struct{ concealed }

// auditKeyRow is the id that the stored key is bound to.
const auditKeyRow = "audit_key"

// MakeAuditKey gives the set a key of the audit log. The master key must not be none. The version stays: no signing key has changed.
func (s *KeySet) MakeAuditKey(how Sealing, random [keySecretSize]byte) AuditKey {
	s.Audit = Seal(how, auditKeyRow, random[:])
	return AuditKey{conceal(random[:])}
}

// AuditKey opens the key of the audit log; the zero key when there is none. Codes of StoredSecret.Open. One that is stored in clear
// is corruption: anybody could have put it there.
func (s *KeySet) AuditKey(master MasterKey) (AuditKey, error) {
	if s.Audit.IsZero() {
		return AuditKey{}, nil
	}
	raw, err := s.Audit.Open(master, auditKeyRow)
	switch {
	case err != nil:
		return AuditKey{}, err
	case !s.Audit.Sealed() || len(raw) != keySecretSize:
		return AuditKey{}, Errorf(CodeCorruption, "the stored key of the audit log is none")
	}
	return AuditKey{conceal(raw)}, nil
}

// mac is HMAC-SHA-256 over the parts, each with its length. The first one says what is sealed.
func (k AuditKey) mac(parts ...[]byte) []byte {
	h := hmac.New(sha256.New, k.reveal())
	for _, part := range parts {
		addPart(h, part)
	}
	return h.Sum(nil)
}

func asBytes(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

// seal covers both ends of the chain and the namespace. The rows between follow from the hash of the newest.
func (c *AuditChain) seal(key AuditKey, namespace string) []byte {
	return key.mac([]byte("audit_chain"), []byte(namespace), asBytes(c.First), c.Anchor, asBytes(c.Last), c.Hash, asBytes(int64(c.At)),
		asBytes(c.Keyed), asBytes(c.Altered))
}

// SealUnder seals the head as it is. It must not be changed afterwards, save for LookAt.
func (c *AuditChain) SealUnder(key AuditKey, namespace string) { c.Seal = c.seal(key, namespace) }

// SealedUnder reports whether the head of that namespace is as somebody with the key has left it. Without a key it never is.
func (c *AuditChain) SealedUnder(key AuditKey, namespace string) bool {
	return !key.IsZero() && hmac.Equal(c.Seal, c.seal(key, namespace))
}

// Adopt puts a chain that stands without a seal under the key: the next row is the first that nobody without it can have written. A
// chain that has a seal had another key, which is gone: it counts as altered.
func (c *AuditChain) Adopt() {
	if c.Seal != nil || !c.Possible() {
		c.MarkAltered()
	}
	if c.Keyed == 0 {
		c.Keyed = c.Last + 1
	}
}

// MarkAltered keeps that somebody else has changed the chain: before the next row is written, which seals it again if there is a key.
func (c *AuditChain) MarkAltered() {
	if c.Altered == 0 {
		c.Altered = max(1, c.Last+1)
	}
}

// Continue lets the next row follow the newest one that is there, behind the one that the head tells of.
func (c *AuditChain) Continue(number int64, row *AuditRow) {
	c.Last, c.Hash, c.At = number, row.Hash, later(row.At, c.At)
}

// AuditRolls is how many lists of chains there are. Never change it: which list has a chain follows from it. The lists are rewritten
// whole when a chain is new, so that there are several.
const AuditRolls = 64

// AuditRollOf is the number of the list that has the chain of a namespace.
func AuditRollOf(namespace string) int { return int(sha256.Sum256([]byte(namespace))[0]) % AuditRolls }

// AuditRoll lists chains, so that one that was removed whole is found. There is one of every number as soon as there is an audit key.
type AuditRoll struct {
	Names     []string `json:"names"`               // of namespaces, sorted
	AlteredAt Time     `json:"altered_at,omitzero"` // when it was met without a seal that fits; 0: never
	Seal      []byte   `json:"seal"`
}

// Has reports whether the list has the chain of a namespace.
func (r *AuditRoll) Has(namespace string) bool {
	_, found := slices.BinarySearch(r.Names, namespace)
	return found
}

// Add puts the chain of a namespace on the list. Copies of the list stay as they were.
func (r *AuditRoll) Add(namespace string) {
	if at, found := slices.BinarySearch(r.Names, namespace); !found {
		r.Names = slices.Insert(slices.Clone(r.Names), at, namespace)
	}
}

func (r *AuditRoll) seal(key AuditKey, no int) []byte {
	parts := [][]byte{[]byte("audit_roll"), asBytes(int64(no)), asBytes(int64(r.AlteredAt))}
	for _, name := range r.Names {
		parts = append(parts, []byte(name))
	}
	return key.mac(parts...)
}

// SealUnder seals the list of that number as it is.
func (r *AuditRoll) SealUnder(key AuditKey, no int) { r.Seal = r.seal(key, no) }

// SealedUnder reports whether the list of that number is as somebody with the key has left it. Without a key it never is.
func (r *AuditRoll) SealedUnder(key AuditKey, no int) bool {
	return !key.IsZero() && hmac.Equal(r.Seal, r.seal(key, no))
}
