package limits

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/admin"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

const opDeleteQuota = "delete_quota"

// DeleteQuota removes a quota. While an execution that has not ended is attached to it, or a namespace adds it to its submits, that is
// quota_in_use. With force it is removed anyway: it limits nothing any more, and what it blocked continues (S38).
func (e *Admission) DeleteQuota(ctx context.Context, c txn.Caller, id string, force bool, how admin.AdminAction) error {
	request := txn.RequestRef(c, opDeleteQuota, id, how.RequestKey)
	repeated, err := e.Answered(ctx, request)
	if err != nil {
		return err
	}
	if repeated || force { // a repeat finds nothing to do
		return e.dropQuota(ctx, c, id, force, how, nil)
	}
	err = e.deleteUnused(ctx, c, id, how)
	if base.CodeOf(err) == base.CodeQuotaNotFound { // the first try of this request may have been under way until now
		if repeated, _ := e.Answered(ctx, request); repeated {
			return e.dropQuota(ctx, c, id, force, how, nil)
		}
	}
	return err
}

func (e *Admission) deleteUnused(ctx context.Context, c txn.Caller, id string, how admin.AdminAction) error {
	if err := e.checkQuotaUnused(ctx, id); err != nil {
		return err
	}
	return e.whileMarked(ctx, quotaKey(id), func(mark *removalMark) error {
		if err := e.checkQuotaUnused(ctx, id); err != nil { // again: from now on no new reference can appear
			return err
		}
		return e.dropQuota(ctx, c, id, false, how, mark)
	})
}

// dropQuota is DeleteQuota once it is known that the quota may be removed.
func (e *Admission) dropQuota(ctx context.Context, c txn.Caller, id string, force bool, how admin.AdminAction, mark *removalMark) error {
	return e.Administer(ctx, &admin.AdminCommand{
		Op: opDeleteQuota, Caller: c, How: how, Ref: QuotaRef(id), Beside: mark.refs(), Where: everywhere,
		Act: func(u *txn.Tx, doc *store.Doc) (admin.AdminChange, error) {
			if doc == nil {
				return admin.AdminChange{}, noSuchQuota(id)
			}
			if err := mark.take(u); err != nil {
				return admin.AdminChange{}, err
			}
			quota, err := decodeQuota(doc)
			if err != nil { // its record cannot be read
				quota = core.NewQuota(id, u.Now)
			} else if err := base.CheckRevision(how.Revision, quota.Revision); err != nil {
				return admin.AdminChange{}, err
			}
			fx := u.Effects(c)
			quota.Delete(fx)
			u.Keep(fx)
			u.AddTask(taskFreeQuota, TaskArgs{Quota: id})
			u.After = append(u.After, e.RulesChanged)
			return quotaChange(quota, nil), nil
		},
	}, id, force)
}

// checkQuotaUnused refuses to remove a quota that is needed.
func (e *Admission) checkQuotaUnused(ctx context.Context, id string) error {
	if err := e.Dict.Reload(ctx); err != nil {
		return txn.PublicFault(err)
	}
	dict := e.Dict.Now()
	if RulesOf(dict).Quotas[id] == nil && !RulesOf(dict).QuotaUnreadable(id) {
		return noSuchQuota(id)
	}
	spaces, err := e.Spaces.Read(ctx)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(spaces)) {
		if slices.ContainsFunc(spaces[name].DefaultQuotas, func(use core.QuotaUse) bool { return use.Quota == id }) {
			return quotaInUse(id, "namespace %q gives it to its submits", name)
		}
	}
	e.Ingest(ctx)
	if err := e.Follower.ReachAll(ctx); err != nil { // so that everything that exists is counted
		return err
	}
	if dict, err = e.dictionaryNow(ctx); err != nil { // with the classes of what was ingested
		return err
	}
	for some := range slices.Chunk(ClassesOf(dict, id, everyClass), ClassesAsked) {
		n, err := e.Store.Count(ctx, store.Query{Classes: ClassNumbers(some), Statuses: unfinished()}, 1)
		if err != nil {
			return txn.PublicFault(err)
		}
		if n > 0 {
			return quotaInUse(id, "executions that have not ended are attached to it")
		}
	}
	return nil
}

func quotaInUse(id, why string, args ...any) error {
	return base.Errorf(base.CodeQuotaInUse, "quota %q is in use: "+why, append([]any{id}, args...)...).WithHint("with `force` they run without it")
}

// unfinished are the statuses that are not terminal.
func unfinished() []core.Status {
	return slices.DeleteFunc(slices.Clone(core.Statuses()), core.Status.Terminal)
}

// freeQuota unblocks what waited for a quota that was removed, and removes its admissions (S47). Its slots stay counted until their holders release
// them.
func (e *Admission) freeQuota(ctx context.Context, t TaskArgs) error {
	pass := func(_ *txn.Tx, x *core.Execution, fx *core.Effects) bool {
		return x.Unblock(fx, func(key string) bool { return quotaOfKey(key) == t.Quota })
	}
	for {
		dict, err := e.dictionaryNow(ctx)
		if err != nil || RulesOf(dict).Quotas[t.Quota] != nil { // there is a quota of that name again: claims decide on what it blocks
			return err
		}
		ids, err := e.blockedOn(ctx, dict, t.Quota)
		if err != nil {
			return err
		}
		if len(ids) == 0 {
			return e.dropRates(ctx, t.Quota)
		}
		if err := e.unblock(ctx, ids, pass); err != nil {
			return err
		}
	}
}

