package server

import (
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// The references of the document.
const (
	schemaRefs    = "#/components/schemas/"
	parameterRefs = "#/components/parameters/"
	problemRef    = "#/components/responses/Problem"
)

// openAPI is the document of the whole table (U116).
func openAPI(cfg Config) []byte {
	registry := newSchemas()
	document := &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title: "FlowFabric", Version: "v1",
			Description: "Durable execution. The contract only grows: clients ignore fields that they do not know, and take values of enums that they do not know as text. " +
				"A failed attempt is retried unless the policy of the execution, its worker or its lane says otherwise: " + api.RetrySummary() + ".",
		},
		Components: &huma.Components{
			Schemas:    registry,
			Parameters: commonParameters(),
			Responses: map[string]*huma.Response{"Problem": {
				Description: "A refusal or a failure.",
				Content:     map[string]*huma.MediaType{problemContent: {Schema: registry.Schema(reflect.TypeFor[wire.Problem](), true, "")}},
			}},
			SecuritySchemes: map[string]*huma.SecurityScheme{"key": {Type: "http", Scheme: "bearer", Description: "An API key, ffk_..."}},
		},
	}
	if cfg.PublicURL != "" {
		document.Servers = []*huma.Server{{URL: cfg.PublicURL}}
	}
	var bodies []*huma.Schema
	for _, o := range wire.Operations() {
		if o.Reserved { // nothing is promised about it yet
			continue
		}
		described := describe(o, registry)
		if described.RequestBody != nil {
			for _, media := range described.RequestBody.Content {
				bodies = append(bodies, media.Schema)
			}
		}
		document.AddOperation(described)
		if name := sectionOf(o); !slices.ContainsFunc(document.Tags, func(t *huma.Tag) bool { return t.Name == name }) {
			document.Tags = append(document.Tags, &huma.Tag{Name: name})
		}
	}
	finishSchemas(registry, bodies)
	text, err := json.MarshalIndent(document, "", " ")
	if err != nil {
		panic(err) // types of our own: a test makes the document
	}
	return append(text, '\n')
}

// describe is one operation.
func describe(o *wire.Operation, registry huma.Registry) *huma.Operation {
	described := &huma.Operation{
		OperationID: o.ID, Method: o.Method, Path: o.Path, Summary: o.Summary, Tags: []string{sectionOf(o)},
		Parameters: parametersOf(o, registry), RequestBody: bodyOf(o, registry), Responses: responsesOf(o, registry),
		Extensions: map[string]any{"x-roles": o.Roles.Names()},
	}
	described.Security = []map[string][]string{} // none is needed
	if o.Roles&(wire.Open|wire.Token) == 0 {
		described.Security = []map[string][]string{{"key": {}}}
	}
	for _, name := range commonTo(o) {
		described.Parameters = append(described.Parameters, &huma.Param{Ref: parameterRefs + name})
	}
	return described
}

// commonParameters are the headers that any request may have.
func commonParameters() map[string]*huma.Param {
	text := func(f form, needed bool) *huma.Schema {
		s := &huma.Schema{Type: huma.TypeString}
		f.limit(s, needed)
		return s
	}
	return map[string]*huma.Param{
		"Namespace":         {Name: wire.HeaderNamespace, In: "header", Schema: text(nameForm, false), Description: "The namespace that is meant, for keys of several."},
		"RequestId":         {Name: wire.HeaderRequestID, In: "header", Schema: text(anyForm, false), Description: "Stands in answers, logs and audit rows; made by the server if absent, or not of 1 to 128 printable characters."},
		"IdempotencyKey":    {Name: wire.HeaderIdempotencyKey, In: "header", Schema: text(kindForm, true), Description: "The same request with the same key does nothing twice."},
		"IdempotencyRepeat": {Name: wire.HeaderRepeat, In: "header", Schema: text(anyForm, false), Description: "true: the request was sent before with the same key. If it is answered with nothing, so are those before it, wherever they wait."},
		"IfNoneMatch":       {Name: "If-None-Match", In: "header", Schema: &huma.Schema{Type: huma.TypeString}, Description: "ETag of the answer that the caller has."},
	}
}

func commonTo(o *wire.Operation) []string {
	names := []string{"RequestId"}
	if o.Roles&(wire.Open|wire.Token) == 0 {
		names = append(names, "Namespace")
	}
	if o.Method != http.MethodGet {
		names = append(names, "IdempotencyKey")
	}
	if o == wire.ClaimWork.Operation || o == wire.GrantWork.Operation {
		names = append(names, "IdempotencyRepeat")
	}
	if showsOneObject(o) {
		names = append(names, "IfNoneMatch")
	}
	return names
}

// parametersOf are the fields of a request outside its body.
func parametersOf(o *wire.Operation, registry huma.Registry) []*huma.Param {
	var all []*huma.Param
	for _, f := range requestFields(o.Request) {
		in, name := placeOf(f)
		if in == "" {
			continue
		}
		schema := huma.SchemaFromField(registry, f, "")
		param := &huma.Param{Name: name, In: in, Description: f.Tag.Get("doc"), Required: in == "path" || f.Tag.Get("required") == "true", Schema: schema}
		schema.Description, schema.Nullable = "", false
		explode := strings.HasSuffix(name, ".")
		switch {
		case f.Type == reflect.TypeFor[wire.LeaseRef]():
			param.Schema = &huma.Schema{Type: huma.TypeString}
			fenceForm.limit(param.Schema, false)
		case explode: // tag.<key>=<value>: an object whose members are parameters
			schema.Extensions = map[string]any{"propertyNames": map[string]any{"pattern": "^" + strings.ReplaceAll(name, ".", `\.`) + tagForm.pattern + "$", "maxLength": len(name) + tagForm.longest}}
			param.Name, param.Style, param.Explode = strings.TrimSuffix(name, "."), "form", &explode
		case f.Type == reflect.TypeFor[[]string]():
			param.Style, param.Explode = "form", &explode
		}
		limitParameter(o, in, name, param.Schema)
		all = append(all, param)
	}
	return all
}

