package wire

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// bodyOf describes the body of a request that has one.
func bodyOf(request reflect.Type) *jsonx.Shape {
	return jsonx.ShapeOf(request.FieldByIndex(planOf(request).body).Type)
}

// drawRequest fills a request of any type with what a caller could mean by it.
func drawRequest(t *rapid.T, typ reflect.Type) any {
	req := reflect.New(typ)
	p := planOf(typ)
	for _, param := range p.params {
		drawParameter(t, param, req.Elem().FieldByIndex(param.index))
	}
	if p.raw != nil && rapid.Bool().Draw(t, "raw") {
		contentType := p.accept
		if p.accept == "*/*" {
			contentType = rapid.SampledFrom([]string{ContentBytes, "text/csv; header=present", "image/png"}).Draw(t, "content type")
		}
		raw := Raw{Data: append([]byte{}, rapid.SliceOf(rapid.Byte()).Draw(t, "raw")...), ContentType: contentType}
		req.Elem().FieldByIndex(p.raw).Set(reflect.ValueOf(raw))
	} else if p.body != nil {
		drawValue(t, bodyOf(typ), req.Elem().FieldByIndex(p.body), true)
	}
	return req.Interface()
}

func drawParameter(t *rapid.T, param parameter, v reflect.Value) {
	switch {
	case param.in != inPath && !param.required && rapid.Bool().Draw(t, param.name+" absent"):
	case param.in != inQuery && v.Kind() == reflect.String:
		pattern := `[!-~]([ -~]{0,10}[!-~])?` // what a header can carry
		if param.in == inPath {
			pattern = `\{fp:[0-9]\}:` + uuidPattern + `|[!-~]{1,12}|\.{1,3}|[^\x00]{1,8}`
		}
		// http.ServeMux takes a segment that is one encoded slash for the end of the path.
		v.SetString(rapid.StringMatching(pattern).Filter(func(s string) bool { return s != "/" }).Draw(t, param.name))
	case param.required && v.Kind() == reflect.String:
		v.SetString(rapid.StringN(1, 8, -1).Draw(t, param.name))
	default:
		drawValue(t, jsonx.ShapeOf(v.Type()), v, true)
		if n := reflect.Indirect(v); param.least != nil && n.Int() < *param.least {
			n.SetInt(*param.least)
		}
	}
}

// drawValue fills a value; needed ones are not left out.
func drawValue(t *rapid.T, s *jsonx.Shape, v reflect.Value, needed bool) {
	if !needed && rapid.Bool().Draw(t, "absent") {
		return
	}
	switch s.Form {
	case jsonx.FormPointer:
		v.Set(reflect.New(s.Elem.Type))
		drawValue(t, s.Elem, v.Elem(), true)
	case jsonx.FormSlice:
		for range rapid.IntRange(1, 3).Draw(t, "length") {
			element := reflect.New(s.Elem.Type).Elem()
			drawValue(t, s.Elem, element, true)
			v.Set(reflect.Append(v, element))
		}
	case jsonx.FormMap:
		v.Set(reflect.MakeMap(s.Type))
		for range rapid.IntRange(1, 3).Draw(t, "entries") {
			element := reflect.New(s.Elem.Type).Elem()
			drawValue(t, s.Elem, element, s.Elem.Form != jsonx.FormPointer)
			v.SetMapIndex(reflect.ValueOf(rapid.String().Draw(t, "key")), element)
		}
	case jsonx.FormStruct:
		switch into := v.Addr().Interface().(type) {
		case *api.Condition:
			if *into = drawCondition(t, 2); rapid.Bool().Draw(t, "empty texts") {
				*into = api.Condition{}
				_ = DecodeJSON([]byte(`{"type":"single","waitpoint_key":"","name":""}`), into)
			}
		case *api.Binding:
			*into = drawBinding(t)
		case *api.BudgetReset:
			if drawStruct(t, s, v); into.Type == "" {
				into.Type = "none" // it is never empty in JSON
			}
		default:
			drawStruct(t, s, v)
		}
	default:
		drawScalar(t, s, v)
	}
}

// drawStruct gives at most one field of each group, and a command of a batch only its own fields.
func drawStruct(t *rapid.T, s *jsonx.Shape, v reflect.Value) {
	taken := map[string]bool{}
	item, isItem := v.Addr().Interface().(*WorkItem)
	op := ""
	if isItem {
		op = rapid.SampledFrom([]string{"renew", "progress", "complete", "fail", "release", "delay", "step", "cancel", "suspend", "waitpoint"}).Draw(t, "op")
	}
	for _, f := range s.Fields {
		known := op == "" || slices.Contains(workFields[op], f.Name) || slices.Contains(workHead, f.Name)
		if !known || f.Group != "" && taken[f.Group] {
			continue
		}
		if f.Name == "flow" && rapid.IntRange(0, 2).Draw(t, "no sub-flow") > 0 {
			continue // else a graph has as many members below as beside, without end
		}
		into := v.FieldByIndex(f.Index)
		if f.Shape.Form == jsonx.FormMember {
			if f.Name == f.Group && rapid.Bool().Draw(t, "with a payload") { // else it is another member of the same payload
				p := anyPayload(t)
				into.Set(reflect.ValueOf(api.Payload{Data: p.Data, ContentType: p.ContentType}))
			}
			continue
		}
		drawValue(t, f.Shape, into, f.Required || workRequired[op] == f.Name)
		taken[f.Group] = taken[f.Group] || !into.IsZero()
	}
	if isItem {
		item.Op = op
		if op == "step" && item.Name == "" {
			item.Name = "s"
		}
		if op == "waitpoint" && item.WaitpointKey == "" {
			item.WaitpointKey = "k"
		}
	}
}

