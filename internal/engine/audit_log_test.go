package engine_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

// told is the audit log that a caller sees, in order of the chains, the oldest row of each first.
func (w *world) told(c engine.Caller, f core.AuditFilter) []core.AuditRow {
	w.t.Helper()
	var all []core.AuditRow
	for cursor := ""; ; {
		rows, next, err := w.e.AuditPage(w.ctx(), c, engine.AuditRequest{Filter: f, Cursor: cursor, Limit: ptr(3)})
		ok(w.t, err)
		all = append(all, rows...)
		if cursor = next; cursor == "" {
			return all
		}
	}
}

// actions are the actions of rows, with what they were done to.
func actions(rows []core.AuditRow) []string {
	all := []string{}
	for _, row := range rows {
		all = append(all, row.Namespace+" "+row.Action+" "+row.Entity)
	}
	return all
}

// verified fails the test unless the chain has so many rows and all of them fit.
func (w *world) verified(namespace string, rows int64) {
	w.t.Helper()
	check := must(w.e.VerifyAudit(w.ctx(), admin, namespace))(w.t)
	same(w.t, "chain of "+namespace, []any{check.Rows, check.Broken, check.Problem}, []any{rows, int64(0), ""})
}

func TestU131_every_act_of_an_operator_is_told_once_with_what_it_changed(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		id := w.submit(core.Submission{Namespace: "a"})
		op := func(key string) engine.Operator { return engine.Operator{Reason: "because", RequestKey: key} }
		c := engine.Caller{Principal: "op", Actor: "operator", RequestID: "r-1", Address: "192.0.2.1"}
		must(w.e.SetPriority(w.ctx(), c, id, 7, op("1")))(t)
		must(w.e.SetPriority(w.ctx(), c, id, 7, op("1")))(t) // a repeat
		must(w.e.Hold(w.ctx(), c, id, op("2")))(t)
		must(w.e.ReleaseHold(w.ctx(), c, id, op("3")))(t)
		must(w.e.SetTags(w.ctx(), c, id, map[string]*string{"x": ptr("1")}, op("4")))(t)
		must(w.e.OperatorClaim(w.ctx(), c, id, engine.TargetedRequest{Reason: "mine"}))(t)
		must(w.e.Revoke(w.ctx(), c, id, engine.RevokeRequest{}, op("5")))(t)
		must(w.e.Cancel(w.ctx(), c, id, nil, "operator", op("6")))(t)
		must(w.e.Cancel(w.ctx(), c, id, nil, "operator", op("7")))(t) // changes nothing
		must(w.e.Replay(w.ctx(), c, id, engine.ReplayRequest{}, op("8")))(t)
		must(w.e.Cancel(w.ctx(), c, id, nil, "operator", op("9")))(t)
		must(w.e.Retain(w.ctx(), c, id, 0, op("10")))(t)
		refused(t, w.e.Delete(w.ctx(), c, id, op("11")), base.CodeRetained) // refused by the rules: no change, no row
		must(w.e.Unretain(w.ctx(), c, id, op("12")))(t)
		ok(t, w.e.Delete(w.ctx(), c, id, op("13")))

		rows := w.told(admin, core.AuditFilter{Namespace: "a"})
		var names []string
		for _, row := range rows {
			names = append(names, row.Action)
		}
		same(t, "newest first", strings.Join(names, " "),
			"delete end_retain retain cancel replay cancel revoke operator_claim set_tags release_hold hold set_priority")
		first := rows[len(rows)-1]
		same(t, "first", []any{first.Principal, first.Entity, first.EntityID, first.Reason, first.RequestID, first.Address, first.Outcome, string(first.Before), string(first.After)},
			[]any{"op", "execution", id.ID().String(), "because", "r-1", "192.0.2.1", "done", `{"priority":0}`, `{"priority":7}`})
		same(t, "delete leaves nothing", rows[0].After, nil)
		w.verified("a", 12)
	})
}

