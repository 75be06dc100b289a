package engine_test

import (
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// joins registers an instance for a caller.
func (w *world) joins(c engine.Caller, instance string) error {
	_, err := w.e.Register(w.ctx(), c, core.Registration{WorkerID: "w", InstanceID: instance, LivenessTTLMS: 60_000})
	return err
}

// claimsAs claims for an instance of a caller.
func (w *world) claimsAs(c engine.Caller, instance string) error {
	r := ask()
	r.InstanceID = instance
	_, err := w.e.Claim(w.ctx(), c, r)
	return err
}

func TestU101_a_namespace_has_as_many_worker_instances_as_it_may_and_those_work_on(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{Clock: turned}, func(t *testing.T, w *world) {
		w.namespace("a", core.NamespaceSettings{MaxWorkers: 2})
		tooMany := func(err error) {
			t.Helper()
			full(t, err, base.CodeNamespaceLimitExceeded, "max_workers", 2, 2)
		}
		hers, his := byKey("k1", "ana", "a"), byKey("k2", "ben", "b")
		ok(t, w.joins(hers, "a-1"))
		ok(t, w.claimsAs(hers, "a-2")) // which registers it (S50)
		tooMany(w.joins(hers, "a-3"))
		tooMany(w.claimsAs(hers, "a-3"))
		_, err := w.e.Worker(w.ctx(), admin, "a-3")
		refused(t, err, base.CodeWorkerNotRegistered)
		for _, known := range []string{"a-1", "a-2"} {
			ok(t, w.joins(hers, known))
			ok(t, w.claimsAs(hers, known))
		}
		ok(t, w.joins(his, "b-1"))
		ok(t, w.joins(byKey("k3", "fleet"), "all-1"))         // is for all namespaces
		ok(t, w.joins(byKey("k4", "cy", "a", "b"), "both-1")) // b has room
		w.turn(1000)
		full(t, w.joins(hers, "a-3"), base.CodeNamespaceLimitExceeded, "max_workers", 2, 3)
		w.namespace("a", core.NamespaceSettings{MaxWorkers: 4})
		ok(t, w.joins(hers, "a-3"))
	})
}

// What is gone must keep no worker out, though its record is shown for a day (S54).
func TestU101_S54_dead_instances_make_room_for_new_ones_and_the_oldest_first(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{Clock: turned}, func(t *testing.T, w *world) {
		w.namespace("a", core.NamespaceSettings{MaxWorkers: 3})
		hers := byKey("k1", "ana", "a")
		for _, instance := range []string{"a-1", "a-2", "a-3"} {
			ok(t, w.joins(hers, instance))
			w.turn(1000)
		}
		ok(t, w.e.SignOff(w.ctx(), hers, "a-2", "it stops"))
		w.turn(1000)
		ok(t, w.e.SignOff(w.ctx(), hers, "a-1", "it stops"))
		ok(t, w.joins(hers, "a-4"))
		var ids []string
		views, _, err := w.e.Workers(w.ctx(), hers, engine.WorkerQuery{State: "all"})
		ok(t, err)
		for _, v := range views {
			ids = append(ids, v.Worker.InstanceID+" "+v.State)
		}
		same(t, "instances", ids, []string{"a-1 dead", "a-3 live", "a-4 live"})
		w.turn(1000)
		ok(t, w.claimsAs(hers, "a-5"))
		w.turn(1000)
		full(t, w.joins(hers, "a-6"), base.CodeNamespaceLimitExceeded, "max_workers", 3, 3)
		ok(t, w.joins(hers, "a-5"))
	})
}

// Processes know nothing of each other but what is stored.
func TestU101_worker_instances_of_other_processes_count(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{Clock: turned}, func(t *testing.T, w *world) {
		w.namespace("a", core.NamespaceSettings{MaxWorkers: 2})
		hers := byKey("k1", "ana", "a")
		ok(t, w.joins(hers, "a-1"))
		ok(t, w.joins(hers, "a-2"))
		closeEngine(t, w.e)
		w.e = w.openEngine(w.store)
		full(t, w.joins(hers, "a-3"), base.CodeNamespaceLimitExceeded, "max_workers", 2, 2)
		ok(t, w.joins(hers, "a-2"))
	})
}

func TestU101_worker_instances_have_a_bound_by_default_once_there_is_another_namespace(t *testing.T) {
	t.Parallel()
	var s core.NamespaceSettings
	same(t, "alone", s.WorkersLimit(false), 0)
	same(t, "beside others", s.WorkersLimit(true), core.DefaultMaxWorkers)
	s.MaxWorkers = 7
	same(t, "as set", []int{s.WorkersLimit(false), s.WorkersLimit(true)}, []int{7, 7})
}
