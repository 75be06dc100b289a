package storetest

import (
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/store"
)

func assumedTests() []test {
	return []test{
		{"S9: what is filed is leased unseen only while nothing else is queued", assumedEmpty, anyStore},
		{"S53: small records are as assumed, or nothing is written", assumedDocs, anyStore},
		{"S47: counters keep to the bounds that are assumed, or nothing is written", assumedCounters, anyStore},
		{"S4: lanes that are assumed are as in the dictionary, or nothing is written", assumedLanes, anyStore},
		{"S4: lanes that are being changed are waited for", assumedLanesAreHeld, anyStore},
	}
}

func assumedEmpty(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	_, classes := w.register(ctx, nil, []core.Class{newClass("default", "other")})
	mail, other := whole(w.class.ID, 0), whole(classes[0].ID, 0)
	leased, filed := claimed(w.execution(), w.now), w.execution()
	w.add(ctx, &store.Changes{
		Insert: []*core.Execution{leased, filed}, Enqueue: []store.QueueRow{queueRow(filed)}, AssumeEmpty: []store.Pick{mail, other},
	})
	w.equal("leased", leased, w.load(ctx, leased.ID.UUID))
	late := claimed(w.execution(), w.now)
	w.refuse(ctx, store.Want{}, &store.Changes{Insert: []*core.Execution{late}, AssumeEmpty: []store.Pick{other, mail}}, store.Conflict)
	w.gone(ctx, late.ID.UUID)
	w.add(ctx, &store.Changes{Insert: []*core.Execution{late}, AssumeEmpty: []store.Pick{other}})
	above := store.Pick{Class: w.class.ID, Floor: filed.OrderKey + 1}
	w.add(ctx, &store.Changes{Insert: []*core.Execution{claimed(w.execution(), w.now)}, AssumeEmpty: []store.Pick{above}})
	w.add(ctx, &store.Changes{Dequeue: []store.QueueRow{queueRow(filed)}})
	blocked := queueRow(filed)
	blocked.Block = 7
	w.add(ctx, &store.Changes{Enqueue: []store.QueueRow{blocked}})
	w.add(ctx, &store.Changes{Insert: []*core.Execution{claimed(w.execution(), w.now)}, AssumeEmpty: []store.Pick{mail}})
}

func assumedDocs(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	a, b := doc(3, "", "a", `{"n":1}`), doc(3, "", "b", `{}`)
	w.add(ctx, &store.Changes{NewDocs: []store.Doc{a, b}})
	x := w.execution()
	for what, assumed := range map[string]store.Doc{
		"another body": doc(3, "", "a", `{"n":2}`), "no body": doc(3, "", "a", ""), "absent": doc(3, "", "c", `{}`), "another kind": doc(4, "", "b", `{}`),
	} {
		t.Run(what, func(*testing.T) {
			w.refuse(ctx, store.Want{}, &store.Changes{Insert: []*core.Execution{x}, AssumeDocs: []store.Doc{b, assumed}}, store.Conflict)
			w.gone(ctx, x.ID.UUID)
		})
	}
	later := doc(3, "", "a", `{"n":3}`) // what the transaction itself writes is ignored
	w.add(ctx, &store.Changes{Insert: []*core.Execution{x}, AssumeDocs: []store.Doc{b, a}, PutDocs: []store.Doc{later}})
	w.equal("execution", x, w.load(ctx, x.ID.UUID))
}

func assumedCounters(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	w.add(ctx, &store.Changes{Counters: map[string]int64{"a": 2, "b": 1}})
	for what, ch := range map[string]*store.Changes{
		"one too many":                {Counters: map[string]int64{"a": 1}, AssumeCounters: map[string]int64{"a": 2}},
		"above it already":            {AssumeCounters: map[string]int64{"a": 1}},
		"not lowered enough":          {Counters: map[string]int64{"a": -1}, AssumeCounters: map[string]int64{"a": 0, "b": 1}},
		"a new one":                   {Counters: map[string]int64{"c": 2}, AssumeCounters: map[string]int64{"c": 1}},
		"one given and one taken":     {Counters: map[string]int64{"a": 0}, AssumeCounters: map[string]int64{"a": 1}},
		"a bound that holds, one not": {Counters: map[string]int64{"b": 1}, AssumeCounters: map[string]int64{"a": 2, "b": 1}},
	} {
		t.Run(what, func(*testing.T) {
			x := w.execution()
			ch.Insert = []*core.Execution{x}
			w.refuse(ctx, store.Want{}, ch, store.Conflict)
			w.gone(ctx, x.ID.UUID)
		})
	}
	w.add(ctx, &store.Changes{
		Counters: map[string]int64{"a": 1, "b": -1, "c": 1}, AssumeCounters: map[string]int64{"a": 3, "b": 0, "c": 1, "d": 0},
	})
	got := w.read(ctx, store.Want{Counters: []string{"a", "b", "c", "d"}}).Counters
	for key, want := range map[string]int64{"a": 3, "b": 0, "c": 1, "d": 0} {
		if got[key] != want {
			t.Errorf("counter %s: %d, want %d", key, got[key], want)
		}
	}
}

func assumedLanes(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	seen := w.version(ctx)
	x, y := w.execution(), w.execution()
	w.add(ctx, &store.Changes{Insert: []*core.Execution{x}, Dictionary: seen, AssumeLanes: []int32{w.lane.ID}})
	paused := w.lane
	paused.Settings.State = core.LanePaused
	w.put(ctx, store.Want{LockLanes: []int32{w.lane.ID}}, &store.Changes{Lanes: []core.Lane{paused}})
	w.refuse(ctx, store.Want{}, &store.Changes{Insert: []*core.Execution{y}, Dictionary: seen, AssumeLanes: []int32{w.lane.ID}}, store.Stale)
	w.gone(ctx, y.ID.UUID)
}

func assumedLanesAreHeld(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	seen := w.version(ctx)
	tx, _ := w.begin(ctx, store.Want{LockLanes: []int32{w.lane.ID}})
	x := w.execution()
	ch := &store.Changes{Insert: []*core.Execution{x}, Dictionary: seen, AssumeLanes: []int32{w.lane.ID}}
	err := apply(ctx, w.s, store.Want{}, func(*store.Loaded) *store.Changes { return ch })
	w.expectFault(err, store.Busy)
	tx.Rollback(ctx)
	w.add(ctx, ch)
	w.equal("execution", x, w.load(ctx, x.ID.UUID))
}
