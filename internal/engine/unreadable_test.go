package engine_test

import (
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/eventdata"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

// spoil makes the stored bytes of an execution unreadable. What it returns mends them.
func (w *world) spoil(id base.GivenID) (mend func()) {
	w.t.Helper()
	w.unaudited = true
	good := must(w.store.Read(w.ctx(), store.Want{Executions: []base.UUID{id.UUID}}))(w.t).Executions[id.UUID]
	write := func(x *core.Execution) {
		w.t.Helper()
		tx, _ := w.beginOn(w.store, store.Want{Executions: []base.UUID{id.UUID}, SkipUnreadable: true})
		ok(w.t, tx.Commit(w.ctx(), &store.Changes{Update: []*core.Execution{x}}))
	}
	bad := good.Clone()
	bad.LastLease = &core.LastLease{End: 250} // no lease ends like that
	write(bad)
	_, err := w.e.Describe(w.ctx(), client, id)
	refused(w.t, err, base.CodeCorruption)
	return func() { write(good) }
}

func TestS63_claims_pass_over_executions_that_cannot_be_read(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		var mends []func()
		spoiled := w.submitMany(20, core.Submission{Priority: 5})
		for _, id := range spoiled {
			mends = append(mends, w.spoil(id))
		}
		var good []base.GivenID
		for range 3 {
			w.turn(1)
			good = append(good, w.submit(core.Submission{}))
		}
		for _, id := range good {
			same(t, "the next that can be read", given(w.claim()), id)
		}
		w.nothing()
		same(t, "events", len(w.events(engine.EventFilter{Kinds: []string{"sweep.quarantined"}})), 20)
		answer := w.waiting(w.e, ask())
		mends[0]()
		same(t, "one that was mended is served again", given(w.only(answer)), spoiled[0])
		same(t, "and told of no more", len(w.events(engine.EventFilter{Kinds: []string{"sweep.quarantined"}})), 20)
	})
}

func TestS63_a_repeated_claim_passes_over_a_lease_that_cannot_be_read(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.submitMany(2, core.Submission{})
		r := ask()
		r.Max, r.RequestKey = 2, "r1"
		first := w.take(r)
		w.spoil(given(first[0]))
		same(t, "the other lease", leasesOf(w.take(r)), leasesOf(first[1:]))
		w.submit(core.Submission{})
		w.claim()
	})
}

func TestS63_a_timer_of_an_execution_that_cannot_be_read_holds_up_no_other(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		ids := w.submitMany(3, core.Submission{DelayMS: ptr(int64(1000))})
		w.spoil(ids[1])
		w.turn(1000)
		w.becomes(ids[0], core.Ready)
		w.becomes(ids[2], core.Ready)
		eventually(t, "it is set aside", func() bool { return len(w.events(engine.EventFilter{Kinds: []string{"sweep.quarantined"}})) > 0 })
	})
}

func TestL131_lists_go_on_beside_an_execution_that_cannot_be_read(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		bad := w.submit(core.Submission{Kind: "bad", Priority: 5})
		w.hold(bad)
		w.spoil(bad)
		good := w.started(core.Submission{Kind: "good"})
		w.complete(good)
		page := must(w.e.List(w.ctx(), client, engine.ListRequest{Filter: core.Filter{Kind: []string{"good"}, Status: []string{"succeeded"}}}))(t)
		same(t, "listed", len(page.Items), 1)
		_, err := w.e.Describe(w.ctx(), client, bad)
		refused(t, err, base.CodeCorruption)
	})
}

func TestL138_an_execution_that_cannot_be_read_is_counted_as_failed_and_stops_no_bulk_job(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		ids := w.submitMany(3, core.Submission{})
		w.spoil(ids[1])
		view := w.bulk(engine.BulkRequest{Action: "cancel", IDs: ids})
		same(t, "the job", [3]int{view.Done, view.Failed, len(view.Refused)}, [3]int{2, 1, 0})
		w.is(ids[0], core.Cancelled, core.CancelledByRequest)
		w.is(ids[2], core.Cancelled, core.CancelledByRequest)
	})
}

