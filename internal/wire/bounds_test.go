package wire

import (
	"reflect"
	"strings"
	"testing"
)

// elements is a list or a map of many more elements than any may have.
func elements(s *shape) string {
	const many = 200_000
	for s.form == formPointer {
		s = s.elem
	}
	one := "{}"
	switch {
	case s.form == formMap:
		var b strings.Builder
		for i := range many {
			b.WriteString(`,"` + string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676%26)) + string(rune('a'+i/17576%26)) + `":1`)
		}
		return "{" + b.String()[1:] + "}"
	case s.elem.form == formString, s.elem.form == formText:
		one = `""`
	case s.elem.form == formInt:
		one = "1"
	}
	return "[" + strings.Repeat(one+",", many-1) + one + "]"
}

// inside lists the objects that a request may hold, with the text around them: only the last of each type counts.
func inside(s *shape, before, after string, seen map[*shape]bool, visit func(s *shape, before, after string)) {
	for s.form == formPointer {
		s = s.elem
	}
	switch {
	case seen[s]:
	case s.form == formSlice:
		inside(s.elem, before+"[", "]"+after, seen, visit)
	case s.form == formMap:
		inside(s.elem, before+`{"k":`, "}"+after, seen, visit)
	case s.form == formStruct:
		seen[s] = true
		visit(s, before, after)
		for i := range s.fields {
			inside(s.fields[i].shape, before+`{"`+s.fields[i].name+`":`, "}"+after, seen, visit)
		}
	}
}

// A text of some megabytes that names a million empty elements is refused as soon as there are too many, wherever in a request they stand: it must
// not take more than a few times its own size (U20).
func TestU20_lists_and_maps_are_counted_while_they_are_read(t *testing.T) {
	t.Parallel()
	lists := 0
	for _, o := range Operations() {
		p := planOf(o.Request)
		if p.body == nil {
			continue
		}
		inside(p.shape, "", "", map[*shape]bool{}, func(s *shape, before, after string) {
			for _, f := range s.fields {
				bare := f.shape
				for bare.form == formPointer {
					bare = bare.elem
				}
				if bare.form != formSlice && bare.form != formMap {
					continue
				}
				lists++
				text := []byte(before + `{"` + f.name + `":` + elements(f.shape) + "}" + after)
				d := &decoder{scanner: newScanner(text)}
				d.value(p.shape, reflect.New(p.shape.typ).Elem())
				if fault := d.broken; fault == nil || fault.Code != CodeBatchTooLarge || !strings.HasSuffix(fault.Field, "/"+f.name) || fault.Limit == 0 {
					t.Errorf("%s: %s%s: %v", o.ID, before, f.name, fault)
				}
				if d.used > freeRoom {
					t.Errorf("%s: %s%s took %d bytes for %d", o.ID, before, f.name, d.used, len(text))
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
	p := planOf(SubmitFlow.Request)
	text := []byte(`{"nodes":[` + strings.Repeat(`{"flow":{"nodes":[{}`+strings.Repeat(",{}", 29)+`]}},`, 9999) + `{}]}`)
	d := &decoder{scanner: newScanner(text)}
	d.value(p.shape, reflect.New(p.shape.typ).Elem())
	if d.used > freeRoom+roomPerByte*len(text)+1<<20 || d.broken == nil || d.broken.Code != CodeBatchTooLarge {
		t.Errorf("%d bytes for %d, %v", d.used, len(text), d.broken)
	}
}
