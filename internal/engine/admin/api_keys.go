package admin

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

func keyRef(id string) store.DocRef { return store.DocRef{Kind: docAPIKey, Key: id} }

// decodeKeyRecord reads an API key; nil when there is none.
func decodeKeyRecord(doc *store.Doc) (*keyring.APIKey, error) {
	if doc == nil {
		return nil, nil
	}
	var k keyring.APIKey
	if err := json.Unmarshal(doc.Body, &k); err != nil {
		return nil, txn.Corrupt("API key", err)
	}
	return &k, nil
}

// seesKey reports whether the caller may administer a key: all its namespaces are the caller's (U122).
func seesKey(c txn.Caller, s *keyring.APIKeySettings) bool {
	return c.Namespaces == nil || !s.Everywhere() && !slices.ContainsFunc(s.Namespaces, func(name string) bool { return !c.Sees(name) })
}

func noSuchKey(id string) error { return base.Errorf(base.CodeAPIKeyNotFound, "no API key %q", id) }

// keyChange is what a change of a key writes. from is nil for a new one.
func keyChange(from, to *keyring.APIKey) AdminChange {
	body, _ := json.Marshal(to)
	change := AdminChange{Body: body, Made: from == nil, Chain: ChainOf(keyNamespaces(from, to)), Entity: "api_key", ID: to.ID, After: to.Shown()}
	if from != nil {
		change.Before = from.Shown()
	}
	return change
}

// keyNamespaces are all namespaces that a change of a key concerns.
func keyNamespaces(keys ...*keyring.APIKey) []string {
	var all []string
	for _, k := range keys {
		if k != nil {
			all = append(all, k.Namespaces...)
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(all)))
}

// CreateAPIKey makes a key for a secret that the caller has minted. The same secret again finds the key that it made.
func (e *Admin) CreateAPIKey(ctx context.Context, c txn.Caller, secret keyring.APISecret, s keyring.APIKeySettings, how AdminAction) (keyring.APIKey, error) {
	if err := s.Normalize(); err != nil {
		return keyring.APIKey{}, err
	}
	if !seesKey(c, &s) {
		return keyring.APIKey{}, base.Errorf(base.CodeNamespaceForbidden, "a key cannot reach further than who makes it").WithField("namespaces")
	}
	var answer keyring.APIKey
	err := e.Administer(ctx, &AdminCommand{
		Op: "create_api_key", Caller: c, How: how, Ref: keyRef(secret.KeyID()), Answer: &answer,
		Where: func(*store.Doc) ([]string, error) { return []string{ChainOf(s.Namespaces)}, nil },
		Act: func(u *txn.Tx, doc *store.Doc) (AdminChange, error) {
			existing, err := decodeKeyRecord(doc)
			switch {
			case err != nil:
				return AdminChange{}, err
			case existing != nil && (!existing.Is(secret) || !seesKey(c, &existing.APIKeySettings)):
				return AdminChange{}, base.Errorf(base.CodeIDConflict, "the id belongs to another key").WithField("key_id")
			case existing != nil:
				answer = existing.Shown()
				return AdminChange{}, nil
			}
			k, err := keyring.NewAPIKey(u.Now, c.Principal, secret, s)
			if err != nil {
				return AdminChange{}, err
			}
			answer = k.Shown()
			return keyChange(nil, &k), nil
		},
	}, "", s)
	return txn.Answered(&answer, err)
}