// tell writes events to the log behind the engine's back.
func (w *world) tell(events ...core.Event) {
	w.t.Helper()
	tx, _, err := w.store.Begin(w.ctx(), store.Want{})
	ok(w.t, err)
	ok(w.t, tx.Commit(w.ctx(), &store.Changes{Events: events}))
}

// unreadable is an event that no reader accepts: its data has no shape.
func (w *world) unreadable() core.Event {
	return core.Event{Kind: "lane.changed", At: w.now(), AttemptIndex: -1, Data: eventdata.Of("\xff", "", nil)}
}

func TestI6_readers_are_told_of_a_commit_that_cannot_be_read_and_of_all_others(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.unaudited = true
		first := w.submit(core.Submission{})
		w.tell(w.unreadable())
		last := w.submit(core.Submission{})
		kinds := []string{"execution.submitted", "sweep.quarantined"}
		check := func(name string) {
			t.Helper()
			var events []engine.LoggedEvent
			eventually(t, name, func() bool {
				events = w.events(engine.EventFilter{Kinds: kinds})
				return len(events) == 3
			})
			same(t, name+": first", events[0].ExecutionID.UUID, first.UUID)
			same(t, name+": what is missing", data(t, events[1])["error"], any("corruption"))
			same(t, name+": last", events[2].ExecutionID.UUID, last.UUID)
			page := must(w.e.ReadEvents(w.ctx(), client, engine.EventsRequest{After: events[1].Cursor, Filter: engine.EventFilter{Kinds: kinds}}))(t)
			same(t, name+": behind it", page.Events[0].ExecutionID.UUID, last.UUID)
		}
		check("as it happens")
		own := engine.Caller{Principal: "me", Actor: "client", Namespaces: []string{base.DefaultNamespace}}
		page := must(w.e.ReadEvents(w.ctx(), own, engine.EventsRequest{After: "start", Filter: engine.EventFilter{Kinds: kinds}}))(t)
		same(t, "of one namespace (E35)", len(page.Events), 2)
		w.restart()
		check("from the store")
	})
}

func TestL131_lists_go_on_behind_a_commit_that_cannot_be_read(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.unaudited = true
		w.tell(w.unreadable())
		w.submit(core.Submission{Kind: "later"})
		listed := func() int {
			return len(must(w.e.List(w.ctx(), client, engine.ListRequest{Filter: core.Filter{Kind: []string{"later"}}}))(t).Items)
		}
		eventually(t, "the list", func() bool { return listed() == 1 })
		seen := must(w.store.Poll(w.ctx(), store.PollAsk{}))(t)
		eventually(t, "the projection", func() bool {
			return must(w.store.Poll(w.ctx(), store.PollAsk{}))(t).Projected >= seen.LogEnd
		})
	})
}

func TestS70_who_waits_for_an_execution_looks_again_when_a_commit_cannot_be_read(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.unaudited = true
		id := given(w.started(core.Submission{}))
		answer := make(chan engine.View, 1)
		go func() {
			view, _ := w.e.Wait(t.Context(), client, id, 2*patience)
			answer <- view
		}()
		tx, loaded := w.beginOn(w.store, store.Want{Executions: []base.UUID{id.UUID}})
		x := loaded.Executions[id.UUID]
		x.Status, x.Reason = core.Cancelled, core.CancelledByRequest
		ok(t, tx.Commit(w.ctx(), &store.Changes{Update: []*core.Execution{x}, Events: []core.Event{w.unreadable()}}))
		select {
		case view := <-answer:
			same(t, "status", view.Execution.Status, core.Cancelled)
		case <-w.ctx().Done():
			t.Fatal("nothing woke the call")
		}
	})
}
