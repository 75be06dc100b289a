package server_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/server"
	"github.com/flowfabric/flowfabric/internal/wire"
)

var update = flag.Bool("update", false, "write the files under testdata anew")

func TestU4_the_openapi_document_changes_only_on_purpose(t *testing.T) {
	t.Parallel()
	golden := filepath.Join("testdata", "openapi.json")
	if *update {
		if err := os.WriteFile(golden, server.Document(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if string(server.Document()) != string(want) {
		t.Errorf("the document is not %s: look at the difference, then run go test ./internal/server -run TestU4 -update", golden)
	}
}

func TestU116_router_and_document_list_the_same_routes(t *testing.T) {
	t.Parallel()
	w := openWorld(t)
	var document struct {
		OpenAPI string
		Paths   map[string]map[string]struct {
			OperationID string   `json:"operationId"`
			Roles       []string `json:"x-roles"`
			Responses   map[string]any
		}
	}
	if err := json.Unmarshal(w.get(t, "/openapi.json").wants(t, 200).body, &document); err != nil {
		t.Fatal(err)
	}
	if document.OpenAPI != "3.1.0" {
		t.Errorf("it is OpenAPI %s", document.OpenAPI)
	}
	listed := 0
	for _, methods := range document.Paths {
		listed += len(methods)
	}
	promised := 0
	for _, o := range wire.Operations() {
		if o.Reserved {
			if document.Paths[o.Path] != nil {
				t.Errorf("%s is reserved and described", o.ID)
			}
			continue
		}
		promised++
		described := document.Paths[o.Path][strings.ToLower(o.Method)]
		if described.OperationID != o.ID || strings.Join(described.Roles, " ") != o.Roles.String() || described.Responses["default"] == nil {
			t.Errorf("%s is described as %+v", o.ID, described)
		}
	}
	if listed != promised {
		t.Errorf("%d operations are described, %d exist", listed, promised)
	}
}

func TestU4_every_operation_is_tagged_by_its_subject(t *testing.T) {
	t.Parallel()
	subjects := map[string]string{ // by the first part of the path behind /v1
		"executions": "Executions", "flows": "Flows", "budgets": "Budgets", "quotas": "Quotas", "keys": "Signing keys", "bulk": "Bulk jobs", "work": "Work",
		"workers": "Workers", "lanes": "Lanes", "namespaces": "Namespaces", "api-keys": "API keys", "events": "Events", "audit": "Audit log", "webhooks": "Webhooks",
		"waitpoints": "Waitpoints and approvals", "links": "Waitpoints and approvals", "suspended": "Waitpoints and approvals",
		"approvals": "Waitpoints and approvals", "callbacks": "Waitpoints and approvals",
		"admin": "Server", "info": "Server", "nudge": "Server", "whoami": "Server",
	}
	var document struct {
		Tags  []struct{ Name string }
		Paths map[string]map[string]struct{ Tags []string }
	}
	if err := json.Unmarshal(server.Document(), &document); err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for path, methods := range document.Paths {
		behind, found := strings.CutPrefix(path, "/v1/")
		if !found {
			continue // pages of the server and of approvals
		}
		noun, _, _ := strings.Cut(behind, "/")
		for method, o := range methods {
			if len(o.Tags) != 1 || subjects[noun] == "" || o.Tags[0] != subjects[noun] {
				t.Errorf("%s %s is tagged %q, want %q", method, path, o.Tags, subjects[noun])
				continue
			}
			used[o.Tags[0]] = true
		}
	}
	for _, tag := range document.Tags {
		delete(used, tag.Name)
	}
	if len(document.Tags) < 15 || len(used) > 0 {
		t.Errorf("the document lists the tags %v; it lacks %v", document.Tags, used)
	}
}

// A generated client sends its key where the document asks for one, and a proxy lets everybody in where it does not.
func TestU116_U119_the_document_asks_for_a_key_where_the_server_does(t *testing.T) {
	t.Parallel()
	var document struct {
		Paths map[string]map[string]struct {
			Security []map[string][]string `json:"security"`
		}
	}
	if err := json.Unmarshal(server.Document(), &document); err != nil {
		t.Fatal(err)
	}
	w := keyedWorld(t, server.Config{})
	for _, o := range wire.Operations() {
		if o.Reserved {
			continue
		}
		asked := document.Paths[o.Path][strings.ToLower(o.Method)].Security
		answer := w.send(t, request{method: o.Method, path: somePath(o, "0198f0a0-0000-7000-8000-000000000000")})
		switch needed := answer.status == 401 && answer.text(t, "code") == "missing_credentials"; {
		case asked == nil:
			t.Errorf("%s: the document does not say whether it needs a key", o.ID)
		case needed != (len(asked) == 1):
			t.Errorf("%s: without a key it is answered with %d, and the document asks for %v", o.ID, answer.status, asked)
		}
	}
}

func TestU116_the_page_of_the_api_needs_nothing_else(t *testing.T) {
	t.Parallel()
	page := openWorld(t).get(t, "/docs").wants(t, 200)
	text := string(page.body)
	for _, o := range wire.Operations() {
		if strings.Contains(text, o.Summary) == o.Reserved {
			t.Errorf("%s, reserved %t: is it on the page?", o.ID, o.Reserved)
		}
	}
	for _, loads := range []string{"<script", "http://", "https://", "<link", "@import", "<img"} {
		if strings.Contains(text, loads) {
			t.Errorf("the page has %s", loads)
		}
	}
	if policy := page.header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") {
		t.Errorf("%s", policy)
	}
}

func TestU116_every_map_of_a_request_has_the_form_of_its_names(t *testing.T) {
	t.Parallel()
	document := parsed(t)
	seen := map[string]bool{}
	for path, methods := range document.Paths {
		for method, operation := range methods {
			for _, media := range operation.RequestBody.Content {
				document.eachMap(media.Schema, method+" "+path, seen, func(at string, s *schema) {
					if s.PropertyNames.Pattern == "" || s.PropertyNames.MaxLength == 0 {
						t.Errorf("%s takes any names", at)
					}
				})
			}
		}
	}
}

func TestB4_the_document_says_that_a_budget_is_not_renamed_to_nothing(t *testing.T) {
	t.Parallel()
	name := parsed(t).Components.Schemas["UpdateBudgetRequestBody"].Properties["name"]
	if name.MinLength != 1 || name.MaxLength != 128 || regexp.MustCompile(name.Pattern).MatchString("") {
		t.Errorf("%+v", name)
	}
}

// schema is what these tests look at in a schema of the document.
type schema struct {
	Ref           string `json:"$ref"`
	Properties    map[string]*schema
	Items         *schema
	AnyOf         []*schema
	Pattern       string
	MinLength     int
	MaxLength     int
	PropertyNames struct {
		Pattern   string
		MaxLength int
	}
	AdditionalProperties json.RawMessage // a schema or a boolean
}

// openAPI is what these tests look at in the document.
type openAPI struct {
	Paths map[string]map[string]struct {
		RequestBody struct {
			Content map[string]struct{ Schema *schema }
		}
	}
	Components struct{ Schemas map[string]*schema }
}

func parsed(t *testing.T) *openAPI {
	t.Helper()
	var document openAPI
	if err := json.Unmarshal(server.Document(), &document); err != nil {
		t.Fatal(err)
	}
	return &document
}

// eachMap calls do for each map in a schema and in those that it refers to, which it notes in seen.
func (d *openAPI) eachMap(s *schema, at string, seen map[string]bool, do func(at string, s *schema)) {
	if s == nil || seen[s.Ref] {
		return
	}
	if s.Ref != "" {
		seen[s.Ref] = true
		d.eachMap(d.Components.Schemas[strings.TrimPrefix(s.Ref, "#/components/schemas/")], s.Ref, seen, do)
	}
	d.eachMap(s.Items, at+"[]", seen, do)
	for name, property := range s.Properties {
		d.eachMap(property, at+"."+name, seen, do)
	}
	for _, one := range s.AnyOf {
		d.eachMap(one, at, seen, do)
	}
	var values schema
	if json.Unmarshal(s.AdditionalProperties, &values) == nil {
		do(at, s)
		d.eachMap(&values, at+".*", seen, do)
	}
}
