package server_test

import (
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/wire"
)

// lists are the operations that take a limit.
func lists() map[*wire.Operation][]string {
	all := map[*wire.Operation][]string{}
	for _, o := range wire.Operations() {
		var parameters []string
		for _, f := range reflect.VisibleFields(o.Request) {
			if name := f.Tag.Get("query"); name != "" {
				parameters = append(parameters, name)
			}
		}
		if slices.Contains(parameters, "limit") && !o.Reserved {
			all[o] = parameters
		}
	}
	return all
}

func TestU16_an_empty_page_is_refused_for_what_any_other_is(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		for o, parameters := range lists() {
			if o.ID == wire.GetGraph.ID { // a graph has no empty page: a limit of 0 is refused
				continue
			}
			for _, path := range pathsOf(o) {
				w.comparesEmpty(t, path+"?", parameters)
			}
		}
	})
}

// pathsOf are paths of an operation with something that does not exist, and with something that cannot.
func pathsOf(o *wire.Operation) []string {
	return []string{
		somePath(o, "0198f0a0-0000-7000-8000-000000000000"),
		strings.NewReplacer("{id}", "no%20id", "{lane}", "no%20lane", "{instance}", "%00", "{name}", "%00", "{waitpoint}", "no%20id").Replace(o.Path),
	}
}

// comparesEmpty asks for an empty page and for one item, with each parameter in an unusual form.
func (w *world) comparesEmpty(t *testing.T, path string, parameters []string) {
	t.Helper()
	queries := map[string]bool{"": true}
	for _, name := range parameters {
		if strings.HasSuffix(name, ".") {
			name += "k"
		}
		for _, value := range []string{"", "no such thing", "0198f0a0-0000-7000-8000-000000000000", strings.Repeat("x", 300)} {
			if name != "limit" && name != "wait_ms" {
				queries[url.Values{name: {value}}.Encode()+"&"] = true
			}
		}
	}
	for query := range queries {
		one, none := w.get(t, path+query+"limit=1"), w.get(t, path+query+"limit=0")
		if none.status != one.status || one.status >= 400 && none.text(t, "code") != one.text(t, "code") {
			t.Errorf("%s%s: limit=0 is answered with %d %s, limit=1 with %d %s", path, query, none.status, none.body, one.status, one.body)
		}
		if none.status == 200 && strings.Contains(string(none.body), `"items":[{`) {
			t.Errorf("%s%s: %s", path, query, none.body)
		}
	}
}

// A cursor that was broken into lines on its way is none: an answer would have a second address.
func TestU16_U43_a_cursor_with_a_line_end_inside_is_none(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		for range 2 {
			w.submitted(t)
		}
		w.post(t, "/v1/work/claim", `{"worker_id":"w","worker_instance_id":"w-1","lanes":["default"],"max":2,"wait_ms":20000}`).wants(t, 200)
		eventually(t, "both leases are listed", func() bool {
			return len(w.get(t, "/v1/workers/w-1/leases").wants(t, 200).field(t, "items").([]any)) == 2
		})
		for list, names := range map[string][2]string{
			"/v1/workers/w-1/leases?limit=1": {"cursor", "next_cursor"}, "/v1/executions?limit=1": {"cursor", "next_cursor"}, "/v1/events?limit=1&after=start": {"after", "next"},
		} {
			cursor := w.get(t, list).wants(t, 200).text(t, names[1])
			with := strings.NewReplacer("&after=start", "").Replace(list) + "&" + names[0] + "="
			w.get(t, with+cursor).wants(t, 200)
			for _, end := range []string{"%0A", "%0D"} {
				w.get(t, with+cursor[:5]+end+cursor[5:]).refuses(t, 400, "invalid_cursor")
			}
		}
	})
}
