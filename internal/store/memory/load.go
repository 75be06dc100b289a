package memory

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// load collects what a Want names. Each kind is locked, then read, before the next one is: as statements of a database do, it sees of a kind what
// was committed before it began with that kind.
type load struct {
	s    *Store
	d    *Database
	t    *tx // nil: a plain read, which locks nothing
	want *store.Want
	out  *store.Loaded
}

func newLoad(s *Store, t *tx, want *store.Want) *load {
	return &load{s: s, d: s.d, t: t, want: want, out: &store.Loaded{
		Keys: map[store.Key]store.KeyRow{}, Executions: make(map[base.UUID]*core.Execution, len(want.Executions)), Counters: map[string]int64{},
		Lanes: map[int32]core.Lane{}, Docs: map[store.DocRef]store.Doc{},
	}}
}

// run loads everything in the lock order, and reads the clock after the last lock. d.mu is held, but not while it waits.
func (l *load) run(ctx context.Context) error {
	for _, part := range [...]func(context.Context) error{
		l.keys, l.docs, l.executions, l.pick, l.history, l.owned, l.counters, l.lanes,
	} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	l.blocks()
	l.inbox()
	l.clock(l.s.observe())
	return nil
}

func (l *load) clock(r reading) {
	l.out.Now, l.out.Dictionary, l.out.Incarnation = r.now, r.dictionary, r.incarnation
}

// rows returns the content, which may be another one after each wait.
func (l *load) rows() *image { return l.d.rows }

// locked takes locks, and returns those that it did not get because they come too late in the lock order and others hold them.
func (l *load) locked(ctx context.Context, own rank, locks []store.Lock) (missing []store.Lock, err error) {
	if l.t == nil {
		return nil, nil
	}
	if l.t.taken <= own {
		return nil, l.d.acquire(ctx, l.t.h, locks, l.t.patience)
	}
	return l.lockFree(locks), nil
}

// lockFree takes the locks that are free, and returns the others.
func (l *load) lockFree(locks []store.Lock) (missing []store.Lock) {
	for _, lock := range locks {
		if !l.d.take(l.t.h, lock) {
			missing = append(missing, lock)
		}
	}
	return missing
}

func (l *load) keys(ctx context.Context) error {
	keys := sorted(l.want.Keys, compareKeys)
	var locks []store.Lock
	for _, key := range keys {
		if _, there := l.rows().keys[key]; there { // what is not there cannot be locked
			locks = append(locks, store.Lock{Key: key})
		}
	}
	missing, err := l.locked(ctx, keysTaken, locks)
	if err != nil {
		return err
	}
	for _, key := range keys {
		if row, there := l.rows().keys[key]; there && !slices.Contains(missing, store.Lock{Key: key}) {
			row.Fingerprint = slices.Clone(row.Fingerprint)
			l.out.Keys[key] = row
		}
	}
	return nil
}

// docs loads the docs without an owner, and the scans.
func (l *load) docs(ctx context.Context) error {
	var refs []store.DocRef
	var locks []store.Lock
	for _, ref := range sorted(l.want.Docs, compareRefs) {
		if ref.Owner != "" {
			continue
		}
		refs = append(refs, ref)
		if l.want.LockDocs && l.rows().doc(ref) != nil {
			locks = append(locks, store.Lock{Doc: ref})
		}
	}
	if l.t != nil { // waited for, whatever is locked already
		if err := l.d.acquire(ctx, l.t.h, locks, l.t.patience); err != nil {
			return err
		}
	}
	l.addDocs(refs)
	if len(l.want.Scans) > 0 {
		l.out.Scanned = make([][]store.Doc, len(l.want.Scans))
	}
	for i, scan := range l.want.Scans {
		l.out.Scanned[i] = l.rows().scan(scan)
	}
	return nil
}

func (l *load) addDocs(refs []store.DocRef) {
	for _, ref := range refs {
		if doc := l.rows().doc(ref); doc != nil {
			l.out.Docs[ref] = copyDoc(doc)
		}
	}
}

func copyDoc(d *store.Doc) store.Doc {
	c := *d
	c.Body, c.Data = slices.Clone(d.Body), slices.Clone(d.Data)
	return c
}

// owned loads the docs of executions. The locks of those protect them.
func (l *load) owned(context.Context) error {
	var refs []store.DocRef
	for _, ref := range l.want.Docs {
		if ref.Owner != "" {
			refs = append(refs, ref)
		}
	}
	l.addDocs(refs)
	for _, one := range l.want.Owned {
		docs := l.rows().docs[one]
		if l.out.Owned == nil {
			l.out.Owned = map[store.Owned][]store.Doc{}
		}
		if _, again := l.out.Owned[one]; again || len(docs) == 0 {
			continue
		}
		for i := range docs {
			l.out.Owned[one] = append(l.out.Owned[one], copyDoc(&docs[i]))
		}
	}
	return nil
}

func (l *load) executions(ctx context.Context) error {
	ids := sorted(l.want.Executions, compareUUIDs)
	var locks []store.Lock
	for _, id := range ids {
		if l.rows().executions[id] != nil {
			locks = append(locks, store.Lock{Execution: id})
		}
	}
	var missing []store.Lock
	var err error
	if l.t != nil && l.want.SkipLocked {
		missing = l.lockFree(locks)
	} else {
		missing, err = l.locked(ctx, executionsTaken, locks)
	}
	if err != nil {
		return err
	}
	for _, id := range ids {
		row := l.rows().executions[id]
		switch {
		case row == nil:
			if l.rows().notIngested(id) >= 0 {
				l.out.NotIngested = append(l.out.NotIngested, id)
			}
		case slices.Contains(missing, store.Lock{Execution: id}):
			l.out.Held = append(l.out.Held, id)
		default:
			if err := l.keep(row, l.want.Inputs, l.want.Results); err != nil {
				return err
			}
		}
	}
	return nil
}

