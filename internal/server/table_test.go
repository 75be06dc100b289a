package server_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/server"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func TestU2_every_operation_of_the_table_is_served(t *testing.T) {
	t.Parallel()
	if missing := openWorld(t).server.Unserved(); len(missing) > 0 {
		t.Errorf("without a handler: %v", missing)
	}
}

// somePath fills the parameters of a path with things that may exist.
func somePath(o *wire.Operation, execution string) string {
	id := execution
	switch {
	case strings.HasPrefix(o.Path, "/v1/bulk"):
		id = "0198f0a0-0000-7000-8000-000000000000"
	case strings.HasPrefix(o.Path, "/v1/api-keys"):
		id = "aaaaaaaaaaaa"
	}
	return strings.NewReplacer("{id}", id, "{lane}", "default", "{instance}", "w-1", "{name}", "default", "{edge}", "0198f0a0-0000-7000-8000-000000000003", "{code}", "internal", "{n}", "0",
		"{waitpoint}", "0198f0a0-0000-7000-8000-000000000001", "{link}", "0198f0a0-0000-7000-8000-000000000002").Replace(o.Path)
}

// hasBody reports whether the request of an operation has a JSON body with named fields, and whether it takes other content too.
func hasBody(o *wire.Operation) (body, raw bool) {
	for i := range o.Request.NumField() {
		f := o.Request.Field(i)
		body = body || f.Name == "Body"
		raw = raw || f.Name == "Raw"
	}
	return body && !takesMap(o), raw
}

// takesMap reports whether the body of an operation is a map of tags, whose names are the caller's.
func takesMap(o *wire.Operation) bool {
	return o.ID == wire.PatchTags.ID || o.ID == wire.PatchFlowTags.ID || o.ID == wire.PutFlowTags.ID
}

