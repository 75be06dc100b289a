package postgres

import (
	"context"
	"math"
	"slices"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// rank is the place of a kind of row in the lock order of S73.
type rank int

const (
	nothingTaken rank = iota
	keysTaken
	docsTaken
	executionsTaken
	countersTaken
	lanesTaken
)

// load collects what a Want names: it adds statements to a trip, reads their results, and assembles the answer.
type load struct {
	s     *Store
	m     *memory // used to decode rows
	want  *store.Want
	locks bool // else a plain read of one snapshot
	taken rank // highest kind locked before
	out   *store.Loaded
	// places records where the rows lie that this load locks; nil for a plain read.
	places *places

	rows    []store.Row // of unknown classes
	exists  []base.UUID
	picked  []pickedRow
	results map[resultKey]*store.HistoryRow
}

// pickedRow is a queue row with the index of the Pick that found it.
type pickedRow struct {
	pick int64
	store.QueueRow
}

type resultKey struct {
	id    base.UUID
	epoch int64
}

func (s *Store) newLoad(m *memory, want *store.Want, locks bool, taken rank) *load {
	return &load{s: s, m: m, want: want, locks: locks, taken: taken, out: &store.Loaded{
		Keys: map[store.Key]store.KeyRow{}, Executions: make(map[base.UUID]*core.Execution, len(want.Executions)), Counters: map[string]int64{},
		Lanes: map[int32]core.Lane{}, Docs: map[store.DocRef]store.Doc{},
	}}
}

// wantsRows reports whether a want names anything.
func wantsRows(w *store.Want) bool {
	return len(w.Keys)+len(w.Executions)+len(w.Pick)+len(w.History)+len(w.Counters)+len(w.ShareLanes)+len(w.LockLanes)+
		len(w.Docs)+len(w.Scans)+len(w.Owned)+len(w.Blocks)+w.Inbox > 0
}

// rankOf returns the highest kind that a want locks.
func rankOf(w *store.Want) rank {
	switch {
	case len(w.ShareLanes)+len(w.LockLanes) > 0:
		return lanesTaken
	case len(w.Counters) > 0:
		return countersTaken
	case len(w.Executions)+len(w.Pick) > 0:
		return executionsTaken
	case w.LockDocs && len(w.Docs) > 0:
		return docsTaken
	case len(w.Keys) > 0:
		return keysTaken
	}
	return nothingTaken
}

// choose returns the statement to use: one that locks, one that locks only free rows because rows of a later kind are already locked, or one that
// reads.
func (l *load) choose(own rank, lock, lockFree, read string) string {
	switch {
	case !l.locks:
		return read
	case l.taken > own:
		return lockFree
	default:
		return lock
	}
}

// either is choose for rows that are either always waited for or never locked.
func (l *load) either(lock, read string) string {
	if l.locks {
		return lock
	}
	return read
}

// add adds the statements of the want to a trip in the lock order, and reads the clock after the last lock.
func (l *load) add(t *trip) {
	l.addKeys(t)
	l.addDocs(t)
	l.addExecutions(t)
	l.addPick(t)
	l.addHistory(t)
	l.addOwned(t)
	l.addCounters(t)
	l.addLanes(t)
	l.addBlocks(t)
	if w := l.want; w.Inbox > 0 {
		t.add(l.either("take_inbox", "read_inbox"), func(r row) error {
			l.out.Inbox = append(l.out.Inbox, store.InboxRow{ID: r.id(0, 1), Body: r.blob(2)})
			return nil
		}, integer(int32(w.Inbox)), w.InboxAfter[:])
	}
	t.add("clock", func(r row) error {
		l.out.Now, l.out.Dictionary, l.out.Incarnation = r.time(0), r.bigint(1), l.m.name(r[2])
		return nil
	})
}

func (l *load) addKeys(t *trip) {
	if len(l.want.Keys) == 0 {
		return
	}
	name := l.choose(keysTaken, "lock_keys", "lock_free_keys", "read_keys")
	t.add(name, func(r row) error {
		key := store.Key{Space: store.KeySpace(r.smallint(0)), Namespace: r.text(1), Text: r.text(2)}
		l.out.Keys[key] = store.KeyRow{Key: key, Fingerprint: r.blob(3), ID: r.id(4, 5), ExpiresAt: r.time(6)}
		return nil
	}, keyColumns(sortedKeys(l.want.Keys))...)
}

func keyColumns(keys []store.Key) [][]byte {
	space, namespace, key := smallints(len(keys)), texts(len(keys)), texts(len(keys))
	for _, k := range keys {
		space.smallint(int(k.Space))
		namespace.text(k.Namespace)
		key.text(k.Text)
	}
	return arguments(space, namespace, key)
}

func (l *load) addExecutions(t *trip) {
	w := l.want
	if len(w.Executions) == 0 {
		return
	}
	ids := uuidColumn(w.Executions)
	name := l.choose(executionsTaken, "lock_executions", "lock_free_executions", "read_executions")
	if name == "lock_executions" && w.SkipLocked {
		name = "lock_free_executions"
	}
	t.add(name, func(r row) error {
		return l.execution(r)
	}, ids, boolean(w.Inputs))
	if name == "lock_free_executions" {
		t.add("existing_executions", func(r row) error {
			l.exists = append(l.exists, r.uuid(0))
			return nil
		}, ids)
	}
	if w.Results {
		l.results = map[resultKey]*store.HistoryRow{}
		t.add("results", func(r row) error {
			h := leaseOf(r)
			h.Body, h.PatchBody = slices.Clone(h.Body), slices.Clone(h.PatchBody) // the row's bytes are valid until the next row
			l.results[resultKey{h.ID, h.Epoch}] = h
			return nil
		}, ids)
	}
}

// execution adds a row. A row of a class that this process does not know yet waits for the end of the trip.
func (l *load) execution(r row) error {
	columns := executionRow(r[1:])
	if columns.Status == 0 {
		l.out.NotIngested = append(l.out.NotIngested, columns.ID)
		return nil
	}
	if l.places != nil {
		l.places.executions = append(l.places.executions, executionPlace{columns.ID, r.place(0)})
	}
	if class := l.m.classes.get(columns.Class); class != nil {
		return l.keep(&columns, class)
	}
	columns.Origin, columns.State = slices.Clone(columns.Origin), slices.Clone(columns.State)
	l.rows = append(l.rows, columns)
	return nil
}

func (l *load) keep(r *store.Row, class *core.Class) error {
	x, err := r.Execution(class, &l.s.policies)
	switch {
	case err == nil:
		l.out.Executions[r.ID] = x
	case l.want.SkipUnreadable:
		l.out.SetUnreadable(r.ID, err)
	default:
		return err
	}
	return nil
}

// executionRow reads the columns of an execution. Origin and State are valid until the next row is read.
func executionRow(r row) store.Row {
	out := store.Row{ID: r.uuid(0), Class: r.int(1), N: uint8(r.smallint(2)), Origin: r[3], Input: r.blob(4), Order: r.bigint(6), Version: versionOf(r.int(7), r.int(9)), State: r[8]}
	out.Status, out.Reason, out.Next = fromStage(r.smallint(5))
	return out
}

// versionOf joins the count of writes and the random bits of the last writer (store.NextVersion).
func versionOf(count, draw int32) int64 { return int64(count)<<32 | int64(uint32(draw)) }

func (l *load) addHistory(t *trip) {
	refs := l.want.History
	if len(refs) == 0 {
		return
	}
	id, low, high, limit := uuids(len(refs)), bigints(len(refs)), bigints(len(refs)), bigints(len(refs))
	for _, ref := range refs {
		id.uuid(ref.ID)
		if !ref.All {
			low.bigint(ref.Epoch)
			high.bigint(ref.Epoch)
			limit.bigint(1)
			continue
		}
		low.bigint(ref.Epoch + 1)
		high.bigint(math.MaxInt64)
		limit.bigint(limitOf(ref.Limit))
	}
	t.add("history", func(r row) error {
		record, err := leaseOf(r).Record(r.id(0, 4))
		l.out.History = append(l.out.History, record)
		return err
	}, arguments(id, low, high, limit)...)
}

// limitOf turns 0, which means all, into a number.
func limitOf(limit int) int64 {
	if limit == 0 {
		return math.MaxInt64
	}
	return int64(limit)
}

func (l *load) addCounters(t *trip) {
	if len(l.want.Counters) > 0 {
		l.addCountersOf(t, l.want.Counters)
	}
}

func (l *load) addCountersOf(t *trip, keys []string) {
	column := counterColumn(keys)
	if l.locks {
		t.add("make_counters", nil, column)
	}
	t.add(l.either("lock_counters", "read_counters"), func(r row) error {
		l.out.Counters[r.text(0)] = r.bigint(1)
		return nil
	}, column)
}

func counterColumn(keys []string) []byte {
	c := blobs(len(keys))
	for _, key := range keys {
		c.text(key)
	}
	return c.argument()
}

func (l *load) addLanes(t *trip) {
	read := func(r row) error {
		lane, err := laneOf(r)
		l.out.Lanes[lane.ID] = lane
		return err
	}
	if w := l.want; len(w.LockLanes) > 0 {
		t.add(l.either("lock_lanes", "read_lanes"), read, intColumn(w.LockLanes))
	}
	if w := l.want; len(w.ShareLanes) > 0 {
		t.add(l.either("share_lanes", "read_lanes"), read, intColumn(w.ShareLanes))
	}
}

// finish assembles the answer after the trip.
func (l *load) finish(ctx context.Context, conn *pgxpool.Conn) (*store.Loaded, error) {
	if l.out.Incarnation != l.m.incarnation {
		l.s.remembered(l.out.Incarnation)
		return nil, errMet
	}
	l.out.Now = l.s.observe(l.m, l.out.Now, l.out.Dictionary)
	if err := l.learnClasses(ctx, conn); err != nil {
		return nil, fault(err)
	}
	if err := l.makeSureOfCounters(ctx, conn); err != nil {
		return nil, fault(err)
	}
	for i := range l.rows {
		r := &l.rows[i]
		class := l.m.classes.get(r.Class)
		if class == nil {
			return nil, base.Errorf(base.CodeCorruption, "execution %s has class %d, which does not exist", r.ID, r.Class)
		}
		if err := l.keep(r, class); err != nil {
			return nil, err
		}
	}
	if err := l.addResults(); err != nil {
		return nil, err
	}
	for _, id := range l.exists {
		if l.out.Executions[id] == nil && l.out.Unreadable[id] == nil && !slices.Contains(l.out.NotIngested, id) {
			l.out.Held = append(l.out.Held, id)
		}
	}
	l.finishPick()
	return l.out, nil
}

// addResults adds the bytes of their results to the executions.
func (l *load) addResults() (err error) {
	for key, row := range l.results {
		x := l.out.Executions[key.id]
		if x == nil || x.Result == nil || x.ResultEpoch != key.epoch {
			continue
		}
		x.Result.Data, err = row.CheckedResult(x.ID)
		switch {
		case err == nil:
		case l.want.SkipUnreadable:
			delete(l.out.Executions, key.id)
			l.out.SetUnreadable(key.id, err)
		default:
			return err
		}
	}
	return nil
}

// leaseOf reads the columns of an entry of the lease history. Body and PatchBody are valid until the next row is read.
func leaseOf(r row) *store.HistoryRow {
	return &store.HistoryRow{
		ID: r.uuid(0), Epoch: r.bigint(1), LeaseID: r.uuid(2), EndedAt: r.time(3), End: core.LeaseEnd(r.smallint(5)),
		PatchState: core.AttemptState(r.smallint(6)), Body: r[7], PatchBody: r[8], Result: r.blob(9), HasResult: !r.null(9),
	}
}

func (l *load) learnClasses(ctx context.Context, conn *pgxpool.Conn) error {
	if len(l.rows) == 0 {
		return nil
	}
	unknown := make([]int32, len(l.rows))
	for i := range l.rows {
		unknown[i] = l.rows[i].Class
	}
	return l.s.learn(ctx, conn, l.m, unknown)
}

// makeSureOfCounters locks counters that another transaction removed between the statement that creates missing ones and the one that locks them.
func (l *load) makeSureOfCounters(ctx context.Context, conn *pgxpool.Conn) error {
	for l.locks {
		var missing []string
		for _, key := range l.want.Counters {
			if _, found := l.out.Counters[key]; !found {
				missing = append(missing, key)
			}
		}
		if missing == nil {
			return nil
		}
		t := l.s.trip(conn)
		l.addCountersOf(t, missing)
		if err := t.run(ctx); err != nil {
			return err
		}
	}
	return nil
}
