package server_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
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
	for _, o := range wire.Operations() {
		described := document.Paths[o.Path][strings.ToLower(o.Method)]
		if described.OperationID != o.ID || strings.Join(described.Roles, " ") != o.Roles.String() || described.Responses["default"] == nil {
			t.Errorf("%s is described as %+v", o.ID, described)
		}
	}
	if listed != len(wire.Operations()) {
		t.Errorf("%d operations are described, %d exist", listed, len(wire.Operations()))
	}
}

func TestU116_the_page_of_the_api_needs_nothing_else(t *testing.T) {
	t.Parallel()
	page := openWorld(t).get(t, "/docs").wants(t, 200)
	text := string(page.body)
	for _, o := range wire.Operations() {
		if !strings.Contains(text, o.Summary) {
			t.Errorf("%s is not on the page", o.ID)
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
