package rules

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/clock"
)

var (
	edgeKinds = []string{"success_only", "failure_only", "any_terminal"}
	outcomes  = []string{"succeeded", "failed", "expired", "cancelled", "skipped"}
)

// resolves is the table of kinds and outcomes.
func resolves(kind, outcome string) string {
	satisfied := kind == "any_terminal" || kind == "success_only" && outcome == "succeeded" ||
		kind == "failure_only" && (outcome == "failed" || outcome == "expired" || outcome == "cancelled")
	if satisfied {
		return "satisfied"
	}
	return "impossible"
}

// Of every outcome one upstream, and of every kind, policy and on_satisfied a member that waits for it; the same again after the end.
func TestF22_F23_F26_every_kind_outcome_policy_and_on_satisfied(t *testing.T) {
	t.Parallel()
	const hour = `"policy":{"timeout_policy":{"execution_deadline_ms":3600000}}` // over only when the clock is turned, after the edges are there
	atOwnTime(t, func(t *testing.T, w *world, hand *clock.Manual) {
		g := w.flow(t, growing(nodes("succeeded", "failed", "cancelled", "cause"), node("expired", hour), node("skipped", after("cause")), node("gate")))
		want := map[string]string{} // state of each join
		matrix := func(when string) string {
			var parts []string
			for _, kind := range edgeKinds {
				for _, outcome := range outcomes {
					for _, policy := range []string{join("all_of"), join("any_of"), join("quorum", `"k":1`)} {
						for _, on := range []string{`}`, `,"on_satisfied":"let_run"}`, `,"on_satisfied":"cancel_remaining"}`} {
							name := fmt.Sprintf("%s-%d", when, len(parts))
							want[name] = resolves(kind, outcome)
							parts = append(parts, node(name, strings.TrimSuffix(policy, "}")+on), edge(outcome, name, `"kind":"`+kind+`"`))
						}
					}
				}
			}
			return more(parts...)
		}
		w.extend(t, g, matrix("before")).wants(t, 200)
		w.flowIs(t, g, fields{"joins.pending": len(want) + 1, "joins.satisfied": nil, "joins.impossible": nil, "counts.expired": 0}) // none has ended yet
		w.breaks(t, "cause")
		for _, outcome := range outcomes {
			if outcome == "expired" {
				budgetPass(hand, time.Hour)
			}
			w.ends(t, g, outcome, outcome)
		}
		w.extend(t, g, matrix("after")).wants(t, 200).shows(t, fields{"graph_revision": 3})
		shown := w.spread(t, g)
		got, n := map[string]string{}, 0
		for _, item := range shown.items(t, "nodes") {
			member := item.(map[string]any)
			name := member["name"].(string)
			state, here := want[name]
			if !here {
				continue
			}
			n++
			joined := member["join"].(map[string]any)
			got[name] = fmt.Sprint(joined["state"])
			if status := map[string]string{"satisfied": "ready", "impossible": "skipped"}[state]; member["status"] != status || joined["n"] != 1.0 || joined[state] != 1.0 || joined["decided_at"] == nil {
				t.Errorf("%s, want %s: %v", name, status, member)
			}
		}
		if n != len(want) || n != 270 {
			t.Errorf("%d of %d members", n, len(want))
		}
		for name, state := range want {
			if got[name] != state {
				t.Errorf("the join of %s is %s, want %s", name, got[name], state)
			}
		}
	})
}

func TestF22_on_satisfied_is_let_run_unless_it_says_otherwise(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g := w.flow(t, whole(nodes("a"), node("none", after("a")), node("let", after("a"), join("any_of", `"on_satisfied":"let_run"`)), node("cut", after("a"), join("any_of", `"on_satisfied":"cancel_remaining"`))))
		w.joinIs(t, g, "none", fields{"policy": "all_of", "on_satisfied": "let_run"})
		w.joinIs(t, g, "let", fields{"policy": "any_of", "on_satisfied": "let_run"})
		w.joinIs(t, g, "cut", fields{"policy": "any_of", "on_satisfied": "cancel_remaining"})
	})
}

// verdict is the table of policies: what a join with n edges is after so many ends.
func verdict(k, n, satisfied, impossible int) string {
	switch {
	case satisfied >= k:
		return "satisfied"
	case impossible > n-k:
		return "impossible"
	default:
		return "pending"
	}
}

