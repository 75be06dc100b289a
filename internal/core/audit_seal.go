package core

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"slices"
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
		return AuditKey{}, Errorf(CodeCorruption, "the stored key of the audit log is none")
	}
	return AuditKey{conceal(raw)}, nil
}

// mac is HMAC-SHA-256 over the parts, each with its length. The first part names what is sealed.
func (k AuditKey) mac(parts ...[]byte) []byte {
	h := hmac.New(sha256.New, k.reveal())
	for _, part := range parts {
		addPart(h, part)
	}
	return h.Sum(nil)
}

func asBytes(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

// seal covers both ends of the chain and the namespace. The rows between are covered by the hash of the newest row.
func (c *AuditChain) seal(key AuditKey, namespace string) []byte {
	return key.mac([]byte("audit_chain"), []byte(namespace), asBytes(c.First), c.Anchor, asBytes(c.Last), c.Hash, asBytes(int64(c.At)),
		asBytes(c.Keyed), asBytes(c.Altered))
}

// SealUnder seals the head in its present state. It must not be changed afterwards, except for LookAt.
func (c *AuditChain) SealUnder(key AuditKey, namespace string) { c.Seal = c.seal(key, namespace) }

// SealedUnder reports whether the head of that namespace is unchanged since it was sealed with the key. Without a key it returns false.
func (c *AuditChain) SealedUnder(key AuditKey, namespace string) bool {
	return !key.IsZero() && hmac.Equal(c.Seal, c.seal(key, namespace))
}

// Adopt puts a chain without a seal under the key: the next row is the first that cannot have been written without the key. A chain that has a seal
// was sealed under another key, which is lost, so it counts as altered.
func (c *AuditChain) Adopt() {
	if c.Seal != nil || !c.Possible() {
		c.MarkAltered()
	}
	if c.Keyed == 0 {
		c.Keyed = c.Last + 1
	}
}

// MarkAltered records that the chain was changed outside the engine. It is called before the next row is written, which seals the chain again if
// there is a key.
func (c *AuditChain) MarkAltered() {
	if c.Altered == 0 {
		c.Altered = max(1, c.Last+1)
	}
}

// Continue makes the next row follow the newest existing row, which comes after the last row known to the head.
func (c *AuditChain) Continue(number int64, row *AuditRow) {
	c.Last, c.Hash, c.At = number, row.Hash, later(row.At, c.At)
}

// AuditRolls is the number of lists of chains. Never change it: the list that a chain belongs to is computed from it. There are several because a
// list is rewritten as a whole for each new chain.
const AuditRolls = 64

// AuditRollOf returns the number of the list that contains the chain of a namespace.
func AuditRollOf(namespace string) int { return int(sha256.Sum256([]byte(namespace))[0]) % AuditRolls }

// AuditRoll lists chains, so that the removal of a whole chain is detected. As soon as there is an audit key, there is one list of every number.
type AuditRoll struct {
	Names     []string `json:"names"`               // of namespaces, sorted
	AlteredAt Time     `json:"altered_at,omitzero"` // when the list was found without a matching seal; 0: never
	Seal      []byte   `json:"seal"`
}

// Has reports whether the list contains the chain of a namespace.
func (r *AuditRoll) Has(namespace string) bool {
	_, found := slices.BinarySearch(r.Names, namespace)
	return found
}

// Add adds the chain of a namespace to the list. Copies of the list are not changed.
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

// SealUnder seals the list of that number in its present state.
func (r *AuditRoll) SealUnder(key AuditKey, no int) { r.Seal = r.seal(key, no) }

// SealedUnder reports whether the list of that number is unchanged since it was sealed with the key. Without a key it returns false.
func (r *AuditRoll) SealedUnder(key AuditKey, no int) bool {
	return !key.IsZero() && hmac.Equal(r.Seal, r.seal(key, no))
}
