package rules

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestF56_a_replay_is_refused_as_a_whole(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		for _, c := range []struct {
			name, member string // further fields of c
			cascade      string
			spoil        func(g graph)
			code         string
			current      fields
		}{
			{"a descendant runs", "", "all", func(graph) { w.does(t, "a", "b"); w.take(t, "c") }, "descendant_active", fields{"current.name": "c", "current.status": "running"}},
			{"a descendant is ready", "", "all", func(graph) { w.does(t, "a", "b") }, "descendant_active", fields{"current.name": "c", "current.status": "ready"}},
			{"one at its cap", `,"policy":{"max_replay_count":0}`, "skipped", func(graph) { w.breaks(t, "a") }, "max_replays_exhausted", fields{"current.name": "c"}},
			{"active before cap", `,"policy":{"max_replay_count":0}`, "all", func(graph) { w.does(t, "a", "b"); w.take(t, "c") }, "descendant_active", fields{"current.name": "c"}},
			{"a lane that accepts nothing", `,"lane":"` + w.namespace + `"`, "all", func(graph) {
				w.does(t, "a", "b")
				w.complete(t, w.claim(t, w.namespace), `1`)
				w.send(t, "PUT", "/v1/lanes/"+w.namespace, `{"state":"draining"}`).wants(t, 200)
			}, "lane_not_accepting", fields{"current.name": "c"}},
		} {
			g := w.flow(t, `{"kind":"f","nodes":[{"name":"a","kind":"a"},{"name":"b","kind":"b","after":["a"]},{"name":"c","kind":"c","after":["b"]`+c.member+`}]}`)
			c.spoil(g)
			before, statuses := w.get(t, g.path).wants(t, 200), w.statuses(t, g.path)
			w.replay(t, g, "a", `,"cascade":"`+c.cascade+`"`).refuses(t, 409, c.code).shows(t, c.current)
			w.get(t, g.path).wants(t, 200).shows(t, fields{"state": before.field(t, "state"), "last_mutation_at": before.field(t, "last_mutation_at")})
			if after := w.statuses(t, g.path); fmt.Sprint(after) != fmt.Sprint(statuses) {
				t.Errorf("%s: %v became %v", c.name, statuses, after)
			}
			w.post(t, g.path+"/cancel", `{"reason":"next"}`)
		}
	})
}

func TestF56_a_replay_opens_at_most_1000_members_and_that_is_told_after_what_concerns_the_member(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		many := make([]string, 1000)
		for i := range many {
			many[i] = fmt.Sprintf(`{"name":"n%d","after":["a"]}`, i)
		}
		g := w.flow(t, `{"kind":"wide","defaults":{"kind":"job"},"nodes":[{"name":"a","kind":"a","policy":{"max_replay_count":1}},`+strings.Join(many, ",")+`]}`)
		w.breaks(t, "a")
		w.over(t, g.path, fields{"state": "failed", "counts.skipped": 1000})
		w.replay(t, g, "a", `,"cascade":"skipped"`).refuses(t, 400, "replay_too_large")
		w.get(t, g.path).wants(t, 200).shows(t, fields{"state": "failed", "counts.skipped": 1000, "counts.failed": 1})

		w.replay(t, g, "a", "").wants(t, 200)
		w.replay(t, g, "a", `,"cascade":"skipped"`).refuses(t, 409, "execution_not_terminal")
		w.breaks(t, "a")
		w.replay(t, g, "a", `,"cascade":"skipped"`).refuses(t, 409, "max_replays_exhausted")
		w.get(t, g.path).wants(t, 200).shows(t, fields{"counts.skipped": 1000, "counts.failed": 1})
	})
}

func TestF56_every_reopened_member_has_a_deadline_of_its_own(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		moment := func(id, field string) time.Time {
			t.Helper()
			moment, err := time.Parse(time.RFC3339Nano, w.get(t, at(id)).wants(t, 200).text(t, field))
			if err != nil {
				t.Fatal(err)
			}
			return moment
		}
		now := moment(w.submit(t, `{"kind":"other"}`), "created_at")
		in := func(years int) string { return now.AddDate(years, 0, 0).Format(time.RFC3339) }
		g := w.flow(t, `{"kind":"f","nodes":[{"name":"a","kind":"a"},{"name":"b","kind":"b","after":["a"],"policy":{"timeout_policy":{"execution_deadline_ms":3600000}}},
			{"name":"c","kind":"c","after":["b"],"deadline_at":"`+in(2)+`"}]}`)
		w.breaks(t, "a")
		w.over(t, g.path, fields{"state": "failed"})
		w.replay(t, g, "a", `,"cascade":"all","deadline_at":"`+in(1)+`"`).wants(t, 200)
		a, b, c := g.member(t, "a"), g.member(t, "b"), g.member(t, "c")
		if got := moment(a, "deadline_at"); got.Year() != now.Year()+1 {
			t.Errorf("the member expires at %s", got)
		}
		if got := moment(b, "deadline_at").Sub(moment(b, "queued_at")); got != time.Hour || !moment(b, "queued_at").After(moment(b, "created_at")) {
			t.Errorf("b expires %s after its replay", got)
		}
		if got := moment(c, "deadline_at"); got.Year() != now.Year()+2 {
			t.Errorf("c expires at %s", got)
		}
	})
}

func TestF58_members_of_a_cancelled_or_cancelling_flow_are_not_replayed(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g := w.flow(t, `{"kind":"f","nodes":[{"name":"a","kind":"a","policy":{"max_replay_count":0}},`+nodes("b")+`]}`)
		w.does(t, "a")
		b := w.take(t, "b")
		w.post(t, g.path+"/cancel", `{"policy":"cancel_pending","reason":"r"}`).wants(t, 202)
		w.replay(t, g, "b", "").refuses(t, 409, "execution_not_terminal")
		w.replay(t, g, "a", "").refuses(t, 409, "flow_already_terminal").shows(t, fields{"current.state": "cancelling"}) // before the cap
		w.complete(t, b, `1`)
		w.replay(t, g, "b", "").refuses(t, 409, "flow_already_terminal").shows(t, fields{"current.state": "cancelled"})
		w.get(t, g.path).wants(t, 200).shows(t, fields{"state": "cancelled"})
		w.stand(t, g.path, "a:succeeded", "b:succeeded")
	})
}

func TestF58_a_completed_flow_opens_again_too_and_its_members_may_be_replayed_often(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g := w.flow(t, line("", "a"))
		w.does(t, "a")
		for run := 1; run <= 3; run++ {
			w.over(t, g.path, fields{"state": "completed"})
			w.replay(t, g, "a", "").wants(t, 200).shows(t, fields{"run_index": run})
			w.get(t, g.path).wants(t, 200).shows(t, fields{"state": "open", "phase": "waiting", "ended_at": nil})
			w.does(t, "a")
		}
		w.over(t, g.path, fields{"state": "completed"})
		story(t, w.told(t, "kind=flow.&flow_id="+bare(g.id), "flow.completed", 4),
			"flow.created", "flow.completed", "flow.reopened", "flow.completed", "flow.reopened", "flow.completed", "flow.reopened", "flow.completed")
	})
}
