package engine_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

// suspendedIDs are the executions of a list of suspended ones, in its order.
func (w *world) suspendedIDs(c engine.Caller, q engine.SuspendedQuery) []base.UUID {
	w.t.Helper()
	found := []base.UUID{}
	for _, item := range must(w.e.Suspended(w.ctx(), c, q))(w.t).Items {
		found = append(found, item.ExecutionID.UUID)
	}
	return found
}

func TestW84_suspended_executions_are_listed_oldest_first_by_every_filter(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		flow := base.IDOf(base.UUID{0: 7, 6: 0x70, 8: 0x80, 15: 7})
		approval := func(c *core.SuspendCommand) { c.ReasonCode = "waiting_for_approval" }
		var all []base.UUID
		at := map[string]engine.SuspendAnswer{}
		for _, c := range []struct {
			name string
			s    core.Submission
			edit func(*core.SuspendCommand)
		}{
			{"plain", core.Submission{}, func(*core.SuspendCommand) {}},
			{"lane", core.Submission{Lane: "l2"}, approval},
			{"flow", core.Submission{FlowID: flow}, func(*core.SuspendCommand) {}},
			{"tag", core.Submission{Tags: base.Tags{"tenant": "7"}}, approval},
			{"namespace", core.Submission{Namespace: "n2"}, func(*core.SuspendCommand) {}},
			{"link", core.Submission{}, approval},
		} {
			task := w.started(c.s)
			at[c.name] = w.suspend(task, atA, c.edit)
			all = append(all, given(task).UUID)
			w.turn(10)
		}
		w.link(at["link"].Waitpoints[0].ID, "ann@example.com")

		for name, c := range map[string]struct {
			q    engine.SuspendedQuery
			want []base.UUID
		}{
			"all":             {engine.SuspendedQuery{}, all},
			"a lane":          {engine.SuspendedQuery{Lane: "l2"}, all[1:2]},
			"a reason":        {engine.SuspendedQuery{ReasonCodes: []string{"waiting_for_approval", "paused_by_budget"}}, []base.UUID{all[1], all[3], all[5]}},
			"a flow":          {engine.SuspendedQuery{FlowID: ptr(flow.Given())}, all[2:3]},
			"a tag":           {engine.SuspendedQuery{Tags: map[string]string{"tenant": "7"}}, all[3:4]},
			"another value":   {engine.SuspendedQuery{Tags: map[string]string{"tenant": "8"}}, nil},
			"a namespace":     {engine.SuspendedQuery{Namespace: "n2"}, all[4:5]},
			"none of it":      {engine.SuspendedQuery{Namespace: "n3"}, nil},
			"a person":        {engine.SuspendedQuery{Approver: "ann@example.com"}, all[5:]},
			"another person":  {engine.SuspendedQuery{Approver: "bob@example.com"}, nil},
			"a lane and more": {engine.SuspendedQuery{Lane: "l2", Tags: map[string]string{"tenant": "7"}}, nil},
		} {
			same(t, name, w.suspendedIDs(client, c.q), append([]base.UUID{}, c.want...))
		}
		of := engine.Caller{Principal: "me", Actor: "client", Namespaces: []string{"n2", "n3"}}
		same(t, "those of the caller", w.suspendedIDs(of, engine.SuspendedQuery{}), all[4:5])
		same(t, "not of another", w.suspendedIDs(of, engine.SuspendedQuery{Namespace: "default"}), []base.UUID{})
		_, err := w.e.Suspended(w.ctx(), client, engine.SuspendedQuery{Tags: map[string]string{"no key": "x"}})
		refused(t, err, base.CodeInvalidFilter)
		_, err = w.e.Suspended(w.ctx(), client, engine.SuspendedQuery{ReasonCodes: []string{"waiting_for_godot"}})
		refused(t, err, base.CodeInvalidArgument)
	})
}