// dictionaryNow is the dictionary as the store has it.
func (e *Admission) dictionaryNow(ctx context.Context) (*txn.Dictionary, error) {
	if err := e.Dict.Reload(ctx); err != nil {
		return nil, txn.PublicFault(err)
	}
	return e.Dict.Now(), nil
}

// unblock readmits executions whose keys were removed. pass does so with one, and reports whether it changed it.
func (e *Admission) unblock(ctx context.Context, ids []base.UUID, pass func(u *txn.Tx, x *core.Execution, fx *core.Effects) bool) error {
	cmds := make([]txn.Command, len(ids))
	for i, id := range ids {
		cmds[i] = &txn.OnOne{
			Op: "unblock", Caller: txn.EngineCaller, ID: base.GivenID{UUID: id},
			Act: func(u *txn.Tx, x *core.Execution, fx *core.Effects, _ *core.LeaseRecord) (bool, error) {
				return pass(u, x, fx), nil
			},
		}
	}
	for _, err := range e.DoAll(ctx, cmds) {
		if err != nil && base.CodeOf(err) != base.CodeExecutionNotFound {
			return err
		}
	}
	return nil
}

// blockedOn finds executions that are blocked on a quota, a batch at a time. Rows of another key with the same block number are left out.
func (e *Admission) blockedOn(ctx context.Context, dict *txn.Dictionary, quota string) (ids []base.UUID, err error) {
	for some := range slices.Chunk(ClassesOf(dict, quota, everyClass), ClassesAsked) {
		queues, err := e.blockedQueues(ctx, dict, some, quota)
		if err != nil {
			return nil, err
		}
		for _, queue := range queues {
			found, err := e.blockedIn(ctx, queue, quota)
			if err != nil {
				return nil, err
			}
			if ids = append(ids, found...); len(ids) >= unblockBatch {
				return ids[:unblockBatch], nil
			}
		}
	}
	return ids, nil
}

// blockedIn finds those in one queue.
func (e *Admission) blockedIn(ctx context.Context, queue blockedQueue, quota string) ([]base.UUID, error) {
	loaded, err := e.Store.Read(ctx, store.Want{Pick: []store.Pick{queue.pick(unblockBatch)}})
	if err != nil {
		return nil, txn.PublicFault(err)
	}
	ids := make([]base.UUID, len(loaded.Picked))
	for i, row := range loaded.Picked {
		ids[i] = row.ID
	}
	return e.stillBlocked(ctx, ids, quota)
}

// stillBlocked returns those of the executions that are blocked on a key of the quota.
func (e *Admission) stillBlocked(ctx context.Context, ids []base.UUID, quota string) ([]base.UUID, error) {
	loaded, err := e.Store.Read(ctx, store.Want{Executions: ids, SkipUnreadable: true})
	if err != nil {
		return nil, txn.PublicFault(err)
	}
	return slices.DeleteFunc(ids, func(id base.UUID) bool {
		x := loaded.Executions[id]
		return x == nil || !x.Queued() || quotaOfKey(x.BlockedOn) != quota
	}), nil
}

// unblockBatch is how many executions are released in one transaction.
const unblockBatch = 1000

// quotaOfKey is the quota whose rate or slots an admission key stands for, "" for others.
func quotaOfKey(key string) string {
	for _, prefix := range []string{"rate:", "slots:"} {
		if rest, ok := strings.CutPrefix(key, prefix); ok {
			quota, _, _ := strings.Cut(rest, "/")
			return quota
		}
	}
	return ""
}

// dropRates removes the admissions of a removed quota.
func (e *Admission) dropRates(ctx context.Context, quota string) error {
	scan := store.Scan{Kind: DocRate, Prefix: "rate:" + quota, Limit: unblockBatch}
	for {
		loaded, err := e.Store.Read(ctx, store.Want{Scans: []store.Scan{scan}})
		if err != nil {
			return txn.PublicFault(err)
		}
		docs := loaded.Scanned[0]
		if len(docs) == 0 {
			return nil
		}
		drop := &dropRates{quota: quota}
		for i := range docs {
			if quotaOfKey(docs[i].Key) == quota {
				drop.refs = append(drop.refs, docs[i].DocRef)
			}
		}
		if err := e.Do(ctx, drop); err != nil {
			return err
		}
		scan.After = docs[len(docs)-1].Key
	}
}

// dropRates removes rate keys of a quota, unless there is one of that name again.
type dropRates struct {
	quota string
	refs  []store.DocRef
}

func (d *dropRates) Name() string { return "drop_rates" }

func (d *dropRates) Want(w *store.Want, _ bool) {
	w.Docs, w.LockDocs = append(w.Docs, d.refs...), true
}

func (d *dropRates) Decide(u *txn.Tx) error {
	if RulesOf(u.Dict).Quotas[d.quota] != nil || len(d.refs) == 0 {
		return nil
	}
	u.Changes.Dictionary = u.Dict.Version
	for _, ref := range d.refs {
		u.DropDoc(ref)
	}
	return nil
}
