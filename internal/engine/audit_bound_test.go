package engine_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// bounded is an operator by a key of some namespaces, as a server says.
func bounded(c engine.Caller) engine.Caller {
	c.Bounded, c.Actor = true, "operator"
	return c
}

// onTurned runs a test on both stores, with the host's clock at a full minute.
func onTurned(t *testing.T, f func(t *testing.T, w *world, host *clock.Manual)) {
	t.Helper()
	for _, run := range []func(*testing.T, engine.Config, func(*testing.T, *world)){onAlone, onShared} {
		host := clock.NewManual(start)
		run(t, engine.Config{Clock: host}, func(t *testing.T, w *world) { f(t, w, host) })
	}
}

func TestU101_a_namespace_writes_as_many_audit_rows_a_minute_as_it_may_and_operators_of_all_act_on(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{Clock: turned}, func(t *testing.T, w *world) {
		w.namespace("a", core.NamespaceSettings{MaxAuditRowsPerMinute: 3})
		id := w.submit(core.Submission{Namespace: "a"})
		other := w.submit(core.Submission{Namespace: "b"})
		hers, his := bounded(byKey("k1", "ana", "a")), bounded(byKey("k2", "ben", "a"))
		set := func(c engine.Caller, id base.GivenID, priority int, key string) error {
			_, err := w.e.SetPriority(w.ctx(), c, id, priority, engine.Operator{RequestKey: key})
			return err
		}
		ok(t, set(hers, id, 1, "1"))
		ok(t, set(hers, id, 1, "2")) // changes nothing: no row
		ok(t, set(his, id, 2, "3"))
		ok(t, set(hers, id, 3, "4"))
		full(t, set(hers, id, 4, "5"), base.CodeRateLimited, "max_audit_rows_per_minute", 3, 3)
		full(t, set(his, id, 4, "6"), base.CodeRateLimited, "max_audit_rows_per_minute", 3, 3)
		same(t, "the refused changed nothing", w.get(id).Priority, 3)
		ok(t, set(bounded(byKey("k3", "cy", "b")), other, 4, "7"))
		ok(t, set(operator, id, 5, "8"))                                         // of all namespaces
		same(t, "rows", len(w.told(admin, core.AuditFilter{Namespace: "a"})), 5) // and that of the settings
		w.turn(60_000)
		for n := range 3 {
			ok(t, set(hers, id, 10+n, fmt.Sprint("later", n)))
		}
		full(t, set(hers, id, 20, "20"), base.CodeRateLimited, "max_audit_rows_per_minute", 3, 3)
		w.verified("a", 8)
	})
}

// The default holds once another namespace has work.
func TestU101_audit_rows_have_a_bound_by_default_once_there_is_another_namespace(t *testing.T) {
	t.Parallel()
	s, now := core.NamespaceSettings{}, base.Time(3*base.Minute+20*base.Second)
	ok(t, s.CheckAudit(now, core.DefaultMaxAuditRows, false))
	ok(t, s.CheckAudit(now, core.DefaultMaxAuditRows-1, true))
	err := s.CheckAudit(now, core.DefaultMaxAuditRows, true)
	full(t, err, base.CodeRateLimited, "max_audit_rows_per_minute", core.DefaultMaxAuditRows, core.DefaultMaxAuditRows)
	var refusal *base.Error
	errors.As(err, &refusal)
	same(t, "until the minute is over", refusal.RetryAfterMS, 40*base.Second)
	s.MaxAuditRowsPerMinute = 2 * core.DefaultMaxAuditRows
	ok(t, s.CheckAudit(now, core.DefaultMaxAuditRows, true))
}

