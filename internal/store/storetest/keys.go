package storetest

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

func keyTests() []test {
	return []test{
		{"L83: a key comes back with fingerprint, id and end", keyRoundTrip, anyStore},
		{"L82: keys differ by space, namespace and text, byte for byte", keyIdentity, anyStore},
		{"L84: a key that is taken over has its new row", keyReplaced, anyStore},
		{"L84: a key is dropped only when it has expired by the store's clock", keyDropped, anyStore},
		{"I8: of concurrent submits with one new key one is written", oneKeyWins, anyStore},
		{"L82: a key that another transaction holds is busy", heldKeyIsBusy, anyStore},
	}
}

// key returns the row of an idempotency key that names x and has not expired.
func (w *world) key(text string, x *core.Execution) store.KeyRow {
	return store.KeyRow{
		Key:         store.Key{Space: store.ExecutionKeys, Namespace: "default", Text: text},
		Fingerprint: []byte{0, 1, 2, 0xff}, ID: x.ID, ExpiresAt: w.now.Add(base.Day),
	}
}

func keyMap(rows ...store.KeyRow) map[store.Key]store.KeyRow {
	m := map[store.Key]store.KeyRow{}
	for _, row := range rows {
		m[row.Key] = row
	}
	return m
}

func keysOf(rows []store.KeyRow) []store.Key {
	keys := make([]store.Key, len(rows))
	for i, row := range rows {
		keys[i] = row.Key
	}
	return keys
}

func keyRoundTrip(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	x := w.execution()
	x.ID.N = 200
	a, expired := w.key("a", x), w.key("expired", x)
	a.Fingerprint = everyByte()[:32]
	expired.ExpiresAt = w.now.Add(-base.Hour) // the engine decides on expiry, not the store
	w.add(ctx, &store.Changes{NewKeys: []store.KeyRow{a, expired}, Insert: []*core.Execution{x}})
	want := store.Want{Keys: []store.Key{a.Key, expired.Key, {Space: store.ExecutionKeys, Namespace: "default", Text: "b"}}}
	w.equal("read", keyMap(a, expired), w.read(ctx, want).Keys)
	tx, got := w.begin(ctx, want)
	tx.Rollback(ctx)
	w.equal("locked", keyMap(a, expired), got.Keys)
}

func keyIdentity(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	var rows []store.KeyRow
	for i, key := range []store.Key{
		{Space: store.ExecutionKeys, Namespace: "default", Text: "order"},
		{Space: store.FlowKeys, Namespace: "default", Text: "order"},
		{Space: store.ExecutionKeys, Namespace: "Default", Text: "order"},
		{Space: store.ExecutionKeys, Namespace: "default", Text: "Order"},
		{Space: store.ExecutionKeys, Namespace: "default", Text: "order "},
		{Space: store.ExecutionKeys, Namespace: "default", Text: "örder"},
		{Space: store.ExecutionKeys, Namespace: "default", Text: "o\u0308rder"},
		{Space: store.ExecutionKeys, Namespace: "default", Text: `'; "\%_`},
	} {
		row := w.key("", w.execution())
		row.Key, row.Fingerprint = key, fmt.Append(nil, i)
		rows = append(rows, row)
	}
	w.add(ctx, &store.Changes{NewKeys: rows})
	w.equal("keys", keyMap(rows...), w.read(ctx, store.Want{Keys: keysOf(rows)}).Keys)
	for _, row := range rows {
		w.refuse(ctx, store.Want{}, &store.Changes{NewKeys: []store.KeyRow{row}}, store.Conflict)
	}
}

func keyReplaced(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	old, other, next := w.key("a", w.execution()), w.key("b", w.execution()), w.key("a", w.execution())
	next.Fingerprint, next.ExpiresAt = []byte("next"), w.now.Add(2*base.Day)
	w.add(ctx, &store.Changes{NewKeys: []store.KeyRow{old, other}})
	w.put(ctx, store.Want{Keys: []store.Key{old.Key}}, &store.Changes{ReplaceKeys: []store.KeyRow{next}})
	w.equal("keys", keyMap(next, other), w.read(ctx, store.Want{Keys: []store.Key{old.Key, other.Key}}).Keys)
}

func keyDropped(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	expired, live := w.key("expired", w.execution()), w.key("live", w.execution())
	expired.ExpiresAt = w.now
	live.ExpiresAt = w.now.Add(base.Hour)
	w.add(ctx, &store.Changes{NewKeys: []store.KeyRow{expired, live}})
	for w.clock(ctx) <= w.now { // until the expiry has certainly passed
	}
	absent := store.Key{Space: store.FlowKeys, Namespace: "default", Text: "expired"}
	keys := []store.Key{expired.Key, live.Key, absent}
	w.add(ctx, &store.Changes{DropKeys: keys})
	w.equal("keys", keyMap(live), w.read(ctx, store.Want{Keys: keys}).Keys)
}

func oneKeyWins(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	for round := range 5 {
		rows := make([]store.KeyRow, crowd)
		var winner, won atomic.Int64
		err := together(crowd, func(i int) error {
			x := w.execution()
			rows[i] = w.key(fmt.Sprint("order-", round), x)
			err := insist(ctx, w.s, store.Want{Keys: []store.Key{rows[i].Key}}, func(got *store.Loaded) *store.Changes {
				if len(got.Keys) > 0 {
					return nil
				}
				return &store.Changes{NewKeys: rows[i : i+1], Insert: []*core.Execution{x}}
			})
			if err != nil && store.FaultOf(err) != store.Conflict {
				return err
			}
			if loaded, readErr := w.s.Read(ctx, store.Want{Executions: []base.UUID{x.ID.UUID}}); readErr != nil {
				return readErr
			} else if len(loaded.Executions) == 1 {
				winner.Store(int64(i))
				won.Add(1)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if won.Load() != 1 {
			t.Fatalf("%d executions were written under one key", won.Load())
		}
		row := rows[winner.Load()]
		w.equal("key", keyMap(row), w.read(ctx, store.Want{Keys: []store.Key{row.Key}}).Keys)
	}
}

func heldKeyIsBusy(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	row := w.key("a", w.execution())
	w.add(ctx, &store.Changes{NewKeys: []store.KeyRow{row}})
	tx, _ := w.begin(ctx, store.Want{Keys: []store.Key{row.Key}})
	w.busy(ctx, store.Want{Keys: []store.Key{row.Key}})
	tx.Rollback(ctx)
}
