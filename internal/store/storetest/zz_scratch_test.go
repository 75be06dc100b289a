package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/store"
)

type memTimer struct {
	store.Timer
	due core.Time
}
type docKey = store.DocRef
type state struct {
	version   int64
	lanes     map[int32]core.Lane
	classes   map[int32]*core.Class
	nextNum   int32
	keys      map[store.Key]store.KeyRow
	rows      map[core.UUID]store.Row
	hist      map[core.UUID]map[int64]store.HistoryRow
	queue     map[store.QueueRow]bool
	timers    map[int64]memTimer
	seq       int64
	counters  map[string]int64
	docs      map[docKey]store.Doc
	log       []store.Commit
	logStart  int64
	logEnd    int64
	search    map[core.UUID]*core.Execution
	projected int64
}

func (s *state) clone() *state {
	c := *s
	c.lanes, c.classes, c.keys, c.rows = maps.Clone(s.lanes), maps.Clone(s.classes), maps.Clone(s.keys), maps.Clone(s.rows)
	c.queue, c.timers, c.counters, c.docs, c.search = maps.Clone(s.queue), maps.Clone(s.timers), maps.Clone(s.counters), maps.Clone(s.docs), maps.Clone(s.search)
	c.hist = map[core.UUID]map[int64]store.HistoryRow{}
	for k, v := range s.hist {
		c.hist[k] = maps.Clone(v)
	}
	c.log = slices.Clone(s.log)
	return &c
}

type mem struct {
	mu     sync.Mutex
	st     *state
	writer chan struct{}
	id     core.UUID
	closed bool
}

func newMem() *mem {
	return &mem{writer: make(chan struct{}, 1), id: newUUID(1), st: &state{lanes: map[int32]core.Lane{}, classes: map[int32]*core.Class{}, keys: map[store.Key]store.KeyRow{}, rows: map[core.UUID]store.Row{}, hist: map[core.UUID]map[int64]store.HistoryRow{}, queue: map[store.QueueRow]bool{}, timers: map[int64]memTimer{}, counters: map[string]int64{}, docs: map[docKey]store.Doc{}, search: map[core.UUID]*core.Execution{}}}
}
func fault(k store.FaultKind, text string) error { return &store.Fault{Kind: k, Err: errors.New(text)} }
func (m *mem) now() core.Time                    { return core.TimeOf(time.Now()) }
func (m *mem) Info() store.Info {
	return store.Info{Kind: "mem", Version: "1", Schema: 1, Installation: m.id, LogID: m.id}
}
func (m *mem) Now(ctx context.Context) (core.Time, error) { return m.now(), ctx.Err() }
func (m *mem) lock(ctx context.Context, patient bool) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	d := 50 * time.Millisecond
	if patient {
		d = time.Second
	}
	select {
	case m.writer <- struct{}{}:
		if m.closed {
			<-m.writer
			return fault(store.Unavailable, "closed")
		}
		return nil
	case <-time.After(d):
		return fault(store.Busy, "busy")
	case <-ctx.Done():
		return fault(store.Busy, "ctx")
	}
}
func (m *mem) snap() *state { m.mu.Lock(); defer m.mu.Unlock(); return m.st }

type memTx struct {
	m    *mem
	done bool
	held bool
}