// ChangeAPIKey changes settings of a key. One that leaves no key that administers all namespaces is last_admin_key, unless force.
func (e *Admin) ChangeAPIKey(ctx context.Context, c txn.Caller, id string, p keyring.APIKeyPatch, force bool, how AdminAction) (keyring.APIKey, error) {
	beside, err := e.otherAdminKeys(ctx, id, force || p.Roles == nil && p.Namespaces == nil)
	if err != nil {
		return keyring.APIKey{}, err
	}
	return e.onKey(ctx, keyCommand{op: "change_api_key", id: id, args: forcedArgs(p, force), force: force, beside: beside}, c, how, func(now base.Time, k *keyring.APIKey) (bool, error) {
		if err := k.Change(now, p); err != nil {
			return false, err
		}
		if !seesKey(c, &k.APIKeySettings) {
			return false, base.Errorf(base.CodeNamespaceForbidden, "a key cannot reach further than who changes it").WithField("namespaces")
		}
		return true, nil
	})
}

// RotateAPIKey gives a key a new secret, which the caller has minted. The old one works on for overlap. A repeat of a recorded
// request changes nothing: its own secret is then not the key's.
func (e *Admin) RotateAPIKey(ctx context.Context, c txn.Caller, secret keyring.APISecret, overlap base.Millis, how AdminAction) (RotatedKey, error) {
	k, err := e.onKey(ctx, keyCommand{op: "rotate_api_key", id: secret.KeyID(), args: overlap}, c, how, func(now base.Time, k *keyring.APIKey) (bool, error) {
		return true, k.Rotate(now, secret, overlap)
	})
	if err != nil {
		return RotatedKey{}, err
	}
	e.keys.forget(k.ID)
	now, err := e.cachedKey(ctx, k.ID)
	if err != nil || now == nil {
		return RotatedKey{Key: k}, err
	}
	return RotatedKey{Key: k, Present: now.key.Is(secret)}, nil
}

// RotatedKey is the answer to a rotation.
type RotatedKey struct {
	Key     keyring.APIKey
	Present bool // the secret that the call brought is the key's now
}

// RevokeAPIKey ends a key for good. The last one that administers all namespaces is last_admin_key, unless force.
func (e *Admin) RevokeAPIKey(ctx context.Context, c txn.Caller, id string, force bool, how AdminAction) (keyring.APIKey, error) {
	beside, err := e.otherAdminKeys(ctx, id, force)
	if err != nil {
		return keyring.APIKey{}, err
	}
	cmd := keyCommand{op: "revoke_api_key", id: id, args: forcedArgs(nil, force), force: force, beside: beside}
	return e.onKey(ctx, cmd, c, how, func(now base.Time, k *keyring.APIKey) (bool, error) { return k.Revoke(now), nil })
}

// forcedArgs are what a repeat of a command is recognised by. Without force they are as if there was no such thing.
func forcedArgs(args any, force bool) any {
	if !force {
		return args
	}
	return []any{args, "force"}
}

// maxBeside is how many other admin keys a command looks at: one is enough, the others are there should that one go meanwhile.
const maxBeside = 8

// otherAdminKeys returns some other keys that administer all namespaces. The command locks and reads them again: of two commands that each remove
// the other's last key at the same time, the second finds none. needless: the answer is not needed.
func (e *Admin) otherAdminKeys(ctx context.Context, id string, needless bool) (refs []store.DocRef, err error) {
	if needless {
		return nil, nil
	}
	for after := ""; len(refs) < maxBeside; {
		loaded, err := e.Store.Read(ctx, store.Want{Scans: []store.Scan{{Kind: docAPIKey, After: after, Limit: keysAtOnce}}})
		if err != nil {
			return nil, txn.PublicFault(err)
		}
		docs := loaded.Scanned[0]
		for i := range docs {
			k, err := decodeKeyRecord(&docs[i])
			if err != nil {
				return nil, err
			}
			if k.ID != id && k.AdministersAll(loaded.Now) && len(refs) < maxBeside {
				refs = append(refs, keyRef(k.ID))
			}
		}
		if len(docs) < keysAtOnce {
			break
		}
		after = docs[len(docs)-1].Key
	}
	return refs, nil
}

// keysAtOnce is how many keys are read at a time when all are looked at.
const keysAtOnce = 500