// keep reads an execution.
func (l *load) keep(row *store.Row, input, result bool) error {
	x, err := l.read(row, input, result)
	switch {
	case err == nil:
		l.out.Executions[row.ID] = x
	case l.want.SkipUnreadable:
		l.out.SetUnreadable(row.ID, err)
	default:
		return err
	}
	return nil
}

func (l *load) read(row *store.Row, input, result bool) (*core.Execution, error) {
	class := l.rows().class(row.Class)
	if class == nil {
		return nil, base.Errorf(base.CodeCorruption, "execution %s has class %d, which does not exist", row.ID, row.Class)
	}
	r := *row
	if r.Input = nil; input {
		r.Input = append([]byte{}, row.Input...)
	}
	x, err := r.Execution(class, &l.d.policies)
	if err != nil || !result || x.Result == nil {
		return x, err
	}
	if entry := l.rows().entry(x.ID.UUID, x.ResultEpoch); entry != nil {
		x.Result.Data, err = entry.CheckedResult(x.ID)
		x.Result.Data = slices.Clone(x.Result.Data)
	}
	return x, err
}

func (l *load) history(context.Context) error {
	for _, ref := range l.want.History {
		n := 0
		for _, row := range l.rows().history[ref.ID] {
			if ref.All && (row.Epoch <= ref.Epoch || ref.Limit > 0 && n == ref.Limit) || !ref.All && row.Epoch != ref.Epoch {
				continue
			}
			n++
			record, err := l.record(row)
			if err != nil {
				return err
			}
			l.out.History = append(l.out.History, record)
		}
	}
	return nil
}

func (l *load) record(row *store.HistoryRow) (core.LeaseRecord, error) {
	id := base.ID{UUID: row.ID}
	if x := l.rows().executions[row.ID]; x != nil {
		id.N = x.N
	}
	record, err := row.Record(id)
	if err == nil && record.Result != nil {
		record.Result.Data = append([]byte{}, record.Result.Data...)
	}
	return record, err
}

func (l *load) counters(ctx context.Context) error {
	keys := sorted(l.want.Counters, strings.Compare)
	if l.t != nil { // waited for, whatever is locked already: nothing that comes later is waited for with it
		locks := make([]store.Lock, len(keys))
		for i, key := range keys {
			locks[i] = store.Lock{Counter: key}
		}
		if err := l.d.acquire(ctx, l.t.h, locks, l.t.patience); err != nil {
			return err
		}
	}
	for _, key := range keys {
		l.out.Counters[key] = l.rows().counters[key]
	}
	return nil
}

func (l *load) lanes(ctx context.Context) error {
	change, share := sorted(l.want.LockLanes, cmp.Compare[int32]), sorted(l.want.ShareLanes, cmp.Compare[int32])
	for _, part := range [...]struct {
		ids    []int32
		shared bool
	}{{change, false}, {share, true}} {
		var locks []store.Lock
		for _, id := range part.ids {
			if l.rows().lane(id) != nil {
				locks = append(locks, store.Lock{Lane: id, Shared: part.shared})
			}
		}
		if l.t != nil {
			if err := l.d.acquire(ctx, l.t.h, locks, l.t.patience); err != nil {
				return err
			}
		}
		for _, id := range part.ids {
			if lane := l.rows().lane(id); lane != nil {
				l.out.Lanes[id] = copyLane(*lane)
			}
		}
	}
	return nil
}

// blocks finds the block numbers of classes. It comes after everything that locks.
func (l *load) blocks() {
	if len(l.want.Blocks) == 0 {
		return
	}
	l.out.Blocks = map[int32][]int32{}
	for key, rows := range l.rows().queues {
		if key.block > 0 && len(rows) > 0 && slices.Contains(l.want.Blocks, key.class) {
			l.out.Blocks[key.class] = append(l.out.Blocks[key.class], key.block)
		}
	}
	for _, numbers := range l.out.Blocks {
		slices.Sort(numbers)
	}
}

// inboxLock is the lock of a row of the inbox. Its space is that of no key.
func inboxLock(id base.ID) store.Lock {
	return store.Lock{Key: store.Key{Space: math.MaxUint8, Text: id.String()}}
}

// inbox takes submissions that no other transaction takes.
func (l *load) inbox() {
	behind := func(a, b store.InboxRow) int { return bytes.Compare(a.ID.UUID[:], b.ID.UUID[:]) }
	for _, row := range slices.SortedFunc(slices.Values(l.rows().inbox), behind) {
		if bytes.Compare(row.ID.UUID[:], l.want.InboxAfter[:]) <= 0 {
			continue
		}
		if len(l.out.Inbox) == l.want.Inbox {
			return
		}
		if l.t != nil && !l.d.take(l.t.h, inboxLock(row.ID)) {
			continue
		}
		l.out.Inbox = append(l.out.Inbox, store.InboxRow{ID: row.ID, Body: slices.Clone(row.Body)})
	}
}
