package rules

import "testing"

func TestF3_a_flow_is_sealed_when_it_is_submitted_whole_or_by_seal(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.flow(t, whole(nodes("a"))).shows(t, fields{"sealed": true})
		w.flow(t, `{"kind":"k","seal":true,`+drawn(nodes("b"))+`}`).shows(t, fields{"sealed": true})
		open := w.flow(t, growing(nodes("d")))
		open.shows(t, fields{"sealed": false})
		w.extend(t, open, more(nodes("e"))).wants(t, 200).shows(t, fields{"sealed": false, "node_count": 2})
		w.post(t, open.path+"/seal", "").wants(t, 200).shows(t, fields{"sealed": true, "created": true, "state": "open", "graph_revision": 3})
		w.post(t, open.path+"/seal", "").wants(t, 200).shows(t, fields{"sealed": true, "created": false, "state": "open", "graph_revision": 3})
		w.extend(t, open, `{"seal":true}`).wants(t, 200).shows(t, fields{"created": false, "graph_revision": 3})
		w.extend(t, open, more(nodes("f"))).refuses(t, 409, "flow_sealed")
		w.extend(t, open, more(edge("d", "e"))).refuses(t, 409, "flow_sealed")
		w.flowIs(t, open, fields{"node_count": 2, "edge_count": 0, "graph_revision": 3})
		by := w.empty(t)
		by.shows(t, fields{"sealed": false, "state": "open"})
		w.extend(t, by, `{"seal":true,`+drawn(nodes("g"))+`}`).wants(t, 200).shows(t, fields{"sealed": true, "graph_revision": 1, "state": "open"})
	})
}

func TestF3_F4_sealing_an_empty_flow_completes_it(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g := w.empty(t)
		sealed := w.post(t, g.path+"/seal", "").wants(t, 200).shows(t, fields{"sealed": true, "state": "completed", "node_count": 0})
		if sealed.text(t, "ended_at") == "" {
			t.Errorf("%s", sealed.body)
		}
		w.flow(t, whole()).shows(t, fields{"sealed": true, "state": "completed"})
	})
}

func TestF4_a_sealed_flow_ends_with_its_last_member(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g := w.flow(t, whole(nodes("a"), node("b", after("a"))))
		w.does(t, "a")
		w.flowIs(t, g, fields{"state": "open", "ended_at": nil})
		last := w.take(t, "b")
		w.flowIs(t, g, fields{"state": "open"})
		w.complete(t, last, `1`)
		ended := w.flowIs(t, g, fields{"state": "completed", "phase": nil, "counts.completed": 2})
		if began := w.state(t, last.id, fields{"status": "succeeded"}).text(t, "completed_at"); ended.text(t, "ended_at") < began {
			t.Errorf("the flow ended at %s, its last member at %s", ended.text(t, "ended_at"), began)
		}
		for _, kind := range []string{"flow.created", "flow.completed"} {
			w.toldOnce(t, g.id, kind)
		}
	})
}

func TestF4_an_unsealed_flow_never_ends_by_itself_and_the_seal_ends_it(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		for name, c := range map[string]struct {
			end   func(testing.TB, ...string)
			state string
		}{"good": {w.does, "completed"}, "bad": {w.breaks, "failed"}} {
			g := w.flow(t, growing(nodes(name)))
			c.end(t, name)
			w.flowIs(t, g, fields{"state": "open", "phase": "idle", "ended_at": nil})
			w.post(t, g.path+"/seal", "").wants(t, 200).shows(t, fields{"state": c.state})
			w.flowIs(t, g, fields{"state": c.state})
		}
	})
}

// expiring is the policy of a node whose time is over as soon as it is there.
const expiring = `"policy":{"timeout_policy":{"execution_deadline_ms":1}}`

func TestF5_which_ends_make_a_flow_failed(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		helped := edge("a", "help", `"kind":"failure_only"`)
		for name, c := range map[string]struct {
			parts     []string
			end       string // how member a ends
			succeeds  []string
			state     string
			completed int
		}{
			"succeeded":                           {[]string{nodes("a")}, "succeeded", nil, "completed", 1},
			"skipped is no failure":               {[]string{nodes("a"), node("help"), helped}, "succeeded", nil, "completed", 1},
			"failed":                              {[]string{nodes("a")}, "failed", nil, "failed", 0},
			"expired":                             {[]string{node("a", expiring)}, "expired", nil, "failed", 0},
			"cancelled":                           {[]string{nodes("a")}, "cancelled", nil, "failed", 0},
			"failed, may fail":                    {[]string{node("a", `"may_fail":true`)}, "failed", nil, "completed", 0},
			"expired, may fail":                   {[]string{node("a", expiring, `"may_fail":true`)}, "expired", nil, "completed", 0},
			"cancelled, may fail":                 {[]string{node("a", `"may_fail":true`)}, "cancelled", nil, "completed", 0},
			"failed, taken care of":               {[]string{nodes("a", "help"), helped}, "failed", []string{"help"}, "completed", 1},
			"expired, taken care of":              {[]string{node("a", expiring), nodes("help"), helped}, "expired", []string{"help"}, "completed", 1},
			"cancelled, taken care of":            {[]string{nodes("a", "help"), helped}, "cancelled", []string{"help"}, "completed", 1},
			"taken care of by one of two":         {[]string{nodes("a", "help"), node("next", after("a")), helped}, "failed", []string{"help"}, "failed", 1},
			"skipped downstreams take no care":    {[]string{nodes("a"), node("next", after("a"))}, "failed", nil, "failed", 0},
			"another member that failed":          {[]string{nodes("a", "b")}, "failed", []string{"b"}, "failed", 1},
			"a join that was satisfied otherwise": {[]string{nodes("a", "b"), node("next", join("any_of"), after("a", "b"))}, "failed", []string{"b", "next"}, "completed", 2},
		} {
			t.Run(name, func(t *testing.T) {
				g := w.flow(t, whole(c.parts...))
				w.ends(t, g, "a", c.end)
				w.does(t, c.succeeds...)
				w.flowEnds(t, g, fields{"state": c.state, "counts.completed": c.completed})
			})
		}
	})
}

