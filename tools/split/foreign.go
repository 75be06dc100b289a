package main

import (
	"go/ast"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/packages"
)

// foreign is a method that is declared in a room although its receiver is of another one. It becomes a function with the receiver as a parameter:
// the first one, or the second one behind a context.
type foreign struct {
	decl    *ast.FuncDecl
	home    *room
	pointer bool // its receiver is one
	ctx     bool // its first parameter is a context
}

// findForeign finds such methods.
func (s *splitter) findForeign(p *packages.Package) {
	for _, f := range p.Syntax {
		for _, d := range f.Decls {
			fd, ok := d.(*ast.FuncDecl)
			if !ok || fd.Recv == nil {
				continue
			}
			fn, _ := p.TypesInfo.Defs[fd.Name].(*types.Func)
			of := namedOf(fn.Signature().Recv().Type())
			here, there := s.roomOf[s.fileOf(fd.Pos())], s.roomOf[s.fileOf(of.Pos())]
			if here == there || of.Name() == s.special {
				continue
			}
			if here == s.kernel() {
				s.fault(fd.Pos(), "the kernel declares the method %s of %s, which is of %s", fd.Name.Name, of.Name(), there.name)
				continue
			}
			params := fn.Signature().Params()
			_, pointer := fn.Signature().Recv().Type().(*types.Pointer)
			s.foreign[s.place(fn.Pos())] = foreign{fd, here, pointer, params.Len() > 0 && params.At(0).Type().String() == "context.Context"}
		}
	}
}

// asFunction turns the declaration of a method into that of a function.
func (s *splitter) asFunction(p *packages.Package, m foreign) {
	recv := m.decl.Recv
	field := recv.List[0]
	star := ""
	typ := field.Type
	if m.pointer {
		star, typ = "*", typ.(*ast.StarExpr).X
	}
	id := typ.(*ast.Ident)
	obj := p.TypesInfo.Uses[id]
	name := id.Name
	if to := s.rename[s.place(obj.Pos())]; to != "" {
		name = to
	}
	home := s.home[s.place(obj.Pos())]
	file := s.fileOf(m.decl.Pos())
	s.needs[file] = append(s.needs[file], home)
	of := "_"
	if len(field.Names) > 0 {
		of = field.Names[0].Name
	}
	params := m.decl.Type.Params
	text := of + " " + star + home.name + "." + name
	at := params.Opening + 1
	switch {
	case m.ctx && len(params.List[0].Names) == 1:
		at, text = params.List[0].End(), ", "+text
	case len(params.List) > 0:
		text += ", "
	}
	if len(params.List) > 0 && len(params.List[0].Names) == 0 {
		s.fault(m.decl.Pos(), "the parameters of %s have no names", m.decl.Name.Name)
	}
	s.put1(recv.Pos(), m.decl.Name.Pos(), "")
	s.put1(at, at, text)
}

// put1 adds an edit.
func (s *splitter) put1(from, to token.Pos, text string) {
	a, b := s.fset.Position(from), s.fset.Position(to)
	s.edits[a.Filename] = append(s.edits[a.Filename], edit{a.Offset, b.Offset, text})
}

// asCall turns the call of a method into that of a function.
func (s *splitter) asCall(p *packages.Package, r *room, file string, call *ast.CallExpr) {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return
	}
	fn, ok := p.TypesInfo.Uses[sel.Sel].(*types.Func)
	if !ok || fn.Pkg() == nil {
		return
	}
	m, ok := s.foreign[s.place(fn.Origin().Pos())]
	if !ok {
		return
	}
	s.handled[sel.Sel] = true
	name := m.decl.Name.Name
	if to := s.rename[s.place(fn.Origin().Pos())]; to != "" {
		name = to
	}
	if r != m.home {
		name = m.home.name + "." + name
		s.needs[file] = append(s.needs[file], m.home)
	}
	path := ""
	selection := p.TypesInfo.Selections[sel]
	typ := selection.Recv()
	index := selection.Index()
	for _, i := range index[:len(index)-1] {
		if pt, ok := typ.Underlying().(*types.Pointer); ok {
			typ = pt.Elem()
		}
		f := typ.Underlying().(*types.Struct).Field(i)
		fieldName := f.Name()
		if to := s.inner[s.place(f.Pos())]; to != "" {
			fieldName = to
		}
		path += "." + fieldName
		typ = f.Type()
	}
	prefix := ""
	_, isPointer := typ.Underlying().(*types.Pointer)
	switch {
	case m.pointer && !isPointer:
		prefix = "&"
	case !m.pointer && isPointer:
		prefix = "*"
	}
	open := name + "("
	rest := call.Lparen + 1
	comma := ""
	if len(call.Args) > 0 {
		comma = ", "
	}
	if m.ctx {
		first, ok := call.Args[0].(*ast.Ident)
		if !ok {
			s.fault(call.Pos(), "the context of the call of %s is no name", sel.Sel.Name)
			return
		}
		open += first.Name + ", "
		rest, comma = first.End(), ""
		if len(call.Args) > 1 {
			rest, comma = call.Args[1].Pos(), ", "
		}
	}
	s.put1(sel.X.Pos(), sel.X.Pos(), open+prefix)
	s.put1(sel.X.End(), rest, path+comma)
}
