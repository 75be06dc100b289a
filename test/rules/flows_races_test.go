package rules

import (
	"fmt"
	"testing"
)

func TestF32_a_loser_that_completes_while_its_join_is_decided_keeps_its_outcome_or_is_told(t *testing.T) {
	t.Parallel()
	const losers, rounds = 15, 4
	onEveryStore(t, func(t *testing.T, w *world) {
		for range rounds {
			parts := []string{nodes("fast"), node("first", after("fast"), join("any_of", cut))}
			for i := range losers { // the success of a loser decides nothing
				name := fmt.Sprint("loser", i)
				parts = append(parts, node(name), edge(name, "first", `"kind":"failure_only"`))
			}
			g := w.flow(t, whole(parts...))
			tasks := make([]task, losers+1)
			for i := range losers {
				tasks[i] = w.take(t, fmt.Sprint("loser", i))
			}
			tasks[losers] = w.take(t, "fast")
			answers := atOnce(len(tasks), func(i int) reply { return w.under(t, tasks[i], "complete", `"result":1`) })
			answers[losers].wants(t, 200)
			w.does(t, "first")
			won := 1 // first
			for i, answer := range answers {
				switch answer.status {
				case 200:
					won++
					w.state(t, tasks[i].id, fields{"status": "succeeded"})
				case 409:
					w.ended(t, tasks[i].id, fields{"status": "cancelled", "reason": "join_satisfied"})
				default:
					t.Errorf("%d: %s", answer.status, answer.body)
				}
			}
			w.flowEnds(t, g, fields{"state": "completed"})
			w.flowIs(t, g, fields{"counts.completed": won, "counts.cancelled": losers + 2 - won, "counts.total": losers + 2})
		}
	})
}

func TestF53_a_wait_for_more_than_five_minutes_counts_as_five_minutes(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g := w.flow(t, whole(nodes("a")))
		w.post(t, g.path+"/cancel?wait_ms=300001", `{"reason":"r"}`).wants(t, 200).shows(t, fields{"state": "cancelled", "cancelled": 1, "remaining": 0})
		for asked, applied := range map[string]string{"wait=300": "wait=300", "wait=301": "wait=300"} {
			if got := w.preferring(t, "POST", g.path+"/cancel", `{"reason":"r"}`, asked); got != applied {
				t.Errorf("%s: it would have waited %q", asked, got)
			}
		}
	})
}
