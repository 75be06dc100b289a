package wire

import (
	"reflect"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// freeRoom is what any request may take in memory for its lists and maps, in bytes.
const freeRoom = 64 << 20

// memoryOf reads the body of a request, and returns its first fault and how much memory its lists and maps asked for.
func memoryOf(o *Operation, text []byte) (fault *Error, bytes int) {
	err := jsonx.DecodeWithin(text, reflect.New(bodyOf(o.Request).Type).Interface(), func(more int) bool {
		bytes += more
		return true
	})
	return jsonx.AsError(err), bytes
}

// elements is a list or a map of many more elements than any may have.
func elements(s *jsonx.Shape) string {
	const many = 200_000
	for s.Form == jsonx.FormPointer {
		s = s.Elem
	}
	one := "{}"
	switch {
	case s.Form == jsonx.FormMap:
		var b strings.Builder
		for i := range many {
			b.WriteString(`,"` + string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676%26)) + string(rune('a'+i/17576%26)) + `":1`)
		}
		return "{" + b.String()[1:] + "}"
	case s.Elem.Form == jsonx.FormString, s.Elem.Form == jsonx.FormText:
		one = `""`
	case s.Elem.Form == jsonx.FormInt:
		one = "1"
	}
	return "[" + strings.Repeat(one+",", many-1) + one + "]"
}

// inside lists the objects that a request may hold, with the text around them: only the last of each type counts.
func inside(s *jsonx.Shape, before, after string, seen map[*jsonx.Shape]bool, visit func(s *jsonx.Shape, before, after string)) {
	for s.Form == jsonx.FormPointer {
		s = s.Elem
	}
	switch {
	case seen[s]:
	case s.Form == jsonx.FormSlice:
		inside(s.Elem, before+"[", "]"+after, seen, visit)
	case s.Form == jsonx.FormMap:
		inside(s.Elem, before+`{"k":`, "}"+after, seen, visit)
	case s.Form == jsonx.FormStruct:
		seen[s] = true
		visit(s, before, after)
		for i := range s.Fields {
			inside(s.Fields[i].Shape, before+`{"`+s.Fields[i].Name+`":`, "}"+after, seen, visit)
		}
	}
}

// A text of some megabytes that names a million empty elements is refused as soon as there are too many, wherever in a request they stand: it must
// not take more than a few times its own size (U20).
func TestU20_lists_and_maps_are_counted_while_they_are_read(t *testing.T) {
	t.Parallel()
	lists := 0
	for _, o := range Operations() {
		if planOf(o.Request).body == nil {
			continue
		}
		inside(bodyOf(o.Request), "", "", map[*jsonx.Shape]bool{}, func(s *jsonx.Shape, before, after string) {
			for _, f := range s.Fields {
				bare := f.Shape
				for bare.Form == jsonx.FormPointer {
					bare = bare.Elem
				}
				if bare.Form != jsonx.FormSlice && bare.Form != jsonx.FormMap {
					continue
				}
				lists++
				text := []byte(before + `{"` + f.Name + `":` + elements(f.Shape) + "}" + after)
				fault, used := memoryOf(o, text)
				if fault == nil || fault.Code != jsonx.CodeBatchTooLarge || !strings.HasSuffix(fault.Field, "/"+f.Name) || fault.Limit == 0 {
					t.Errorf("%s: %s%s: %v", o.ID, before, f.Name, fault)
				}
				if used > freeRoom {
					t.Errorf("%s: %s%s took %d bytes for %d", o.ID, before, f.Name, used, len(text))
				}
			}
		})
	}
	if lists < 100 {
		t.Errorf("only %d lists were tried", lists)
	}
}

// Many short lists of large elements take more memory than their text by far, too.
func TestU20_what_lists_take_in_memory_is_bounded_in_all(t *testing.T) {
	t.Parallel()
	text := []byte(`{"nodes":[` + strings.Repeat(`{"flow":{"nodes":[{}`+strings.Repeat(",{}", 29)+`]}},`, 9999) + `{}]}`)
	fault, used := memoryOf(SubmitFlow.Operation, text)
	if used > freeRoom+4*len(text)+1<<20 || fault == nil || fault.Code != jsonx.CodeBatchTooLarge {
		t.Errorf("%d bytes for %d, %v", used, len(text), fault)
	}
}
