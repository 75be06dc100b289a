package engine_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/pgtest"
	"github.com/flowfabric/flowfabric/internal/store/postgres"
)

// lenient are bounds for a store whose clock is years ahead of the host's.
func lenient() engine.Bounds {
	b := engine.DefaultBounds()
	b.Skew = math.MaxInt64
	return b
}

// said is what the doctor says of one thing. A warning comes with what it means and what to do.
func said(t *testing.T, e *engine.Engine, b engine.Bounds, name string) engine.Check {
	t.Helper()
	all := e.Doctor(t.Context(), b)
	i := slices.IndexFunc(all, func(c engine.Check) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("nothing is said of %s: %+v", name, all)
	}
	if c := all[i]; c.Detail == "" || (c.Hint == "") != (c.State == engine.CheckOK) {
		t.Errorf("%+v does not say what it means and what to do", c)
	}
	return all[i]
}

// says wants a state, and words of the detail.
func says(t *testing.T, e *engine.Engine, b engine.Bounds, name string, state engine.CheckState, words string) {
	t.Helper()
	if c := said(t, e, b, name); c.State != state || !strings.Contains(c.Detail, words) {
		t.Errorf("%+v, want %s with %q", c, state, words)
	}
}

// adminKey makes a key that may do everything.
func (w *world) adminKey() keyring.APIKey {
	w.t.Helper()
	may := keyring.APIKeySettings{Name: "root", Roles: []string{"admin"}, Namespaces: []string{"*"}}
	return must(w.e.CreateAPIKey(w.ctx(), admin, secret(1), may, engine.AdminAction{}))(w.t)
}

func TestU165_a_store_in_order_is_told_to_be(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{MasterKey: masterKey(1)}, func(t *testing.T, w *world) {
		w.adminKey()
		w.submit(core.Submission{})
		var names []string
		for _, c := range w.e.Doctor(w.ctx(), lenient()) {
			names = append(names, c.Name)
			if c.State != engine.CheckOK && c.Name != "durability" && c.Name != "disk" { // tests do without the one, the other is the machine's
				t.Errorf("%+v", c)
			}
		}
		want := []string{"store", "version", "durability", "rollbacks", "schema", "clock", "bloat", "disk", "ready_work", "leases", "unreadable", "timers", "search_rows", "bulk_jobs", "api_keys", "signing_key", "master_key", "audit_seals", "retention"}
		if w.url != "" {
			want = slices.Insert(slices.Insert(want, 3, "failover"), 7, "connections", "pooler", "transactions", "autovacuum")
		}
		same(t, "checks", names, want)
	})
}

func TestU165_a_store_that_does_not_answer_fails(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.unaudited = true
		ok(t, w.store.Close())
		says(t, w.e, lenient(), "store", engine.CheckFail, "cannot be looked at")
	})
}

func TestU165_clocks_that_differ_and_commits_that_may_be_lost_are_told(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		says(t, w.e, engine.DefaultBounds(), "clock", engine.CheckWarn, "ahead of the store's")
		says(t, w.e, lenient(), "durability", engine.CheckWarn, "may be lost")
	})
}

func TestU165_ready_work_that_waits_long_is_told_with_its_lane(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		says(t, w.e, lenient(), "ready_work", engine.CheckOK, "no work waits")
		w.submit(core.Submission{Lane: "slow"})
		must(w.e.Count(w.ctx(), client, core.Filter{}))(t) // waits for the search rows
		w.turn(11 * base.Minute)
		says(t, w.e, lenient(), "ready_work", engine.CheckWarn, "for 11m0s, in lane slow with 0 workers")
		must(w.e.SetLaneState(w.ctx(), operator, "slow", core.LanePaused, engine.Operator{}))(t)
		if c := said(t, w.e, lenient(), "ready_work"); !strings.Contains(c.Detail, "the lane is paused") || c.Hint != "flowfabric lanes resume slow" {
			t.Errorf("%+v", c)
		}
	})
}

// unattended replaces the engine by one that turns no timers, once lists have seen everything.
func (w *world) unattended() {
	w.t.Helper()
	must(w.e.Integrity(w.ctx()))(w.t) // which waits for the search rows
	w.cfg.NoTimers, w.cfg.PollInterval = true, time.Hour
	w.restart()
}

func TestU165_leases_and_timers_that_are_not_handled_are_reported(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.started(core.Submission{})
		w.submit(core.Submission{DelayMS: ptr(int64(1000))})
		w.unattended()
		says(t, w.e, lenient(), "leases", engine.CheckOK, "")
		says(t, w.e, lenient(), "timers", engine.CheckOK, "")
		says(t, w.e, lenient(), "bulk_jobs", engine.CheckOK, "no bulk job runs")
		must(w.e.Bulk(w.ctx(), operator, engine.BulkRequest{Action: "cancel", All: true}))(t)
		says(t, w.e, lenient(), "bulk_jobs", engine.CheckOK, "1 bulk jobs run")
		w.turn(61 * base.Minute)
		says(t, w.e, lenient(), "bulk_jobs", engine.CheckWarn, "0 of 2 done")
		says(t, w.e, lenient(), "leases", engine.CheckWarn, "1 of the 2 oldest")
		says(t, w.e, lenient(), "timers", engine.CheckWarn, "timers are overdue, the oldest since 1h1m0s")
	})
}

