package rules

import (
	"sync"
	"testing"
)

// waits waits for children and checks the answer.
func (w *world) waits(t testing.TB, k task, more string, want fields) reply {
	t.Helper()
	return w.under(t, k, "wait-children", more).wants(t, 200).shows(t, want)
}

var (
	ready     = fields{"outcome": "ready", "state": "satisfied"}
	undecided = fields{"outcome": "waiting", "state": nil, "children": nil}
)

func TestF40_F42_what_is_decided_already_is_answered_at_once_and_the_lease_is_kept(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		k := w.parent(t, "")
		w.waits(t, k, "", ready).count(t, "children", 0) // none
		ids := w.spawn(t, k, "good", "bad", "open")
		w.does(t, "good")
		w.breaks(t, "bad")
		open := w.take(t, "open")
		for _, c := range []struct {
			wait, state string
			children    []string
		}{
			{`"policy":"any_of"`, "satisfied", []string{"bad", "good", "open"}},
			{`"policy":"quorum","k":2`, "satisfied", []string{"bad", "good", "open"}},
			{`"policy":"quorum","k":4`, "impossible", []string{"bad", "good", "open"}},
			{`"policy":"quorum","k":3,"kind":"success_only"`, "impossible", []string{"bad", "good", "open"}},
			{`"kind":"success_only"`, "impossible", []string{"bad", "good", "open"}},
			{`"kind":"failure_only"`, "impossible", []string{"bad", "good", "open"}},
			{`"kind":"failure_only","policy":"any_of"`, "satisfied", []string{"bad", "good", "open"}},
			{`"names":["good","bad"]`, "satisfied", []string{"bad", "good"}},
			{`"names":["bad"],"kind":"success_only","policy":"any_of"`, "impossible", []string{"bad"}},
			{`"names":["good"],"kind":"success_only","timeout_ms":1`, "satisfied", []string{"good"}},
		} {
			w.waits(t, k, c.wait, fields{"outcome": "ready", "state": c.state}).lists(t, "children", "name", c.children...)
		}
		w.waits(t, k, `"policy":"any_of"`, fields{
			"children.0.execution_id": ids.text(t, "children.bad"), "children.0.outcome": "failed", "children.0.failure_reason": "permanent", "children.0.has_result": nil,
			"children.1.execution_id": ids.text(t, "children.good"), "children.1.outcome": "succeeded", "children.1.has_result": true,
			"children.1.result_content_type": "application/json", "children.1.result_size": 6, "children.1.failure_reason": nil,
			"children.2.execution_id": ids.text(t, "children.open"), "children.2.outcome": nil,
		})
		if result := w.get(t, at(ids.text(t, "children.good"))+"/result").wants(t, 200); string(result.body) != `"good"` {
			t.Errorf("the result is %s", result.body)
		}
		w.state(t, k.id, fields{"status": "running", "lease.lease_id": k.text(t, k.of("lease.lease_id"))})
		w.complete(t, open, `1`) // let_run, the default: none was cancelled
		w.complete(t, k, `1`)
	})
}

func TestF40_the_arguments_of_a_wait_are_checked_and_a_refusal_keeps_the_lease(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		k := w.parent(t, "")
		w.under(t, k, "wait-children", `"names":["a"]`).refuses(t, 404, "child_not_found")
		w.spawn(t, k, "a")
		w.under(t, k, "wait-children", `"names":["a","b"]`).refuses(t, 404, "child_not_found")
		for _, c := range [][2]string{
			{`"timeout_ms":0`, "invalid_argument"},
			{`"timeout_ms":-1`, "invalid_argument"},
			{`"timeout_ms":31536000001`, "invalid_argument"},
			{`"kind":"sometimes"`, "invalid_argument"},
			{`"policy":"most"`, "invalid_join"},
			{`"on_satisfied":"cheer"`, "invalid_argument"},
			{`"policy":"quorum"`, "invalid_join"},
			{`"policy":"quorum","k":-1`, "invalid_join"},
			{`"policy":"any_of","k":2`, "invalid_join"},
		} {
			w.under(t, k, "wait-children", c[0]).refuses(t, 400, c[1])
		}
		w.state(t, k.id, fields{"status": "running", "lease.lease_id": k.text(t, k.of("lease.lease_id"))})
		w.waits(t, k, `"timeout_ms":31536000000`, undecided)
	})
}

