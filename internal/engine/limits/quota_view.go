package limits

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// QuotaView is a quota and its use, as far as the caller sees that (S39, U121).
type QuotaView struct {
	Quota    core.Quota
	Keys     []QuotaKeyView // those in use, by key
	MoreKeys bool           // more are in use than are shown
}

// QuotaKeyView is the use of one key of a quota; of one without keys there is the key "" alone.
type QuotaKeyView struct {
	Key     string
	Held    int       // slots in use; for a caller that does not see all namespaces: by executions that it sees
	Holders []base.ID // the first of their holders
	// Admitted is how many admissions count now, and NextFree when there is room again, absent if there is. Both are over all namespaces, and shown
	// only to a caller that sees all of them.
	Admitted int
	NextFree base.Time
	Blocked  int  // executions that wait for room, counted up to a bound
	AtLeast  bool // Held or Blocked reached it
}

func (v *QuotaKeyView) unused() bool { return v.Held+v.Admitted+v.Blocked == 0 }

const (
	mostKeysShown  = 1000   // of one quota
	mostKeysListed = 100    // of each in a list
	mostBlocked    = 10_000 // counted of a key
	fewBlocked     = 50     // counted of each queue at once, at least

	// ClassesAsked is how many classes are asked for in one read.
	ClassesAsked = 1000
)

// everyClass is what the engine itself looks at.
func everyClass(*core.Class) bool { return true }

// ClassesOf are the classes whose executions are attached to a quota, by number.
func ClassesOf(d *txn.Dictionary, quota string, seen func(*core.Class) bool) (classes []*core.Class) {
	named := func(use core.QuotaUse) bool { return use.Quota == quota }
	for class := range d.All() {
		if !txn.MayNeed(class, quota) || !seen(class) {
			continue
		}
		if needs := d.Needs(class.ID); needs != nil && slices.ContainsFunc(needs.Quotas, named) {
			classes = append(classes, class)
		}
	}
	slices.SortFunc(classes, func(a, b *core.Class) int { return cmp.Compare(a.ID, b.ID) })
	return classes
}

// ClassNumbers returns the numbers of classes.
func ClassNumbers(classes []*core.Class) []int32 {
	numbers := make([]int32, len(classes))
	for i, class := range classes {
		numbers[i] = class.ID
	}
	return numbers
}

// SeesAll reports whether there is no work of a namespace that the caller does not see.
func SeesAll(c txn.Caller, dict *txn.Dictionary) bool {
	if c.Namespaces == nil {
		return true
	}
	for class := range dict.AllUsable() {
		if !c.Sees(class.Namespace) {
			return false
		}
	}
	return true
}

// blockedQueue is a queue of a class whose executions wait for one key.
type blockedQueue struct {
	class *core.Class
	key   string
}

func (q blockedQueue) pick(limit int) store.Pick {
	return store.Pick{Class: q.class.ID, Block: core.BlockNumber(q.key), Floor: math.MinInt64, Limit: limit}
}

// blockedQueues finds the queues of these classes that wait for a key of the quota.
func (e *Admission) blockedQueues(ctx context.Context, dict *txn.Dictionary, classes []*core.Class, quota string) (queues []blockedQueue, err error) {
	loaded, err := e.Store.Read(ctx, store.Want{Blocks: ClassNumbers(classes)})
	if err != nil {
		return nil, txn.PublicFault(err)
	}
	for _, class := range classes {
		for _, use := range dict.Needs(class.ID).Quotas {
			for _, key := range []string{use.RateKey(), use.SlotsKey()} {
				if use.Quota == quota && slices.Contains(loaded.Blocks[class.ID], core.BlockNumber(key)) {
					queues = append(queues, blockedQueue{class, key})
				}
			}
		}
	}
	return queues, nil
}

// quotaViews shows quotas with their use. Holders come from the search rows.
func (e *Admission) quotaViews(ctx context.Context, c txn.Caller, dict *txn.Dictionary, keys int, quotas ...*core.Quota) ([]QuotaView, error) {
	views := make([]QuotaView, len(quotas))
	if len(quotas) == 0 {
		return views, nil
	}
	if err := e.Follower.Reach(ctx); err != nil {
		return nil, err
	}
	for i, quota := range quotas {
		look := &QuotaLook{Engine: e, Dict: dict, Caller: c, Quota: quota, Whole: SeesAll(c, dict), uses: map[string]*QuotaKeyView{}, Classes: map[string][]*core.Class{}}
		if err := look.all(ctx); err != nil {
			return nil, err
		}
		views[i] = QuotaView{Quota: *quota, Keys: look.used()}
		if len(views[i].Keys) > keys {
			views[i].Keys, views[i].MoreKeys = views[i].Keys[:keys], true
		}
		if err := look.FindHolders(ctx, views[i].Keys); err != nil {
			return nil, err
		}
		views[i].Keys = slices.DeleteFunc(views[i].Keys, func(key QuotaKeyView) bool { return key.unused() })
	}
	return views, nil
}