func TestU131_acts_on_what_is_shared_are_told_in_the_chain_of_all(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		must(w.e.PutLane(w.ctx(), admin, "l", core.LaneSettings{MaxConcurrent: 3}, engine.Operator{}))(t)
		must(w.e.SetLaneState(w.ctx(), admin, "l", core.LanePaused, engine.Operator{Reason: "quiet"}))(t)
		must(w.e.SetLaneState(w.ctx(), admin, "l", core.LanePaused, engine.Operator{}))(t)
		w.register(core.Registration{WorkerID: "w", InstanceID: "w1"})
		ok(t, w.e.Drain(w.ctx(), admin, "", "w1", true))
		ok(t, w.e.Drain(w.ctx(), admin, "", "w1", true))
		ok(t, w.e.MarkDead(w.ctx(), admin, "w1", "burnt", true))
		k := w.key(1, "a", "b")
		own := w.key(2, "a")
		must(w.e.RevokeAPIKey(w.ctx(), admin, k.ID, false, engine.AdminAction{}))(t)
		must(w.e.ChangeAPIKey(w.ctx(), admin, own.ID, keyring.APIKeyPatch{Namespaces: &[]string{"b"}}, false, engine.AdminAction{}))(t)
		must(w.e.PutNamespace(w.ctx(), admin, "a", core.NamespaceSettings{}, engine.AdminAction{}))(t)
		ok(t, w.e.DeleteNamespace(w.ctx(), admin, "a", engine.AdminAction{}))
		job := must(w.e.Bulk(w.ctx(), adminOf("a"), engine.BulkRequest{Action: "cancel", All: true, Reason: "clean"}))(t)
		w.ended(job.JobID)

		same(t, "rows", actions(w.told(admin, core.AuditFilter{})), []string{
			"* change_api_key api_key", "* revoke_api_key api_key", "* create_api_key api_key", "* mark_dead worker", "* drain worker",
			"* pause_lane lane", "* put_lane lane",
			"a bulk bulk", "a delete_namespace namespace", "a put_namespace namespace", "a create_api_key api_key",
		})
		lane := w.told(admin, core.AuditFilter{Action: "pause_lane"})[0]
		same(t, "lane", []any{lane.EntityID, lane.Reason, string(lane.Before), string(lane.After)}, []any{"l", "quiet", `{"state":"active"}`, `{"state":"paused"}`})
		for _, row := range w.told(admin, core.AuditFilter{Entity: "api_key"}) {
			if strings.Contains(string(row.Before)+string(row.After), "hash") {
				t.Errorf("%s tells of digests: %s %s", row.Action, row.Before, row.After)
			}
		}
		w.verified("*", 7)
		w.verified("a", 4)
	})
}

func TestU131_a_bulk_job_is_one_row_and_its_stop_another(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.submitMany(30, core.Submission{})
		job := must(w.e.Bulk(w.ctx(), admin, engine.BulkRequest{Action: "hold", All: true}))(t)
		same(t, "done", w.ended(job.JobID).Done, 30)
		same(t, "rows", actions(w.told(admin, core.AuditFilter{})), []string{"* bulk bulk"})
	})
}

func TestU131_clients_and_workers_write_no_rows_and_make_no_trip_for_them(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		counting := &chainLocks{Store: w.store}
		closeEngine(t, w.e)
		w.e = w.openEngine(counting)
		w.complete(w.started(core.Submission{}))
		id := w.submit(core.Submission{})
		must(w.e.Cancel(w.ctx(), client, id, nil, "", engine.Operator{}))(t)
		w.register(core.Registration{WorkerID: "w", InstanceID: "w2"})
		same(t, "rows", len(w.told(admin, core.AuditFilter{})), 0)
		same(t, "further loads", counting.count(), 0)
		w.hold(w.submit(core.Submission{}))
		same(t, "further loads", counting.count(), 1)
	})
}

func TestU131_a_refusal_of_a_valid_key_is_a_row(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		c := engine.Caller{Principal: "ci", Actor: "client", Namespaces: []string{"a"}, RequestID: "r-3", Address: "192.0.2.3"}
		ok(t, w.e.Refused(w.ctx(), c, engine.Refusal{Action: "put_lane", Entity: "lane", EntityID: "l", Code: base.CodeRoleRequired}))
		ok(t, w.e.Refused(w.ctx(), c, engine.Refusal{Namespace: "b", Action: "submit", Code: base.CodeNamespaceForbidden}))
		rows := w.told(admin, core.AuditFilter{Principal: "ci"})
		same(t, "rows", actions(rows), []string{"a put_lane lane", "b submit "})
		same(t, "first", []any{rows[0].Outcome, rows[0].RequestID, rows[0].Address}, []any{"role_required", "r-3", "192.0.2.3"})
	})
}

func TestU110_an_admin_reads_the_log_of_its_own_namespaces(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		for i := range 5 {
			for _, namespace := range []string{"a", "b"} {
				w.hold(w.submit(core.Submission{Namespace: namespace, Priority: i}))
			}
			w.turn(base.Second)
		}
		w.key(1, "*")
		same(t, "all", len(w.told(admin, core.AuditFilter{})), 11)
		rows := w.told(adminOf("a"), core.AuditFilter{})
		same(t, "of a", len(rows), 5)
		same(t, "between", len(w.told(adminOf("a"), core.AuditFilter{From: rows[3].At, To: rows[1].At})), 2)
		same(t, "of b for a", len(w.told(adminOf("a"), core.AuditFilter{Namespace: "b"})), 0)
		same(t, "of all for a", len(w.told(adminOf("a"), core.AuditFilter{Namespace: "*"})), 0)
		_, err := w.e.VerifyAudit(w.ctx(), adminOf("a"), "b")
		refused(t, err, base.CodeNamespaceNotFound)
		_, _, err = w.e.AuditPage(w.ctx(), admin, engine.AuditRequest{Cursor: "x"})
		refused(t, err, base.CodeInvalidCursor)
		same(t, "by entity", len(w.told(admin, core.AuditFilter{EntityID: rows[0].EntityID, Entity: "execution", Action: "hold"})), 1)
	})
}

