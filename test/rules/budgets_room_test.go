package rules

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

func TestB33_every_return_of_room_wakes_the_claim_that_waits(t *testing.T) {
	t.Parallel()
	for name, give := range map[string]func(t *testing.T, w *world, holder task){
		"a hold is released": func(t *testing.T, w *world, holder task) { w.complete(t, holder, `1`) },
		"a lease is revoked": func(t *testing.T, w *world, holder task) {
			w.post(t, at(holder.id)+"/revoke", `{"hold":true}`).wants(t, 200)
		},
		"release_budget": func(t *testing.T, w *world, holder task) {
			w.budgetReport(t, holder, `{"tokens":5}`, "").wants(t, 200)
			w.post(t, "/v1/budgets/b/release", `{"execution_id":"`+holder.id+`"}`).wants(t, 200)
		},
		"reset": func(t *testing.T, w *world, holder task) {
			w.budgetReport(t, holder, `{"tokens":5}`, "").wants(t, 200)
			w.budgetVerb(t, "b", "reset").wants(t, 200)
		},
		"the limit is raised": func(t *testing.T, w *world, _ task) {
			w.budgetPatch(t, "b", `{"dimensions":{"tokens":{"hard":10}}}`).wants(t, 200)
		},
		"the limit is removed": func(t *testing.T, w *world, _ task) {
			w.budgetPatch(t, "b", `{"dimensions":{"tokens":{"remove":["hard"]}}}`).wants(t, 200)
		},
		"reopen": func(t *testing.T, w *world, holder task) {
			w.budgetVerb(t, "b", "close").wants(t, 200)
			w.complete(t, holder, `1`)
			w.claimsNothing(t, "default")
			w.budgetVerb(t, "b", "reopen").wants(t, 200)
		},
		"delete": func(t *testing.T, w *world, holder task) {
			w.budgetReport(t, holder, `{"tokens":5}`, "").wants(t, 200)
			w.complete(t, holder, `1`)
			w.send(t, "DELETE", "/v1/budgets/b", "").wants(t, 204)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEveryStore(t, func(t *testing.T, w *world) {
				w.budget(t, "b", budgetTokens(5)+budgetScope("tag", "team=red"))
				const red = `"tags":{"team":"red"},"estimate":{"tokens":5}`
				holder := w.budgetTask(t, red)
				waiting := w.submit(t, `{"kind":"k",`+red+`}`)
				w.claimsNothing(t, "default")
				w.budgetBlocked(t, waiting, fields{"need": 5, "available": 0})
				w.budgetShows(t, "b", fields{"blocked_executions": 1})
				claimed := w.seeks(t, "claim", `"lanes":["default"]`)
				give(t, w, holder)
				(<-claimed).wants(t, 200).shows(t, fields{"tasks.0.execution_id": waiting, "tasks.1": nil})
				if name != "delete" {
					w.budgetShows(t, "b", fields{"blocked_executions": 0})
				}
			})
		})
	}
}

func TestB33_who_waits_starts_best_first_and_as_many_as_fit(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.budget(t, "b", budgetTokens(10))
		holder := w.budgetTask(t, costing(10, "b"))
		ids := map[string]string{}
		for _, c := range []struct {
			name           string
			priority, need int
		}{{"low", 1, 3}, {"best", 9, 6}, {"large", 5, 5}, {"small", 3, 4}} {
			ids[c.name] = w.submit(t, fmt.Sprintf(`{"kind":"k","priority":%d,%s}`, c.priority, costing(c.need, "b")))
		}
		w.claimsNothing(t, "default")
		w.complete(t, holder, `1`)
		var taken []string
		for range 2 {
			taken = append(taken, w.claim(t, "default").id)
		}
		if want := []string{ids["best"], ids["small"]}; !slices.Equal(taken, want) {
			t.Errorf("%v were taken, want %v", taken, want)
		}
		w.claimsNothing(t, "default")
		w.budgetHas(t, "b", 0, 10, 0)
		for _, name := range []string{"low", "large"} {
			w.budgetBlocked(t, ids[name], nil)
		}
	})
}

func TestB34_no_execution_stays_blocked_while_there_is_room(t *testing.T) {
	t.Parallel()
	const runs, workers = 30, 6
	onEveryStore(t, func(t *testing.T, w *world) {
		w.budget(t, "b", budgetTokens(2)) // room for two: the other workers are refused while those give it back
		for range runs {
			w.submit(t, `{"kind":"k",`+costing(1, "b")+`}`)
		}
		var left atomic.Int64
		left.Store(runs)
		var wg sync.WaitGroup
		for range workers {
			wg.Go(func() {
				for left.Add(-1) >= 0 { // as many claims as there is work: each must get some
					got := w.claims(t, `"lanes":["default"],"wait_ms":60000`)
					if len(got) != 1 {
						t.Error("a claim found nothing")
						return
					}
					w.complete(t, got[0], `1`)
				}
			})
		}
		wg.Wait()
		w.budgetShows(t, "b", fields{"dimensions.tokens.reserved": 0, "live_holds": 0, "blocked_executions": 0})
	})
}
