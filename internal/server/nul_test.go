package server_test

import (
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/internal/transport"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// parameter is a query parameter of a request type.
type parameter struct {
	name  string // as in the query; that of a map ends in a dot
	index []int
	kind  reflect.Type
}

// queriesOf lists the query parameters of a request.
func queriesOf(request reflect.Type) (all []parameter) {
	for _, field := range reflect.VisibleFields(request) {
		if name, _, _ := strings.Cut(field.Tag.Get("query"), ","); name != "" && !field.Anonymous {
			all = append(all, parameter{name, field.Index, field.Type})
		}
	}
	return all
}

// reads are the operations that only read, with the parameters that they have.
func reads() (all []*wire.Operation) {
	for _, op := range wire.Operations() {
		if op.Method == http.MethodGet && !op.Reserved && op.Request != nil && op.Request.Kind() == reflect.Struct {
			all = append(all, op)
		}
	}
	return all
}

// noTexts are texts that no name, key or id has, as a query has them. A tag may have any UTF-8 as its value, NUL included.
var noTexts = map[string]string{"%00": "\x00", "a%00b": "a\x00b", "%FF": "\xff", "%ED%A0%80": "\xed\xa0\x80"}

// things are what the paths of reads name, in a world that has one of each.
func things(t *testing.T, w *world) *strings.Replacer {
	t.Helper()
	execution := w.post(t, "/v1/executions", `{"kind":"k","tags":{"a":"b"}}`).wants(t, 201).text(t, "execution_id")
	flow := w.post(t, "/v1/flows", `{"kind":"k","nodes":[{"name":"a","kind":"k"}]}`).wants(t, 201).text(t, "flow_id")
	job := w.post(t, "/v1/bulk", `{"action":"hold","ids":["`+execution+`"],"reason":"r"}`).wants(t, 202).text(t, "job_id")
	budget := w.post(t, "/v1/budgets", `{"name":"b","scope":{"type":"namespace"},"dimensions":{"tokens":{"hard":1}}}`).wants(t, 201).text(t, "budget_id")
	w.post(t, "/v1/workers", `{"worker_id":"w","worker_instance_id":"i","lanes":["default"],"max_concurrent":1}`).wants(t, 200)
	return strings.NewReplacer(
		"/v1/executions/{id}", "/v1/executions/"+execution, "/v1/flows/{id}", "/v1/flows/"+flow, "/v1/bulk/{id}", "/v1/bulk/"+job,
		"/v1/budgets/{id}", "/v1/budgets/"+budget, "{instance}", "i", "{lane}", "default", "{name}", "a", "{n}", "0",
	)
}

// A text that no name has is refused with a code, whatever parameter of whatever read has it: a store that cannot compare with it is not asked.
func TestU11_a_parameter_of_a_read_that_is_no_text_is_refused_with_a_code(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		fill := things(t, w)
		asked := 0
		for _, op := range reads() {
			for _, p := range queriesOf(op.Request) {
				name := p.name
				if strings.HasSuffix(name, ".") {
					name += "a"
				}
				for text, plain := range noTexts {
					asked++
					path := fill.Replace(op.Path) + "?" + name + "=" + text
					got := w.get(t, path)
					legal := name != p.name && strings.Contains(plain, "\x00")
					if got.status >= 500 || got.status < 400 && !legal || got.status >= 400 && !hasCode(got) {
						t.Errorf("%s: %d %s", path, got.status, got.body)
					}
				}
			}
		}
		if asked < 400 {
			t.Errorf("only %d questions were asked", asked)
		}
		for _, path := range []string{"/v1/executions", "/v1/executions/count", "/v1/executions/export"} {
			for _, name := range []string{"lane", "kind", "creator", "idempotency_key", "worker_instance_id", "q"} {
				w.get(t, path+"?"+name+"=%00").refuses(t, 400, "invalid_filter")
			}
		}
	})
}

// hasCode reports whether an answer is a problem with a code. The pages of links are for people.
func hasCode(r reply) bool {
	var problem struct {
		Code string `json:"code"`
	}
	return strings.HasPrefix(r.header.Get("Content-Type"), "text/html") || json.Unmarshal(r.body, &problem) == nil && problem.Code != ""
}

// The same holds for names in paths, of whatever operation.
func TestU11_a_name_in_a_path_that_is_no_text_is_no_internal_error(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		fill := things(t, w)
		for _, op := range wire.Operations() {
			if !strings.Contains(op.Path, "{") || op.Reserved {
				continue
			}
			for text := range noTexts {
				parts := strings.Split(fill.Replace(op.Path), "/")
				for i, part := range strings.Split(op.Path, "/") {
					if !strings.HasPrefix(part, "{") {
						continue
					}
					some := slices.Clone(parts)
					some[i] = text
					got := w.send(t, request{method: op.Method, path: strings.Join(some, "/")})
					if got.status >= 500 || got.status < 400 || !hasCode(got) {
						t.Errorf("%s %s: %d %s", op.Method, strings.Join(some, "/"), got.status, got.body)
					}
				}
			}
		}
	})
}

// wholeLists are the reads whose Go calls return all there is: only the server cuts them into pages, and reads their cursors.
var wholeLists = []string{"list_attempts", "list_steps", "list_children", "list_worker_leases"}

// A client in this process has no query, and meets the same refusals.
func TestU11_a_client_in_this_process_is_refused_the_same_texts(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		fill := things(t, w)
		asked := 0
		for _, op := range reads() {
			for _, p := range queriesOf(op.Request) {
				for _, text := range noTexts {
					request, legal := withText(op, p, text, fill)
					if !request.IsValid() || op.Raw || p.name == "cursor" && slices.Contains(wholeLists, op.ID) {
						continue
					}
					err := w.Connection().Do(t.Context(), op, request.Interface(), reflect.New(op.Answer).Interface(), transport.Options{})
					if err != nil && strings.Contains(err.Error(), "no handler does") {
						continue // the server answers it by itself
					}
					asked++
					if code := flowfabric.CodeOf(err); code == "internal" || err == nil && !legal || err != nil && code == "" {
						t.Errorf("%s with %s = %q: %v", op.ID, p.name, text, err)
					}
				}
			}
		}
		if asked < 100 {
			t.Errorf("only %d questions were asked", asked)
		}
	})
}

// withText is a request of an operation with a text in one of its parameters, invalid when that one is no text, or a word that Go code cannot
// choose. legal reports whether the parameter may have it.
func withText(op *wire.Operation, p parameter, text string, fill *strings.Replacer) (request reflect.Value, legal bool) {
	request = reflect.New(op.Request)
	filled := strings.Split(fill.Replace(op.Path), "/")
	for i, part := range strings.Split(op.Path, "/") {
		for _, field := range reflect.VisibleFields(op.Request) {
			if part == "{"+field.Tag.Get("path")+"}" && field.Type.Kind() == reflect.String {
				request.Elem().FieldByIndex(field.Index).SetString(filled[i])
			}
		}
	}
	field := request.Elem().FieldByIndex(p.index)
	switch {
	case p.kind == reflect.TypeFor[string]():
		field.SetString(text)
	case p.kind == reflect.TypeFor[[]string]():
		field.Set(reflect.ValueOf([]string{text}))
	case p.kind.Kind() == reflect.Map:
		field.Set(reflect.ValueOf(map[string]*string{"a": &text}))
		return request, strings.Contains(text, "\x00")
	default:
		return reflect.Value{}, false
	}
	return request, false
}