// Three upstreams end one after the other, in every combination of success and failure; after each end every join is as the table says.
func TestF23_F25_a_join_is_decided_once_on_the_edges_present(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		const n = 3
		joins := []string{join("all_of"), join("any_of"), join("quorum", `"k":1`), join("quorum", `"k":2`), join("quorum", `"k":3`)}
		ks := []int{n, 1, 1, 2, 3}
		for ends := range 1 << n {
			t.Run(fmt.Sprintf("%03b", ends), func(t *testing.T) {
				parts := []string{nodes("u0", "u1", "u2")}
				for i, spec := range joins {
					parts = append(parts, node(fmt.Sprintf("d%d", i), spec, after("u0", "u1", "u2")))
				}
				g := w.flow(t, whole(parts...))
				decided, satisfied := map[string]string{}, 0
				for i := range n {
					if name := fmt.Sprintf("u%d", i); ends>>i&1 == 1 {
						w.does(t, name)
						satisfied++
					} else {
						w.breaks(t, name)
					}
					shown := w.spread(t, g)
					rows := map[string]int{}
					for _, item := range shown.items(t, "edges") {
						e := item.(map[string]any)
						rows[fmt.Sprint(e["downstream"], " ", e["state"])]++
					}
					for at := range ks { // members come by name
						name, of := shown.text(t, fmt.Sprintf("nodes.%d.name", at)), func(field string) string { return fmt.Sprintf("nodes.%d.%s", at, field) }
						k := ks[at]
						shown.shows(t, fields{of("name"): fmt.Sprintf("d%d", at), of("join.n"): n, of("join.satisfied"): satisfied, of("join.impossible"): i + 1 - satisfied})
						if rows[name+" satisfied"] != satisfied || rows[name+" impossible"] != i+1-satisfied || rows[name+" pending"] != n-1-i {
							t.Errorf("%s has the edges %v", name, rows)
						}
						state := shown.text(t, of("join.state"))
						if first, ok := decided[name]; ok {
							if first != state+shown.text(t, of("join.decided_at")) {
								t.Errorf("%s with k %d was decided twice: %s, then %s", name, k, first, shown.body)
							}
							continue
						}
						if want := verdict(k, n, satisfied, i+1-satisfied); state != want {
							t.Errorf("with k %d, %d satisfied and %d impossible it is %s, want %s", k, satisfied, i+1-satisfied, state, want)
						}
						if state != "pending" {
							decided[name] = state + shown.text(t, of("join.decided_at"))
						}
						status := map[string]string{"pending": "blocked", "satisfied": "ready", "impossible": "skipped"}[state]
						shown.shows(t, fields{of("status"): status})
					}
				}
				w.post(t, g.path+"/cancel?wait_ms=20000", `{"reason":"seen"}`).wants(t, 200)
			})
		}
	})
}

func TestF24_a_quorum_of_more_than_there_are_stays_pending_until_the_seal(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g := w.flow(t, growing(nodes("a", "b"), node("more", after("a"), join("quorum", `"k":2`)), node("short", after("a"), join("quorum", `"k":2`)), node("below", after("short"))))
		w.does(t, "a")
		w.joinIs(t, g, "short", fields{"state": "pending", "n": 1, "satisfied": 1, "impossible": 0})
		w.state(t, g.member(t, "more"), fields{"status": "blocked"})
		w.extend(t, g, more(edge("b", "more"))).wants(t, 200)
		w.joinIs(t, g, "more", fields{"state": "pending", "n": 2, "satisfied": 1})
		w.does(t, "b")
		w.joinIs(t, g, "more", fields{"state": "satisfied", "satisfied": 2})
		w.joinIs(t, g, "short", fields{"state": "pending"})
		w.post(t, g.path+"/seal", "").wants(t, 200)
		w.joinIs(t, g, "short", fields{"state": "impossible", "detail": "quorum_unreachable", "satisfied": 1, "impossible": 0, "n": 1})
		w.ended(t, g.member(t, "short"), fields{"status": "skipped", "reason": "dependency_impossible"})
		w.ended(t, g.member(t, "below"), fields{"status": "skipped"})
		w.does(t, "more")
		w.flowEnds(t, g, fields{"state": "completed", "counts.skipped": 2})
	})
}

func TestF25_F35_edges_that_resolve_after_the_decision_count_and_change_nothing(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g := w.flow(t, whole(nodes("a", "b", "c"), node("any", after("a", "b", "c"), join("any_of")), node("all", after("a", "b", "c"))))
		w.does(t, "a")
		first := w.joinIs(t, g, "any", fields{"state": "satisfied", "satisfied": 1}).text(t, "decided_at")
		running := w.take(t, "any")
		w.breaks(t, "b")
		lost := w.joinIs(t, g, "all", fields{"state": "impossible", "satisfied": 1, "impossible": 1}).text(t, "decided_at")
		w.does(t, "c")
		w.joinIs(t, g, "any", fields{"state": "satisfied", "satisfied": 2, "impossible": 1, "decided_at": first})
		w.joinIs(t, g, "all", fields{"state": "impossible", "satisfied": 2, "impossible": 1, "decided_at": lost})
		w.edgeOf(t, g, "b", "any").shows(t, fields{"state": "impossible", "upstream_outcome": "failed"})
		w.state(t, running.id, fields{"status": "running"})
		w.complete(t, running, `1`)
		w.state(t, running.id, fields{"status": "succeeded", "total_attempts": 1})
		w.claimsNothing(t, "default")
		w.flowEnds(t, g, fields{"state": "failed"})
	})
}

func TestF23_F25_upstreams_that_end_at_once_are_counted_once_each_and_decide_a_join_once(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		const n = 16
		parts, names := []string{}, []string{}
		for i := range n {
			names = append(names, fmt.Sprintf("u%02d", i))
			parts = append(parts, `{"name":"`+names[i]+`","kind":"up"}`)
		}
		g := w.flow(t, whole(append(parts, node("half", after(names...), join("quorum", `"k":8`)), node("all", after(names...)))...))
		running := w.claims(t, `"lanes":["default"],"kinds":["up"],"max":16,"wait_ms":60000`)
		if len(running) != n {
			t.Fatalf("claimed %d", len(running))
		}
		for _, got := range atOnce(n, func(i int) reply { return w.under(t, running[i], "complete", `"result":1`) }) {
			got.wants(t, 200)
		}
		w.joinIs(t, g, "all", fields{"n": n, "satisfied": n, "impossible": 0, "state": "satisfied"})
		w.joinIs(t, g, "half", fields{"n": n, "satisfied": n, "impossible": 0, "state": "satisfied"})
		w.does(t, "half", "all")
		w.claimsNothing(t, "default")
		w.flowEnds(t, g, fields{"state": "completed", "counts.completed": n + 2})
		for _, name := range []string{"half", "all"} {
			w.toldOnce(t, g.member(t, name), "execution.ready")
			w.state(t, g.member(t, name), fields{"total_attempts": 1})
		}
	})
}
