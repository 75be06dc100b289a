package txn

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/store"
)

func noSuchQuota(id string) error { return base.Errorf(base.CodeQuotaNotFound, "no quota %q", id) }

// PutQuota sets the whole record of a quota, and creates it if it is new (S36). It takes effect with its commit.
func (e *Engine) PutQuota(ctx context.Context, c Caller, id string, s core.QuotaSettings, how AdminAction) (QuotaView, error) {
	if err := core.CheckQuotaID(id); err != nil {
		return QuotaView{}, err
	}
	if err := s.Normalize(); err != nil {
		return QuotaView{}, err
	}
	err := e.administer(ctx, &adminCommand{
		op: "put_quota", caller: c, how: how, ref: QuotaRef(id), where: everywhere,
		act: func(u *Tx, doc *store.Doc) (adminChange, error) {
			quota, err := quotaToPut(id, doc, how.Revision, u.Now)
			if err != nil {
				return adminChange{}, err
			}
			before := *quota
			fx := u.Effects(c)
			if !quota.Change(fx, s) {
				return adminChange{}, nil
			}
			u.Keep(fx)
			u.After = append(u.After, e.rulesChanged)
			change := quotaChange(&before, quota)
			change.made = doc == nil
			return change, nil
		},
	}, id, quotaArgs{s, how.Revision})
	if err != nil {
		return QuotaView{}, err
	}
	return e.Quota(ctx, c, id)
}

// quotaArgs is what a repeat of put_quota is recognised by.
type quotaArgs struct {
	Settings core.QuotaSettings
	Revision *int64
}

// quotaToPut returns the quota as it is before it gets new settings. A record that cannot be read is written from scratch, which repairs it.
func quotaToPut(id string, doc *store.Doc, expected *int64, now base.Time) (*core.Quota, error) {
	if doc != nil {
		if quota, err := decodeQuota(doc); err == nil {
			return quota, base.CheckRevision(expected, quota.Revision)
		}
	} else if expected != nil { // a quota that does not exist has no revision
		return nil, noSuchQuota(id)
	}
	return core.NewQuota(id, now), nil
}

// everywhere returns the chain of all namespaces, since quotas are shared by all.
func everywhere(*store.Doc) ([]string, error) { return []string{keyring.Everywhere}, nil }

// quotaChange returns what a change of a quota writes; to is nil if it is removed.
func quotaChange(from, to *core.Quota) adminChange {
	change := adminChange{chain: keyring.Everywhere, entity: "quota", id: from.ID}
	if from.Revision > 0 {
		change.before = from.Settings
	}
	if to != nil {
		change.after = to.Settings
		change.body, _ = json.Marshal(to)
	}
	return change
}

// rulesChanged makes all processes decide by the new rules: what was refused by the old ones may be admitted now (S47).
func (e *Engine) rulesChanged() {
	// If this fails, the next transaction reads the dictionary.
	_ = e.Dict.Reload(e.Background())
	e.Dispatcher.Rescan()
	e.Hints.Send(store.Hint{Dictionary: true, Keys: []string{"*"}})
}

// Quota shows a quota and its use (S39).
func (e *Engine) Quota(ctx context.Context, c Caller, id string) (QuotaView, error) {
	if err := e.Dict.Reload(ctx); err != nil {
		return QuotaView{}, PublicFault(err)
	}
	dict := e.Dict.Now()
	quota := dict.Quotas[id]
	switch {
	case quota == nil && dict.QuotaUnreadable(id):
		return QuotaView{}, base.Errorf(base.CodeCorruption, "the record of quota %q cannot be read", id).WithHint("state it anew: nobody is admitted under it before")
	case quota == nil:
		return QuotaView{}, noSuchQuota(id)
	}
	views, err := e.quotaViews(ctx, c, dict, mostKeysShown, quota)
	if err != nil {
		return QuotaView{}, err
	}
	return views[0], nil
}

// Quotas lists quotas by id. One whose record cannot be read is left out.
func (e *Engine) Quotas(ctx context.Context, c Caller, cursor string, limit *int) ([]QuotaView, string, error) {
	quotas, next, err := PageByName(ctx, e, "quotas", cursor, limit, func(d *Dictionary) map[string]*core.Quota { return d.Quotas })
	if err != nil {
		return nil, "", err
	}
	views, err := e.quotaViews(ctx, c, e.Dict.Now(), mostKeysListed, quotas...)
	return views, next, err
}

// PageByName lists some of what the dictionary has, by name, behind the cursor.
func PageByName[T any](ctx context.Context, e *Engine, scope, cursor string, limit *int, all func(*Dictionary) map[string]T) (page []T, next string, err error) {
	n, err := core.PageLimit(limit)
	if err != nil {
		return nil, "", err
	}
	after := ""
	if cursor != "" {
		key, err := core.DecodeCursor(scope, cursor)
		if err != nil {
			return nil, "", err
		}
		after = string(key)
	}
	if err := e.Dict.Reload(ctx); err != nil {
		return nil, "", PublicFault(err)
	}
	known := all(e.Dict.Now())
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(known)), func(name string) bool { return name <= after })
	if len(names) > n {
		if names = names[:n]; n > 0 {
			next = core.EncodeCursor(scope, []byte(names[n-1]))
		}
	}
	for _, name := range names {
		page = append(page, known[name])
	}
	return page, next, nil
}