// tamper writes into the store behind the engine's back.
func (w *world) tamper(ch store.Changes) {
	w.t.Helper()
	tx, _, err := w.store.Begin(w.ctx(), store.Want{})
	ok(w.t, err)
	ok(w.t, tx.Commit(w.ctx(), &ch))
}

func TestU131_verify_finds_any_changed_or_missing_row(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		for range 6 {
			w.hold(w.submit(core.Submission{Namespace: "a"}))
		}
		w.verified("a", 6)
		ref := func(n int) store.DocRef { return store.DocRef{Kind: 11, Key: fmt.Sprintf("a\x01%016x", n)} }
		loaded := must(w.store.Read(w.ctx(), store.Want{Docs: []store.DocRef{ref(3), ref(6), {Kind: 10, Key: "a"}}}))(t)
		broken := func(at int64, ch, undo store.Changes) {
			t.Helper()
			w.tamper(ch)
			check := must(w.e.VerifyAudit(w.ctx(), admin, "a"))(t)
			if check.Broken != at || check.Problem == "" {
				t.Errorf("found %d %q, want row %d", check.Broken, check.Problem, at)
			}
			w.tamper(undo)
			w.verified("a", 6)
		}
		third, sixth, head := loaded.Docs[ref(3)], loaded.Docs[ref(6)], loaded.Docs[store.DocRef{Kind: 10, Key: "a"}]
		changed := third
		changed.Body = []byte(strings.Replace(string(third.Body), `"principal":"op"`, `"principal":"no"`, 1))
		put := func(docs ...store.Doc) store.Changes { return store.Changes{PutDocs: docs} }
		drop := func(docs ...store.DocRef) store.Changes { return store.Changes{DropDocs: docs} }
		broken(3, put(changed), put(third))
		broken(3, drop(ref(3)), put(third))
		broken(6, drop(ref(6)), put(sixth))
		swapped := sixth
		swapped.DocRef = ref(3)
		broken(3, put(swapped), put(third))
		broken(1, drop(head.DocRef), put(head))
		var earlier core.AuditChain
		ok(t, json.Unmarshal(head.Body, &earlier))
		var row core.AuditRow
		fifth := must(w.store.Read(w.ctx(), store.Want{Docs: []store.DocRef{ref(5)}}))(t).Docs[ref(5)]
		ok(t, json.Unmarshal(fifth.Body, &row))
		earlier.Last, earlier.Hash = 5, row.Hash
		back := head
		back.Body = must(json.Marshal(earlier))(t)
		broken(6, put(back), put(head))
	})
}

func TestU131_retention_drops_the_oldest_rows_and_the_chain_still_verifies(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{AuditRetention: time.Hour}, func(t *testing.T, w *world) {
		for range 3 {
			w.hold(w.submit(core.Submission{Namespace: "a"}))
		}
		w.turn(30 * base.Minute)
		w.hold(w.submit(core.Submission{Namespace: "a"}))
		w.verified("a", 4)
		w.turn(31 * base.Minute)
		eventually(t, "three rows are gone", func() bool { return len(w.told(admin, core.AuditFilter{})) == 1 })
		w.verified("a", 1)
		w.turn(31 * base.Minute)
		eventually(t, "all rows are gone", func() bool { return len(w.told(admin, core.AuditFilter{})) == 0 })
		w.verified("a", 0)
		w.hold(w.submit(core.Submission{Namespace: "a"}))
		w.verified("a", 1)
		same(t, "number", w.told(admin, core.AuditFilter{})[0].Number, int64(5))
		w.turn(2 * base.Hour)
		eventually(t, "the new row is gone too", func() bool { return len(w.told(admin, core.AuditFilter{})) == 0 })
	})
}

func TestS73_chains_grow_without_gaps_or_deadlocks_from_many_processes(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{}, func(t *testing.T, w *world) {
		other := w.another()
		w.lane("l", core.LaneSettings{})
		ids := w.submitMany(20, core.Submission{Lane: "l", Namespace: "a"})
		var all sync.WaitGroup
		for i, id := range ids {
			e := []*engine.Engine{w.e, other}[i%2]
			all.Go(func() {
				if _, err := e.OperatorClaim(w.ctx(), admin, id, engine.TargetedRequest{}); err != nil {
					t.Errorf("claim: %v", err)
				}
			})
			all.Go(func() {
				s := core.LaneSettings{FairnessWeights: map[string]int{"x": i + 1}}
				if _, err := e.PutLane(w.ctx(), admin, "l", s, engine.Operator{}); err != nil {
					t.Errorf("lane: %v", err)
				}
			})
		}
		all.Wait()
		w.verified("a", 20)
		w.verified("*", 20)
	})
}