func TestU85_an_entry_of_the_inbox_tells_all_that_somebody_who_decides_must_know(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		id, at := w.asleep(twoApprovers, timingOut(base.Hour, core.BehaviorFail))
		suspended := w.now()
		w.turn(100)
		w.signalled(at, "approved") // of an unknown person
		must(w.approve("op1", id, core.ApproveCommand{Name: "approved", Comment: "fine"}))(t)
		w.link(at.Waitpoints[0].ID, "ann@example.com")
		item := must(w.e.Suspended(w.ctx(), client, engine.SuspendedQuery{}))(t).Items[0]
		same(t, "entry", [5]any{item.ExecutionID.UUID, item.SuspensionID, item.SuspendedAt, item.TimeoutAt, item.ReasonCode},
			[5]any{id.UUID, at.SuspensionID, suspended, suspended.Add(base.Hour), "waiting_for_signal"})
		same(t, "waitpoints", [4]any{len(item.Waitpoints), item.Waitpoints[0].RequiredNames[0], item.Waitpoints[0].SignalCount, item.Waitpoints[0].State}, [4]any{1, "approved", 2, "active"})
		same(t, "progress", [3]int{len(item.Progress), item.Progress[0].Progress, item.Progress[0].Needed}, [3]int{1, 1, 2})
		same(t, "needed", item.Needed, 2)
		same(t, "links", [3]any{len(item.Links), item.Links[0].Approver, item.Links[0].State}, [3]any{1, "ann@example.com", "open"})
		same(t, "decisions", [4]any{len(item.Decisions), item.Decisions[0].SourceIdentity, item.Decisions[0].Name, string(item.Decisions[0].Payload.Data)},
			[4]any{1, "op1", "approved", `{"comment":"fine"}`})
		same(t, "the execution", [2]any{item.View.Execution.Class.Kind, item.View.Execution.Status}, [2]any{"k", core.Suspended})
	})
}

func TestW75_an_escalation_that_is_due_is_listed_as_one(t *testing.T) {
	t.Parallel()
	unsweptWithKey(t, func(t *testing.T, w *world) {
		id, _ := w.asleep(atA, timingOut(1000, core.BehaviorEscalate))
		other, _ := w.asleep(atA, timingOut(1000, core.BehaviorFail))
		review := engine.SuspendedQuery{ReasonCodes: []string{"waiting_for_operator_review"}}
		signal := engine.SuspendedQuery{ReasonCodes: []string{"waiting_for_signal"}}
		same(t, "before", [2]int{len(w.suspendedIDs(client, review)), len(w.suspendedIDs(client, signal))}, [2]int{0, 2})
		w.turn(1000)
		same(t, "escalated", w.suspendedIDs(client, review), []base.UUID{id.UUID})
		same(t, "nothing waits for a signal", w.suspendedIDs(client, signal), []base.UUID{})
		_, _, err := w.resume(other, core.ResumeCommand{})
		refused(t, err, base.CodeExecutionNotActive)
	})
}

func TestW84_a_page_of_many_costs_a_few_looks(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		for range 12 {
			id, _ := w.asleep(twoApprovers)
			must(w.approve("op1", id, core.ApproveCommand{Name: "approved", Comment: "fine"}))(t)
		}
		closeEngine(t, w.e)
		looks := &counted{Store: w.store, callers: true}
		w.e = w.openEngine(looks)
		asked := func(call func() int) (items int, queries int64) {
			before := looks.queries.Load()
			items = call()
			return items, looks.queries.Load() - before
		}
		list := func(limit int) func() int {
			return func() int {
				return len(must(w.e.Suspended(theCaller(w.ctx()), client, engine.SuspendedQuery{Limit: &limit}))(t).Items)
			}
		}
		one, few := asked(list(1))
		all, many := asked(list(100))
		same(t, "shown", [2]int{one, all}, [2]int{1, 12})
		if few == 0 || many > few || many > 4 {
			t.Errorf("a page of one asks %d times, a page of twelve %d times", few, many)
		}
	})
}

// churn walks through a list by pages of three while things come and go, and wants that what stayed is shown once and nothing twice.
// Before each further page the thing shown last goes, so that the cursor names nothing any more.
func churn(t *testing.T, stay map[string]bool, page func(cursor string) (shown []string, next string), between func(last string)) {
	t.Helper()
	seen := map[string]int{}
	for cursor, pages := "", 0; ; pages++ {
		shown, next := page(cursor)
		for _, one := range shown {
			seen[one]++
		}
		if cursor = next; cursor == "" {
			if pages < 3 {
				t.Fatalf("%d pages are no walk", pages)
			}
			break
		}
		between(shown[len(shown)-1])
	}
	for one, times := range seen {
		if times != 1 {
			t.Errorf("%s was shown %d times", one, times)
		}
	}
	for one := range stay {
		if seen[one] == 0 {
			t.Errorf("%s was there all the time and not shown", one)
		}
	}
}

