package server_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/wire"
)

// full is the full form of the id of an execution.
func (w *world) full(t *testing.T, id string) string {
	t.Helper()
	return fmt.Sprintf("{fp:%v}:%s", w.get(t, "/v1/executions/"+id).wants(t, 200).field(t, "partition"), id)
}

// idForms are the spellings of the id of something of partition 77, and one that names nothing.
type idForms struct{ bare, full, strange string }

func formsOf(id string) idForms { return idForms{id, "{fp:77}:" + id, "{fp:78}:" + id} }

// graphOf77 submits a flow of partition 77, which no UUID of it computes to, with one member.
func (w *world) graphOf77(t *testing.T, n int) (flow, member idForms) {
	t.Helper()
	uuid := func(i int) string {
		for ; ; i += 1 << 20 {
			if text := fmt.Sprintf("0198f0a0-0000-7000-8000-%012x", i); w.crc(t, text) != 77 {
				return text
			}
		}
	}
	flow, member = formsOf(uuid(2*n+1)), formsOf(uuid(2*n+2))
	made := w.post(t, "/v1/flows", `{"kind":"k","flow_id":"`+flow.full+`","nodes":[{"name":"m","kind":"job","execution_id":"`+member.bare+`"}]}`).wants(t, 201)
	if made.number(t, "partition") != 77 || made.text(t, "flow_id") != flow.bare || made.text(t, "members.m") != member.bare {
		t.Fatalf("%s", made.body)
	}
	return flow, member
}

// crc is the partition of an execution of that id outside a flow.
func (*world) crc(t *testing.T, id string) int {
	t.Helper()
	var crc uint16
	var raw []byte
	if _, err := fmt.Sscanf(strings.ReplaceAll(id, "-", ""), "%x", &raw); err != nil {
		t.Fatal(err)
	}
	for _, b := range raw {
		crc ^= uint16(b) << 8
		for range 8 {
			top := crc&0x8000 != 0
			if crc <<= 1; top {
				crc ^= 0x1021
			}
		}
	}
	return int(crc % 256)
}

// wellFormed are bodies that get a request as far as the lookup of its id.
var wellFormed = map[string]string{
	wire.RetainExecution.ID: `{"reason":"r"}`, wire.SetPriority.ID: `{"priority":1}`, wire.FailExecution.ID: `{"message":"m"}`,
	wire.ClaimResumed.ID: `{"worker_id":"w","worker_instance_id":"i"}`, wire.ReclaimExecution.ID: `{"worker_id":"w","worker_instance_id":"i"}`,
	wire.DelayExecution.ID: `{"delay_ms":1}`, wire.PatchTags.ID: `{"a":"b"}`,
}

var unknownCodes = []string{"execution_not_found", "flow_not_found", "invalid_id"}

func TestL2_U7_every_operation_takes_both_forms_of_an_id_and_shows_the_bare_one(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		reached := 0
		for n, o := range wire.Operations() {
			root, rest, under := strings.Cut(o.Path, "/{id}")
			if !under || root != "/v1/executions" && root != "/v1/flows" {
				continue
			}
			flow, member := w.graphOf77(t, n)
			forms := member
			if root == "/v1/flows" {
				forms = flow
			}
			ask := func(id string) reply {
				path := root + "/" + url.PathEscape(id) + strings.NewReplacer("{n}", "0", "{name}", "s", "{member}", "m", "{edge}", member.bare, "{waitpoint}", member.bare).Replace(rest)
				return w.send(t, request{method: o.Method, path: path, body: wellFormed[o.ID], header: map[string]string{
					"FlowFabric-Lease": member.bare + ".1." + member.bare, "X-Request-Id": "same",
				}})
			}
			strange, full, bare := ask(forms.strange), ask(forms.full), ask(forms.bare)
			for name, answer := range map[string]reply{"bare": bare, "full": full, "strange": strange} {
				if strings.Contains(fmt.Sprint(answer.header), "fp:") || strings.Contains(string(answer.body), "fp:") {
					t.Errorf("%s of the %s form shows %s %s", o.ID, name, answer.header, answer.body)
				}
			}
			if code(strange) != code(ask("0198f0a0-0000-7000-8000-ffffffffffff")) {
				t.Errorf("%s: another N: %d %s", o.ID, strange.status, strange.body)
			}
			if slices.Contains(unknownCodes, code(strange)) {
				reached++
				if slices.Contains(unknownCodes, code(full)) || slices.Contains(unknownCodes, code(bare)) {
					t.Errorf("%s: full: %s\nbare: %s", o.ID, full.body, bare.body)
				}
			}
		}
		if reached < 40 {
			t.Errorf("only %d operations looked for the id", reached)
		}
	})
}

