package engine_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/engine/bulk"
	"github.com/flowfabric/flowfabric/internal/store"
)

// items walks what a job did, in small pages.
func (w *world) items(job base.UUID, ok *bool) []engine.BulkItem {
	w.t.Helper()
	all := []engine.BulkItem{}
	for cursor := ""; ; {
		page, next, err := w.e.BulkItems(w.ctx(), operator, job, engine.BulkItemsRequest{OK: ok, Limit: ptr(3), Cursor: cursor})
		must(page, err)(w.t)
		if len(page) > 3 || len(page) == 0 && next != "" {
			w.t.Fatalf("%d items, then %q", len(page), next)
		}
		all = append(all, page...)
		if cursor = next; cursor == "" {
			return all
		}
	}
}

func TestU58_a_job_tells_what_it_did_to_each_execution(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		var given []base.GivenID
		for i := range 20 {
			id := w.submit(core.Submission{})
			if given = append(given, id); i%4 == 0 {
				w.cancel(id)
			}
		}
		given = append(given, base.GivenID{UUID: base.UUID{1}})
		job := w.bulk(engine.BulkRequest{Action: "hold", IDs: given}).JobID
		all := w.items(job, nil)
		same(t, "all", len(all), 21)
		done, refusals := 0, 0
		for i, item := range all {
			same(t, "in order", item.ID, given[i].ID())
			switch {
			case i == 20:
				same(t, "unknown", item.Err.Code, base.CodeExecutionNotFound)
				refusals++
			case i%4 == 0:
				same(t, "ended", item.Err.Code, base.CodeExecutionNotActive)
				same(t, "a sentence", item.Err.Message != "", true)
				refusals++
			default:
				same(t, "done", item.Err, nil)
				done++
			}
		}
		same(t, "done ones", len(w.items(job, ptr(true))), done)
		for _, item := range w.items(job, ptr(false)) {
			if item.Err == nil {
				t.Fatalf("%s was done", item.ID)
			}
			refusals--
		}
		same(t, "refused ones", refusals, 0)
	})
}

func TestL134_a_cursor_of_items_that_somebody_made_up_is_refused(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.submitMany(2, core.Submission{})
		job := w.bulk(engine.BulkRequest{Action: "hold", All: true}).JobID
		_, _, err := w.e.BulkItems(w.ctx(), operator, job, engine.BulkItemsRequest{Cursor: core.EncodeNumbers(bulk.ItemsScope(job, nil), 0, -1)})
		refused(t, err, base.CodeInvalidCursor)
	})
}

func TestU58_cursors_of_items_belong_to_their_job_and_filter(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.submitMany(5, core.Submission{})
		job := w.bulk(engine.BulkRequest{Action: "hold", All: true}).JobID
		_, cursor, err := w.e.BulkItems(w.ctx(), operator, job, engine.BulkItemsRequest{Limit: ptr(2)})
		ok(t, err)
		_, _, err = w.e.BulkItems(w.ctx(), operator, job, engine.BulkItemsRequest{OK: ptr(true), Cursor: cursor})
		refused(t, err, base.CodeInvalidCursor)
		_, _, err = w.e.BulkItems(w.ctx(), operator, base.UUID{7}, engine.BulkItemsRequest{})
		refused(t, err, base.CodeJobNotFound)
		stranger := engine.Caller{Principal: "s", Actor: "operator", Namespaces: []string{"elsewhere"}}
		_, _, err = w.e.BulkItems(w.ctx(), stranger, job, engine.BulkItemsRequest{})
		refused(t, err, base.CodeJobNotFound)
		none, next, err := w.e.BulkItems(w.ctx(), operator, job, engine.BulkItemsRequest{Limit: ptr(0)})
		ok(t, err)
		same(t, "an empty page", [2]any{len(none), next}, [2]any{0, ""})
	})
}