func TestU165_lists_that_stay_behind_are_told(t *testing.T) {
	t.Parallel()
	unswept(t, func(t *testing.T, w *world) {
		w.submit(core.Submission{})
		says(t, w.e, lenient(), "search_rows", engine.CheckOK, "1 commits behind")
		w.turn(2 * base.Minute)
		says(t, w.e, lenient(), "search_rows", engine.CheckWarn, "1 commits behind, since 2m0s")
	})
}

func TestU165_executions_that_cannot_be_read_fail(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		id := w.submit(core.Submission{})
		must(w.e.Integrity(w.ctx()))(t)
		w.spoil(id)
		says(t, w.e, lenient(), "unreadable", engine.CheckFail, id.UUID.String())
	})
}

func TestU165_keys_that_are_missing_or_end_soon_are_told(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		says(t, w.e, lenient(), "api_keys", engine.CheckWarn, "no admin key: a server starts on this store only if it is told to be open")
		k := w.adminKey()
		says(t, w.e, lenient(), "api_keys", engine.CheckOK, "admin: 1")
		soon := w.now().Add(24 * base.Hour)
		must(w.e.ChangeAPIKey(w.ctx(), operator, k.ID, keyring.APIKeyPatch{ExpiresAt: &soon}, false, engine.AdminAction{}))(t)
		says(t, w.e, lenient(), "api_keys", engine.CheckWarn, k.ID)
		w.turn(25 * base.Hour)
		says(t, w.e, lenient(), "api_keys", engine.CheckWarn, "no admin key")
	})
}

func TestU165_what_is_kept_for_ever_and_a_full_disk_are_told(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{EventRetention: -1, Retention: core.RetentionByStatus{Failed: ptr(int64(-1))}}, func(t *testing.T, w *world) {
		says(t, w.e, lenient(), "retention", engine.CheckWarn, "failed, events are kept for ever")
		full := lenient()
		full.Free = math.MaxInt64
		if w.path != "" {
			says(t, w.e, full, "disk", engine.CheckWarn, "MiB are free in")
		} else {
			says(t, w.e, full, "disk", engine.CheckOK, "not told to clients")
		}
	})
}

// onServer opens an engine on a Postgres that the test has set up itself.
func onServer(t *testing.T, url string, cfg postgres.Config) *engine.Engine {
	t.Helper()
	cfg.UnsafeDurability = true
	s, err := postgres.Open(t.Context(), url, cfg)
	ok(t, err)
	t.Cleanup(func() { ok(t, s.Close()) })
	e, err := engine.Open(t.Context(), s, engine.Config{})
	ok(t, err)
	t.Cleanup(func() { closeEngine(t, e) })
	return e
}

func TestU165_a_server_of_Postgres_that_needs_care_is_told_of(t *testing.T) {
	t.Parallel()
	server, err := pgtest.Start(t.Context(), map[string]string{"max_connections": "14", "autovacuum": "off", "fsync": "off"})
	ok(t, err)
	t.Cleanup(server.Stop)
	e := onServer(t, server.URL(), postgres.Config{PoolSize: 8})
	says(t, e, lenient(), "connections", engine.CheckWarn, "of 14 connections are in use, this process may open 8")
	says(t, e, lenient(), "autovacuum", engine.CheckFail, "autovacuum is off")
	says(t, e, lenient(), "transactions", engine.CheckOK, "")
	says(t, e, lenient(), "bloat", engine.CheckOK, "")

	conn, err := pgx.Connect(t.Context(), server.URL())
	ok(t, err)
	t.Cleanup(func() { ok(t, conn.Close(t.Context())) })
	_, err = conn.Exec(t.Context(), "insert into flowfabric.idem select 1, 'n', i::text, '', gen_random_uuid(), 0, 0 from generate_series(1, 500) i")
	_, deleted := conn.Exec(t.Context(), "delete from flowfabric.idem")
	ok(t, errors.Join(err, deleted))
	few := lenient()
	few.DeadRows = 100
	eventually(t, "dead rows are told of", func() bool { return said(t, e, few, "bloat").State == engine.CheckWarn })

	_, err = conn.Exec(t.Context(), "alter system set autovacuum = on")
	_, left := conn.Exec(t.Context(), "alter table flowfabric.inbox set (autovacuum_enabled = off)")
	_, reloaded := conn.Exec(t.Context(), "select pg_reload_conf()")
	ok(t, errors.Join(err, left, reloaded))
	eventually(t, "a table that is left out is reported", func() bool {
		c := said(t, e, lenient(), "autovacuum")
		return c.State == engine.CheckWarn && strings.Contains(c.Detail, "inbox")
	})

	_, err = conn.Exec(t.Context(), "begin")
	ok(t, err)
	short := lenient()
	short.Transaction = time.Nanosecond
	eventually(t, "an open transaction is reported", func() bool { return said(t, e, short, "transactions").State == engine.CheckWarn })
	tight := lenient()
	tight.PoolShare = 1
	says(t, e, tight, "connections", engine.CheckOK, "")
}

func TestU165_a_pooler_without_a_way_past_it_is_told(t *testing.T) {
	t.Parallel()
	through := cluster.Pooler(t)
	url := cluster.Database(t)
	says(t, onServer(t, through(url), postgres.Config{Pooled: true}), lenient(), "pooler", engine.CheckWarn, "there is no direct address")
	says(t, onServer(t, through(url), postgres.Config{DirectURL: url}), lenient(), "pooler", engine.CheckOK, "past it")
	says(t, onServer(t, url, postgres.Config{}), lenient(), "pooler", engine.CheckOK, "directly")
}
