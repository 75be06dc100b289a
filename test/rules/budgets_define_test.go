package rules

import (
	"fmt"
	"strings"
	"testing"
)

// budgetMost is the largest amount there is, 2^53-1.
const budgetMost = "9007199254740991"

func TestB1_amounts_are_whole_numbers_in_their_range(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.budget(t, "b", `"dimensions":{"input_tokens":{"hard":`+budgetMost+`},"output_tokens":{},"cost_micros":{},"wall_ms":{},"pages":{}}`)
		w.budgetCharge(t, "b", `{"input_tokens":`+budgetMost+`,"output_tokens":0,"cost_micros":1,"pages":7}`, "").wants(t, 200).shows(t, fields{"outcome": "ok", "applied": true})
		for usage, code := range map[string]string{
			`{"pages":9007199254740992}`: "invalid_usage", `{"pages":-1}`: "invalid_usage", `{"pages":1.5}`: "invalid_argument", `{"pages":1e1}`: "invalid_argument",
			`{"pages":"1"}`: "invalid_argument", `{"pages":18446744073709551616}`: "invalid_argument", `{"wall_ms":1}`: "reserved_dimension",
		} {
			w.budgetCharge(t, "b", usage, "").refuses(t, 400, code)
		}
		w.budgetShows(t, "b", fields{
			"dimensions.input_tokens.used": float64(1<<53 - 1), "dimensions.input_tokens.available": 0, "dimensions.output_tokens.used": 0, "dimensions.cost_micros.used": 1,
			"dimensions.pages.used": 7, "dimensions.wall_ms.used": 0, "dimensions.pages.hard": nil, "dimensions.pages.available": nil,
		})
	})
}

func TestB1_a_sum_that_would_leave_64_bits_is_refused_and_nothing_wraps(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.budget(t, "b", `"dimensions":{"pages":{}}`)
		k := w.budgetTask(t, `"budget_ids":["b"]`)
		item := `{"op":"usage","execution_id":"` + k.id + `","lease":"` + k.fence + `","usage":{"pages":` + budgetMost + `}}`
		for _, n := range []int{1000, 24} { // 1024 * (2^53-1) = 2^63-1024
			w.post(t, "/v1/work/batch", `{"items":[`+strings.Repeat(item+",", n-1)+item+`]}`).wants(t, 200).shows(t, fields{"failed": 0})
		}
		full := fields{"dimensions.pages.used": float64(1<<63 - 1024), "dimensions.pages.overrun": 0}
		w.budgetShows(t, "b", full)
		for _, spent := range []string{"", `,"already_spent":true`} {
			w.budgetReport(t, k, `{"pages":1024}`, spent).refuses(t, 400, "amount_out_of_range").shows(t, fields{"field": "/usage/pages"})
			w.budgetCharge(t, "b", `{"pages":1024}`, spent).refuses(t, 400, "amount_out_of_range")
		}
		w.budgetShows(t, "b", full)
		w.budgetReport(t, k, `{"pages":1023}`, "").wants(t, 200)
		for _, path := range []string{"/v1/budgets/b", at(k.id) + "/usage", "/v1/budgets/b/spend"} {
			if got := w.get(t, path).wants(t, 200); !strings.Contains(string(got.body), "9223372036854775807") {
				t.Errorf("%s", got.body)
			}
		}
	})
}

func TestB2_create_is_idempotent_by_name_and_by_id(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		const body = `{"name":"team","dimensions":{"tokens":{"hard":100,"soft":50}}`
		made := w.post(t, "/v1/budgets", body+`}`).wants(t, 201).shows(t, fields{
			"outcome": "created", "namespace": w.namespace, "scope.type": "none", "on_hard": "block_new", "on_lease_loss": "release", "reset.type": "none", "state": "active",
			"approval.timeout_ms": 604_800_000, "approval.timeout_behavior": "fail", "epoch": 1, "revision": 1, "breach_count": 0, "soft_breach_count": 0,
			"next_reset_at": nil, "last_breach": nil, "parent": nil,
		})
		id := made.text(t, "budget_id")
		for _, equal := range []string{
			`}`, `,"budget_id":"` + id + `"}`,
			`,"on_hard":"block_new","on_lease_loss":"release","scope":{"type":"none"},"reset":{"type":"none"},"approval":{"timeout_ms":604800000,"timeout_behavior":"fail"}}`,
		} {
			w.post(t, "/v1/budgets", body+equal).wants(t, 200).shows(t, fields{"outcome": "already_exists", "budget_id": id, "revision": 1})
		}
		other := strings.Replace(body, "team", "other", 1)
		for _, differs := range []string{
			strings.Replace(body, "100", "99", 1) + `}`, body + `,"on_hard":"fail"}`, body + `,"scope":{"type":"namespace"}}`, body + `,"reset":{"type":"calendar","unit":"day"}}`,
			other + `,"budget_id":"` + id + `"}`, body + `,"budget_id":"0190a5d0-ac96-774b-bcce-b302099a8057"}`,
		} {
			w.post(t, "/v1/budgets", differs).refuses(t, 409, "budget_already_exists")
		}
		for _, either := range []string{id, "team"} {
			w.budgetShows(t, either, fields{"budget_id": id, "name": "team", "dimensions.tokens.hard": 100, "revision": 1, "on_hard": "block_new"})
			w.budgetCharge(t, either, `{"tokens":1}`, "").wants(t, 200)
		}
		if got := w.get(t, "/v1/budgets").wants(t, 200).budgetNames(t, "items"); len(got) != 1 {
			t.Errorf("budgets %v", got)
		}
		elsewhere := &world{w.serving, w.namespace + "b", w.leases}
		elsewhere.get(t, "/v1/budgets/"+id).refuses(t, 404, "budget_not_found")
		if elsewhere.budget(t, "team", budgetTokens(7)) == id {
			t.Error("names are those of a namespace")
		}
	})
}

