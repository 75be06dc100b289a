package core

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
)

func asBytes(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

// seal covers both ends of the chain and the namespace. The rows between are covered by the hash of the newest row.
func (c *AuditChain) seal(key keyring.AuditKey, namespace string) []byte {
	return key.Mac([]byte("audit_chain"), []byte(namespace), asBytes(c.First), c.Anchor, asBytes(c.Last), c.Hash, asBytes(int64(c.At)),
		asBytes(c.Keyed), asBytes(c.Altered))
}

// SealUnder seals the head in its present state. It must not be changed afterwards, except for LookAt.
func (c *AuditChain) SealUnder(key keyring.AuditKey, namespace string) {
	c.Seal = c.seal(key, namespace)
}

// SealedUnder reports whether the head of that namespace is unchanged since it was sealed with the key. Without a key it returns false.
func (c *AuditChain) SealedUnder(key keyring.AuditKey, namespace string) bool {
	return !key.IsZero() && hmac.Equal(c.Seal, c.seal(key, namespace))
}

// StartSeal puts a chain without a seal under the key: the next row is the first that cannot have been written without the key. A chain that has a seal
// was sealed under another key, which is lost, so it counts as altered.
func (c *AuditChain) StartSeal() {
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
	c.Last, c.Hash, c.At = number, row.Hash, base.Later(row.At, c.At)
}

// AuditRolls is the number of lists of chains. Never change it: the list that a chain belongs to is computed from it. There are several because a
// list is rewritten as a whole for each new chain.
const AuditRolls = 64

// AuditRollOf returns the number of the list that contains the chain of a namespace.
func AuditRollOf(namespace string) int { return int(sha256.Sum256([]byte(namespace))[0]) % AuditRolls }

// AuditRoll lists chains, so that the removal of a whole chain is detected. As soon as there is an audit key, there is one list of every number.
type AuditRoll struct {
	Names     []string  `json:"names"`               // of namespaces, sorted
	AlteredAt base.Time `json:"altered_at,omitzero"` // when the list was found without a matching seal; 0: never
	Seal      []byte    `json:"seal"`
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

func (r *AuditRoll) seal(key keyring.AuditKey, no int) []byte {
	parts := [][]byte{[]byte("audit_roll"), asBytes(int64(no)), asBytes(int64(r.AlteredAt))}
	for _, name := range r.Names {
		parts = append(parts, []byte(name))
	}
	return key.Mac(parts...)
}

// SealUnder seals the list of that number in its present state.
func (r *AuditRoll) SealUnder(key keyring.AuditKey, no int) { r.Seal = r.seal(key, no) }

// SealedUnder reports whether the list of that number is unchanged since it was sealed with the key. Without a key it returns false.
func (r *AuditRoll) SealedUnder(key keyring.AuditKey, no int) bool {
	return !key.IsZero() && hmac.Equal(r.Seal, r.seal(key, no))
}