// QuotaLook gathers the use of one quota.
type QuotaLook struct {
	Engine  *Admission
	Dict    *txn.Dictionary
	Caller  txn.Caller
	Quota   *core.Quota
	Whole   bool // the caller sees all namespaces
	uses    map[string]*QuotaKeyView
	Classes map[string][]*core.Class // by key, those that the caller sees
}

func (l *QuotaLook) use(key string) core.QuotaUse { return core.QuotaUse{Quota: l.Quota.ID, Key: key} }

// all looks at every key that a class of the caller names.
func (l *QuotaLook) all(ctx context.Context) error {
	classes := ClassesOf(l.Dict, l.Quota.ID, func(class *core.Class) bool { return l.Caller.Sees(class.Namespace) })
	for some := range slices.Chunk(classes, ClassesAsked) {
		want := store.Want{}
		for _, class := range some {
			for _, use := range l.Dict.Needs(class.ID).Quotas {
				if use.Quota != l.Quota.ID {
					continue
				}
				if l.uses[use.Key] == nil {
					l.uses[use.Key] = &QuotaKeyView{Key: use.Key}
					want.Counters, want.Docs = append(want.Counters, use.SlotsKey()), append(want.Docs, RateRef(use.RateKey()))
				}
				l.Classes[use.Key] = append(l.Classes[use.Key], class)
			}
		}
		if err := l.count(ctx, want); err != nil {
			return err
		}
		if err := l.countBlocked(ctx, some); err != nil {
			return err
		}
	}
	return nil
}

// count fills in slots and admissions. For a caller that does not see everything a counter only shows that a slot is held.
func (l *QuotaLook) count(ctx context.Context, want store.Want) error {
	loaded, err := l.Engine.Store.Read(ctx, want)
	if err != nil {
		return txn.PublicFault(err)
	}
	s := l.Quota.Settings
	for key, view := range l.uses {
		use := l.use(key)
		if held, asked := loaded.Counters[use.SlotsKey()]; asked {
			view.Held = int(held)
		}
		doc, there := loaded.Docs[RateRef(use.RateKey())]
		if !there || !l.Whole {
			continue
		}
		window, err := core.DecodeRateWindow(doc.Data)
		if err != nil {
			continue // claims report it, and admit nothing
		}
		view.Admitted = window.Count(loaded.Now, s.WindowMS)
		if next := window.NextFree(loaded.Now, s.WindowMS, s.RateLimit); next > loaded.Now {
			view.NextFree = next
		}
	}
	return nil
}

// countBlocked fills in how many executions of these classes wait.
func (l *QuotaLook) countBlocked(ctx context.Context, classes []*core.Class) error {
	queues, err := l.Engine.blockedQueues(ctx, l.Dict, classes, l.Quota.ID)
	if err != nil || len(queues) == 0 {
		return err
	}
	some := max(mostBlocked/len(queues), fewBlocked)
	want := store.Want{}
	for _, queue := range queues {
		want.Pick = append(want.Pick, queue.pick(some))
	}
	loaded, err := l.Engine.Store.Read(ctx, want)
	if err != nil {
		return txn.PublicFault(err)
	}
	type queueID struct{ class, block int32 }
	rows := map[queueID]int{}
	for _, row := range loaded.Picked {
		rows[queueID{row.Class, row.Block}]++
	}
	for i, queue := range queues {
		view := l.blockedView(queue)
		n, left := rows[queueID{want.Pick[i].Class, want.Pick[i].Block}], mostBlocked-view.Blocked
		if n == some && left > n { // there may be more: such queues are few
			if loaded, err = l.Engine.Store.Read(ctx, store.Want{Pick: []store.Pick{queue.pick(left)}}); err != nil {
				return txn.PublicFault(err)
			}
			n = len(loaded.Picked)
		}
		view.Blocked += min(n, left)
		view.AtLeast = view.AtLeast || n >= left
	}
	return nil
}

// blockedView is the view of the key that a queue waits for.
func (l *QuotaLook) blockedView(queue blockedQueue) *QuotaKeyView {
	key, _ := strings.CutPrefix(queue.key[strings.Index(queue.key, ":")+1:], l.Quota.ID)
	return l.uses[strings.TrimPrefix(key, "/")]
}

// used are the keys in use, by key.
func (l *QuotaLook) used() (keys []QuotaKeyView) {
	for _, view := range l.uses {
		if !view.unused() {
			keys = append(keys, *view)
		}
	}
	slices.SortFunc(keys, func(a, b QuotaKeyView) int { return strings.Compare(a.Key, b.Key) })
	return keys
}

// findRecords loads the records behind the next search rows.
func (e *Admission) findRecords(ctx context.Context, q store.Query) ([]store.Hit, *store.Loaded, error) {
	hits, err := e.Store.Find(ctx, q)
	if err != nil {
		return nil, nil, txn.PublicFault(err)
	}
	ids := make([]base.UUID, len(hits))
	for i, hit := range hits {
		ids[i] = hit.ID
	}
	loaded, err := e.Store.Read(ctx, store.Want{Executions: ids, SkipUnreadable: true})
	if err != nil {
		return nil, nil, txn.PublicFault(err)
	}
	return hits, loaded, nil
}