func TestF22_F40_on_satisfied_is_one_of_two_words_at_every_door(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		const join = `{"policy":"any_of","on_satisfied":"cheer"}`
		w.post(t, "/v1/flows", `{"kind":"f","nodes":[`+nodes("a")+`,{"name":"b","kind":"b","after":["a"],"join":`+join+`}]}`).refuses(t, 400, "invalid_argument")
		g := w.flow(t, line(`,"seal":false`, "parent"))
		w.send(t, "PUT", g.path+"/members/parent/join", join).refuses(t, 400, "invalid_argument")
		k := w.take(t, "parent")
		w.under(t, k, "spawn", `"children":[`+nodes("a")+`],"wait":`+join).refuses(t, 400, "invalid_argument")
		w.get(t, at(k.id)+"/children").wants(t, 200).count(t, "items", 0)
	})
}

func TestF40_F41_a_parent_that_waits_leaves_its_worker_and_goes_on_in_the_same_attempt(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		k := w.parent(t, "")
		ids := w.spawn(t, k, "a", "b")
		w.waits(t, k, "", undecided)
		w.state(t, k.id, fields{
			"status": "blocked", "reason": "waiting_for_children", "public_state": "waiting_children", "lease": nil,
			"attempt.state": "interrupted", "attempt.interruption.kind": "waiting_children", "attempt.attempt_index": 0,
		})
		w.get(t, at(k.id)+"/leases").wants(t, 200).count(t, "items", 1)
		w.under(t, k, "complete", `"result":1`).refuses(t, 409, "execution_not_active")
		w.does(t, "a")
		w.state(t, k.id, fields{"status": "blocked", "reason": "waiting_for_children"})
		w.post(t, at(k.id)+"/hold", `{}`).wants(t, 200)
		w.breaks(t, "b")
		w.state(t, k.id, fields{"status": "blocked", "reason": "paused_by_operator"}) // the gate
		w.send(t, "DELETE", at(k.id)+"/hold", `{}`).wants(t, 200).shows(t, fields{"status": "ready", "public_state": "resumable"})

		back := w.take(t, "parent")
		back.shows(t, fields{
			"tasks.0.how": "resumed", "tasks.0.attempt.attempt_id": k.field(t, "tasks.0.attempt.attempt_id"), "tasks.0.attempt.attempt_index": 0,
			"tasks.0.lease.lease_epoch": 2, "tasks.0.resumed.cause": "children",
			"tasks.0.resumed.children.0.name": "a", "tasks.0.resumed.children.0.outcome": "succeeded", "tasks.0.resumed.children.0.has_result": true,
			"tasks.0.resumed.children.0.result_size": 3, "tasks.0.resumed.children.0.execution_id": ids.text(t, "children.a"),
			"tasks.0.resumed.children.1.name": "b", "tasks.0.resumed.children.1.outcome": "failed", "tasks.0.resumed.children.1.failure_reason": "permanent",
		}).count(t, "tasks.0.resumed.children", 2)
		w.complete(t, back, `1`)
		w.get(t, at(k.id)+"/attempts").wants(t, 200).count(t, "items", 1)
	})
}

func TestF41_a_wait_that_cannot_be_satisfied_resumes_the_parent_and_never_skips_it(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g := w.flow(t, line("", "p", "next"))
		k := w.take(t, "p")
		w.spawn(t, k, "a", "b", "c")
		w.waits(t, k, `"kind":"success_only","policy":"quorum","k":2`, undecided)
		w.breaks(t, "a")
		w.stand(t, g.path, "p:blocked", "next:blocked")
		w.breaks(t, "b")
		w.stand(t, g.path, "p:ready", "next:blocked")
		back := w.take(t, "p")
		back.shows(t, fields{"tasks.0.how": "resumed", "tasks.0.resumed.cause": "children_impossible", "tasks.0.resumed.children.2.outcome": nil}).
			lists(t, "tasks.0.resumed.children", "outcome", "failed", "failed", "")
		w.waits(t, back, `"kind":"success_only","policy":"quorum","k":2`, fields{"outcome": "ready", "state": "impossible"})
		w.complete(t, back, `1`)
		w.does(t, "next")
		w.over(t, g.path, fields{"state": "completed"})
	})
}

