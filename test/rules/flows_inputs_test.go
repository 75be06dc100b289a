package rules

import (
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/clock"
)

// inputs are the named inputs of a task, by name.
func (k task) inputs(t testing.TB) map[string]map[string]any {
	t.Helper()
	all := map[string]map[string]any{}
	for _, item := range k.items(t, k.of("inputs")) {
		in := item.(map[string]any)
		if _, twice := all[in["name"].(string)]; twice {
			t.Errorf("two inputs are called %v: %s", in["name"], k.body)
		}
		all[in["name"].(string)] = in
	}
	return all
}

// inputIs checks fields of a named input.
func (k task) inputIs(t testing.TB, name string, want fields) {
	t.Helper()
	in, ok := k.inputs(t)[name]
	if !ok {
		t.Fatalf("no input is called %s: %s", name, k.body)
	}
	reply{asked: "input " + name, body: k.body, value: in}.shows(t, want)
}

func TestF33_F34_each_edge_with_pass_gives_a_named_input(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g := w.flow(t, whole(nodes("json", "text", "bytes", "none", "bad", "gone", "silent"), node("end", `"input":{"own":true}`),
			edge("json", "end", `"pass":"j"`), edge("text", "end", `"pass":"t.x_1-2"`), edge("bytes", "end", `"pass":"b"`), edge("none", "end", `"pass":"n"`),
			edge("bad", "end", `"pass":"f","kind":"failure_only"`), edge("gone", "end", `"pass":"g","kind":"any_terminal"`), edge("silent", "end")))
		w.under(t, w.take(t, "json"), "complete", `"result":{"n":7}`).wants(t, 200)
		w.under(t, w.take(t, "text"), "complete", `"result_text":"hi","result_content_type":"text/x-own"`).wants(t, 200)
		w.under(t, w.take(t, "bytes"), "complete", `"result_bytes":"AP8A/w=="`).wants(t, 200)
		w.under(t, w.take(t, "none"), "complete", ``).wants(t, 200)
		w.breaks(t, "bad")
		w.cancel(t, g.member(t, "gone"))
		w.does(t, "silent")
		k := w.take(t, "end")
		k.shows(t, fields{k.of("input.own"): true, k.of("input_content_type"): "application/json"}) // it is what was submitted
		if n := len(k.inputs(t)); n != 6 {
			t.Errorf("%d inputs: %s", n, k.body)
		}
		k.inputIs(t, "j", fields{"from": "json", "execution_id": g.member(t, "json"), "outcome": "succeeded", "present": true, "result.n": 7, "result_content_type": "application/json", "result_size": 7, "failure_reason": nil})
		k.inputIs(t, "t.x_1-2", fields{"from": "text", "present": true, "result_text": "hi", "result_content_type": "text/x-own", "result_size": 2})
		k.inputIs(t, "b", fields{"from": "bytes", "present": true, "result_bytes": "AP8A/w==", "result_content_type": "application/octet-stream", "result_size": 4})
		k.inputIs(t, "n", fields{"from": "none", "outcome": "succeeded", "present": false, "result": nil, "result_bytes": nil, "result_size": 0, "failure_reason": nil})
		k.inputIs(t, "f", fields{"from": "bad", "outcome": "failed", "present": false, "result": nil, "failure_reason": "permanent"})
		k.inputIs(t, "g", fields{"from": "gone", "outcome": "cancelled", "present": false, "failure_reason": "cancelled"})
		for name, want := range map[string]string{"j": `{"n":7}`, "t.x_1-2": "hi", "b": "\x00\xff\x00\xff"} {
			if read := w.get(t, at(k.id)+"/inputs/"+name).wants(t, 200); string(read.body) != want {
				t.Errorf("%s reads as %q", name, read.body)
			}
		}
		w.get(t, at(k.id)+"/inputs/n").wants(t, 204)
		w.get(t, at(k.id)+"/inputs/f").wants(t, 204)
		for _, name := range []string{"silent", "json", "other"} {
			w.get(t, at(k.id)+"/inputs/"+name).refuses(t, 404, "input_not_found")
		}
		if own := w.get(t, at(k.id)+"/input").wants(t, 200); string(own.body) != `{"own":true}` {
			t.Errorf("its own input is %s", own.body)
		}
	})
}

func TestF34_an_impossible_edge_gives_nothing(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.flow(t, whole(nodes("a", "b", "c"), node("end", after("a", "b", "c"), join("quorum", `"k":1`))))
		w.breaks(t, "a")
		w.does(t, "b")
		k := w.take(t, "end")
		k.inputIs(t, "b", fields{"from": "b", "result": "b"})
		if n := len(k.inputs(t)); n != 1 {
			t.Errorf("%d inputs: %s", n, k.body)
		}
	})
}

func TestF35_inputs_are_frozen_when_the_join_is_satisfied_and_all_attempts_see_the_same(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g := w.flow(t, whole(nodes("a", "b", "c"), node("end", after("a", "b", "c"), join("quorum", `"k":2`), `"policy":{"retry_policy":{"max_retries":3,"backoff":{"strategy":"fixed","delay_ms":0}}}`)))
		w.does(t, "b", "a")
		w.does(t, "c") // too late
		for attempt := range 2 {
			k := w.take(t, "end")
			k.shows(t, fields{k.of("attempt.attempt_index"): attempt})
			k.inputIs(t, "a", fields{"result": "a"})
			k.inputIs(t, "b", fields{"result": "b"})
			if n := len(k.inputs(t)); n != 2 {
				t.Errorf("%d inputs: %s", n, k.body)
			}
			w.get(t, at(k.id)+"/inputs/c").refuses(t, 404, "input_not_found")
			if attempt == 0 {
				w.under(t, k, "fail", `"class":"transient","message":"again"`).wants(t, 200).shows(t, fields{"outcome": "retry_scheduled"})
				continue
			}
			w.fail(t, k)
		}
		w.flowEnds(t, g, fields{"state": "failed"})
	})
}