// requestFields are the fields of a request, those of embedded structs included.
func requestFields(t reflect.Type) []reflect.StructField {
	return slices.DeleteFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool { return f.Anonymous })
}

func placeOf(f reflect.StructField) (in, name string) {
	for _, in := range []string{"path", "query", "header"} {
		if name := f.Tag.Get(in); name != "" {
			return in, name
		}
	}
	return "", ""
}

// bodyMaps are the bodies that are maps, by operation: their names in mapForms.
var bodyMaps = map[string]string{wire.PatchTags.ID: tagChanges, wire.PatchFlowTags.ID: tagChanges, wire.PutFlowTags.ID: "tags"}

// bodyOf is the body of a request; nil when it has none.
func bodyOf(o *wire.Operation, registry huma.Registry) *huma.RequestBody {
	body := &huma.RequestBody{Content: map[string]*huma.MediaType{}}
	for _, f := range requestFields(o.Request) {
		switch {
		case f.Name == "Body" && len(f.Index) == 1:
			schema := registry.Schema(f.Type, true, o.Request.Name()+"Body")
			body.Content["application/json"] = &huma.MediaType{Schema: schema}
			mapForms[bodyMaps[o.ID]].limit(schema, false)
			if target := registry.SchemaFromRef(schema.Ref); target != nil {
				body.Required = len(target.Required) > 0
			}
		case f.Type == reflect.TypeFor[wire.Raw]():
			body.Content[f.Tag.Get("accept")] = &huma.MediaType{Schema: &huma.Schema{Description: f.Tag.Get("doc")}}
		}
	}
	if len(body.Content) == 0 {
		return nil
	}
	return body
}

// rawContents are the content types of answers that are no JSON document.
var rawContents = map[string]string{
	wire.ExportExecutions.ID: linesContent,
	wire.GetMetrics.ID:       "text/plain",
	wire.GetOpenAPI.ID:       "application/json",
	wire.GetDocs.ID:          "text/html",
	wire.GetProblem.ID:       "text/html",
	wire.MakeBackup.ID:       wire.ContentBytes,
}

// responsesOf are the answers: those of success, and the problem.
func responsesOf(o *wire.Operation, registry huma.Registry) map[string]*huma.Response {
	all := map[string]*huma.Response{"default": {Ref: problemRef}}
	if hasPage(o) {
		all["default"] = &huma.Response{Description: "A refusal or a failure.", Content: map[string]*huma.MediaType{
			problemContent: {Schema: registry.Schema(reflect.TypeFor[wire.Problem](), true, "")}, "text/html": pageContent(),
		}}
	}
	for _, status := range o.Status {
		response := &huma.Response{Description: http.StatusText(status)}
		if status != http.StatusNoContent {
			response.Content = contentOf(o, registry)
		}
		all[strconv.Itoa(status)] = response
	}
	switch {
	case showsOneObject(o):
		all["304"] = &huma.Response{Description: "The caller has this answer already."}
	case o.ID == wire.GetReadiness.ID:
		all["503"] = &huma.Response{Description: "The server cannot serve.", Content: contentOf(o, registry)}
	}
	return all
}

// hasPage reports whether browsers get a page in place of JSON, whatever the answer is.
func hasPage(o *wire.Operation) bool { return o.ID == wire.OpenLink.ID || o.ID == wire.DecideLink.ID }

func pageContent() *huma.MediaType {
	return &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString, Description: "For browsers: the page of the link."}}
}

func contentOf(o *wire.Operation, registry huma.Registry) map[string]*huma.MediaType {
	if o.Raw {
		contentType := rawContents[o.ID]
		if contentType == "" {
			contentType = "*/*"
		}
		return map[string]*huma.MediaType{contentType: {Schema: &huma.Schema{}}}
	}
	content := map[string]*huma.MediaType{"application/json": {Schema: answerSchema(o, registry)}}
	if o.Streams {
		content[eventContent] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString, Description: "Server-sent events: id is the cursor, event the kind, data the event as JSON."}}
	}
	if hasPage(o) {
		content["text/html"] = pageContent()
	}
	if o.ID == wire.SubmitExecutions.ID {
		content[linesContent] = &huma.MediaType{Schema: &huma.Schema{Description: "For NDJSON: the answer to an item a line."}}
	}
	return content
}

// answerSchema returns the schema of an answer. Some answers have fewer fields in some cases.
func answerSchema(o *wire.Operation, registry huma.Registry) *huma.Schema {
	schema := registry.Schema(o.Answer, true, "")
	less := map[string]reflect.Type{
		wire.ListExecutions.ID:  reflect.TypeFor[wire.Page[wire.ExecutionID]](), // view=ids
		wire.SubmitExecution.ID: reflect.TypeFor[submitItem](),                  // a duplicate of which nothing is left
		wire.SubmitFlow.ID:      reflect.TypeFor[wire.FlowChecked](),            // a dry run
		wire.GetSuspension.ID:   reflect.TypeFor[wire.NoSuspension](),           // of what never waited
	}[o.ID]
	if less == nil {
		return schema
	}
	return &huma.Schema{AnyOf: []*huma.Schema{schema, registry.Schema(less, true, "")}}
}
