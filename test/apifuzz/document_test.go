package apifuzz

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/server/apitest"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// document is the OpenAPI document that a server serves.
type document struct {
	root       map[string]any
	operations []*operation // by path and method
	strict     *apitest.Document
	codes      map[string]api.CodeInfo
}

// operation is what the document says of one method and path.
type operation struct {
	id, method, path string
	parameters       []parameter
	contents         map[string]schema // of the body, by content type; none: it has no body
	answers          map[string]any    // by status
	reserved         bool
}

type parameter struct {
	name, in string
	required bool
	schema   schema
}

// schema is a JSON schema of the document.
type schema = map[string]any

// readDocument understands what GET /openapi.json answers.
func readDocument(t testing.TB, text []byte) *document {
	t.Helper()
	d := &document{codes: map[string]api.CodeInfo{}}
	if err := json.Unmarshal(text, &d.root); err != nil {
		t.Fatal(err)
	}
	paths := d.root["paths"].(map[string]any)
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		methods := paths[path].(map[string]any)
		for _, method := range slices.Sorted(maps.Keys(methods)) {
			d.operations = append(d.operations, d.operation(method, path, methods[method].(map[string]any)))
		}
	}
	for _, info := range api.Codes() {
		d.codes[info.Code] = info
	}
	var err error
	if d.strict, err = apitest.Read(text); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *document) operation(method, path string, described map[string]any) *operation {
	o := &operation{
		id: described["operationId"].(string), method: strings.ToUpper(method), path: path, contents: map[string]schema{},
		answers: described["responses"].(map[string]any),
	}
	o.reserved = slices.ContainsFunc(wire.Operations(), func(row *wire.Operation) bool { return row.ID == o.id && row.Reserved })
	for _, p := range list(described["parameters"]) {
		p := d.resolve(p.(schema))
		required, _ := p["required"].(bool)
		o.parameters = append(o.parameters, parameter{p["name"].(string), p["in"].(string), required, p["schema"].(schema)})
	}
	if body, ok := described["requestBody"].(map[string]any); ok {
		for content, media := range body["content"].(map[string]any) {
			o.contents[content], _ = media.(map[string]any)["schema"].(schema)
		}
	}
	return o
}

// list is a member that is a list; none if it is absent.
func list(member any) []any {
	all, _ := member.([]any)
	return all
}

// resolve follows a reference.
func (d *document) resolve(s schema) schema {
	for {
		ref, ok := s["$ref"].(string)
		if !ok {
			return s
		}
		var at any = d.root
		for part := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
			at = at.(map[string]any)[part]
		}
		s = at.(schema)
	}
}

// takesJSON reports whether the body of an operation is JSON and nothing else.
func (o *operation) takesJSON() bool { return len(o.contents) == 1 && o.contents[jsonContent] != nil }

const (
	jsonContent    = "application/json"
	problemContent = "application/problem+json"
)

// leaks are words that no problem may have: they come from databases and from Go (U11).
var leaks = []string{"SQLSTATE", "sqlite", "SQL logic", "pgx", "json: ", "strconv.", "runtime error", "goroutine", "reflect."}

// conforms tells what is wrong with an answer; "" when it is as the document says. o is nil when the request is for no operation.
func (d *document) conforms(o *operation, method string, a answer) string {
	content, _, _ := strings.Cut(a.header.Get("Content-Type"), ";")
	switch {
	case a.header.Get("X-Request-Id") == "" || a.header.Get("X-Content-Type-Options") != "nosniff" || a.header.Get("Cache-Control") == "":
		return fmt.Sprintf("the headers of every answer are missing: %v", a.header)
	case method == http.MethodHead:
		return ""
	case o != nil && o.id == wire.GetReadiness.ID && content == jsonContent:
		return d.validates(o, a)
	case a.status >= 400 && content == "text/html" && a.header.Get("X-Robots-Tag") == "noindex":
		return "" // the page of an approval link, for people (W73)
	case a.status >= 400:
		return d.isProblem(content, a)
	case o == nil || content != jsonContent || len(a.body) == 0 || o.answers[strconv.Itoa(a.status)] == nil && o.answers["default"] == nil:
		return ""
	case slices.Contains([]string{wire.GetOpenAPI.ID, wire.GetExecutionInput.ID, wire.GetExecutionResult.ID, wire.ReadInput.ID}, o.id):
		return "" // the answer is somebody's bytes, or the document itself
	default:
		return d.validates(o, a)
	}
}

func (d *document) validates(o *operation, a answer) string {
	return complaint(d.strict.CheckAnswer(o.method, o.path, a.status, a.body))
}

// complaint is what is wrong; "": nothing.
func complaint(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// isProblem looks at an answer of 400 and above (U11, U25).
func (d *document) isProblem(content string, a answer) string {
	var p wire.Problem
	if content != problemContent || json.Unmarshal(a.body, &p) != nil {
		return fmt.Sprintf("%d is no problem", a.status)
	}
	info, known := d.codes[p.Code]
	switch {
	case !known:
		return p.Code + " is in no table"
	case info.Status != a.status && a.status != p.Status, info.Class != p.Class, p.RequestID != a.header.Get("X-Request-Id"):
		return fmt.Sprintf("the problem is not that of the table: %+v", info)
	}
	for _, word := range leaks {
		if strings.Contains(p.Detail+p.Hint, word) {
			return "the problem tells of " + word
		}
	}
	return complaint(d.strict.CheckProblem(a.body))
}