// count is how many events there are: what a refused request must not change.
func (w *world) count(t *testing.T) int {
	t.Helper()
	n := 0
	for after := api.FromStart; ; {
		page, err := w.Events().Read(t.Context(), ops.ReadOptions{After: after, Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		n += len(page.Events)
		if page.AtEnd {
			return n
		}
		after = page.Next
	}
}

func TestU5_a_request_that_cannot_be_read_is_refused_on_every_route_and_changes_nothing(t *testing.T) {
	t.Parallel()
	w := openWorld(t)
	id := w.submitted(t)
	before := w.count(t)
	for _, o := range wire.Operations() {
		if o.Reserved || o.ID == wire.DrainServer.ID || o.Roles == wire.Token { // a token is judged before the rest of its request
			continue
		}
		path, separator := somePath(o, id), "?"
		if o.ID == wire.DrainWorkers.ID || o.ID == wire.UndrainWorkers.ID {
			path, separator = path+"?worker_id=w", "&"
		}
		t.Run(o.ID, func(t *testing.T) {
			refuses := func(what, body, contentType string, status int, code string) {
				t.Helper()
				answer := w.send(t, request{method: o.Method, path: path, body: body, header: map[string]string{"Content-Type": contentType}})
				if answer.status != status || answer.text(t, "code") != code {
					t.Errorf("%s: %d %s, want %d %s", what, answer.status, answer.body, status, code)
				}
			}
			if body, raw := hasBody(o); body {
				refuses("an unknown field", `{"no_such_field":1}`, "application/json", 400, "unknown_field")
				refuses("what is no JSON", `{"a":`, "application/json", 400, "invalid_json")
				refuses("a field given twice", `{"a":1,"a":2}`, "application/json", 400, "invalid_json")
				if !raw {
					refuses("another content type", `x`, "text/plain", 415, "unsupported_media_type")
				}
			} else if !takesMap(o) {
				refuses("a body", `{"no_such_field":1}`, "application/json", 400, "unknown_field")
			}
			answer := w.send(t, request{method: o.Method, path: path + separator + "no_such_parameter=1"})
			faults := string(answer.body)
			if answer.status != 400 || !strings.Contains(faults, `"unknown_field"`) || !strings.Contains(faults, "query.no_such_parameter") {
				t.Errorf("an unknown parameter: %d %s", answer.status, answer.body)
			}
		})
	}
	if after := w.count(t); after != before {
		t.Errorf("%d events were written by refused requests", after-before)
	}
}

func TestU20_a_body_over_the_limit_of_its_route_is_refused_before_it_is_read(t *testing.T) {
	t.Parallel()
	w := openWorld(t)
	for _, o := range wire.Operations() {
		if o.Reserved || o.Method == http.MethodGet || o.Roles == wire.Token {
			continue
		}
		limit := w.server.BodyLimit(o.ID)
		if limit > 96<<20 {
			t.Errorf("%s reads %d bytes", o.ID, limit)
		}
		r := httptest.NewRequest(o.Method, "http://localhost"+somePath(o, "0198f0a0-0000-7000-8000-000000000000"), unreadable{t})
		r.Header.Set("Content-Type", "application/json")
		r.ContentLength = limit + 1
		recorder := httptest.NewRecorder()
		w.server.Handler().ServeHTTP(recorder, r)
		answer := reply{recorder.Code, recorder.Header(), recorder.Body.Bytes()}
		if got := int64(answer.refuses(t, 413, "payload_too_large").number(t, "current.limit")); got != limit {
			t.Errorf("%s: the limit is shown as %d, not %d", o.ID, got, limit)
		}
	}
}

// unreadable is a body that must not be read.
type unreadable struct{ t *testing.T }

func (u unreadable) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, http.ErrBodyNotAllowed
}

func TestU20_a_body_without_a_length_is_cut_off_at_the_limit(t *testing.T) {
	t.Parallel()
	w := openWorld(t)
	r := httptest.NewRequest(http.MethodPost, "http://localhost/v1/nudge", strings.NewReader(`{"lanes":["`+strings.Repeat("x", 64<<10)+`"]}`))
	r.ContentLength = -1
	recorder := httptest.NewRecorder()
	w.server.Handler().ServeHTTP(recorder, r)
	answer := reply{recorder.Code, recorder.Header(), recorder.Body.Bytes()}
	answer.refuses(t, 413, "payload_too_large")
	if answer.number(t, "current.limit") != 64<<10 || answer.field(t, "retryable") != false {
		t.Errorf("%s", answer.body)
	}
}

func TestU23_a_wrong_method_is_refused_and_the_answer_lists_the_right_ones(t *testing.T) {
	t.Parallel()
	w := openWorld(t)
	methods := []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"}
	byPath := map[string][]string{}
	for _, o := range wire.Operations() {
		byPath[o.Path] = append(byPath[o.Path], o.Method)
		if o.Method == http.MethodGet {
			byPath[o.Path] = append(byPath[o.Path], http.MethodHead)
		}
	}
	for path, allowed := range byPath {
		asked := somePath(&wire.Operation{Path: path}, "0198f0a0-0000-7000-8000-000000000000")
		slices.Sort(allowed)
		for _, method := range methods {
			if slices.Contains(allowed, method) {
				continue
			}
			answer := w.send(t, request{method: method, path: asked})
			if answer.status != 405 || method != "HEAD" && answer.text(t, "code") != "method_not_allowed" {
				t.Errorf("%s %s: %d %s", method, path, answer.status, answer.body)
			}
			told := strings.Split(answer.header.Get("Allow"), ", ")
			if slices.Sort(told); !slices.Equal(told, allowed) {
				t.Errorf("%s %s: Allow %v, want %v", method, path, told, allowed)
			}
		}
	}
}

func TestU23_a_name_in_the_table_is_never_the_value_of_a_parameter(t *testing.T) {
	t.Parallel()
	w := openWorld(t)
	methods := map[string][]string{}
	for _, o := range wire.Operations() {
		methods[o.Path] = append(methods[o.Path], o.Method)
	}
	// What is new here is taken from the values of a parameter: is there none that it could be?
	want := []string{"/v1/executions/bulk", "/v1/executions/count", "/v1/executions/export", "/v1/workers/drain", "/v1/workers/undrain"}
	var found []string
	for literal, own := range methods {
		for pattern, others := range methods {
			if literal == pattern || !isValueOf(pattern, literal) {
				continue
			}
			found = append(found, literal)
			path := somePath(&wire.Operation{Path: literal}, "x")
			last := len(path) - 1
			for _, method := range others {
				if slices.Contains(own, method) {
					continue
				}
				for _, asked := range []string{path, path + "/", path[:last] + fmt.Sprintf("%%%02x", path[last])} {
					answer := w.send(t, request{method: method, path: asked}).refuses(t, 405, "method_not_allowed")
					if allow := strings.Split(strings.Replace(answer.header.Get("Allow"), "GET, HEAD", "GET", 1), ", "); !slices.Equal(allow, own) {
						t.Errorf("%s %s: Allow %v, want %v", method, asked, allow, own)
					}
				}
			}
		}
	}
	if slices.Sort(found); !slices.Equal(found, want) {
		t.Errorf("names beside a parameter: %v, want %v", found, want)
	}
}

// isValueOf reports whether a path is one of those of a pattern, some of whose parameters are names in it.
func isValueOf(pattern, path string) bool {
	a, b := strings.Split(pattern, "/"), strings.Split(path, "/")
	named := false
	return slices.EqualFunc(a, b, func(p, segment string) bool {
		parameter := strings.HasPrefix(p, "{")
		named = named || parameter && !strings.HasPrefix(segment, "{")
		return p == segment || parameter
	}) && named
}

func TestU23_an_unknown_path_is_refused_with_the_nearest_as_hint(t *testing.T) {
	t.Parallel()
	w := openWorld(t)
	for path, nearest := range map[string]string{
		"/v1/execution":              "/v1/executions",
		"/v1/executions/x/complet":   "/v1/executions/{id}/complete",
		"/v2/lanes":                  "/v1/lanes",
		"/health":                    "/healthz",
		"//v1/lanes":                 "/v1/lanes",
		"/v1/executions/../lanes/xx": "/v1/lanes/{lane}",
	} {
		answer := w.get(t, path).refuses(t, 404, "route_not_found")
		if hint := answer.text(t, "hint"); !strings.HasSuffix(hint, " "+nearest) && path[1] != '/' && !strings.Contains(path, "..") {
			t.Errorf("%s: %s, want %s", path, hint, nearest)
		}
	}
}

func TestU116_a_browser_that_opens_the_address_of_the_server_sees_a_page(t *testing.T) {
	t.Parallel()
	w := openWorld(t)
	browser := map[string]string{"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
	for _, method := range []string{"GET", "HEAD"} { // the client follows the redirect
		if found := w.send(t, request{method: method, path: "/", header: browser}); found.status != 200 || !strings.HasPrefix(found.header.Get("Content-Type"), "text/html") {
			t.Errorf("%s: %d %s", method, found.status, found.header.Get("Content-Type"))
		}
	}
	// Programs, other paths and other methods get problems as before.
	w.get(t, "/").refuses(t, 404, "route_not_found")
	w.send(t, request{method: "GET", path: "/v1/nowhere", header: browser}).refuses(t, 404, "route_not_found")
	w.send(t, request{method: "POST", path: "/", header: browser}).refuses(t, 404, "route_not_found")
}

func TestU23_a_trailing_slash_means_nothing_and_head_works_where_get_does(t *testing.T) {
	t.Parallel()
	w := openWorld(t)
	id := w.submitted(t)
	w.get(t, "/v1/lanes/default/").wants(t, 200)
	w.get(t, "/v1/executions/"+id+"/").wants(t, 200)
	for _, o := range wire.Operations() {
		if o.Method != http.MethodGet || o.Reserved || o.ID == wire.GetMetrics.ID {
			continue
		}
		got := w.get(t, somePath(o, id))
		head := w.send(t, request{method: "HEAD", path: somePath(o, id)})
		if head.status != got.status || len(head.body) > 0 || head.header.Get("Content-Type") != got.header.Get("Content-Type") {
			t.Errorf("%s: HEAD %d %s, GET %d %s", o.ID, head.status, head.header, got.status, got.header)
		}
	}
}

func TestU109_reserved_routes_answer_501(t *testing.T) {
	t.Parallel()
	w := openWorld(t)
	for _, o := range wire.Operations() {
		if o.Reserved {
			w.send(t, request{method: o.Method, path: somePath(o, "x")}).refuses(t, 501, "not_implemented")
		}
	}
}

func TestU25_every_code_has_a_page_that_a_person_can_read(t *testing.T) {
	t.Parallel()
	w := openWorld(t)
	for _, info := range api.Codes() {
		if !server.Explained(info) {
			t.Errorf("it is not said what the class %s means", info.Class)
		}
		answer := w.get(t, "/problems/"+info.Code).wants(t, 200)
		if page := string(answer.body); !strings.Contains(page, info.Code) || !strings.Contains(page, fmt.Sprint(info.Status)) && info.Status != 0 {
			t.Errorf("the page of %s: %s", info.Code, page)
		}
	}
	w.get(t, "/problems/no_such_code").refuses(t, 404, "route_not_found")
}