func TestW8_what_is_suspended_all_the_time_is_listed_once_while_others_come_and_go(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		at, by := map[string]engine.SuspendAnswer{}, map[string]base.GivenID{}
		stay := map[string]bool{}
		rest := func(namespace string) string {
			id, answer := w.resting(core.Submission{Namespace: namespace}, waitsAt("a"))
			name := id.UUID.String()
			at[name], by[name], stay[name] = answer, id, true
			return name
		}
		for i := range 15 {
			rest([]string{"default", "n2"}[i%2])
			if i%3 == 0 {
				w.turn(1)
			}
		}
		churn(t, stay, func(cursor string) (shown []string, next string) {
			p := must(w.e.Suspended(w.ctx(), client, engine.SuspendedQuery{Cursor: cursor, Limit: ptr(3)}))(t)
			for i := range p.Items {
				shown = append(shown, p.Items[i].ExecutionID.UUID.String())
			}
			return shown, p.Next
		}, func(last string) {
			w.reach(at[last], 0, "go", nil) // the cursor's row is gone
			delete(stay, last)
			w.take(ask())
			rest("default")
			w.turn(1)
		})
	})
}

func TestW8_open_waitpoints_are_listed_once_while_others_come_and_go(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		id := given(task)
		stay, issued := map[string]bool{}, map[string]engine.Issued{}
		add := func() {
			wp := w.pending(task, "k")
			stay[wp.ID.String()], issued[wp.ID.String()] = true, wp
		}
		for range 12 {
			add()
		}
		for name, q := range map[string]engine.WaitpointQuery{"of one": {Execution: &id}, "of all": {}, "with closed ones": {State: "all"}} {
			q.Limit = ptr(3)
			t.Log(name)
			churn(t, stay, func(cursor string) (shown []string, next string) {
				q.Cursor = cursor
				p := must(w.e.Waitpoints(w.ctx(), client, q))(t)
				for i := range p.Items {
					shown = append(shown, p.Items[i].ID.String())
				}
				same(t, "in order of the ids", slices.IsSorted(shown), true)
				return shown, p.Next
			}, func(last string) {
				must(w.e.CloseWaitpoint(w.ctx(), operator, issued[last].ID, nil, engine.Operator{}))(t)
				delete(stay, last)
				add()
			})
		}
	})
}

func TestW8_signals_and_suspensions_are_listed_once_while_more_arrive(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		id := given(task)
		pass := func() { // one suspension, one signal
			w.reach(w.rests(task, waitsAt("a")), 0, "go", everyByteOf(5))
			task = w.claim()
		}
		stay := map[string]bool{}
		for i := range 10 {
			pass()
			stay[fmt.Sprint(i+1)] = true
		}
		churn(t, stay, func(cursor string) (shown []string, next string) {
			p := must(w.e.Signals(w.ctx(), client, id, engine.SignalQuery{Cursor: cursor, Limit: ptr(3)}))(t)
			for _, s := range p.Items {
				shown = append(shown, fmt.Sprint(s.Ordinal))
			}
			return shown, p.Next
		}, func(string) { pass() })
		churn(t, stay, func(cursor string) (shown []string, next string) {
			p := must(w.e.Suspensions(w.ctx(), client, id, cursor, ptr(3)))(t)
			for _, s := range p.Items {
				shown = append(shown, fmt.Sprint(s.Seq))
			}
			return shown, p.Next
		}, func(string) { pass() })
	})
}

func TestW84_work_that_was_suspended_anew_between_the_looks_is_shown_in_its_new_place(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		between := w.interpose()
		id, at := w.resting(core.Submission{}, waitsAt("a"))
		marks := func(want store.Want) bool { return len(want.Scans) == 1 && want.Scans[0].Kind == 20 }
		between.afterRead.set(marks, func() {
			w.turn(5)
			w.reach(at, 0, "go", nil)
			at = w.rests(w.claim(), waitsAt("a"))
		})
		same(t, "under its old mark", w.suspendedIDs(client, engine.SuspendedQuery{}), []base.UUID{})
		item := must(w.e.Suspended(w.ctx(), client, engine.SuspendedQuery{}))(t).Items[0]
		same(t, "under its new one", [2]any{item.ExecutionID.UUID, item.SuspensionID}, [2]any{id.UUID, at.SuspensionID})
	})
}