func (m *mem) Begin(ctx context.Context, want store.Want) (store.Tx, *store.Loaded, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	tx := &memTx{m: m}
	l, err := tx.Load(ctx, want)
	if err != nil {
		return nil, nil, err
	}
	return tx, l, nil
}
func empty(w store.Want) bool {
	return len(w.Keys)+len(w.Executions)+len(w.Pick)+len(w.Counters)+len(w.ShareLanes)+len(w.LockLanes)+len(w.Docs)+len(w.Scans)+len(w.History)+w.Inbox == 0
}
func (t *memTx) Load(ctx context.Context, want store.Want) (*store.Loaded, error) {
	if false {
		if err := t.m.lock(ctx, want.Patient); err != nil {
			return nil, err
		}
		t.held = true
	}
	return t.m.load(t.m.snap(), want, true)
}
func (m *mem) Read(ctx context.Context, want store.Want) (*store.Loaded, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return m.load(m.snap(), want, false)
}
func (s *state) exec(id core.UUID, in, res bool) (*core.Execution, error) {
	r, ok := s.rows[id]
	if !ok {
		return nil, nil
	}
	if !in {
		r.Input = nil
	}
	x, err := r.Execution(s.classes[r.Class])
	if err != nil {
		return nil, err
	}
	if res && x.Result != nil {
		h := s.hist[id][x.ResultEpoch]
		x.Result.Data = h.Result
	}
	return x, nil
}
func (m *mem) load(s *state, want store.Want, locked bool) (*store.Loaded, error) {
	l := &store.Loaded{Now: m.now(), Dictionary: s.version, Keys: map[store.Key]store.KeyRow{}, Executions: map[core.UUID]*core.Execution{}, Counters: map[string]int64{}, Lanes: map[int32]core.Lane{}, Docs: map[store.DocRef]store.Doc{}}
	for _, k := range want.Keys {
		if r, ok := s.keys[k]; ok {
			l.Keys[k] = r
		}
	}
	ids := slices.Clone(want.Executions)
	for _, p := range want.Pick {
		var rows []store.QueueRow
		for r := range s.queue {
			if r.Class == p.Class && r.Block == p.Block && r.Order >= p.Floor {
				rows = append(rows, r)
			}
		}
		slices.SortFunc(rows, compareRows)
		rows = rows[:min(len(rows), p.Limit)]
		l.Picked = append(l.Picked, rows...)
		if locked {
			for _, r := range rows {
				x, err := s.exec(r.ID, true, want.Results)
				if err != nil {
					return nil, err
				}
				l.Executions[r.ID] = x
			}
		}
	}
	for _, id := range ids {
		x, err := s.exec(id, want.Inputs, want.Results)
		if err != nil {
			return nil, err
		}
		if x != nil && l.Executions[id] == nil {
			l.Executions[id] = x
		}
	}
	for _, ref := range want.History {
		eps := slices.Sorted(maps.Keys(s.hist[ref.ID]))
		n := 0
		for _, e := range eps {
			if ref.All && e <= ref.Epoch || !ref.All && e != ref.Epoch || ref.All && ref.Limit > 0 && n >= ref.Limit {
				continue
			}
			n++
			h := s.hist[ref.ID][e]
			rec, err := h.Record(core.ID{N: s.rows[ref.ID].N, UUID: ref.ID})
			if err != nil {
				return nil, err
			}
			l.History = append(l.History, rec)
		}
	}
	for _, c := range want.Counters {
		l.Counters[c] = s.counters[c]
	}
	for _, id := range append(slices.Clone(want.ShareLanes), want.LockLanes...) {
		if lane, ok := s.lanes[id]; ok {
			l.Lanes[id] = lane
		}
	}
	for _, d := range want.Docs {
		if x, ok := s.docs[d]; ok {
			l.Docs[d] = x
		}
	}
	for _, sc := range want.Scans {
		var docs []store.Doc
		for _, d := range s.docs {
			docs = append(docs, d)
		}
		slices.SortFunc(docs, func(a, b store.Doc) int { return strings.Compare(a.Key, b.Key) })
		l.Scanned = append(l.Scanned, scanList(docs, sc))
	}
	return l, nil
}
func (t *memTx) end() {
	if !t.done {
		t.done = true
		if t.held {
			<-t.m.writer
		}
	}
}
func (t *memTx) Rollback(context.Context) { t.end() }
func (t *memTx) Commit(ctx context.Context, ch *store.Changes) error {
	defer t.end()
	if err := ctx.Err(); err != nil {
		return err
	}
	if !t.held {
		if err := t.m.lock(ctx, true); err != nil {
			return err
		}
		t.held = true
	}
	s := t.m.snap().clone()
	if err := s.apply(ch, t.m.now()); err != nil {
		return err
	}
	t.m.mu.Lock()
	t.m.st = s
	t.m.mu.Unlock()
	return nil
}
func check(x *core.Execution) error {
	if !slices.Contains(core.ReasonsOf(x.Status), x.Reason) || x.Next > core.NextResume {
		return fault(store.Broken, "check")
	}
	return nil
}
func (s *state) apply(ch *store.Changes, now core.Time) error {
	if ch.Dictionary != 0 && ch.Dictionary != s.version {
		return fault(store.Stale, "dict")
	}
	for _, k := range ch.NewKeys {
		if _, ok := s.keys[k.Key]; ok {
			return fault(store.Conflict, "key")
		}
		s.keys[k.Key] = k
	}
	for _, k := range ch.ReplaceKeys {
		s.keys[k.Key] = k
	}
	for _, k := range ch.DropKeys {
		if s.keys[k].ExpiresAt < now {
			delete(s.keys, k)
		}
	}
	for _, x := range ch.Insert {
		if _, ok := s.rows[x.ID.UUID]; ok {
			return fault(store.Conflict, "id")
		}
		if err := check(x); err != nil {
			return err
		}
		s.rows[x.ID.UUID] = store.RowOf(x)
	}
	for _, x := range append(slices.Clone(ch.Update), ch.Renew...) {
		if err := check(x); err != nil {
			return err
		}
		old := s.rows[x.ID.UUID]
		r := store.ChangedRowOf(x)
		r.Fixed, r.Input = old.Fixed, old.Input
		s.rows[x.ID.UUID] = r
	}
	for _, h := range ch.History {
		if s.hist[h.ExecutionID.UUID] == nil {
			s.hist[h.ExecutionID.UUID] = map[int64]store.HistoryRow{}
		}
		s.hist[h.ExecutionID.UUID][h.Epoch] = store.HistoryRowOf(&h)
	}
	for _, p := range ch.Patches {
		h := s.hist[p.ExecutionID.UUID][p.Epoch]
		h.PatchState, h.PatchBody = p.State, store.EncodePatch(p)
		s.hist[p.ExecutionID.UUID][p.Epoch] = h
	}
	for _, q := range ch.Dequeue {
		delete(s.queue, q)
	}
	for _, q := range ch.Enqueue {
		s.queue[q] = true
	}
	for _, tm := range ch.AddTimers {
		s.seq++
		tm.Seq = s.seq
		s.timers[s.seq] = memTimer{tm, tm.At}
	}
	for _, tm := range ch.DropTimers {
		delete(s.timers, tm.Seq)
	}
	for c, d := range ch.Counters {
		s.counters[c] += d
	}
	for _, l := range ch.Lanes {
		s.lanes[l.ID] = l
		s.version++
	}
	for _, c := range ch.DropClasses {
		delete(s.classes, c)
		s.version++
	}
	for _, d := range ch.NewDocs {
		if _, ok := s.docs[d.DocRef]; ok {
			return fault(store.Conflict, "doc")
		}
		s.docs[d.DocRef] = d
	}
	for _, d := range ch.PutDocs {
		s.docs[d.DocRef] = d
	}
	for _, d := range ch.DropDocs {
		delete(s.docs, d)
	}
	for _, id := range ch.Remove {
		delete(s.rows, id)
		delete(s.hist, id)
		delete(s.search, id)
		for r := range s.docs {
			if r.Owner == id.String() {
				delete(s.docs, r)
			}
		}
	}
	if len(ch.Events) > 0 {
		s.logEnd++
		ch.Seq = s.logEnd
		ev, err := store.DecodeCommit(store.EncodeCommit(ch.Events))
		if err != nil {
			return err
		}
		s.log = append(s.log, store.Commit{Seq: s.logEnd, At: now, Events: ev})
	}
	return nil
}
func (m *mem) Dictionary(ctx context.Context) (*store.Dictionary, error) {
	s := m.snap()
	d := &store.Dictionary{Version: s.version}
	for _, id := range slices.Sorted(maps.Keys(s.lanes)) {
		d.Lanes = append(d.Lanes, s.lanes[id])
	}
	for _, id := range slices.Sorted(maps.Keys(s.classes)) {
		d.Classes = append(d.Classes, s.classes[id])
	}
	return d, nil
}
func sameClass(a, b core.Class) bool {
	return a.Namespace == b.Namespace && a.Lane == b.Lane && a.Kind == b.Kind && slices.Equal(a.Capabilities, b.Capabilities) && a.FairnessKey == b.FairnessKey
}
func (m *mem) Register(ctx context.Context, lanes []core.Lane, classes []core.Class) ([]core.Lane, []*core.Class, error) {
	if err := m.lock(ctx, true); err != nil {
		return nil, nil, err
	}
	defer func() { <-m.writer }()
	s := m.snap().clone()
	var ls []core.Lane
	var cs []*core.Class
	added := false
next:
	for _, l := range lanes {
		for _, k := range s.lanes {
			if k.Name == l.Name {
				ls = append(ls, k)
				continue next
			}
		}
		s.nextNum++
		l.ID = s.nextNum
		s.lanes[l.ID] = l
		ls = append(ls, l)
		added = true
	}
nextc:
	for _, c := range classes {
		for _, k := range s.classes {
			if sameClass(*k, c) {
				cs = append(cs, k)
				continue nextc
			}
		}
		s.nextNum++
		c.ID = s.nextNum
		s.classes[c.ID] = &c
		cs = append(cs, &c)
		added = true
	}
	if added {
		s.version++
	}
	m.mu.Lock()
	m.st = s
	m.mu.Unlock()
	return ls, cs, nil
}
func (m *mem) TakeDue(ctx context.Context, limit int, hide time.Duration) ([]store.Timer, error) {
	if err := m.lock(ctx, true); err != nil {
		return nil, err
	}
	defer func() { <-m.writer }()
	s := m.snap().clone()
	var due []memTimer
	for _, t := range s.timers {
		if t.due <= m.now() {
			due = append(due, t)
		}
	}
	slices.SortFunc(due, func(a, b memTimer) int {
		if a.At != b.At {
			return int(a.At - b.At)
		}
		return int(a.Seq - b.Seq)
	})
	var out []store.Timer
	for _, t := range due[:min(limit, len(due))] {
		out = append(out, t.Timer)
		t.Tries++
		t.due = m.now().Add(hide.Milliseconds())
		s.timers[t.Seq] = t
	}
	m.mu.Lock()
	m.st = s
	m.mu.Unlock()
	return out, nil
}
func (m *mem) Poll(ctx context.Context, ask store.PollAsk) (store.PollAnswer, error) {
	s := m.snap()
	a := store.PollAnswer{Now: m.now(), Dictionary: s.version, LogEnd: s.logEnd, LogStart: s.logStart, Projected: s.projected}
	for _, p := range ask.Queues {
		p.Limit = 1
		l, _ := m.load(s, store.Want{Pick: []store.Pick{p}}, false)
		a.Queues = append(a.Queues, len(l.Picked) > 0)
	}
	for _, t := range s.timers {
		if a.NextTimer == 0 || t.due < a.NextTimer {
			a.NextTimer = t.due
		}
	}
	return a, nil
}
func (m *mem) Log(ctx context.Context, after int64, limit int) ([]store.Commit, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	var out []store.Commit
	for _, c := range m.snap().log {
		if c.Seq > after && len(out) < limit {
			out = append(out, c)
		}
	}
	return out, nil
}
func (m *mem) Project(ctx context.Context, from, to int64, rows []*core.Execution, gone []core.UUID) error {
	if err := m.lock(ctx, true); err != nil {
		return err
	}
	defer func() { <-m.writer }()
	s := m.snap().clone()
	if s.projected != from {
		return fault(store.Stale, "projection")
	}
	s.projected = to
	for _, x := range rows {
		s.search[x.ID.UUID] = x.Clone()
	}
	for _, id := range gone {
		delete(s.search, id)
	}
	m.mu.Lock()
	m.st = s
	m.mu.Unlock()
	return nil
}
func (m *mem) Find(ctx context.Context, q store.Query) ([]store.Hit, error) {
	return oracle(slices.Collect(maps.Values(m.snap().search))).find(q), nil
}
func (m *mem) Count(ctx context.Context, q store.Query, limit int) (int, error) {
	q.Limit = limit
	return len(oracle(slices.Collect(maps.Values(m.snap().search))).find(q)), nil
}
func (m *mem) Notify(context.Context, store.Hint) error { return nil }
func (m *mem) Listen(ctx context.Context, hear func(store.Hint)) error {
	<-ctx.Done()
	return ctx.Err()
}
func (m *mem) Maintain(ctx context.Context, before core.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.st.clone()
	s.log = slices.DeleteFunc(s.log, func(c store.Commit) bool { return c.At < before })
	s.logStart = s.logEnd
	if len(s.log) > 0 {
		s.logStart = s.log[0].Seq - 1
	}
	m.st = s
	return nil
}
func (m *mem) Close() error { m.closed = true; return nil }

func TestMem(t *testing.T) {
	Run(t, Factory{Open: func(t *testing.T) store.Store { return newMem() }})
}
func BenchmarkMem(b *testing.B) {
	Bench(b, func(b *testing.B) store.Store { return newMem() })
}

var _ = bytes.Equal
var _ = fmt.Sprint