func empty(page reply) bool { return strings.Contains(string(page.body), `"items":[]`) }

// code is that of a refusal; "" of another answer.
func code(r reply) string {
	found := regexp.MustCompile(`"code":"([a-z_]+)"`).FindSubmatch(r.body)
	if r.status < 400 || found == nil {
		return ""
	}
	return string(found[1])
}

func TestU7_W7_filters_and_bodies_take_both_forms_of_an_id(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		flow, member := w.graphOf77(t, 1)
		claimed := w.post(t, "/v1/work/claim", `{"worker_id":"w","worker_instance_id":"i","lanes":["default"]}`).wants(t, 200)
		if claimed.text(t, "tasks.0.execution_id") != member.bare || claimed.number(t, "tasks.0.partition") != 77 {
			t.Fatalf("%s", claimed.body)
		}
		fence := claimed.text(t, "tasks.0.lease.fence")
		w.post(t, "/v1/executions/"+member.bare+"/waitpoints", `{"lease":"`+fence+`","waitpoint_key":"k"}`).wants(t, 201)
		w.post(t, "/v1/executions/"+member.bare+"/hold", `{"reason":"r"}`)
		for path, forms := range map[string]idForms{
			"/v1/executions?flow_id=": flow, "/v1/events?after=start&execution_id=": member, "/v1/events?after=start&flow_id=": flow,
			"/v1/waitpoints?execution_id=": member, "/v1/executions?q=": member,
		} {
			bare, full := w.get(t, path+forms.bare).wants(t, 200), w.get(t, path+url.QueryEscape(forms.full)).wants(t, 200)
			if empty(bare) || fmt.Sprint(bare.field(t, "items")) != fmt.Sprint(full.field(t, "items")) {
				t.Errorf("%s: %s\nfull: %s", path, bare.body, full.body)
			}
			if none := w.get(t, path+url.QueryEscape(forms.strange)); none.status == 200 && !empty(none) {
				t.Errorf("%s with another N: %s", path, none.body)
			}
		}
		batch := func(id string) reply {
			return w.post(t, "/v1/work/batch", `{"items":[{"op":"progress","execution_id":"`+id+`","lease":"`+fence+`","percent":1}]}`).wants(t, 200)
		}
		bulk := func(id string) reply {
			return w.post(t, "/v1/bulk", `{"action":"hold","ids":["`+id+`"],"dry_run":true,"reason":"r"}`).wants(t, 200)
		}
		for _, id := range []string{member.bare, member.full} {
			for name, answer := range map[string]reply{"batch": batch(id), "bulk": bulk(id)} {
				if text := string(answer.body); strings.Contains(text, "fp:") || strings.Contains(text, `"ok":false`) {
					t.Errorf("%s of %s: %s", name, id, text)
				}
			}
		}
		if refused := string(batch(member.strange).body); !strings.Contains(refused, "execution_not_found") || strings.Contains(refused, "fp:") {
			t.Errorf("another N: %s", refused)
		}
	})
}

func TestL2_a_submit_under_an_id_that_is_there_is_its_duplicate_by_the_bare_form_and_a_conflict_by_another_n(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		const uuid = "0198f0a0-0000-7000-8000-00000000beef"
		forms := formsOf(uuid)
		submit := func(id string) reply {
			return w.post(t, "/v1/executions", `{"kind":"job","execution_id":"`+id+`"}`)
		}
		if made := submit(forms.full).wants(t, 201); made.text(t, "execution_id") != uuid || made.header.Get("Location") != "/v1/executions/"+uuid {
			t.Errorf("%s at %s", made.body, made.header.Get("Location"))
		}
		for _, id := range []string{forms.full, forms.bare} {
			if again := submit(id).wants(t, 200); again.text(t, "outcome") != "duplicate" || again.text(t, "execution_id") != uuid {
				t.Errorf("%s: %s", id, again.body)
			}
		}
		submit(forms.strange).refuses(t, 409, "id_conflict")
		w.get(t, "/v1/executions/"+url.PathEscape(forms.strange)).refuses(t, 404, "execution_not_found")
		flow, _ := w.graphOf77(t, 3)
		again := func(id string) reply {
			return w.post(t, "/v1/flows", `{"kind":"k","flow_id":"`+id+`","nodes":[{"name":"m","kind":"job"}]}`)
		}
		again(flow.bare).wants(t, 200)
		again(flow.strange).refuses(t, 409, "flow_already_exists")
	})
}

