package admin

import (
	"context"
	crand "crypto/rand"
	"encoding/json"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Other rooms seal the secrets that they store under the data key: 32 random bytes, made when the first secret is stored, and kept as the signing keys are,
// sealed under the master key if there is one (W24). So the master key is exchanged in one small transaction, however many secrets there are.

// dataKeyRow is the id to which the stored key is bound.
const dataKeyRow = "data_key"

var dataKeyRef = store.DocRef{Kind: docDataKey, Key: dataKeyRow}

// dataKey is the record of the data key.
type dataKey struct {
	Key string `json:"key"`
}

func decodeDataKey(doc *store.Doc) (keyring.StoredSecret, error) {
	var record dataKey
	if err := json.Unmarshal(doc.Body, &record); err != nil {
		return keyring.StoredSecret{}, txn.Corrupt("data key", err)
	}
	return keyring.ParseStoredSecret(record.Key)
}

func dataKeyDoc(s keyring.StoredSecret) store.Doc {
	body, _ := json.Marshal(dataKey{s.Stored()})
	return store.Doc{DocRef: dataKeyRef, Body: body}
}

// DataKey returns the key that seals what other rooms store, and makes it where there is none. Codes: master_key_required, master_key_mismatch.
func (e *Admin) DataKey(ctx context.Context) (keyring.MasterKey, error) {
	if known := e.data.Load(); known != nil {
		return *known, nil
	}
	for try := 0; ; try++ {
		key, err := e.readDataKey(ctx)
		if err != nil || !key.IsZero() {
			return key, err
		}
		err = e.makeDataKey(ctx)
		if err != nil && try == 8 {
			return keyring.MasterKey{}, txn.PublicFault(err)
		}
		if err != nil { // another process has made it meanwhile, or the next try finds out
			e.Pause(try)
		}
	}
}

// readDataKey opens the stored key; the zero key if there is none.
func (e *Admin) readDataKey(ctx context.Context) (keyring.MasterKey, error) {
	since := e.Incarnation()
	docs, err := e.ReadDocs(ctx, dataKeyRef)
	if err != nil {
		return keyring.MasterKey{}, txn.PublicFault(err)
	}
	doc, found := docs[dataKeyRef]
	if !found {
		return keyring.MasterKey{}, nil
	}
	stored, err := decodeDataKey(&doc)
	if err != nil {
		return keyring.MasterKey{}, err
	}
	raw, err := stored.Open(e.Signing.MasterKey(), dataKeyRow)
	if err != nil {
		return keyring.MasterKey{}, err
	}
	if len(raw) != 32 {
		return keyring.MasterKey{}, base.Errorf(base.CodeCorruption, "the stored data key is none")
	}
	key := keyring.NewMasterKey([32]byte(raw))
	if e.Incarnation() == since {
		e.data.Store(&key)
	}
	return key, nil
}

// makeDataKey stores a new key. If there is one already, the commit fails with Conflict.
func (e *Admin) makeDataKey(ctx context.Context) error {
	var random [32]byte
	crand.Read(random[:]) // never fails
	return e.Write(txn.OwnWork(ctx), "make_data_key", &store.Changes{NewDocs: []store.Doc{dataKeyDoc(keyring.Seal(e.sealing(), dataKeyRow, random[:]))}})
}

// startDataKey seals a key that was stored in clear, once there is a master key, and refuses a master key that does not open it.
func (e *Admin) startDataKey(ctx context.Context) error {
	if _, err := e.readDataKey(ctx); err != nil {
		return err
	}
	if e.Cfg.MasterKey.IsZero() {
		return nil
	}
	err := e.OnRefs(txn.OwnWork(ctx), []store.DocRef{dataKeyRef}, func(u *txn.Tx, doc *store.Doc) error {
		if stored, err := decodeDataKey(doc); err != nil || stored.Sealed() {
			return err
		}
		return resealDataKey(u, e.Cfg.MasterKey, e.Cfg.MasterKey)
	})
	if err != nil {
		return txn.PublicFault(err)
	}
	return nil
}

// resealDataKey stores the key under another master key, if there is one. The transaction has its record locked.
func resealDataKey(u *txn.Tx, from, to keyring.MasterKey) error {
	doc := u.Doc(dataKeyRef)
	if doc == nil {
		return nil
	}
	stored, err := decodeDataKey(doc)
	if err != nil {
		return err
	}
	if stored, err = stored.Reseal(from, keyring.Sealing{Master: to, Nonce: nonces(1)[0]}, dataKeyRow); err != nil {
		return err
	}
	u.PutDoc(dataKeyDoc(stored))
	return nil
}