func TestF35_a_replay_that_reopens_the_join_freezes_anew(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g := w.flow(t, whole(nodes("a"), node("b", after("a")), node("c", after("a"))))
		w.complete(t, w.take(t, "a"), `"first"`)
		w.does(t, "b", "c")
		w.flowEnds(t, g, fields{"state": "completed"})
		w.post(t, at(g.member(t, "b"))+"/replay", `{"reason":"again"}`).wants(t, 200)
		k := w.take(t, "b") // its join was not reopened
		k.inputIs(t, "a", fields{"result": "first"})
		w.complete(t, k, `1`)
		w.post(t, at(g.member(t, "a"))+"/replay", `{"reason":"again","cascade":"all"}`).wants(t, 200)
		w.state(t, g.member(t, "c"), fields{"status": "blocked", "run_index": 1})
		w.complete(t, w.take(t, "a"), `"second"`)
		w.take(t, "c").inputIs(t, "a", fields{"result": "second"})
	})
}

func TestF36_names_of_inputs_are_unique_unless_the_first_of_several_counts(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		shared := []string{edge("a", "end", `"pass":"x"`), edge("b", "end", `"pass":"x"`)}
		w.post(t, "/v1/flows", whole(append(shared, nodes("a", "b", "end"))...)).refuses(t, 400, "duplicate_name").shows(t, fields{"field": "/edges/1/pass"})
		g := w.flow(t, growing(nodes("a", "b", "end"), shared[0]))
		w.extend(t, g, more(shared[1])).refuses(t, 400, "duplicate_name").shows(t, fields{"field": "/edges/0/pass"})
		w.flowIs(t, g, fields{"graph_revision": 1, "edge_count": 1})
		w.post(t, g.path+"/cancel?wait_ms=20000", `{"reason":"seen"}`).wants(t, 200)
		for _, policy := range []string{join("any_of"), join("quorum", `"k":2`)} {
			w.flow(t, whole(append(shared, nodes("a", "b"), node("end", policy))...))
			w.does(t, "b", "a")
			k := w.take(t, "end")
			k.inputIs(t, "x", fields{"from": "b", "result": "b"})
			if n := len(k.inputs(t)); n != 1 {
				t.Errorf("%d inputs: %s", n, k.body)
			}
			w.complete(t, k, `1`)
		}
	})
}

func TestF37_inputs_beyond_a_mebibyte_come_as_references(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.flow(t, whole(nodes("a", "b", "c"), node("end", after("a", "b", "c"))))
		size := map[string]int{"a": 700_000, "b": 400_000, "c": 300_000}
		for name, n := range size {
			w.under(t, w.take(t, name), "complete", `"result_text":"`+strings.Repeat(name, n)+`"`).wants(t, 200)
		}
		k := w.take(t, "end")
		inline, omitted := 0, 0
		for name, in := range k.inputs(t) {
			if in["result_size"] != float64(size[name]) || in["present"] != true || in["outcome"] != "succeeded" {
				t.Errorf("%s: size %v, present %v", name, in["result_size"], in["present"])
			}
			if text, here := in["result_text"].(string); here {
				inline += len(text)
			} else if omitted++; in["result_omitted"] != true {
				t.Errorf("%s has no bytes and does not say so", name)
			}
			if read := w.get(t, at(k.id)+"/inputs/"+name).wants(t, 200); string(read.body) != strings.Repeat(name, size[name]) {
				t.Errorf("%s reads as %d bytes", name, len(read.body))
			}
		}
		if inline > 1<<20 || inline < 700_000 || omitted != 1 {
			t.Errorf("%d bytes inline, %d references", inline, omitted)
		}
	})
}

func TestF37_results_that_are_needed_are_kept_and_members_go_together(t *testing.T) {
	t.Parallel()
	atOwnTime(t, func(t *testing.T, w *world, hand *clock.Manual) {
		const brief = `"policy":{"retention_ms":1000}`
		g := w.flow(t, whole(node("a", brief), node("b", brief, after("a"))))
		w.does(t, "a")
		hand.TurnTo(hand.Now().Add(time.Hour))
		w.state(t, g.member(t, "a"), fields{"status": "succeeded", "result": "a"})
		w.send(t, "DELETE", at(g.member(t, "a")), "").refuses(t, 409, "retained")
		k := w.take(t, "b")
		k.inputIs(t, "a", fields{"result": "a", "present": true})
		w.complete(t, k, `1`)
		w.flowIs(t, g, fields{"state": "completed"})
		comes(t, "the flow is removed", func() bool {
			hand.TurnTo(hand.Now().Add(time.Hour))
			return w.get(t, g.path).status == 404
		})
		for _, name := range []string{"a", "b"} {
			comes(t, "its members are removed", func() bool { return w.get(t, at(g.member(t, name))).status == 404 })
		}
	})
}
