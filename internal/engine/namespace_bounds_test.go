package engine_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// namespace states the settings of a namespace.
func (w *world) namespace(name string, s core.NamespaceSettings) {
	w.t.Helper()
	must(w.e.PutNamespace(w.ctx(), admin, name, s, engine.AdminAction{}))(w.t)
}

// full fails the test unless the error is of the code and names the setting with its numbers.
func full(t *testing.T, err error, code base.Code, setting string, limit, inUse int) {
	t.Helper()
	refused(t, err, code)
	var refusal *base.Error
	errors.As(err, &refusal)
	same(t, "details", []any{refusal.Details["setting"], refusal.Details["limit"], refusal.Details["in_use"]}, []any{setting, limit, inUse})
}

func TestU101_a_namespace_uses_as_many_lanes_as_it_may_and_goes_on_with_those(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.namespace("a", core.NamespaceSettings{MaxLanes: 2})
		of := func(namespace, lane, kind string) core.Submission {
			return core.Submission{Namespace: namespace, Lane: lane, Kind: kind}
		}
		w.submit(of("a", "l1", "k"))
		w.submit(of("a", "l2", "k"))
		_, err := w.e.Submit(w.ctx(), client, of("a", "l3", "k"))
		full(t, err, base.CodeNamespaceLimitExceeded, "max_lanes", 2, 2)
		_, _, err = w.e.Lanes(w.ctx(), client, "", nil)
		ok(t, err)
		_, err = w.e.GetLane(w.ctx(), client, "l3")
		refused(t, err, base.CodeLaneNotFound)
		w.submit(of("a", "l2", "other"))
		w.submit(of("b", "l3", "k"))
		_, err = w.e.Submit(w.ctx(), client, of("a", "l3", "k"))
		full(t, err, base.CodeNamespaceLimitExceeded, "max_lanes", 2, 2)

		w.namespace("a", core.NamespaceSettings{MaxLanes: 3})
		items := must(w.e.SubmitMany(w.ctx(), client, []core.Submission{of("a", "l4", "k"), of("a", "l5", "k"), of("a", "l4", "m")}, false))(t)
		ok(t, items[0].Err)
		full(t, items[1].Err, base.CodeNamespaceLimitExceeded, "max_lanes", 3, 3)
		ok(t, items[2].Err)
		_, err = w.e.SubmitMany(w.ctx(), client, []core.Submission{of("a", "l1", "k"), of("a", "l6", "k")}, true)
		full(t, err, base.CodeNamespaceLimitExceeded, "max_lanes", 3, 3)
	})
}

// The bound is one of what is there: lanes of which no execution is kept count no more, once their classes are forgotten.
func TestU101_a_lane_whose_executions_are_gone_counts_no_more(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{Clock: turned}, func(t *testing.T, w *world) {
		w.namespace("a", core.NamespaceSettings{MaxLanes: 1})
		first := w.submit(core.Submission{Namespace: "a", Lane: "l1", Kind: "k"})
		second := core.Submission{Namespace: "a", Lane: "l2", Kind: "k"}
		_, err := w.e.Submit(w.ctx(), client, second)
		full(t, err, base.CodeNamespaceLimitExceeded, "max_lanes", 1, 1)
		must(w.e.Cancel(w.ctx(), operator, first, nil, "operator", engine.Operator{}))(t)
		_, err = w.e.Submit(w.ctx(), client, second)
		full(t, err, base.CodeNamespaceLimitExceeded, "max_lanes", 1, 1)
		ok(t, w.e.Delete(w.ctx(), operator, first, engine.Operator{}))
		w.pass(aMinute)
		eventually(t, "its class is forgotten", func() bool { _, retired := w.classes(); return len(retired) == 1 })
		eventually(t, "another lane may be used", func() bool { _, err := w.e.Submit(w.ctx(), client, second); return err == nil })
		_, err = w.e.Submit(w.ctx(), client, core.Submission{Namespace: "a", Lane: "l1", Kind: "k"})
		full(t, err, base.CodeNamespaceLimitExceeded, "max_lanes", 1, 1)
	})
}

