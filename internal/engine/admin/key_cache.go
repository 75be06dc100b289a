package admin

import (
	"context"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

const (
	// keyCacheAge is how long a cached key is used without a read: less than the 5 s after which a change by another process must be seen (U120).
	keyCacheAge = 4 * time.Second
	keyCacheMax = 10_000
)

// keyCache caches API keys for a few seconds, so that a request does not cost a read. A change by this process is seen at once, one by another
// process when the entry is too old.
type keyCache struct {
	mu      sync.Mutex
	keys    map[string]cachedKey
	changes int // counts what was forgotten: a read that began before must not be remembered
}

// cachedKey is a key as it was read.
type cachedKey struct {
	key    keyring.APIKey
	now    base.Time // by the store's clock, when it was read
	readAt time.Time
}

func newKeyCache() *keyCache { return &keyCache{keys: map[string]cachedKey{}} }

// get returns a key that was read recently. If there is none, since is the value to pass to put, which then detects changes made meanwhile.
func (c *keyCache) get(id string, host time.Time) (k cachedKey, ok bool, since int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k, ok = c.keys[id]
	return k, ok && host.Sub(k.readAt) < keyCacheAge, c.changes
}

func (c *keyCache) put(id string, k cachedKey, since int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changes != since {
		return
	}
	if len(c.keys) >= keyCacheMax {
		clear(c.keys)
	}
	c.keys[id] = k
}

func (c *keyCache) forget(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes++
	delete(c.keys, id)
}

func (c *keyCache) forgetAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes++
	clear(c.keys)
}

// Authenticate finds the key of a secret (U119): invalid_credentials, api_key_revoked, api_key_expired; missing_credentials when
// there is none.
func (e *Admin) Authenticate(ctx context.Context, text string) (keyring.APIKey, error) {
	if text == "" {
		return keyring.APIKey{}, base.Errorf(base.CodeMissingCredentials, "an API key is required").
			WithHint("send one with `Authorization: Bearer`")
	}
	secret, err := keyring.ParseAPISecret(text)
	if err != nil {
		return keyring.APIKey{}, err
	}
	cached, err := e.cachedKey(ctx, secret.KeyID())
	if err != nil {
		return keyring.APIKey{}, err
	}
	var known *keyring.APIKey
	if cached != nil {
		known = &cached.key
	}
	if err := known.Accept(e.keyTime(cached), secret); err != nil {
		return keyring.APIKey{}, err
	}
	if k := *known; k.Used(e.keyTime(cached)) {
		e.noteUse(ctx, k.ID)
	}
	return known.Shown(), nil
}

// keyTime estimates the store's clock, continued from the time at which the key was read.
func (e *Admin) keyTime(k *cachedKey) base.Time {
	if k == nil {
		return 0
	}
	return k.now.Add(e.Cfg.Clock.Now().Sub(k.readAt).Milliseconds())
}

// cachedKey is a key as it is, or was a few seconds ago; nil when there is none.
func (e *Admin) cachedKey(ctx context.Context, id string) (*cachedKey, error) {
	cached, fresh, since := e.keys.get(id, e.Cfg.Clock.Now())
	if fresh {
		return &cached, nil
	}
	loaded, err := e.Store.Read(ctx, store.Want{Docs: []store.DocRef{keyRef(id)}})
	if err != nil {
		return nil, txn.PublicFault(err)
	}
	doc, ok := loaded.Docs[keyRef(id)]
	if !ok {
		return nil, nil
	}
	k, err := decodeKeyRecord(&doc)
	if err != nil {
		return nil, err
	}
	cached = cachedKey{key: *k, now: loaded.Now, readAt: e.Cfg.Clock.Now()}
	e.keys.put(id, cached, since)
	return &cached, nil
}

// noteUse writes down that a key was used. Nothing depends on it: a failure costs no request.
func (e *Admin) noteUse(ctx context.Context, id string) {
	if err := e.Do(ctx, &keyUse{e: e, id: id}); err != nil {
		e.Cfg.Logger.Debug("the use of an API key was not noted", "error", err)
	}
}

// keyUse is the command of noteUse.
type keyUse struct {
	e  *Admin
	id string
}

func (k *keyUse) Name() string { return "use_api_key" }

func (k *keyUse) Want(w *store.Want, _ bool) {
	w.Docs = append(w.Docs, keyRef(k.id))
	w.LockDocs = true
}

func (k *keyUse) Decide(u *txn.Tx) error {
	key, err := decodeKeyRecord(u.Doc(keyRef(k.id)))
	if key == nil || err != nil {
		return err
	}
	u.After = append(u.After, func() { k.e.keys.forget(k.id) }) // the next look finds the new last_used_at
	if key.Used(u.Now) {
		u.PutDoc(store.Doc{DocRef: keyRef(k.id), Body: keyChange(nil, key).Body})
	}
	return nil
}