// A tenant may make as many keys as it likes: refusals of all of them are counted as one when its rows are used up, and none is lost.
func TestU101_U131_refusals_beyond_the_rows_of_a_namespace_become_one_row(t *testing.T) {
	t.Parallel()
	onTurned(t, func(t *testing.T, w *world, host *clock.Manual) {
		w.namespace("a", core.NamespaceSettings{MaxAuditRowsPerMinute: 5})
		for n := range 100 {
			c := bounded(byKey(fmt.Sprint("k", n), fmt.Sprint("ci", n), "a"))
			for range 2 {
				ok(t, w.e.Refused(w.ctx(), c, engine.Refusal{Action: "hold", Entity: "execution", EntityID: "x", Code: base.CodeRoleRequired}))
			}
		}
		same(t, "rows at once", len(w.told(admin, core.AuditFilter{Namespace: "a", Action: "hold"})), 2)
		host.TurnTo(host.Now().Add(time.Minute))
		counted := func() (n, rows int) {
			for _, row := range w.told(admin, core.AuditFilter{Namespace: "a", Action: "hold"}) {
				var after struct{ Refusals int }
				if row.After != nil {
					ok(t, json.Unmarshal(row.After, &after))
				}
				n, rows = n+max(1, after.Refusals), rows+1
			}
			return n, rows
		}
		eventually(t, "the counts are told", func() bool {
			host.TurnTo(host.Now().Add(time.Minute))
			n, _ := counted()
			return n == 200
		})
		if _, rows := counted(); rows != 4 { // two by keys, and for each of two minutes one
			t.Errorf("%d rows", rows)
		}
	})
}

// Whoever is refused again and again, by as many names as it likes, leaves half of the rows to those who act.
func TestU101_U131_refusals_leave_half_of_the_rows_of_a_namespace_to_what_is_done(t *testing.T) {
	t.Parallel()
	onTurned(t, func(t *testing.T, w *world, host *clock.Manual) {
		w.namespace("a", core.NamespaceSettings{MaxAuditRowsPerMinute: 6})
		id := w.submit(core.Submission{Namespace: "a"})
		ana := bounded(byKey("k1", "ana", "a"))
		refuse := func(minute int) {
			for n := range 20 {
				c := bounded(byKey("k2", "eve", "a"))
				ok(t, w.e.Refused(w.ctx(), c, engine.Refusal{Action: fmt.Sprint("act", minute, n), Entity: "execution", EntityID: "x", Code: base.CodeRoleRequired}))
			}
		}
		act := func(n int) error {
			_, err := w.e.SetPriority(w.ctx(), ana, id, n, engine.Operator{RequestKey: fmt.Sprint(n)})
			return err
		}
		refuse(0)
		same(t, "rows of refusals", len(w.told(admin, core.AuditFilter{Namespace: "a", Principal: "eve"})), 3)
		for n := range 3 {
			ok(t, act(1+n))
		}
		full(t, act(4), base.CodeRateLimited, "max_audit_rows_per_minute", 6, 6)
		w.turn(60_000)
		for n := range 4 {
			ok(t, act(5+n))
		}
		refuse(1) // what is done may use all rows
		same(t, "rows of refusals later", len(w.told(admin, core.AuditFilter{Namespace: "a", Principal: "eve"})), 5)
		full(t, act(9), base.CodeRateLimited, "max_audit_rows_per_minute", 6, 6)
	})
}

// An operator who says that a worker of another key has stopped is told as an operator, not as that worker.
func TestU131_a_worker_is_signed_off_by_its_own_key_and_declared_dead_by_others(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		hers, his := bounded(byKey("k1", "ana", "a")), bounded(byKey("k2", "ben", "a"))
		for instance, by := range map[string]engine.Caller{"own": hers, "other": his} {
			ok(t, w.joins(byKey("k1", "ana", "a"), instance))
			ok(t, w.e.SignOff(w.ctx(), by, instance, "it stops"))
		}
		for instance, want := range map[string][2]string{"own": {"sign_off", "ana"}, "other": {"mark_dead", "ben"}} {
			rows := w.told(admin, core.AuditFilter{Namespace: "a", EntityID: instance})
			if len(rows) != 1 || [2]string{rows[0].Action, rows[0].Principal} != want {
				t.Errorf("%s: %+v", instance, rows)
			}
		}
	})
}