func TestF5_a_failure_whose_downstream_was_overridden_is_none(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g := w.flow(t, whole(nodes("a"), node("b", after("a"))))
		w.breaks(t, "a")
		w.flowIs(t, g, fields{"state": "failed", "counts.skipped": 1, "counts.failed": 1})
		w.post(t, at(g.member(t, "b"))+"/replay", `{"reason":"anyway","ignore_dependencies":true}`).wants(t, 200)
		w.joinIs(t, g, "b", fields{"state": "overridden"})
		w.flowIs(t, g, fields{"state": "open"})
		w.does(t, "b")
		w.flowIs(t, g, fields{"state": "completed"})
	})
}

func TestF6_the_phase_is_the_first_that_fits(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g := w.empty(t)
		phase := func(want string) { t.Helper(); w.flowIs(t, g, fields{"state": "open", "phase": want}) }
		phase("idle")
		// The last one waits for a second edge, which nothing gives it.
		w.extend(t, g, more(nodes("a", "b", "s"), node("late", `"delay_ms":600000`), node("q", join("quorum", `"k":2`), after("a")))).wants(t, 200)
		phase("waiting")
		first := w.take(t, "a")
		phase("running")
		w.complete(t, first, `1`)
		phase("waiting") // b and s are ready
		w.post(t, "/v1/work/grants", `{"worker_id":"w","worker_instance_id":"`+w.namespace+`","lanes":["default"],"kinds":["b"],"grant_ttl_ms":60000,"wait_ms":60000}`).wants(t, 200)
		w.state(t, w.idOf(t, g, "b"), fields{"status": "granted"})
		phase("running")
		w.cancel(t, w.idOf(t, g, "b"))
		w.suspend(t, w.take(t, "s"))
		phase("waiting") // late is delayed
		w.cancel(t, w.idOf(t, g, "late"))
		phase("suspended")
		w.cancel(t, w.idOf(t, g, "s"))
		phase("blocked")
		w.cancel(t, w.idOf(t, g, "q"))
		phase("idle")
		w.post(t, g.path+"/seal", "").wants(t, 200)
		w.flowIs(t, g, fields{"state": "failed", "phase": nil})
	})
}

func TestF7_a_flow_that_has_ended_or_is_being_cancelled_takes_nothing_more(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		for state, make := range map[string]func(g graph){
			"completed": func(g graph) { w.does(t, "a", "b"); w.post(t, g.path+"/seal", "").wants(t, 200) },
			"failed":    func(g graph) { w.breaks(t, "a", "b"); w.post(t, g.path+"/seal", "").wants(t, 200) },
			"cancelled": func(g graph) { w.post(t, g.path+"/cancel", `{"reason":"r"}`).wants(t, 200) },
			"cancelling": func(g graph) {
				w.take(t, "a")
				w.post(t, g.path+"/cancel", `{"reason":"r","policy":"cancel_pending"}`).wants(t, 202)
			},
		} {
			g := w.flow(t, growing(nodes("a", "b")))
			alone := w.fresh(t, g.id)
			w.submit(t, `{"kind":"alone","execution_id":"`+alone+`"}`)
			make(g)
			before := w.flowIs(t, g, fields{"state": state})
			for _, body := range []string{more(nodes("c")), more(edge("a", "b")), `{"members":[{"execution_id":"` + alone + `","name":"c"}]}`, `{"seal":true}`} {
				w.extend(t, g, body).refuses(t, 409, "flow_already_terminal")
			}
			w.post(t, g.path+"/seal", "").refuses(t, 409, "flow_already_terminal")
			if after := w.flowIs(t, g, fields{"state": state}); string(after.body) != string(before.body) {
				t.Errorf("%s\nwas %s", after.body, before.body)
			}
			w.state(t, alone, fields{"status": "ready", "flow_id": nil})
			if state == "cancelling" {
				continue
			}
			again := w.post(t, at(g.member(t, "a"))+"/replay", `{"reason":"again"}`)
			if state == "cancelled" {
				again.refuses(t, 409, "flow_already_terminal")
				w.flowIs(t, g, fields{"state": "cancelled"})
				continue
			}
			again.wants(t, 200)
			w.flowIs(t, g, fields{"state": "open", "sealed": true, "ended_at": nil})
			w.post(t, g.path+"/cancel", `{"reason":"done"}`).wants(t, 200)
		}
	})
}