// keyCommand says what is done with a key that exists.
type keyCommand struct {
	op, id string
	args   any            // what a repeat is recognised by
	force  bool           // also with the last key that administers all namespaces
	beside []store.DocRef // other keys that do
}

// keepsAdmin refuses a change after which no key administers all namespaces.
func (cmd *keyCommand) keepsAdmin(u *txn.Tx, before, after *keyring.APIKey) error {
	if cmd.force || !before.AdministersAll(u.Now) || after.AdministersAll(u.Now) {
		return nil
	}
	for _, ref := range cmd.beside {
		other, err := decodeKeyRecord(u.Doc(ref))
		if err != nil {
			return err
		}
		if other != nil && other.AdministersAll(u.Now) {
			return nil
		}
	}
	return keyring.LastAdminKey(cmd.id)
}

// onKey changes a key that exists.
func (e *Admin) onKey(
	ctx context.Context, cmd keyCommand, c txn.Caller, how AdminAction, change func(now base.Time, k *keyring.APIKey) (bool, error),
) (keyring.APIKey, error) {
	var answer keyring.APIKey
	find := func(doc *store.Doc) (*keyring.APIKey, error) {
		k, err := decodeKeyRecord(doc)
		if err == nil && (k == nil || !seesKey(c, &k.APIKeySettings)) {
			err = noSuchKey(cmd.id)
		}
		return k, err
	}
	err := e.Administer(ctx, &AdminCommand{
		Op: cmd.op, Caller: c, How: how, Ref: keyRef(cmd.id), Beside: cmd.beside, Answer: &answer,
		Where: func(doc *store.Doc) ([]string, error) {
			k, err := find(doc)
			if err != nil {
				return nil, err
			}
			return []string{ChainOf(k.Namespaces), keyring.Everywhere}, nil // the second, should its namespaces change
		},
		Act: func(u *txn.Tx, doc *store.Doc) (AdminChange, error) {
			k, err := find(doc)
			if err != nil {
				return AdminChange{}, err
			}
			if err := base.CheckRevision(how.Revision, k.Revision); err != nil {
				return AdminChange{}, err
			}
			before := *k
			changed, err := change(u.Now, k)
			if err == nil {
				err = cmd.keepsAdmin(u, &before, k)
			}
			if err != nil {
				return AdminChange{}, err
			}
			answer = k.Shown()
			if !changed {
				return AdminChange{}, nil
			}
			u.After = append(u.After, func() { e.keys.forget(cmd.id) })
			return keyChange(&before, k), nil
		},
	}, cmd.id, cmd.args)
	return txn.Answered(&answer, err)
}

// APIKey shows a key.
func (e *Admin) APIKey(ctx context.Context, c txn.Caller, id string) (keyring.APIKey, error) {
	loaded, err := e.Store.Read(ctx, store.Want{Docs: []store.DocRef{keyRef(id)}})
	if err != nil {
		return keyring.APIKey{}, txn.PublicFault(err)
	}
	doc, ok := loaded.Docs[keyRef(id)]
	if !ok {
		return keyring.APIKey{}, noSuchKey(id)
	}
	k, err := decodeKeyRecord(&doc)
	switch {
	case err != nil:
		return keyring.APIKey{}, err
	case !seesKey(c, &k.APIKeySettings):
		return keyring.APIKey{}, noSuchKey(id)
	}
	return k.Shown(), nil
}

// APIKeys lists the keys that the caller may administer, by id.
func (e *Admin) APIKeys(ctx context.Context, c txn.Caller, cursor string, limit *int) ([]keyring.APIKey, string, error) {
	return txn.ListDocs(ctx, e.Engine, docAPIKey, "api_keys", cursor, limit, func(doc *store.Doc) (keyring.APIKey, bool, error) {
		k, err := decodeKeyRecord(doc)
		if err != nil || !seesKey(c, &k.APIKeySettings) {
			return keyring.APIKey{}, false, err
		}
		return k.Shown(), true, nil
	})
}