func TestU101_a_namespace_has_as_many_classes_as_it_may_and_goes_on_with_those(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.namespace("a", core.NamespaceSettings{MaxClasses: 3})
		all := make([]core.Submission, 5)
		for i := range all {
			all[i] = fairKey(fmt.Sprint("k", i))
			all[i].Namespace, all[i].Kind, all[i].IdempotencyKey = "a", "k", fmt.Sprint(i)
		}
		for range 2 { // repeats are duplicates, and refused as before
			for i, item := range must(w.e.SubmitMany(w.ctx(), client, all, false))(t) {
				if i < 3 {
					ok(t, item.Err)
					continue
				}
				full(t, item.Err, base.CodeNamespaceLimitExceeded, "max_classes", 3, 3)
			}
		}
		_, err := w.e.SubmitFlow(w.ctx(), client, core.FlowSubmission{Namespace: "a", Kind: "f", Nodes: []core.FlowNode{{Name: "n", Kind: "new"}}})
		full(t, err, base.CodeNamespaceLimitExceeded, "max_classes", 3, 3)
	})
}

func TestU101_a_namespace_that_sets_no_bounds_has_those_of_the_default_once_there_is_another(t *testing.T) {
	t.Parallel()
	s := core.NamespaceSettings{}
	use := core.NamespaceUse{Lanes: core.DefaultMaxLanes, Classes: core.DefaultMaxClasses}
	ok(t, s.CheckNew(use, true))
	use.Others = true
	full(t, s.CheckNew(use, true), base.CodeNamespaceLimitExceeded, "max_lanes", core.DefaultMaxLanes, core.DefaultMaxLanes)
	full(t, s.CheckNew(use, false), base.CodeNamespaceLimitExceeded, "max_classes", core.DefaultMaxClasses, core.DefaultMaxClasses)
	s = core.NamespaceSettings{MaxLanes: 2 * core.DefaultMaxLanes, MaxClasses: 2 * core.DefaultMaxClasses}
	ok(t, s.CheckNew(use, true))
}

func TestU101_no_more_executions_of_a_namespace_wait_for_workers_than_may(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{Clock: turned}, func(t *testing.T, w *world) {
		w.namespace("a", core.NamespaceSettings{MaxReady: 3})
		of := func(key string) core.Submission {
			return core.Submission{Namespace: "a", Kind: "k", IdempotencyKey: key}
		}
		for i := range 3 {
			w.submit(of(fmt.Sprint(i)))
		}
		_, err := w.e.Submit(w.ctx(), client, of("3"))
		full(t, err, base.CodeRateLimited, "max_ready", 3, 3)
		same(t, "a repeat is a duplicate", must(w.e.Submit(w.ctx(), client, of("0")))(t).Outcome, "duplicate")
		w.submit(core.Submission{Namespace: "b"})
		r := ask()
		r.Max = 10
		same(t, "all run", len(w.take(r)), 4)
		w.projected(w.now())
		w.turn(11_000) // what is known is too old
		for i, item := range must(w.e.SubmitMany(w.ctx(), client, []core.Submission{of("4"), of("5"), of("6"), of("7")}, false))(t) {
			if i < 3 {
				ok(t, item.Err)
				continue
			}
			full(t, item.Err, base.CodeRateLimited, "max_ready", 3, 3)
		}
	})
}

func TestL6_U101_a_priority_above_that_of_the_namespace_is_clamped(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.namespace("a", core.NamespaceSettings{MaxPriority: 10})
		same(t, "clamped", must(w.e.Submit(w.ctx(), client, core.Submission{Namespace: "a", Kind: "k", Priority: 1000}))(t).Priority, 10)
		same(t, "below", must(w.e.Submit(w.ctx(), client, core.Submission{Namespace: "a", Kind: "k", Priority: 9}))(t).Priority, 9)
		same(t, "another namespace", must(w.e.Submit(w.ctx(), client, core.Submission{Namespace: "b", Kind: "k", Priority: 1000}))(t).Priority, 1000)
	})
}
