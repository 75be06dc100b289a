package admin

import (
	"bytes"
	"sync"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// KeySetRef names the one record that holds all signing keys (W19): a change locks it, and of several processes that create it one wins.
var KeySetRef = store.DocRef{Kind: docSigningKeys, Key: "signing_keys"}

// WantKeys adds the key set to the rows of a command that signs or verifies.
func WantKeys(w *store.Want) { w.Docs = append(w.Docs, KeySetRef) }

// Ring is the key set as this transaction has it, opened (W21): for commands whose want named it. Codes of KeySet.Open.
func Ring(u *txn.Tx) (*keyring.Ring, error) {
	doc, loaded := u.Docs[KeySetRef]
	if !loaded {
		return nil, base.Errorf(base.CodeInternal, "the signing keys were not loaded")
	}
	return Of(u).Signing.Open(keySetText(doc))
}

func keySetText(doc *store.Doc) []byte {
	if doc == nil {
		return nil
	}
	return doc.Body
}

// keyRings keeps the ring that was opened last. It is good for as long as the stored text, and with it the version, is the one
// that it was made of: every transaction brings the text that it has read.
type keyRings struct {
	mu     sync.Mutex
	master keyring.MasterKey
	text   []byte
	ring   *keyring.Ring
}

func newKeyRings(master keyring.MasterKey) *keyRings { return &keyRings{master: master} }

func (k *keyRings) Open(text []byte) (*keyring.Ring, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ring != nil && bytes.Equal(k.text, text) {
		return k.ring, nil
	}
	set, err := keyring.DecodeKeySet(text)
	if err != nil {
		return nil, err
	}
	ring, err := set.Open(k.master)
	if err != nil {
		return nil, err
	}
	k.text, k.ring = text, ring
	return ring, nil
}

// forget closes the ring: the next transaction opens what is stored.
func (k *keyRings) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.text, k.ring = nil, nil
}

// MasterKey is the master key of this process; none when secrets are kept in clear.
func (k *keyRings) MasterKey() keyring.MasterKey {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.master
}

// exchanged takes another master key into use, which what is stored was sealed under.
func (k *keyRings) exchanged(master keyring.MasterKey) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.master, k.text, k.ring = master, nil, nil
}

// Last is the ring that was opened last; nil: none was.
func (k *keyRings) Last() *keyring.Ring {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.ring
}