// drawCondition draws a tree that is not deeper than said; each node has its own fields only.
func drawCondition(t *rapid.T, depth int) api.Condition {
	text := func(what string) string { return rapid.String().Draw(t, what) }
	kinds := []string{"single", "count", "operator_only", "timeout_only", "all_of", "any_of"}
	c := api.Condition{Type: rapid.SampledFrom(kinds[:4+min(depth, 1)*2]).Draw(t, "type")}
	switch c.Type {
	case "single":
		c.Key, c.Name = text("key"), text("name")
	case "count":
		c.N, c.CountKind, c.Name = rapid.IntRange(1, 9).Draw(t, "n"), "distinct_sources", text("name")
		c.Keys = rapid.SliceOfN(rapid.String(), 1, 3).Draw(t, "keys")
		if rapid.Bool().Draw(t, "some sources") {
			c.SourceTypes = rapid.SliceOfN(rapid.String(), 1, 2).Draw(t, "sources")
		}
	case "all_of", "any_of":
		for range rapid.IntRange(1, 3).Draw(t, "members") {
			c.Members = append(c.Members, drawCondition(t, depth-1))
		}
	}
	return c
}

func drawBinding(t *rapid.T) api.Binding {
	if rapid.Bool().Draw(t, "pending") {
		return api.Binding{UsePending: &api.PendingWaitpoint{ID: rapid.String().Draw(t, "id")}}
	}
	return api.Binding{Fresh: &api.FreshWaitpoint{Key: rapid.String().Draw(t, "key"), ID: rapid.String().Draw(t, "id")}}
}

func drawScalar(t *rapid.T, s *jsonx.Shape, v reflect.Value) {
	var drawn any
	switch s.Type {
	case reflect.TypeFor[Time]():
		drawn = anyTime(t)
	case reflect.TypeFor[time.Time]():
		drawn = anyTime(t).Time
	case reflect.TypeFor[time.Duration]():
		drawn = anyDuration(t)
	case reflect.TypeFor[LeaseRef]():
		drawn = anyLeaseRef(t)
	case reflect.TypeFor[HeldLease]():
		drawn = HeldLease{ExecutionID: rapid.StringMatching(uuidPattern).Draw(t, "id"), LeaseRef: anyLeaseRef(t)}
	case reflect.TypeFor[View]():
		drawn = rapid.SampledFrom([]View{ViewIDs, ViewSummary, ViewFull}).Draw(t, "view")
	case reflect.TypeFor[Encoding]():
		drawn = EncodingBytes
	case reflect.TypeFor[OnSatisfied]():
		drawn = rapid.SampledFrom([]OnSatisfied{LetRun, CancelRemaining}).Draw(t, "on satisfied")
	case reflect.TypeFor[Revision]():
		drawn = Revision(rapid.Int64Range(0, 1<<40).Draw(t, "revision"))
	case reflect.TypeFor[json.RawMessage]():
		text, _ := Marshal(map[string]any{strings.Repeat("<", 3): anyJSON(t, 2)})
		drawn = json.RawMessage(text)
	case reflect.TypeFor[api.Policy](), reflect.TypeFor[api.DefaultPolicy]():
		text, _ := Marshal(map[string]any{strings.Repeat("<", 3): anyJSON(t, 2)})
		if err := DecodeJSON(text, v.Addr().Interface()); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return
	case reflect.TypeFor[[]byte]():
		drawn = append([]byte{}, rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")...)
	case reflect.TypeFor[api.Payload](): // it has several members, of which the first that is drawn gives it
		if !v.IsZero() {
			return
		}
		drawn = drawSent(t)
	default:
		drawPlain(t, v)
		return
	}
	v.Set(reflect.ValueOf(drawn))
}

// drawSent is a payload of a request.
func drawSent(t *rapid.T) api.Payload {
	switch rapid.IntRange(0, 2).Draw(t, "payload") {
	case 0:
		return api.JSON(map[string]any{"<": anyJSON(t, 2)})
	case 1:
		return api.Text(rapid.String().Draw(t, "text"))
	default:
		return api.Bytes(append([]byte{}, rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")...), "image/png")
	}
}

// anyDuration is a span of whole milliseconds: what JSON carries.
func anyDuration(t *rapid.T) time.Duration {
	return time.Duration(rapid.Int64Range(-1<<40, 1<<40).Draw(t, "milliseconds")) * time.Millisecond
}

func drawPlain(t *rapid.T, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(rapid.String().Draw(t, "text"))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "flag"))
	default:
		v.SetInt(rapid.Int64().Draw(t, "number"))
	}
}