// signed are the places where the full form is part of what is signed, or is asked for by name.
var signed = regexp.MustCompile(`"grant_key":"pg:\{fp:\d+\}:|"partition_key":"\{fp:\d+\}"`)

func TestL1_U7_no_answer_shows_a_full_form(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		flow, member := w.graphOf77(t, 1)
		_, second := w.graphOf77(t, 2)
		w.post(t, "/v1/executions/"+url.PathEscape(second.full)+"/hold", `{"reason":"r"}`).wants(t, 200)
		w.post(t, "/v1/budgets", `{"name":"b","scope":{"type":"flow","value":"`+flow.full+`"},"dimensions":{"tokens":{"hard":9}}}`).wants(t, 201)
		// It waits: one that does not is answered after 250 ms, also if the follow-up work of the flow holds the row for longer.
		claimed := w.post(t, "/v1/work/claim", `{"worker_id":"w","worker_instance_id":"i","lanes":["default"],"wait_ms":60000}`).wants(t, 200)
		fence := claimed.text(t, "tasks.0.lease.fence")
		spawned := w.post(t, "/v1/executions/"+url.PathEscape(member.full)+"/spawn", `{"lease":"`+fence+`","children":[{"name":"c","kind":"job"}]}`).wants(t, 200)
		usage := w.post(t, "/v1/executions/"+url.PathEscape(member.full)+"/usage", `{"lease":"`+fence+`","usage":{"tokens":1},"dedup_key":"d"}`).wants(t, 200)
		granted := w.post(t, "/v1/work/grants", `{"worker_id":"w","worker_instance_id":"i","lanes":["default"]}`).wants(t, 200)
		job := w.post(t, "/v1/bulk", `{"action":"hold","filter":{"flow_id":["`+flow.full+`"],"q":"`+member.full+`"},"reason":"r"}`)
		answers := map[string]reply{"claim": claimed, "spawn": spawned, "usage": usage, "grant": granted, "bulk": job}
		for _, o := range wire.Operations() {
			if o.Method != http.MethodGet || strings.Contains(o.Path, "backup") {
				continue
			}
			id := "b"
			switch {
			case strings.HasPrefix(o.Path, "/v1/executions"):
				id = member.full
			case strings.HasPrefix(o.Path, "/v1/flows"):
				id = flow.full
			}
			path := strings.NewReplacer("{id}", url.PathEscape(id), "{n}", "0", "{name}", "b", "{member}", "m").Replace(o.Path)
			for _, query := range []string{"", "?view=full", "?after=start", "?after=start&flow_id=" + url.QueryEscape(flow.full)} {
				answers[path+query] = w.get(t, path+query)
			}
		}
		for _, path := range []string{"/v1/executions/export?include=events", "/v1/audit?entity_id=" + url.QueryEscape(second.full), "/v1/budgets/b/spend"} {
			answers[path] = w.get(t, path).wants(t, 200)
		}
		if answers["/v1/audit?entity_id="+url.QueryEscape(second.full)].text(t, "items.0.entity_id") != second.bare {
			t.Errorf("%s", answers["/v1/audit?entity_id="+url.QueryEscape(second.full)].body)
		}
		for _, name := range slices.Sorted(maps.Keys(answers)) {
			if shown := signed.ReplaceAllString(string(answers[name].body), ""); strings.Contains(shown, "fp:") && !strings.Contains(name, "openapi") && !strings.Contains(name, "docs") {
				t.Errorf("%s shows %s", name, shown)
			}
			if strings.Contains(fmt.Sprint(answers[name].header), "fp:") {
				t.Errorf("%s has %s", name, answers[name].header)
			}
		}
	})
}
