package apitest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// everywhere are the headers that any request may have, whatever its operation.
var everywhere = []string{
	"Accept", "Authorization", "Content-Encoding", "Content-Type", "Expect", "FlowFabric-Namespace", "Forwarded", "Host", "Idempotency-Key", "Origin",
	"Sec-Fetch-Site", "Transfer-Encoding",
}

// CheckPlaces returns the field of a refusal that is no place in a request of the operation (U11): a JSON pointer into its body,
// or a parameter in its path, its query or its headers. Unknown fields have no place. The path is written as in the document.
func (d *Document) CheckPlaces(method, path string, body []byte) error {
	var problem struct {
		fault
		Errors []fault
	}
	if err := json.Unmarshal(body, &problem); err != nil {
		return err
	}
	operation := within(d.root, "paths", path, strings.ToLower(method))
	for _, f := range append(problem.Errors, problem.fault) {
		if f.Field != "" && f.Code != "unknown_field" && !d.hasPlace(operation, f.Field) {
			return fmt.Errorf("%s %s has no %s", method, path, f.Field)
		}
	}
	return nil
}

// checkItems returns the refusal of an item whose field is no place in the item or in the request.
func checkItems(body []byte) error {
	var answer any
	if err := json.Unmarshal(body, &answer); err != nil {
		return err
	}
	return misplaced(answer)
}

func misplaced(part any) error {
	switch v := part.(type) {
	case map[string]any:
		field, _ := v["field"].(string)
		kind, _ := v["type"].(string)
		if field != "" && strings.HasPrefix(kind, "/problems/") && field[0] != '/' && !strings.HasPrefix(field, "header.") {
			return fmt.Errorf("the refusal of an item names no place: %s", field)
		}
		for _, member := range v {
			if err := misplaced(member); err != nil {
				return err
			}
		}
	case []any:
		for _, element := range v {
			if err := misplaced(element); err != nil {
				return err
			}
		}
	}
	return nil
}

type fault struct{ Code, Field string }

func (d *Document) hasPlace(operation any, field string) bool {
	if pointer, ok := strings.CutPrefix(field, "/"); ok {
		content := within(operation, "requestBody", "content", "application/json", "schema")
		return d.reaches(content, strings.Split(pointer, "/"))
	}
	in, name, _ := strings.Cut(field, ".")
	if in == "header" && (slices.Contains(everywhere, name) || strings.HasPrefix(name, "X-Forwarded-")) || field == "query" {
		return true
	}
	parameters, _ := within(operation, "parameters").([]any)
	return slices.ContainsFunc(parameters, func(p any) bool {
		named, _ := within(p, "name").(string)
		isMap := within(p, "schema", "type") == "object" // whose members are parameters
		return within(p, "in") == in && (named == name || isMap && strings.HasPrefix(name, named+"."))
	})
}

// reaches reports whether a value of the schema can have what the pointer leads to.
func (d *Document) reaches(schema any, pointer []string) bool {
	s, ok := schema.(map[string]any)
	if !ok || len(pointer) == 0 {
		return ok
	}
	if to, ok := s["$ref"].(string); ok {
		return d.reaches(within(d.root, strings.Split(strings.TrimPrefix(to, "#/"), "/")...), pointer)
	}
	for _, choice := range []string{"oneOf", "anyOf", "allOf"} {
		all, _ := s[choice].([]any)
		if slices.ContainsFunc(all, func(one any) bool { return d.reaches(one, pointer) }) {
			return true
		}
	}
	name := strings.NewReplacer("~1", "/", "~0", "~").Replace(pointer[0])
	for _, next := range []any{within(s, "properties", name), s["items"], s["additionalProperties"]} {
		if d.reaches(next, pointer[1:]) {
			return true
		}
	}
	open, ok := s["additionalProperties"].(bool) // or any value at all
	return ok && open || len(s) == 0 || s["type"] == nil && s["properties"] == nil && s["oneOf"] == nil && s["anyOf"] == nil && s["allOf"] == nil
}

// within is a part of a document; nil: it is not there.
func within(part any, names ...string) any {
	for _, name := range names {
		object, _ := part.(map[string]any)
		part = object[name]
	}
	return part
}
