package main

import (
	"go/ast"
	"go/types"
	"maps"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/tools/go/packages"
)

// plan decides which identifiers are exported, and under which names.
func (s *splitter) plan(p *packages.Package) {
	for _, f := range p.Syntax {
		s.roomOf[s.fileOf(f.Pos())] = s.assign(s.fileOf(f.Pos()))
	}
	for _, name := range p.Types.Scope().Names() {
		obj := p.Types.Scope().Lookup(name)
		s.home[s.place(obj.Pos())] = s.roomOf[s.fileOf(obj.Pos())]
	}
	s.findForeign(p)
	need := s.needed(p)
	s.addMethods(p, need)
	for _, at := range slices.Sorted(maps.Keys(need)) {
		s.rename[at] = s.newName(p, need[at])
	}
	for _, obj := range p.TypesInfo.Defs {
		if v, ok := obj.(*types.Var); ok && v.Embedded() {
			if of := namedOf(v.Type()); of != nil && s.rename[s.place(of.Pos())] != "" {
				s.inner[s.place(v.Pos())] = s.rename[s.place(of.Pos())]
			}
		}
	}
}

// needed returns what is not exported and used in another room.
func (s *splitter) needed(p *packages.Package) map[string]types.Object {
	need := map[string]types.Object{}
	for id, obj := range p.TypesInfo.Uses {
		file := s.fileOf(id.Pos())
		if obj.Pkg() != p.Types || strings.HasSuffix(file, "/"+s.keep) {
			continue
		}
		obj = origin(obj)
		if v, ok := obj.(*types.Var); ok && v.Embedded() {
			if of := namedOf(v.Type()); of != nil && of.Pkg() == p.Types {
				obj = of // the field is named as its type
			}
		}
		from, to := s.roomOf[file], s.roomOf[s.fileOf(obj.Pos())]
		if from == to || !movable(p, obj) {
			continue
		}
		if from == s.kernel() {
			s.fault(id.Pos(), "the kernel uses %s of %s", obj.Name(), to.name)
		}
		if !obj.Exported() {
			need[s.place(obj.Pos())] = obj
		}
	}
	return need
}

// addMethods adds all methods of the names that interfaces have, if one of them is exported or a type of a room has it.
func (s *splitter) addMethods(p *packages.Package, need map[string]types.Object) {
	interfaces, together := map[string]bool{}, map[string]bool{}
	for _, f := range p.Syntax {
		ast.Inspect(f, func(n ast.Node) bool {
			if t, ok := n.(*ast.InterfaceType); ok {
				for _, method := range t.Methods.List {
					for _, id := range method.Names {
						interfaces[id.Name] = !id.IsExported()
					}
				}
			}
			return true
		})
	}
	for _, obj := range p.TypesInfo.Defs {
		fn, ok := obj.(*types.Func)
		if !ok || fn.Signature().Recv() == nil || !interfaces[fn.Name()] {
			continue
		}
		of := namedOf(fn.Signature().Recv().Type())
		inRoom := s.roomOf[s.fileOf(fn.Pos())] != s.kernel() && (of == nil || of.Name() != s.special)
		if inRoom || need[s.place(fn.Pos())] != nil {
			together[fn.Name()] = true
		}
	}
	for _, obj := range p.TypesInfo.Defs {
		if fn, ok := obj.(*types.Func); ok && fn.Signature().Recv() != nil && together[fn.Name()] {
			need[s.place(fn.Pos())] = fn
		}
	}
}

// movable reports whether an object is declared by the package itself, or is a method or a field.
func movable(p *packages.Package, obj types.Object) bool {
	switch o := obj.(type) {
	case *types.Func:
		return true
	case *types.Var:
		return o.IsField() || o.Parent() == p.Types.Scope()
	default:
		return o.Parent() == p.Types.Scope()
	}
}

// origin returns the declaration behind an instance of something generic.
func origin(obj types.Object) types.Object {
	switch o := obj.(type) {
	case *types.Func:
		return o.Origin()
	case *types.Var:
		return o.Origin()
	}
	return obj
}

// namedOf returns the declaration of a type or of what it points to; nil if it has no name.
func namedOf(t types.Type) *types.TypeName {
	if pointer, ok := t.(*types.Pointer); ok {
		t = pointer.Elem()
	}
	if named, ok := t.(*types.Named); ok {
		return named.Origin().Obj()
	}
	return nil
}

var initialisms = map[string]string{"id": "ID", "ids": "IDs", "url": "URL", "uuid": "UUID", "api": "API", "json": "JSON"}

// newName returns the exported name of an object.
func (s *splitter) newName(p *packages.Package, obj types.Object) string {
	name := obj.Name()
	v, isVar := obj.(*types.Var)
	if isVar && v.IsField() {
		name = "." + name
	}
	if chosen, ok := s.names[name]; ok {
		return chosen
	}
	word := strings.TrimPrefix(name, ".")
	first := word
	if i := strings.IndexFunc(word, unicode.IsUpper); i > 0 {
		first = word[:i]
	}
	long, known := initialisms[first]
	if !known {
		long = strings.ToUpper(first[:1]) + first[1:]
	}
	exported := long + word[len(first):]
	taken := p.Types.Scope().Lookup(exported)
	if obj.Parent() != p.Types.Scope() {
		taken = nil
		if fn, ok := obj.(*types.Func); ok {
			taken, _, _ = types.LookupFieldOrMethod(fn.Signature().Recv().Type(), true, p.Types, exported)
		}
	}
	if taken != nil {
		s.fault(obj.Pos(), "%s is taken: choose another name for %s", exported, name)
	}
	return exported
}