func TestU58_items_are_bounded_and_go_with_their_job(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		ids := make([]base.GivenID, scaled(10_600))
		for i := range ids {
			ids[i].UUID = base.UUID{2, byte(i), byte(i >> 8)}
		}
		one := w.submit(core.Submission{})
		ids[len(ids)-1] = one
		view := w.bulk(engine.BulkRequest{Action: "hold", IDs: ids})
		same(t, "all are counted", view.Refused[base.CodeExecutionNotFound], len(ids)-1)
		kept := 0
		for cursor := ""; ; {
			page, next, err := w.e.BulkItems(w.ctx(), operator, view.JobID, engine.BulkItemsRequest{OK: ptr(false), Limit: ptr(1000), Cursor: cursor})
			ok(t, err)
			if kept += len(page); next == "" {
				break
			}
			cursor = next
		}
		same(t, "refusals kept", kept, min(len(ids)-1, 10_000))
		same(t, "what is done is kept all the same", w.items(view.JobID, ptr(true)), []engine.BulkItem{{ID: one.ID()}})
		w.turn(8 * base.Day)
		eventually(t, "the job is forgotten", func() bool { return len(must(w.e.BulkJobs(w.ctx(), operator))(t)) == 0 })
		_, _, err := w.e.BulkItems(w.ctx(), operator, view.JobID, engine.BulkItemsRequest{})
		refused(t, err, base.CodeJobNotFound)
		scan := store.Scan{Kind: 12, Prefix: view.JobID.String()} // the kind of what jobs remember
		same(t, "and nothing of it is left", len(must(w.store.Read(w.ctx(), store.Want{Scans: []store.Scan{scan}}))(t).Scanned[0]), 0)
	})
}

func TestU57_a_rate_holds_also_after_a_restart(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.submitMany(25, core.Submission{})
		job := must(w.e.Bulk(w.ctx(), operator, engine.BulkRequest{Action: "hold", Filter: kindFilter("k"), RatePerSecond: 10}))(t)
		same(t, "shown", job.RatePerSecond, 10)
		doneAre := func(n int) {
			t.Helper()
			eventually(t, "progress", func() bool { return must(w.e.BulkStatus(w.ctx(), operator, job.JobID))(t).Done >= n })
			same(t, "no more than the rate allows", must(w.e.BulkStatus(w.ctx(), operator, job.JobID))(t).Done, n)
		}
		doneAre(10)
		w.turn(900)
		w.restart()
		w.hold(w.submit(core.Submission{Kind: "other"}))
		doneAre(10)
		w.turn(200)
		doneAre(20)
		w.turn(10_000) // time that passed unused is not saved up, but what a dead process had taken shows up again
		view := w.ended(job.JobID)
		same(t, "job", [3]any{view.State, view.Done, view.Total}, [3]any{"done", 25, 25})
		_, err := w.e.Bulk(w.ctx(), operator, engine.BulkRequest{Action: "hold", All: true, RatePerSecond: -1})
		same(t, "field", refused(t, err, base.CodeInvalidArgument).Field, "rate_per_second")
	})
}

func TestU58_a_call_waits_for_the_end_of_a_job(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.submitMany(20, core.Submission{})
		job := must(w.e.Bulk(w.ctx(), operator, engine.BulkRequest{Action: "hold", All: true, RatePerSecond: 10}))(t).JobID
		now := must(w.e.WaitBulk(w.ctx(), operator, job, 0))(t)
		same(t, "present state", now.State, "running")
		ended := make(chan engine.BulkView, 1)
		failed := make(chan error, 1)
		go func() {
			view, err := w.e.WaitBulk(w.ctx(), operator, job, time.Minute)
			ended <- view
			failed <- err
		}()
		eventually(t, "the first half", func() bool { return must(w.e.BulkStatus(w.ctx(), operator, job))(t).Done == 10 })
		w.turn(1000)
		same(t, "ended", (<-ended).State, "done")
		ok(t, <-failed)
		same(t, "one that has ended is there at once", must(w.e.WaitBulk(w.ctx(), operator, job, time.Minute))(t).State, "done")
	})
}

func TestU58_jobs_are_listed_newest_first_in_pages(t *testing.T) {
	t.Parallel()
	var minted atomic.Int64 // no two jobs are made in the same millisecond
	mint := func() base.UUID { return base.MintUUID(base.TimeOf(start)+base.Time(minted.Add(1)), [10]byte{}) }
	onStoresWith(t, engine.Config{Mint: mint}, func(t *testing.T, w *world) {
		w.submit(core.Submission{})
		var jobs []base.UUID
		for range 5 {
			jobs = append([]base.UUID{w.bulk(engine.BulkRequest{Action: "hold", All: true}).JobID}, jobs...)
		}
		var listed []base.UUID
		for cursor := ""; ; {
			page, next, err := w.e.BulkJobsPage(w.ctx(), operator, cursor, ptr(2))
			ok(t, err)
			for _, job := range page {
				listed = append(listed, job.JobID)
			}
			if cursor = next; cursor == "" {
				break
			}
		}
		same(t, "jobs", listed, jobs)
		_, _, err := w.e.BulkJobsPage(w.ctx(), operator, "nonsense", nil)
		refused(t, err, base.CodeInvalidCursor)
	})
}
