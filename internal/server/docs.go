package server

import (
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/flowfabric/flowfabric/internal/wire"
)

// docSection is a part of the page /docs.
type docSection struct {
	Name       string
	Operations []docOperation
}

// docOperation is an operation as a reader sees it.
type docOperation struct {
	Method, Path, Summary, Roles, Answer, Command, Go string
	Parameters, Body                                  []docField
}

// docField is a field of a request.
type docField struct{ Name, In, Text string }

// sections are the headings of the API by the first part of the path.
var sections = []struct{ prefix, name string }{
	{"/v1/executions", "Executions"},
	{"/v1/waitpoints", "Waitpoints and approvals"},
	{"/v1/links", "Waitpoints and approvals"},
	{"/v1/suspended", "Waitpoints and approvals"},
	{"/v1/approvals", "Waitpoints and approvals"},
	{"/v1/callbacks", "Waitpoints and approvals"},
	{"/approve", "Waitpoints and approvals"},
	{"/v1/flows", "Flows"},
	{"/v1/budgets", "Budgets"},
	{"/v1/quotas", "Quotas"},
	{"/v1/keys", "Signing keys"},
	{"/v1/webhooks", "Webhooks"},
	{"/v1/bulk", "Bulk jobs"},
	{"/v1/work/", "Work"},
	{"/v1/workers", "Workers"},
	{"/v1/lanes", "Lanes"},
	{"/v1/namespaces", "Namespaces"},
	{"/v1/api-keys", "API keys"},
	{"/v1/events", "Events"},
	{"/v1/audit", "Audit log"},
}

// sectionOf is the heading of an operation.
func sectionOf(o *wire.Operation) string {
	for _, s := range sections {
		if strings.HasPrefix(o.Path, s.prefix) {
			return s.name
		}
	}
	return "Server"
}

// docSections is the whole table for readers.
func docSections() []docSection {
	var all []docSection
	for _, o := range wire.Operations() {
		if o.Reserved {
			continue
		}
		name := sectionOf(o)
		i := slices.IndexFunc(all, func(s docSection) bool { return s.Name == name })
		if i < 0 {
			i, all = len(all), append(all, docSection{Name: name})
		}
		all[i].Operations = append(all[i].Operations, docOf(o))
	}
	return all
}

func docOf(o *wire.Operation) docOperation {
	doc := docOperation{
		Method: o.Method, Path: o.Path, Summary: o.Summary, Roles: strings.Join(o.Roles.Names(), ", ") + bounds(o),
		Answer: answerText(o), Command: o.Command, Go: o.Go,
	}
	for _, f := range requestFields(o.Request) {
		switch in, name := placeOf(f); {
		case in != "":
			if strings.HasSuffix(name, ".") {
				name += "<key>"
			}
			doc.Parameters = append(doc.Parameters, docField{name, in, f.Tag.Get("doc")})
		case f.Name == "Body" && len(f.Index) == 1 && f.Type.Kind() == reflect.Struct:
			doc.Body = bodyFields(f.Type)
		}
	}
	return doc
}

// bodyFields are the fields of a JSON body.
func bodyFields(t reflect.Type) []docField {
	var all []docField
	for _, f := range requestFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		required := ""
		if f.Tag.Get("required") == "true" {
			required = "required"
		}
		all = append(all, docField{name, required, f.Tag.Get("doc")})
	}
	return all
}

// answerText says what an operation answers when it succeeds.
func answerText(o *wire.Operation) string {
	var texts []string
	for _, status := range o.Status {
		texts = append(texts, strconv.Itoa(status)+" "+http.StatusText(status))
	}
	text := strings.Join(texts, ", ")
	switch {
	case o.Raw:
		text += ": bytes with their own content type"
	case o.Streams:
		text += ": JSON, or server-sent events for Accept: " + eventContent
	}
	if o.Waits {
		text += ". Waits with Prefer: wait=<seconds> or wait_ms"
	}
	return text
}

// titleOf is a code in words.
func titleOf(code string) string {
	words := strings.ReplaceAll(code, "_", " ")
	return strings.ToUpper(words[:1]) + words[1:]
}
