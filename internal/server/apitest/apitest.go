// Package apitest compares answers of a server with its OpenAPI document, for tests. It reads the document more strictly than
// clients do: they ignore unknown fields, our own answers must not have any. It does not interpret the answers.
package apitest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Document is an OpenAPI document. It may be asked by many goroutines.
type Document struct {
	root     any        // read-only
	mu       sync.Mutex // the compiler is for one goroutine
	compiler *jsonschema.Compiler
}

const documentURL = "https://example.com/openapi.json"

// Read understands the text of a document.
func Read(text []byte) (*Document, error) {
	var root any
	if err := json.Unmarshal(text, &root); err != nil {
		return nil, err
	}
	closeObjects(root)
	d := &Document{root: root, compiler: jsonschema.NewCompiler()}
	d.compiler.AssertFormat()
	return d, d.compiler.AddResource(documentURL, root)
}

// closeObjects makes the schemas refuse fields that the document does not have.
func closeObjects(part any) {
	switch v := part.(type) {
	case map[string]any:
		if _, ok := v["properties"].(map[string]any); ok && v["type"] == "object" && v["additionalProperties"] == nil {
			v["additionalProperties"] = false
		}
		for _, member := range v {
			closeObjects(member)
		}
	case []any:
		for _, member := range v {
			closeObjects(member)
		}
	}
}

// CheckAnswer returns how the JSON of an answer deviates. The path is written as in the document.
func (d *Document) CheckAnswer(method, path string, status int, body []byte) error {
	return d.check("/paths/"+escape(path)+"/"+strings.ToLower(method)+"/responses/"+strconv.Itoa(status)+"/content/"+escape("application/json")+"/schema", body)
}

// CheckProblem returns how the JSON of a refusal deviates.
func (d *Document) CheckProblem(body []byte) error {
	return d.check("/components/responses/Problem/content/"+escape("application/problem+json")+"/schema", body)
}

// check holds a text against a schema of the document.
func (d *Document) check(pointer string, text []byte) error {
	d.mu.Lock()
	schema, err := d.compiler.Compile(documentURL + "#" + pointer)
	d.mu.Unlock()
	if err != nil {
		return fmt.Errorf("the document does not have %s: %w", pointer, err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err == nil {
		err = schema.Validate(value)
	}
	if err != nil {
		return fmt.Errorf("the answer is not as the document says: %w", err)
	}
	return nil
}

// escape writes a name as a part of a JSON pointer in a URL.
func escape(part string) string {
	return strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(part)
}
