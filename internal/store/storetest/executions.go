package storetest

import (
	"context"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

func executionTests() []test {
	return []test{
		{"L8: every field of an execution comes back as it was inserted", everyFieldInserted, anyStore},
		{"L10: an update writes every field but identity, input and policy", everyFieldUpdated, anyStore},
		{"U215: a trace context of the largest size comes back and stays through updates", traceContext, anyStore},
		{"L7 LI16: an input of every byte value comes back bit for bit", inputOfEveryByte, anyStore},
		{"L7 LI16: a result of every byte value comes back bit for bit", resultOfEveryByte, anyStore},
		{"L7: an empty result is not an absent one", emptyAndAbsentResults, anyStore},
		{"L6: an input of four megabytes comes back bit for bit", largeInput, anyStore},
		{"L7: bytes that were not asked for are not loaded and their size is known", bytesOnlyOnDemand, anyStore},
		{"L9: a renewal writes lease times, wake time and timer time", renewals, anyStore},
		{"L141: removal takes an execution with history, docs and search row", removal, anyStore},
		{"L141: an execution that is stripped leaves docs of some kinds", stripping, anyStore},
		{"L84: removal leaves the idempotency key", removalLeavesTheKey, anyStore},
		{"L2: an execution is found by its UUID and shows the number it was stored with", partitionNumber, anyStore},
		{"a want may name a row twice, and rows that do not exist", namedTwiceOrAbsent, anyStore},
		{"hundreds of executions are inserted and updated in one transaction", manyInOneTransaction, anyStore},
	}
}

func everyFieldInserted(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	testseed.Check(t, func(rt *rapid.T) {
		w := w.on(rt)
		x := w.drawExecution(rt)
		ch := &store.Changes{Insert: []*core.Execution{x}}
		if x.Result != nil {
			ch.History = []core.LeaseRecord{w.resultRecord(x)}
		}
		w.add(ctx, ch)
		w.equal("execution", x, w.load(ctx, x.ID.UUID))
	})
}

func everyFieldUpdated(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	testseed.Check(t, func(rt *rapid.T) {
		w := w.on(rt)
		x := w.drawExecution(rt)
		x.Result, x.ResultEpoch = nil, 0
		w.insert(ctx, x)
		y := x.Clone()
		w.drawState(rt, y)
		written := y.Clone()
		written.Creator, written.CreatorKey, written.IdempotencyKey, written.FlowID = "mallory", "stolen", "other", base.IDOf(drawUUID(rt, "other flow"))
		written.Input, written.Policy = core.Payload{ContentType: "x/y"}, drawPolicy(rt)
		ch := &store.Changes{Update: []*core.Execution{written}}
		if y.Result != nil {
			ch.History = []core.LeaseRecord{w.resultRecord(y)}
		}
		w.put(ctx, store.Want{Executions: []base.UUID{x.ID.UUID}}, ch)
		w.equal("execution", y, w.load(ctx, x.ID.UUID))
	})
}

func traceContext(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	full := &base.Trace{
		Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", State: "a=" + strings.Repeat("x", 510), Baggage: "k=" + strings.Repeat("v", 8190),
	}
	baggageAlone := &base.Trace{Baggage: "user=7"}
	for _, trace := range []*base.Trace{full, baggageAlone, nil} {
		x := w.execution()
		x.Trace = trace
		w.insert(ctx, x)
		w.equal("execution", x, w.load(ctx, x.ID.UUID))
		running := claimed(x, w.now)
		w.put(ctx, store.Want{Executions: []base.UUID{x.ID.UUID}}, &store.Changes{Update: []*core.Execution{running}})
		w.equal("running execution", running, w.load(ctx, x.ID.UUID))
	}
}

func inputOfEveryByte(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	x := w.execution()
	x.Input = payload("application/octet-stream", everyByte())
	empty := w.execution()
	empty.Input = payload("application/octet-stream", []byte{})
	w.insert(ctx, x, empty)
	w.equal("execution", x, w.load(ctx, x.ID.UUID))
	w.equal("execution with an empty input", empty, w.load(ctx, empty.ID.UUID))
}

// finish inserts an execution and completes it with that result.
func (w *world) finish(ctx context.Context, result *core.Payload) *core.Execution {
	w.t.Helper()
	x := claimed(w.execution(), w.now)
	w.insert(ctx, x)
	done, record := completed(x, result, w.now.Add(5))
	w.put(ctx, store.Want{Executions: []base.UUID{x.ID.UUID}}, &store.Changes{
		Update: []*core.Execution{done}, History: []core.LeaseRecord{record},
	})
	return done
}

func resultOfEveryByte(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	result := payload("application/octet-stream", everyByte())
	done := w.finish(ctx, &result)
	w.equal("execution", done, w.load(ctx, done.ID.UUID))
}

func emptyAndAbsentResults(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	empty := payload("text/plain", []byte{})
	with, without := w.finish(ctx, &empty), w.finish(ctx, nil)
	for _, bytes := range []bool{true, false} {
		got := w.read(ctx, store.Want{Executions: idsOf([]*core.Execution{with, without}), Results: bytes}).Executions
		if r := got[with.ID.UUID].Result; r == nil || len(r.Data) != 0 || r.Size != 0 || r.ContentType != "text/plain" {
			t.Fatalf("empty result, asked for bytes %v: got %+v", bytes, r)
		}
		if r := got[without.ID.UUID].Result; r != nil {
			t.Fatalf("absent result, asked for bytes %v: got %+v", bytes, r)
		}
	}
}

func largeInput(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	data := make([]byte, 4<<20)
	for i := range data {
		data[i] = byte(i ^ i>>8 ^ i>>16)
	}
	x := w.execution()
	x.Input = payload("application/octet-stream", data)
	w.insert(ctx, x)
	if got := w.load(ctx, x.ID.UUID).Input; got.Size != len(data) || string(got.Data) != string(data) {
		t.Fatalf("input of %d bytes came back as %d bytes, size %d", len(data), len(got.Data), got.Size)
	}
}

func bytesOnlyOnDemand(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	result := payload("text/plain", []byte("result"))
	x := w.finish(ctx, &result)
	id := []base.UUID{x.ID.UUID}
	w.equal("neither", light(x), w.read(ctx, store.Want{Executions: id}).Executions[id[0]])
	w.equal("input", withoutResult(x), w.read(ctx, store.Want{Executions: id, Inputs: true}).Executions[id[0]])
	onlyResult := x.Clone()
	onlyResult.Input.Data = nil
	w.equal("result", onlyResult, w.read(ctx, store.Want{Executions: id, Results: true}).Executions[id[0]])
	tx, loaded := w.begin(ctx, store.Want{Executions: id, Inputs: true, Results: true})
	tx.Rollback(ctx)
	w.equal("both, under a lock", x, loaded.Executions[id[0]])
}

func renewals(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	a, b, other := claimed(w.execution(), w.now), claimed(w.execution(), w.now), claimed(w.execution(), w.now)
	ids := w.insert(ctx, a, b, other)
	for i, x := range []*core.Execution{a, b} {
		x.Lease.RenewedAt, x.Lease.TTL = w.now.Add(10), 5000+int64(i)
		x.Lease.ExpiresAt = w.now.Add(10 + x.Lease.TTL)
		x.WakeAt, x.TimerAt = x.Lease.ExpiresAt, x.Lease.ExpiresAt.Add(50)
	}
	w.put(ctx, store.Want{Executions: ids}, &store.Changes{Renew: []*core.Execution{b, a}})
	w.equal("renewed", a, w.load(ctx, a.ID.UUID))
	w.equal("renewed", b, w.load(ctx, b.ID.UUID))
	w.equal("not renewed", other, w.load(ctx, other.ID.UUID))
}

func removal(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	result := payload("text/plain", []byte("result"))
	x, kept := w.finish(ctx, &result), w.finish(ctx, &result)
	var docs []store.Doc
	for _, owner := range []string{x.ID.UUID.String(), kept.ID.UUID.String(), ""} {
		docs = append(docs, store.Doc{DocRef: store.DocRef{Kind: 1, Owner: owner, Key: "step"}, Body: []byte(`{}`)})
	}
	w.add(ctx, &store.Changes{PutDocs: docs})
	end := w.poll(ctx).Projected
	if err := w.s.Project(ctx, store.Projection{From: end, To: end, Rows: []*core.Execution{x, kept}}); err != nil {
		t.Fatal(err)
	}
	w.put(ctx, store.Want{Executions: []base.UUID{x.ID.UUID}}, &store.Changes{Remove: []base.UUID{x.ID.UUID}})
	w.gone(ctx, x.ID.UUID)
	want := store.Want{Docs: []store.DocRef{docs[0].DocRef, docs[1].DocRef, docs[2].DocRef}}
	for _, y := range []*core.Execution{x, kept} {
		want.History = append(want.History, store.HistoryRef{ID: y.ID.UUID, All: true})
	}
	got := w.read(ctx, want)
	if len(got.History) != 1 || got.History[0].ExecutionID != kept.ID {
		t.Fatalf("history after removal: %+v", got.History)
	}
	w.equal("docs after removal", map[store.DocRef]store.Doc{docs[1].DocRef: docs[1], docs[2].DocRef: docs[2]}, got.Docs)
	hits, err := w.s.Find(ctx, store.Query{Limit: 10})
	if err != nil || len(hits) != 1 || hits[0].ID != kept.ID.UUID {
		t.Fatalf("search after removal: %+v, %v", hits, err)
	}
	w.equal("the other execution", kept, w.load(ctx, kept.ID.UUID))
}

func stripping(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	result := payload("text/plain", []byte("result"))
	x, other := w.finish(ctx, &result), w.finish(ctx, &result)
	var docs []store.Doc
	for _, owner := range []string{x.ID.UUID.String(), other.ID.UUID.String()} {
		for kind := range store.DocKind(3) {
			docs = append(docs, store.Doc{DocRef: store.DocRef{Kind: kind + 1, Owner: owner, Key: "k"}, Body: []byte(`{}`)})
		}
	}
	w.add(ctx, &store.Changes{PutDocs: docs})
	both := store.Want{Executions: []base.UUID{x.ID.UUID, other.ID.UUID}}
	w.put(ctx, both, &store.Changes{Strip: []base.UUID{x.ID.UUID}, StripLeaves: []store.DocKind{1, 3}, Remove: []base.UUID{other.ID.UUID}})
	w.gone(ctx, x.ID.UUID)
	w.gone(ctx, other.ID.UUID)
	want := store.Want{Docs: refsOf(docs), History: []store.HistoryRef{{ID: x.ID.UUID, All: true}}}
	got := w.read(ctx, want)
	w.equal("docs", docMap(docs[0], docs[2]), got.Docs)
	w.equal("entries of the history", 0, len(got.History))
	w.add(ctx, &store.Changes{Remove: []base.UUID{x.ID.UUID}}) // its row is gone already; the remaining docs are removed
	w.equal("docs that were left", 0, len(w.read(ctx, want).Docs))
}

func removalLeavesTheKey(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	x := w.execution()
	row := w.key("order-1", x)
	w.add(ctx, &store.Changes{NewKeys: []store.KeyRow{row}, Insert: []*core.Execution{x}})
	w.put(ctx, store.Want{Executions: []base.UUID{x.ID.UUID}}, &store.Changes{Remove: []base.UUID{x.ID.UUID}})
	w.equal("keys", map[store.Key]store.KeyRow{row.Key: row}, w.read(ctx, store.Want{Keys: []store.Key{row.Key}}).Keys)
}

func partitionNumber(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	for _, n := range []uint8{0, 1, 127, 128, 255} {
		x := w.execution()
		x.ID.N = n
		w.insert(ctx, x)
		if got := w.load(ctx, x.ID.UUID); got.ID != x.ID {
			t.Fatalf("id %v came back as %v", x.ID, got.ID)
		}
	}
}

func namedTwiceOrAbsent(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	x := w.execution()
	w.insert(ctx, x)
	absent := newUUID(w.now)
	want := store.Want{
		Executions: []base.UUID{x.ID.UUID, absent, x.ID.UUID}, Inputs: true,
		Keys:       []store.Key{{Space: store.ExecutionKeys, Namespace: "default", Text: "none"}, {Space: store.ExecutionKeys, Namespace: "default", Text: "none"}},
		Counters:   []string{"none", "none"},
		ShareLanes: []int32{w.lane.ID, w.lane.ID, 1 << 30},
		Docs:       []store.DocRef{{Kind: 1, Key: "none"}, {Kind: 1, Key: "none"}},
	}
	check := func(got *store.Loaded) {
		t.Helper()
		w.equal("executions", map[base.UUID]*core.Execution{x.ID.UUID: x}, got.Executions)
		w.equal("lanes", map[int32]core.Lane{w.lane.ID: w.lane}, got.Lanes)
		if len(got.Keys) != 0 || len(got.Docs) != 0 || got.Counters["none"] != 0 || len(got.Held) != 0 {
			t.Fatalf("found what is not there: %+v", got)
		}
	}
	check(w.read(ctx, want))
	tx, got := w.begin(ctx, want)
	defer tx.Rollback(ctx)
	check(got)
}

func manyInOneTransaction(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	list := w.executions(700)
	ids := w.insert(ctx, list...)
	updates := make([]*core.Execution, len(list))
	for i, x := range list {
		updates[i] = claimed(x, w.now.Add(int64(i)))
	}
	w.put(ctx, store.Want{Executions: ids}, &store.Changes{Update: updates})
	got := w.read(ctx, store.Want{Executions: ids, Inputs: true}).Executions
	if len(got) != len(list) {
		t.Fatalf("%d executions came back, want %d", len(got), len(list))
	}
	for _, x := range updates {
		w.equal("execution", x, got[x.ID.UUID])
	}
}