func TestF41_F42_a_wait_whose_time_is_over_resumes_the_parent_once(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		k := w.parent(t, "")
		w.spawn(t, k, "a", "b")
		w.does(t, "a")
		w.waits(t, k, `"timeout_ms":20`, undecided)
		back := w.take(t, "parent")
		back.shows(t, fields{"tasks.0.how": "resumed", "tasks.0.resumed.cause": "children_timeout", "tasks.0.attempt.attempt_index": 0}).
			lists(t, "tasks.0.resumed.children", "outcome", "succeeded", "")
		w.waits(t, back, `"timeout_ms":20`, fields{"outcome": "ready", "state": "timeout"}).lists(t, "children", "name", "a", "b")
		w.does(t, "b")
		w.claimsNothing(t, "default") // the wait is over: it is not decided again
		w.waits(t, back, `"timeout_ms":20`, ready)
		w.complete(t, back, `1`)
	})
}

func TestF42_calling_again_after_the_resume_answers_at_once_and_tells_no_second_wait(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		k := w.parent(t, "")
		w.spawn(t, k, "before", "after")
		w.does(t, "before")
		w.waits(t, k, "", undecided)
		w.waits(t, k, "", undecided) // a call that was sent twice
		w.does(t, "after")
		back := w.take(t, "parent")
		w.waits(t, back, "", ready).lists(t, "children", "outcome", "succeeded", "succeeded")
		w.complete(t, back, `1`)
		story(t, w.told(t, "kind=execution.,lease.&execution_id="+bare(k.id), "execution.completed", 1),
			"execution.submitted", "lease.acquired", "execution.waiting_children", "execution.ready", "lease.acquired", "execution.completed")
	})
}

func TestF42_children_that_end_while_their_parent_begins_to_wait_wake_it_once(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		for range 4 {
			k := w.parent(t, "")
			w.spawn(t, k, "a", "b", "c", "d")
			w.does(t, "a")
			var all sync.WaitGroup
			for _, kind := range []string{"b", "c", "d"} {
				child := w.take(t, kind)
				all.Go(func() { w.under(t, child, "complete", `"result":1`) })
			}
			waited := w.under(t, k, "wait-children", "").wants(t, 200)
			all.Wait()
			if waited.text(t, "outcome") == "waiting" {
				k = w.take(t, "parent")
				k.shows(t, fields{"tasks.0.resumed.cause": "children"}).count(t, "tasks.0.resumed.children", 4)
			}
			w.waits(t, k, "", ready).lists(t, "children", "outcome", "succeeded", "succeeded", "succeeded", "succeeded")
			w.claimsNothing(t, "default")
			w.complete(t, k, `1`)
		}
	})
}

func TestF43_a_spawn_that_waits_does_both_or_neither(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		k := w.parent(t, "")
		w.under(t, k, "spawn", `"children":[`+nodes("a")+`],"wait":{"names":["missing"]}`).refuses(t, 404, "child_not_found")
		w.under(t, k, "spawn", `"children":[`+nodes("a")+`],"wait":{"timeout_ms":0}`).refuses(t, 400, "invalid_argument")
		w.get(t, at(k.id)+"/children").wants(t, 200).count(t, "items", 0)
		w.state(t, k.id, fields{"status": "running"})

		const both = `"children":[{"name":"a","kind":"a"},{"name":"b","kind":"b"},{"name":"c","kind":"c","after":["b"]}],` +
			`"wait":{"names":["a","c"],"policy":"any_of","kind":"success_only","on_satisfied":"cancel_remaining","timeout_ms":3600000}`
		spawned := w.under(t, k, "spawn", both).wants(t, 200).shows(t, fields{"created": 3, "wait.outcome": "waiting", "wait.children": nil})
		w.state(t, k.id, fields{"status": "blocked", "reason": "waiting_for_children"})
		w.does(t, "a")
		back := w.take(t, "parent")
		back.shows(t, fields{"tasks.0.resumed.cause": "children"}).lists(t, "tasks.0.resumed.children", "name", "a", "c")
		for _, loser := range []string{"b", "c"} { // b leads only to c
			w.over(t, at(spawned.text(t, "children."+loser)), fields{"status": "cancelled", "reason": "join_satisfied", "cancellation.source": "join"})
		}
		w.under(t, back, "spawn", both).wants(t, 200).shows(t, fields{"created": 0, "wait.outcome": "ready", "wait.state": "satisfied", "children": spawned.field(t, "children")})
		w.complete(t, back, `1`)
	})
}
