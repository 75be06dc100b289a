package docs

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const document = "internal/server/testdata/openapi.json"

func TestU263_every_block_of_json_validates_against_the_openapi_document(t *testing.T) {
	t.Parallel()
	holds(t, checkJSON)
}

func TestU263_json_that_does_not_validate_is_found(t *testing.T) {
	t.Parallel()
	planted{
		{"```json Submission\n{\"kind\": \"mail\", \"input\": {\"to\": \"ana\"}}\n```\n", ""},
		{"```json Submission\n{\"kimd\": \"mail\"}\n```\n", "page.md:2"},
		{"```json Submission\n{\"kind\": 7}\n```\n", "page.md:2"},
		{"```json Submission\n{\"kind\": \n```\n", "no JSON"},
		{"```json Submision\n{}\n```\n", "no schema Submision"},
		{"```json\n{}\n```\n", "names no schema"},
	}.finds(t, checkJSON)
}

// schemas are those of the OpenAPI document.
var schemas = sync.OnceValues(func() (*jsonschema.Compiler, error) {
	text, err := os.ReadFile(filepath.Join(root, document))
	if err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	return c, c.AddResource("openapi.json", doc)
})

// compiling guards the compiler, which is for one goroutine.
var compiling sync.Mutex

// checkJSON wants the name of a schema behind the fence, and JSON that it allows.
func checkJSON(p page) (faults []string) {
	compiling.Lock()
	defer compiling.Unlock()
	for _, b := range p.blocks {
		if b.language != "json" {
			continue
		}
		if err := validate(b); err != nil {
			faults = append(faults, fmt.Sprintf("%s: %v", b, err))
		}
	}
	return faults
}

func validate(b block) error {
	if b.info == "" {
		return fmt.Errorf("the block names no schema, as json Submission does")
	}
	all, err := schemas()
	if err != nil {
		return err
	}
	schema, err := all.Compile("openapi.json#/components/schemas/" + b.info)
	if err != nil {
		return fmt.Errorf("there is no schema %s: %w", b.info, err)
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(b.text))
	if err != nil {
		return fmt.Errorf("this is no JSON: %w", err)
	}
	return schema.Validate(value)
}