func TestB2_a_definition_that_cannot_be_is_refused_with_its_field(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 65)
	var many strings.Builder
	for i := range 33 {
		fmt.Fprintf(&many, `"d%d":{},`, i)
	}
	const one = `"dimensions":{"tokens":{}}`
	cases := []struct{ name, fields, field string }{
		{"", one, "/name"},
		{strings.Repeat("n", 129), one, "/name"},
		{"a", `"dimensions":{}`, "/dimensions"},
		{"a", `"dimensions":{` + strings.TrimSuffix(many.String(), ",") + `}`, "/dimensions"},
		{"a", `"dimensions":{"` + long + `":{}}`, "/dimensions/" + long},
		{"a", `"dimensions":{"1a":{}}`, "/dimensions/1a"},
		{"a", `"dimensions":{"_a":{}}`, "/dimensions/_a"},
		{"a", `"dimensions":{"a-b":{}}`, "/dimensions/a-b"},
		{"a", `"dimensions":{"tokens":{"hard":0}}`, "/dimensions/tokens/hard"},
		{"a", `"dimensions":{"tokens":{"hard":-1}}`, "/dimensions/tokens/hard"},
		{"a", `"dimensions":{"tokens":{"hard":9007199254740992}}`, "/dimensions/tokens/hard"},
		{"a", `"dimensions":{"tokens":{"soft":0}}`, "/dimensions/tokens/soft"},
		{"a", `"dimensions":{"tokens":{"hard":2,"soft":3}}`, "/dimensions/tokens/soft"},
		{"a", `"dimensions":{"tokens":{"hard":2,"default_reserve":3}}`, "/dimensions/tokens/default_reserve"},
		{"a", `"dimensions":{"tokens":{"default_reserve":-1}}`, "/dimensions/tokens/default_reserve"},
		{"a", one + `,"on_hard":"explode"`, "/on_hard"},
		{"a", one + `,"on_lease_loss":"keep"`, "/on_lease_loss"},
		{"a", one + `,"scope":{"type":"moon"}`, "/scope/type"},
		{"a", one + `,"scope":{"type":"namespace","value":"x"}`, "/scope/value"},
		{"a", one + `,"scope":{"type":"lane"}`, "/scope/value"},
		{"a", one + `,"scope":{"type":"tag","value":"red"}`, "/scope/value"},
		{"a", one + `,"reset":{"type":"interval","every_ms":59999}`, "/reset/every_ms"},
		{"a", one + `,"reset":{"type":"calendar","unit":"year"}`, "/reset/unit"},
		{"a", one + `,"reset":{"type":"calendar","unit":"day","timezone":"Mars/Base"}`, "/reset/timezone"},
		{"a", one + `,"approval":{"timeout_ms":-1}`, "/approval/timeout_ms"},
		{"a", one + `,"approval":{"timeout_behavior":"shrug"}`, "/approval/timeout_behavior"},
		{"a", one + `,"approval":{"default_raise":{"tokens":1}}`, "/approval/default_raise/tokens"},
	}
	onEveryStore(t, func(t *testing.T, w *world) {
		for _, c := range cases {
			w.post(t, "/v1/budgets", `{"name":"`+c.name+`",`+c.fields+`}`).refuses(t, 400, "invalid_budget").shows(t, fields{"field": c.field})
		}
		const missing = "0190a5d0-ac96-774b-bcce-b302099a8057"
		for fields, code := range map[string]string{
			`,"scope":{"type":"flow","value":"` + missing + `"}`:      "flow_not_found",
			`,"scope":{"type":"execution","value":"` + missing + `"}`: "execution_not_found",
			`,"parent":"missing"`: "budget_not_found",
		} {
			w.post(t, "/v1/budgets", `{"name":"a",`+one+fields+`}`).refuses(t, 404, code)
		}
		if all := w.get(t, "/v1/budgets").wants(t, 200); len(all.items(t, "items")) > 0 {
			t.Errorf("%s", all.body)
		}
		w.budget(t, strings.Repeat("n", 128), `"dimensions":{"`+long[1:]+`":{"hard":1,"soft":1,"default_reserve":1}}`)
		w.budget(t, "level1", one)
		for i := 2; i <= 8; i++ {
			w.budget(t, fmt.Sprint("level", i), fmt.Sprintf(`%s,"parent":"level%d"`, one, i-1))
		}
		w.post(t, "/v1/budgets", `{"name":"level9","parent":"level8",`+one+`}`).refuses(t, 400, "invalid_budget").shows(t, fields{"field": "/parent"})
		w.get(t, "/v1/budgets/level9").refuses(t, 404, "budget_not_found")
	})
}
