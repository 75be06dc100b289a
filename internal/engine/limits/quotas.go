package limits

import (
	"context"
	"encoding/json"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine/admin"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

func noSuchQuota(id string) error { return base.Errorf(base.CodeQuotaNotFound, "no quota %q", id) }

// PutQuota sets the whole record of a quota, and creates it if it is new (S36). It takes effect with its commit.
func (e *Admission) PutQuota(ctx context.Context, c txn.Caller, id string, s core.QuotaSettings, how admin.AdminAction) (QuotaView, error) {
	if err := core.CheckQuotaID(id); err != nil {
		return QuotaView{}, err
	}
	if err := s.Normalize(); err != nil {
		return QuotaView{}, err
	}
	err := e.Administer(ctx, &admin.AdminCommand{
		Op: "put_quota", Caller: c, How: how, Ref: QuotaRef(id), Where: everywhere,
		Act: func(u *txn.Tx, doc *store.Doc) (admin.AdminChange, error) {
			quota, err := quotaToPut(id, doc, how.Revision, u.Now)
			if err != nil {
				return admin.AdminChange{}, err
			}
			before := *quota
			fx := u.Effects(c)
			if !quota.Change(fx, s) {
				return admin.AdminChange{}, nil
			}
			u.Keep(fx)
			u.After = append(u.After, e.RulesChanged)
			change := quotaChange(&before, quota)
			change.Made = doc == nil
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
func quotaChange(from, to *core.Quota) admin.AdminChange {
	change := admin.AdminChange{Chain: keyring.Everywhere, Entity: "quota", ID: from.ID}
	if from.Revision > 0 {
		change.Before = from.Settings
	}
	if to != nil {
		change.After = to.Settings
		change.Body, _ = json.Marshal(to)
	}
	return change
}

// Quota shows a quota and its use (S39).
func (e *Admission) Quota(ctx context.Context, c txn.Caller, id string) (QuotaView, error) {
	if err := e.Dict.Reload(ctx); err != nil {
		return QuotaView{}, txn.PublicFault(err)
	}
	dict := e.Dict.Now()
	quota := RulesOf(dict).Quotas[id]
	switch {
	case quota == nil && RulesOf(dict).QuotaUnreadable(id):
		return QuotaView{}, base.Errorf(base.CodeCorruption, "the record of quota %q cannot be read", id).WithHint("set it again: no work is admitted under it until then")
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
func (e *Admission) Quotas(ctx context.Context, c txn.Caller, cursor string, limit *int) ([]QuotaView, string, error) {
	quotas, next, err := txn.PageByName(ctx, e.Engine, "quotas", cursor, limit, func(d *txn.Dictionary) map[string]*core.Quota { return RulesOf(d).Quotas })
	if err != nil {
		return nil, "", err
	}
	views, err := e.quotaViews(ctx, c, e.Dict.Now(), mostKeysListed, quotas...)
	return views, next, err
}
